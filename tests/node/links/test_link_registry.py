"""Tests of when links are measured, what is kept of them, and which interface is used."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.client import NodeClient
from app.core.errors import BadInput, Busy
from app.core.household.link import Link, LinkKind
from app.core.ids import MachineId
from app.machine.interfaces import Interface, interfaces
from app.network import measured_paths
from app.network.sockets import Address
from app.node.links import link_registry
from app.node.links.link_registry import LinkRecord, LinkRegistry
from testbed.fault_link import Faults, relay
from tests.network.nodes import Node, Nodes, at, opened, until
from tests.node.pool import TestNode, paired

LINK = Link(0.0003, 0.001, 0.0001, 1e8, 9e7, "eth0", LinkKind.ETHERNET, 1500, 10**9)
FAR = MachineId("ab" * 32)


@pytest.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[Nodes]:
    async with opened(tmp_path) as made:
        yield made


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_registry, "SETTLE_SECONDS", 0.05)
    monkeypatch.setattr(link_registry, "AGAIN_SECONDS", (0.1, 0.5))


def book_of(node: Node, file: Path) -> LinkRegistry:
    return LinkRegistry(node.network, file, lambda: None, chance=random.Random(1))


@asynccontextmanager
async def running(book: LinkRegistry) -> AsyncIterator[LinkRegistry]:
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(book.run(), name="book")
        yield book
        task.cancel()


# what is kept


def test_what_was_measured_is_known_after_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "links.json"
    assert link_registry.load(file) == {}
    known = {FAR: LinkRecord(replace(LINK, far_kind=LinkKind.WIFI), "10.0.0.2:1", 1e9)}
    file.write_bytes(msgspec.json.encode(known))
    assert link_registry.load(file) == known


@pytest.mark.parametrize(
    "change",
    [
        {"out_bytes_per_s": 0},
        {"in_bytes_per_s": -1.0},
        {"round_trip_s": -0.001},
        {"round_trip_s": "fast"},
        {"kind": "rumour"},
        {"mtu": "x"},
    ],
)
def test_figures_that_cannot_be_are_passed_over(tmp_path: Path, change: dict[str, object]) -> None:
    file = tmp_path / "links.json"
    plain = json.loads(msgspec.json.encode({FAR: LinkRecord(LINK, "10.0.0.2:1", 1e9)}))
    plain[FAR]["link"] |= change
    file.write_text(json.dumps(plain))
    assert link_registry.load(file) == {}


@pytest.mark.parametrize("content", [b"", b"[]", b'{"x": 1}', b'{"\xff": 1}', b'{"a": {"link": {}}}'])
def test_a_damaged_file_is_no_loss(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "links.json"
    file.write_bytes(content)
    assert link_registry.load(file) == {}


async def test_nothing_is_kept_of_removed_machines(nodes: Nodes, tmp_path: Path) -> None:
    den = await nodes.open("den")
    file = tmp_path / "links.json"
    file.write_bytes(msgspec.json.encode({FAR: LinkRecord(LINK, "10.0.0.2:1", 1e9)}))
    book = book_of(den, file)
    assert book.link(FAR) == LINK
    book.keep_only([den.network.id])
    assert book.link(FAR) is None
    assert link_registry.load(file) == {}


# when it is measured


async def test_a_new_link_is_measured_and_named(nodes: Nodes, tmp_path: Path) -> None:
    den, attic = await nodes.paired("den", "attic")
    far = attic.network.id
    async with running(book_of(den, tmp_path / "links.json")) as book:
        assert book.link(far) is None
        book.connected(far)
        await until(lambda: book.link(far))
        link = book.link(far)
        assert link is not None
        assert link.kind is LinkKind.LOOPBACK
        assert link.mtu is not None
        assert link.interface
        assert link.negotiated_bits_per_s is None
        assert 0 < link.round_trip_s <= link.round_trip_p95_s
        shown = book.snapshot()[far]
        assert shown.kind == "loopback"
        assert shown.address == shown.measured_address == str(at(attic))
        assert shown.out_bytes_per_s == link.out_bytes_per_s
    assert link_registry.load(tmp_path / "links.json")[far].link == link


@pytest.mark.long
async def test_a_link_at_work_is_measured_later(nodes: Nodes, tmp_path: Path) -> None:
    den, attic = await nodes.paired("den", "attic")
    attic.at_work = True
    async with running(book_of(den, tmp_path / "links.json")) as book:
        book.connected(attic.network.id)
        await asyncio.sleep(0.5)
        assert book.link(attic.network.id) is None
        with pytest.raises(Busy):
            await book._measure_with_retries(attic.network.id)
        attic.at_work = False
        await until(lambda: book.link(attic.network.id))


async def test_a_link_is_measured_anew_when_an_interface_comes_or_a_forecast_was_wrong(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_registry, "LOOK_SECONDS", 0.05)
    results = list(interfaces())
    monkeypatch.setattr("app.node.links.link_registry.interfaces", lambda: tuple(results))
    den, attic = await nodes.paired("den", "attic")
    far = attic.network.id
    async with running(book_of(den, tmp_path / "links.json")) as book:

        def measured_at() -> float:
            return book._known[far].measured_at if far in book._known else 0.0

        book.connected(far)
        await until(measured_at)
        first = measured_at()
        await asyncio.sleep(0.3)
        assert measured_at() == first  # at rest nothing happens
        results.append(Interface("eth9", LinkKind.ETHERNET, True, ("10.9.9.9",)))
        await until(lambda: measured_at() > first)
        second = measured_at()
        book.doubt(far)
        await until(lambda: measured_at() > second)
        third = measured_at()
        book.doubt(far)  # so soon again: a wrong forecast must not make a storm
        book.connected(far)  # it was away for a moment
        await asyncio.sleep(0.5)
        assert measured_at() == third


async def test_a_limit_bounds_what_is_known_and_a_lifted_one_has_it_measured_again(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_registry, "LOOK_SECONDS", 0.05)
    den, attic = await nodes.paired("den", "attic")
    far, file = attic.network.id, tmp_path / "links.json"
    attic.network.pace.limit(16)
    limits: dict[MachineId, float | None] = {far: 2e6}
    book = LinkRegistry(den.network, file, lambda: None, limit=limits.get)
    async with running(book):
        book.connected(far)
        await until(lambda: book.link(far))
        under = book._known[far]
        assert under.link.limit_bytes_per_s == 2e6
        limits[far] = 1e5  # tighter: said at once, and nothing is measured for it
        assert (link := book.link(far)) is not None
        assert link.out_bytes_per_s == link.in_bytes_per_s == 1e5
        await asyncio.sleep(0.2)
        assert book._known[far] == under
    attic.network.pace.limit(0)
    limits.clear()
    again = LinkRegistry(den.network, file, lambda: None, limit=limits.get)  # after a restart, too
    async with running(again):
        await until(lambda: again._known[far] != under)
        assert (free := again.link(far)) is not None
        assert min(free.out_bytes_per_s, free.in_bytes_per_s) > 4e6
        assert free.limit_bytes_per_s is None


async def test_a_link_at_rest_is_measured_whole_only_when_its_round_trip_changed(nodes: Nodes, tmp_path: Path) -> None:
    den, attic = await nodes.paired("den", "attic")
    far = attic.network.id
    book = book_of(den, tmp_path / "links.json")
    await book._measure(far)
    assert not await book._has_changed(far)
    known = book._known[far]
    book._known[far] = msgspec.structs.replace(known, link=replace(known.link, round_trip_s=0.05))
    assert await book._has_changed(far)


async def test_the_better_of_two_ways_is_taken_and_named(nodes: Nodes, tmp_path: Path) -> None:
    den, attic = await nodes.paired("den", "attic")
    far, link = attic.network.id, den.network.link(attic.network.id)
    book = book_of(den, tmp_path / "links.json")
    # so slow that a busy computer makes no way without it as slow
    with relay(attic.network.port, Faults(rate_bits_per_s=5e6, delay_s=0.002)) as slow:
        measured_paths.switch_to(den.network, far, Address("127.0.0.1", slow.port))
        await book._measure(far)
        assert link.address == at(attic)
        assert book.snapshot()[far].measured_address == str(at(attic))
        assert book._known[far].link.out_bytes_per_s > 5e6 / 8


@pytest.mark.long
async def test_a_better_way_that_is_heard_of_is_taken_and_a_false_one_is_not(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_registry, "LOOK_SECONDS", 0.05)
    den, attic, loft = await nodes.paired("den", "attic", "loft")
    far, link = attic.network.id, den.network.link(attic.network.id)
    with relay(attic.network.port, Faults(rate_bits_per_s=20e6, delay_s=0.002)) as relayed:
        slow = Address("127.0.0.1", relayed.port)
        heard = [slow]
        monkeypatch.setattr(den.network, "addresses", lambda machine: tuple(heard))
        measured_paths.switch_to(den.network, far, slow)
        async with running(book_of(den, tmp_path / "links.json")) as book:
            book.connected(far)
            await until(lambda: book.link(far))
            first = book._known[far].measured_at
            heard += [at(loft), Address("127.0.0.1", 1)]  # another member; nobody
            await until(lambda: len(book._ways) == 3)
            await asyncio.sleep(0.3)
            assert link.address == slow
            assert book._known[far].measured_at == first
            heard.append(at(attic))
            await until(lambda: link.address == at(attic))
            await until(lambda: book._known[far].address == str(at(attic)))
            heard[:] = [at(attic)]


async def test_when_the_way_in_use_goes_another_one_is_taken(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    den, attic = await nodes.paired("den", "attic")
    far, link = attic.network.id, den.network.link(attic.network.id)
    book = book_of(den, tmp_path / "links.json")
    with relay(attic.network.port, Faults()) as relayed:
        measured_paths.switch_to(den.network, far, Address("127.0.0.1", relayed.port))
    await book._measure(far)
    assert link.address == at(attic)
    assert book._known[far].address == str(at(attic))


async def test_a_way_over_a_vpn_is_not_even_tried_unless_chosen(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.node.links.link_registry.own_host_towards", lambda host: "10.8.0.2")
    den = await nodes.open("den")
    way = Address("10.8.0.1", 4242)
    for chosen, tried in ((frozenset[str](), False), (frozenset(["wg0"]), True)):
        book = LinkRegistry(den.network, tmp_path / "x", lambda: None, chosen)
        book._interfaces = (Interface("wg0", LinkKind.VPN, True, ("10.8.0.2",)),)
        assert book._may_use(FAR, way) is tried
        book._interfaces = (Interface("eth0", LinkKind.ETHERNET, True, ("10.8.0.2",)),)
        assert book._may_use(FAR, way)
        book._ways[FAR, way] = False
        assert not book._may_use(FAR, way)
    monkeypatch.setattr("app.node.links.link_registry.own_host_towards", lambda host: None)
    assert not book._may_use(FAR, Address("10.8.0.1", 1))


@pytest.mark.long
async def test_by_hand(nodes: Nodes, tmp_path: Path) -> None:
    alone = await nodes.open("alone")
    with pytest.raises(BadInput):
        await book_of(alone, tmp_path / "none.json").measure_now()
    den, attic = await nodes.paired("den", "attic")
    book = book_of(den, tmp_path / "links.json")
    links = (await book.measure_now()).links
    assert [item.name for item in links] == ["attic"]
    assert links[0].reason is None
    assert (links[0].in_bytes_per_s or 0) > 0
    attic.at_work = True
    refused = (await book.measure_now()).links
    assert "attic is busy" in (refused[0].reason or "")
    assert book.link(attic.network.id) is not None  # what was known stays


# real nodes


@pytest.mark.long
async def test_no_link_is_measured_while_an_answer_is_made(tmp_path: Path) -> None:
    """Neither from the host nor from the lender, as soon as it runs and until it ends."""
    with paired(tmp_path, "den", "attic") as (den, attic):
        loaded = den.run("load", "guide", "--split", "2,4,2", "--json")
        assert loaded.returncode == 0, loaded.stderr
        async with den.client() as host, attic.client() as lender:
            async with asyncio.timeout(60):  # the lender's own pause after the last step
                while await _reason(host) is not None:
                    pass
            body = {"prompt": "How", "raw": True, "max_tokens": 1500, "ignore_end": True}
            async with aclosing(host.stream("POST", "/ask", body)) as lines:
                async for line in lines:
                    if "delta" in line:
                        break
                assert "only while this machine is not answering" in str(await _reason(host))
                assert await _reason(lender) is not None


async def _reason(node: NodeClient) -> str | None:
    """Why the only link was not measured, if so."""
    (link,) = (await node.post("/measure"))["links"]
    return None if link["reason"] is None else str(link["reason"])


@pytest.mark.long
def test_nodes_measure_their_links_and_show_them(tmp_path: Path) -> None:
    with paired(tmp_path, "den", "attic") as pool:
        den, attic = pool
        shown = _measured_link(den, attic)
        assert shown["kind"] == "loopback"
        assert shown["out_bytes_per_s"] > 1e6
        by_hand = den.run("measure", "--json")
        assert by_hand.returncode == 0, by_hand.stderr
        assert json.loads(by_hand.stdout)["links"][0]["jitter_seconds"] >= 0
        table = den.run("measure").stdout
        assert "attic" in table
        assert "bit/s" in table
        assert "bit/s" in den.run("status").stdout


def _measured_link(den: TestNode, attic: TestNode) -> dict[str, Any]:
    async def look() -> dict[str, Any]:
        async with den.client() as client, asyncio.timeout(60):
            while True:
                links: dict[str, Any] = (await client.get("/status"))["links"]
                value: dict[str, Any] = links.get(attic.ready["id"], {})
                if value.get("out_bytes_per_s"):
                    return value
                await asyncio.sleep(0.1)

    return asyncio.run(look())
