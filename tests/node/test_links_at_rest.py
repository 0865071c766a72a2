"""Ten nodes left alone for hours: each link is measured as a whole once, and then only looked at."""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app.core.errors import Busy, Unreachable
from app.core.household.link import LinkEnd, LinkKind
from app.core.ids import MachineId
from app.machine.interfaces import Interface
from app.network import measured_paths
from app.network.peer.probe import Measured, RoundTrips
from app.network.sockets import Address
from app.node.links import link_registry
from app.node.links.link_registry import LinkRegistry

SEED = 20261121
HOUR_SECONDS, MEASURE_SECONDS, LOOK_SECONDS = 3600.0, 2.0, 0.1
MACHINES = [MachineId(f"{n:02x}" * 32) for n in range(10)]
ETHERNET = Interface("eth0", LinkKind.ETHERNET, True, ("10.0.0.99",), 1500, 10**9)


class Household:
    """Ten link books on one clock of our own. Who takes part in a probe is busy for its time."""

    def __init__(self, folder: Path) -> None:
        self.now = 1000.0
        self.chance = random.Random(SEED)
        self.whole: Counter[tuple[MachineId, MachineId, str]] = Counter()
        self.looks: Counter[tuple[MachineId, MachineId, str]] = Counter()
        self.round_trip_s = 0.0004
        self._busy_until = dict.fromkeys(MACHINES, 0.0)
        self.nets = {me: self._network(me) for me in MACHINES}
        self.books = {
            me: LinkRegistry(net, folder / f"{me[:4]}.json", lambda: None, chance=self.chance)
            for me, net in self.nets.items()
        }

    def _network(self, me: MachineId) -> Any:
        links = {
            other: SimpleNamespace(address=Address(f"10.0.0.{n}", 1), round_trip_seconds=None, through=None)
            for n, other in enumerate(MACHINES)
            if other != me
        }
        return SimpleNamespace(
            me=me, links=links, members=dict.fromkeys(MACHINES), link=links.__getitem__,
            addresses=self.addresses, link_manager=SimpleNamespace(chosen_interfaces={}),
        )  # fmt: skip

    def addresses(self, machine: MachineId) -> Sequence[Address]:
        """Return the addresses by cable, by another cable that is no better, and by one that was never there."""
        n = MACHINES.index(machine)
        return Address(f"10.0.0.{n}", 1), Address(f"10.0.1.{n}", 1), Address(f"10.0.2.{n}", 1)

    async def measured(self, network: Any, machine: MachineId, way: Address) -> measured_paths.Path:
        self._probe(network.me, machine, way, MEASURE_SECONDS)
        self.whole[network.me, machine, way.host] += 1
        return measured_paths.Path(way, "10.0.0.99", Measured(self._trips(), 1e8, 1e8, LinkEnd(LinkKind.ETHERNET)))

    async def round_trips(self, network: Any, machine: MachineId, way: Address) -> RoundTrips:
        self._probe(network.me, machine, way, LOOK_SECONDS)
        self.looks[network.me, machine, way.host] += 1
        return self._trips()

    def _probe(self, me: MachineId, machine: MachineId, way: Address, seconds: float) -> None:
        if way.host.startswith("10.0.2."):
            raise Unreachable("peer_unreachable", name="x", address=str(way))
        if max(self._busy_until[me], self._busy_until[machine]) > self.now:
            raise Busy("probe_busy", name="x")
        self._busy_until[me] = self._busy_until[machine] = self.now + seconds

    def _trips(self) -> RoundTrips:
        median_s = self.round_trip_s * self.chance.uniform(0.5, 1.5)
        return RoundTrips(median_s, 2 * median_s, 0.1 * median_s)

    def interfaces(self) -> tuple[Interface, ...]:
        """A Wi-Fi that changes its rate all the time, and a container that comes and goes."""
        rate = self.chance.randrange(10**8, 10**9)
        radio = Interface("wlan0", LinkKind.WIFI, True, ("10.0.3.1",), 1500, rate)
        veth = Interface("veth1", LinkKind.VIRTUAL, self.chance.random() < 0.5, ("fe80::1%veth1",))
        return ETHERNET, radio, veth

    async def live(self, seconds: float) -> None:
        """Every book does its rounds; at one time the others wait, as a probe's time is kept apart."""
        ends = self.now + seconds
        rounds = [(self.now, n, me) for n, me in enumerate(MACHINES)]
        while rounds[0][0] < ends:
            self.now, n, me = heapq.heappop(rounds)
            waits = await self.books[me]._round()
            after = max(self.now + waits, self._busy_until[me], self.now + 0.01)
            heapq.heappush(rounds, (after, n, me))
        self.now = ends


@pytest.fixture
def household(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Household:
    made = Household(tmp_path)
    monkeypatch.setattr(measured_paths, "measure", made.measured)
    monkeypatch.setattr(measured_paths, "round_trips", made.round_trips)
    monkeypatch.setattr(link_registry, "interfaces", made.interfaces)
    monkeypatch.setattr(link_registry, "own_host_towards", lambda host: "10.0.0.99")
    monkeypatch.setattr(link_registry, "save", lambda *_: None)
    clock = SimpleNamespace(monotonic=lambda: made.now, time=lambda: made.now)
    monkeypatch.setattr(link_registry, "time", clock)

    async def at_once(work: Any) -> Any:
        return work()

    monkeypatch.setattr("app.node.links.link_registry.asyncio.to_thread", at_once)
    monkeypatch.setattr(link_registry, "LOOK_SECONDS", 300.0)  # fewer rounds to count, the same rules
    for me, book in made.books.items():
        for other in made.nets[me].links:
            book.connected(other)
    return made


async def test_each_way_is_measured_once_in_hours_of_rest(household: Household) -> None:
    await household.live(HOUR_SECONDS / 4)
    both_ways = {
        (me, other, f"10.0.{cable}.{n}")
        for me in MACHINES
        for n, other in enumerate(MACHINES)
        if other != me
        for cable in range(2)
    }
    assert set(household.whole) == both_ways, SEED
    await household.live(2 * HOUR_SECONDS)
    for me, book in household.books.items():  # all links break in a busy moment, and are back
        for other in household.nets[me].links:
            book.connected(other)
    await household.live(4 * HOUR_SECONDS)
    assert set(household.whole.values()) == {1}, SEED
    looks = [household.looks[me, other, way] for me, other, way in both_ways]
    assert max(looks) <= 6.25 * 2 + 2, SEED


@pytest.mark.long
async def test_a_restless_radio_is_left_alone_more_and_more(household: Household) -> None:
    await household.live(HOUR_SECONDS / 4)
    for hour in range(24):
        household.round_trip_s = 0.05 if hour % 2 else 0.0004
        await household.live(HOUR_SECONDS)
    assert 2 <= max(household.whole.values()) <= 7, SEED  # after 0.5, 1.5, 3.5, 7.5, 15.5 hours
