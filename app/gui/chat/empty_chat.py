"""What stands where a chat is still empty: a greeting, and questions to begin with."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QStackedWidget, QWidget

from app.gui.chat.history.chat_lock import ChatLock
from app.gui.look import theme as sizes
from app.gui.look.sentences import said
from app.gui.look.theme import Theme
from app.gui.widgets.buttons import button
from app.gui.widgets.dialog import Compact
from app.gui.widgets.empty_state import EmptyState
from app.gui.widgets.labels import lines, paragraph
from app.gui.widgets.layouts import column, row, scrolled

# in the language that the Guide was trained in
GUIDE_QUESTIONS = ("What is Poolhouse?", "How do I add a computer?", "Does anything leave my home?")
MOST_CHARACTERS = 64  # of a line


class Suggestions(QWidget):
    """`chosen(question)` when one is pressed. The Guide knows Poolhouse and little else.

    Where no model answers there are two ways on: `models` shows those there are, `guide` asks the Guide here.
    """

    def __init__(
        self, chosen: Callable[[str], object], models: Callable[[], object], guide: Callable[[], object]
    ) -> None:
        super().__init__()
        self._chosen = chosen
        self.title = paragraph("", "title")
        self.words = paragraph("", "muted")
        for one in (self.title, self.words):
            one.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self.buttons = [button("", partial(self._press, n)) for n in range(3)]
        self.ways = [button(self.tr("Choose a model"), models), button(self.tr("Ask the Guide"), guide)]
        self._questions: tuple[str, ...] = ()
        self._middle = QWidget()
        across = row(None, self.words, None)
        across.setStretch(1, 100)  # up to its greatest width
        inner = column(None, self.title, gap=sizes.M)
        inner.addLayout(across)
        inner.addSpacing(sizes.M)
        inner.addLayout(row(None, column(*self.buttons, *self.ways, gap=sizes.S), None))
        inner.addStretch(1)
        view = scrolled(self._middle)  # large text in a small window
        self._middle.setLayout(inner)
        self.setLayout(column(view))
        self.tell(is_guide=True)

    def _press(self, place: int) -> None:
        self._chosen(self._questions[place])

    def tell(self, *, is_guide: bool, failed: str = "") -> None:
        """Questions that whoever answers can answer. failed: the model that could not be loaded, so nobody answers."""
        for one in self.buttons:
            one.setVisible(not failed)
        for one in self.ways:
            one.setVisible(bool(failed))
        if failed:
            self.title.setText(self.tr("No model answers"))
            text = self.tr(
                "{model} could not be loaded. Choose another model, or ask the Guide: a small model that comes with "
                "Poolhouse and knows how it is used."
            )
            self.words.setText(text.format(model=failed))
            self._wrap()
            return
        self.title.setText(self.tr("What would you like to know?"))
        if is_guide:
            self.words.setText(
                self.tr(
                    "The Guide answers: a small model that comes with Poolhouse and knows how it is used. "
                    "It understands English only, and takes each question by itself."
                )
            )
            self._questions = GUIDE_QUESTIONS
        else:
            self.words.setText(self.tr("What you write stays in your household."))
            self._questions = (
                self.tr("Explain how a rainbow forms, in three sentences."),
                self.tr("Plan a weekend in the mountains with two children."),
                self.tr("Write a Python function that finds duplicate files."),
            )
        for one, question in zip(self.buttons, self._questions, strict=True):
            one.setAccessibleName(question)
        self._wrap()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802  Qt's name
        super().resizeEvent(event)
        self._wrap()

    def _wrap(self) -> None:
        """A question too long for its button goes on in the next line."""
        self.words.setMaximumWidth(MOST_CHARACTERS * self.words.fontMetrics().averageCharWidth())
        room = self.width() - 2 * sizes.XXL - 2 * sizes.L
        for one, question in zip(self.buttons, self._questions, strict=True):
            one.setText("\n".join(lines(question, one.fontMetrics(), room)))


NO_KEY = ("history_key_gone", "history_key_wrong")  # a keyring that is only locked is opened instead


class LockedChats(QStackedWidget):
    """The chats, or why they cannot be shown. Nothing can be typed then, so nothing can be lost."""

    def __init__(self, lock: ChatLock, theme: Theme, chats: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._lock, self._theme, self._chats = lock, theme, chats
        self.again = button(self.tr("Try again"), lock.try_again, "primary")
        self.anew = button(self.tr("Begin a new history…"), self.ask_anew)
        self.state = EmptyState(self.tr("Your chats are locked"), "", self.again, self.anew)
        self.addWidget(chats)
        self.addWidget(self.state)
        lock.changed.connect(self._tell)
        self._tell()

    def ask_anew(self) -> Compact:
        """Whether a person means it; the locked file stays in any case."""
        box = Compact(
            self._theme,
            self.tr("Begin a new history without the locked chats?"),
            self.tr("Their file is kept under another name. New chats are not encrypted at first."),
            self,
        )
        begin = box.answer(self.tr("Begin a new history"), self._lock.begin_anew)
        box.offer(self.tr("Cancel"), begin).setFocus()
        box.open()
        return box

    def _tell(self) -> None:
        problem = self._lock.problem
        waits = self.tr("They are encrypted, and shown as soon as their key was read.")
        words = said(problem) if problem is not None else waits
        self.state.sentence.setText(words)
        self.state.sentence.setAccessibleName(words)
        self.again.setVisible(problem is not None)
        self.anew.setVisible(problem is not None and problem.reason.code in NO_KEY)
        self.setCurrentWidget(self.state if self._lock.is_locked else self._chats)
