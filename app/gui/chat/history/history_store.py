"""Access to the open history file, with error handling, purging of deleted chats, and encryption of the whole file."""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from PySide6.QtCore import QObject, QThreadPool, QTimer, Signal

from app.core.chat import ChatId
from app.core.errors import AppError, Refused, bug
from app.core.reasons import os_cause
from app.gui.chat.history import history_file
from app.gui.chat.history.history_cipher import Cipher, Codec
from app.gui.chat.history.history_conversion import Conversion, conversion_connection, convert
from app.gui.chat.history.history_file import transaction

log = logging.getLogger(__name__)


T = TypeVar("T")


class HistoryStore(QObject):
    """Access to the history file. If the file is unusable, methods set `trouble` instead of raising exceptions."""

    troubled = Signal(object)  # an AppError
    recovered = Signal()  # writing has succeeded again
    replaced = Signal()  # the file was damaged and has been replaced by an empty one

    def __init__(self, path: Path, parent: QObject | None = None, *, seal_new: bool = False) -> None:
        """Open or create the file.

        seal_new: whether to encrypt a new file.
        """
        super().__init__(parent)
        self._path, self._seal_new = path, seal_new
        self._opened = history_file.open_history(path, seal_new=seal_new)
        self._failing = self._closed = self._suspended = False
        self.trouble = self._opened.trouble

    @property
    def file(self) -> Path | None:
        """The path of the history file, or None if the chats are only in memory."""
        return self._opened.path

    @property
    def indexed(self) -> bool:
        """Return whether the file has a full-text index."""
        return self._opened.indexed

    @property
    def codec(self) -> Codec:
        """The codec for texts in the file."""
        return self._opened.codec

    @property
    def locked(self) -> AppError | None:
        """The reason why the file is locked, or None. A locked file is neither read nor written."""
        return self._opened.locked

    # Encryption

    def unlock(self, cipher: Cipher) -> bool:
        """Try to open the encrypted file. Return whether the key is correct; if not, `locked` is the reason."""
        self._opened.db.close()
        self._open(cipher, seal_new=self._seal_new)
        return self.locked is None

    def suspend_writing(self, cipher: Cipher) -> Path | None:
        """Suspend writing while another thread encrypts or decrypts all texts. Texts in both forms remain readable.

        Return the path of the file, or None if there is no file or it is locked. Call `resume_writing` afterwards.
        """
        if self.file is not None:
            self._suspended = True
            self._opened = replace(self._opened, codec=cipher, indexed=False)
        return self.file

    def resume_writing(self, cipher: Cipher) -> None:
        """Reopen the converted file and resume writing."""
        self._suspended = False
        self._opened.db.close()
        if not self._closed:
            self._open(cipher, seal_new=self._seal_new)
            self._seal_new = self.codec.seals

    def set_aside(self) -> Path | None:
        """Rename a locked file and start a new, unencrypted one. Return the renamed file, or None on failure."""
        path = self._opened.locked_path
        if path is None:
            return None
        try:
            aside = history_file.move_aside(path, "locked")
        except OSError as error:
            self._fail(AppError("history_unwritten", path=str(path), why=os_cause(error)))
            return None
        self._opened.db.close()
        self._seal_new = False
        self._open(None, seal_new=False)
        return aside

    def _open(self, cipher: Cipher | None, *, seal_new: bool) -> None:
        self._opened = history_file.open_history(self._path, cipher, seal_new=seal_new)
        if self._opened.trouble is not None:
            self.trouble = self._opened.trouble
            self.troubled.emit(self.trouble)

    def read(self, action: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
        """Return the result of `action`, or `otherwise` if the file cannot be read."""
        try:
            return action(self._opened.db)
        except sqlite3.DatabaseError as error:
            self._handle_error(error)
            return otherwise

    def write(self, action: Callable[[sqlite3.Connection], object], *, later: bool = False) -> bool:
        """Run `action` in a transaction. Return whether it was committed.

        later: whether the caller retries a write that is rejected while the file is locked or being converted.
        """
        if self.locked is not None or self._suspended:
            if not later:
                self.troubled.emit(self.locked or Refused("history_busy"))
            return False
        try:
            with transaction(self._opened.db) as db:
                action(db)
        except sqlite3.DatabaseError as error:
            self._handle_error(error)
            return False
        except UnicodeError as error:  # caused by a lone surrogate, which SQLite cannot store
            self._handle_error(sqlite3.DataError(str(error)))
            return False
        if self._failing:
            self._failing, self.trouble = False, None
            self.recovered.emit()
        return True

    def shrink(self) -> None:
        """Truncate the write-ahead log, which may still contain deleted text."""
        self.read(lambda db: db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall(), list[object]())

    def close(self) -> None:
        """Close the file for good."""
        self._closed = True
        self._opened.db.close()

    def _handle_error(self, error: sqlite3.DatabaseError) -> None:
        """Rebuild a damaged index or replace a damaged file. Report any other database error once."""
        if self._closed or self._suspended:  # the converting thread reports errors itself
            return
        if not history_file.is_damage(error):
            self._fail(history_file.database_error(error, self.file or self._path))
        elif not (history_file.is_index_damage(error) and history_file.rebuild_index(self._opened.db)):
            self._set_damaged_aside()
            self.trouble, self._failing = self._opened.trouble, False
            self.troubled.emit(self.trouble)
            self.replaced.emit()

    def _set_damaged_aside(self) -> None:
        """Rename a damaged file and open a new one, which is encrypted if the old one was."""
        codec = self.codec
        cipher = codec if isinstance(codec, Cipher) else None
        self._opened.db.close()
        self._opened = history_file.replace_damaged_file(self.file or self._path, cipher, seal_new=cipher is not None)

    def _fail(self, trouble: AppError) -> None:
        self.trouble = trouble
        if not self._failing:
            self._failing = True
            self.troubled.emit(trouble)


STEP_S = 0.02  # maximum duration of one step on the GUI thread


MESSAGES_PER_STEP = 20  # messages deleted per transaction


PAGES_PER_STEP = 100  # pages of the index merged per transaction


MIN_MERGED_ROWS = 2  # a merge with fewer changed rows had nothing left to merge (sqlite.org/fts5.html)


class Purge(QObject):
    """A background job that removes deleted chats from the file and its index in short steps."""

    def __init__(self, store: HistoryStore, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._remaining: list[ChatId] = []
        self._steps: Iterator[None] = iter(())
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._some)

    def begin(self, chats: Sequence[ChatId]) -> None:
        """Start removing chats in the background."""
        if chats:
            self._remaining.extend(chats)
            if not self._timer.isActive():
                self._steps = self._all()
                self._timer.start(0)

    def finish(self) -> None:
        """Run all remaining steps now."""
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
        while self._remaining:
            chat = self._remaining[-1]
            while self._count(_DELETE_MESSAGES, (chat, MESSAGES_PER_STEP)):
                yield
            self._count("DELETE FROM chats WHERE id = ?", (chat,))
            self._remaining.remove(chat)
            yield
        # A negative number first assigns all segments to one level, so that even small ones are merged.
        pages = -PAGES_PER_STEP
        while self._store.indexed and self._count(_MERGE, (pages,)) >= MIN_MERGED_ROWS:
            pages = PAGES_PER_STEP
            yield
        self._store.shrink()

    def _count(self, order: str, values: tuple[object, ...]) -> int:
        """Execute a statement and return the number of changed rows, or 0 if the file cannot be written."""
        changes = 0

        def do(db: sqlite3.Connection) -> None:
            nonlocal changes
            before = db.total_changes
            db.execute(order, values)
            changes = db.total_changes - before

        return changes if self._store.write(do, later=True) else 0


# Deletes the newest messages first, so that none is deleted before its replies.
_DELETE_MESSAGES = (
    "DELETE FROM messages WHERE number IN (SELECT number FROM messages WHERE chat = ? ORDER BY number DESC LIMIT ?)"
)


_MERGE = "INSERT INTO words (words, rank) VALUES ('merge', ?)"


class Converter(QObject):
    """A background job that encrypts or decrypts all texts in the file in another thread.

    The store is read-only while `busy` is set. `ended` is emitted when the store is writable again.
    """

    progressed = Signal(int, int)  # number of converted rows, and their total
    ended = Signal(object)  # None, or an AppError; in either case, check the state of the file
    _over = Signal()

    def __init__(self, store: HistoryStore, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._cipher: Cipher | None = None
        self._error: AppError | None = None
        self._stop, self._finished = threading.Event(), threading.Event()
        self._over.connect(self._deliver)

    @property
    def busy(self) -> bool:
        return self._cipher is not None

    def begin(self, conversion: Conversion, cipher: Cipher) -> bool:
        """Start the conversion. Return whether it started, which requires an open file and no other conversion."""
        file = None if self.busy else self._store.suspend_writing(cipher)
        if file is None:
            return False
        self._cipher, self._error = cipher, None
        self._stop.clear()
        self._finished.clear()
        QThreadPool.globalInstance().start(lambda: self._run(conversion, file, cipher))
        return True

    def stop(self) -> None:
        """Stop the conversion and roll it back, because the window is closing."""
        if self.busy:
            self._stop.set()
            self._finished.wait()
            self._deliver()

    def _run(self, conversion: Conversion, file: Path, cipher: Cipher) -> None:
        try:
            with conversion_connection(file, self._stop) as db:
                convert(conversion, db, file, cipher, self._report)
        except AppError as error:
            self._error = error
        except sqlite3.Error as error:
            self._error = None if self._stop.is_set() else history_file.database_error(error, file)
        except Exception as error:  # a bug; the transaction was rolled back, so the file is unchanged
            log.exception("work on the file of chats")
            self._error = bug(error)
        finally:
            self._finished.set()
            self._over.emit()

    def _report(self, n: int, of: int) -> None:
        self.progressed.emit(n, of)

    def _deliver(self) -> None:
        cipher, self._cipher = self._cipher, None
        if cipher is not None:
            self._store.resume_writing(cipher)
            self.ended.emit(self._error)
