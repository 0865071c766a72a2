"""Several ways to one machine: which is chosen, and what happens when it goes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from app.core.errors import Busy, Unreachable
from app.core.household.link import LinkEnd
from app.core.ids import PipelineId
from app.network import measured_paths
from app.network.measured_paths import Path as Way
from app.network.measured_paths import choose
from app.network.peer import peer_link
from app.network.peer.probe import Measured, RoundTrips
from app.network.sockets import Address
from testbed.fault_link import Faults, relay
from tests.network.nodes import Nodes, at, until

PIPELINE = PipelineId(bytes(16))


def way(host: str, megabits: float, round_trip_ms: float) -> Way:
    trips = RoundTrips(round_trip_ms / 1e3, round_trip_ms / 1e3, 0.0)
    measured = Measured(trips, megabits / 8 * 1e6, megabits / 8 * 1e6, LinkEnd())
    return Way(Address(host, 1), "10.0.0.9", measured)


CABLE, WIFI, SLIGHTLY, SLOW = (way("c", 940, 0.3), way("w", 200, 3.0), way("s", 1000, 0.25), way("x", 8, 40))


@pytest.mark.parametrize(
    ("paths", "present", "expected"),
    [
        ([WIFI, CABLE], "w", CABLE),
        ([CABLE, WIFI], "c", CABLE),
        ([CABLE, SLIGHTLY], "c", CABLE),  # not worth a change
        ([CABLE, SLIGHTLY], "gone", SLIGHTLY),
        ([SLOW, WIFI, CABLE], "x", CABLE),
        ([SLOW], "gone", SLOW),
    ],
)
def test_a_way_is_left_only_for_a_much_better_one(paths: list[Way], present: str, expected: Way) -> None:
    assert choose(paths, Address(present, 1)) is expected


async def test_frames_take_the_chosen_way_and_go_back_when_it_is_gone(nodes: Nodes) -> None:
    den, attic = await nodes.paired("den", "attic")
    far, link = attic.network.id, den.network.link(attic.network.id)
    with relay(attic.network.port, Faults()) as other:
        there = Address("127.0.0.1", other.port)
        measured_paths.switch_to(den.network, far, there)
        assert link.address == there
        channel = await link.open_data(PIPELINE)
        await channel.send(b"frame")
        assert await channel.receive() == b"frame"
        await channel.close()
    assert await link.offer_stage(PIPELINE, b"{}") == b'{"wanted": 2}'
    assert link.address == at(attic)
    channel = await link.open_data(PIPELINE)
    await channel.send(b"frame")
    assert await channel.receive() == b"frame"
    await channel.close()
    assert den.network.links[far] is link


async def test_open_channels_outlive_a_change_of_way(nodes: Nodes) -> None:
    den, attic = await nodes.paired("den", "attic")
    link = den.network.link(attic.network.id)
    channel = await link.open_data(PIPELINE)
    with relay(attic.network.port, Faults()) as other:
        measured_paths.switch_to(den.network, attic.network.id, Address("127.0.0.1", other.port))
        await channel.send(b"frame")
        assert await channel.receive() == b"frame"
    await channel.close()


async def test_what_was_opened_over_left_paths_ends_when_nobody_uses_it(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer_link, "ABANDONED_SECONDS", 0.01)
    den, attic = await nodes.paired("den", "attic")
    far, link = attic.network.id, den.network.link(attic.network.id)
    first = link.paths.now
    with relay(attic.network.port, Faults()) as fault_link, relay(attic.network.port, Faults()) as two:
        measured_paths.switch_to(den.network, far, Address("127.0.0.1", fault_link.port))
        idle, channel = link.paths.now, await link.open_data(PIPELINE)
        assert not idle.is_idle
        measured_paths.switch_to(den.network, far, Address("127.0.0.1", two.port))
        session = idle.host_session()
        await channel.send(b"frame")
        assert await channel.receive() == b"frame"
        assert not session.closed
        await channel.close()
        await until(lambda: session.closed)
        await until(lambda: link.paths.abandoned == [])
        measured_paths.switch_to(den.network, far, at(attic))  # the next one is noticed as well
        await until(lambda: link.paths.abandoned == [])
        assert await link.offer_stage(PIPELINE, b"{}") == b'{"wanted": 2}'
        assert not first._closed  # there is a way back
    assert den.network.links[far] is link


async def test_requests_under_way_keep_a_left_path(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_link, "ABANDONED_SECONDS", 0.01)
    den, attic = await nodes.paired("den", "attic")
    far, link = attic.network.id, den.network.link(attic.network.id)
    with relay(attic.network.port, Faults()) as fault_link:
        measured_paths.switch_to(den.network, far, Address("127.0.0.1", fault_link.port))
        left = link.paths.now
        more = asyncio.Event()

        async def chunks() -> AsyncIterator[bytes]:
            yield b"half"
            await more.wait()
            yield b"half"

        async with asyncio.TaskGroup() as tasks:
            upload = tasks.create_task(link.upload_pieces(PIPELINE, chunks()))
            await until(lambda: not left.is_idle)
            measured_paths.switch_to(den.network, far, at(attic))
            await asyncio.sleep(0.05)
            assert not left._closed
            more.set()
        assert upload.result()
        await until(lambda: left._closed)


async def test_no_change_during_work_or_without_a_link(nodes: Nodes) -> None:
    den, attic = await nodes.paired("den", "attic")
    den.at_work = True
    with pytest.raises(Busy):
        measured_paths.switch_to(den.network, attic.network.id, at(attic))
    den.at_work = False
    await den.network.remove(attic.network.id)
    with pytest.raises(Unreachable):
        measured_paths.switch_to(den.network, attic.network.id, at(attic))
