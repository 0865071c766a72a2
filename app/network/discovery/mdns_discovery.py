"""Announces this machine on its networks and hears the others, by mDNS. Nothing heard is trusted.

    discovery = Discovery(id16, port, told=..., is_member=...)
    discovery.use(("192.168.1.20",))
    await discovery.run()      # until cancelled; then it says goodbye

No daemon of the system is needed, and one that runs (Avahi, Bonjour) is not disturbed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import zeroconf
from zeroconf import DNSOutgoing, DNSQuestion
from zeroconf.asyncio import AsyncServiceInfo, AsyncZeroconf

from app.core.errors import Reason
from app.core.household.household import Gone, Seen
from app.network.discovery.announcement import SERVICE, Said, instance_of, properties, server_of
from app.network.discovery.announcement_cache import Hearing
from app.network.messages import PROTOCOL

QUERY, TYPE_PTR, CLASS_IN = 0x0000, 12, 1  # RFC 1035 4.1.1, 3.2.2, 3.2.4
FIRST_QUESTIONS_SECONDS = (0.02, 1.0, 3.0)  # after the start, a wake-up or a new address
SPREAD_SECONDS = 0.1  # so that machines that start together do not ask together
REFRESH_SECONDS, REFRESH_SPREAD_SECONDS = 50.0, 10.0  # records of others live for 120 s
QUESTIONS_APART_SECONDS = 10.0
BURST_SECONDS = 0.2  # what is heard within it is told together
TICK_SECONDS = 2.0
STOOD_STILL_SECONDS = 6.0  # this computer slept, or its clock was set
AGAIN_SECONDS = 10.0  # until the port is tried again
ITSELF_SECONDS = 8.0  # our own announcement comes back within milliseconds, if multicast works

log = logging.getLogger(__name__)


class Discovery:
    """See the module. `told` hears of everybody but this machine; it must not wait."""

    def __init__(
        self,
        id16: str,
        port: int,
        told: Callable[[Seen | Gone], None],
        is_member: Callable[[str], bool],
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._id16, self._port, self._told = id16, port, told
        self._clock, self._wall_clock = clock, wall_clock
        self._news = asyncio.Event()
        self.hearing = Hearing(id16, port, is_member, clock, self._news.set)
        self._lag = int(id16[:4], 16) / 0xFFFF  # 0 … 1, another one on each machine
        self._said = Said(PROTOCOL)
        self._addresses: tuple[str, ...] = ()
        self._spoken_at: tuple[str, ...] = ()
        self._announced: tuple[Said, tuple[str, ...], tuple[str, ...]] | None = None
        self._zeroconf: AsyncZeroconf | None = None
        self._announced_seconds = self._tried_seconds = float("-inf")
        self._questions: list[float] = []  # when to ask next, whatever was heard
        self._asked_seconds = clock()
        self._failure: Reason | None = None

    def use(self, addresses: Sequence[str], speak_at: Sequence[str] | None = None) -> None:
        """Where others reach this machine from now on, and on which of these addresses to speak.

        One `speak_at` an interface is enough; without, on all. None at all: silence.
        """
        self._addresses = tuple(addresses)
        self._spoken_at = self._addresses if speak_at is None else tuple(speak_at)
        self.hearing.use(self._addresses)
        self._news.set()

    def window(self, name: str | None, pairing_port: int | None, system: str = "", device: str = "") -> None:
        """A pairing window is open as `name`, or closed (None): only then is the name announced, with what
        this machine is."""
        self._said = Said(PROTOCOL, name, pairing_port, system or None, device or None)
        self._news.set()

    @property
    def has_listened(self) -> bool:
        """Whether it spoke long enough ago that whoever is near was heard, and nothing is in the way here."""
        waited = self._clock() - self._announced_seconds > ITSELF_SECONDS
        return self._zeroconf is not None and waited and self.trouble is None

    @property
    def trouble(self) -> Reason | None:
        """Why others cannot be found, or not well; None while all is well."""
        if not self._spoken_at:
            return Reason("discovery_no_network")
        if self._failure is not None:
            return self._failure
        if (address := self.hearing.copied_at) is not None:
            return Reason("discovery_identity_copied", {"address": address})
        heard = self.hearing.itself_seconds
        silent = heard is None or heard < self._announced_seconds
        waited = self._clock() - self._announced_seconds > ITSELF_SECONDS
        if self._zeroconf is not None and silent and waited:
            return Reason("discovery_no_multicast")
        return None

    async def run(self) -> None:
        """Announce and listen until cancelled."""
        seen_wall, seen = self._wall_clock(), self._clock()
        try:
            async with asyncio.TaskGroup() as tasks:
                while True:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(self._until_next()):
                            await self._news.wait()
                    self._news.clear()
                    passed = max(self._wall_clock() - seen_wall, self._clock() - seen)
                    seen_wall, seen = self._wall_clock(), self._clock()
                    if passed > TICK_SECONDS + STOOD_STILL_SECONDS:
                        self._start_anew()
                    await self._follow(tasks)
                    self._ask_if_due()
                    for news in self.hearing.take():
                        self._told(news)
                    await asyncio.sleep(BURST_SECONDS)
        finally:
            await self._close()

    # inside

    def _until_next(self) -> float:
        due = min(self._questions, default=float("inf")) - self._clock()
        return max(0.0, min(TICK_SECONDS, due))

    def _start_anew(self) -> None:
        """After sleep: others may have forgotten us, and we them."""
        self._announced = None
        self._expect_answers()

    def _expect_answers(self) -> None:
        now = self._clock()
        spread = SPREAD_SECONDS * self._lag
        self._questions = [now + after + spread for after in FIRST_QUESTIONS_SECONDS]

    async def _follow(self, tasks: asyncio.TaskGroup) -> None:
        """Make sockets and announcement follow the addresses and the pairing window."""
        try:
            if not self._spoken_at:
                await self._close()
            elif self._zeroconf is None:
                await self._open(tasks)
            elif self._announced != (self._said, self._addresses, self._spoken_at):
                await self._announce_again(self._zeroconf, tasks)
        except (OSError, RuntimeError, zeroconf.Error) as error:
            await self._fail(error)

    async def _open(self, tasks: asyncio.TaskGroup) -> None:
        if self._clock() - self._tried_seconds < AGAIN_SECONDS:
            return
        self._tried_seconds = self._clock()
        self._zeroconf = AsyncZeroconf(interfaces=list(self._spoken_at))
        await self._zeroconf.zeroconf.async_wait_for_start()
        self._zeroconf.zeroconf.async_add_listener(self.hearing, None)
        # RFC 6762 8.1 would have us ask for 750 ms whether the name is free; it is a hash of a key.
        # A second machine with it is noticed by its addresses (hearing.py).
        sent = await self._zeroconf.async_register_service(self._info(), cooperating_responders=True)
        tasks.create_task(self._sent(sent), name="announce")
        self._failure, self._tried_seconds = None, float("-inf")
        self._expect_answers()

    async def _announce_again(self, opened: AsyncZeroconf, tasks: asyncio.TaskGroup) -> None:
        moved = self._announced is None or self._announced[1:] != (self._addresses, self._spoken_at)
        info = self._info()
        sent = await opened.async_update_service(info)
        tasks.create_task(self._sent(sent), name="announce")
        if moved:
            await opened.async_update_interfaces(list(self._spoken_at))
            self._expect_answers()

    def _info(self) -> AsyncServiceInfo:
        self._announced = self._said, self._addresses, self._spoken_at
        self._announced_seconds = self._clock()
        return AsyncServiceInfo(
            SERVICE,
            instance_of(self._id16),
            port=self._port,
            properties=properties(self._said),
            server=server_of(self._id16),
            parsed_addresses=[address.partition("%")[0] for address in self._addresses],
        )

    async def _sent(self, sent: Awaitable[object]) -> None:
        try:
            await sent
        except (OSError, RuntimeError, zeroconf.Error) as error:
            await self._fail(error)

    async def _fail(self, error: Exception) -> None:
        log.warning("discovery: %s", error)
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        self._failure = Reason("discovery_failed", {"why": str(why)[:200]})
        await self._close()

    def _ask_if_due(self) -> None:
        now = self._clock()
        due = [when for when in self._questions if when <= now]
        self._questions = [when for when in self._questions if when > now]
        oldest = self.hearing.oldest_seconds
        waited = now - (self._asked_seconds if oldest is None else oldest)
        stale = waited > REFRESH_SECONDS + REFRESH_SPREAD_SECONDS * self._lag
        rested = now - self._asked_seconds > QUESTIONS_APART_SECONDS
        if (due or (stale and rested)) and self._zeroconf is not None:
            self._asked_seconds = now
            question = DNSOutgoing(QUERY)
            question.add_question(DNSQuestion(SERVICE, TYPE_PTR, CLASS_IN))
            self._zeroconf.zeroconf.async_send(question)

    async def _close(self) -> None:
        """Say goodbye on what is open; cancelled on the way, close it without."""
        opened, self._zeroconf, self._announced = self._zeroconf, None, None
        if opened is None:
            return
        with suppress(KeyError):  # it was not opened far enough to listen
            opened.zeroconf.async_remove_listener(self.hearing)
        try:
            await opened.async_close()
        except (OSError, RuntimeError, zeroconf.Error) as error:
            log.info("discovery did not end well: %s", error)
        finally:
            if not opened.zeroconf.done:
                opened.zeroconf.close()
