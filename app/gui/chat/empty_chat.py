"""The views that replace a conversation. They suggest questions in an empty chat, or explain why chats are locked."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QStackedWidget, QWidget

from app.gui.chat.history.chat_lock import ChatLock
from app.gui.look import sizes
from app.gui.look.sentences import said
from app.gui.look.theme import Theme
from app.gui.widgets.buttons import button
from app.gui.widgets.dialog import CompactDialog
from app.gui.widgets.labels import lines, paragraph
from app.gui.widgets.layouts import EmptyState, column, row, scrolled

# Not translated, because the Guide was trained in English only.
GUIDE_QUESTIONS = ("What is Poolhouse?", "How do I add a computer?", "Does anything leave my home?")
LINE_CHARACTERS = 64  # maximum line width
# Reasons that only a new history can resolve. Others, such as a locked keyring, may pass.
NO_KEY = ("history_key_gone", "history_key_wrong")


class Suggestions(QWidget):
    """A greeting with suggested questions. It calls `chosen(question)` when the user clicks one.

    If no model is available, it shows two buttons instead: `models` opens the Models page, and `guide` selects the
    Guide.
    """

    def __init__(
        self, chosen: Callable[[str], object], models: Callable[[], object], guide: Callable[[], object]
    ) -> None:
        super().__init__()
        self._chosen = chosen
        self.title = paragraph("", "title")
        self.words = paragraph("", "muted")
        for text in (self.title, self.words):
            text.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self.buttons = [button("", partial(self._press, place)) for place in range(3)]
        self.model_buttons = [button(self.tr("Choose a model"), models), button(self.tr("Ask the Guide"), guide)]
        self._questions: tuple[str, ...] = ()
        content = QWidget()
        words = row(None, self.words, None)
        words.setStretch(1, 100)  # takes the available width, up to its maximum
        box = column(None, self.title, gap=sizes.M)
        box.addLayout(words)
        box.addSpacing(sizes.M)
        box.addLayout(row(None, column(*self.buttons, *self.model_buttons, gap=sizes.S), None))
        box.addStretch(1)
        view = scrolled(content)  # scrolls if large text does not fit a small window
        content.setLayout(box)
        self.setLayout(column(view))
        self.show_questions(for_guide=True)

    def _press(self, place: int) -> None:
        self._chosen(self._questions[place])

    def show_failure(self, model: str) -> None:
        """Report that a model could not be loaded, and offer alternatives."""
        self._show_buttons(questions=False)
        self.title.setText(self.tr("No model is available"))
        text = self.tr(
            "{model} could not be loaded. Choose another model, or ask the Guide, a small built-in model that knows "
            "how Poolhouse works."
        )
        self.words.setText(text.format(model=model))
        self._wrap()

    def show_questions(self, *, for_guide: bool) -> None:
        """Suggest questions. The Guide gets different ones, because it knows little beyond Poolhouse."""
        self._show_buttons(questions=True)
        self.title.setText(self.tr("What would you like to know?"))
        if for_guide:
            self.words.setText(
                self.tr(
                    "You're talking to the Guide, a small built-in model that knows how Poolhouse works. It "
                    "understands only English and treats each question separately."
                )
            )
            self._questions = GUIDE_QUESTIONS
        else:
            self.words.setText(self.tr("Your messages stay in your household."))
            self._questions = (
                self.tr("Explain how a rainbow forms, in three sentences."),
                self.tr("Plan a weekend in the mountains with two children."),
                self.tr("Write a Python function that finds duplicate files."),
            )
        for choice, question in zip(self.buttons, self._questions, strict=True):
            choice.setAccessibleName(question)
        self._wrap()

    def _show_buttons(self, *, questions: bool) -> None:
        for choice in self.buttons:
            choice.setVisible(questions)
        for choice in self.model_buttons:
            choice.setVisible(not questions)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802  Qt's name
        super().resizeEvent(event)
        self._wrap()

    def _wrap(self) -> None:
        """Insert line breaks into the questions, because a button does not wrap its text."""
        self.words.setMaximumWidth(LINE_CHARACTERS * self.words.fontMetrics().averageCharWidth())
        room = self.width() - 2 * sizes.XXL - 2 * sizes.L
        for choice, question in zip(self.buttons, self._questions, strict=True):
            choice.setText("\n".join(lines(question, choice.fontMetrics(), room)))


class LockedChats(QStackedWidget):
    """A stack that shows the chats, or the reason why they are locked."""

    def __init__(self, lock: ChatLock, theme: Theme, chats: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._lock, self._theme, self._chats = lock, theme, chats
        self.again = button(self.tr("Try again"), lock.try_again, "primary")
        self.anew = button(self.tr("Start a new history…"), self.ask_new_history)
        self.state = EmptyState(self.tr("Your chats are locked"), "", self.again, self.anew)
        self.addWidget(chats)
        self.addWidget(self.state)
        lock.changed.connect(self._show_state)
        self._show_state()

    def ask_new_history(self) -> CompactDialog:
        """Ask whether to start a new history. The locked file is preserved."""
        box = CompactDialog(
            self._theme,
            self.tr("Start a new chat history without the locked chats?"),
            self.tr(
                "The locked chats will be kept in a renamed file. New chats will not be encrypted until you turn "
                "encryption on."
            ),
            self,
        )
        begin = box.answer(self.tr("Start a new history"), self._lock.start_new_history)
        box.offer(self.tr("Cancel"), begin).setFocus()
        box.open()
        return box

    def _show_state(self) -> None:
        problem = self._lock.problem
        waits = self.tr("Your chats are encrypted and will appear when their key can be read.")
        words = said(problem) if problem is not None else waits
        self.state.sentence.setText(words)
        self.state.sentence.setAccessibleName(words)
        self.again.setVisible(problem is not None)
        self.anew.setVisible(problem is not None and problem.reason.code in NO_KEY)
        self.setCurrentWidget(self.state if self._lock.is_locked else self._chats)
