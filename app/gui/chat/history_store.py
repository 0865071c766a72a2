"""The open file of the history: read, write, and what to do when either fails."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from PySide6.QtCore import QObject, Signal

from app.core.errors import AppError
from app.gui.chat import history_file
from app.gui.chat.history_file import transaction

T = TypeVar("T")


class Store(QObject):
    """No method raises for the file's sake: `trouble` says what is wrong now."""

    troubled = Signal(object)  # an AppError
    recovered = Signal()  # writing works again
    replaced = Signal()  # the file was damaged; an empty one stands in its place

    def __init__(self, path: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._path = path
        self._opened = history_file.open_history(path)
        self._failing = self._closed = False
        self.trouble = self._opened.trouble

    @property
    def file(self) -> Path | None:
        """Where the chats are; None while they are in memory only."""
        return self._opened.path

    @property
    def indexed(self) -> bool:
        """Whether words can be looked up in an index."""
        return self._opened.indexed

    def read(self, action: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
        """What `action` reads, or `otherwise` if the file cannot be read."""
        try:
            return action(self._opened.db)
        except sqlite3.DatabaseError as error:
            self._meet(error)
            return otherwise

    def write(self, action: Callable[[sqlite3.Connection], object]) -> bool:
        """Do all of it or nothing; whether it is written."""
        try:
            with transaction(self._opened.db) as db:
                action(db)
        except sqlite3.DatabaseError as error:
            self._meet(error)
            return False
        except UnicodeError as error:  # half a character, which SQLite is never given
            self._meet(sqlite3.DataError(str(error)))
            return False
        if self._failing:
            self._failing, self.trouble = False, None
            self.recovered.emit()
        return True

    def shrink(self) -> None:
        """Bring what was written beside the file into it, so that nothing deleted stays there."""
        self.read(
            lambda db: db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall(), list[object]()
        )

    def close(self) -> None:
        """Nothing is read or written any more."""
        self._closed = True
        self._opened.db.close()

    def _meet(self, error: sqlite3.DatabaseError) -> None:
        """Say what is wrong, once; a damaged file is replaced, a damaged index mended."""
        if self._closed:
            return
        if not history_file.is_damage(error):
            self._fail(history_file.why_not(error, self.file or self._path))
        elif not (history_file.is_index_damage(error) and history_file.mend(self._opened.db)):
            self._opened.db.close()
            self._opened = history_file.keep_aside(self.file or self._path)
            self.trouble, self._failing = self._opened.trouble, False
            self.troubled.emit(self.trouble)
            self.replaced.emit()

    def _fail(self, trouble: AppError) -> None:
        self.trouble = trouble
        if not self._failing:
            self._failing = True
            self.troubled.emit(trouble)
