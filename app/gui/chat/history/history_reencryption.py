"""Seals every text in the history's file, or opens them all: in another thread, as a whole or not at all."""

from __future__ import annotations

import logging
import sqlite3
import threading
from pathlib import Path

from PySide6.QtCore import QObject, QThreadPool, Signal

from app.core.errors import AppError, bug
from app.gui.chat.history import history_file
from app.gui.chat.history.history_cipher import Cipher
from app.gui.chat.history.history_recoding import Turn, at_work, carry_out
from app.gui.chat.history.history_store import Store

log = logging.getLogger(__name__)


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
