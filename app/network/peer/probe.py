"""Measurement of a link over a separate peer connection, including TLS: round trips, and throughput each way.

This module implements both sides. The first byte of a message is its type. The measuring side sends ECHO messages,
then chunks, then GIVE, and then receives chunks until DONE, which also describes the other side's interface. All
figures are measured locally and never taken from the other side. Either side can send BUSY at any time, which means
that it has work to do and ends the probe.

To measure throughput, a window of chunks is kept in flight. Each answer repeats eight random bytes of its chunk, so
nobody can confirm data that has not arrived. The window adapts to the link: a slow link is not congested for
seconds, and a fast one is never idle.
"""

from __future__ import annotations

import asyncio
import bisect
import itertools
import logging
import re
import secrets
import statistics
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from app.core.errors import Busy, Reason, Refused, Unreachable
from app.core.household.link import LinkEnd, LinkKind
from app.core.household.membership import Member
from app.core.ids import MachineId
from app.network.peer.frame_channel import FrameChannel

MAX_BYTES, MAX_SECONDS = 32 << 20, 0.7  # limits per direction, whichever is reached first
TOKEN_BYTES = 8
MIN_CHUNK_BYTES, MAX_CHUNK_BYTES = 4 << 10, 128 << 10
CHUNK_SECONDS = 0.005  # target duration of a chunk once the rate is known
MIN_WINDOW_BYTES, MAX_WINDOW_BYTES = 32 << 10, 4 << 20
QUEUE_SECONDS = 0.01  # of data in flight beyond the round trip, so that the link is never idle
RATE_SECONDS = 0.05  # period over which the current rate is measured
START_SHARE = 0.3  # of the total time, in which TCP ramps up and burst allowances are used up

SLICES = 9  # into which the time after the start phase is divided
MIN_SHARE_OF_MEAN = 0.25  # a median below this share of the mean is meaningless

CHUNK, TOKEN = (b"\x03", b"\x04")  # first byte of a message; the other types are below

Samples = Sequence[tuple[float, int]]
"""Times in seconds and the bytes that had arrived by then. Both only increase."""

ROUND_TRIPS, UNCOUNTED = 30, 3  # the first few only wake the radio and fill caches
MIN_ROUND_TRIPS, ROUND_TRIPS_SECONDS = 8, 0.8
ECHO_BYTES = 48  # the size of a frame header with one segment
SILENT_SECONDS = 3.0  # time limit for an expected message
MAX_PROBE_SECONDS = 10.0  # time limit for a whole probe, whatever the other side does
MAX_ECHOES = 2 * (ROUND_TRIPS + UNCOUNTED)
MINUTE_SECONDS = 60.0
MAX_BYTES_PER_MINUTE = 8 * MAX_BYTES  # that this machine sends for the probes of one member
MIN_COUNTED_BYTES = MAX_BYTES // 4  # minimum that a probe counts, so that there cannot be dozens of small ones
PROBE_PATH = "probe/1"  # the number is the protocol version; a peer with another version answers "not found"
MAX_PROBE_BYTES = 1 + TOKEN_BYTES + MAX_CHUNK_BYTES  # per message
MAX_END_BYTES, MAX_SPEED_DIGITS = 96, 13
NAMED = re.compile(r"[A-Za-z0-9._:() -]{1,40}")  # allows the interface names of all systems; for display only
ECHO, GIVE, DONE, BUSY = b"\x01", b"\x05", b"\x06", b"\x07"
log = logging.getLogger(__name__)
Result = TypeVar("Result")
OpenChannel = Callable[[], Awaitable[FrameChannel]]
Measurement = Callable[[FrameChannel, str], Awaitable[Result]]
DescribeEnd = Callable[[str, str], LinkEnd]
"""Returns our interface behind a connection, given both its addresses, ours first."""


def rate_of(samples: Samples) -> float | None:
    """Return the bytes per second after the start phase, or None if nothing arrived.

    This is the median over equal time slices, which is not affected by a pause of a busy computer and the burst
    after it. If the computer paused most of the time, the median is meaningless, and the mean is returned instead.
    """
    (begun, _), (ended, total) = samples[0], samples[-1]
    if ended <= begun or not total:
        return None
    settled = begun + START_SHARE * (ended - begun)
    slice_s = (ended - settled) / SLICES
    arrived = [_arrived_by(samples, settled + n * slice_s) for n in range(SLICES + 1)]
    median = statistics.median(after - before for before, after in itertools.pairwise(arrived))
    mean = (total - arrived[0]) / SLICES
    is_meaningful = median and median >= MIN_SHARE_OF_MEAN * mean
    return median / slice_s if is_meaningful else total / (ended - begun)


def _arrived_by(samples: Samples, at: float) -> float:
    """Return how many bytes had arrived at time `at`, interpolated linearly between samples."""
    place = bisect.bisect_left(samples, at, key=lambda sample: sample[0])
    if place == len(samples):
        return samples[-1][1]
    (before, had), (after, has) = samples[max(0, place - 1)], samples[place]
    return has if after <= before else had + (has - had) * (at - before) / (after - before)


@dataclass(slots=True)
class _Window:
    """The bytes that may be in flight: twice the link's capacity, based on the best rate and round trip so far."""

    best_rate: float = 0.0
    round_trip_s: float = 1.0
    recent: deque[tuple[float, int]] = field(default_factory=deque)

    @property
    def bytes(self) -> int:
        window = int(2 * self.best_rate * (self.round_trip_s + QUEUE_SECONDS))
        return max(MIN_WINDOW_BYTES, min(MAX_WINDOW_BYTES, window))

    @property
    def chunk_bytes(self) -> int:
        chunk = int(self.best_rate * CHUNK_SECONDS)
        return max(MIN_CHUNK_BYTES, min(MAX_CHUNK_BYTES, chunk))

    def arrived(self, now: float, total: int, took_s: float) -> None:
        """Record that `total` bytes have arrived by `now`, and that the answer to the last chunk took `took_s`."""
        self.round_trip_s = min(self.round_trip_s, took_s)
        self.recent.append((now, total))
        while now - self.recent[0][0] > RATE_SECONDS and len(self.recent) > 2:
            self.recent.popleft()
        (then, had) = self.recent[0]
        if now - then >= self.round_trip_s / 2:
            self.best_rate = max(self.best_rate, (total - had) / (now - then))


async def send_chunks(
    channel: FrameChannel, receive: Callable[[], Awaitable[bytes]], clock: Callable[[], float] = time.monotonic
) -> tuple[float | None, int]:
    """Send chunks as the window allows. Return the rate at which they arrived (bytes/s) and the number of bytes sent.

    Raises Refused if an answer is wrong.

    receive: returns the next message, and raises if the probe must end.
    """
    filler = secrets.token_bytes(MAX_CHUNK_BYTES)  # random, so that nothing along the path can compress it
    begun = clock()
    window, samples, sent, arrived = _Window(), [(begun, 0)], 0, 0
    window.recent.append((begun, 0))
    owed: deque[tuple[bytes, int, float]] = deque()
    while True:
        more = sent < MAX_BYTES and clock() - begun < MAX_SECONDS
        if more and sent - arrived < window.bytes:
            token, size = (secrets.token_bytes(TOKEN_BYTES), min(window.chunk_bytes, MAX_BYTES - sent))
            sent += size
            owed.append((token, sent, clock()))
            await channel.send(CHUNK + token + filler[:size])
        elif owed:
            token, total, sent_at = owed.popleft()
            if await receive() != TOKEN + token:
                raise Refused("peer_speaks_oddly", name=Reason("other_machine"))
            arrived, now = total, clock()
            samples.append((now, arrived))
            window.arrived(now, arrived, now - sent_at)
        else:
            return rate_of(samples), sent


def answer_to(chunk: bytes) -> tuple[bytes, int]:
    """Return the answer to a chunk, and its size as `send_chunks` counts it. Raises ValueError if it is not a chunk."""
    token, size = chunk[1 : 1 + TOKEN_BYTES], len(chunk) - 1 - TOKEN_BYTES
    if chunk[:1] != CHUNK or not 0 < size <= MAX_CHUNK_BYTES:
        raise ValueError("not a chunk")
    return TOKEN + token, size


@dataclass(frozen=True, slots=True)
class RoundTrips:
    """The round-trip times of a small message."""

    median_s: float
    p95_s: float
    jitter_s: float  # mean difference between consecutive round trips


@dataclass(frozen=True, slots=True)
class Measured:
    """The result of a probe. Throughput counts only the payload."""

    round_trips: RoundTrips
    out_bytes_per_s: float
    in_bytes_per_s: float
    far: LinkEnd  # the other end's interface, as reported by that end


def encode_end(end: LinkEnd) -> bytes:
    """Encode a description of our end of the link for the other side: its kind, speed and name."""
    return f"{end.kind} {end.negotiated_bits_per_s or 0} {end.interface}".encode()[:MAX_END_BYTES]


def decode_end(text: bytes) -> LinkEnd:
    """Decode the other side's description of its end, and sanitize it for display. Invalid parts become unknown."""
    kind, _, rest = text[:MAX_END_BYTES].decode("ascii", "replace").partition(" ")
    speed, _, name = rest.partition(" ")
    known = {str(link_kind): link_kind for link_kind in LinkKind}
    bits = int(speed) if speed.isdecimal() and len(speed) <= MAX_SPEED_DIGITS else 0
    shown = name if NAMED.fullmatch(name) else ""
    return LinkEnd(known.get(kind, LinkKind.UNKNOWN), shown, bits or None)


def round_trips_of(seconds: Sequence[float]) -> RoundTrips:
    """Return the statistics of at least two consecutive round trips. The percentile uses the nearest-rank method."""
    ranked = sorted(seconds)
    p95 = ranked[-(-95 * len(ranked) // 100) - 1]
    steps = [abs(after - before) for before, after in itertools.pairwise(seconds)]
    return RoundTrips(statistics.median(ranked), p95, statistics.fmean(steps))


class Probes:
    """The probes of a node. Only one runs at a time, and none while `busy()` returns true."""

    def __init__(
        self, busy: Callable[[], bool], end_of: DescribeEnd, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._busy, self._end_of, self._clock = busy, end_of, clock
        self._active = False
        self._poured = 0  # bytes sent by the probe being served
        # start time of each probe, and the bytes sent for it
        self._given: dict[MachineId, deque[tuple[float, int]]] = {}

    @property
    def is_busy(self) -> bool:
        """Return whether this machine has work to do that a measurement would disturb."""
        return self._busy()

    async def measure(self, open_channel: OpenChannel, name: str) -> Measured:
        """Measure the link to the machine `name` over a probe channel. Takes up to about 3 s.

        Raises Busy as soon as either end has work to do, Unreachable if the other side is silent, and Refused if it
        violates the protocol or does not support probes.
        """
        return await self._alone(open_channel, name, self._measured)

    async def round_trips(self, open_channel: OpenChannel, name: str) -> RoundTrips:
        """Measure only the round trips, with a few kilobytes. Raises the same errors as `measure`."""
        return await self._alone(open_channel, name, self._round_trips)

    async def _alone(self, open_channel: OpenChannel, name: str, work: Measurement[Result]) -> Result:
        if self._active or self.is_busy:
            raise Busy("probe_busy_here")
        self._active = True
        try:
            async with asyncio.timeout(MAX_PROBE_SECONDS):
                channel = await open_channel()
                try:
                    return await work(channel, name)
                finally:
                    await channel.close()
        except TimeoutError:
            raise Unreachable("probe_silent", name=name) from None
        finally:
            self._active = False

    async def serve(self, member: Member, channel: FrameChannel, ends: tuple[str, str]) -> None:
        """Answer a member's probe, within the limits for each member. The caller closes the channel.

        ends: the two addresses of the connection, ours first.
        """
        sent = self._given_lately(member.id)
        most = MAX_BYTES_PER_MINUTE - sum(size for _, size in sent)
        if self._active or self._busy() or most < MAX_BYTES:
            await channel.send(BUSY)
            return
        self._active = True
        begun, self._poured = self._clock(), 0
        try:
            async with asyncio.timeout(MAX_PROBE_SECONDS):
                await self._served(channel, self._end_of(*ends))
        except Busy:
            await channel.send(BUSY)
        except (TimeoutError, ValueError) as error:
            log.info("the probe by %s was aborted: %s", member.name, str(error) or "too long")
        finally:
            self._active = False
            sent.append((begun, max(self._poured, MIN_COUNTED_BYTES)))

    async def _measured(self, channel: FrameChannel, name: str) -> Measured:
        async def receive() -> bytes:
            return await self._received(channel, name)

        round_trips = await self._round_trips(channel, name)
        out, _ = await send_chunks(channel, receive)
        await channel.send(GIVE)
        back, far = await self._absorbed(channel, receive, name)
        if out is None or back is None:
            raise Unreachable("probe_silent", name=name)
        return Measured(round_trips, out, back, far)

    async def _round_trips(self, channel: FrameChannel, name: str) -> RoundTrips:
        """Measure echoes one at a time. A slow link gets fewer, but at least eight."""
        seconds: list[float] = []
        begun = self._clock()
        while len(seconds) < ROUND_TRIPS + UNCOUNTED:
            late = self._clock() - begun > ROUND_TRIPS_SECONDS
            if late and len(seconds) >= MIN_ROUND_TRIPS + UNCOUNTED:
                break
            echo = ECHO + secrets.token_bytes(ECHO_BYTES - 1)
            sent_at = self._clock()
            await channel.send(echo)
            if await self._received(channel, name) != echo:
                raise Refused("peer_speaks_oddly", name=name)
            seconds.append(self._clock() - sent_at)
        return round_trips_of(seconds[UNCOUNTED:])

    async def _absorbed(
        self, channel: FrameChannel, receive: Callable[[], Awaitable[bytes]], name: str
    ) -> tuple[float | None, LinkEnd]:
        """Receive and answer chunks until DONE. Return their rate and the description of the other end."""
        samples, total = [(self._clock(), 0)], 0
        while (message := await receive())[:1] != DONE:
            try:
                answer, size = answer_to(message)
            except ValueError:
                raise Refused("peer_speaks_oddly", name=name) from None
            total += size
            if total > MAX_BYTES:
                raise Refused("peer_speaks_oddly", name=name)
            samples.append((self._clock(), total))
            await channel.send(answer)
        return rate_of(samples), decode_end(message[1:])

    async def _served(self, channel: FrameChannel, end: LinkEnd) -> None:
        """Answer echoes and chunks until GIVE, then send chunks. Raises Busy or ValueError."""
        echoes = received = 0
        while True:
            message = await self._received(channel, "")
            if message[:1] == ECHO and len(message) == ECHO_BYTES and echoes < MAX_ECHOES:
                echoes += 1
                await channel.send(message)
            elif message[:1] == CHUNK:
                answer, size = answer_to(message)
                received += size
                if received > MAX_BYTES:
                    raise ValueError("more bytes than a probe may send")
                await channel.send(answer)
            elif message == GIVE:
                self._poured = MAX_BYTES  # until the number is known; an interrupted probe counts in full
                _, self._poured = await send_chunks(channel, lambda: self._received(channel, ""))
                await channel.send(DONE + encode_end(end))
                return
            else:
                raise ValueError("not a probe message")

    async def _received(self, channel: FrameChannel, name: str) -> bytes:
        """Return the next message. Raises Busy if either end has work to do, and Unreachable after a silence."""
        self._stop_for_work(name)
        try:
            async with asyncio.timeout(SILENT_SECONDS):
                message = await channel.receive()
        except TimeoutError:
            raise Unreachable("probe_silent", name=name) from None
        self._stop_for_work(name)
        if message == BUSY:
            raise Busy("probe_busy", name=name)
        return message

    def _stop_for_work(self, name: str) -> None:
        if self._busy():
            raise Busy("probe_busy_here")

    def _given_lately(self, member: MachineId) -> deque[tuple[float, int]]:
        sent = self._given.setdefault(member, deque())
        while sent and self._clock() - sent[0][0] > MINUTE_SECONDS:
            sent.popleft()
        return sent
