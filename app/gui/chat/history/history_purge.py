"""Takes deleted chats out of the file, their words out of the index, in steps too short to be felt."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence

from PySide6.QtCore import QObject, QTimer

from app.core.chat import ChatId
from app.gui.chat.history.history_store import Store

STEP_S = 0.02  # of the window's time for each turn
MESSAGES = 20  # deleted in one transaction
PAGES = 100  # of the index, merged in one transaction
NO_CHANGE = 2  # a merge that had nothing to do counts fewer changes


class Purge(QObject):
    """`begin` with chats; what is begun goes on by itself, or at once with `finish`."""

    def __init__(self, store: Store, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._left: list[ChatId] = []
        self._steps: Iterator[None] = iter(())
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._some)

    def begin(self, chats: Sequence[ChatId]) -> None:
        """Remove these; the steps follow while the window has nothing else to do."""
        if chats:
            self._left.extend(chats)
            if not self._timer.isActive():
                self._steps = self._all()
                self._timer.start(0)

    def finish(self) -> None:
        """Do the rest now."""
        for _ in self._steps:
            pass
        self._timer.stop()

    def _some(self) -> None:
        until = time.monotonic() + STEP_S
        for _ in self._steps:
            if time.monotonic() > until:
                return
        self._timer.stop()

    def _all(self) -> Iterator[None]:
        while self._left:
            chat = self._left[-1]
            while self._count(_DELETE_MESSAGES, (chat, MESSAGES)):
                yield
            self._count("DELETE FROM chats WHERE id = ?", (chat,))
            self._left.remove(chat)
            yield
        pages = -PAGES  # below zero: also what is not much yet
        while self._store.indexed and self._count(_MERGE, (pages,)) >= NO_CHANGE:
            pages = PAGES
            yield
        self._store.shrink()

    def _count(self, order: str, values: tuple[object, ...]) -> int:
        """Do it; how many rows are others now. None if the file cannot be written."""
        changes = 0

        def do(db: sqlite3.Connection) -> None:
            nonlocal changes
            before = db.total_changes
            db.execute(order, values)
            changes = db.total_changes - before

        return changes if self._store.write(do, later=True) else 0


# The last ones first, so that no message goes before those which answer it.
_DELETE_MESSAGES = (
    "DELETE FROM messages WHERE number IN (SELECT number FROM messages WHERE chat = ? ORDER BY number DESC LIMIT ?)"
)
_MERGE = "INSERT INTO words (words, rank) VALUES ('merge', ?)"
