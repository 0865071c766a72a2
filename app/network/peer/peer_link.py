"""A link to another machine, which carries heartbeats and messages. Data connections and stages belong to it.

A link is up only after three checks: a handshake with pinned certificates, the fingerprint of a member (when
dialing, the intended member), and a HELLO answered by HELLO_ACK. See SAFETY.md 2 and 5.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import aiohttp
import msgspec
from aiohttp import web

from app.core.errors import AppError, Reason, Unreachable
from app.core.ids import MachineId, PipelineId
from app.network.messages import (
    BadMessage,
    Called,
    CallMe,
    Hello,
    HelloAck,
    Leaving,
    Message,
    Ping,
    Pong,
    Status,
    decode,
    encode,
)
from app.network.peer.frame_channel import FrameChannel
from app.network.peer.peer_client import PeerClient
from app.network.sockets import Address, LocalInterface, plain_host
from app.network.traffic_limits import Allowance, EventKind, Flood

TRY_SECONDS = 3.0  # a firewall that drops packets does not answer
ANSWER_SECONDS = 2 * TRY_SECONDS
RETRY_SECONDS = 1.0  # between two attempts at a member's request, so that it cannot use us as a port scanner

HEARTBEAT_SECONDS = 1.0
NOTICE_SECONDS = 0.25  # from detecting a dead peer until the whole node knows, so that the total is 5 s
SEND_SECONDS = 5.0
LAST_WORDS_SECONDS = 0.5
ROUND_TRIPS = 8
WORK_FRESH_SECONDS = 2.0
WAITING_MESSAGES = 256  # a peer that sends faster than we can process is disconnected
ABANDONED_SECONDS = 5.0  # between checks of abandoned paths
ROOM_SECONDS = 2.0  # longer than the burst at the start of a link, but too short to raise suspicion
Socket = web.WebSocketResponse | aiohttp.ClientWebSocketResponse
log = logging.getLogger(__name__)


class ReachabilityTest:
    """A test of whether a machine accepts connections: its peer connects back to it. Implements both sides.

    A machine connects only to the address at which its peer claims to listen.

    hears: returns whether the peer's announcements arrive here, or None if unknown.
    """

    def __init__(
        self,
        send: Callable[[Message], Awaitable[None]],
        address: Callable[[], Address],
        clock: Callable[[], float] = time.monotonic,
        hears: Callable[[], bool | None] = lambda: None,
    ) -> None:
        self._send, self._address, self._clock = send, address, clock
        self._hears = hears
        self._asked: asyncio.Future[Called] | None = None
        self._number, self._tried_at = 0, -RETRY_SECONDS

    async def ask(self) -> Called | None:
        """Ask the peer to connect back. Return its answer, or None if it did not answer."""
        if self._asked is None:
            self._asked = asyncio.get_running_loop().create_future()
            self._number += 1
        request = self._asked
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._send(CallMe(request=self._number))
                return await asyncio.shield(request)
        except (TimeoutError, Unreachable):
            return None
        finally:
            self._asked = None if self._asked is request else self._asked

    async def handle(self, message: CallMe | Called) -> None:
        match message:
            case Called(request=number):
                if self._asked and not self._asked.done() and number == self._number:
                    self._asked.set_result(message)
            case CallMe(request=number):
                reached = await self._try()
                with suppress(Unreachable):  # the link is lost, so the answer is no longer needed
                    await self._send(Called(request=number, reached=reached, hears=self._hears()))

    async def _try(self) -> bool | None:
        now = self._clock()
        if now - self._tried_at < RETRY_SECONDS:
            return None
        self._tried_at, address = now, self._address()
        try:
            async with asyncio.timeout(TRY_SECONDS):
                _, writer = await asyncio.open_connection(address.host, address.port)
        except (TimeoutError, OSError):
            return False
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        return True


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The interval between pings, and the durations of silence after which a peer is suspected and its link ends."""

    every_seconds: float = HEARTBEAT_SECONDS
    suspect_after_seconds: float = 3 * HEARTBEAT_SECONDS
    dead_after_seconds: float = 5 * HEARTBEAT_SECONDS - NOTICE_SECONDS


@dataclass(frozen=True, slots=True)
class WorkerProgress:
    """The progress of this machine's workers, sent in every PONG."""

    steps_done: int = 0
    busy_seconds: float = 0.0  # in the current step; 0 when idle


class LinkEvents(Protocol):
    """The handler of a link's events, which are reported one at a time, beginning with `connected`."""

    async def connected(self, link: PeerLink) -> None: ...
    async def message(self, link: PeerLink, message: Message) -> None: ...
    def suspect(self, link: PeerLink, doubted: bool) -> None:
        """Handle the start (`doubted`) or the end of the peer's silence."""

    def work(self) -> WorkerProgress:
        """Return the progress of this machine's workers."""


class PeerProgress:
    """The progress of the peer's workers, as reported by the peer."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.work = WorkerProgress()
        self._recorded_seconds = clock()
        self._recorded = asyncio.Event()

    def record(self, work: WorkerProgress) -> None:
        """Record the progress reported in a PONG."""
        self.work, self._recorded_seconds = work, self._clock()
        self._recorded.set()

    @property
    def computes(self) -> bool:
        """Return whether the peer recently reported that it is computing."""
        return self._clock() - self._recorded_seconds < WORK_FRESH_SECONDS and self.work.busy_seconds > 0

    async def refresh(self, ask: Callable[[], Awaitable[None]]) -> None:
        """Request the progress by calling `ask`, and wait until the peer reports it."""
        self._recorded.clear()
        await ask()
        await self._recorded.wait()


class PingTimer:
    """The round-trip times of the latest pings."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._number, self._sent_seconds = 0, clock()
        self._round_trips: deque[float] = deque(maxlen=ROUND_TRIPS)

    def start(self) -> int:
        """Start timing a new ping, and return its number."""
        self._number, self._sent_seconds = self._number % (1 << 30) + 1, self._clock()
        return self._number

    def record_answer(self, number: int) -> None:
        """Record the round-trip time if `number` is that of the latest ping. Other answers are ignored."""
        if number == self._number:
            self._round_trips.append(self._clock() - self._sent_seconds)

    @property
    def best_seconds(self) -> float | None:
        """Return the shortest recent round trip, or None before the first. Longer ones only show that a machine was
        busy."""
        return min(self._round_trips, default=None)


class Paths:
    """The network paths to a peer: the path of the control link, possibly a better one for data, and abandoned ones."""

    def __init__(self, first: PeerClient) -> None:
        self.first = self.now = first
        self.abandoned: list[PeerClient] = []  # replaced paths, some of whose connections are still in use
        self._has_abandoned = asyncio.Event()

    def use(self, client: PeerClient) -> None:
        """Use another path for new data connections and stages."""
        if self.now is not self.first:
            self.abandoned.append(self.now)
            self._has_abandoned.set()
        self.now = client

    def back_to_first(self) -> bool:
        """Switch back to the first path, since the other path may be gone. Return False if the first path was already
        in use.
        """
        if self.now is self.first:
            return False
        self.use(self.first)
        return True

    async def close_abandoned(self) -> None:
        """Close abandoned paths once nothing uses them. Runs until canceled."""
        while True:
            await self._has_abandoned.wait()
            while self.abandoned:
                for client in [idle for idle in self.abandoned if idle.is_idle]:
                    await asyncio.shield(client.close())
                    self.abandoned.remove(client)
                await asyncio.sleep(ABANDONED_SECONDS)
            self._has_abandoned.clear()

    async def close(self) -> None:
        """Close everything that was opened on any path."""
        clients = {self.first, self.now, *self.abandoned}
        await asyncio.gather(*(client.close() for client in clients))


class PeerLink:
    """A link that is up. It is created by peer_links.py and served by `run` until it ends."""

    def __init__(
        self,
        socket: Socket,
        client: PeerClient,
        theirs: Hello | HelloAck,
        named: Callable[[str], str],
        dialed: bool,
        clock: Callable[[], float] = time.monotonic,
        hears: Callable[[], bool | None] = lambda: None,
        allowance: Allowance | None = None,
    ) -> None:
        self.hello = theirs
        self._named = named  # maps an announced name to the one to display
        self.name = named(theirs.name)  # safe to display
        self._allowance = allowance or Allowance(clock)
        self.dialed = dialed  # by this side
        self.ended: Reason | None = None
        self.progress = PeerProgress(clock)
        self._pings = PingTimer(clock)
        self.up_since_seconds = clock()
        self.announced = False  # whether the owner was notified of the link
        self._leaves = False  # whether the peer has said goodbye
        self._floods = False  # whether the link was cut, so that queued messages are ignored
        self.finished = asyncio.Event()  # set when `run` has returned
        self._socket, self._clock = socket, clock
        self.paths = Paths(client)
        self.reachability = ReachabilityTest(self.send, lambda: self.address, clock, hears)
        self._heard_seconds = clock()
        self._heard = asyncio.Event()
        self._inbox: asyncio.Queue[Message] = asyncio.Queue(WAITING_MESSAGES)

    @property
    def peer(self) -> MachineId:
        """Return the id of the peer."""
        return self.paths.now.member.id

    @property
    def address(self) -> Address:
        """Return the address of the peer's port."""
        return self.paths.now.address

    @property
    def through(self) -> LocalInterface | None:
        """Return the interface chosen for data connections, or None."""
        return self.paths.now.through

    def host_session(self) -> aiohttp.ClientSession:
        """Return the HTTP session for requests to a host. Raises RuntimeError after the link has ended."""
        return self.paths.now.host_session()

    @property
    def own_host(self) -> str:
        """Return this machine's address on the link, or "" if the link is down."""
        name = self._socket.get_extra_info("sockname") or ("",)
        return plain_host(str(name[0])).partition("%")[0]

    def use(self, client: PeerClient) -> None:
        """Use another path for new data connections and stages. Existing ones stay open."""
        self.paths.use(client)

    @property
    def round_trip_seconds(self) -> float | None:
        """Return the shortest recent round trip, or None before the first."""
        return self._pings.best_seconds

    async def send(self, message: Message) -> None:
        """Send a control message. Raises Unreachable if the link is down or blocked."""
        try:
            async with asyncio.timeout(SEND_SECONDS):
                await self._socket.send_str(encode(message).decode("utf-8"))
        except (OSError, aiohttp.ClientError) as error:
            raise Unreachable("link_lost", name=self.name) from error

    async def open_data(self, pipeline: PipelineId) -> FrameChannel:
        """Open a data connection for `pipeline`. Raises Unreachable or Refused."""
        try:
            return await self.paths.now.open_data(pipeline)
        except Unreachable:
            if not self.paths.back_to_first():
                raise
        return await self.paths.now.open_data(pipeline)

    async def inquire(self) -> None:
        """Ask the peer for the progress of its workers, and wait for the answer. Raises Unreachable."""
        await self.progress.refresh(lambda: self.send(Ping(n=0)))

    def computes(self) -> bool:
        """Return whether the peer is just slow: it computed recently, or our bandwidth limit delays frames."""
        return self.progress.computes or self.paths.now.pace.throttled_s() > 0

    async def offer_stage(self, pipeline: PipelineId, body: bytes, total_bytes: int = 0) -> bytes:
        """Send a manifest (JSON) and return the answer (JSON). Raises the peer's AppError, or Unreachable.

        total_bytes: the size of all layers in the manifest. The timeout includes the time for hashing them.
        """
        try:
            return await self.paths.now.offer_stage(pipeline, body, total_bytes)
        except Unreachable:
            if not self.paths.back_to_first():
                raise
        return await self.paths.now.offer_stage(pipeline, body, total_bytes)

    async def upload_pieces(self, pipeline: PipelineId, chunks: AsyncIterator[bytes], total_bytes: int = 0) -> bytes:
        """Stream tensor bytes, preferably in chunks of 1 MiB. Return the answer (JSON). Raises the same errors as
        `offer_stage`."""
        return await self.paths.now.upload_pieces(pipeline, chunks, total_bytes)

    async def close(self, why: Reason) -> None:
        """Close the link and everything opened on it. Can be called repeatedly."""
        self.ended = self.ended or why
        try:
            await self._socket.close()  # waits at most one second for the other side's goodbye
        finally:  # even if canceled
            await asyncio.shield(self.paths.close())

    async def count_lines(self, n_lines: int, n_false: int = 0, n_outside: int = 0) -> bool:
        """Count lines of the household log against the peer's allowance. If they exceed it, cut the link and return
        False.

        n_false, n_outside: how many of the lines are false or depend on unknown operations.
        """
        try:
            self._allowance.take(EventKind.LINE, n_lines)
            self._allowance.take(EventKind.FALSE_LINE, n_false)
            self._allowance.take(EventKind.OUTSIDE_LINE, n_outside)
        except Flood as error:
            await self.cut(error)
            return False
        return True

    async def cut(self, why: Flood) -> None:
        """Cut the link to a machine that is flooding this one."""
        if self._floods:
            return
        self._floods = True
        log.warning("%s is flooding this machine: %s", self.name, why)
        self.ended = self.ended or Reason("peer_floods", {"name": self.name})
        await asyncio.shield(self.paths.first.close())  # without a goodbye, which would have to be awaited
        await self.close(self.ended)

    async def answers_within(self, seconds: float) -> bool:
        """Ping the peer, and return whether anything arrives from it within `seconds`."""
        self._heard.clear()
        await self._ask(0, seconds / 4)
        try:
            async with asyncio.timeout(seconds):
                await self._heard.wait()
        except TimeoutError:
            return False
        return True

    async def run(self, owner: LinkEvents, heartbeat: Heartbeat) -> None:
        """Serve the link until it ends; `ended` then has the reason. A handler that is still running is canceled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                helpers = (
                    tasks.create_task(self._beat(owner, heartbeat), name=f"beat {self.name}"),
                    tasks.create_task(self._deliver(owner), name=f"deliver {self.name}"),
                    tasks.create_task(self.paths.close_abandoned(), name=f"left paths to {self.name}"),
                )
                await self._read(owner)
                with suppress(TimeoutError):  # for last messages, such as our removal or the peer's goodbye
                    async with asyncio.timeout(LAST_WORDS_SECONDS):
                        await self._inbox.join()
                for helper in helpers:
                    helper.cancel()
        finally:
            await self.close(self._end())
            self.finished.set()

    def _end(self) -> Reason:
        """Return the reason to use for the end of a link if no other reason is known."""
        return Reason("shutting_down") if self._leaves else Reason("link_lost", {"name": self.name})

    async def _read(self, owner: LinkEvents) -> None:
        try:
            while self.ended is None:
                message = await receive(self._socket)
                if message is None:
                    return
                self._heard_seconds = self._clock()
                self._heard.set()
                await self._sort(message, owner)
        except Flood as error:
            await self.cut(error)
        except BadMessage as error:
            log.warning("%s sent an invalid message: %s", self.name, error)
            await self.close(Reason("peer_speaks_oddly", {"name": self.name}))
        except (AppError, OSError, aiohttp.ClientError) as error:
            log.info("link to %s: %s", self.name, error)

    async def _sort(self, message: Message, owner: LinkEvents) -> None:
        match message:
            case Ping(n=n):
                self._allowance.take(EventKind.PING)
                now = owner.work()
                busy_s = max(now.busy_seconds, self.paths.now.pace.throttled_s())  # both make this machine slow
                pong = Pong(n=n, steps_done=now.steps_done, busy_seconds=busy_s)
                await self.send(pong)
            case Pong():
                self._allowance.take(EventKind.PONG)
                self._pings.record_answer(message.n)
                self.progress.record(WorkerProgress(message.steps_done, message.busy_seconds))
            case Hello() | HelloAck():
                raise BadMessage("a second greeting")
            case _:
                self._allowance.take(EventKind.STATUS if isinstance(message, Status) else EventKind.MESSAGE)
                self._leaves = self._leaves or isinstance(message, Leaving)
                if isinstance(message, Status):  # the machine may have a new name
                    self.hello = msgspec.structs.replace(self.hello, name=message.name)
                    self.name = self._named(message.name)
                try:
                    async with asyncio.timeout(ROOM_SECONDS):
                        await self._inbox.put(message)
                except TimeoutError:
                    raise BadMessage("more messages than can be processed") from None

    async def _deliver(self, owner: LinkEvents) -> None:
        """Deliver messages one at a time. Handling a message may take long, so heartbeats do not wait for it."""
        if self.ended is not None:
            return  # the link was replaced before it began, and its end has been reported
        self.announced = True
        try:
            await owner.connected(self)
        except Unreachable as error:  # the link ended while coming up, and another one will follow
            log.info("link to %s: %s", self.name, error)
            await self.close(self._end())
            return
        while True:
            message = await self._inbox.get()
            try:
                if self._floods:  # processing the rest of the flood would delay the end of the link
                    continue
                if isinstance(message, CallMe | Called):
                    await self.reachability.handle(message)
                else:
                    await owner.message(self, message)
            except Exception:  # top of a task: one bad message must not end the link
                log.exception("%s from %s", type(message).__name__, self.name)
            finally:
                self._inbox.task_done()

    async def _ask(self, n: int, within_seconds: float) -> None:
        """Send a ping. The answer to number 0 is not timed."""
        with suppress(TimeoutError, Unreachable):  # only the silence matters
            async with asyncio.timeout(within_seconds):
                await self.send(Ping(n=n))

    async def _beat(self, owner: LinkEvents, beat: Heartbeat) -> None:
        """Send pings and watch for silence. Wakes up in time to declare the peer dead when that is due."""
        doubted = False
        while True:
            silent_seconds = self._clock() - self._heard_seconds
            if silent_seconds >= beat.dead_after_seconds:
                await self.close(Reason("peer_stopped", {"name": self.name}))
                return
            if doubted != (silent_seconds >= beat.suspect_after_seconds):
                doubted = not doubted
                owner.suspect(self, doubted)
            # Anything received proves that the peer is alive. So usually the two sides ping in turns, and an idle
            # household causes little traffic.
            if silent_seconds >= beat.every_seconds or self._pings.best_seconds is None:
                await self._ask(self._pings.start(), beat.every_seconds / 4)
            dies_in_seconds = self._heard_seconds + beat.dead_after_seconds - self._clock()
            await self._pause(max(0.0, min(beat.every_seconds, dies_in_seconds)), beat)

    async def _pause(self, seconds: float, beat: Heartbeat) -> None:
        """Sleep. If this takes far too long, this machine was suspended, and the excess does not count as silence."""
        asleep_seconds = self._clock()
        await asyncio.sleep(seconds)
        held_up_seconds = self._clock() - asleep_seconds - seconds
        if held_up_seconds > beat.every_seconds:
            self._heard_seconds += held_up_seconds


async def receive(socket: Socket) -> Message | None:
    """Return the next message, or None if the link has ended. Raises BadMessage."""
    got = await socket.receive()
    if got.type is aiohttp.WSMsgType.TEXT:
        return decode(got.data.encode("utf-8", "surrogatepass"))
    if got.type is aiohttp.WSMsgType.BINARY:
        raise BadMessage("binary on the control link")
    if got.type is aiohttp.WSMsgType.ERROR:
        raise BadMessage(str(got.data))
    return None
