"""Tests of the memory that a check of a sample uses, and that it gives all of it back on demand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from app.catalog.shelf import Entry, Shelf
from app.catalog.stages.stage_store import StageStore
from app.core.errors import AppError, DoesNotFit
from app.core.ids import MachineId
from app.core.planner.placement import Candidate, Plan, Workload
from app.core.planner.plan import plan
from app.inference.pipeline.result_checks import Sample
from app.inference.stages.stage_client import Run
from app.inference.worker.worker import Worker
from app.machine.hardware.cores import Threads
from app.node.planning.planning import Sizes
from app.node.verification.spare_memory import SpareMemory
from app.node.verification.verifier import FOLDER, SampleRecomputer
from backends.contract import Layers, NumberFormat, Role
from testbed import tiny

GIB, WIDTH = 1 << 30, 256
SIZES = Sizes(NumberFormat.F16, 4, 512, 512, 64, Threads(1))
DEN, ATTIC = (MachineId(c * 64) for c in "da")
SAMPLE = Sample(
    Run(bytes(16), Role.MIDDLE, WIDTH, NumberFormat.F16), 16, bytes(16 * NumberFormat.F16.row_bytes(WIDTH)), b""
)


class Place:
    """A machine with a model of four layers, of which another machine computes two."""

    def __init__(self, folder: Path) -> None:
        self.stages = StageStore(folder / "stages", GIB)
        self.shelf = Shelf(folder / "models", folder / "none", self.stages)
        self.entry: Entry = self.shelf.import_file(tiny.llama(folder / "m.gguf", layers=4, width=WIDTH, ffn=512))
        machines = [Candidate(key, key[0], 1 << 40) for key in (DEN, ATTIC)]
        self.plan: Plan = plan(machines[0], machines[1:], self.entry.model, Workload(512), (1, 2, 1))
        self.spare, self.own = 2 * GIB, folder / FOLDER
        self.room = SpareMemory(lambda: self.spare)
        self.computing = SampleRecomputer(self.entry, self.shelf, self.stages, SIZES, self.room)

    async def rows(self) -> Any:
        return await self.computing.rows(self.plan.stages[1], SAMPLE)

    def fill(self, layers: Layers) -> str:
        """A stage file, as another host has brought it."""
        cut = self.shelf.cut(self.entry, layers, Role.MIDDLE)
        self.stages.write_stage(cut)
        return cut.manifest.id


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@asynccontextmanager
async def under_way(place: Place, patch: pytest.MonkeyPatch) -> AsyncIterator[list[Worker]]:
    """A check that computes, and does not come to an end by itself."""
    workers: list[Worker] = []
    begun = asyncio.Event()

    async def long(worker: Worker, *_: Any) -> Any:
        workers.append(worker)
        begun.set()
        await asyncio.Event().wait()

    patch.setattr(place.computing, "compute_in_parts", long)
    async with asyncio.TaskGroup() as group:
        checking = group.create_task(failed(place.rows()), name="check")
        await begun.wait()
        yield workers
        assert (await checking).reason.code == "pipeline_closed"


async def failed(work: Any) -> AppError:
    with pytest.raises(AppError) as caught:
        await work
    return caught.value


async def test_whoever_wants_memory_has_it_before_it_goes_on(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    async with under_way(place, monkeypatch) as workers:
        assert place.room._resident_bytes == workers[0].resident_bytes  # it still starts: it grows
        assert place.room.reclaimable_bytes() > 0
        async with place.room.reserve():
            assert not psutil.pid_exists(workers[0].pid)
            assert not place.own.exists()
            assert place.room.reclaimable_bytes() == 0
            assert (await failed(place.rows())).reason.code == "pipeline_closed"  # none begins
    monkeypatch.undo()
    assert (await place.rows()).with_flash  # afterwards it may


async def test_two_checks_take_their_turns(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []

    async def check(room: int) -> int:
        begun.append(room)
        await asyncio.sleep(0.01)
        assert len(begun) % 2 or place.room._turn.locked()
        return len(begun)

    results = await asyncio.gather(*(place.room.run_check(check) for _ in range(2)))
    assert results == [1, 2]
    assert begun == [GIB, GIB]  # half of what is spare


async def test_no_more_is_taken_than_is_spare_now(place: Place) -> None:
    place.spare = 0
    error = await failed(place.rows())
    assert isinstance(error, DoesNotFit)
    assert error.reason.code == "sample_no_room"


async def test_its_files_push_out_nothing_that_others_brought(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store is as full as it may be: a stage more would delete the one that was unused for longest."""
    brought = [place.fill(Layers(1, 2)), place.fill(Layers(2, 3))]
    place.stages.limit_bytes = place.stages.used_bytes()
    seen: list[list[str]] = []
    forward = place.computing._forward

    async def seeing(*args: Any) -> bytes:
        seen.append([path.suffix for path in place.own.iterdir()])
        return await forward(*args)

    monkeypatch.setattr(place.computing, "_forward", seeing)
    assert (await place.rows()).with_flash
    assert seen
    assert all(".gguf" in group for group in seen)
    assert all(place.stages.path(name) is not None for name in brought)
    assert not place.own.exists()


async def test_a_file_that_is_here_is_used_and_stays(place: Place) -> None:
    stage_id = place.fill(Layers(1, 3))
    assert (await place.rows()).with_flash
    assert place.stages.path(stage_id) is not None
    assert not place.stages._held


async def test_it_leaves_the_disk_what_is_left_free_for_its_owner(place: Place) -> None:
    place.stages.reserve_bytes = 1 << 60
    error = await failed(place.rows())
    assert error.reason.code == "disk_full"
    assert not place.own.exists()


async def test_what_a_killed_node_left_goes(place: Place) -> None:
    place.own.mkdir()
    (place.own / "old.gguf").write_bytes(b"old")
    assert (await place.rows()).with_flash
    assert not place.own.exists()


async def test_the_disk_is_looked_at_in_a_thread(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that was touched is hashed again: nobody's heartbeat waits for that."""
    loop, results = asyncio.get_running_loop(), list[bool]()

    def on_loop() -> bool:
        try:
            return asyncio.get_running_loop() is loop
        except RuntimeError:
            return False

    for name in ("path", "remove", "write_stage"):
        real = getattr(StageStore, name)

        def looked(*args: Any, real: Any = real, **more: Any) -> Any:
            results.append(on_loop())
            return real(*args, **more)

        monkeypatch.setattr(StageStore, name, looked)
    assert (await place.rows()).with_flash
    assert len(results) >= 3
    assert not any(results)
