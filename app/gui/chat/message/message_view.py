"""The widget of a message, with its author, text, actions and statistics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial

from PySide6.QtCore import QEvent, QRect, QSize, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QEnterEvent, QFocusEvent, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import (
    QApplication,
    QBoxLayout,
    QFrame,
    QHBoxLayout,
    QLabel,
    QMenu,
    QPlainTextEdit,
    QPushButton,
    QSizePolicy,
    QWidget,
)

from app.core.chat import (
    ATTACHMENTS,
    EDITED,
    ENDED,
    FULL,
    MODEL,
    NOTES,
    THOUGHT,
    THOUGHT_S,
    UNFINISHED,
    Message,
    MessageId,
    Role,
)
from app.core.tools.chat_calls import rounds_of
from app.gui.chat.composer import file_words
from app.gui.chat.message import answer_stats
from app.gui.chat.message.answer_stats import AnswerStats
from app.gui.chat.message.body import Body, MessageServices
from app.gui.chat.message.call_card import ToolSteps
from app.gui.chat.message.picture_view import PictureRow
from app.gui.chat.reading.attachment_reader import is_picture
from app.gui.look import formats, sizes
from app.gui.look.drawing import icon
from app.gui.look.sentences import model_name, said
from app.gui.look.theme import Theme, set_role
from app.gui.widgets.buttons import IconButton, button
from app.gui.widgets.fields import Escape
from app.gui.widgets.flow import Flow, FlowRow
from app.gui.widgets.labels import Chip, label, tooltip
from app.gui.widgets.layouts import clear_layout, column, layout_widget, row


class WrappedLabel(QLabel):
    """A label that wraps its text and reports the height needed at its current width.

    It hides its height-for-width from Qt. Otherwise, a scrolled column would reserve the height that its labels need
    at their minimum width.
    """

    def __init__(self, text: str, role: str) -> None:
        super().__init__()
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        set_role(self, role)
        self.setWordWrap(True)
        self.setText(text)
        self.setAccessibleName(text)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def hasHeightForWidth(self) -> bool:  # noqa: N802  Qt's name
        return False

    def sizeHint(self) -> QSize:  # noqa: N802  Qt's name
        return QSize(0, self.heightForWidth(self.width()))

    def minimumSizeHint(self) -> QSize:  # noqa: N802  Qt's name
        return self.sizeHint()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802  Qt's name
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.updateGeometry()


class ThoughtView(QWidget):
    """The thought before an answer, collapsed under a line with its duration. It is not laid out until expanded."""

    def __init__(self, services: MessageServices, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._services = services
        self._text, self._growing = "", False
        self.body: Body | None = None
        self.fold = button("", self.toggle, "fold")
        self._frame = QFrame()
        set_role(self._frame, "thought")
        self._inside = column(gap=0)
        self._inside.setContentsMargins(sizes.M, sizes.XS, 0, sizes.XS)
        self._frame.setLayout(self._inside)
        self._frame.hide()
        box = column(row(self.fold, None, gap=0), self._frame, gap=sizes.XS)
        box.setContentsMargins(0, 0, 0, sizes.XS)  # separates the thought from the answer
        self.setLayout(box)
        self.hide()

    @property
    def is_open(self) -> bool:
        return not self._frame.isHidden()

    def show_thought(self, text: str, seconds: float | None, n_tokens: int | None, *, growing: bool) -> None:
        """Show a thought.

        growing: whether it is still incomplete.
        """
        self._text, self._growing = text, growing
        self.setVisible(bool(text))
        if growing and n_tokens:
            words = self.tr("Thinking… %n token(s)", "", n_tokens)
        elif growing:
            words = self.tr("Thinking…")
        elif seconds:
            words = self.tr("Thought for {time}").format(time=formats.whole_seconds(max(1, seconds)))
        else:
            words = self.tr("Thought")
        self.fold.setText(words)
        self._update()

    def toggle(self) -> None:
        """Expand or collapse the thought."""
        self._frame.setVisible(not self.is_open)
        self._update()

    def restyle(self) -> None:
        """Apply the new theme."""
        self._paint()
        if self.body is not None:
            self.body.restyle()

    def _update(self) -> None:
        state = self.tr("opened") if self.is_open else self.tr("folded")
        self.fold.setAccessibleName(f"{self.fold.text()}, {state}")
        self._paint()
        if self.is_open:
            if self.body is None:
                self.body = Body(self._services, is_markdown=True)
                self._inside.addWidget(self.body)
            self.body.show_text(self._text, growing=self._growing)

    def _paint(self) -> None:
        picture = "down" if self.is_open else "right"
        self.fold.setIcon(icon(picture, self._services.theme.colors.muted))


MAX_LINES, UNLIMITED_HEIGHT = 12, 1 << 20


class Editor(QWidget):
    """An in-place editor for a message.

    `done(text)` is called when the user accepts the text, and `gone()` if the user cancels or the text is unchanged.
    If
    `same_too` is set, unchanged text can be accepted as well.
    """

    def __init__(
        self,
        theme: Theme,
        text: str,
        accept: str,
        done: Callable[[str], None],
        gone: Callable[[], None],
        *,
        same_too: bool = False,
    ) -> None:
        super().__init__()
        self._before, self._done, self._gone = None if same_too else text, done, gone
        self.field = QPlainTextEdit(text)
        self.field.setAccessibleName(self.tr("Message text"))
        self.field.setTabChangesFocus(True)
        self._edge = 2 * theme.px(sizes.M)
        self.accept = button(accept, self._accept)
        cancel = button(self.tr("Cancel"), gone)
        keys = self.tr("Ctrl+Enter: {accept}. Esc: {cancel}.")
        self.keys = WrappedLabel(keys.format(accept=accept, cancel=cancel.text()), "caption")
        self._flow = Flow(cancel, self.accept, right_from=0)
        self._below = layout_widget(self._flow)
        self.setLayout(column(self.field, self.keys, self._below, gap=sizes.S))
        self.field.textChanged.connect(self._fit)
        Escape(self.field, gone)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802  Qt's name
        """Adjust the height to the text, up to a limit, and to the buttons, which may wrap."""
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        measure, wide = self.field.fontMetrics(), self.width() - self._edge
        wraps = Qt.TextFlag.TextWordWrap.value
        written = measure.boundingRect(QRect(0, 0, wide, UNLIMITED_HEIGHT), wraps, self.field.toPlainText()).height()
        n_lines = min(MAX_LINES, max(2, written // measure.lineSpacing() + 1))
        self.field.setFixedHeight(n_lines * measure.lineSpacing() + self._edge)
        self._below.setFixedHeight(self._flow.heightForWidth(self.width()))

    def begin(self) -> None:
        self.field.setFocus()
        self.field.moveCursor(self.field.textCursor().MoveOperation.End)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802  Qt's name
        enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if enter and event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self._accept()
        else:
            super().keyPressEvent(event)

    def _accept(self) -> None:
        text = self.field.toPlainText()
        if text.strip() and text != self._before:
            self._done(text)
        else:
            self._gone()


CONTINUABLE = ("length", FULL, "stopped", "failed", UNFINISHED)  # endings after which an answer can be continued
NAME_CHARACTERS = 80


class MessageAction(StrEnum):
    """The actions that a message offers."""

    COPY = "copy"
    COPY_MARKDOWN = "copy_markdown"
    SELECT = "select"
    REGENERATE = "regenerate"
    CONTINUE = "continue"
    FORK = "fork"
    SWITCH = "switch"  # emitted with the ID of the version to switch to
    EDIT = "edit"  # emitted with the new text
    CALL = "call"  # emitted with the decision about a tool call and the call's ID, separated by a space


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """A message prepared for display. `state` describes an answer in progress, and is None for a complete one."""

    message: Message
    versions: tuple[MessageId, ...]
    is_last: bool
    is_busy: bool = False  # an answer is in progress in this chat, so no other can be started
    state: str | None = None
    is_sent: bool = True  # part of later prompts, unlike an unanswered question
    is_thinking: bool = False  # the thought is still arriving
    thought_tokens: int | None = None  # number of tokens in the thought so far
    decides: bool = False  # whether the user can decide about its tool calls now


class MessageView(QFrame):
    """The widget of a message.

    `action_requested(action, message ID, text or version)` is emitted when the user selects an action.
    """

    action_requested = Signal(object, str, str)
    editing = Signal()  # the user began to edit the text, which should be scrolled into view
    buttons_changed = Signal()  # the header's buttons were recreated

    def __init__(self, services: MessageServices, shown: ShownMessage, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._services, self._shown = services, shown
        self._is_answer = shown.message.role is Role.ASSISTANT
        set_role(self, "answer" if self._is_answer else "question")
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        self._who = label("", "who")
        self._tools = QWidget()
        self._tools_row: QHBoxLayout | None = None
        self._turn, self._versions = QWidget(), row(gap=0)
        self._turn.setLayout(self._versions)
        self._tools.hide()
        self._head = FlowRow(Flow(self._who, self._turn, self._tools, right_from=2))
        self._who.setMinimumHeight(services.theme.px(sizes.XXL))
        self.body = Body(services, is_markdown=self._is_answer)
        self.thought = ThoughtView(services)
        self._pictures = PictureRow(services.theme, services.pictures, services.open_picture)
        self._files = row(gap=sizes.S)
        self._foot = column(gap=sizes.XS)
        self._editor: Editor | None = None
        self._more: QPushButton | None = None  # the Continue button of an answer that ended early
        self.steps: ToolSteps | None = None
        box = column(self._head, self.thought, self.body, self._pictures, self._files, self._foot, gap=sizes.XS)
        box.setContentsMargins(sizes.M, sizes.XS, sizes.M, sizes.M)
        self.setLayout(box)
        self.show_message(shown, first=True)

    @property
    def message(self) -> Message:
        return self._shown.message

    @property
    def is_editing(self) -> bool:
        return self._editor is not None

    def show_message(self, shown: ShownMessage, *, first: bool = False) -> None:
        """Show the same message with a new state or text."""
        before, self._shown = self._shown, shown
        growing = shown.state is not None
        self._update_steps(first=first)
        if first or growing or shown.message.text != before.message.text or before.state:
            self.body.show_text(shown.message.text[self._begin :], growing=growing)
        if self._is_answer:
            self._update_thought()
        if self._editor is not None:
            self._editor.accept.setEnabled(not shown.is_busy)
        if not first and replace(before, is_busy=shown.is_busy) == shown:
            # only `is_busy` changed, as for every message of the chat whenever an answer begins or ends
            if before != shown:
                self._update_buttons()
        else:
            self._update()

    def grow(self, text: str) -> None:
        """Show more text of the answer in progress."""
        self.body.show_text(text[self._begin :], growing=True)

    def grow_thought(self, text: str, seconds: float, n_tokens: int, *, growing: bool) -> None:
        """Show more of the thought of the answer in progress.

        growing: whether it is still incomplete.
        """
        if text:
            self.thought.show_thought(text, seconds, n_tokens, growing=growing)

    def show_state(self, state: str) -> None:
        """Show the state of an answer in progress."""
        if self._state.text() != state:
            self._state.setText(state)
            self._state.setVisible(bool(state))

    @property
    def _begin(self) -> int:
        """Return the position at which the text after the last tool call begins."""
        return self.steps.end if self.steps is not None else 0

    def _update_steps(self, *, first: bool) -> None:
        """Show the answer's tool calls, each with the text before it."""
        rounds = rounds_of(self.message.details) if self._is_answer else ()
        if self.steps is None and rounds:
            self.steps = ToolSteps(self._services, partial(self._ask, MessageAction.CALL))
            box = self.layout()
            assert isinstance(box, QBoxLayout)
            box.insertWidget(box.indexOf(self.body), self.steps)
        if self.steps is not None:
            before = self.steps.end
            self.steps.show_rounds(self.message.text, rounds, decides=self._shown.decides)
            if self.steps.end != before and not first:
                self.body.show_text("")  # what it showed is now before a call

    def _update_thought(self) -> None:
        details, shown = self.message.details, self._shown
        self.thought.show_thought(
            str(details.get(THOUGHT) or ""),
            float(details.get(THOUGHT_S) or 0),
            shown.thought_tokens,
            growing=shown.is_thinking,
        )

    def restyle(self) -> None:
        self.thought.restyle()
        if self.steps is not None:
            self.steps.restyle()
        self._who.setMinimumHeight(self._services.theme.px(sizes.XXL))
        self.body.restyle()

    def edit(self) -> None:
        """Edit the message in place."""
        if self._editor is None:
            accept = self.tr("Save as version") if self._is_answer else self.tr("Resend")
            self._editor = Editor(
                self._services.theme,
                self.message.text,
                accept,
                self._edited,
                self._end_edit,
                # the last question has no answer, so sending it unchanged makes sense
                same_too=self._shown.is_last and not self._is_answer,
            )
            box = self.layout()
            assert box is not None
            box.replaceWidget(self.body, self._editor)
            self.body.hide()
            self._editor.accept.setEnabled(not self._shown.is_busy)
            self._editor.begin()
            self.editing.emit()

    # Content

    def _update(self) -> None:
        message, model = self.message, self.message.details.get(MODEL)
        who = (model_name(str(model)) if model else self.tr("Answer")) if self._is_answer else self.tr("You")
        if message.details.get(EDITED):
            who = self.tr("{author} (edited)").format(author=who)
        self._who.setText(who)
        beginning = " ".join(message.text[: 2 * NAME_CHARACTERS].split())[:NAME_CHARACTERS]
        self.setAccessibleName(f"{self._who.text()}: {beginning}")
        self._update_files()
        self._update_foot()
        self._update_buttons()
        if self._shown.is_last:
            self._show_tools()

    def _update_buttons(self) -> None:
        """Update the header's buttons."""
        inside = QApplication.focusWidget()
        if inside is not None and self._head.isAncestorOf(inside):
            self.setFocus()  # the focused button is about to be removed
        self._update_versions()
        if self._more is not None:
            self._more.setEnabled(not self._shown.is_busy)
        if self._tools_row is not None:
            clear_layout(self._tools_row)
            self._fill_tools(self._tools_row)

    def _update_versions(self) -> None:
        clear_layout(self._versions)
        known = self._shown.versions
        self._turn.setVisible(len(known) > 1)
        if len(known) < 2:
            return
        place = known.index(self.message.id)
        before = self._tool("left", self.tr("Previous version"), MessageAction.SWITCH, known[place - 1])
        after = self._tool("right", self.tr("Next version"), MessageAction.SWITCH, known[(place + 1) % len(known)])
        before.setEnabled(place > 0 and not self._shown.is_busy)
        after.setEnabled(place + 1 < len(known) and not self._shown.is_busy)
        count = label(f"{place + 1}/{len(known)}", "caption")
        words = self.tr("Version {number} of {count}")
        count.setAccessibleName(words.format(number=place + 1, count=len(known)))
        for widget in (before, count, after):
            self._versions.addWidget(widget)

    def _update_files(self) -> None:
        clear_layout(self._files)
        files = self.message.details.get(ATTACHMENTS) or ()
        self._pictures.show_files([file for file in files if is_picture(file)])
        texts = [file for file in files if not is_picture(file)]
        for file in texts:
            self._files.addWidget(Chip(file_words(file)))
        if texts:
            self._files.addStretch(1)

    def _update_foot(self) -> None:
        if self._more is not None and self._more is QApplication.focusWidget():
            self.setFocus()  # the focused button is about to be removed
        self._more = None
        clear_layout(self._foot)
        details = self.message.details
        self._state = label("", "caption")
        self._foot.addWidget(self._state)
        self._state.hide()
        if self._shown.state is not None:
            self.show_state(self._shown.state)
            return
        stats = AnswerStats.stored(details)
        if text := answer_stats.caption(stats):
            self._foot.addWidget(_caption(text, answer_stats.details(stats)))
        notes = map(said, stats.notes_facts)
        for note in (*answer_stats.recoveries(stats), *notes, *(details.get(NOTES) or ())):
            self._foot.addLayout(self._note(str(note)))
        if self._is_answer and (words := self._ending(str(details.get(ENDED)))):
            self._foot.addWidget(WrappedLabel(words, "caption"))
        if not self._shown.is_sent:
            words = self.tr("This message was not answered, so the model won't see it when it answers later ones.")
            self._foot.addWidget(WrappedLabel(words, "caption"))
        if self._is_answer and details.get(ENDED) in CONTINUABLE and self._shown.is_last:
            self._more = button(self.tr("Continue"), lambda: self._ask(MessageAction.CONTINUE))
            self._more.setAccessibleName(self._more.text())
            self._foot.addLayout(row(self._more, None))

    def _ending(self, ended: str) -> str:
        return {
            "length": self.tr("Stopped at the maximum answer length."),
            FULL: self.tr("The context is full, so the answer ends here."),
            "stopped": self.tr("Stopped by you."),
            UNFINISHED: self.tr("Poolhouse closed before this answer was finished."),
        }.get(ended, "")

    def _note(self, sentence: str) -> QHBoxLayout:
        picture = label()
        side = self._services.theme.px(sizes.L)
        picture.setPixmap(icon("info", self._services.theme.colors.muted).pixmap(side, side))
        made = row(picture, gap=sizes.S)
        made.setAlignment(picture, Qt.AlignmentFlag.AlignTop)
        made.addWidget(WrappedLabel(sentence, "caption"), 1)
        return made

    # Actions

    def _show_tools(self) -> None:
        if self._tools_row is None:
            self._tools_row = row(gap=0)
            self._tools.setLayout(self._tools_row)
            self._fill_tools(self._tools_row)
        self._tools.show()

    def _hide_tools(self) -> None:
        inside = QApplication.focusWidget()
        has_focus = inside is not None and (inside is self or self.isAncestorOf(inside))
        if not self._shown.is_last and not has_focus and not self.underMouse():
            self._tools.hide()

    def _fill_tools(self, box: QHBoxLayout) -> None:
        self.buttons_changed.emit()
        if self._shown.state is not None:
            return
        free = not self._shown.is_busy
        made: list[IconButton] = []
        if not self._is_answer:
            made.append(IconButton(self._services.theme, "edit", self.tr("Edit"), self.edit))
            made[0].setEnabled(free)
        made.append(self._tool("copy", self.tr("Copy"), MessageAction.COPY))
        if self._is_answer:
            made.append(self._tool("refresh", self.tr("Regenerate"), MessageAction.REGENERATE, free=free))
        more = IconButton(self._services.theme, "more", self.tr("More"))
        more.clicked.connect(lambda: self._menu().popup(more.mapToGlobal(more.rect().bottomLeft())))
        for tool in (*made, more):
            box.addWidget(tool)

    def _tool(self, picture: str, name: str, action: MessageAction, text: str = "", *, free: bool = True) -> IconButton:
        made = IconButton(self._services.theme, picture, name, lambda: self._ask(action, text))
        made.setEnabled(free)
        return made

    def _menu(self) -> QMenu:
        """Return the menu of all actions, used both as the More menu and as the context menu."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        free = not self._shown.is_busy
        entries: list[tuple[str, Callable[[], object], bool]] = [
            (self.tr("Copy"), lambda: self._ask(MessageAction.COPY), True),
            (self.tr("Copy as Markdown"), lambda: self._ask(MessageAction.COPY_MARKDOWN), True),
            (self.tr("Select as text…"), lambda: self._ask(MessageAction.SELECT), True),
            (self.tr("Edit"), self.edit, free),
            (self.tr("Branch from here"), lambda: self._ask(MessageAction.FORK), free),
        ]
        for words, act, enabled in entries:
            menu.addAction(words, act).setEnabled(enabled)
        stats = AnswerStats.stored(self.message.details)
        for lines in (answer_stats.machines(stats), answer_stats.details(stats)):
            if lines:
                menu.addSeparator()
            for line in lines:
                menu.addAction(line).setEnabled(False)
        return menu

    def _ask(self, action: MessageAction, text: str = "") -> None:
        self.action_requested.emit(action, self.message.id, text)

    def _edited(self, text: str) -> None:
        if self._shown.is_busy:  # the editor stays open until the answer has ended
            return
        self._end_edit()
        self._ask(MessageAction.EDIT, text)

    def _end_edit(self) -> None:
        editor, self._editor = self._editor, None
        if editor is not None:
            box = self.layout()
            assert box is not None
            box.replaceWidget(editor, self.body)
            self.body.show()
            editor.hide()
            editor.deleteLater()
            self.setFocus()

    # The buttons appear under the pointer and with the keyboard focus

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:  # noqa: N802  Qt's name
        self._menu().popup(event.globalPos())

    def enterEvent(self, event: QEnterEvent) -> None:  # noqa: N802  Qt's name
        super().enterEvent(event)
        self._show_tools()

    def leaveEvent(self, event: QEvent) -> None:  # noqa: N802  Qt's name
        super().leaveEvent(event)
        self._hide_tools()

    def focusInEvent(self, event: QFocusEvent) -> None:  # noqa: N802  Qt's name
        super().focusInEvent(event)
        self._show_tools()
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:  # noqa: N802  Qt's name
        super().focusOutEvent(event)
        self._hide_tools()


def _caption(text: str, details: list[str]) -> WrappedLabel:
    made = WrappedLabel(text, "caption")
    made.setToolTip(tooltip(*details))
    made.setAccessibleDescription("\n".join(details))
    return made
