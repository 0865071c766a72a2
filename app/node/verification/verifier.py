"""Verification of lenders: recomputes samples of their work while the model is idle, and compares the results."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from app.catalog.files import disk_error
from app.catalog.gguf.gguf_file import part_paths
from app.catalog.shelf import Entry, Shelf
from app.catalog.stages.cut import Cut
from app.catalog.stages.stage_store import StageStore
from app.core.errors import AppError, DoesNotFit, Reason
from app.core.ids import MachineId
from app.core.model import fewest_runs
from app.core.planner.placement import Plan, PlannedStage
from app.core.planner.stage_memory import work_bytes
from app.core.verification import (
    Finding,
    as_f32,
    distance_of,
    distances,
    final_finding,
    finding_of,
    honest_limit,
    noise_of,
    rows_of,
)
from app.inference.pipeline.result_checks import Sample, Samples
from app.inference.stages.stage_client import Run, Step
from app.inference.stages.stage_connection import close_run, open_run, own_stage
from app.inference.worker.worker import HERE, Worker
from app.node.cancellation import in_thread
from app.node.placement.stages import StageSet, run_step
from app.node.planning.planning import Sizes
from app.node.verification.quarantine import Quarantine
from app.node.verification.spare_memory import SpareMemory
from backends.contract import (
    DEFAULT_CHECKPOINTS,
    KV_CELL_ALIGNMENT,
    KvType,
    Layers,
    NumberFormat,
    Role,
    Segment,
    StageConfig,
)

log = logging.getLogger(__name__)

MOST_TRIES = 8  # for one sample, at growing intervals; on a busy host, every try may be interrupted
NAME = "the check of a sample"
FOLDER = "checking"  # separate from the stage store, so that checks evict nothing from it
CHOICES = ("_exps.", "indexer")  # parts of the names of tensors that select experts or positions
WAYS = (True, False)  # with and without flash attention: two ways to compute the same sums


@dataclass(frozen=True, slots=True)
class RecomputedRows:
    """The rows of a sample in f32, computed on this machine with and without flash attention."""

    with_flash: bytes
    without_flash: bytes
    chooses: bool = False  # the layers select experts or positions, so a row may differ entirely


@dataclass(frozen=True, slots=True)
class SampleCheck:
    """A sample, and this machine's results for it."""

    plan: Plan
    sample: Sample
    recomputed: RecomputedRows

    def compare(self, payload: bytes, machine: MachineId, name: str = "") -> Finding:
        """Return the finding about the machine that computed these rows. Call this in a thread, because comparing many
        values takes time."""
        run, recomputed = self.sample.run, self.recomputed
        with_flash, other = (
            rows_of(way, run.width, NumberFormat.F32) for way in (recomputed.with_flash, recomputed.without_flash)
        )
        rows = rows_of(payload, run.width, run.number)
        nearer = map(min, *(distances(rows, way) for way in (with_flash, other)))
        distance = distance_of(list(nearer), chooses=recomputed.chooses)
        noise = noise_of(distances(with_flash, other), chooses=recomputed.chooses)
        most = honest_limit(noise, run.number, same_kind=self._same_kind(machine))
        said = finding_of(distance, noise, most)
        log.info("a sample of %s: %s, %.2g of at most %.2g apart", name, said, distance, most)
        return said

    def _same_kind(self, machine: MachineId) -> bool:
        """Return whether the machine reports the same engine and processor as this one."""
        known = {candidate.id: (candidate.engine, candidate.device) for candidate in self.plan.machines}
        return bool(known.get(machine)) and known.get(machine) == known.get(self.plan.host)


class Verifier:
    """Verifies the lenders of one pipeline until it closes."""

    def __init__(
        self, samples: Samples, stage_set: StageSet, computing: SampleRecomputer, quarantine: Quarantine
    ) -> None:
        self.quarantine = quarantine
        self._samples, self._stage_set, self._recomputer = samples, stage_set, computing

    @property
    def is_due(self) -> bool:
        """Return whether a sample is waiting to be recomputed."""
        return self._samples.oldest is not None

    async def check_oldest(self, plan: Plan) -> None:
        """Check the oldest sample. If canceled, free all resources and keep the sample for another try.

        Raises StageLost if the memory is needed for opening stages.
        """
        sample, is_settled = self._samples.oldest, False
        if sample is None:
            return
        try:
            is_settled = await self._is_settled(plan, sample)
        finally:
            if is_settled or self._tried_enough(sample):
                self._samples.forget(sample)

    def _tried_enough(self, sample: Sample) -> bool:
        """Count an interrupted try. Return whether the sample has been tried so often that it should be dropped."""
        n_tries = self._samples.postpone(sample)
        if n_tries < MOST_TRIES:
            return False
        stage = self._stage_set.stage_of(sample.run)
        name = stage.name if stage else "a machine that left"
        log.info("a sample of %s is dropped, because all %d tries were interrupted", name, n_tries)
        return True

    async def _is_settled(self, plan: Plan, sample: Sample) -> bool:
        """Check the sample. Return False if another try might still produce a result."""
        stage = self._stage_set.stage_of(sample.run)
        if stage is None or stage.machine in self.quarantine:
            return True
        try:
            recomputed = await self._recomputer.rows(stage, sample)
        except AppError as error:
            log.info("a sample of %s could not be recomputed: %s", stage.name, error.reason)
            return not isinstance(error, DoesNotFit) and error.reason.code != "pipeline_closed"
        return await self._is_decided(SampleCheck(plan, sample, recomputed), stage)

    async def _is_decided(self, check: SampleCheck, stage: PlannedStage) -> bool:
        """Compare the results and record the outcome. Return False if a third machine was needed but did not answer."""
        machine, name, answered = stage.machine, stage.name, check.sample.answered
        lender, third = await asyncio.to_thread(check.compare, answered, machine, name), None
        if lender is Finding.DIFFERS:
            try:
                third = await self._third_finding(check, stage)
            except AppError as error:
                if error.reason.code == "pipeline_closed":
                    raise
                log.info("the check of a sample of %s remains undecided: %s", name, error.reason)
                return False
        match final_finding(lender, third):
            case Finding.DIFFERS:
                await self.quarantine.add(machine, name)
            case Finding.UNCLEAR if lender is Finding.DIFFERS:
                self.quarantine.note_inconclusive(name)
        return True

    async def _third_finding(self, check: SampleCheck, stage: PlannedStage) -> Finding | None:
        """Return the finding about a third machine's rows for the same sample, or None if no trusted machine has these
        layers. Raises AppError."""
        sample = check.sample
        step = Step.of([Segment(0, sample.n_rows, 0)], (), sample.given)
        answer = await self._stage_set.compute_elsewhere(stage, step)
        if answer is None or answer[0].machine in self.quarantine:
            return None
        other, payload = answer
        return await asyncio.to_thread(check.compare, payload, other.machine, other.name)


class SampleRecomputer:
    """Recomputes samples of one model on this machine."""

    def __init__(self, entry: Entry, shelf: Shelf, stages: StageStore, sizes: Sizes, spare_memory: SpareMemory) -> None:
        self._entry, self._shelf, self._stages = entry, shelf, stages
        self._sizes, self._spare_memory = sizes, spare_memory
        self._folder = _folder(stages.folder)

    async def rows(self, stage: PlannedStage, sample: Sample) -> RecomputedRows:
        """Return this machine's results for a sample of the stage.

        If canceled, or if the memory is needed, kill the worker and delete its files. Raises AppError.
        """
        return await self._spare_memory.run_check(partial(self._rows, stage, sample))

    async def _rows(self, stage: PlannedStage, sample: Sample, room_bytes: int) -> RecomputedRows:
        parts = self._parts(stage, room_bytes)
        reads = [*part_paths(Path(self._entry.path)), self._stages.folder, self._folder]
        await asyncio.to_thread(self._clear)
        threads = self._sizes.threads
        exact = self._sizes.exact
        worker = await Worker.start(HERE, threads=threads, low_priority=True, reads=reads, exact=exact)
        try:
            with self._spare_memory.count_worker(worker.resident_bytes):
                return await self.compute_in_parts(worker, stage, parts, sample)
        finally:
            worker.kill(Reason("worker_closed", {"worker": HERE}))
            await worker.close(0.0)
            await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)

    def _clear(self) -> None:
        """Empty the temporary folder. Raises DoesNotFit if it cannot be created."""
        shutil.rmtree(self._folder, ignore_errors=True)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise disk_error(self._folder, error, 0) from error

    async def compute_in_parts(
        self, worker: Worker, stage: PlannedStage, parts: Sequence[Layers], sample: Sample
    ) -> RecomputedRows:
        """Compute the sample in this worker, loading one part of the stage's layers after another."""
        rows = await asyncio.to_thread(_as_f32, sample)
        row_sets = [rows, rows]
        for part in parts:
            row_sets = await self._run_layers(worker, replace(stage, layers=part), row_sets)
        with_flash, other = row_sets
        return RecomputedRows(with_flash, other, await asyncio.to_thread(self._chooses))

    def _parts(self, stage: PlannedStage, spare_memory: int) -> tuple[Layers, ...]:
        """Split the stage's layers into as few parts as possible, each of which fits in memory. Raises DoesNotFit."""
        model, needed = self._entry.model, self._needed
        parts = fewest_runs(
            stage.layers, model.cuts.boundaries, model.cuts.rules, lambda layers: needed(layers) <= spare_memory
        )
        if not parts:
            raise DoesNotFit("sample_no_room", needed_bytes=needed(stage.layers), free_bytes=spare_memory)
        return parts

    def _chooses(self) -> bool:
        names = self._shelf.header(self._entry).tensors
        return any(choice in name for name in names for choice in CHOICES)

    def _needed(self, layers: Layers) -> int:
        model, rows = self._entry.model, self._sizes.batch_rows
        kv = model.kv_bytes(layers, self._cells)
        return model.stage_bytes(layers, Role.MIDDLE) + kv + work_bytes(model.width, rows, self._cells)

    async def _run_layers(self, worker: Worker, part: PlannedStage, row_sets: Sequence[bytes]) -> list[bytes]:
        """Run both sets of rows through one part of the layers and return the results."""
        cut = await asyncio.to_thread(self._shelf.cut, self._entry, part.layers, Role.MIDDLE)
        async with self._file(cut) as path:
            config = self._config(part, str(path))
            return [
                await self._forward(worker, _with_flash(config, flash), rows)
                for flash, rows in zip(WAYS, row_sets, strict=True)
            ]

    @asynccontextmanager
    async def _file(self, cut: Cut) -> AsyncIterator[Path]:
        """Yield the path of the stage file: the stored file, or a temporary one that is deleted afterward."""
        stage_id = cut.manifest.id
        self._stages.protect(stage_id)  # called on the event loop, so that a cancellation cannot skip the release
        try:
            if (here := await asyncio.to_thread(self._stages.path, stage_id)) is not None:
                yield here
                return
        finally:
            self._stages.release(stage_id)
        own = await asyncio.to_thread(self._own_store)
        yield await in_thread(lambda tell: own.write_stage(cut, tell, as_others=True), lambda _: None)
        await asyncio.to_thread(own.remove, stage_id)  # if this fails, the whole folder is deleted at the end

    def _own_store(self) -> StageStore:
        """Return a temporary store for one file, with the same disk space limits as the stage store."""
        store = self._stages
        return StageStore(self._folder, store.limit_bytes, reserve_bytes=store.reserve_bytes)

    async def _forward(self, worker: Worker, config: StageConfig, rows: bytes) -> bytes:
        width = self._entry.model.width
        n_rows = len(rows) // NumberFormat.F32.row_bytes(width)
        run = Run(os.urandom(16), Role.MIDDLE, width, NumberFormat.F32)
        await open_run(worker, run, config.kv_cells, config)
        client = own_stage(worker, run, NAME, NAME)
        after = await run_step(client, Step.of([Segment(0, n_rows, 0)], (), rows))
        await close_run(worker, run)
        return after

    def _config(self, part: PlannedStage, path: str) -> StageConfig:
        """Return the configuration that a lender uses for this part, reduced to a single sequence."""
        cells = self._cells
        sizes = replace(self._sizes, slots=1, kv_cells=cells, context=cells, keep=DEFAULT_CHECKPOINTS)
        return sizes.config(part, self._entry, path)

    @property
    def _cells(self) -> int:
        """The number of KV cells needed for the largest sample."""
        return -(-self._sizes.batch_rows // KV_CELL_ALIGNMENT) * KV_CELL_ALIGNMENT


def delete_check_files(stages: Path) -> None:
    """Delete the files of a check that was running when the node was killed. They can be as large as the layers of one
    machine."""
    shutil.rmtree(_folder(stages), ignore_errors=True)


def _folder(stages: Path) -> Path:
    return stages.parent / FOLDER


def _as_f32(sample: Sample) -> bytes:
    return as_f32(rows_of(sample.given, sample.run.width, sample.run.number))


def _with_flash(config: StageConfig, flash: bool) -> StageConfig:
    """Return the configuration with or without flash attention. An 8-bit KV cache requires flash attention."""
    return replace(config, flash_attention=flash, kv=config.kv if flash else KvType.F16)
