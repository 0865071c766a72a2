"""What the machines of a placement draw while it is measured, as far as their systems tell."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject, QTimer

Json = dict[str, Any]

SETTLE_S = 11.0  # what a machine tells is up to five seconds old, and the mean of five before
PACE_MS = 1000


def drawn(snapshot: Json, loaded: Json) -> float | None:
    """Watts of all machines together; None unless each of them tells its own."""
    machines = snapshot.get("machines") or {}
    ids = {stage["id"] for stage in loaded["stages"]}
    told: list[float] = [(machines.get(one) or {}).get("watts") or 0.0 for one in ids]
    return sum(told) if told and all(told) else None


class Meter(QObject):
    """Reads again and again, from a while after `begin`, when what was before is not in it any more."""

    def __init__(
        self,
        read: Callable[[], float | None],
        parent: QObject | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(parent)
        self._read, self._clock = read, clock
        self._seen: list[float | None] = []
        self._began = 0.0
        self._timer = QTimer(self)
        self._timer.timeout.connect(self.look)

    def begin(self) -> None:
        self._seen.clear()
        self._began = self._clock()
        self._timer.start(PACE_MS)

    def look(self) -> None:
        """Once; the timer does it as long as it runs."""
        if self._clock() - self._began >= SETTLE_S:
            self._seen.append(self._read())

    def end(self) -> float | None:
        """The mean; None where it was over too soon, or a machine did not tell at some time."""
        self._timer.stop()
        known = [watts for watts in self._seen if watts is not None]
        return statistics.fmean(known) if known and len(known) == len(self._seen) else None
