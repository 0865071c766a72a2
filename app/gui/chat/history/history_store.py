"""The open file of the history: read, write, and what to do when either fails."""

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
from app.gui.chat.history.history_encryption import Turn, at_work, carry_out
from app.gui.chat.history.history_file import transaction

log = logging.getLogger(__name__)


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
            self._fail(AppError("history_unwritten", path=str(path), why=os_cause(error)))
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


class Turning(QObject):
    """One at a time. While it is `busy` the store only reads; `ended` when it writes again."""

    progressed = Signal(int, int)  # so many texts of so many
    ended = Signal(object)  # None, or an AppError: what the file says then is what counts
    _over = Signal()

    def __init__(self, store: Store, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._cipher: Cipher | None = None
        self._error: AppError | None = None
        self._stop, self._finished = threading.Event(), threading.Event()
        self._over.connect(self._deliver)

    @property
    def busy(self) -> bool:
        return self._cipher is not None

    def begin(self, turn: Turn, cipher: Cipher) -> bool:
        """Whether it was begun: a file is there, and nothing else is done with it."""
        file = None if self.busy else self._store.hold(cipher)
        if file is None:
            return False
        self._cipher, self._error = cipher, None
        self._stop.clear()
        self._finished.clear()
        QThreadPool.globalInstance().start(lambda: self._run(turn, file, cipher))
        return True

    def stop(self) -> None:
        """The window closes. What is not done is as if it never began."""
        if self.busy:
            self._stop.set()
            self._finished.wait()
            self._deliver()

    def _run(self, turn: Turn, file: Path, cipher: Cipher) -> None:
        try:
            with at_work(file, self._stop) as db:
                carry_out(turn, db, file, cipher, self._tell)
        except AppError as error:
            self._error = error
        except sqlite3.Error as error:
            self._error = None if self._stop.is_set() else history_file.why_not(error, file)
        except Exception as error:  # top of a thread: a bug is said, and the file is as it was
            log.exception("work on the file of chats")
            self._error = bug(error)
        finally:
            self._finished.set()
            self._over.emit()

    def _tell(self, n: int, of: int) -> None:
        self.progressed.emit(n, of)

    def _deliver(self) -> None:
        cipher, self._cipher = self._cipher, None
        if cipher is not None:
            self._store.release(cipher)
            self.ended.emit(self._error)
