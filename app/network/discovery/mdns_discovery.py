"""Discovery by mDNS: announces this machine on its networks, and listens for others. Nothing received is trusted.

    discovery = Discovery(id16, port, report=..., is_member=...)
    discovery.use(("192.168.1.20",))
    await discovery.run()      # until canceled; then it says goodbye

No system daemon is required, and a running one (Avahi, Bonjour) is not disturbed.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import zeroconf
from zeroconf import (
    DNSAddress,
    DNSOutgoing,
    DNSPointer,
    DNSQuestion,
    DNSService,
    DNSText,
    RecordUpdate,
    RecordUpdateListener,
    Zeroconf,
)
from zeroconf.asyncio import AsyncServiceInfo, AsyncZeroconf

from app.core.errors import Reason
from app.core.household.household import MOST_STRANGERS, Announced, AnnouncementEnded
from app.core.reasons import os_cause
from app.network.discovery.announcement import (
    MAX_ADDRESSES,
    SERVICE,
    TxtRecord,
    believable,
    host_name,
    id_of,
    instance_name,
    parse_txt,
    txt_fields,
)
from app.network.messages import PROTOCOL

FORGOTTEN_SECONDS = 120.0  # the lifetime of a host's records (RFC 6762, section 10)
NEW_STRANGERS, NEW_STRANGERS_PER_SECOND = 32, 4.0
RECORDS_UNTIL_PURGE = 512
RECORDS_OF_ONE = 16
OWN_ADDRESSES_SECONDS = 150.0  # other machines still repeat an address that we have just given up

Record = DNSAddress | DNSPointer | DNSService | DNSText

QUERY, TYPE_PTR, CLASS_IN = 0x0000, 12, 1  # RFC 1035, sections 4.1.1, 3.2.2 and 3.2.4
FIRST_QUESTIONS_SECONDS = (0.02, 1.0, 3.0)  # after a start, a wake-up or a new address
SPREAD_SECONDS = 0.1  # so that machines that start together do not query at the same time
REFRESH_SECONDS, REFRESH_SPREAD_SECONDS = 50.0, 10.0  # other machines' records expire after 120 s
QUESTIONS_APART_SECONDS = 10.0
BURST_SECONDS = 0.2  # changes within this time are reported together
TICK_SECONDS = 2.0
SUSPENDED_SECONDS = 6.0  # longer than a tick: this computer was asleep, or its clock was set
RETRY_SECONDS = 10.0  # between attempts to open the port
ITSELF_SECONDS = 8.0  # if multicast works, our own announcement returns within milliseconds
log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Sighting:
    """The latest announcement received from a machine."""

    port: int
    seen_seconds: float
    txt: TxtRecord | None = None
    addresses: tuple[str, ...] = ()
    reported: Announced | None = None


class AnnouncementListener(RecordUpdateListener):
    """A listener that collects the records received by zeroconf. It calls `news` when `take` may return changes."""

    def __init__(
        self, me: str, port: int, is_member: Callable[[str], bool], clock: Callable[[], float], news: Callable[[], None]
    ) -> None:
        self._me, self._port, self._is_member = me, port, is_member
        self._clock, self._news = clock, news
        self._sightings: dict[str, _Sighting] = {}
        self._changed: set[str] = set()
        self._ended: list[AnnouncementEnded] = []
        self._ours: dict[str, float] = {}  # own address -> time until which it belongs to no other machine
        self._allowance, self._allowed_seconds = float(NEW_STRANGERS), clock()
        self._fresh_records = 0
        self._zeroconf: Zeroconf | None = None
        self._copied: tuple[str, float] | None = None
        self.itself_seconds: float | None = None  # when our own announcement was last received

    def use(self, addresses: Sequence[str]) -> None:
        """Set the addresses of this machine."""
        until = self._clock() + OWN_ADDRESSES_SECONDS
        left = {key: min(until, limit) for key, limit in self._ours.items()}
        still = {key: limit for key, limit in left.items() if limit > self._clock()}
        self._ours = {**still, **dict.fromkeys(addresses, float("inf"))}
        self._changed.update(self._sightings)  # our addresses determine which others are believable

    @property
    def copied_at(self) -> str | None:
        """Return the address of another machine that announces our identity, or None if there is none."""
        if self._copied is None or self._clock() > self._copied[1]:
            return None
        return self._copied[0]

    @property
    def oldest_seconds(self) -> float | None:
        """Return when the machine that has been silent longest sent its last announcement, or None if there are no
        machines.
        """
        return min((sighting.seen_seconds for sighting in self._sightings.values()), default=None)

    def take(self) -> list[Announced | AnnouncementEnded]:
        """Return the changes since the last call, beginning with the machines that left."""
        now = self._clock()
        for id16, sighting in list(self._sightings.items()):
            if now - sighting.seen_seconds > FORGOTTEN_SECONDS:
                self._drop(id16)
        news: list[Announced | AnnouncementEnded] = list(self._ended)
        self._ended.clear()
        ours = [key for key, until in self._ours.items() if until == float("inf")]
        for id16 in sorted(self._changed & self._sightings.keys()):
            sighting = self._sightings[id16]
            seen = _seen(id16, sighting, ours)
            if seen is None and sighting.reported is not None:
                news.append(AnnouncementEnded(id16))
            elif seen is not None and seen != sighting.reported:
                news.append(seen)
            sighting.reported = seen
        self._changed.clear()
        return news

    # called by zeroconf for each packet

    def async_update_records(self, zc: Zeroconf, now: float, records: list[RecordUpdate]) -> None:
        self._zeroconf = zc
        self._fresh_records += sum(1 for update in records if update.old is None)
        living: list[Record] = []
        for update in records:
            record = update.new
            if isinstance(record, Record):
                if not record.is_expired(now):
                    living.append(record)
                elif isinstance(record, DNSPointer) and record.key == SERVICE:
                    self._drop(id_of(record.alias))
        self._services(record for record in living if isinstance(record, DNSService))
        self._texts(record for record in living if isinstance(record, DNSText))
        self._hosts(record for record in living if isinstance(record, DNSAddress))

    def async_update_records_complete(self) -> None:
        if self._fresh_records >= RECORDS_UNTIL_PURGE:
            self._fresh_records = 0
            self._purge()
        if self._changed or self._ended:
            self._news()

    def _services(self, records: Iterable[DNSService]) -> None:
        now = self._clock()
        for record in records:
            id16 = id_of(record.key)
            if id16 is None or record.server_key != host_name(id16) or not 0 < record.port < 65536:
                continue
            if id16 == self._me:
                if record.port != self._port:
                    self._copy_at(f"port {record.port}")
                continue
            sighting = self._sightings.get(id16)
            if sighting is None and self._has_room(id16):
                sighting = self._sightings[id16] = _Sighting(record.port, now)
            if sighting is not None:
                sighting.port, sighting.seen_seconds = record.port, now
                self._changed.add(id16)

    def _texts(self, records: Iterable[DNSText]) -> None:
        for record in records:
            id16 = id_of(record.key)
            if id16 in self._sightings and (txt := parse_txt(record.text)) is not None:
                self._sightings[id16].txt = txt
                self._changed.add(id16)

    def _hosts(self, records: Iterable[DNSAddress]) -> None:
        """Replace the addresses of the machines in a packet. A packet always contains all addresses of a machine."""
        hosts: dict[str, list[str]] = {}
        for record in records:
            id16 = id_of(record.key)
            if id16 == self._me:
                self._own(_text(record))
            elif id16 in self._sightings and len(hosts.setdefault(id16, [])) < 4 * MAX_ADDRESSES:
                hosts[id16].append(_text(record))
        for id16, addresses in hosts.items():
            self._sightings[id16].addresses = tuple(addresses)
            self._changed.add(id16)

    def _own(self, address: str) -> None:
        if self._ours.get(address, 0.0) > self._clock():
            self.itself_seconds = self._clock()
        else:
            self._copy_at(address)

    def _copy_at(self, address: str) -> None:
        self._copied = address, self._clock() + FORGOTTEN_SECONDS

    def _has_room(self, id16: str) -> bool:
        """Return whether a new machine may be added. If necessary, drop the stranger that has been silent longest."""
        if self._is_member(id16):
            return True
        now = self._clock()
        earned = (now - self._allowed_seconds) * NEW_STRANGERS_PER_SECOND
        self._allowance = min(NEW_STRANGERS, self._allowance + earned)
        self._allowed_seconds = now
        if self._allowance < 1:
            return False
        self._allowance -= 1
        strangers = [key for key in self._sightings if not self._is_member(key)]
        if len(strangers) >= MOST_STRANGERS:
            self._drop(min(strangers, key=lambda key: self._sightings[key].seen_seconds))
        return True

    def _drop(self, id16: str | None) -> None:
        sighting = self._sightings.pop(id16, None) if id16 is not None else None
        if sighting is not None and id16 is not None and sighting.reported is not None:
            self._ended.append(AnnouncementEnded(id16))

    def _purge(self) -> None:
        """Remove the records of unknown machines from zeroconf's cache."""
        assert self._zeroconf is not None
        cache = self._zeroconf.cache
        kept: dict[str | None, int] = {}
        unwanted = []
        for records in cache.cache.values():
            for record in records.values():
                if isinstance(record, DNSPointer) and record.key == SERVICE:
                    is_known = id_of(record.alias) in self._sightings  # otherwise its goodbye would not be reported
                else:
                    id16 = id_of(record.key)
                    is_known = id16 in self._sightings and kept.get(id16, 0) < RECORDS_OF_ONE
                    kept[id16] = kept.get(id16, 0) + 1
                if not is_known:
                    unwanted.append(record)
        cache.async_remove_records(unwanted)


def _seen(id16: str, sighting: _Sighting, ours: Sequence[str]) -> Announced | None:
    """Return the announcement to report, or None if it is incomplete or contains no believable address."""
    addresses = believable(sighting.addresses, ours)
    if sighting.txt is None or not addresses:
        return None
    txt = sighting.txt
    return Announced(id16, addresses, sighting.port, txt.protocol, txt.name, txt.pairing_port, txt.system, txt.device)


def _text(record: DNSAddress) -> str:
    """Return the address as text, with its scope if it is link-local IPv6."""
    address = ipaddress.ip_address(record.address)
    scoped = address.version == 6 and address.is_link_local and record.scope_id
    return f"{address}%{record.scope_id}" if scoped else str(address)


class Discovery:
    """The mDNS announcer and listener. `report` is called with each change of another machine and must not block."""

    def __init__(
        self,
        id16: str,
        port: int,
        report: Callable[[Announced | AnnouncementEnded], None],
        is_member: Callable[[str], bool],
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._id16, self._port, self._report = id16, port, report
        self._clock, self._wall_clock = clock, wall_clock
        self._news = asyncio.Event()
        self.listener = AnnouncementListener(id16, port, is_member, clock, self._news.set)
        self._lag = int(id16[:4], 16) / 0xFFFF  # between 0 and 1, different on each machine
        self._txt = TxtRecord(PROTOCOL)
        self._addresses: tuple[str, ...] = ()
        self._spoken_at: tuple[str, ...] = ()
        self._announced: tuple[TxtRecord, tuple[str, ...], tuple[str, ...]] | None = None
        self._zeroconf: AsyncZeroconf | None = None
        self._announced_seconds = self._tried_seconds = float("-inf")
        self._questions: list[float] = []  # times of the next queries, which are sent in any case
        self._asked_seconds = clock()
        self._failure: Reason | None = None

    def use(self, addresses: Sequence[str], speak_at: Sequence[str] | None = None) -> None:
        """Set the addresses at which this machine can be reached, and the addresses from which to announce
        (`speak_at`).

        One `speak_at` address per interface is enough. None means all addresses, and an empty sequence turns
        announcements off.
        """
        self._addresses = tuple(addresses)
        self._spoken_at = self._addresses if speak_at is None else tuple(speak_at)
        self.listener.use(self._addresses)
        self._news.set()

    def set_pairing_window(
        self, name: str | None, pairing_port: int | None, system: str = "", device: str = ""
    ) -> None:
        """Announce the name and port of the open pairing window, or stop announcing it if they are None."""
        self._txt = TxtRecord(PROTOCOL, name, pairing_port, system or None, device or None)
        self._news.set()

    @property
    def has_listened(self) -> bool:
        """Return whether discovery has run without problems for long enough to have found every machine nearby."""
        waited = self._clock() - self._announced_seconds > ITSELF_SECONDS
        return self._zeroconf is not None and waited and self.trouble is None

    @property
    def trouble(self) -> Reason | None:
        """Return why other machines cannot be found reliably, or None if there is no problem."""
        if not self._spoken_at:
            return Reason("discovery_no_network")
        if self._failure is not None:
            return self._failure
        if (address := self.listener.copied_at) is not None:
            return Reason("discovery_identity_copied", {"address": address})
        seen = self.listener.itself_seconds
        silent = seen is None or seen < self._announced_seconds
        waited = self._clock() - self._announced_seconds > ITSELF_SECONDS
        if self._zeroconf is not None and silent and waited:
            return Reason("discovery_no_multicast")
        return None

    async def run(self) -> None:
        """Announce and listen until canceled."""
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
                    if passed > TICK_SECONDS + SUSPENDED_SECONDS:
                        self._restart()
                    await self._follow(tasks)
                    self._ask_if_due()
                    for news in self.listener.take():
                        self._report(news)
                    await asyncio.sleep(BURST_SECONDS)
        finally:
            await self._close()

    def _until_next(self) -> float:
        due = min(self._questions, default=float("inf")) - self._clock()
        return max(0.0, min(TICK_SECONDS, due))

    def _restart(self) -> None:
        """Announce and query again after a suspension, because records may have expired on both sides."""
        self._announced = None
        self._expect_answers()

    def _expect_answers(self) -> None:
        now = self._clock()
        spread = SPREAD_SECONDS * self._lag
        self._questions = [now + after + spread for after in FIRST_QUESTIONS_SECONDS]

    async def _follow(self, tasks: asyncio.TaskGroup) -> None:
        """Update the sockets and the announcement to match the addresses and the pairing window."""
        try:
            if not self._spoken_at:
                await self._close()
            elif self._zeroconf is None:
                await self._open(tasks)
            elif self._announced != (self._txt, self._addresses, self._spoken_at):
                await self._announce_again(self._zeroconf, tasks)
        except (OSError, RuntimeError, zeroconf.Error) as error:
            await self._fail(error)

    async def _open(self, tasks: asyncio.TaskGroup) -> None:
        if self._clock() - self._tried_seconds < RETRY_SECONDS:
            return
        self._tried_seconds = self._clock()
        self._zeroconf = AsyncZeroconf(interfaces=list(self._spoken_at))
        await self._zeroconf.zeroconf.async_wait_for_start()
        self._zeroconf.zeroconf.async_add_listener(self.listener, None)
        # RFC 6762, section 8.1, requires a 750 ms probe of whether the name is free. Ours is the hash of a key, so it
        # is skipped. A second machine with the same name is detected by its addresses (`AnnouncementListener._own`).
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
        self._announced = self._txt, self._addresses, self._spoken_at
        self._announced_seconds = self._clock()
        return AsyncServiceInfo(
            SERVICE,
            instance_name(self._id16),
            port=self._port,
            properties=txt_fields(self._txt),
            server=host_name(self._id16),
            parsed_addresses=[address.partition("%")[0] for address in self._addresses],
        )

    async def _sent(self, sent: Awaitable[object]) -> None:
        try:
            await sent
        except (OSError, RuntimeError, zeroconf.Error) as error:
            await self._fail(error)

    async def _fail(self, error: Exception) -> None:
        log.warning("discovery: %s", error)
        why = os_cause(error) if isinstance(error, OSError) else str(error)[:200]
        self._failure = Reason("discovery_failed", {"why": why or type(error).__name__})
        await self._close()

    def _ask_if_due(self) -> None:
        now = self._clock()
        due = [when for when in self._questions if when <= now]
        self._questions = [when for when in self._questions if when > now]
        oldest = self.listener.oldest_seconds
        waited = now - (self._asked_seconds if oldest is None else oldest)
        stale = waited > REFRESH_SECONDS + REFRESH_SPREAD_SECONDS * self._lag
        rested = now - self._asked_seconds > QUESTIONS_APART_SECONDS
        if (due or (stale and rested)) and self._zeroconf is not None:
            self._asked_seconds = now
            question = DNSOutgoing(QUERY)
            question.add_question(DNSQuestion(SERVICE, TYPE_PTR, CLASS_IN))
            self._zeroconf.zeroconf.async_send(question)

    async def _close(self) -> None:
        """Say goodbye and close the sockets. If canceled, close them without a goodbye."""
        opened, self._zeroconf, self._announced = self._zeroconf, None, None
        if opened is None:
            return
        with suppress(KeyError):  # it was closed before it listened
            opened.zeroconf.async_remove_listener(self.listener)
        try:
            await opened.async_close()
        except (OSError, RuntimeError, zeroconf.Error) as error:
            log.info("discovery was not closed cleanly: %s", error)
        finally:
            if not opened.zeroconf.done:
                opened.zeroconf.close()
