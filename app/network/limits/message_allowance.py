"""How much one member may ask of this machine: more is a flood, and its link ends for a while.

Kept for the machine, not for its link: who is cut off does not begin anew by dialling again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from app.network.messages import BadMessage

BARRED_SECONDS = 60.0


class Flood(BadMessage):
    """More than a member has reason to send."""


class Kind(Enum):
    """What is counted: how much may come at once, and how much a second from then on."""

    PING = 300, 50.0  # one a second is usual
    PONG = 1_000, 100.0  # as many as we asked for
    STATUS = 40, 8.0  # a node tells changes four times a second at most
    MESSAGE = 2_000, 100.0  # the longest log has 512
    LINE = 12_288, 200.0  # of the household: the longest log three times
    FALSE_LINE = 16, 1 / 60  # nobody relays those; each costs a look at a signature
    # they rest on what is not known here: a log is sent in its order, so hardly any do
    OUTSIDE_LINE = 512, 2.0
    LINK = 60, 1.0  # that it begins: one takes the place of another, and each tells all anew

    @property
    def burst(self) -> float:
        """How many may come at once."""
        return float(self.value[0])

    @property
    def per_second(self) -> float:
        """How many may come in the long run."""
        return float(self.value[1])


@dataclass(slots=True)
class _Bucket:
    left: float
    at_seconds: float


class Allowance:
    """The allowance of one machine. `bars` is called when it has taken more."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, bars: Callable[[], None] = lambda: None) -> None:
        self._clock, self._bars = clock, bars
        self._buckets = {kind: _Bucket(kind.burst, clock()) for kind in Kind}
        self._barred_until = -math.inf

    @property
    def is_barred(self) -> bool:
        """Whether it flooded this machine a moment ago."""
        return self._clock() < self._barred_until

    def take(self, kind: Kind, n: int = 1) -> None:
        """Count what came. Raises Flood."""
        bucket, now = self._buckets[kind], self._clock()
        refilled = bucket.left + (now - bucket.at_seconds) * kind.per_second
        bucket.left, bucket.at_seconds = min(kind.burst, refilled) - n, now
        if bucket.left < 0:
            bucket.left = 0.0
            self._barred_until = now + BARRED_SECONDS
            self._bars()
            raise Flood(f"too many of {kind.name}")
