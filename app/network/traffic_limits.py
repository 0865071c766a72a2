"""Traffic limits: the owner's bandwidth limit, the time a sender may take, and the messages a member may send.

LinkPace keeps all traffic within the owner's limit, with one token bucket per direction for all links. Control
links, and therefore heartbeats, do not count. Allowance limits the messages of a member. A member that exceeds it
is treated as flooding and refused for a minute. The allowance belongs to the machine rather than to its link, so
redialing does not reset it.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

from app.network.messages import BadMessage

MAX_MANIFEST_BYTES = 16 << 20
ANSWER_BYTES = 16 << 20  # the list of a large model's missing pieces is long
STALL_SECONDS = 9.5  # without receiving a byte, so that a stall is reported within ten
START_SECONDS = 30.0  # for the first 64 KiB, each byte of which earns its share of the time beyond a stall
START_BYTES = 64 << 10
MIN_BYTES_PER_SECOND = 16 << 10
CHUNK_BYTES = 1 << 20


class TooSlow(Exception):
    """Error for a sender that is too slow."""


class TooLong(ValueError):
    """Error for a body that is longer than allowed."""


class Source(Protocol):
    """The part of an aiohttp StreamReader that is used here. `readany` returns b"" at the end of the body."""

    async def readany(self) -> bytes: ...


async def body_chunks(source: Source, clock: Callable[[], float] = time.monotonic) -> AsyncGenerator[bytes, None]:
    """Yield the bytes of a body as they arrive. Only the time spent waiting for the sender counts. Raises TooSlow."""
    received, waited_seconds = 0, 0.0
    while True:
        started = clock()
        left_seconds = allowed_seconds(received) - waited_seconds
        try:
            async with asyncio.timeout(min(STALL_SECONDS, left_seconds)):
                chunk = await source.readany()
        except TimeoutError as error:
            waited_seconds += clock() - started
            raise TooSlow(f"{received} bytes in {waited_seconds:.0f} s") from error
        if not chunk:
            return
        waited_seconds += clock() - started
        received += len(chunk)
        if waited_seconds > allowed_seconds(received):
            raise TooSlow(f"{received} bytes in {waited_seconds:.0f} s")
        yield chunk


async def whole_body(source: Source, announced: int | None, limit: int) -> bytes:
    """Read a whole body and return it. Raises TooSlow or TooLong.

    Nothing is read if the `announced` length already exceeds `limit`.
    """
    if announced is not None and announced > limit:
        raise TooLong(f"{announced} bytes announced, {limit} allowed")
    body = bytearray()
    async for chunk in body_chunks(source):
        body += chunk
        if len(body) > limit:
            raise TooLong(f"more than {limit} bytes")
    return bytes(body)


def allowed_seconds(received: int) -> float:
    """Return how many seconds a sender may take for the bytes received so far.

    A sender may take half a minute for 64 KiB, but one that sends a byte per second gets barely more time than a silent
    one.
    """
    earned = (START_SECONDS - STALL_SECONDS) * min(received, START_BYTES) / START_BYTES
    return STALL_SECONDS + earned + max(0, received - START_BYTES) / MIN_BYTES_PER_SECOND


BARRED_SECONDS = 60.0

BURST_S = 0.02  # of unused time that can be made up for; enough for a decoded token in most cases
SLICE_S = 0.02  # duration of a slice, for which other users of the same bucket have to wait
MIN_SLICE_BYTES, MAX_SLICE_BYTES = 4 << 10, 256 << 10
BYTES_OF_MBIT = 125_000


@dataclass(frozen=True, slots=True)
class Bucket:
    """A token bucket that limits traffic to `bytes_per_s`.

    At `free_at_s`, a time on a monotonic clock, all bytes taken so far will have passed.
    """

    bytes_per_s: float
    free_at_s: float = 0.0

    def taken(self, n_bytes: int, now_s: float) -> Bucket:
        """Return the bucket after taking another `n_bytes`."""
        begins_s = max(self.free_at_s, now_s - BURST_S)
        return replace(self, free_at_s=begins_s + n_bytes / self.bytes_per_s)

    def wait_s(self, now_s: float) -> float:
        """Return how long the next bytes must wait."""
        return max(0.0, self.free_at_s - now_s)

    @property
    def slice_bytes(self) -> int:
        """Return the size of the slices into which a long message is split."""
        return max(MIN_SLICE_BYTES, min(MAX_SLICE_BYTES, int(self.bytes_per_s * SLICE_S)))


THROTTLED_SECONDS = 1.0  # after the last wait, since there are gaps between slices


class Flood(BadMessage):
    """Error for a member that exceeds its allowance of messages."""


class EventKind(Enum):
    """A kind of event that counts toward a member's allowance. Its value is the maximum burst and the sustained rate
    per second."""

    PING = 300, 50.0  # usually one per second
    PONG = 1_000, 100.0  # as many as this machine requested
    STATUS = 40, 8.0  # a node reports changes at most four times per second
    MESSAGE = 2_000, 100.0  # the longest log needs 512 messages
    LINE = 12_288, 200.0  # of the household log; three times the longest log
    FALSE_LINE = 16, 1 / 60  # no honest member relays these; each costs a signature check
    # Lines that depend on operations unknown here. A log is sent in order, so there are hardly any.
    OUTSIDE_LINE = 512, 2.0
    LINK = 60, 1.0  # each new link replaces the last one and sends everything again

    @property
    def burst(self) -> float:
        """Return how many events may arrive in one burst."""
        return float(self.value[0])

    @property
    def per_second(self) -> float:
        """Return the sustained rate of events per second."""
        return float(self.value[1])


@dataclass(slots=True)
class _Bucket:
    left: float
    at_seconds: float


class Allowance:
    """The messages and other events that a member may send. `bars` is called when the member exceeds the allowance."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, bars: Callable[[], None] = lambda: None) -> None:
        self._clock, self._bars = clock, bars
        self._buckets = {kind: _Bucket(kind.burst, clock()) for kind in EventKind}
        self._barred_until = -math.inf

    @property
    def is_barred(self) -> bool:
        """Return whether the member has flooded this machine within the last minute."""
        return self._clock() < self._barred_until

    def take(self, kind: EventKind, n: int = 1) -> None:
        """Count `n` events. Raises Flood if they exceed the allowance."""
        bucket, now = self._buckets[kind], self._clock()
        refilled = bucket.left + (now - bucket.at_seconds) * kind.per_second
        bucket.left, bucket.at_seconds = min(kind.burst, refilled) - n, now
        if bucket.left < 0:
            bucket.left = 0.0
            self._barred_until = now + BARRED_SECONDS
            self._bars()
            raise Flood(f"too many of {kind.name}")


class LinkPace:
    """The owner's bandwidth limit. Traffic is unlimited until `limit` is called."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._clock, self._sleep = clock, sleep
        self._out: Bucket | None = None
        self._in: Bucket | None = None
        self._throttled_since, self._throttled_until = 0.0, -THROTTLED_SECONDS

    def limit(self, mbit_per_s: int) -> None:
        """Set the limit for each direction, or remove it if 0. Transfers that are already waiting are not affected."""
        rate = mbit_per_s * BYTES_OF_MBIT
        self._out, self._in = _with(self._out, rate), _with(self._in, rate)

    @property
    def bytes_per_s(self) -> float | None:
        """The limit for each direction, or None."""
        return self._out.bytes_per_s if self._out else None

    @property
    def slice_bytes(self) -> int:
        """Return the size of the slices into which a long message is split."""
        return self._out.slice_bytes if self._out else MAX_SLICE_BYTES

    async def wait_to_send(self, n_bytes: int) -> None:
        """Wait until `n_bytes` may be sent."""
        if self._out is not None:
            now_s = self._clock()
            waits_s, self._out = self._out.wait_s(now_s), self._out.taken(n_bytes, now_s)
            await self._wait(now_s, waits_s)

    def count_received(self, n_bytes: int) -> float:
        """Count `n_bytes` received, and return for how many seconds no more may be read."""
        if self._in is None:
            return 0.0
        now_s = self._clock()
        self._in = self._in.taken(n_bytes, now_s)
        waits_s = self._in.wait_s(now_s)
        self._note(now_s, waits_s)
        return waits_s

    async def wait_after_receiving(self, n_bytes: int) -> None:
        """Count `n_bytes` received, and wait until more may be read."""
        waits_s = self.count_received(n_bytes)
        if waits_s > 0:
            await self._sleep(waits_s)

    def throttled_s(self) -> float:
        """Return for how many seconds traffic has been throttled, or 0 if it is not. While throttled, a late answer is
        not a sign of a lost peer."""
        now_s = self._clock()
        return max(now_s - self._throttled_since, 1e-3) if self._is_throttled(now_s) else 0.0

    async def pace_sending(self, chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
        """Yield the chunks of a body, as fast as sending them is allowed."""
        async for chunk in chunks:
            if self._out is None:
                yield chunk
                continue
            left = memoryview(chunk)
            while left:
                part, left = left[: self.slice_bytes], left[self.slice_bytes :]
                await self.wait_to_send(len(part))
                yield bytes(part)

    async def pace_receiving(self, chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
        """Yield the chunks of a body, as fast as reading them is allowed."""
        async for chunk in chunks:
            await self.wait_after_receiving(len(chunk))
            yield chunk

    async def _wait(self, now_s: float, waits_s: float) -> None:
        self._note(now_s, waits_s)
        if waits_s > 0:
            await self._sleep(waits_s)

    def _note(self, now_s: float, waits_s: float) -> None:
        if waits_s <= 0:
            return
        if not self._is_throttled(now_s):
            self._throttled_since = now_s
        self._throttled_until = max(self._throttled_until, now_s + waits_s)

    def _is_throttled(self, now_s: float) -> bool:
        return now_s < self._throttled_until + THROTTLED_SECONDS


def _with(bucket: Bucket | None, bytes_per_s: float) -> Bucket | None:
    if not bytes_per_s:
        return None
    return replace(bucket, bytes_per_s=bytes_per_s) if bucket else Bucket(bytes_per_s)
