"""Samples of a lender's work computed again, with the real engine: nobody honest is blamed, and who is not is found."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from app.catalog.shelf import Entry, Shelf
from app.catalog.stages.stage_store import StageStore
from app.core.errors import AppError, StageLost, Unreachable
from app.core.ids import MachineId
from app.core.planner.placement import Candidate, Plan, PlannedStage, Workload
from app.core.planner.plan import plan
from app.core.verification import Finding, largest_distance, rows_of
from app.inference.pipeline.result_checks import Sample, Samples
from app.inference.stages.stage_client import Run, Step
from app.inference.stages.stage_connection import open_run, own_stage
from app.inference.worker.worker import Worker
from app.machine.hardware.cores import Threads
from app.node.cancellation import run_until
from app.node.placement import stages as stages_module
from app.node.planning.planning import Sizes
from app.node.verification.quarantine import Quarantine
from app.node.verification.spare_memory import SpareMemory
from app.node.verification.verifier import FOLDER, MOST_TRIES, RecomputedRows, SampleCheck, SampleRecomputer, Verifier
from backends.contract import Layers, NumberFormat, Role, Segment
from backends.hidden_state_codec import encode_hidden
from testbed import tiny

DEN, ATTIC, SHED = (MachineId(c * 64) for c in "das")
SIZES = Sizes(NumberFormat.F16, 4, 512, 512, 64, Threads(1))
WIDTH, MUCH = 256, 1 << 40
PROCESSOR = "the same processor"
SEED = 11
FAMILIES = Path(__file__).parents[2] / "families"


@dataclass
class Scene:
    """A model of four layers, of which `attic` holds two."""

    folder: Path
    entry: Entry = field(init=False)
    third: bytes | AppError | None = None  # what another machine says to the same rows
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.stages = StageStore(self.folder / "stages", 1 << 30)
        self.shelf = Shelf(self.folder / "models", self.folder / "no-guide", self.stages)
        path = tiny.llama(self.folder / "m.gguf", layers=4, width=WIDTH, ffn=512, quant="Q4_K_M")
        self.entry = self.shelf.import_file(path)
        den, attic = (Candidate(key, key[0], MUCH, device=PROCESSOR) for key in (DEN, ATTIC))
        self.plan: Plan = plan(den, [attic], self.entry.model, Workload(512), (1, 2, 1))
        self.stage: PlannedStage = self.plan.stages[1]
        self.spare = MUCH
        self.room = SpareMemory(lambda: self.spare)
        self.computing = SampleRecomputer(self.entry, self.shelf, self.stages, SIZES, self.room)
        self.samples = Samples(lambda: 0.0, lambda: float("inf"))
        self.quarantine = Quarantine(self.folder / "doubts.json", lambda why: self.said.append(why.code))
        self.checks = Verifier(self.samples, self, self.computing, self.quarantine)  # type: ignore[arg-type]

    # as app/node/placement/stages.py

    def stage_of(self, run: Run) -> PlannedStage | None:
        return self.stage if run.width == WIDTH else None

    async def compute_elsewhere(self, like: PlannedStage, step: Step) -> tuple[PlannedStage, bytes] | None:
        if isinstance(self.third, AppError):
            raise self.third
        return (replace(like, machine=SHED), self.third) if self.third is not None else None

    @property
    def files(self) -> list[str]:
        """All that is kept on the disk."""
        folders = self.stages.folder, self.folder / FOLDER
        return sorted(path.name for folder in folders for path in folder.glob("*.*"))


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return Scene(tmp_path_factory.mktemp("checking"))


@asynccontextmanager
async def lender(scene: Scene, *numbers: NumberFormat) -> AsyncIterator[list[Any]]:
    """A worker with the lender's run, once for each number type of the wire."""
    cut = scene.shelf.cut(scene.entry, scene.stage.layers, Role.MIDDLE)
    path = str(await asyncio.to_thread(scene.stages.write_stage, cut))
    async with AsyncExitStack() as stack:
        worker = await stack.enter_async_context(await Worker.start("the lender"))
        group = await stack.enter_async_context(asyncio.TaskGroup())
        runs, listening = [], []
        for number in numbers:
            run = Run(random.Random(number).randbytes(16), Role.MIDDLE, WIDTH, number)
            await open_run(worker, run, 512, SIZES.config(scene.stage, scene.entry, path))
            runs.append(own_stage(worker, run, "attic", "attic"))
            listening.append(group.create_task(runs[-1].listen(), name="listen"))
        yield runs
        for task in listening:
            task.cancel()


def hidden(chance: random.Random, n_rows: int, number: NumberFormat) -> bytes:
    """Hidden states as they come over the wire."""
    rows = [[chance.gauss(0, 1) for _ in range(WIDTH)] for _ in range(n_rows)]
    return bytes(encode_hidden(np.asarray(rows, dtype=np.float32), number))


async def answered(client: Any, chance: random.Random, slot: int, n_rows: int) -> Sample:
    """One prompt's first chunk through the lender. What other slots hold stays there."""
    await client.forget(slot)
    data = hidden(chance, n_rows, client.run.number)
    after = await client.forward(Step.of([Segment(slot, n_rows, 0)], (), data))
    return Sample(client.run, n_rows, data, bytes(after.rows))


def with_error(sample: Sample, share: float) -> Sample:
    """Three of its rows are a little off."""
    rows = [list(row) for row in rows_of(sample.answered, WIDTH, NumberFormat.F16)]
    for row in rows[5:8]:
        row[::2] = [value * (1 + share) for value in row[::2]]
    return replace(sample, answered=bytes(encode_hidden(np.asarray(rows, dtype=np.float32), NumberFormat.F16)))


async def test_honest_answers_are_never_blamed_and_a_small_error_in_some_rows_is_found(scene: Scene) -> None:
    """Twenty prompts of different lengths, with others in the same cells, and each type of number on the wire."""
    chance, whole = random.Random(SEED), [scene.stage.layers]
    async with (
        lender(scene, NumberFormat.F32, NumberFormat.F16, NumberFormat.Q8) as runs,
        await Worker.start("the check") as checking,
    ):
        for n in range(20):
            n_rows = chance.choice((16, 31, 40, 63, 64))
            sample = await answered(runs[n % 3], chance, n % 4, n_rows)
            again = await scene.computing.compute_in_parts(checking, scene.stage, whole, sample)
            check, number = SampleCheck(scene.plan, sample, again), sample.run.number
            assert check.compare(sample.answered, ATTIC) is Finding.AGREES, (n, number, n_rows)
            if number is NumberFormat.F16:
                wrong = with_error(sample, 0.3)
                assert check.compare(wrong.answered, ATTIC) is Finding.DIFFERS
        parts = [Layers(1, 2), Layers(2, 3)]
        in_two = await scene.computing.compute_in_parts(checking, scene.stage, parts, sample)
        assert in_two == again
        noise = largest_distance(
            *(rows_of(way, WIDTH, NumberFormat.F32) for way in (again.with_flash, again.without_flash))
        )
        assert 0 < noise < 0.1
    assert not any(check_file(scene, part) for part in parts)


def check_file(scene: Scene, layers: Layers) -> Path | None:
    """The stage file of these layers, if it is here."""
    cut = scene.shelf.cut(scene.entry, layers, Role.MIDDLE)
    return scene.stages.path(cut.manifest.id)


@pytest.fixture
async def sample(scene: Scene) -> Sample:
    """An honest one."""
    scene.said.clear()
    scene.room = scene.computing._spare_memory = SpareMemory(lambda: scene.spare)  # of this test's loop
    scene.third = None
    scene.quarantine._since.clear()
    scene.samples._kept.clear()
    async with lender(scene, NumberFormat.F16) as (run,):
        return await answered(run, random.Random(SEED), 0, 32)


def kept(scene: Scene, sample: Sample) -> None:
    scene.samples._kept[sample.run.pipeline] = sample


async def computed_once(scene: Scene, sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine's own rows are known from now on."""
    again = await scene.computing.rows(scene.stage, sample)

    async def known(*_: Any) -> RecomputedRows:
        return again

    monkeypatch.setattr(scene.computing, "rows", known)


async def test_who_is_wrong_is_said_when_others_agree_with_this_machine(
    scene: Scene, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    await computed_once(scene, sample, monkeypatch)
    wrong = with_error(sample, 0.3)
    cases: list[tuple[Sample, Any, list[str]]] = [
        (sample, wrong.answered, []),  # nobody else is asked
        (wrong, None, ["log_machine_doubted"]),
        (wrong, sample.answered, ["log_machine_doubted"]),
        (wrong, wrong.answered, ["log_machine_unclear"]),
    ]
    for item, scene.third, said in cases:
        scene.said.clear()
        scene.quarantine._since.clear()
        kept(scene, item)
        await scene.checks.check_oldest(scene.plan)
        assert scene.said == said
        assert (ATTIC in scene.quarantine) == ("log_machine_doubted" in said)
        assert not scene.checks.is_due  # it is forgotten


@pytest.mark.long
async def test_while_a_third_machine_fails_to_answer_nobody_is_blamed(
    scene: Scene, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check is retried. The attempt ends at once if its stages are needed."""
    await computed_once(scene, sample, monkeypatch)
    wrong, scene.third = with_error(sample, 0.3), Unreachable("peer_offline", name="shed")
    kept(scene, wrong)
    await scene.checks.check_oldest(scene.plan)
    tries = [scene.checks.is_due]
    scene.third = hurry = StageLost("pipeline_closed")
    assert await failed(scene.checks.check_oldest(scene.plan)) is hurry
    tries.append(scene.checks.is_due)
    assert (tries, scene.said) == ([True, True], [])


@pytest.mark.parametrize("n_huge", [1, 28, 64])
async def test_huge_values_of_a_row_in_8_bits_blame_nobody(scene: Scene, n_huge: int) -> None:
    """28 are carried exactly; one more in each block takes from its neighbors alone. A lie in that row is found."""
    chance, width = np.random.default_rng(SEED), 2048
    rows = chance.standard_normal((16, width), dtype=np.float32)
    rows[0, 7 : 32 * n_huge : 32] = 127.0
    lied = rows.copy()
    lied[0, 8:] *= -1
    data, other = (bytes(encode_hidden(rows * np.float32(by), NumberFormat.F32)) for by in (1, 1.001))
    run = Run(bytes(16), Role.MIDDLE, width, NumberFormat.Q8)
    honest, wrong = (bytes(encode_hidden(has, NumberFormat.Q8)) for has in (rows, lied))
    check = SampleCheck(scene.plan, Sample(run, 16, b"", honest), RecomputedRows(data, other))
    assert largest_distance(rows_of(honest, width, NumberFormat.Q8), rows_of(data, width, NumberFormat.F32)) < 0.013
    assert check.compare(honest, ATTIC) is Finding.AGREES
    assert check.compare(wrong, ATTIC) is Finding.DIFFERS


@pytest.mark.parametrize(("name", "chooses"), [("mixtral", True), ("llama", False)])
def test_it_is_known_whose_layers_choose(tmp_path: Path, name: str, chooses: bool) -> None:
    stages = StageStore(tmp_path / "stages", 1 << 30)
    shelf = Shelf(tmp_path / "models", tmp_path / "no-guide", stages)
    entry = shelf.import_file(FAMILIES / f"{name}.gguf")
    room = SpareMemory(lambda: MUCH)
    assert SampleRecomputer(entry, shelf, stages, SIZES, room)._chooses() is chooses


@pytest.mark.long
async def test_what_a_doubted_machine_computes_is_neither_checked_nor_believed(
    scene: Scene, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = with_error(sample, 0.3)
    scene.third = wrong.answered  # it says the same, but it was wrong before
    await scene.quarantine.add(SHED, "shed")
    kept(scene, wrong)
    await scene.checks.check_oldest(scene.plan)
    assert scene.said == ["log_machine_doubted"] * 2

    async def never(*_: Any) -> None:
        raise AssertionError("it is known already")

    monkeypatch.setattr(scene.computing, "rows", never)
    kept(scene, wrong)
    await scene.checks.check_oldest(scene.plan)
    assert not scene.checks.is_due


async def test_a_sample_nobody_can_compute_again_is_forgotten(scene: Scene, sample: Sample) -> None:
    kept(scene, replace(sample, run=replace(sample.run, width=8)))
    await scene.checks.check_oldest(scene.plan)
    assert (scene.checks.is_due, scene.said) == (False, [])


async def test_a_sample_waits_for_memory_and_is_given_up_in_the_end(
    scene: Scene, sample: Sample, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(scene, "spare", 0)
    kept(scene, with_error(sample, 0.3))
    with caplog.at_level("INFO"):
        for n in range(1, MOST_TRIES + 1):
            await scene.checks.check_oldest(scene.plan)
            assert scene.checks.is_due is (n < MOST_TRIES)
    assert scene.said == []
    messages = [record.getMessage() for record in caplog.records if "dropped" in record.getMessage()]
    assert messages == [f"a sample of a is dropped, because all {MOST_TRIES} tries were interrupted"]


async def test_a_check_gives_way_at_once_and_leaves_nothing_behind(
    scene: Scene, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody asks while it computes: its worker is gone, and the sample waits for another time."""
    begun, never = asyncio.Event(), asyncio.Event()
    workers: list[int] = []

    async def long(worker: Worker, *_: Any) -> Any:
        workers.append(worker.pid)
        begun.set()
        await never.wait()

    monkeypatch.setattr(scene.computing, "compute_in_parts", long)
    kept(scene, with_error(sample, 0.3))
    for _ in range(2):
        event, gone = asyncio.Event(), StageLost("pipeline_closed")
        begun.clear()
        async with asyncio.TaskGroup() as group:
            look = run_until(event, scene.checks.check_oldest(scene.plan), gone)
            checking = group.create_task(failed(look), name="check")
            await begun.wait()
            event.set()
            assert (await checking) is gone
        assert not psutil.pid_exists(workers[-1])
        assert scene.checks.is_due
    assert (scene.said, scene.room.reclaimable_bytes()) == ([], 0)


async def test_a_run_that_never_answers_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent:
        name = machine = "shed"

        async def listen(self) -> None:
            await asyncio.Event().wait()

        async def forward(self, _: Step) -> Step:
            await asyncio.Event().wait()
            raise AssertionError("nothing comes")

    monkeypatch.setattr(stages_module, "MOST_STEP_SECONDS", 0.01)
    step = Step.of([Segment(0, 1, 0)], (), bytes(4 * WIDTH))
    error = await failed(stages_module.run_step(Silent(), step))  # type: ignore[arg-type]
    assert error.reason.code == "stage_silent"


async def failed(work: Any) -> AppError:
    with pytest.raises(AppError) as caught:
        await work
    return caught.value
