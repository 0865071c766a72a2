"""Tests of received announcements: complete ones become hints, and forged ones cost little and prove nothing."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import pytest
from zeroconf import DNSOutgoing, DNSRecord, RecordUpdate, Zeroconf, current_time_millis
from zeroconf._cache import DNSCache
from zeroconf.asyncio import AsyncServiceInfo

from app.core.household.household import MOST_STRANGERS, Announced, AnnouncementEnded
from app.network.discovery.announcement import SERVICE, TxtRecord, host_name, instance_name, txt_fields
from app.network.discovery.mdns_discovery import FORGOTTEN_SECONDS, OWN_ADDRESSES_SECONDS, AnnouncementListener

ME, ATTIC, KITCHEN = "d" * 16, "a" * 16, "c" * 16
HERE, THERE = "192.168.1.20", "192.168.1.21"


@dataclass
class Air:
    """A stand-in for zeroconf: its cache and the incoming packets. The time is in `now`."""

    cache: DNSCache = field(default_factory=DNSCache)
    now: float = 1000.0
    members: tuple[str, ...] = ()
    news: int = 0

    def __post_init__(self) -> None:
        self.listener = AnnouncementListener(
            ME, 4242, lambda id16: id16 in self.members, lambda: self.now, self._called
        )
        self.listener.use((HERE,))

    def _called(self) -> None:
        self.news += 1

    def packet(self, *records: DNSRecord) -> None:
        """Deliver a packet as zeroconf does: updates first, then the cache, then the end of the packet."""
        moment = current_time_millis()
        updates = [RecordUpdate(record, self.cache.async_get_unique(record)) for record in records]  # type: ignore[arg-type]
        self.listener.async_update_records(cast("Zeroconf", self), moment, updates)
        self.cache.async_add_records([record for record in records if not record.is_expired(moment)])
        self.listener.async_update_records_complete()

    def take(self) -> list[Announced | AnnouncementEnded]:
        return self.listener.take()


@pytest.fixture
def air() -> Air:
    return Air()


def announced(
    id16: str, *addresses: str, port: int = 4243, said: TxtRecord | None = None, ttl: int | None = None
) -> list[DNSRecord]:
    info = AsyncServiceInfo(
        SERVICE, instance_name(id16), port=port, properties=txt_fields(said or TxtRecord(1)),
        server=host_name(id16), parsed_addresses=list(addresses),
    )  # fmt: skip
    return [info.dns_pointer(ttl), info.dns_service(ttl), info.dns_text(ttl), *info.dns_addresses(ttl)]


def test_an_announcement_is_told_once(air: Air) -> None:
    air.packet(*announced(ATTIC, THERE))
    assert air.news == 1
    assert air.take() == [Announced(ATTIC, (THERE,), 4243, protocol=1)]
    air.packet(*announced(ATTIC, THERE))
    assert air.take() == []


def test_what_changed_is_told_again(air: Air) -> None:
    air.packet(*announced(ATTIC, THERE))
    air.take()
    air.packet(*announced(ATTIC, "192.168.1.99", said=TxtRecord(1, "attic-pc", 4244)))
    assert air.take() == [Announced(ATTIC, ("192.168.1.99",), 4243, 1, "attic-pc", 4244)]


def test_half_an_announcement_waits_for_the_other_half(air: Air) -> None:
    pointer, service, text, address = announced(ATTIC, THERE)
    air.packet(pointer, service)
    assert air.take() == []
    air.packet(text)
    assert air.take() == []
    air.packet(address)
    assert [type(news) for news in air.take()] == [Announced]


def test_goodbye_is_told_and_silence_too(air: Air) -> None:
    air.packet(*announced(ATTIC, THERE), *announced(KITCHEN, "192.168.1.22"))
    assert len(air.take()) == 2
    air.packet(*announced(ATTIC, THERE, ttl=0))
    assert air.take() == [AnnouncementEnded(ATTIC)]
    air.now += FORGOTTEN_SECONDS + 1
    assert air.take() == [AnnouncementEnded(KITCHEN)]
    air.packet(*announced(ATTIC, THERE))
    assert [type(news) for news in air.take()] == [Announced]


def test_nobody_outside_this_network_is_told(air: Air) -> None:
    air.packet(*announced(ATTIC, "8.8.8.8", "127.0.0.1"))
    assert air.take() == []
    air.packet(*announced(ATTIC, "8.8.8.8", THERE))
    assert air.take() == [Announced(ATTIC, (THERE,), 4243, 1)]
    air.packet(*announced(ATTIC, "1.1.1.1"))
    assert air.take() == [AnnouncementEnded(ATTIC)]


def test_records_that_do_not_fit_together_are_nothing(air: Air) -> None:
    pointer, _, text, address = announced(ATTIC, THERE)
    lying = AsyncServiceInfo(SERVICE, instance_name(ATTIC), port=80, server="printer.local.")
    air.packet(pointer, lying.dns_service(), text, address)
    assert air.take() == []
    air.packet(text, address)  # of somebody never introduced
    assert air.take() == []


def test_our_own_announcement_is_known_and_is_nobody(air: Air) -> None:
    air.packet(*announced(ME, HERE, port=4242))
    assert (air.take(), air.listener.copied_at) == ([], None)
    assert air.listener.itself_seconds == air.now


def test_somebody_with_our_identity_is_noticed_for_a_while(air: Air) -> None:
    air.packet(*announced(ME, "192.168.1.66", port=4242))
    assert (air.take(), air.listener.copied_at) == ([], "192.168.1.66")
    air.now += FORGOTTEN_SECONDS + 1
    assert air.listener.copied_at is None
    air.packet(*announced(ME, HERE, port=1))  # a copied home on this very computer
    assert air.listener.copied_at == "port 1"


def test_an_address_that_we_left_is_not_somebody_else(air: Air) -> None:
    air.listener.use(("192.168.1.30",))
    air.packet(*announced(ME, HERE, port=4242))
    assert air.listener.copied_at is None
    air.now += OWN_ADDRESSES_SECONDS + 1
    air.packet(*announced(ME, HERE, port=4242))
    assert air.listener.copied_at == HERE


def test_where_we_are_decides_whom_we_believe(air: Air) -> None:
    air.packet(*announced(ATTIC, "203.0.113.9"))
    assert air.take() == []
    air.listener.use(("203.0.113.20",))
    assert air.take() == [Announced(ATTIC, ("203.0.113.9",), 4243, 1)]


def test_a_flood_of_strangers_is_bounded_and_members_get_through(air: Air) -> None:
    air.members = (KITCHEN,)
    air.packet(*announced(ATTIC, THERE))
    heard = air.take()
    chance = random.Random(7)
    for n in range(10_000):
        air.now += 0.0002
        air.packet(*announced(f"{chance.getrandbits(64):016x}", THERE, said=TxtRecord(1, "x" * 64, 1)))
        if n == 9_000:
            air.packet(*announced(KITCHEN, "192.168.1.22"))
    heard += air.take()
    seen = {news.id16 for news in heard if isinstance(news, Announced)}
    assert {ATTIC, KITCHEN} <= seen
    assert len(seen) <= MOST_STRANGERS + 1
    assert len(air.listener._sightings) <= MOST_STRANGERS + 1
    assert sum(map(len, air.cache.cache.values())) < 2_000


def test_a_slow_flood_pushes_out_whoever_was_silent_longest(air: Air) -> None:
    air.packet(*announced(ATTIC, THERE))
    air.packet(*announced(KITCHEN, THERE))
    for n in range(3 * MOST_STRANGERS):
        air.now += 0.5
        air.packet(*announced(f"{n:016x}", THERE))
        if n % 20 == 0:
            air.packet(*announced(ATTIC, THERE))
    assert ATTIC in air.listener._sightings
    assert KITCHEN not in air.listener._sightings
    assert len(air.listener._sightings) == MOST_STRANGERS


def test_one_packet_full_of_records_stays_small(air: Air) -> None:
    """A jumbo packet holds hundreds of records; of what is not ours nothing is kept."""
    air.packet(*announced(ATTIC, THERE))
    air.take()
    for n in range(40):
        other = [AsyncServiceInfo("_ipp._tcp.local.", f"p{n}x{k}._ipp._tcp.local.", port=1, server="p.local.")
                 for k in range(60)]  # fmt: skip
        air.packet(*[info.dns_pointer() for info in other])
        lies = [AsyncServiceInfo(SERVICE, instance_name(ATTIC), port=4243, server=host_name(ATTIC),
                                 properties={"v": "1", "n": f"{n}-{k}"}) for k in range(60)]  # fmt: skip
        air.packet(*[info.dns_text() for info in lies])
    assert sum(map(len, air.cache.cache.values())) < 1_200
    air.packet(*announced(ATTIC, THERE, ttl=0))  # its goodbye is still understood
    assert air.take() == [AnnouncementEnded(ATTIC)]


@pytest.mark.parametrize("seed", range(5))
def test_any_mixture_of_records_is_borne(air: Air, seed: int) -> None:
    chance = random.Random(seed)
    ids = [ATTIC, KITCHEN, ME, "0" * 16]
    for _ in range(300):
        records: Sequence[DNSRecord] = [
            record
            for _ in range(chance.randrange(4))
            for record in announced(
                chance.choice(ids), *chance.sample([HERE, THERE, "8.8.8.8", "fe80::1", "::1"], 2),
                port=chance.choice([0, 1, 4242, 65535]), ttl=chance.choice([None, 0, 1]),
                said=chance.choice([TxtRecord(1), TxtRecord(65535, "\x00\u202e", 1)]),
            )
        ]  # fmt: skip
        air.packet(*chance.sample(list(records), len(records)))
        air.now += chance.random() * 10
        for news in air.take():
            assert news.id16 != ME, f"seed {seed}"
            assert isinstance(news, AnnouncementEnded) or set(news.addresses) <= {HERE, THERE}, f"seed {seed}"


def test_the_wire_brings_nothing_but_what_is_announced() -> None:
    """The announcement passes through the real codec: no name of this computer and no user, only the hint."""
    import getpass
    import socket

    out = DNSOutgoing(0x8400)
    for record in announced(ATTIC, THERE, said=TxtRecord(1, "den", 1)):
        out.add_answer_at_time(record, 0)
    (raw,) = out.packets()
    assert len(raw) < 300
    for private in (socket.gethostname(), getpass.getuser()):
        assert len(private) < 3 or private.encode() not in raw
