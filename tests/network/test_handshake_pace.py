"""Handshakes that come to nothing are begun ever more rarely, and nobody else waits for that."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from app.core.errors import AppError
from app.core.household.membership import Member
from app.network.peer.peer_client import PeerClient
from app.network.peer.peer_links import say_hello
from app.network.sockets import Address
from app.network.traffic_limits import EventKind, Flood
from app.network.waiting_room import BURST, MAX_PACED_HOSTS, OTHERS_BURST, HandshakePace
from tests.network.nodes import Node, Nodes, at, opened, pair, until

MET = "10.0.0.2"


@pytest.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[Nodes]:
    async with opened(tmp_path) as made:
        yield made


def begun(pace: HandshakePace, now: list[float], host: str, seconds: float) -> int:
    """Return how many endless handshakes of a host begin in that time, all for nothing."""
    end, n = now[0] + seconds, 0
    while now[0] + (wait_s := pace.wait_s(host)) <= end:
        now[0] += wait_s
        pace.count_failure(host)
        n += 1
    return n


def test_a_host_where_a_member_was_met_has_its_own_and_all_others_share() -> None:
    now = [0.0]
    pace = HandshakePace(lambda host: host == MET, lambda: now[0])
    strangers = sum(begun(pace, now, f"10.0.1.{n}", 0.05) for n in range(200))  # ten seconds
    assert strangers <= OTHERS_BURST + 10 * 16 + 200
    assert pace.wait_s("10.0.9.9") > 0
    assert pace.wait_s(MET) == 0
    assert begun(pace, now, MET, 10.0) <= BURST + 10 * 4 + 1
    assert pace.wait_s(MET) > 0
    now[0] += 60
    assert pace.wait_s(MET) == pace.wait_s("10.0.1.1") == 0


def test_few_hosts_are_remembered() -> None:
    pace = HandshakePace(lambda _: True)
    for n in range(2 * MAX_PACED_HOSTS):
        pace.count_failure(str(n))
    assert len(pace._buckets) == MAX_PACED_HOSTS


def barred(den: Node, other: Node) -> None:
    with suppress(Flood):
        den.network.link_manager._allowance(other.network.id).take(EventKind.PING, 1000)


async def test_who_is_barred_is_let_in_to_a_handshake_a_few_times_a_second(nodes: Nodes) -> None:
    den, attic = await nodes.paired("den", "attic")
    await until(lambda: den.network.is_known_host("127.0.0.1"))  # it looks once a second
    barred(den, attic)
    await until(lambda: attic.network.id not in den.network.links)
    began, n = time.monotonic(), 0
    handshakes = den.network._listener._handshakes
    while time.monotonic() - began < 2.0:
        await asyncio.gather(*(_dial(attic, den) for _ in range(4)))
        n += 4
    assert BURST <= n <= BURST + 4 * 4 + 8
    assert handshakes.wait_s("127.0.0.1") > 0


async def test_strangers_handshakes_are_few_and_members_pay_nothing(nodes: Nodes) -> None:
    den, attic = await nodes.paired("den", "attic")
    await until(lambda: den.network.is_known_host("127.0.0.1"))
    handshakes = den.network._listener._handshakes
    for _ in range(2 * int(BURST)):
        channel = PeerClient(*_way(attic, den))
        await channel.open_control()
        await channel.close()
    assert handshakes.wait_s("127.0.0.1") == 0
    stranger = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    stranger.check_hostname, stranger.verify_mode = False, ssl.CERT_NONE

    async def knock() -> None:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection(*_place(den), ssl=stranger)
            await reader.read()
            writer.close()

    for _ in range(3 * int(BURST)):
        await knock()
        if handshakes.wait_s("127.0.0.1") > 0:
            break
    assert handshakes.wait_s("127.0.0.1") > 0
    await until(lambda: attic.network.id in den.network.links)  # what is linked stays so


async def test_links_that_replace_one_another_without_end_are_a_flood(nodes: Nodes) -> None:
    den, attic = await nodes.paired("den", "attic")
    loft = await nodes.open("loft")
    await pair(den, loft)
    for _ in range(int(EventKind.LINK.burst) + 20):
        await _dial(attic, den)
        if den.network.is_barred(attic.network.id):
            break
    assert den.network.is_barred(attic.network.id)
    assert loft.network.id in den.network.links


def _place(node: Node) -> tuple[str, int]:
    return at(node).host, at(node).port


def _way(node: Node, to: Node) -> tuple[Member, Address, ssl.SSLContext]:
    member = node.network.members[to.network.id]
    return member, at(to), node.network.dialing_context(member)


async def _dial(node: Node, to: Node) -> None:
    """One control link, up to the answer to its greeting."""
    client = PeerClient(*_way(node, to))
    try:
        with suppress(AppError, OSError):
            socket = await client.open_control()
            await say_hello(socket, node.network.hello(), node.network.members[to.network.id])
    finally:
        await client.close()
