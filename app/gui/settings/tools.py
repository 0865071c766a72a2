"""The Tools settings, with the tool servers (MCP), their state, and the permissions of their tools."""

from __future__ import annotations

from functools import partial

import msgspec
from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QWidget

from app.api.tools import Permission, Server, ServerTool, SetPermission, SwitchServer, TestServer
from app.core.errors import AppError
from app.core.wire_json import error_of
from app.gui.app.app_context import AppContext
from app.gui.look import formats, sizes
from app.gui.look.sentences import said
from app.gui.settings.settings_group import Card, Choice, Setting, SettingsGroup
from app.gui.settings.tool_dialogs import ImportToolsDialog, RemoveToolServerDialog, ToolServerDialog
from app.gui.widgets.buttons import Switch, button
from app.gui.widgets.flow import Beside, Flow
from app.gui.widgets.fold import Fold
from app.gui.widgets.labels import label, paragraph
from app.gui.widgets.layouts import clear_layout, column, layout_widget

DESCRIPTION_CHARACTERS = 300


class Tools(SettingsGroup):
    """The Tools settings. The node is not involved: servers run only while this window or a command uses them."""

    can_reset = False

    def __init__(self, services: AppContext) -> None:
        super().__init__(services, self.tr("Tools"))
        self.rows: dict[str, ServerRow] = {}
        self.add_server = button(self.tr("Add a tool server…"), self._add)
        self.import_servers = button(self.tr("Import…"), self._import)
        self._card: Card = self.add(
            Setting(
                self.tr("Tool servers"),
                self.tr(
                    "Through tool servers (MCP), models can use tools such as a clock, a calendar or your "
                    "files. You choose the servers in each chat and allow each call."
                ),
                Flow(self.add_server, self.import_servers),
                words="mcp tools server plugin",
            )
        )
        services.tools.changed.connect(self._show)
        self._show()

    def refresh(self) -> None:
        self.services.tools.refresh()

    def test(self, name: str) -> None:
        """Restart a server to see its tools."""
        self.rows[name].show_testing()
        tools = self.services.tools
        tools.ask(TestServer(name), Server, partial(self._tested, name), partial(self._test_failed, name))

    def _tested(self, name: str, server: Server) -> None:
        self.services.tools.refresh()
        text = QCoreApplication.translate("Tools", "{name} works and has %n tool(s).", "", len(server.tools))
        self.told.emit(str(text).format(name=name), "info")
        if name in self.rows:
            self.rows[name].show_server(server)

    def _test_failed(self, name: str, error: AppError) -> None:
        if name in self.rows:
            self.rows[name].show_again()
        self.services.tools.refresh()
        self.failed.emit(error)

    def _show(self) -> None:
        servers = {server.name: server for server in self.services.tools.servers}
        for name, server in servers.items():
            if name not in self.rows:
                self.rows[name] = ServerRow(self, name)
                self._card.put(self.rows[name].setting)
            self.rows[name].show_server(server)
        for name, row in self.rows.items():
            row.setting.is_removed = name not in servers
        self.search_again()

    def switch(self, name: str, on: bool) -> None:
        """Set whether chats may use a server."""
        self.services.tools.change(SwitchServer(name, on), lambda: None, self._failed)

    def permit(self, name: str, tool: ServerTool, permission: Permission) -> None:
        """Set whether a tool may be called without asking.

        This is refused if the tool has changed since it was shown.
        """
        request = SetPermission(name, tool.name, permission, tool.fingerprint)
        self.services.tools.change(request, lambda: None, self._failed)

    def edit(self, name: str) -> None:
        """Open the dialog for changing a server."""
        server = next((known for known in self.services.tools.servers if known.name == name), None)
        if server is not None:
            ToolServerDialog(self.services, server, self._saved, self).open()

    def remove(self, name: str) -> None:
        """Ask whether to remove a server."""
        RemoveToolServerDialog(self.services, name, self._removed, self).open()

    def _add(self) -> None:
        ToolServerDialog(self.services, None, self._saved, self).open()

    def _import(self) -> None:
        ImportToolsDialog(self.services, lambda sentence: self.told.emit(sentence, "info"), self).open()

    def _saved(self, name: str) -> None:
        self._show()
        if name in self.rows:
            self.test(name)

    def _removed(self, name: str) -> None:
        self.told.emit(self.tr("{name} and its secrets were removed.").format(name=name), "info")

    def _failed(self, error: AppError) -> None:
        self.services.tools.refresh()
        self.failed.emit(error)


class ServerRow:
    """The row of a server, with its state, its buttons, and a collapsed list of its tools."""

    def __init__(self, group: Tools, name: str) -> None:
        self._group, self._name = group, name
        theme = group.services.theme
        self.switch = Switch(theme, name, lambda on: group.switch(name, on))
        self.switch.setAccessibleName(_tr("Let chats use {name}").format(name=name))
        self.buttons = [
            button(_tr("Test"), partial(group.test, name)),
            button(_tr("Edit…"), partial(group.edit, name)),
            button(_tr("Remove…"), partial(group.remove, name)),
        ]
        for made in self.buttons:
            made.setAccessibleName(f"{made.text()} {name}")
        self._tools_box = column(gap=sizes.M)
        content = QWidget()
        content.setLayout(self._tools_box)
        self.fold = Fold(theme, "", content)
        self.fold.button.toggled.connect(self._show_tools)
        self.choices: dict[str, Choice] = {}
        self._shown: list[ServerTool] = []
        self._server: Server | None = None
        controls = layout_widget(Flow(*self.buttons, self.switch, right_from=3))
        self.setting = Setting(name, " ", column(controls, self.fold, gap=sizes.S), wide=True, words="mcp tool server")

    def show_server(self, server: Server) -> None:
        """Show a server's state and tools."""
        self._server = server
        self.switch.show_on(server.on)
        self.setting.set_about(f"{_state(server)}\n{_place(server)}")
        text = QCoreApplication.translate("Tools", "%n tool(s)", "", len(server.tools))
        self.fold.rename(str(text))
        self.fold.setVisible(bool(server.tools))
        self._show_tools(self.fold.button.isChecked())

    def show_testing(self) -> None:
        """Show that the server is being started."""
        self.setting.set_about(_tr("Starting…"))

    def show_again(self) -> None:
        """Show the last known state again."""
        if self._server is not None:
            self.show_server(msgspec.structs.replace(self._server))

    def _show_tools(self, is_open: bool) -> None:
        """Show the tools if the list is expanded.

        The rows of a collapsed list are not created, because a server may change its tools at any time.
        """
        server = self._server
        if server is None or not is_open:
            return
        if [*map(_without_permission, server.tools)] != [*map(_without_permission, self._shown)]:
            self._fill(server)
        elif server.tools != self._shown:
            for tool in server.tools:
                self.choices[tool.name].show_value(tool.permission)
        self._shown = server.tools

    def _fill(self, server: Server) -> None:
        clear_layout(self._tools_box)
        self.choices = {}
        options = [("ask", _tr("Ask each time")), ("always", _tr("Always allow")), ("never", _tr("Never allow"))]
        for tool in server.tools:
            choice = Choice(options, partial(self._chosen, tool))
            choice.show_value(tool.permission)
            choice.setAccessibleName(_tr("When {tool} may be called").format(tool=tool.name))
            self.choices[tool.name] = choice
            words = QWidget()
            about = " ".join(tool.description.split())[:DESCRIPTION_CHARACTERS]
            note = _tr("It has changed since you allowed it, so you will be asked again.") if tool.changed else ""
            words.setLayout(column(label(tool.name), paragraph(f"{note} {about}".strip(), "caption"), gap=0))
            self._tools_box.addLayout(Beside(words, choice, gap=sizes.L))
        if server.n_left_out:
            text = _tr("{count} more tools are left out because they would fill a model's context.")
            self._tools_box.addWidget(paragraph(text.format(count=formats.number(server.n_left_out)), "caption"))

    def _chosen(self, tool: ServerTool, permission: str) -> None:
        self._group.permit(self._name, tool, permission)  # type: ignore[arg-type]


def _without_permission(tool: ServerTool) -> ServerTool:
    """Return a tool with the default permission, so that tools can be compared regardless of permissions."""
    return msgspec.structs.replace(tool, permission="ask")


def _state(server: Server) -> str:
    if server.error is not None and server.status == "failed":
        return said(error_of(msgspec.to_builtins(server.error)))
    return {
        "off": _tr("Off."),
        "ready": _tr("On. It starts when a chat uses it."),
        "starting": _tr("Starting…"),
        "running": _tr("On and running."),
        "failed": _tr("It failed."),
    }[server.status]


def _place(server: Server) -> str:
    return server.url or " ".join([server.command, *server.arguments])


def _tr(text: str) -> str:
    return QCoreApplication.translate("Tools", text)
