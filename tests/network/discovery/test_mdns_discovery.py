"""Discovery over real sockets: machines appear, change and go; forged announcements do no harm."""

from __future__ import annotations

import asyncio
import random
import socket
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import psutil
import pytest
from zeroconf import DNSOutgoing
from zeroconf.asyncio import AsyncServiceInfo

from app.core.household.household import MOST_STRANGERS, Announced, AnnouncementEnded
from app.network.discovery.announcement import SERVICE, TxtRecord, host_name, instance_name, txt_fields
from app.network.discovery.mdns_discovery import Discovery
from app.network.messages import PROTOCOL
from tests.network.nodes import until

LOOPBACK = "127.0.0.1"
MDNS = ("224.0.0.251", 5353)
RESPONSE = 0x8400  # RFC 6762 18
DEN, ATTIC, KITCHEN, STUDY = "d" * 16, "a" * 16, "c" * 16, "5" * 16


@dataclass
class Machine:
    """One discovery, and whom it sees now."""

    id16: str
    port: int
    near: dict[str, Announced] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)
    members: tuple[str, ...] = ()
    slept_seconds: float = 0.0

    def __post_init__(self) -> None:
        wall = lambda: time.time() + self.slept_seconds  # noqa: E731
        is_member = lambda id16: id16 in self.members  # noqa: E731
        self.discovery = Discovery(self.id16, self.port, self.told, is_member, wall_clock=wall)
        self.discovery.use((LOOPBACK,))

    def told(self, news: Announced | AnnouncementEnded) -> None:
        if isinstance(news, Announced):
            self.near[news.id16] = news
        else:
            self.near.pop(news.id16, None)
            self.gone.append(news.id16)

    @property
    def trouble(self) -> str | None:
        reason = self.discovery.trouble
        return reason.code if reason else None


Start = Callable[[Machine], asyncio.Task[None]]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    if not _multicast_on_loopback():
        pytest.skip("this system carries no multicast on loopback")
    async with asyncio.TaskGroup() as tasks:
        started: list[asyncio.Task[None]] = []

        def begin(machine: Machine) -> asyncio.Task[None]:
            started.append(tasks.create_task(machine.discovery.run(), name=machine.id16))
            return started[-1]

        yield begin
        for task in started:
            task.cancel()


def _multicast_on_loopback() -> bool:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ear,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mouth,
    ):
        try:
            ear.bind(("", 0))
            ear.settimeout(0.5)
            group = socket.inet_aton(MDNS[0]) + socket.inet_aton(LOOPBACK)
            ear.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group)
            mouth.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(LOOPBACK))
            mouth.sendto(b"?", (MDNS[0], ear.getsockname()[1]))
            return ear.recv(1) == b"?"
        except OSError:
            return False


async def test_machines_appear_change_and_go(start: Start) -> None:
    den, attic = Machine(DEN, 4001), Machine(ATTIC, 4002)
    start(den)
    leaving = start(attic)
    await until(lambda: ATTIC in den.near and DEN in attic.near)
    assert den.near[ATTIC] == Announced(ATTIC, (LOOPBACK,), 4002, protocol=PROTOCOL)

    attic.discovery.set_pairing_window("attic\x1b-pc", 4003)
    await until(lambda: den.near[ATTIC].name == "attic-pc")
    assert den.near[ATTIC].pairing_port == 4003
    attic.discovery.set_pairing_window(None, None)
    await until(lambda: den.near[ATTIC].name is None)

    leaving.cancel()
    await until(lambda: ATTIC not in den.near)


async def test_nobody_is_disturbed_without_a_network_and_it_may_come(start: Start) -> None:
    den, attic = Machine(STUDY, 4003), Machine(ATTIC, 4002)  # of an earlier DEN may be heard yet
    den.discovery.use(())
    start(den)
    start(attic)
    await until(lambda: den.trouble == "discovery_no_network")
    await asyncio.sleep(0.5)
    assert (den.near, den.trouble) == ({}, "discovery_no_network")
    assert STUDY not in attic.near
    den.discovery.use((LOOPBACK,))
    await until(lambda: ATTIC in den.near and STUDY in attic.near)
    assert den.trouble is None
    den.discovery.use(())  # the cable is pulled, or Wi-Fi turned off
    await until(lambda: STUDY not in attic.near)


async def test_after_sleep_it_announces_itself_again(start: Start) -> None:
    den = Machine(DEN, 4001)
    start(den)
    discovery = den.discovery
    await until(lambda: discovery.listener.itself_seconds)
    at_start = discovery._announced_seconds
    den.slept_seconds = 3600.0
    await until(lambda: discovery._announced_seconds > at_start)
    again = discovery._announced_seconds
    await until(lambda: (discovery.listener.itself_seconds or 0.0) >= again)


async def test_a_copied_identity_is_named_and_harms_nobody(start: Start) -> None:
    den, copy, attic = Machine(DEN, 4001), Machine(DEN, 4009), Machine(ATTIC, 4002)
    for machine in (den, copy, attic):
        start(machine)
    await until(lambda: den.trouble == copy.trouble == "discovery_identity_copied")
    await until(lambda: ATTIC in den.near and ATTIC in copy.near and DEN in attic.near)
    assert DEN not in den.near


async def test_ten_thousand_forged_announcements(start: Start) -> None:
    """The list stays short, the loop alive, memory small; and who was near, or is a member, is there."""
    den, attic, kitchen = Machine(DEN, 4001), Machine(ATTIC, 4002), Machine(KITCHEN, 4003)
    den.members = (KITCHEN,)
    start(den)
    start(attic)
    await until(lambda: ATTIC in den.near)
    process, chance = psutil.Process(), random.Random(11)
    packets = [_forged(chance) for _ in range(500)]
    before_bytes, cpu = process.memory_info().rss, process.cpu_times()
    slowest = 0.0
    with _mouth() as mouth:
        for n in range(10_000):
            whole = bytearray(packets[n % len(packets)])
            name = b"%016x" % chance.getrandbits(64)
            mouth.sendto(bytes(whole).replace(b"0123456789abcdef", name), MDNS)
            if n % 25 == 0:
                began = time.thread_time()  # of this loop alone, whatever else the computer does
                await asyncio.sleep(0.001)
                slowest = max(slowest, time.thread_time() - began)
    start(kitchen)
    await until(lambda: KITCHEN in den.near)
    spent = sum(process.cpu_times()[:2]) - sum(cpu[:2])
    grown = process.memory_info().rss - before_bytes
    assert ATTIC in den.near
    assert len(den.near) <= MOST_STRANGERS + 1
    assert slowest < 1, f"the loop stood still for {slowest:.2f} s"
    assert grown < 40e6, f"{grown / 1e6:.0f} MB"
    assert spent < 30, f"{spent:.1f} s of CPU for three machines"
    for seen in den.near.values():
        assert len(seen.name or "") <= 64
        assert (seen.name or "x").isprintable()
        assert seen.addresses == (LOOPBACK,)


async def test_garbage_on_the_port(start: Start) -> None:
    den, attic = Machine(DEN, 4001), Machine(ATTIC, 4002)
    start(den)
    chance = random.Random(5)
    with _mouth() as mouth:
        for n in range(500):
            raw = chance.randbytes(chance.choice([0, 1, 11, 12, 40, 500]))
            cut = _forged(chance)[: chance.randrange(300)]
            mouth.sendto(raw if n % 2 else cut, MDNS)
            if n % 50 == 0:
                await asyncio.sleep(0.001)
    start(attic)
    await until(lambda: ATTIC in den.near)


def _mouth() -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(LOOPBACK))
    return made


def _forged(chance: random.Random) -> bytes:
    """An announcement of `0123456789abcdef` that may be right, or wrong in any way."""
    id16 = "0123456789abcdef"
    name = chance.choice(["den-pc", "\x1b[31m\u202e\x00", "x" * 64, None])
    text: dict[str, str] | bytes = txt_fields(TxtRecord(1, name, chance.choice([0, 1, 65535])))
    if chance.random() < 0.2:
        text = b"\x03v=1" + 31 * (b"\xffname=" + b"x" * 250)  # 8 kB, the most a packet holds
    info = AsyncServiceInfo(
        SERVICE, instance_name(id16), port=chance.choice([0, 1, 4242, 65535]), properties=text,
        server=chance.choice([host_name(id16), host_name(id16), "printer.local."]),
        parsed_addresses=chance.sample([LOOPBACK, "8.8.8.8", "0.0.0.0", "fe80::1"], 2),
    )  # fmt: skip
    out = DNSOutgoing(RESPONSE)
    for record in (info.dns_pointer(), info.dns_service(), info.dns_text(), *info.dns_addresses()):
        out.add_answer_at_time(record, 0)
    return out.packets()[0]
