"""Who is heard on the network: announcements, bounded in number and rate, as hints.

Anybody on the network can say anything here. So at most so many strangers are kept, new ones are let in
at a bounded rate, whoever has not been heard for the longest goes first, and records are dropped from
zeroconf's cache before that grows. Members are always kept: their number is bounded by the household.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from zeroconf import DNSAddress, DNSPointer, DNSService, DNSText, RecordUpdate, RecordUpdateListener, Zeroconf

from app.core.household.household import MOST_STRANGERS, Gone, Seen
from app.network.discovery.announcement import MOST_ADDRESSES, SERVICE, Said, believable, id_of, read, server_of

FORGOTTEN_SECONDS = 120.0  # as long as a host's records live: RFC 6762 10
NEW_STRANGERS, NEW_STRANGERS_A_SECOND = 32, 4.0
RECORDS_UNTIL_PURGE = 512
RECORDS_OF_ONE = 16
OWN_ADDRESSES_SECONDS = 150.0  # others still repeat an address that we have just left

Record = DNSAddress | DNSPointer | DNSService | DNSText


@dataclass(slots=True)
class _Heard:
    """What one machine announced."""

    port: int
    heard_seconds: float
    said: Said | None = None
    addresses: tuple[str, ...] = ()
    told: Seen | None = None


class Hearing(RecordUpdateListener):
    """Collects what zeroconf receives. `news` is called when `take` may have something to give."""

    def __init__(
        self, me: str, port: int, is_member: Callable[[str], bool], clock: Callable[[], float], news: Callable[[], None]
    ) -> None:
        self._me, self._port, self._is_member = me, port, is_member
        self._clock, self._news = clock, news
        self._heard: dict[str, _Heard] = {}
        self._changed: set[str] = set()
        self._ended: list[Gone] = []
        self._ours: dict[str, float] = {}  # own address -> until when nobody else may have it
        self._allowance, self._allowed_seconds = float(NEW_STRANGERS), clock()
        self._fresh_records = 0
        self._zeroconf: Zeroconf | None = None
        self._copied: tuple[str, float] | None = None
        self.itself_seconds: float | None = None  # when our own announcement came back last

    def use(self, addresses: Sequence[str]) -> None:
        """The addresses of this machine from now on."""
        until = self._clock() + OWN_ADDRESSES_SECONDS
        left = {key: min(until, limit) for key, limit in self._ours.items()}
        still = {key: limit for key, limit in left.items() if limit > self._clock()}
        self._ours = {**still, **dict.fromkeys(addresses, float("inf"))}
        self._changed.update(self._heard)  # what is believable depends on where we are

    @property
    def copied_at(self) -> str | None:
        """The address of another machine that announces our identity; None where none was heard."""
        if self._copied is None or self._clock() > self._copied[1]:
            return None
        return self._copied[0]

    @property
    def oldest_seconds(self) -> float | None:
        """When the one was heard that has not been heard for longest; None where nobody was."""
        return min((one.heard_seconds for one in self._heard.values()), default=None)

    def take(self) -> list[Seen | Gone]:
        """What changed since the last call, those that ended first."""
        now = self._clock()
        for id16, one in list(self._heard.items()):
            if now - one.heard_seconds > FORGOTTEN_SECONDS:
                self._drop(id16)
        found: list[Seen | Gone] = list(self._ended)
        self._ended.clear()
        ours = [key for key, until in self._ours.items() if until == float("inf")]
        for id16 in sorted(self._changed & self._heard.keys()):
            one = self._heard[id16]
            seen = _seen(id16, one, ours)
            if seen is None and one.told is not None:
                found.append(Gone(id16))
            elif seen is not None and seen != one.told:
                found.append(seen)
            one.told = seen
        self._changed.clear()
        return found

    # what zeroconf calls, for each packet

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

    # inside

    def _services(self, records: Iterable[DNSService]) -> None:
        now = self._clock()
        for record in records:
            id16 = id_of(record.key)
            if id16 is None or record.server_key != server_of(id16) or not 0 < record.port < 65536:
                continue
            if id16 == self._me:
                if record.port != self._port:
                    self._copy_at(f"port {record.port}")
                continue
            one = self._heard.get(id16)
            if one is None and self._has_room(id16):
                one = self._heard[id16] = _Heard(record.port, now)
            if one is not None:
                one.port, one.heard_seconds = record.port, now
                self._changed.add(id16)

    def _texts(self, records: Iterable[DNSText]) -> None:
        for record in records:
            id16 = id_of(record.key)
            if id16 in self._heard and (said := read(record.text)) is not None:
                self._heard[id16].said = said
                self._changed.add(id16)

    def _hosts(self, records: Iterable[DNSAddress]) -> None:
        """All addresses of a machine come in one packet, and replace those of an earlier one."""
        hosts: dict[str, list[str]] = {}
        for record in records:
            id16 = id_of(record.key)
            if id16 == self._me:
                self._own(_text(record))
            elif id16 in self._heard and len(hosts.setdefault(id16, [])) < 4 * MOST_ADDRESSES:
                hosts[id16].append(_text(record))
        for id16, addresses in hosts.items():
            self._heard[id16].addresses = tuple(addresses)
            self._changed.add(id16)

    def _own(self, address: str) -> None:
        if self._ours.get(address, 0.0) > self._clock():
            self.itself_seconds = self._clock()
        else:
            self._copy_at(address)

    def _copy_at(self, address: str) -> None:
        self._copied = address, self._clock() + FORGOTTEN_SECONDS

    def _has_room(self, id16: str) -> bool:
        """Whether to listen to somebody new. Makes room by forgetting who was not heard for longest."""
        if self._is_member(id16):
            return True
        now = self._clock()
        earned = (now - self._allowed_seconds) * NEW_STRANGERS_A_SECOND
        self._allowance = min(NEW_STRANGERS, self._allowance + earned)
        self._allowed_seconds = now
        if self._allowance < 1:
            return False
        self._allowance -= 1
        strangers = [key for key in self._heard if not self._is_member(key)]
        if len(strangers) >= MOST_STRANGERS:
            self._drop(min(strangers, key=lambda key: self._heard[key].heard_seconds))
        return True

    def _drop(self, id16: str | None) -> None:
        one = self._heard.pop(id16, None) if id16 is not None else None
        if one is not None and id16 is not None and one.told is not None:
            self._ended.append(Gone(id16))

    def _purge(self) -> None:
        """Take out of zeroconf's cache whatever is not of somebody we listen to."""
        assert self._zeroconf is not None
        cache = self._zeroconf.cache
        kept: dict[str | None, int] = {}
        unwanted = []
        for records in cache.cache.values():
            for record in records.values():
                if isinstance(record, DNSPointer) and record.key == SERVICE:
                    wanted = id_of(record.alias) in self._heard  # without it no goodbye is told
                else:
                    id16 = id_of(record.key)
                    wanted = id16 in self._heard and kept.get(id16, 0) < RECORDS_OF_ONE
                    kept[id16] = kept.get(id16, 0) + 1
                if not wanted:
                    unwanted.append(record)
        cache.async_remove_records(unwanted)


def _seen(id16: str, one: _Heard, ours: Sequence[str]) -> Seen | None:
    """The hint, once it is whole."""
    addresses = believable(one.addresses, ours)
    if one.said is None or not addresses:
        return None
    said = one.said
    return Seen(id16, addresses, one.port, said.protocol, said.name, said.pairing_port, said.system, said.device)


def _text(record: DNSAddress) -> str:
    """The address as text, with its scope where it came by link-local IPv6."""
    address = ipaddress.ip_address(record.address)
    scoped = address.version == 6 and address.is_link_local and record.scope_id
    return f"{address}%{record.scope_id}" if scoped else str(address)
