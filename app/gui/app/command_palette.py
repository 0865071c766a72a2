"""The command palette (Ctrl+K), which opens a page, settings section, chat or model by part of its name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication, QEvent, QObject, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QLineEdit, QListWidget, QListWidgetItem, QWidget

from app.gui.app import sidebar
from app.gui.app.app_context import AppContext
from app.gui.app.navigation import CHAT, SETTINGS, chat_address
from app.gui.look import sizes
from app.gui.look.accessibility import announce
from app.gui.look.sentences import model_name
from app.gui.look.theme import Theme
from app.gui.widgets.dialog import CompactDialog

MOST_SHOWN = 12
ROW_HEIGHT = 36
LIST_KEYS = (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown)


@dataclass(frozen=True, slots=True)
class Command:
    """An entry of the palette. `kind` is its category, such as page or chat."""

    text: str
    kind: str
    run: Callable[[], object]


def commands_of(services: AppContext, go: Callable[[str], object]) -> list[Command]:
    """Return a command for each page, settings section, available model and chat. `go` opens an address."""
    from app.gui.settings import settings_page  # imports all settings, which are not needed before

    def command(text: str, kind: str, address: str) -> Command:
        return Command(text, kind, lambda: go(address))

    now, history = services.pool.now, services.lock.history
    loaded = [model.model for model in now.models]
    elsewhere = [model.reference for model in now.shared if model.ready]
    return [
        *(command(entry.title, _tr("page"), entry.name) for entry in sidebar.ENTRIES),
        *(command(entry.title, _tr("settings"), f"{SETTINGS}/{entry.name}") for entry in settings_page.ENTRIES),
        *(command(model_name(name), _tr("model"), f"{CHAT}/{name}") for name in [*loaded, *elsewhere]),
        *(command(chat.title or _tr("New chat"), _tr("chat"), chat_address(chat.id)) for chat in history.headings()),
    ]


def _tr(text: str) -> str:
    return QCoreApplication.translate("CommandPalette", text)


def matching(commands: Sequence[Command], typed: str) -> list[Command]:
    """Return the commands that contain every typed word. Those that begin with the typed text come first."""
    words = typed.casefold().split()
    there = [each for each in commands if all(word in f"{each.text} {each.kind}".casefold() for word in words)]
    begun = typed.strip().casefold()
    return sorted(there, key=lambda each: not each.text.casefold().startswith(begun))


class _ArrowKeys(QObject):
    """An event filter that lets the arrow keys move a list's selection while the text field has the focus."""

    def __init__(self, field: QLineEdit, rows: QListWidget) -> None:
        super().__init__(field)
        self._field, self._rows = field, rows
        field.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802  Qt's name
        is_pressed = isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress
        if isinstance(event, QKeyEvent) and is_pressed and event.key() in LIST_KEYS:
            self._rows.keyPressEvent(event)
            announce(self._field, " ".join(item.text() for item in self._rows.selectedItems()))
            return True
        return super().eventFilter(watched, event)


class CommandPalette(CompactDialog):
    """A text field and a list of the matching commands. The Return key runs the selected command."""

    def __init__(self, theme: Theme, commands: Sequence[Command], parent: QWidget) -> None:
        super().__init__(theme, self.tr("Go to"), "", parent)
        self.heading.hide()
        self._commands, self._shown = commands, list[Command]()
        self.field = QLineEdit()
        self.field.setPlaceholderText(self.tr("Page, chat or model"))
        self.field.setAccessibleName(self.tr("Page, chat or model"))
        self.field.setClearButtonEnabled(True)
        self.list = QListWidget()
        self.list.setAccessibleName(self.tr("Matches"))
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # the field keeps the focus and moves the selection
        self.list.setMinimumHeight(theme.px(ROW_HEIGHT) * 6 + 2 * sizes.S)
        self.add(self.field, self.list)
        self.field.textChanged.connect(self._filter)
        self.field.returnPressed.connect(self._run)
        _ArrowKeys(self.field, self.list)
        self.list.itemClicked.connect(lambda _: self._run())
        self.offer(self.tr("Close")).setAutoDefault(False)
        self._filter("")
        self.field.setFocus()

    def _filter(self, typed: str) -> None:
        self._shown = matching(self._commands, typed)[:MOST_SHOWN]
        self.list.clear()
        for command in self._shown:
            item = QListWidgetItem(f"{command.text}  ·  {command.kind}")
            item.setData(Qt.ItemDataRole.AccessibleTextRole, f"{command.text}, {command.kind}")
            self.list.addItem(item)
        self.list.setCurrentRow(0)
        if typed:
            announce(self.field, self.tr("%n match(es)", "", len(self._shown)))

    def _run(self) -> None:
        row = self.list.currentRow()
        if 0 <= row < len(self._shown):
            command = self._shown[row]
            self.accept()
            command.run()
