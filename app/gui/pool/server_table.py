"""The table of the other servers that are on, with the same facts as their cards on the map."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QWidget

from app.api.chat_api import OtherServer
from app.gui.look.theme import Theme
from app.gui.pool.map.server_item import contact_line, figure_lines, server_lines
from app.gui.pool.pool_tables import Column, FactModel, ShortTable
from app.gui.widgets.labels import label, tooltip
from app.gui.widgets.layouts import column

Shown = Callable[[OtherServer], str]


class ServerTable(QWidget):
    """The table of other servers, with its title. It is hidden if none is on."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        title = _tr("Other servers")
        model = FactModel(_columns(), lambda server: server.name, lambda server: tooltip(*server_lines(server)))
        self.table = ShortTable(theme, model, title)
        self.setLayout(column(label(title, "muted"), self.table))
        self.hide()

    def show_servers(self, servers: Sequence[OtherServer]) -> None:
        self.table.show_facts(servers)
        self.setVisible(bool(servers))


def _columns() -> tuple[Column, ...]:
    shown: tuple[tuple[str, Shown], ...] = (
        (_tr("Server"), lambda server: server.name),
        (_tr("Serves"), lambda server: ", ".join(server.models)),
        (_tr("One answer"), lambda server: figure_lines(server)[0]),
        (_tr("Several at once"), lambda server: figure_lines(server)[1]),
        (_tr("Contact"), contact_line),
    )
    return tuple(Column(title, text_of, text_of, figure=False) for title, text_of in shown)


def _tr(text: str) -> str:
    return QCoreApplication.translate("ServerTable", text)
