"""The card above the list with the models that other computers have loaded, each with a button to chat."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QVBoxLayout

from app.api.chat_api import OtherServer
from app.api.models import SharedModel
from app.gui.look import formats, sizes
from app.gui.look.theme import set_role
from app.gui.widgets.buttons import button
from app.gui.widgets.flow import Beside
from app.gui.widgets.labels import ElidedLabel, label
from app.gui.widgets.layouts import clear_layout, column, layout_widget


class SharedModelsCard(QFrame):
    """The card that lists the models of other hosts. It is hidden if there are none.

    `chat_requested(reference)` is emitted when the user clicks a button.
    """

    chat_requested = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        set_role(self, "card")
        self._shown: object = None
        self._list = QVBoxLayout()
        self._list.setSpacing(sizes.S)
        box = column(label(self.tr("Loaded elsewhere"), "caption"), self._list, gap=sizes.S)
        box.setContentsMargins(sizes.L, sizes.M, sizes.L, sizes.M)
        self.setLayout(box)
        self.hide()

    def show_models(self, models: Sequence[SharedModel], servers: Sequence[OtherServer] = ()) -> None:
        """Show the models of other computers and servers. The rows are rebuilt only if something changed, so that a
        focused button keeps focus.
        """
        served = [(server.name, model) for server in servers for model in server.models]
        if (list(models), served) == self._shown:
            return
        self._shown = list(models), served
        clear_layout(self._list)
        for model in models:
            self._list.addWidget(layout_widget(self._row(model)))
        for server, name in served:
            self._list.addWidget(layout_widget(self._server_row(server, name)))
        self.setVisible(bool(models or served))

    def _server_row(self, server: str, model: str) -> Beside:
        name = ElidedLabel(model, "section")
        about = label(self.tr("On {server}, another server").format(server=server), "muted")
        chat = button(self.tr("Chat"), lambda: self.chat_requested.emit(f"{model}@{server}"))
        chat.setAccessibleName(self.tr("Chat with {model} on {machine}").format(model=model, machine=server))
        return Beside(layout_widget(column(name, about, gap=0)), chat)

    def _row(self, model: SharedModel) -> Beside:
        name = ElidedLabel(model.model, "section")
        where = self.tr("On {machine}, context {tokens} tokens") if model.ready else self.tr("Loading on {machine}")
        about = label(where.format(machine=model.machine, tokens=formats.number(model.context)), "muted")
        chat = button(self.tr("Chat"), lambda: self.chat_requested.emit(model.reference))
        chat.setAccessibleName(
            self.tr("Chat with {model} on {machine}").format(model=model.model, machine=model.machine)
        )
        chat.setEnabled(model.ready)
        return Beside(layout_widget(column(name, about, gap=0)), chat)
