"""`python -m scripts.synthetic_layers FILE...`: compares synthetic layers with the layers that they stand for.

Both are loaded in the same worker and run the same steps in alternation. With a ratio of 1, a measurement of
synthetic layers predicts the model exactly.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from app.catalog.families.family_table import FAMILIES
from app.catalog.gguf.gguf_file import Header, read_header
from app.catalog.gguf.model_reader import model_of
from app.catalog.gguf.model_shape_reader import measured_runs, shape_of
from app.catalog.stages import synthetic_stage
from app.catalog.stages.cut import CutJob, assemble, read
from app.core.model import Model
from app.inference.stages.stage_client import Run
from app.inference.stages.stage_connection import close_run, open_run, own_stage
from app.inference.worker.layer_benchmark import DEPTH, BenchmarkMonitor, TrialRun, report_nothing
from app.inference.worker.worker import Worker
from backends.contract import Layers, NumberFormat, Role, StageConfig

ROWS, SLOTS, CELLS = 64, 8, 1280
WITHIN_S = 0.4


@dataclass(frozen=True, slots=True)
class Steps:
    """The durations of the steps of a run in seconds."""

    single_s: float
    wide_s: float
    chunk_s: float
    deep_s: float


def write_own(path: Path, header: Header, model: Model, layers: Layers) -> None:
    """Write some of the file's own layers as a middle stage."""
    job = CutJob(model, header, FAMILIES[model.architecture], layers, Role.MIDDLE)
    made = assemble(job, dict.fromkeys(header.tensors, "0" * 64))
    with path.open("wb") as file:
        file.write(made.manifest.header)
        for piece, source in zip(made.manifest.pieces, made.sources, strict=True):
            file.seek(piece.offset)
            file.writelines(read(source, 0))
        file.truncate(made.manifest.total_bytes)


async def steps(worker: Worker, group: asyncio.TaskGroup, path: Path, threads: int) -> Steps:
    """Load a middle stage, and run the steps of a measurement."""
    model = model_of(read_header(path), "stage", "")
    run = Run(os.urandom(16), Role.MIDDLE, model.width, NumberFormat.F16)
    config = StageConfig(
        "llamacpp", str(path), "", Role.MIDDLE, model.layers, model.width, SLOTS, CELLS, ROWS,
        threads, traits=model.cuts.traits(Role.MIDDLE), any_engine=True,
    )  # fmt: skip
    await open_run(worker, run, CELLS, config)
    client = own_stage(worker, run, "a run", "a run")
    listening = group.create_task(client.listen(), name="listen")
    trial = TrialRun(client, run, BenchmarkMonitor(lambda: False, report_nothing, time.perf_counter))
    single_s = await trial.time_steps(1, WITHIN_S)
    wide_s = await trial.time_steps(SLOTS, WITHIN_S)
    chunk_s, _, depth = await trial.time_chunks(ROWS)
    deep_s = await trial.time_steps(1, WITHIN_S, min(depth, DEPTH))
    await trial.forget()
    listening.cancel()
    await close_run(worker, run)
    return Steps(single_s, wide_s, chunk_s, deep_s)


async def compared(path: Path, threads: int, rounds: int) -> dict[str, object]:
    """Return the result for a file: the median seconds of both kinds of layers over all rounds, and their ratio."""
    header = read_header(path)
    model = model_of(header, path.stem, "0" * 64)
    shape, layers = shape_of(header, model), measured_runs(header, model)[-1]
    with tempfile.TemporaryDirectory() as made:
        own, made_up = Path(made) / "own.gguf", Path(made) / "made-up.gguf"
        write_own(own, header, model, layers)
        synthetic_stage.write(made_up, shape, shape.runs[-1], Role.MIDDLE)
        taken: dict[Path, list[Steps]] = {own: [], made_up: []}
        async with await Worker.start("layers", reads=[Path(made)]) as worker, asyncio.TaskGroup() as group:
            for _ in range(rounds):
                for file, timings in taken.items():
                    timings.append(await steps(worker, group, file, threads))
    row: dict[str, object] = {
        "file": path.name, "architecture": model.architecture, "layers": [layers.first, layers.last],
        "average_layers": round(shape.runs[-1].average_layers, 2),
    }  # fmt: skip
    for name in Steps.__slots__:
        true_s, made_s = (statistics.median(getattr(step, name) for step in taken[f]) for f in taken)
        row[name] = {"own": true_s, "made_up": made_s, "ratio": round(made_s / true_s, 3)}
    return row


async def run(paths: list[Path], threads: int, rounds: int) -> list[dict[str, object]]:
    """Return a result for each file."""
    return [await compared(path, threads, rounds) for path in paths]


def main() -> int:
    """Run the command line. The results are printed as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(json.dumps(asyncio.run(run(options.files, options.threads, options.rounds)), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
