"""A frame that was sent to a run, and how the right answer to it looks."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

from backends.frames import Kind


@dataclass(slots=True)
class Sent:
    """A frame under way, oldest first in its stage's queue."""

    seq: int
    kind: Kind
    answer: asyncio.Future[bytes] | None
    expected: bytes  # how the right answer begins
    n_answer: int  # and how long it is
    table: bytes = b""  # the segments it is about
    frame: bytes = b""  # to be sent again over a new connection
    n_rows: int = 0
    prefill: bool = False
    sent_at: float = field(default_factory=time.monotonic)


NOTHING = Sent(1 << 62, Kind.STEP, None, b"", -1)  # while nothing is under way
