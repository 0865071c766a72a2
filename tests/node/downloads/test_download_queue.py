"""The queue of downloads: two run, the others wait in an order that can be changed, and all can be paused at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio

from app.api.downloads import Download, totals
from app.catalog.transfers.download_records import Record
from app.core.errors import BadInput
from app.node.downloads.download_turns import DownloadTurns
from tests.catalog.hub_server import HubServer
from tests.node.download_place import Place, running

NAMES = ("a", "b", "c", "d")


@pytest.mark.parametrize("at_once", [1, 2, 3])
async def test_turns_follow_the_order_as_it_is_when_one_is_free(at_once: int) -> None:
    order, began = list(NAMES), list[str]()
    turns = DownloadTurns(at_once, lambda: order)
    ends = {name: asyncio.Event() for name in NAMES}

    async def work(name: str) -> None:
        async with turns.turn(name):
            began.append(name)
            await ends[name].wait()

    async with asyncio.TaskGroup() as group:
        for name in NAMES:
            group.create_task(work(name))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert began == list(NAMES[:at_once])
        order.reverse()
        ends["a"].set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert began[at_once:] == ["d"]
        for end in ends.values():
            end.set()
    assert sorted(began) == sorted(NAMES)


async def test_a_canceled_wait_or_turn_gives_its_place_away() -> None:
    turns, began = DownloadTurns(1, lambda: NAMES), list[str]()

    async def work(name: str) -> None:
        async with turns.turn(name):
            began.append(name)
            await asyncio.Event().wait()

    async with asyncio.TaskGroup() as group:
        tasks = {name: group.create_task(work(name), name=name) for name in ("a", "b", "c")}
        await asyncio.sleep(0.01)
        tasks["b"].cancel()  # while it waits
        await asyncio.sleep(0.01)
        tasks["a"].cancel()  # while it runs
        await asyncio.sleep(0.01)
        assert began == ["a", "c"]
        tasks["c"].cancel()


@pytest_asyncio.fixture
async def queue(server: HubServer, tmp_path: Path) -> AsyncGenerator[tuple[Place, list[str]], None]:
    """Four downloads, of which the first two run and stand still."""
    server.faults.hold = asyncio.Event()
    server.faults.bytes_at_once = 1 << 16
    server.others = {f"{name}.gguf": server.data for name in NAMES}
    async with AsyncExitStack() as stack:
        place = await stack.enter_async_context(running(Place(server, tmp_path)))
        keys = [(await place.start(file=f"{name}.gguf", name=name)).id for name in NAMES]
        for key in keys[:2]:
            await place.until(key, lambda now: now.state == "running")
        yield place, keys
        server.faults.hold.set()


def states(place: Place, keys: list[str]) -> list[str]:
    return [place.downloads.described(key).state for key in keys]


async def test_the_order_can_be_changed_and_outlives_a_restart(queue: tuple[Place, list[str]]) -> None:
    place, (a, b, c, d) = queue
    assert states(place, [c, d]) == ["waiting", "waiting"]
    await place.downloads.move(d, c)
    assert list(place.downloads.snapshot()) == [a, b, d, c]
    assert [item.place for item in place.downloads.snapshot().values()] == [0, 1, 2, 3]
    await place.downloads.pause(a)
    await place.until(d, lambda now: now.state == "running")
    assert states(place, [c]) == ["waiting"]
    await place.downloads.move(a, None)
    await place.downloads.move(c, a)
    await place.downloads.move(b, b)  # nowhere
    assert list(place.downloads.snapshot()) == [b, d, c, a]
    with pytest.raises(BadInput):
        await place.downloads.move("0" * 16, a)
    with pytest.raises(BadInput):
        await place.downloads.move(a, "0" * 16)
    assert [record.id for record in place.downloads.book.all()] == [b, d, c, a]


async def test_many_moves_keep_the_order_and_a_new_one_comes_last(queue: tuple[Place, list[str]]) -> None:
    place, (a, b, c, d) = queue
    order = [b, c]
    for _ in range(70):  # more than a float can be halved
        order.reverse()
        await place.downloads.move(order[1], d)
        await place.downloads.move(order[0], order[1])
        assert list(place.downloads.snapshot()) == [a, *order, d]
    assert [record.id for record in place.downloads.book.all()] == [a, *order, d]
    await place.downloads.move(a, None)
    await place.downloads.move(d, None)
    place.server.others["e.gguf"] = place.server.data
    e = (await place.start(file="e.gguf", name="e")).id
    assert list(place.downloads.snapshot()) == [*order, a, d, e]


async def test_a_new_download_comes_after_one_that_an_earlier_version_moved_to_the_end(
    queue: tuple[Place, list[str]],
) -> None:
    place, (a, b, c, d) = queue
    await place.downloads._ledger.change(a, place=place.downloads._ledger[d].started + 3600)
    place.server.others["e.gguf"] = place.server.data
    e = (await place.start(file="e.gguf", name="e")).id
    assert list(place.downloads.snapshot()) == [b, c, d, a, e]


async def test_one_that_cannot_be_saved_as_paused_leaves_no_other_running(
    queue: tuple[Place, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    place, keys = queue
    write = place.downloads.book.write

    def fails_for_the_last(record: Record) -> None:
        if record.id == keys[-1]:
            raise BadInput("disk_failed", folder="models", why="")
        write(record)

    monkeypatch.setattr(place.downloads.book, "write", fails_for_the_last)
    with pytest.raises(BadInput):
        await place.downloads.pause_all()
    assert states(place, keys) == ["paused"] * 4


async def test_all_are_paused_and_resumed_at_once(queue: tuple[Place, list[str]]) -> None:
    place, keys = queue
    assert {item.state for item in (await place.downloads.pause_all()).values()} == {"paused"}
    assert totals(place.downloads.snapshot().values()).n_going == 0
    hold = place.server.faults.hold
    assert hold is not None
    hold.set()
    await place.downloads.resume_all()
    for key in keys:
        assert (await place.ended(key)).state == "done"
    assert totals(place.downloads.snapshot().values()).n == 0


async def test_what_cannot_be_resumed_says_why_and_hinders_no_other(queue: tuple[Place, list[str]]) -> None:
    place, (a, b, *_) = queue
    await place.downloads.pause_all()
    place.disk.free = 1 << 20
    listed = await place.downloads.resume_all()
    assert listed[a].state == listed[b].state == "failed"
    assert listed[a].reason is not None
    place.disk.free = 1 << 50


def test_totals_are_those_of_what_is_left() -> None:
    running_one = Download(id="a", state="running", done_bytes=30, total_bytes=100, bytes_per_s=7)
    waiting = Download(id="b", state="waiting", total_bytes=70)
    paused = Download(id="c", state="paused", done_bytes=10, total_bytes=20)
    done = Download(id="d", state="done", done_bytes=50, total_bytes=50)
    sums = totals([running_one, waiting, paused, done])
    assert (sums.n, sums.n_going, sums.done_bytes, sums.total_bytes) == (3, 2, 40, 190)
    assert (sums.seconds_left, sums.is_least) == (20, False)
    checked = Download(id="f", state="checking", done_bytes=5, total_bytes=40, bytes_per_s=99)
    sums = totals([running_one, checked])
    assert (sums.done_bytes, sums.total_bytes, sums.seconds_left) == (70, 140, 10), "what is checked has arrived"
    unknown = totals([running_one, Download(id="e", state="starting")])
    assert (unknown.seconds_left, unknown.is_least) == (None, True)
    assert totals([paused]).seconds_left is None
