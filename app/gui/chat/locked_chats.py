"""What stands in place of the chats while they are encrypted and their key is not there."""

from __future__ import annotations

from PySide6.QtWidgets import QStackedWidget, QWidget

from app.gui.chat.history.chat_lock import ChatLock
from app.gui.look.sentences import said
from app.gui.look.theme import Theme
from app.gui.widgets.buttons import button
from app.gui.widgets.dialog import Compact
from app.gui.widgets.empty_state import EmptyState

NO_KEY = (
    "history_key_gone",
    "history_key_wrong",
)  # a keyring that is only locked is opened instead


class LockedChats(QStackedWidget):
    """The chats, or why they cannot be shown. Nothing can be typed then, so nothing can be lost."""

    def __init__(
        self, lock: ChatLock, theme: Theme, chats: QWidget, parent: QWidget | None = None
    ) -> None:
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
