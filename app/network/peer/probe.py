"""Measures one link over a peer connection of its own, TLS and all: round trips, throughput each way.

Both sides are here. A message's first byte is its kind. The asking side sends ECHOs, then chunks
(app/network/probe/throughput_test.py), then GIVE, and gets chunks until DONE, which says what the other end's interface
is.
All figures are measured at the own end; the other side's word is never taken for them.
BUSY may come at any time: there is work, and the probe is over.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import re
import secrets
import statistics
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from app.core.errors import Busy, Refused, Unreachable
from app.core.household.link import End, LinkKind
from app.core.household.membership import Member
from app.core.ids import MachineId
from app.network.peer.channel import FrameChannel
from app.network.probe.throughput_test import CHUNK, MOST_BYTES, MOST_CHUNK_BYTES, TOKEN_BYTES, answer_to, pour, rate_of

ROUND_TRIPS, UNCOUNTED = 30, 3  # the first ones wake the radio and fill caches
LEAST_ROUND_TRIPS, ROUND_TRIPS_SECONDS = 8, 0.8
ECHO_BYTES = 48  # as the header of a frame with one segment
SILENT_SECONDS = 3.0  # without a message that is due
LONGEST_SECONDS = 10.0  # a probe, whatever the other side does
MOST_ECHOES = 2 * (ROUND_TRIPS + UNCOUNTED)
MINUTE_SECONDS = 60.0
MOST_BYTES_A_MINUTE = 8 * MOST_BYTES  # sent for one member's probes
LEAST_COUNTED_BYTES = MOST_BYTES // 4  # a probe counts so much, so that they cannot come in dozens
PROBE_PATH = "probe/1"  # the number is the protocol's: who knows another one answers "not found"
MAX_PROBE_BYTES = 1 + TOKEN_BYTES + MOST_CHUNK_BYTES  # of one message

MOST_END_BYTES, MOST_SPEED_DIGITS = 96, 13
NAMED = re.compile(r"[A-Za-z0-9._:() -]{1,40}")  # interfaces of all systems; a name is shown only

ECHO, GIVE, DONE, BUSY = b"\x01", b"\x05", b"\x06", b"\x07"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RoundTrips:
    """How long a small message takes there and back."""

    median_s: float
    p95_s: float
    jitter_s: float  # mean difference between neighbouring ones


@dataclass(frozen=True, slots=True)
class Measured:
    """What one probe found. Bytes a second are of payload."""

    round_trips: RoundTrips
    out_bytes_per_s: float
    in_bytes_per_s: float
    far: End  # the other end's interface, as it says


Found = TypeVar("Found")
Opening = Callable[[], Awaitable[FrameChannel]]
Asking = Callable[[FrameChannel, str], Awaitable[Found]]
EndOf = Callable[[str, str], End]
"""Our interface behind a connection, by both its addresses, ours first."""


def said_of(end: End) -> bytes:
    """An end as the other side hears it: kind, speed of the card, name."""
    return f"{end.kind} {end.negotiated_bits_per_s or 0} {end.interface}".encode()[:MOST_END_BYTES]


def end_said(told: bytes) -> End:
    """The other side's word, fit to be shown; what cannot be is unknown."""
    kind, _, rest = told[:MOST_END_BYTES].decode("ascii", "replace").partition(" ")
    speed, _, name = rest.partition(" ")
    known = {str(one): one for one in LinkKind}
    bits = int(speed) if speed.isdecimal() and len(speed) <= MOST_SPEED_DIGITS else 0
    shown = name if NAMED.fullmatch(name) else ""
    return End(known.get(kind, LinkKind.UNKNOWN), shown, bits or None)


def round_trips_of(seconds: Sequence[float]) -> RoundTrips:
    """The figures of at least two round trips, in their order; the percentile by nearest rank."""
    ranked = sorted(seconds)
    p95 = ranked[-(-95 * len(ranked) // 100) - 1]
    steps = [abs(after - before) for before, after in itertools.pairwise(seconds)]
    return RoundTrips(statistics.median(ranked), p95, statistics.fmean(steps))


class Probes:
    """All probes of one node: at most one at a time, none while `busy()` says that there is work."""

    def __init__(self, busy: Callable[[], bool], end_of: EndOf, clock: Callable[[], float] = time.monotonic) -> None:
        self._busy, self._end_of, self._clock = busy, end_of, clock
        self._active = False
        self._poured = 0  # bytes sent by the probe that is served
        self._given: dict[MachineId, deque[tuple[float, int]]] = {}  # when, and bytes sent

    @property
    def is_barred(self) -> bool:
        """Whether there is work here that a measurement would disturb."""
        return self._busy()

    async def measure(self, open_channel: Opening, name: str) -> Measured:
        """Measure the link to machine `name` behind a probe channel. Takes up to about 3 s.

        Raises Busy when there is work at either end, at once when it begins; Unreachable when the
        other side is silent; Refused when it breaks the rules or knows no probes.
        """
        return await self._alone(open_channel, name, self._measured)

    async def round_trips(self, open_channel: Opening, name: str) -> RoundTrips:
        """Only the round trips, in some kilobytes. Raises as `measure`."""
        return await self._alone(open_channel, name, self._round_trips)

    async def _alone(self, open_channel: Opening, name: str, work: Asking[Found]) -> Found:
        if self._active or self.is_barred:
            raise Busy("probe_busy_here")
        self._active = True
        try:
            async with asyncio.timeout(LONGEST_SECONDS):
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
        """Answer a member's probe, within the limits for one member. The caller closes the channel.

        `ends`: the addresses of the connection, ours first.
        """
        given = self._given_lately(member.id)
        most = MOST_BYTES_A_MINUTE - sum(size for _, size in given)
        if self._active or self._busy() or most < MOST_BYTES:
            await channel.send(BUSY)
            return
        self._active = True
        begun, self._poured = self._clock(), 0
        try:
            async with asyncio.timeout(LONGEST_SECONDS):
                await self._served(channel, self._end_of(*ends))
        except Busy:
            await channel.send(BUSY)
        except (TimeoutError, ValueError) as error:
            log.info("the probe of %s was ended: %s", member.name, str(error) or "too long")
        finally:
            self._active = False
            given.append((begun, max(self._poured, LEAST_COUNTED_BYTES)))

    async def _measured(self, channel: FrameChannel, name: str) -> Measured:
        async def receive() -> bytes:
            return await self._received(channel, name)

        round_trips = await self._round_trips(channel, name)
        out, _ = await pour(channel, receive)
        await channel.send(GIVE)
        back, far = await self._absorbed(channel, receive, name)
        if out is None or back is None:
            raise Unreachable("probe_silent", name=name)
        return Measured(round_trips, out, back, far)

    async def _round_trips(self, channel: FrameChannel, name: str) -> RoundTrips:
        """Echoes one after the other; on a slow link fewer, but never fewer than eight."""
        found: list[float] = []
        begun = self._clock()
        while len(found) < ROUND_TRIPS + UNCOUNTED:
            late = self._clock() - begun > ROUND_TRIPS_SECONDS
            if late and len(found) >= LEAST_ROUND_TRIPS + UNCOUNTED:
                break
            echo = ECHO + secrets.token_bytes(ECHO_BYTES - 1)
            sent_at = self._clock()
            await channel.send(echo)
            if await self._received(channel, name) != echo:
                raise Refused("peer_speaks_oddly", name=name)
            found.append(self._clock() - sent_at)
        return round_trips_of(found[UNCOUNTED:])

    async def _absorbed(
        self, channel: FrameChannel, receive: Callable[[], Awaitable[bytes]], name: str
    ) -> tuple[float | None, End]:
        """Take and answer chunks until DONE; the rate at which they came, and what it says."""
        samples, total = [(self._clock(), 0)], 0
        while (message := await receive())[:1] != DONE:
            try:
                answer, size = answer_to(message)
            except ValueError:
                raise Refused("peer_speaks_oddly", name=name) from None
            total += size
            if total > MOST_BYTES:
                raise Refused("peer_speaks_oddly", name=name)
            samples.append((self._clock(), total))
            await channel.send(answer)
        return rate_of(samples), end_said(message[1:])

    async def _served(self, channel: FrameChannel, end: End) -> None:
        """Echo and answer until GIVE, then pour. Raises Busy, ValueError."""
        echoes = received = 0
        while True:
            message = await self._received(channel, "")
            if message[:1] == ECHO and len(message) == ECHO_BYTES and echoes < MOST_ECHOES:
                echoes += 1
                await channel.send(message)
            elif message[:1] == CHUNK:
                answer, size = answer_to(message)
                received += size
                if received > MOST_BYTES:
                    raise ValueError("more bytes than a probe may have")
                await channel.send(answer)
            elif message == GIVE:
                self._poured = MOST_BYTES  # until it is known: a broken probe counts whole
                _, self._poured = await pour(channel, lambda: self._received(channel, ""))
                await channel.send(DONE + said_of(end))
                return
            else:
                raise ValueError("not of a probe")

    async def _received(self, channel: FrameChannel, name: str) -> bytes:
        """The next message. Raises Busy when work began at either end, Unreachable after a silence."""
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
        given = self._given.setdefault(member, deque())
        while given and self._clock() - given[0][0] > MINUTE_SECONDS:
            given.popleft()
        return given
