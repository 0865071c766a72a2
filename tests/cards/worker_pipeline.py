"""Pipelines whose stages are in real, confined workers, each on a device or on the processor."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from app.catalog.shelf import Entry
from app.inference.pipeline.pipeline import Pipeline
from app.inference.pipeline.scheduler import PipelineConfig
from app.inference.pipeline.speed_measurement import Deadlines
from app.inference.stages.stage_client import Run
from app.inference.stages.stage_connection import open_run, own_stage
from app.inference.worker.worker import Worker
from app.machine.hardware.cores import Threads
from backends.contract import NumberFormat, Role, StageConfig
from backends.worker_orders import StageOpened
from tests.cards.device import ROWS, kept_shaders, library, on_device
from tests.families import proof
from tests.families.home import Home

ONE_THREAD = Threads(1)
# A busy computer takes seconds for a step that the software device usually takes a tenth of a second for.
PATIENT = Deadlines(decode_least_s=60, decode_most_s=120, prefill_least_s=120, first_s=120)


async def start(name: str, home: Home, entry: Entry, shaders: Path | None) -> Worker:
    """Start a worker that may read only the model, its stages and the library. shaders: None denies it all devices."""
    vulkan = library()
    assert vulkan is not None
    reads = [Path(entry.path).parent, home.stages.folder, vulkan]
    return await Worker.start(name, threads=ONE_THREAD, reads=reads, code_cache=shaders)


async def opened(worker: Worker, config: StageConfig, context: int = 256) -> tuple[Run, StageOpened]:
    """Open a stage as a placement does. Raises as open_run."""
    run = Run(os.urandom(16), config.role, config.width, NumberFormat.F32)
    return run, await open_run(worker, run, context, config)


@dataclass(frozen=True, slots=True)
class Placed:
    """A running pipeline, and what its workers have reported."""

    pipeline: Pipeline
    workers: Mapping[str, Worker]  # host and lender
    opened: tuple[StageOpened, ...]


@asynccontextmanager
async def placed(
    home: Home,
    entry: Entry,
    cuts: proof.Cuts,
    devices: Sequence[str],
    *,
    slots: int = 1,
    context: int = 256,
    divided: Callable[[StageConfig], StageConfig] | None = None,
) -> AsyncIterator[Placed]:
    """Open a pipeline of the stages between the cuts, each on its device ("": the processor).

    divided: divides the layers of each stage.

    As in a household, the first and the last stage are in the host's worker, and those between in another.
    """
    model = entry.model
    form = PipelineConfig(slots, slots * context, context, model.n_vocab, ROWS, recurrent=model.cuts.later.recurrent)
    workers: dict[str, Worker] = {}
    stages, answers = [], []
    async with AsyncExitStack() as stack:
        for run, device in zip(proof.runs(model.n_layers, cuts), devices, strict=True):
            name = "lender" if run[1] is Role.MIDDLE else "host"
            if name not in workers:
                worker = await start(name, home, entry, kept_shaders() if any(devices) else None)
                workers[name] = await stack.enter_async_context(worker)
            config = on_device(home.config(entry, *run, apart=False), device)
            config = replace(config, slots=slots, kv_cells=form.kv_cells)
            config = divided(config) if divided else config
            made, answered = await opened(workers[name], config, context)
            answers.append(answered)
            stages.append(own_stage(workers[name], made, f"{name} {config.layers}", name, deadlines=PATIENT))
        async with Pipeline(stages, form) as pipeline:
            yield Placed(pipeline, workers, tuple(answers))
