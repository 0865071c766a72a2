"""A job that runs in another thread and delivers its result in the GUI thread."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject, QThreadPool, Signal

from app.core.errors import AppError, bug

log = logging.getLogger(__name__)


class _Signals(QObject):
    done = Signal(object)
    failed = Signal(object)


class Job(QObject):
    """A job that starts immediately in another thread, then calls either `done` or `failed` in the GUI thread.

    An unexpected exception is passed to `failed` as an AppError. After `owner` has been destroyed, neither function
    is called.
    """

    def __init__(
        self,
        work: Callable[[], Any],
        done: Callable[[Any], object],
        failed: Callable[[OSError | AppError], object],
        owner: QObject,
    ) -> None:
        super().__init__(owner)
        self._done, self._failed = done, failed
        signals = _Signals()
        signals.done.connect(self._succeed)
        signals.failed.connect(self._fail)

        def run() -> None:
            try:
                result = work()
            except OSError as error:
                signals.failed.emit(error)
            except Exception as error:
                log.exception("work in another thread")
                signals.failed.emit(bug(error))
            else:
                signals.done.emit(result)

        QThreadPool.globalInstance().start(run)

    def _succeed(self, result: object) -> None:
        self._done(result)
        self.deleteLater()

    def _fail(self, error: OSError | AppError) -> None:
        self._failed(error)
        self.deleteLater()
