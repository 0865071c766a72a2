"""The throughput of one direction: chunks sent a window at a time, each answered by its own token.

An answer repeats eight random bytes of its chunk, so nobody can confirm what has not arrived. The
window follows what the link carries: a slow link is not filled for seconds, a fast one not starved.
"""

from __future__ import annotations

import bisect
import itertools
import secrets
import statistics
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from app.core.errors import Refused
from app.network.peer.channel import FrameChannel

MOST_BYTES, MOST_SECONDS = 32 << 20, 0.7  # of one direction, whichever comes first
TOKEN_BYTES = 8
LEAST_CHUNK_BYTES, MOST_CHUNK_BYTES = 4 << 10, 128 << 10
CHUNK_SECONDS = 0.005  # what a chunk shall take once the rate is known
LEAST_WINDOW_BYTES, MOST_WINDOW_BYTES = 32 << 10, 4 << 20
QUEUE_SECONDS = 0.01  # kept on the way beyond the round trip, so that the link never idles
RATE_SECONDS = 0.05  # the latest rate is taken over so much
START_SHARE = 0.3  # of the time: TCP is still growing, or a burst allowance is spent

SLICES = 9  # of the rest
LEAST_OF_MEAN = 0.25  # of even a very uneven link's rate the median is more

CHUNK, TOKEN = (b"\x03", b"\x04")  # first byte of a message; app/network/peer/probe.py has the others

Samples = Sequence[tuple[float, int]]
"""Times in seconds, and bytes that had arrived by then; both only grow."""


def rate_of(samples: Samples) -> float | None:
    """Bytes a second after the start phase; None when nothing arrived.

    The median of equal slices of time, so that one pause of a busy computer, and the catching up
    after it, do not count. Where it paused for most of the time the median says nothing.
    """
    (begun, _), (ended, total) = samples[0], samples[-1]
    if ended <= begun or not total:
        return None
    settled = begun + START_SHARE * (ended - begun)
    slice_s = (ended - settled) / SLICES
    arrived = [_arrived_by(samples, settled + n * slice_s) for n in range(SLICES + 1)]
    median = statistics.median(after - before for before, after in itertools.pairwise(arrived))
    mean = (total - arrived[0]) / SLICES
    says = median and median >= LEAST_OF_MEAN * mean
    return median / slice_s if says else total / (ended - begun)


def _arrived_by(samples: Samples, at: float) -> float:
    """Bytes at a time between samples, as if they had come evenly."""
    place = bisect.bisect_left(samples, at, key=lambda sample: sample[0])
    if place == len(samples):
        return samples[-1][1]
    (before, had), (after, has) = samples[max(0, place - 1)], samples[place]
    return has if after <= before else had + (has - had) * (at - before) / (after - before)


@dataclass(slots=True)
class _Window:
    """How much may be on the way: twice what the link holds, by the best rate and round trip so far."""

    best_rate: float = 0.0
    round_trip_s: float = 1.0
    recent: deque[tuple[float, int]] = field(default_factory=deque)

    @property
    def bytes(self) -> int:
        wanted = int(2 * self.best_rate * (self.round_trip_s + QUEUE_SECONDS))
        return max(LEAST_WINDOW_BYTES, min(MOST_WINDOW_BYTES, wanted))

    @property
    def chunk_bytes(self) -> int:
        wanted = int(self.best_rate * CHUNK_SECONDS)
        return max(LEAST_CHUNK_BYTES, min(MOST_CHUNK_BYTES, wanted))

    def arrived(self, now: float, total: int, took_s: float) -> None:
        """`total` bytes have arrived by now; the last chunk's answer `took_s`."""
        self.round_trip_s = min(self.round_trip_s, took_s)
        self.recent.append((now, total))
        while now - self.recent[0][0] > RATE_SECONDS and len(self.recent) > 2:
            self.recent.popleft()
        (then, had) = self.recent[0]
        if now - then >= self.round_trip_s / 2:
            self.best_rate = max(self.best_rate, (total - had) / (now - then))


async def pour(
    channel: FrameChannel, receive: Callable[[], Awaitable[bytes]], clock: Callable[[], float] = time.monotonic
) -> tuple[float | None, int]:
    """Send chunks within the limits; the rate (bytes/s) at which they arrived, and the bytes sent.

    `receive` gives the next message, and raises when the probe must end. Raises
    Refused("peer_speaks_oddly") for a wrong answer.
    """
    filler = secrets.token_bytes(MOST_CHUNK_BYTES)  # so that nothing on the way can compress it
    begun = clock()
    window, samples, sent, arrived = _Window(), [(begun, 0)], 0, 0
    window.recent.append((begun, 0))
    owed: deque[tuple[bytes, int, float]] = deque()
    while True:
        more = sent < MOST_BYTES and clock() - begun < MOST_SECONDS
        if more and sent - arrived < window.bytes:
            token, size = (secrets.token_bytes(TOKEN_BYTES), min(window.chunk_bytes, MOST_BYTES - sent))
            sent += size
            owed.append((token, sent, clock()))
            await channel.send(CHUNK + token + filler[:size])
        elif owed:
            token, total, sent_at = owed.popleft()
            if await receive() != TOKEN + token:
                raise Refused("peer_speaks_oddly", name="The other machine")
            arrived, now = total, clock()
            samples.append((now, arrived))
            window.arrived(now, arrived, now - sent_at)
        else:
            return rate_of(samples), sent


def answer_to(chunk: bytes) -> tuple[bytes, int]:
    """The answer to a chunk, and its bytes as `pour` counts them. Raises ValueError for what is none."""
    token, size = chunk[1 : 1 + TOKEN_BYTES], len(chunk) - 1 - TOKEN_BYTES
    if chunk[:1] != CHUNK or not 0 < size <= MOST_CHUNK_BYTES:
        raise ValueError("not a chunk")
    return TOKEN + token, size
