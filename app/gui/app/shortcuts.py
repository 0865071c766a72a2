"""The keyboard shortcuts of the window: the list of them, its dialog, and the keys that change the text size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from PySide6.QtCore import QT_TRANSLATE_NOOP, QCoreApplication, Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QGridLayout, QWidget

from app.gui.app.app_context import AppContext
from app.gui.app.preferences import STEP_PERCENT, TEXT_SCALE
from app.gui.look.accessibility import announce
from app.gui.look.formats import percent_sign
from app.gui.look.theme import MAX_SCALE, MIN_SCALE
from app.gui.widgets.dialog import CompactDialog
from app.gui.widgets.labels import label
from app.gui.widgets.layouts import layout_widget

Key = QKeySequence.StandardKey


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of the list, with an action and its keys. Standard keys differ between systems."""

    words: object  # translated when shown
    keys: tuple[Key | str, ...]

    @property
    def text(self) -> str:
        return QCoreApplication.translate("Shortcuts", str(self.words))

    @property
    def key_text(self) -> str:
        return "  ".join(filter(None, (_text(key) for key in self.keys)))


SECTIONS: tuple[tuple[object, tuple[Entry, ...]], ...] = (
    (
        QT_TRANSLATE_NOOP("Shortcuts", "Everywhere"),
        (
            Entry(QT_TRANSLATE_NOOP("Shortcuts", "Go to a page, a chat or a model"), ("Ctrl+K",)),
            Entry(QT_TRANSLATE_NOOP("Shortcuts", "Show this list"), ("Ctrl+/",)),
            Entry(QT_TRANSLATE_NOOP("Shortcuts", "Larger text"), (Key.ZoomIn,)),
            Entry(QT_TRANSLATE_NOOP("Shortcuts", "Smaller text"), (Key.ZoomOut,)),
            Entry(QT_TRANSLATE_NOOP("Shortcuts", "Text at 100%"), ("Ctrl+0",)),
            Entry(QT_TRANSLATE_NOOP("Shortcuts", "Find other computers"), ("F1",)),
            Entry(QT_TRANSLATE_NOOP("Shortcuts", "Close the window"), (Key.Close,)),
            Entry(QT_TRANSLATE_NOOP("Shortcuts", "Quit"), (Key.Quit,)),
        ),
    ),
    (
        QT_TRANSLATE_NOOP("Shortcuts", "Chat"),
        (
            Entry(QT_TRANSLATE_NOOP("Shortcuts", "New chat"), (Key.New,)),
            Entry(QT_TRANSLATE_NOOP("Shortcuts", "Search all chats"), (Key.Find,)),
            Entry(QT_TRANSLATE_NOOP("Shortcuts", "Send the message"), ("Return",)),
            Entry(QT_TRANSLATE_NOOP("Shortcuts", "Start a new line"), ("Shift+Return",)),
            Entry(QT_TRANSLATE_NOOP("Shortcuts", "Stop the answer"), ("Esc",)),
            Entry(QT_TRANSLATE_NOOP("Shortcuts", "Rename the selected chat"), ("F2",)),
            Entry(QT_TRANSLATE_NOOP("Shortcuts", "Delete the selected chat"), (Key.Delete,)),
        ),
    ),
    (
        QT_TRANSLATE_NOOP("Shortcuts", "Models"),
        (
            Entry(QT_TRANSLATE_NOOP("Shortcuts", "Search models"), (Key.Find,)),
            Entry(QT_TRANSLATE_NOOP("Shortcuts", "Remove the selected model"), (Key.Delete,)),
        ),
    ),
    (
        QT_TRANSLATE_NOOP("Shortcuts", "This computer"),
        (Entry(QT_TRANSLATE_NOOP("Shortcuts", "Undo the last change"), (Key.Undo,)),),
    ),
)


def _text(key: Key | str) -> str:
    bound = QKeySequence.keyBindings(key) if isinstance(key, Key) else [QKeySequence(key)]
    return bound[0].toString(QKeySequence.SequenceFormat.NativeText) if bound else ""


class ShortcutsDialog(CompactDialog):
    """The dialog that lists all keyboard shortcuts."""

    def __init__(self, services: AppContext, parent: QWidget) -> None:
        super().__init__(services.theme, self.tr("Keyboard shortcuts"), "", parent)
        self.heading.hide()  # the title bar says the same
        for title, entries in SECTIONS:
            grid = QGridLayout()
            grid.setColumnStretch(0, 1)
            grid.addWidget(label(QCoreApplication.translate("Shortcuts", str(title)), "section"), 0, 0, 1, 2)
            for number, entry in enumerate((entry for entry in entries if entry.key_text), 1):
                words, keys = label(entry.text), label(entry.key_text, "muted")
                words.setAccessibleName(f"{entry.text}: {entry.key_text}")
                grid.addWidget(words, number, 0)
                grid.addWidget(keys, number, 1, Qt.AlignmentFlag.AlignRight)
            self.add(layout_widget(grid))
        self.offer(self.tr("Close"))


class TextSizeKeys:
    """The keys that enlarge and reduce the text of a window and restore its default size."""

    def __init__(self, services: AppContext, window: QWidget) -> None:
        self._services, self._window = services, window
        for sequences, steps in ((_keys(Key.ZoomIn, "Ctrl+="), 1), (_keys(Key.ZoomOut), -1), (_keys("Ctrl+0"), 0)):
            for sequence in sequences:
                QShortcut(sequence, window, self._changing(steps))

    def _changing(self, steps: int) -> Callable[[], None]:
        return lambda: self.change(steps)

    def change(self, steps: int) -> None:
        """Change the text size by this number of steps. 0 restores the default size."""
        theme = self._services.theme
        percent = round(100 * theme.scale / STEP_PERCENT) * STEP_PERCENT + steps * STEP_PERCENT if steps else 100
        scale = min(max(percent / 100, MIN_SCALE), MAX_SCALE)
        if scale != theme.scale:
            self._services.preferences.keep(TEXT_SCALE, scale)
            theme.choose(theme.scheme, scale)
        announce(self._window, f"{round(100 * scale)}{percent_sign()}")


def _keys(*keys: Key | str) -> Iterator[QKeySequence]:
    seen = dict[str, QKeySequence]()
    for key in keys:
        for sequence in QKeySequence.keyBindings(key) if isinstance(key, Key) else [QKeySequence(key)]:
            seen.setdefault(sequence.toString(), sequence)
    yield from seen.values()
