"""The menu of a chat's tools, with a switch for each tool server that is on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from PySide6.QtCore import QCoreApplication, QObject
from PySide6.QtWidgets import QMenu

from app.core.chat import Chat, ToolChoice
from app.gui.look.theme import Theme
from app.gui.tools.tool_client import ToolClient
from app.gui.widgets.buttons import IconButton

TOOLS_PAGE = "settings/Tools"


class ToolMenu(QObject):
    """The button and menu for choosing a chat's tool servers. None are selected at first."""

    def __init__(
        self,
        theme: Theme,
        client: ToolClient,
        chosen: Callable[[ToolChoice], object],
        go: Callable[[str], object],
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._client, self._chosen, self._go = client, chosen, go
        self._tools = ToolChoice()
        self._can_call: bool | None = None
        self._is_opening = False
        self.button = IconButton(theme, "tools", _tr("Tools: off"), self.open)
        client.changed.connect(self._listed)

    def show_chat(self, chat: Chat, can_call: bool | None) -> None:
        """Show whether a chat uses tools.

        can_call: whether the chat's model can call tools, or None if unknown.
        """
        self._tools, self._can_call = chat.tools, can_call
        names = ", ".join(chat.tools.servers)
        self.button.rename(_tr("Tools: {names}").format(names=names) if names else _tr("Tools: off"))
        self.button.show_picture("tools-on" if names else "tools")

    def open(self) -> None:
        """Open the menu after refreshing the list of servers, which may have changed."""
        self._client.refresh()
        self.menu().popup(self.button.mapToGlobal(self.button.rect().bottomLeft()))

    def menu(self) -> QMenu:
        """Return the menu."""
        menu = QMenu(self.button)
        menu.setAccessibleName(_tr("Tools"))
        self._fill(menu)
        menu.aboutToHide.connect(menu.deleteLater)
        self._open_menu = menu
        return menu

    _open_menu: QMenu | None = None

    def _fill(self, menu: QMenu) -> None:
        menu.clear()
        servers = [server.name for server in self._client.servers if server.on]
        if self._can_call is False:
            menu.addAction(_tr("This model cannot call tools")).setEnabled(False)
            menu.addSeparator()
        missing = [name for name in self._tools.servers if name not in servers]
        for name in (*servers, *missing):
            words = _tr("{name} (off in Settings)").format(name=name) if name in missing else name
            action = menu.addAction(words.replace("&", "&&"))
            action.setCheckable(True)
            action.setChecked(name in self._tools.servers)
            action.toggled.connect(partial(self._toggle, name))
        if not servers and not missing:
            menu.addAction(_tr("No tool server is on")).setEnabled(False)
        menu.addSeparator()
        menu.addAction(_tr("Set up tool servers…"), lambda: self._go(TOOLS_PAGE))

    def _listed(self) -> None:
        from shiboken6 import isValid

        if self._open_menu is not None and isValid(self._open_menu) and self._open_menu.isVisible():
            self._fill(self._open_menu)

    def _toggle(self, name: str, on: bool) -> None:
        servers = tuple(known for known in self._tools.servers if known != name)
        self._tools = replace(self._tools, servers=(*servers, name) if on else servers)
        self._chosen(self._tools)


def _tr(text: str) -> str:
    return QCoreApplication.translate("ToolMenu", text)
