"""Whole nodes: pairing, links, gossip, removal, stages between them."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.core.errors import DoesNotFit, Reason, Refused, Unreachable
from app.core.household.household import Announced
from app.core.household.membership import Member
from app.core.household.operations import Role
from app.core.ids import PipelineId
from app.network.messages import PROTOCOL, CloseStage, Leaving, Status
from app.network.peer import peer_client
from tests.network.nodes import SOON_SECONDS, Nodes, pair, until

PIPELINE = PipelineId(bytes(16))


async def test_two_machines_pair_and_talk(nodes: Nodes) -> None:
    den, attic = await nodes.paired("den", "attic")
    await until(lambda: attic.network.id in den.network.links)
    assert set(den.network.members) == set(attic.network.members)
    assert attic.network.members[attic.network.id].roles == {Role.HOST, Role.LENDER}

    link = attic.network.link(den.network.id)
    await link.send(CloseStage(pipeline="0" * 32))
    await until(lambda: den.heard == [CloseStage(pipeline="0" * 32)])
    assert await link.offer_stage(PIPELINE, b"x" * 100_000) == b'{"wanted": 100000}'

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(5):
            yield bytes(1 << 20)

    assert await link.upload_pieces(PIPELINE, chunks()) == b'{"got": %d}' % (5 << 20)
    channel = await link.open_data(PIPELINE)
    for size in (0, 1, 16_384, 5 << 20):
        await channel.send(bytes(size))
        assert await channel.receive() == bytes(size)
    await channel.close()
    with pytest.raises(Unreachable):
        await channel.receive()


async def test_a_lender_may_hash_large_layers_for_long(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    den, attic = await nodes.paired("den", "attic")
    link = attic.network.link(den.network.id)

    async def slowly(member: Member, pipeline: PipelineId, body: bytes) -> bytes:
        await asyncio.sleep(0.6)
        return b"[]"

    monkeypatch.setattr(den, "stage_offer", slowly)
    monkeypatch.setattr(peer_client, "ANSWER_SECONDS", 0.2)
    with pytest.raises(Unreachable):
        await link.offer_stage(PIPELINE, b"x", 1 << 20)
    assert await link.offer_stage(PIPELINE, b"x", 200 << 20) == b"[]"


async def test_third_machine_is_known_to_all(nodes: Nodes) -> None:
    den, attic, loft = await nodes.paired("den", "attic", "loft")
    await until(lambda: len(attic.network.members) == 3)
    assert set(loft.network.members) == set(attic.network.members) == set(den.network.members)


async def test_removal_ends_links_soon(nodes: Nodes) -> None:
    den, attic, loft = await nodes.paired("den", "attic", "loft")
    await until(lambda: len(attic.network.members) == 3)
    channel = await loft.network.link(den.network.id).open_data(PIPELINE)
    started = time.monotonic()
    await den.network.remove(loft.network.id)
    with pytest.raises(Unreachable):
        await channel.receive()
    await until(lambda: not loft.network.links)
    assert time.monotonic() - started < SOON_SECONDS
    await until(lambda: loft.network.dismissed and loft.members[-1] == {})
    await until(lambda: loft.network.id not in attic.network.members)
    assert not den.network.addresses(loft.network.id)
    with pytest.raises(Refused) as refused:
        await loft.network.join(den.network.address, "123456")
    assert refused.value.reason.code == "removed_needs_reset"


async def test_a_new_name_reaches_the_link(nodes: Nodes) -> None:
    den, attic = await nodes.paired("den", "attic")
    status = Status(name="loft", device="", total_bytes=1, lendable_bytes=0, used_bytes=0, state="off")
    await attic.network.broadcast(status)
    await until(lambda: den.network.link(attic.network.id).name == "loft")


async def test_goodbye_is_heard(nodes: Nodes, tmp_path: Path) -> None:
    den = await nodes.open("den")
    attic = await nodes.prepare("attic")
    async with attic.network:
        await pair(den, attic)
        await until(lambda: attic.network.id in den.network.links)
        link = den.network.link(attic.network.id)
    await until(lambda: Leaving(reason="shutting_down") in den.heard)
    await until(lambda: not den.network.links)
    assert link.ended == Reason("shutting_down")  # nothing broke


async def test_links_come_back_after_a_restart(nodes: Nodes) -> None:
    den = await nodes.open("den")
    attic = await nodes.prepare("attic")
    async with attic.network:
        await pair(den, attic)
        port = attic.network.port
    await until(lambda: not den.network.links)
    again = await nodes.open("attic", port=port)
    await until(lambda: den.network.links and again.network.links)
    assert again.network.id == attic.network.id


async def test_both_dial_at_once_and_one_link_remains(nodes: Nodes) -> None:
    den, attic = await nodes.paired("den", "attic")
    for _ in range(5):
        await until(lambda: den.network.links and attic.network.links)
        first, second = den.network.link(attic.network.id), attic.network.link(den.network.id)
        den.network.address_book.note_announcement(
            Announced(attic.network.id[:16], ("127.0.0.1",), attic.network.port, protocol=PROTOCOL)
        )
        for link in (first, second):  # both ends lose it at once, without a word
            writer = link._socket._writer
            assert writer is not None
            writer.transport.abort()
        await asyncio.sleep(0.3)
    ended = -1
    async with asyncio.timeout(60):
        while len(den.unlinked) != ended:  # until it rests
            ended = len(den.unlinked)
            await asyncio.sleep(1)
            await until(lambda: den.network.links and attic.network.links)
    assert len(den.network.links) == len(attic.network.links) == 1


async def test_a_lender_that_refuses_in_the_middle_of_an_upload_is_understood(nodes: Nodes) -> None:
    den, attic = await nodes.paired("den", "attic")

    async def refuse(*_: object) -> bytes:
        raise DoesNotFit("disk_full", folder="x", needed_bytes=2, free_bytes=1)

    den.pieces = refuse  # type: ignore[method-assign, assignment]

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield bytes(1 << 20)

    link = attic.network.link(den.network.id)
    with pytest.raises(DoesNotFit) as said:
        await link.upload_pieces(PIPELINE, chunks())
    assert said.value.reason.facts == {"folder": "x", "needed_bytes": 2, "free_bytes": 1}
    assert await link.offer_stage(PIPELINE, b"x") == b'{"wanted": 1}'


async def test_a_lost_link_ends_what_was_opened_with_it(nodes: Nodes) -> None:
    den, attic = await nodes.paired("den", "attic")
    link = attic.network.link(den.network.id)
    channel = await link.open_data(PIPELINE)

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield bytes(1000)
            await asyncio.sleep(0.01)

    async def upload() -> None:
        with pytest.raises(Unreachable):
            await link.upload_pieces(PIPELINE, endless())

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(upload())
        await asyncio.sleep(0.1)
        await link.close(Reason("link_lost", {"name": "den"}))
    for call in (channel.receive(), channel.send(b"x"), link.send(CloseStage(pipeline="0" * 32))):
        with pytest.raises(Unreachable):
            await call
    with pytest.raises(Unreachable):
        await link.offer_stage(PIPELINE, b"{}")


async def test_what_is_told_may_be_broken_off_before_it_is_sent(nodes: Nodes) -> None:
    """No task may be left unawaited when the node stops: that is a warning, and fails here."""
    den, _ = await nodes.paired("den", "attic")
    async with asyncio.TaskGroup() as group:
        telling = group.create_task(den.network.broadcast(CloseStage(pipeline="0" * 32)))
        await asyncio.sleep(0)  # it has begun, and what it began has not
        telling.cancel()
    gc.collect()
