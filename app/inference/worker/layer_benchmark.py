"""A benchmark of the seconds per layer of a model, which computes layers of the same shape with random weights."""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from shutil import disk_usage, rmtree

from app.catalog.gguf.gguf_file import read_header
from app.catalog.gguf.model_shape_reader import run_bytes, tensor_bytes
from app.catalog.stages import synthetic_stage
from app.core.errors import Busy, DoesNotFit, StageLost
from app.core.model import LayerRun, Model, ModelShape
from app.core.planner.speed_estimates import Speed
from app.core.planner.stage_memory import work_bytes
from app.core.reasons import os_cause
from app.core.verification import as_f16
from app.inference.stages.stage_client import Run, StageClient, Step
from app.inference.stages.stage_connection import close_run, open_run, own_stage
from app.inference.worker.worker import HERE, Worker
from app.machine.hardware.added_engines import UsableEngine
from app.machine.hardware.cards import Card
from app.machine.hardware.cores import Threads
from backends.contract import (
    DEFAULT_TRAITS,
    EXPONENT_BYTES,
    GREEDY,
    LLAMACPP,
    FamilyTraits,
    Layers,
    NumberFormat,
    Role,
    Segment,
    StageConfig,
)

DEPTH = 512  # positions before the deep steps: the length of the benchmark's prompt
CHUNKS_S = 2.5  # time for all chunks, after the minimum number
LEAST_CHUNKS = 3
LEAST_STEPS, MOST_STEPS = 4, 24
N_PHASES = 7  # phases in a complete measurement

Report = Callable[[int, int], None]  # called with the phases done and the total
_VALUES = (0.5, -1.0, 1.5, -0.25)  # values in hidden states
ROWS = 509  # Number of distinct rows. If all were the same, layers with experts would send them to the same experts.
_EXPONENT = bytes(EXPONENT_BYTES)  # exponent bytes of a row in f16

SLOTS = 8  # rows in a wide decode step
CELLS = 1280  # enough for DEPTH positions or two chunks of the largest size, plus some steps
OTHER_BYTES = 8 << 20  # other contents of a stage's file: header, shared tensors, the unused embedding
SINGLE_S, WIDE_S = 0.5, 0.6  # time for each kind of step, after the minimum number
DISK_SHARE = 0.5  # maximum share of the free disk space, for a file that exists only for seconds
MOST_S = 90.0  # limit for the whole measurement on the slowest machine, after which the worker is killed


def report_nothing(_done: int, _total: int) -> None:
    """Report no progress."""


@dataclass(slots=True)
class BenchmarkMonitor:
    """A monitor that reports the progress of a measurement and stops it when other work needs this machine."""

    busy: Callable[[], bool]
    report: Report
    clock: Callable[[], float]
    phases: int = 0

    def next_phase(self) -> None:
        self.report(self.phases, N_PHASES)
        self.phases += 1

    def check_idle(self) -> None:
        if self.busy():
            raise Busy("speed_busy")


def fit_line(taken: Sequence[float], n_rows: int) -> tuple[float, float]:
    """Fit a line to the durations of successive chunks.

    Return the duration at position 0 and the increase per position. The fit uses medians over all pairs (Theil-Sen), so
    a single slow moment of the machine has little effect. The slope is never negative. Because attention is the smaller
    part, it is also never so steep that DEPTH positions would cost more than the chunk itself.
    """
    slopes = [(later - before) / ((j - i) * n_rows) for (i, before), (j, later) in combinations(enumerate(taken), 2)]
    middle = statistics.median(taken)
    slope = min(max(0.0, statistics.median(slopes or [0.0])), middle / DEPTH)
    first = statistics.median(s - slope * i * n_rows for i, s in enumerate(taken))
    return first, slope


class TrialRun:
    """An open run that is timed by repeating steps."""

    def __init__(self, client: StageClient, run: Run, monitor: BenchmarkMonitor) -> None:
        self._client, self._run, self._monitor = client, run, monitor
        self._row = 0  # the number of the next row
        chance = random.Random(run.width)  # noqa: S311  no secret
        self._halves = as_f16(chance.choices(_VALUES, k=run.width + ROWS))[EXPONENT_BYTES:]

    async def time_steps(self, n_rows: int, within_s: float, pos: int = 0) -> float:
        """Return the median seconds of a step with one token for each of `n_rows` sequences, starting at `pos`.

        Afterwards, everything from position `pos` on is forgotten.
        """
        if self._run.samples:
            for slot in range(n_rows):
                await self._client.begin(slot, 0, GREEDY, ())
        taken = []
        for number in range(1 + MOST_STEPS):
            segments = [Segment(slot, 1, pos + number) for slot in range(n_rows)]
            seconds = await self._step(segments)
            if number:  # the first step builds the graph
                taken.append(seconds)
            if len(taken) >= LEAST_STEPS and sum(taken) > within_s:
                break
        for slot in range(n_rows):
            await self._client.forget(slot, pos)
        return statistics.median(taken)

    async def time_chunks(self, n_rows: int) -> tuple[float, float, int]:
        """Compute the chunks of a prompt and leave them in the KV cache.

        Return the seconds for the first chunk, the increase per position before a chunk, and the position reached.
        """
        taken: list[float] = []
        while len(taken) * n_rows < DEPTH and (len(taken) < LEAST_CHUNKS or sum(taken) < CHUNKS_S):
            segment = Segment(0, n_rows, len(taken) * n_rows)
            taken.append(await self._step([segment]))
        return *fit_line(taken, n_rows), len(taken) * n_rows

    async def forget(self) -> None:
        """Empty the KV cache."""
        await self._client.forget(0)

    async def _step(self, segments: list[Segment]) -> float:
        self._monitor.check_idle()
        n_rows = sum(segment.n_tokens for segment in segments)
        due = segments if self._run.samples else ()
        step = Step.of(segments, due, b"".join(self._next_row() for _ in range(n_rows)))
        began = self._monitor.clock()
        await self._client.forward(step)
        return self._monitor.clock() - began

    def _next_row(self) -> bytes:
        """Return a hidden state in f16 that differs from the previous one.

        It is a window onto fixed values that moves by one value each time.
        """
        start = 2 * self._row
        self._row = (self._row + 1) % ROWS
        return _EXPONENT + self._halves[start : start + 2 * self._run.width]


@dataclass(frozen=True, slots=True)
class BenchmarkSettings:
    """The settings of a measurement. They match the settings with which this node would run the layers."""

    threads: Threads
    batch_rows: int
    allowed_bytes: int  # memory that the measurement may use
    head: bool  # whether to measure the output matrix, which only the host computes
    low_priority: bool = True  # as for lent layers
    card: Card | None = None  # None: the processor
    exact: bool = False  # use the processor instructions that all common computers have
    engine: UsableEngine | None = None  # computes instead of llama.cpp


@dataclass(frozen=True, slots=True)
class _Many:
    """The timings of the longest run."""

    single_s: float
    deep_s: float
    depth: int
    wide_s: float
    chunk_s: float
    chunk_position_s: float


@dataclass(frozen=True, slots=True)
class _Few:
    """The timings of the shortest run."""

    single_s: float
    wide_s: float


def needed_bytes(shape: ModelShape, run: LayerRun, settings: BenchmarkSettings) -> int:
    """Return the memory needed for a measurement: for the run or for the shortest run with the output matrix,
    whichever needs more.

    The KV cache is assumed to be as large as in most models.
    """
    weights = run_bytes(shape, run)
    if settings.head:
        weights = max(weights, run_bytes(shape, shape.runs[0]) + tensor_bytes(shape.head))
    kv = CELLS * len(run.kinds) * 4 * shape.width  # f16 keys and values, at most as wide as the model
    return weights + OTHER_BYTES + kv + work_bytes(shape.width, settings.batch_rows)


def longest_run(shape: ModelShape, settings: BenchmarkSettings) -> LayerRun:
    """Return the longest run that fits into memory. Raises DoesNotFit if no run fits."""
    for run in reversed(shape.runs):
        needed = needed_bytes(shape, run, settings)
        if needed <= settings.allowed_bytes:
            return run
    raise DoesNotFit("speed_no_room", needed_bytes=needed, free_bytes=settings.allowed_bytes)


async def measure(
    shape: ModelShape,
    folder: Path,
    settings: BenchmarkSettings,
    *,
    busy: Callable[[], bool] = lambda: False,
    report: Report = report_nothing,
    clock: Callable[[], float] = time.perf_counter,
) -> Speed:
    """Measure, in a separate worker, the seconds that this machine needs for an average layer of a model.

    folder: created for the measurement and deleted afterwards.
    busy: called before each step; if it returns True, Busy is raised.

    The seconds for the head are 0 if it is not measured. Raises BadInput for an impossible shape, DoesNotFit, StageLost
    or Busy.
    """
    synthetic_stage.check(shape)
    longest_run(shape, settings)  # raises DoesNotFit before anything is started
    try:
        with _own_folder(folder):
            async with asyncio.timeout(MOST_S):
                return await _measured(shape, folder, settings, BenchmarkMonitor(busy, report, clock))
    except TimeoutError:
        raise StageLost("worker_hung", worker=HERE, seconds=MOST_S) from None
    except OSError as error:
        raise DoesNotFit("disk_failed", folder=str(folder), why=os_cause(error)) from None


async def _measured(shape: ModelShape, folder: Path, settings: BenchmarkSettings, monitor: BenchmarkMonitor) -> Speed:
    longest = longest_run(shape, settings)
    card, engine = settings.card, settings.engine
    start = Worker.start(
        HERE,
        threads=settings.threads,
        low_priority=settings.low_priority,
        reads=[folder, *([card.library.parent] if card else []), *([engine.folder] if engine else [])],
        exact=settings.exact,
        code_cache=engine.code_cache if engine else card.code_cache if card else None,
    )
    try:
        async with await start as worker, asyncio.TaskGroup() as group:
            trial = _Trial(shape, folder, settings, worker, group, monitor)
            return await trial.speed(longest)
    except BaseExceptionGroup as errors:
        raise _first(errors) from None


def _first(error: BaseException) -> BaseException:
    """Return the first error in an exception group, which may be nested."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


class _Trial:
    """A measurement of several runs of layers, which are opened one after another in one worker."""

    def __init__(
        self,
        shape: ModelShape,
        folder: Path,
        settings: BenchmarkSettings,
        worker: Worker,
        group: asyncio.TaskGroup,
        monitor: BenchmarkMonitor,
    ) -> None:
        self._shape, self._folder, self._settings = shape, folder, settings
        self._worker, self._group, self._monitor = worker, group, monitor

    async def speed(self, longest: LayerRun) -> Speed:
        """Measure all runs and return the seconds per layer, averaged over the model."""
        many = await self._many(longest)
        floor_s = await self._nothing()
        few = await self._few(Role.MIDDLE)
        head_s, head_row_s = await self._head(few) if self._settings.head else (0.0, 0.0)
        step_s = floor_s
        part = self._shape.runs[0].average_layers / longest.average_layers
        if part < 1:
            # A single small layer may fit in a CPU cache. Then the difference overstates the cost of a layer and
            # understates that of a step, but a step never costs less than one without an engine.
            step_s = max(floor_s, (few.single_s - part * many.single_s) / (1 - part))
        step_s = min(step_s, 0.9 * many.single_s)
        each = 1 / longest.average_layers  # one layer's share of the run
        layer_s = each * (many.single_s - step_s)
        wide_s = max(each * (many.wide_s - step_s), layer_s)
        return Speed(
            layer_s=layer_s,
            layer_row_s=(wide_s - layer_s) / (SLOTS - 1),
            position_s=each * max(0.0, many.deep_s - many.single_s) / many.depth,
            chunk_s=max(each * (many.chunk_s - step_s), layer_s),
            chunk_position_s=each * many.chunk_position_s,
            step_s=step_s,
            head_s=head_s,
            head_row_s=head_row_s,
        )

    async def _many(self, longest: LayerRun) -> _Many:
        """Measure the longest run: single, wide and deep steps, and chunks up to DEPTH."""
        async with self._open(longest, Role.MIDDLE) as run:
            self._monitor.next_phase()
            before_s = await run.time_steps(1, SINGLE_S)
            self._monitor.next_phase()
            wide_s = await run.time_steps(SLOTS, WIDE_S)
            self._monitor.next_phase()
            chunk_s, chunk_position_s, depth = await run.time_chunks(self._settings.batch_rows)
            self._monitor.next_phase()
            deep_s = await run.time_steps(1, SINGLE_S, depth)
            await run.forget()
            # averaged with the first one, so that a drift in speed affects the comparison less
            after_s = await run.time_steps(1, SINGLE_S)
        return _Many((before_s + after_s) / 2, deep_s, depth, wide_s, chunk_s, chunk_position_s)

    async def _few(self, role: Role) -> _Few:
        """Measure the shortest run."""
        self._monitor.next_phase()
        async with self._open(self._shape.runs[0], role) as run:
            single_s = await run.time_steps(1, SINGLE_S / 2)
            return _Few(single_s, await run.time_steps(SLOTS, WIDE_S / 2))

    async def _head(self, without: _Few) -> tuple[float, float]:
        """Return the seconds that the output matrix adds to the shortest run.

        The first value is for the first row, and the second for each further row.
        """
        both = await self._few(Role.LAST)
        one_s = max(0.0, both.single_s - without.single_s)
        all_s = max(0.0, both.wide_s - without.wide_s)
        return one_s, max(0.0, all_s - one_s) / (SLOTS - 1)

    async def _nothing(self) -> float:
        """Measure a step without computation, which shows the overhead of the pipe, the worker and this process."""
        self._monitor.next_phase()
        config = self._config("fake", "fake:", Role.MIDDLE, 1, DEFAULT_TRAITS)
        async with self._opened(config) as run:
            return await run.time_steps(1, SINGLE_S / 4)

    @asynccontextmanager
    async def _open(self, layers: LayerRun, role: Role) -> AsyncIterator[TrialRun]:
        """Load layers with random weights. Their file is deleted as soon as they are loaded."""
        self._monitor.check_idle()
        # a new name each time, because the thread of a canceled measurement may still be writing
        path = self._folder / f"{os.urandom(8).hex()}.gguf"
        model = await asyncio.to_thread(self._write, path, layers, role)
        kv = model.kv_bytes(model.layers, CELLS, SLOTS)
        needed = model.file_bytes + kv + work_bytes(model.width, self._settings.batch_rows)
        self._must_fit(needed)
        if self._settings.engine is not None:
            tensors = (await asyncio.to_thread(read_header, path)).tensors
            self._must_fit(needed + self._settings.engine.more_bytes(tensors))
        config = self._config(LLAMACPP, str(path), role, model.n_layers, model.cuts.traits(role))
        async with self._opened(config, lambda: path.unlink(missing_ok=True)) as run:
            yield run

    def _write(self, path: Path, layers: LayerRun, role: Role) -> Model:
        """Write the stage file. Blocks. Raises BadInput, or DoesNotFit if the disk is too full."""
        needed, free = (synthetic_stage.file_bytes(self._shape, layers, role), disk_usage(path.parent).free)
        if needed > DISK_SHARE * free:
            raise DoesNotFit("disk_full", folder=str(path.parent), needed_bytes=needed, free_bytes=free)
        return synthetic_stage.write(path, self._shape, layers, role)

    def _must_fit(self, needed: int) -> None:
        """Raise DoesNotFit if a run needs too much memory because its KV cache is larger than assumed."""
        free = self._settings.allowed_bytes
        if needed > free:
            raise DoesNotFit("speed_no_room", needed_bytes=needed, free_bytes=free)

    @asynccontextmanager
    async def _opened(self, config: StageConfig, loaded: Callable[[], None] = lambda: None) -> AsyncIterator[TrialRun]:
        run = Run(os.urandom(16), config.role, self._shape.width, NumberFormat.F16)
        limit = self._settings.allowed_bytes
        await open_run(self._worker, run, CELLS, config, limit)
        loaded()
        client = own_stage(self._worker, run, "a trial", "a trial")
        listening = self._group.create_task(client.listen(), name="listen to a trial")
        yield TrialRun(client, run, self._monitor)
        listening.cancel()
        await close_run(self._worker, run)

    def _config(self, engine: str, path: str, role: Role, n_layers: int, traits: FamilyTraits) -> StageConfig:
        card = self._settings.card if engine == LLAMACPP else None
        config = StageConfig(
            engine=engine, path=path, embedding_path="", role=role, layers=Layers(0, n_layers),
            width=self._shape.width, slots=SLOTS, kv_cells=CELLS,
            batch_rows=self._settings.batch_rows, threads=self._settings.threads.most,
            begin_threads=self._settings.threads.begin, any_engine=True, traits=traits,
            device=card.name if card else "", library=str(card.library) if card else "",
        )  # fmt: skip
        preferred = self._settings.engine
        return preferred.config(config) if preferred and engine == LLAMACPP else config


@contextmanager
def _own_folder(folder: Path) -> Iterator[None]:
    """Create an empty folder and delete it afterwards, replacing any folder left over from a killed measurement."""
    rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield
    finally:
        rmtree(folder, ignore_errors=True)
