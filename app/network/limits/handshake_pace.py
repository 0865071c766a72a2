"""How often handshakes that come to nothing are begun: each costs more than all that strangers could say.

Whoever proves to be a member, and floods nobody, pays nothing. What is left to a host where a member was met is its
own: nobody else's knocking takes it. All other hosts share theirs, as addresses cost nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

BURST, PER_SECOND = 16.0, 4.0  # where a member was met: it may be barred, or removed
OTHERS_BURST, OTHERS_PER_SECOND = 64.0, 16.0  # all other hosts together
OTHERS = ""
MOST_HOSTS = 256  # that are remembered


@dataclass(slots=True)
class _Bucket:
    left: float
    at_seconds: float


class HandshakePace:
    """The pace of handshakes at one port. `expects` tells whether a member was met at a host."""

    def __init__(self, expects: Callable[[str], bool], clock: Callable[[], float] = time.monotonic) -> None:
        self._expects, self._clock = expects, clock
        self._buckets: dict[str, _Bucket] = {}

    async def turn(self, host: str) -> None:
        """Wait until the next handshake with `host` may begin."""
        while (seconds := self.wait_s(host)) > 0:  # noqa: ASYNC110  time itself is waited for
            await asyncio.sleep(seconds)

    def wait_s(self, host: str) -> float:
        """Return the seconds until the next handshake with `host` may begin."""
        bucket, per_second = self._filled(host)
        return max(0.0, (1 - bucket.left) / per_second)

    def came_to_nothing(self, host: str) -> None:
        """A handshake with `host` failed, or let in nobody who is welcome."""
        bucket, _ = self._filled(host)
        bucket.left -= 1

    def _filled(self, host: str) -> tuple[_Bucket, float]:
        """Fill a host's bucket up to now; return it, and what comes back a second."""
        key = host if self._expects(host) else OTHERS
        burst, per_second = (BURST, PER_SECOND) if key else (OTHERS_BURST, OTHERS_PER_SECOND)
        now = self._clock()
        bucket = self._buckets.pop(key, None) or _Bucket(burst, now)
        bucket.left = min(burst, bucket.left + (now - bucket.at_seconds) * per_second)
        bucket.at_seconds = now
        self._buckets[key] = bucket  # who knocked last is the last
        if len(self._buckets) > MOST_HOSTS:
            del self._buckets[next(iter(self._buckets))]
        return bucket, per_second
