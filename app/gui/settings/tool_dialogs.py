"""The dialogs that add, edit, import and remove tool servers."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QFileDialog, QLineEdit, QPlainTextEdit, QWidget

from app.api.tools import MAX_NAME_CHARACTERS, Imported, ImportServers, RemoveServer, SaveServer, Server, ServerEdit
from app.core.errors import AppError, BadInput
from app.core.wire_json import error_of
from app.decoding import convert
from app.gui.app.app_context import AppContext
from app.gui.app.node_dialog import Sheet
from app.gui.look.sentences import said
from app.gui.settings.settings_group import Choice
from app.gui.widgets.buttons import button
from app.gui.widgets.files import LastFolder
from app.gui.widgets.flow import Flow
from app.gui.widgets.labels import label, paragraph, show_if
from app.gui.widgets.layouts import column, layout_widget

PROGRAM, ADDRESS = "program", "address"
KEPT = "•••"  # stands for a secret that is stored and not shown
MAX_IMPORT_BYTES = 1 << 20
SECRET_LINES, IMPORT_LINES = 3, 10


class ToolServerDialog(Sheet):
    """A dialog that adds or changes a tool server. `done(name)` is called when the server has been saved."""

    needs_node = False  # the node has no part in tools

    def __init__(
        self, services: AppContext, server: Server | None, done: Callable[[str], object], parent: QWidget
    ) -> None:
        sentence = _tr(
            "A program that you add runs as you: it can read and change your files and use the network. "
            "Add only programs and addresses that you trust."
        )
        title = _tr("Add a tool server") if server is None else _tr("Edit {name}").format(name=server.name)
        super().__init__(services, title, sentence, parent)
        self._was, self._done = server.name if server is not None else "", done
        self.name, self.command, self.url = QLineEdit(), QLineEdit(), QLineEdit()
        self.name.setMaxLength(MAX_NAME_CHARACTERS)
        self.command.setPlaceholderText("uvx mcp-server-time")
        self.url.setPlaceholderText("https://…/mcp")
        self.environment, self.headers = self._lines("NAME=value"), self._lines("Authorization: Bearer …")
        places = [(PROGRAM, _tr("A program on this computer")), (ADDRESS, _tr("An address"))]
        self.place = Choice(places, lambda _: self._show_place())
        self._rows: dict[QWidget, QWidget] = {}
        for title_, field in (
            (_tr("Name of the server"), self.name),
            (_tr("Where it runs"), self.place),
            (_tr("Command with its arguments"), self.command),
            (_tr("Environment variables, one per line"), self.environment),
            (_tr("Address"), self.url),
            (_tr("Headers, one per line"), self.headers),
        ):
            caption = label(title_, "muted")
            caption.setBuddy(field)
            field.setAccessibleName(title_)
            self._rows[field] = layout_widget(column(caption, field, gap=2))
            self.add(self._rows[field])
        self.secrets = paragraph(
            _tr(
                "Values are stored with your other secrets and not shown again. To keep a value, "
                "leave {dots} unchanged."
            ).format(dots=KEPT),
            "caption",
        )
        self.add(self.secrets)
        words = _tr("Add and test") if server is None else _tr("Save and test")
        self.act = button(words, self.save, "primary")
        self.offer(_tr("Cancel"), self.act)
        for line in (self.name, self.command, self.url):
            line.textChanged.connect(self._judge)
        if server is not None:
            self._fill(server)
        self._show_place()

    def save(self) -> None:
        """Save the server."""
        try:
            edit = self._edit()
        except AppError as error:
            self.fail(error)
            return
        self.act.setEnabled(False)
        self.notice.clear()
        request = SaveServer(edit, self._was)
        self.services.tools.change(request, lambda: self._saved(edit.name), self._refused)

    def _saved(self, name: str) -> None:
        self.accept()
        self._done(name)

    def _refused(self, error: AppError) -> None:
        self._judge()
        self.fail(error)

    def _edit(self) -> ServerEdit:
        """Return the user's input. Raises BadInput."""
        name, is_program = self.name.text().strip(), self.place.value == PROGRAM
        try:
            program, *arguments = split_command(self.command.text()) or [""]
        except ValueError as error:
            raise BadInput("tool_server_unstarted", name=name, why=str(error)) from None
        fields = {
            "name": name,
            "command": program if is_program else "",
            "arguments": arguments if is_program else [],
            "environment": _pairs(self.environment.toPlainText(), "=") if is_program else {},
            "url": "" if is_program else self.url.text().strip(),
            "headers": {} if is_program else _pairs(self.headers.toPlainText(), ":"),
        }
        try:
            return convert(fields, ServerEdit)
        except ValueError:
            raise BadInput("tool_server_name", most=MAX_NAME_CHARACTERS) from None

    def _fill(self, server: Server) -> None:
        self.name.setText(server.name)
        self.place.show_value(ADDRESS if server.url else PROGRAM)
        self.command.setText(joined_command([server.command, *server.arguments]) if server.command else "")
        self.url.setText(server.url)
        self.environment.setPlainText("\n".join(f"{name}={KEPT}" for name in server.environment))
        self.headers.setPlainText("\n".join(f"{name}: {KEPT}" for name in server.headers))

    def _show_place(self) -> None:
        is_program = self.place.value == PROGRAM
        for field in (self.command, self.environment):
            show_if(self._rows[field], is_program)
        for field in (self.url, self.headers):
            show_if(self._rows[field], not is_program)
        self._judge()
        self.fit()

    def _judge(self) -> None:
        place = self.command if self.place.value == PROGRAM else self.url
        self.act.setEnabled(bool(self.name.text().strip() and place.text().strip()))

    def _lines(self, example: str) -> QPlainTextEdit:
        field = QPlainTextEdit()
        field.setTabChangesFocus(True)
        field.setPlaceholderText(example)
        field.setFixedHeight(self.services.theme.px(SECRET_LINES * 24))
        return field


class ImportToolsDialog(Sheet):
    """A dialog that imports the tool servers of another app.

    `done(sentence)` is called with a sentence about the servers that were added.
    """

    needs_node = False

    def __init__(self, services: AppContext, done: Callable[[str], object], parent: QWidget) -> None:
        sentence = _tr(
            "Paste the JSON with mcpServers from another app, or choose its file. The servers stay off until you turn "
            "them on."
        )
        super().__init__(services, _tr("Import tool servers"), sentence, parent)
        self._done = done
        self.text = QPlainTextEdit()
        self.text.setTabChangesFocus(True)
        self.text.setAccessibleName(_tr("JSON with mcpServers"))
        self.text.setPlaceholderText('{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}')
        self.text.setFixedHeight(services.theme.px(IMPORT_LINES * 22))
        self.act = button(_tr("Import"), self.import_, "primary")
        self.act.setEnabled(False)
        self.text.textChanged.connect(lambda: self.act.setEnabled(bool(self.text.toPlainText().strip())))
        self.add(self.text, Flow(button(_tr("Choose a file…"), self._choose)))
        self.offer(_tr("Cancel"), self.act)

    def import_(self) -> None:
        """Import the servers in the text."""
        self.notice.clear()
        self.services.tools.ask(ImportServers(self.text.toPlainText()), Imported, self._imported, self.fail)

    def _imported(self, imported: Imported) -> None:
        refused = [said(error_of({"kind": error.kind, "code": error.code, "facts": error.facts}))
                   for error in imported.refused.values()]  # fmt: skip
        if refused and not imported.names:
            self.notice.say(" ".join(refused), "error", closable=False)
            self.fit()
            return
        names = ", ".join(imported.names)
        words = _tr("Added, but not turned on yet: {names}.").format(names=names)
        self.accept()
        self.services.tools.refresh()
        self._done(" ".join([words, *refused]))

    def _choose(self) -> None:
        folder = LastFolder(self.services.preferences, "tools")
        path, _ = QFileDialog.getOpenFileName(
            self, _tr("Choose a file"), folder.folder(), _tr("JSON files (*.json);;All files (*)")
        )
        if not path:
            return
        try:
            with Path(path).open("rb") as file:
                self.text.setPlainText(file.read(MAX_IMPORT_BYTES).decode("utf-8-sig"))
        except (OSError, UnicodeDecodeError) as error:
            self.fail(BadInput("tool_import_unreadable", why=str(error)))


class RemoveToolServerDialog(Sheet):
    """A dialog that removes a tool server after confirmation."""

    needs_node = False

    def __init__(self, services: AppContext, name: str, done: Callable[[str], object], parent: QWidget) -> None:
        sentence = _tr("Its settings and secrets will be deleted. Results in your chats are kept.")
        super().__init__(services, _tr("Remove {name}?").format(name=name), sentence, parent)
        self._name, self._done = name, done
        self.act = button(_tr("Remove"), self.remove, "danger")
        self.offer(_tr("Cancel"), self.act)

    def remove(self) -> None:
        """Remove the server."""
        self.act.setEnabled(False)
        self.services.tools.change(RemoveServer(self._name), self._removed, self._refused)

    def _removed(self) -> None:
        self.accept()
        self._done(self._name)

    def _refused(self, error: AppError) -> None:
        self.act.setEnabled(True)
        self.fail(error)


def split_command(text: str, *, windows: bool = os.name == "nt") -> list[str]:
    """Split a command line by the rules of this operating system.

    Raises ValueError if a quotation is not closed.
    """
    if not windows:
        return shlex.split(text)
    parts = shlex.split(text, posix=False)  # a backslash is part of a path
    return [part[1:-1] if len(part) > 1 and part[0] == part[-1] == '"' else part for part in parts]


def joined_command(parts: list[str], *, windows: bool = os.name == "nt") -> str:
    """Join the parts of a command into a command line that `split_command` can split again."""
    return subprocess.list2cmdline(parts) if windows else shlex.join(parts)


def _pairs(text: str, separator: str) -> dict[str, str | None]:
    """Parse the names and values in these lines. A value of None stands for a value that is already stored."""
    pairs: dict[str, str | None] = {}
    for line in text.splitlines():
        if line.strip():
            name, _, value = line.partition(separator)
            pairs[name.strip()] = None if value.strip() == KEPT else value.strip()
    return pairs


def _tr(text: str) -> str:
    return QCoreApplication.translate("ToolServers", text)
