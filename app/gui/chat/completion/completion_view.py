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
LINE_BREAKS = {0x2028: "\n", 0x2029: "\n"}  # what the field has in place of line breaks


class CompletionView(QWidget):
    """The view of a text that a base model continues. The text cannot be edited while the model is writing.

    A single Undo removes everything that the model wrote in one go. `chat_of` returns the current state of a chat.
    `changed` is emitted with the ID of a chat whose text the user has edited.
    """

    changed = Signal(str)

    def __init__(self, theme: Theme, session: Session, chat_of: Callable[[ChatId], Chat | None]) -> None:
        super().__init__()
        self._theme, self._session, self._chat_of = theme, session, chat_of
        self._chat: Chat | None = None
        self._saved = ""  # the text of the chat's message, which the field shows while it is not modified
        self._shown_run: RunningAnswer | None = None  # the text in progress that the field shows
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
        """The text in the field. Unless the user has edited it, it is exactly the chat's message.

        The field itself changes line breaks, so its content is used only once the user has edited it.
        """
        document = self.field.document()
        if not document.isModified():
            return self._saved
        # The plain text would have spaces in place of no-break spaces.
        return document.toRawText().translate(LINE_BREAKS)

    def open(self, chat: Chat, model: str) -> None:
        """Show a chat's text and the name of the model that continues it.

        If the text is already shown, it keeps its Undo history.
        """
        words = self.tr("{model} is a base model. It doesn't chat: it continues the text that you begin.")
        self.about.setText(words.format(model=model_name(model)))
        if self._chat is not None and self._chat.id == chat.id:
            self._chat = chat
        else:
            self.save()
            self._chat, self._shown_run = chat, None
            message = tree.completed_text(chat)
            self._fill(message.text if message is not None else "")
            self.state.say("")
        self._show_run()
        self._show_buttons()

    def close_text(self) -> None:
        """Save the text, because another chat will be shown."""
        self.save()
        self._chat = None

    def continue_text(self) -> None:
        """Let the model continue the text at its end."""
        chat = self._current()
        text = self.text
        if chat is None or self._running is not None or not text.strip():
            return
        self._save_soon.stop()
        self._note_saved(text)
        self.state.say("")
        self._session.complete(chat, text)
        self._show_run()
        self._show_buttons()

    def save(self) -> None:
        """Save the typed text."""
        self._save_soon.stop()
        chat = self._current()
        if chat is None or self._running is not None or not self.field.document().isModified():
            return
        text, message = self.text, tree.completed_text(chat)
        self._note_saved(text)
        if text != (message.text if message is not None else ""):
            self._session.keep_text(chat, text)
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
        if self._is_shown(chat) and self._running is not None:
            self._show_run()
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

    def _fill(self, text: str) -> None:
        """Show a saved text with an empty Undo history."""
        blocked = self.field.blockSignals(True)
        self.field.setPlainText(text)
        self.field.moveCursor(QTextCursor.MoveOperation.End)
        self.field.blockSignals(blocked)
        self._note_saved(text)

    def _note_saved(self, text: str) -> None:
        """Record that the field shows this text, which is the text of the chat's message."""
        self._saved = text
        self.field.document().setModified(False)

    def _show_run(self) -> None:
        """Show the text in progress. It may have been started by a notice, or by a window that was killed."""
        running = self._running
        if running is None:
            return
        if running is not self._shown_run:
            self._shown_run, self._has_step = running, False
            if self.text != running.before:
                self._fill(running.before)
        self._write(running.text)

    def _write(self, text: str) -> None:
        """Append the new part of a growing text. Undo removes all parts of a run together."""
        new = text[len(self._saved) :]
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
        self._note_saved(text)
        self._has_step = True
        if follows:
            bar.setValue(bar.maximum())

    def _format(self) -> QTextCharFormat:
        """Return the character format of text that the model wrote, to distinguish it from the user's text."""
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
