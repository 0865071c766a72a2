"""The view of a text that a base model continues in place, with buttons to continue, stop and undo."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QColor, QKeySequence, QShortcut, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QPlainTextEdit, QWidget

from app.core import chat as tree
from app.core.chat import Chat, ChatId
from app.gui.chat.answer import Ending
from app.gui.chat.message.answer_stats import caption
from app.gui.chat.session import RunningAnswer, Session
from app.gui.look import sizes
from app.gui.look.accessibility import announce
from app.gui.look.sentences import model_name, said
from app.gui.look.theme import Theme
from app.gui.widgets.buttons import button
from app.gui.widgets.labels import ElidedLabel, bound_width, paragraph
from app.gui.widgets.layouts import column, layout_widget, row

SAVE_MS = 500  # how long the text rests before it is saved
CONTINUE_KEYS = ("Ctrl+Return", "Ctrl+Enter")


class CompletionView(QWidget):
    """A text to continue. While the model writes, the text cannot be edited. What it wrote is one step for Undo.

    `chat_of` returns the current state of a chat. `changed` is emitted with the ID of a chat whose text was typed.
    """

    changed = Signal(str)

    def __init__(self, theme: Theme, session: Session, chat_of: Callable[[ChatId], Chat | None]) -> None:
        super().__init__()
        self._theme, self._session, self._chat_of = theme, session, chat_of
        self._chat: Chat | None = None
        self._written = 0  # characters of the text in progress that are in the field
        self._has_step = False  # whether what the model writes now has begun a step for Undo
        self.about = paragraph("", "muted")
        self.field = QPlainTextEdit()
        self.field.setAccessibleName(self.tr("Text to continue"))
        self.field.setPlaceholderText(self.tr("Write the beginning of a text, for example: Once upon a time"))
        self.field.setTabChangesFocus(True)
        self.go_on = button(self.tr("Continue"), self.continue_text, "primary")
        self.stop = button(self.tr("Stop"), self._stop)
        self.undo = button(self.tr("Undo"), self.field.undo)
        self.go_on.setToolTip(self.tr("Ctrl+Enter"))
        self.state = ElidedLabel("", "caption")
        buttons = row(self.go_on, self.stop, self.undo, self.state, gap=sizes.S)
        buttons.setStretch(3, 1)
        parts = column(self.about, self.field, buttons, gap=sizes.M)
        parts.setStretchFactor(self.field, 1)
        inner = layout_widget(parts)
        bound_width(theme, inner, sizes.CHAT_WIDTH)
        box = row(None, gap=0)
        box.addWidget(inner, 1000)
        box.addStretch(1)
        box.setContentsMargins(sizes.XL, 0, sizes.XL, sizes.L)
        self.setLayout(box)
        self._save_soon = QTimer(self)
        self._save_soon.setSingleShot(True)
        self._save_soon.setInterval(SAVE_MS)
        self._save_soon.timeout.connect(self.save)
        self.field.textChanged.connect(self._edited)
        self.field.undoAvailable.connect(lambda _: self._show_buttons())
        for keys in CONTINUE_KEYS:
            shortcut = QShortcut(QKeySequence(keys), self, self.continue_text)
            shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        session.grew.connect(self._grew)
        session.progressed.connect(self._progressed)
        session.ended.connect(self._ended)
        self._show_buttons()

    @property
    def text(self) -> str:
        return self.field.toPlainText()

    def open(self, chat: Chat, model: str) -> None:
        """Show a chat's text, and the name of the model that continues it. A text already shown keeps its Undo."""
        words = self.tr("{model} is a base model. It doesn't chat: it continues the text that you begin.")
        self.about.setText(words.format(model=model_name(model)))
        if self._chat is not None and self._chat.id == chat.id:
            self._chat = chat
            self._show_buttons()
            return
        self.save()
        self._chat = chat
        message = tree.completed_text(chat)
        blocked = self.field.blockSignals(True)
        self.field.setPlainText(message.text if message is not None else "")
        self.field.moveCursor(QTextCursor.MoveOperation.End)
        self.field.blockSignals(blocked)
        self._written, self._has_step = len(self.text), False
        self.state.say("")
        if self._running is not None:
            self._write(self._running.text)
        self._show_buttons()

    def close_text(self) -> None:
        """Save the text, because another chat is shown."""
        self.save()
        self._chat = None

    def continue_text(self) -> None:
        """Let the model continue the text at its end."""
        chat = self._current()
        if chat is None or self._running is not None or not self.text.strip():
            return
        self._save_soon.stop()
        self._written, self._has_step = len(self.text), False
        self.state.say("")
        self._session.complete(chat, self.text)
        self._show_buttons()

    def save(self) -> None:
        """Save what was typed."""
        self._save_soon.stop()
        chat = self._current()
        if chat is None or self._running is not None:
            return
        message = tree.completed_text(chat)
        if self.text != (message.text if message is not None else ""):
            self._session.keep_text(chat, self.text)
            self.changed.emit(chat.id)

    @property
    def _running(self) -> RunningAnswer | None:
        return self._session.running.get(self._chat.id) if self._chat is not None else None

    def _current(self) -> Chat | None:
        return (self._chat_of(self._chat.id) or self._chat) if self._chat is not None else None

    def _edited(self) -> None:
        if self._running is None:
            self._save_soon.start()
        self._show_buttons()

    def _stop(self) -> None:
        if self._chat is not None:
            self._session.stop(self._chat.id)

    def _is_shown(self, chat: str) -> bool:
        return self._chat is not None and self._chat.id == chat

    def _grew(self, chat: str) -> None:
        if self._is_shown(chat) and (running := self._running) is not None:
            self._write(running.text)
            self._show_state("")

    def _progressed(self, chat: str) -> None:
        if self._is_shown(chat) and (running := self._running) is not None:
            waits = self.tr("Loading the model…") if running.answer.progress is not None else ""
            self._show_state(running.answer.trouble or waits)

    def _ended(self, chat: str, ending: Ending) -> None:
        if not self._is_shown(chat):
            return
        message = tree.completed_text(now) if (now := self._current()) is not None else None
        if message is not None:
            self._write(message.text)
            self.field.moveCursor(QTextCursor.MoveOperation.End)
        self.state.say(said(ending.error) if ending.error is not None else caption(ending.stats))
        announce(self, self.state.whole())
        self._show_buttons()
        if self.stop.hasFocus():
            self.field.setFocus()

    def _show_state(self, words: str) -> None:
        self.state.say(words or self.tr("Writing…"))

    def _write(self, text: str) -> None:
        """Append what is new in a growing text, as one step for Undo."""
        new = text[self._written :]
        if not new:
            return
        bar = self.field.verticalScrollBar()
        follows = bar.value() >= bar.maximum() - 1
        cursor = QTextCursor(self.field.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        begin = cursor.joinPreviousEditBlock if self._has_step else cursor.beginEditBlock
        begin()
        cursor.insertText(new, self._format())
        cursor.endEditBlock()
        self._written, self._has_step = len(text), True
        if follows:
            bar.setValue(bar.maximum())

    def _format(self) -> QTextCharFormat:
        """Return the format of what the model wrote, which differs from what was typed."""
        written = QTextCharFormat()
        written.setForeground(QColor(self._theme.colors.accent))
        return written

    def _show_buttons(self) -> None:
        writes = self._running is not None
        self.field.setReadOnly(writes)
        self.go_on.setVisible(not writes)
        self.go_on.setEnabled(bool(self.text.strip()))
        self.stop.setVisible(writes)
        self.undo.setEnabled(not writes and self.field.document().isUndoAvailable())
