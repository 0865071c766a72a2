"""Work in slices of a few milliseconds between events, so that no frame waits for it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator

from PySide6.QtCore import QObject, QTimer

SLICE_S = 0.006


class Slices(QObject):
    """Runs generators one after another; each `yield` is a place to stop."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._waiting: dict[int, Iterator[object]] = {}  # by owner
        self._known: set[int] = set()
        self._timer = QTimer(self)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._run)

    def add(self, owner: QObject, work: Iterator[object]) -> None:
        """Do it soon, in place of what the same owner had asked for. It ends with its owner."""
        key = id(owner)
        if key not in self._known:
            self._known.add(key)
            owner.destroyed.connect(lambda: self._gone(key))
        self._waiting.pop(key, None)
        self._waiting[key] = work
        self._timer.start()

    def drop(self, owner: QObject) -> None:
        """Forget what this one asked for."""
        self._waiting.pop(id(owner), None)

    def finish(self) -> None:
        """Everything at once."""
        while self._waiting:
            deque(self._waiting.pop(next(iter(self._waiting))), maxlen=0)

    def _gone(self, key: int) -> None:
        self._waiting.pop(key, None)
        self._known.discard(key)

    def _run(self) -> None:
        ends_at = time.perf_counter() + SLICE_S
        while self._waiting and time.perf_counter() < ends_at:
            key, work = next(iter(self._waiting.items()))
            if next(work, self) is self and self._waiting.get(key) is work:
                del self._waiting[key]
        if not self._waiting:
            self._timer.stop()
