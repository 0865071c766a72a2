"""The open file of the history: read, write, and what to do when either fails."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from PySide6.QtCore import QObject, Signal

from app.core.errors import AppError, Refused
from app.gui.chat.history import history_file
from app.gui.chat.history.history_cipher import Cipher, Codec
from app.gui.chat.history.history_file import transaction

T = TypeVar("T")


class Store(QObject):
    """No method raises for the file's sake: `trouble` says what is wrong now."""

    troubled = Signal(object)  # an AppError
    recovered = Signal()  # writing works again
    replaced = Signal()  # the file was damaged; an empty one stands in its place

    def __init__(self, path: Path, parent: QObject | None = None, *, wanted: bool = False) -> None:
        """wanted: a file that is begun here is a sealed one."""
        super().__init__(parent)
        self._path, self._wanted = path, wanted
        self._opened = history_file.open_history(path, wanted=wanted)
        self._failing = self._closed = self._held = False
        self.trouble = self._opened.trouble

    @property
    def file(self) -> Path | None:
        """Where the chats are; None while they are in memory only."""
        return self._opened.path

    @property
    def indexed(self) -> bool:
        """Whether words can be looked up in an index."""
        return self._opened.indexed

    @property
    def codec(self) -> Codec:
        """How texts stand in the file."""
        return self._opened.codec

    @property
    def locked(self) -> AppError | None:
        """Why the texts cannot be opened; nothing is read or written until they can."""
        return self._opened.locked

    # sealed, or not

    def unlock(self, cipher: Cipher) -> bool:
        """Open the sealed file; whether that was its key. `locked` says why not."""
        self._opened.db.close()
        self._open(cipher, wanted=self._wanted)
        return self.locked is None

    def hold(self, cipher: Cipher) -> Path | None:
        """Another thread seals or opens every text: until `release` this one only reads, either kind.

        The file, or None where there is none, or it is locked.
        """
        if self.file is not None:
            self._held = True
            self._opened = replace(self._opened, codec=cipher, indexed=False)
        return self.file

    def release(self, cipher: Cipher) -> None:
        """Go on with the file as it is now."""
        self._held = False
        self._opened.db.close()
        if not self._closed:
            self._open(cipher, wanted=self._wanted)
            self._wanted = self.codec.seals

    def set_aside(self) -> Path | None:
        """A sealed file that nobody can open: kept under another name, and a new one begun that is plain."""
        path = self._opened.locked_path
        if path is None:
            return None
        try:
            aside = history_file.move_aside(path, "locked")
        except OSError as error:
            why = error.strerror or str(error)
            self._fail(AppError("history_unwritten", path=str(path), why=why))
            return None
        self._opened.db.close()
        self._wanted = False
        self._open(None, wanted=False)
        return aside

    def _open(self, cipher: Cipher | None, *, wanted: bool) -> None:
        self._opened = history_file.open_history(self._path, cipher, wanted=wanted)
        if self._opened.trouble is not None:
            self.trouble = self._opened.trouble
            self.troubled.emit(self.trouble)

    def read(self, action: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
        """What `action` reads, or `otherwise` if the file cannot be read."""
        try:
            return action(self._opened.db)
        except sqlite3.DatabaseError as error:
            self._meet(error)
            return otherwise

    def write(self, action: Callable[[sqlite3.Connection], object], *, later: bool = False) -> bool:
        """Do all of it or nothing; whether it is written. later: it is tried again if it is not."""
        if self.locked is not None or self._held:
            if not later:
                self.troubled.emit(self.locked or Refused("history_busy"))
            return False
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
        self.read(lambda db: db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall(), list[object]())

    def close(self) -> None:
        """Nothing is read or written any more."""
        self._closed = True
        self._opened.db.close()

    def _meet(self, error: sqlite3.DatabaseError) -> None:
        """Say what is wrong, once; a damaged file is replaced, a damaged index mended."""
        if self._closed or self._held:  # whoever works on the file meets it as well
            return
        if not history_file.is_damage(error):
            self._fail(history_file.why_not(error, self.file or self._path))
        elif not (history_file.is_index_damage(error) and history_file.mend(self._opened.db)):
            self._set_damaged_aside()
            self.trouble, self._failing = self._opened.trouble, False
            self.troubled.emit(self.trouble)
            self.replaced.emit()

    def _set_damaged_aside(self) -> None:
        """The new file is sealed where the old one was."""
        codec = self.codec
        cipher = codec if isinstance(codec, Cipher) else None
        self._opened.db.close()
        self._opened = history_file.keep_aside(self.file or self._path, cipher, wanted=cipher is not None)

    def _fail(self, trouble: AppError) -> None:
        self.trouble = trouble
        if not self._failing:
            self._failing = True
            self.troubled.emit(trouble)
