"""Real links of a machine whose owner limits them: as fast as allowed, and never taken for dead."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from app.core.ids import PipelineId
from app.network.peer.peer_link import PeerLink, WorkerProgress
from app.network.traffic_limits import BYTES_OF_MBIT
from tests.network.nodes import QUICK, Node, Nodes, measured, until

PIPELINE = PipelineId(bytes(16))
BODY_BYTES = 600_000


async def body() -> AsyncIterator[bytes]:
    yield bytes(BODY_BYTES)


async def uploaded_s(link: PeerLink) -> float:
    begun = time.monotonic()
    assert await link.upload_pieces(PIPELINE, body()) == b'{"got": %d}' % BODY_BYTES
    return time.monotonic() - begun


@pytest.mark.parametrize("limited", ["who sends", "who receives"])
async def test_layers_take_what_they_must(nodes: Nodes, limited: str) -> None:
    den, attic = await nodes.paired("den", "attic")
    (den if limited == "who sends" else attic).network.pace.limit(20)
    must_s = BODY_BYTES / (20 * BYTES_OF_MBIT)
    took_s = await uploaded_s(den.network.link(attic.network.id))
    assert 0.85 * must_s < took_s < must_s + 20
    den.network.pace.limit(0)
    attic.network.pace.limit(0)
    link = den.network.link(attic.network.id)
    assert min([await uploaded_s(link) for _ in range(5)]) < took_s


@pytest.mark.parametrize("limited", ["here", "there"])
async def test_a_measurement_keeps_to_the_limit_and_finds_it(nodes: Nodes, limited: str) -> None:
    den, attic = await nodes.paired("den", "attic")
    (den if limited == "here" else attic).network.pace.limit(16)
    least: list[float] = []
    for _ in range(5):  # a busy computer only takes away
        measurement = await measured(den, attic)
        assert max(measurement.out_bytes_per_s, measurement.in_bytes_per_s) < 1.1 * 16 * BYTES_OF_MBIT
        least.append(min(measurement.out_bytes_per_s, measurement.in_bytes_per_s))
        if least[-1] > 0.5 * 16 * BYTES_OF_MBIT:
            break
        await until(lambda: not attic.network.probes._active)
    assert max(least) > 0.5 * 16 * BYTES_OF_MBIT


async def test_a_full_link_is_slow_at_both_ends_and_dead_at_none(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames and layers wait; heartbeats do not, and each side knows that nothing is lost."""
    den, attic = await nodes.paired("den", "attic", heartbeat=QUICK)
    for node in (den, attic):
        monkeypatch.setattr(node, "work", WorkerProgress)  # nothing is computed
    link = den.network.link(attic.network.id)
    channel = await link.open_data(PIPELINE)
    attic.network.pace.limit(4)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(uploaded_s(link), name="layers")
        tasks.create_task(channel.send(bytes(100_000)), name="a frame")
        echoed = tasks.create_task(channel.receive(), name="its echo")
        await asyncio.sleep(3 * QUICK.dead_after_seconds)
        await link.inquire()
        assert link.computes()  # its word
        assert attic.network.link(den.network.id).computes()  # its own limit
        assert len(await echoed) == 100_000
    assert doubts_of(den, attic) == []
    assert den.network.link(attic.network.id) is link
    await channel.close()


def doubts_of(*some: Node) -> list[bool]:
    return [doubted for node in some for doubted in node.doubts]
