"""Hints of where members are: tried, never kept, and nothing a liar could gain by them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest

from app.core.household.household import Announced, AnnouncementEnded
from app.core.household.membership import Member
from app.core.household.operations import Role
from app.core.ids import MachineId
from app.network.discovery.address_book import DIAL_SECONDS, AddressBook
from app.network.messages import BadMessage, Message, Whereabouts, decode, encode
from app.network.sockets import Address
from tests.network.nodes import Nodes, pair, until

DEN, ATTIC, STRANGER = MachineId("d" * 64), MachineId("a" * 64), MachineId("e" * 64)
BY = Address("192.168.1.20", 4242)
SEEN = Announced("a" * 16, ("192.168.1.21", "fd00::21"), 4243, protocol=1)


@dataclass
class Known:
    """Places with a household of two, and the calls they ask for."""

    met: dict[MachineId, tuple[Address, ...]] = field(default_factory=dict)
    members: dict[MachineId, Member] = field(default_factory=dict)
    dialed: list[MachineId] = field(default_factory=list)
    now: float = 0.0

    def __post_init__(self) -> None:
        for machine in (DEN, ATTIC):
            self.members[machine] = Member(machine, b"", "x", frozenset({Role.LENDER}))
        self.places = AddressBook(
            lambda: self.members, lambda m: self.met.get(m, ()), self.dialed.append, lambda: self.now
        )


def test_an_announced_member_is_dialed_there() -> None:
    known = Known()
    known.places.note_announcement(SEEN)
    assert known.dialed == [ATTIC]
    assert known.places.addresses(ATTIC) == (Address("192.168.1.21", 4243), Address("fd00::21", 4243))
    known.places.note_announcement(AnnouncementEnded(SEEN.id16))
    assert known.places.addresses(ATTIC) == ()


def test_a_stranger_is_not_dialed_until_it_is_a_member() -> None:
    known = Known()
    del known.members[ATTIC]
    known.places.note_announcement(SEEN)
    assert known.dialed == []
    known.members[ATTIC] = Member(ATTIC, b"", "x", frozenset())
    assert known.places.addresses(ATTIC)[0] == Address("192.168.1.21", 4243)


def test_hints_come_after_where_it_was_met_and_push_nothing_out() -> None:
    known = Known()
    known.met[ATTIC] = tuple(Address("10.0.0.1", n) for n in range(1, 7))
    known.places.note_announcement(SEEN)
    addresses = known.places.addresses(ATTIC)
    assert addresses[:4] == known.met[ATTIC][:4]
    assert set(known.met[ATTIC]) < set(addresses)


def test_a_flood_of_hints_makes_few_calls() -> None:
    known = Known()
    for n in range(1000):
        known.now = n * 0.01
        known.places.note_announcement(Announced(SEEN.id16, (f"10.0.{n // 250}.{n % 250 + 1}",), 1, 1))
    assert len(known.dialed) <= known.now / DIAL_SECONDS + 2
    assert len(known.places.addresses(ATTIC)) == 1


def test_what_a_member_says_is_believed_of_its_own_network_only() -> None:
    known = Known()
    said = ["192.168.1.21:4243", "8.8.8.8:53", "127.0.0.1:22", "den-pc:1", "::1", "", "x" * 64]
    for places in (said[:4], said[4:]):
        known.places.learn(Whereabouts(machines={ATTIC: places, STRANGER: ["10.0.0.9:1"]}), BY)
    assert known.places.addresses(ATTIC) == (Address("192.168.1.21", 4243),)
    assert known.places.addresses(STRANGER) == ()
    assert set(known.dialed) == {ATTIC}


async def test_what_is_told_is_where_it_was_really_met() -> None:
    known = Known()
    known.places.note_announcement(SEEN)  # an announcement is not passed on
    said: list[tuple[Message, list[MachineId]]] = []

    async def tell(message: Message, machines: Iterable[MachineId]) -> None:
        said.append((message, list(machines)))

    await known.places.introduce(DEN, {}, tell)
    assert said == [(Whereabouts(machines={}), [DEN]), (Whereabouts(machines={}), [ATTIC])]
    known.met[ATTIC] = (Address("10.0.0.1", 1), Address("fd00::1", 2))
    said.clear()
    await known.places.introduce(DEN, {}, tell)
    whereabouts = Whereabouts(machines={ATTIC: ["10.0.0.1:1"]})  # it is not linked: the last place alone
    assert said[0] == (whereabouts, [DEN])
    assert decode(encode(whereabouts)) == whereabouts


async def test_old_places_push_out_no_living_one() -> None:
    """One member is linked with it, and four others each only remember other addresses."""
    known, said = Known(), list[Message]()
    living = Address("192.168.1.30", 1)
    known.places.learn(Whereabouts(machines={ATTIC: [str(living)]}), BY)

    async def tell(message: Message, _: Iterable[MachineId]) -> None:
        said.append(message)

    for member in range(3):
        other = Known({ATTIC: tuple(Address(f"192.168.1.{40 + member}", n) for n in range(1, 5))})
        await other.places.introduce(DEN, {}, tell)
    for message in said:
        assert isinstance(message, Whereabouts)
        known.places.learn(message, BY)
    assert living in known.places.addresses(ATTIC)
    assert len(known.places.addresses(ATTIC)) == 4


@pytest.mark.parametrize(
    "raw",
    [
        b'{"type":"whereabouts","machines":{"aa":[]}}',
        b'{"type":"whereabouts","machines":{"' + b"a" * 64 + b'":["1","2","3","4","5"]}}',
        b'{"type":"whereabouts","machines":{"' + b"a" * 64 + b'":["' + b"x" * 65 + b'"]}}',
        b'{"type":"whereabouts","machines":[]}',
    ],
)
def test_a_message_of_another_form_ends_the_link(raw: bytes) -> None:
    with pytest.raises(BadMessage):
        decode(raw)


async def test_machines_that_joined_the_same_admin_find_each_other(nodes: Nodes) -> None:
    """Neither was told the other's address, and nothing is announced here."""
    den, attic, kitchen = [await nodes.open(name) for name in ("den", "attic", "kitchen")]
    await pair(den, attic)
    await pair(den, kitchen)
    await until(lambda: kitchen.network.id in attic.network.links)
    await until(lambda: attic.network.id in kitchen.network.links)
