"""The rate of a transfer over the last few seconds."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

SPEED_SECONDS = 5.0  # time over which the speed is averaged
STALLED_SECONDS = 3.0
LEAST_SECONDS = 0.1


class TransferRate:
    """Computes the current speed and the remaining time of a transfer from timestamped byte counts."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._marks: deque[tuple[float, int]] = deque()

    def mark(self, done_bytes: int) -> None:
        now = self._clock()
        self._marks.append((now, done_bytes))
        while self._marks[0][0] < now - SPEED_SECONDS:
            self._marks.popleft()

    def clear(self) -> None:
        """Forget the byte counts after the transfer has stopped or restarted."""
        self._marks.clear()

    def bytes_per_s(self) -> int | None:
        """Return the speed, None if it is unknown, or 0 if nothing has arrived lately."""
        if len(self._marks) < 2:
            return None
        (began, first), (latest, last) = self._marks[0], self._marks[-1]
        now = self._clock()
        if now - latest > STALLED_SECONDS:
            return 0
        return int(max(0, last - first) / max(now - began, LEAST_SECONDS))

    def seconds_left(self, rest_bytes: int) -> int | None:
        """Return the expected number of seconds until the remaining bytes have arrived, or None if unknown."""
        speed = self.bytes_per_s()
        return round(max(0, rest_bytes) / speed) if speed else None
