"""The card above the list with the models that other computers have loaded, each with a button to chat."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QVBoxLayout

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
        self._shown: Sequence[SharedModel] = ()
        self._list = QVBoxLayout()
        self._list.setSpacing(sizes.S)
        box = column(label(self.tr("Loaded in your household"), "caption"), self._list, gap=sizes.S)
        box.setContentsMargins(sizes.L, sizes.M, sizes.L, sizes.M)
        self.setLayout(box)
        self.hide()

    def show_models(self, models: Sequence[SharedModel]) -> None:
        """Show these models. The rows are rebuilt only if something changed, so that a focused button keeps focus."""
        if list(models) == list(self._shown):
            return
        self._shown = tuple(models)
        clear_layout(self._list)
        for model in models:
            self._list.addWidget(layout_widget(self._row(model)))
        self.setVisible(bool(models))

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
