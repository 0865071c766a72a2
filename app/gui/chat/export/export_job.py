"""Work on files in another thread: how far it is, what came of it, and an end before that."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from PySide6.QtCore import QObject, QThreadPool, Signal

from app.core.errors import AppError, bug

log = logging.getLogger(__name__)


class _Cancelled(Exception):
    """Nobody wants it any more."""


class Work(QObject):
    """Exactly one of `done` and `failed` comes, in the thread that made it; neither after `cancel`."""

    progress = Signal(int)
    done = Signal(object)
    failed = Signal(object)  # AppError
    _over = Signal(object)  # how to say it, once it is back in this thread

    def __init__(self, job: Callable[[Callable[[int], None]], Any]) -> None:
        """`job` is given a function to tell how far it is; that function ends it when cancelled."""
        super().__init__()
        self._job, self._cancelled = job, False
        self._over.connect(self._deliver)

    def begin(self) -> None:
        QThreadPool.globalInstance().start(self._run)

    def cancel(self) -> None:
        """It stops at its next step."""
        self._cancelled = True

    def _tell(self, n: int) -> None:
        if self._cancelled:
            raise _Cancelled
        self.progress.emit(n)

    def _run(self) -> None:
        try:
            result = self._job(self._tell)
        except _Cancelled:
            return
        except AppError as error:
            self._end(self.failed, error)
        except Exception as error:
            log.exception("work on a file of chats")
            self._end(self.failed, bug(error))
        else:
            self._end(self.done, result)

    def _end(self, signal: Any, what: object) -> None:
        self._over.emit(partial(signal.emit, what))

    def _deliver(self, tell: Callable[[], object]) -> None:
        if not self._cancelled:
            tell()
