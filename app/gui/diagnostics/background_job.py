"""Work of more than a moment in another thread; its result comes back on the window's own."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject, QThreadPool, Signal

from app.core.errors import AppError, bug

log = logging.getLogger(__name__)


class _Told(QObject):
    done = Signal(object)
    failed = Signal(object)


class Job(QObject):
    """Runs `work` at once; any error of it is told, a mistake of ours as one.

    Nothing comes back any more once `owner` is gone.
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
        told = _Told()
        told.done.connect(self._succeed)
        told.failed.connect(self._fail)

        def run() -> None:
            try:
                result = work()
            except OSError as error:
                told.failed.emit(error)
            except Exception as error:
                log.exception("work in another thread")
                told.failed.emit(bug(error))
            else:
                told.done.emit(result)

        QThreadPool.globalInstance().start(run)

    def _succeed(self, result: object) -> None:
        self._done(result)
        self.deleteLater()

    def _fail(self, error: OSError | AppError) -> None:
        self._failed(error)
        self.deleteLater()
