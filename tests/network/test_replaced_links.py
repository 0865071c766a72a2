"""A link that takes the place of another, and what a restless or a full computer makes of links."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from app.core.errors import DoesNotFit, Reason, Unreachable
from app.core.ids import MachineId
from app.machine.keyring_store import FileStore
from app.machine.paths import Home
from app.network.identity import load_or_create
from app.network.membership.household_log import LogKeeper, LogStore
from app.network.messages import CloseStage, HelloAck, Message
from app.network.peer import peer_links
from app.network.peer.peer_link import WAITING_MESSAGES, PeerLink
from app.network.peer.peer_links import HELLO_SECONDS
from app.network.sockets import Address
from tests.network.nodes import Node, Nodes, opened, pair, until
from tests.network.peer.test_peer_links import Puppet

ATTIC = MachineId("a" * 64)
HERE, THERE = Address("10.0.0.1", 1), Address("10.0.0.2", 2)


@pytest.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[Nodes]:
    async with opened(tmp_path) as made:
        yield made


async def gone(nodes: Nodes) -> tuple[Node, Node]:
    """den, and attic: paired, but attic's node has ended. Nobody's heart beats quickly."""
    den, attic = await nodes.open("den"), await nodes.prepare("attic")
    async with attic.network:
        await pair(den, attic)
    await until(lambda: not den.network.links)
    return den, attic


async def test_an_old_link_that_ends_late_does_not_say_so_after_the_new_one_came(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the machine would count as away for as long as the new link lives."""
    monkeypatch.setattr(peer_links, "REPLACED_SECONDS", 0.05)
    den, attic = await gone(nodes)
    reports: list[tuple[str, str]] = []
    held_up, cleaned_up = asyncio.Event(), asyncio.Event()

    async def came(link: PeerLink) -> None:
        reports.append(("came", link.hello.instance[:1]))

    async def left(link: PeerLink) -> None:
        reports.append(("left", link.hello.instance[:1]))

    async def stubborn(link: PeerLink, message: object) -> None:
        held_up.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await cleaned_up.wait()
            raise

    for name, handler in (("connected", came), ("disconnected", left), ("message", stubborn)):
        monkeypatch.setattr(den, name, handler)
    async with Puppet(den, attic) as first, Puppet(den, attic) as second:
        await first.greet(instance="a" * 32)
        await first.say(CloseStage(pipeline="0" * 32))
        await held_up.wait()
        old = den.network.link(attic.network.id)
        assert isinstance(await second.greet(instance="c" * 32), HelloAck)
        await until(lambda: ("came", "c") in reports)
        assert not old.finished.is_set()
        cleaned_up.set()
        await until(old.finished.is_set)
        await asyncio.sleep(0.05)
        assert reports == [("came", "a"), ("left", "a"), ("came", "c")]
        assert den.network.link(attic.network.id) is not old


async def test_who_calls_waits_until_the_other_side_has_made_way(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    den, _ = await gone(nodes)
    make_way = peer_links.LinkManager._make_way

    async def slowly(self: peer_links.LinkManager, *args: Any) -> None:
        if self is den.network.link_manager:
            await asyncio.sleep(HELLO_SECONDS + 0.3)
        await make_way(self, *args)

    monkeypatch.setattr(peer_links.LinkManager, "_make_way", slowly)
    again = await nodes.prepare("attic")
    async with again.network:
        await until(lambda: again.network.links)
        assert again.network.link(den.network.id).dialed


async def test_a_burst_of_messages_that_are_carried_out_at_once_is_no_flood(nodes: Nodes) -> None:
    """A link that was away for an hour reports everything again that was given back in the meantime."""
    den, attic = await gone(nodes)
    count = 4 * WAITING_MESSAGES
    async with Puppet(den, attic) as puppet:
        await puppet.greet()
        for _ in range(count):
            await puppet.say(CloseStage(pipeline="0" * 32))
        await until(lambda: len(closings(den)) == count or not den.network.links)
        assert den.network.links
        assert len(closings(den)) == count


def closings(node: Node) -> list[Message]:
    return [item for item in node.heard if isinstance(item, CloseStage)]


async def keeper(folder: Path) -> tuple[LogKeeper, LogStore]:
    home = Home.at(folder).create()
    me = await load_or_create(home, FileStore(home.identity / "passphrase"))
    store = LogStore(home.household, home.write)
    return LogKeeper(me, store, lambda: None), store


async def test_a_place_that_did_not_get_onto_the_disk_is_kept_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The link ended while its address was written."""
    log, store = await keeper(tmp_path)
    save, writes = store.save_addresses, asyncio.Event()

    async def hangs(addresses: object) -> None:
        writes.set()
        await asyncio.sleep(60)

    monkeypatch.setattr(store, "save_addresses", hangs)
    async with asyncio.TaskGroup() as tasks:
        remembering = tasks.create_task(log.remember(ATTIC, HERE))
        await writes.wait()
        remembering.cancel()
    monkeypatch.setattr(store, "save_addresses", save)
    assert await store.load_addresses() == {}
    await log.remember(ATTIC, HERE)
    assert await store.load_addresses() == {ATTIC: (HERE,)}


async def test_a_full_disk_ends_no_link(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    den, attic = await gone(nodes)

    async def full(*_: object) -> None:
        raise DoesNotFit("household_unsaved", path="x", why="full")

    monkeypatch.setattr(den.network._log, "_addresses", {})
    monkeypatch.setattr(den.network._log._store, "save_addresses", full)
    async with Puppet(den, attic) as puppet:
        assert isinstance(await puppet.greet(), HelloAck)
        await puppet.say(CloseStage(pipeline="0" * 32))
        await until(lambda: closings(den))
        assert den.linked[-1] == attic.network.id
        assert den.network.links


async def test_a_link_that_ends_while_it_comes_up_is_no_bug_and_comes_again(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    den, attic = await nodes.paired("den", "attic")
    await until(lambda: den.linked)  # else the first link is one that was never up
    up, linked = den.network.link(attic.network.id), den.connected
    flaps = [1]

    async def connected(link: PeerLink) -> None:
        if flaps and flaps.pop():
            raise Unreachable("link_lost", name=link.name)
        await linked(link)

    monkeypatch.setattr(den, "connected", connected)
    before = len(den.linked), len(den.unlinked)
    await up.close(Reason("link_lost", {"name": "attic"}))
    await until(lambda: len(den.linked) == before[0] + 1)
    assert not flaps
    assert len(den.unlinked) >= before[1] + 2  # the one that was up, and the one that was not yet
    assert den.unlinked[before[1] + 1].ended == Reason("link_lost", {"name": "attic"})
    assert not [record for record in caplog.records if record.exc_info]
