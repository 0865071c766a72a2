"""The speedometer on the real engine: every quantization computes, and what it says is like the whole."""

from __future__ import annotations

import asyncio
import math
import os
import statistics
import time
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from app.catalog.gguf import tensor_types
from app.catalog.gguf.gguf_file import read_header
from app.catalog.gguf.model_reader import model_of
from app.catalog.gguf.model_shape_reader import shape_of
from app.core.errors import Busy, DoesNotFit, StageLost
from app.core.model import ModelShape, Setting
from app.core.planner.speed_estimates import Speed
from app.inference.stages.stage_client import Run, Step
from app.inference.stages.stage_connection import open_run, own_stage
from app.inference.worker import layer_benchmark
from app.inference.worker.layer_benchmark import (
    BenchmarkMonitor,
    BenchmarkSettings,
    TrialRun,
    longest_run,
    measure,
    needed_bytes,
)
from app.inference.worker.worker import Worker
from app.machine.hardware.cores import Threads
from backends.contract import GREEDY, Layers, NumberFormat, Role, Segment, StageConfig
from backends.hidden_state_codec import encode_hidden
from testbed import tiny
from tests.backends.cutting import stage_file

FAMILIES = Path(__file__).parents[2] / "families"
MIB = 1 << 20
MOST_TRIES = 10
DEPTH = 192
MIDDLE = 96  # positions before the middle one of the chunks that count
GAUGE = BenchmarkSettings(threads=Threads(1), batch_rows=64, allowed_bytes=512 * MIB, head=True)
NO_HEAD = BenchmarkSettings(threads=Threads(1), batch_rows=64, allowed_bytes=512 * MIB, head=False)


def shape_in(path: Path) -> ModelShape:
    header = read_header(path)
    return shape_of(header, model_of(header, "tiny", ""))


def shape(folder: Path, **changes: Any) -> ModelShape:
    return shape_in(tiny.llama(folder / "tiny.gguf", **changes))


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few steps: here it counts that they are taken, not how well."""
    monkeypatch.setattr(layer_benchmark, "MOST_STEPS", 4)
    monkeypatch.setattr(layer_benchmark, "DEPTH", 128)


@pytest.mark.many(keep=1)
@pytest.mark.parametrize("quant", ["F16", "Q8_0", "Q4_K", "Q4_K_M"])  # the last has Q6_K as well
async def test_each_quantization_is_measured(tmp_path: Path, quant: str) -> None:
    made = shape(tmp_path, layers=4, width=256, ffn=512, quant=quant)
    phases: list[tuple[int, int]] = []
    folder = tmp_path / "trial"
    speed = await measure(made, folder, GAUGE, report=lambda done, total: phases.append((done, total)))
    assert not folder.exists()
    assert speed.processor is None  # only beside a graphics card
    seconds_of_all = [value for name, value in asdict(speed).items() if name != "processor"]
    assert all(math.isfinite(seconds) and seconds >= 0 for seconds in seconds_of_all)
    assert min(speed.layer_s, speed.chunk_s, speed.step_s) > 0
    assert speed.chunk_s >= speed.layer_s  # at least as long, where a busy computer blurs both
    assert phases == [(n, 7) for n in range(7)]


async def test_without_a_head_its_seconds_are_none(tmp_path: Path) -> None:
    speed = await measure(shape(tmp_path, layers=2), tmp_path / "trial", NO_HEAD)
    assert (speed.head_s, speed.head_row_s) == (0.0, 0.0)


@pytest.mark.long
async def test_one_layer_is_enough_where_there_is_only_one(tmp_path: Path) -> None:
    speed = await measure(shape(tmp_path, layers=1), tmp_path / "trial", NO_HEAD)
    assert speed.layer_s > 0


def test_a_machine_with_little_memory_measures_fewer_layers(tmp_path: Path) -> None:
    made = shape(tmp_path, layers=16, width=512, ffn=2048)
    assert [len(run.kinds) for run in made.runs] == [1, 6, 13]  # the last beyond the caches
    assert longest_run(made, GAUGE) is made.runs[-1]
    for run, longer in pairwise(made.runs):
        tight = replace(GAUGE, allowed_bytes=needed_bytes(made, longer, GAUGE) - 1)
        assert longest_run(made, tight) is run


@pytest.mark.many(keep=1)
@pytest.mark.parametrize("name", ["qwen3-5", "nemotron-h", "deepseek-v2-lite", "lfm2-moe", "llama4", "gemma4", "glm4"])
async def test_layers_that_need_their_place_are_measured(tmp_path: Path, name: str) -> None:
    """Recurrent ones, dense ones before those with experts, windows, planes: also after a prompt, and forgotten."""
    made = shape_in(FAMILIES / f"{name}.gguf")
    speed = await measure(made, tmp_path / "trial", GAUGE)
    assert speed.processor is None  # only beside a graphics card
    seconds_of_all = [value for name, value in asdict(speed).items() if name != "processor"]
    assert all(math.isfinite(seconds) and seconds >= 0 for seconds in seconds_of_all)
    assert min(speed.layer_s, speed.chunk_s, speed.step_s) > 0


def test_the_rows_of_a_trial_differ() -> None:
    """Rows that were alike would all pick the same experts, and read an eighth of what others' rows do."""
    run = Run(bytes(16), Role.MIDDLE, 64, NumberFormat.F16)
    trial = TrialRun(None, run, BenchmarkMonitor(lambda: False, layer_benchmark.report_nothing, time.perf_counter))  # type: ignore[arg-type]
    rows = [trial._next_row() for _ in range(2 * layer_benchmark.ROWS)]
    assert {len(row) for row in rows} == {NumberFormat.F16.row_bytes(64)}
    assert len(set(rows)) == layer_benchmark.ROWS
    assert rows[: layer_benchmark.ROWS] == rows[layer_benchmark.ROWS :]


async def test_no_memory_is_said_before_anything_begins(tmp_path: Path) -> None:
    with pytest.raises(DoesNotFit) as short:
        await measure(shape(tmp_path), tmp_path / "trial", BenchmarkSettings(Threads(1), 64, MIB, head=False))
    assert short.value.reason.code == "speed_no_room"
    assert not (tmp_path / "trial").exists()


async def test_a_cache_beyond_all_measure_is_refused_before_the_engine_sees_it(tmp_path: Path) -> None:
    made = shape(tmp_path, layers=2)
    wide = Setting("llama.attention.key_length", tensor_types.U32, (1 << 16,), is_list=False)
    rest = tuple(s for s in made.settings if s.key != wide.key)
    with pytest.raises(DoesNotFit) as short:
        await measure(structs.replace(made, settings=(*rest, wide)), tmp_path / "trial", NO_HEAD)
    assert short.value.reason.code == "speed_no_room"
    assert short.value.reason.number("needed_bytes") > 512 * MIB


async def test_a_full_disk_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layer_benchmark, "DISK_SHARE", 0.0)
    with pytest.raises(DoesNotFit) as short:
        await measure(shape(tmp_path, layers=2), tmp_path / "trial", NO_HEAD)
    assert short.value.reason.code == "disk_full"
    assert not (tmp_path / "trial").exists()


async def test_it_gives_way_to_an_answer_at_once(tmp_path: Path) -> None:
    steps = iter(range(100))
    with pytest.raises(Busy):
        await measure(shape(tmp_path), tmp_path / "trial", NO_HEAD, busy=lambda: next(steps) >= 5)
    assert next(steps) == 6
    assert not (tmp_path / "trial").exists()


async def test_a_trial_that_never_ends_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layer_benchmark, "MOST_S", 0.4)
    monkeypatch.setattr(layer_benchmark, "MOST_STEPS", 1 << 20)
    monkeypatch.setattr(layer_benchmark, "SINGLE_S", 1e9)
    with pytest.raises(StageLost) as lost:
        await measure(shape(tmp_path), tmp_path / "trial", NO_HEAD)
    assert lost.value.reason.code == "worker_hung"


async def test_a_worker_that_dies_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Worker] = []
    start = Worker.start

    async def remembered(*args: Any, **more: Any) -> Worker:
        started.append(await start(*args, **more))
        return started[-1]

    monkeypatch.setattr(Worker, "start", remembered)
    steps = iter(range(1000))

    def kill_at_fifth() -> bool:
        if next(steps) == 5 and started[0]._transport is not None:
            started[0]._transport.kill()
        return False

    with pytest.raises(StageLost) as lost:
        await measure(shape(tmp_path), tmp_path / "trial", NO_HEAD, busy=kill_at_fifth)
    assert lost.value.reason.code == "worker_died"


async def test_what_an_earlier_trial_left_is_cleared_away(tmp_path: Path) -> None:
    folder = tmp_path / "trial"
    folder.mkdir()
    (folder / "middle.gguf.old").write_bytes(b"x")
    await measure(shape(tmp_path, layers=2), folder, NO_HEAD)
    assert not folder.exists()


@pytest.mark.alone
@pytest.mark.timeout(400)
@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="needs Linux's schedstat")
async def test_the_forecast_is_like_the_whole_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Layers, steps and head from synthetic weights against a model of 6 layers as a whole.

    Both in seconds of the worker's own processor time, so that other programs here do not count.
    """
    monkeypatch.setattr(layer_benchmark, "MOST_STEPS", 12)
    monkeypatch.setattr(layer_benchmark, "DEPTH", DEPTH)
    monkeypatch.setattr(layer_benchmark, "SINGLE_S", 0.15)
    monkeypatch.setattr(layer_benchmark, "WIDE_S", 0.25)
    pids: list[int] = []
    made = Worker.connection_made

    def remembered(worker: Worker, transport: asyncio.BaseTransport) -> None:
        made(worker, transport)
        pids.append(worker.pid)

    monkeypatch.setattr(Worker, "connection_made", remembered)

    def clock() -> float:
        return int(Path(f"/proc/{pids[-1]}/schedstat").read_text().split()[0]) / 1e9

    path = tiny.llama(tmp_path / "m.gguf", layers=6, width=1024, heads=16, kv_heads=4, ffn=2816,
                      vocab=8_000, quant="Q4_K_M")  # fmt: skip
    middle = stage_file(path, Layers(0, 6), Role.MIDDLE)
    forecasts: dict[str, float] = {}
    measured: dict[str, float] = {}
    off: list[dict[str, int]] = []
    for _ in range(MOST_TRIES):
        # other programs take cache and clock, and only ever add: the least count, or one quiet moment
        speed = await measure(shape_in(path), tmp_path / "trial", GAUGE, clock=clock)
        fact = await facts(path, Role.WHOLE, clock)
        # where a head follows, the last layer of a chunk goes on with the due rows alone
        fact["chunk"] = (await facts(middle, Role.MIDDLE, clock))["chunk"]
        now = forecast(speed, 6)
        for name, forecast_s in now.items():
            forecasts[name] = min(forecasts.get(name, math.inf), forecast_s)
            measured[name] = min(measured.get(name, math.inf), fact[name])
        off += [percent_off(now, fact), percent_off(forecasts, measured)]
        if min(max(map(abs, item.values())) for item in off[-2:]) < 35:  # of this test's few steps
            return
    pytest.fail(f"error of the forecast in %: {off}")


def percent_off(forecasts: dict[str, float], measured: dict[str, float]) -> dict[str, int]:
    return {name: round(100 * (forecasts[name] / measured[name] - 1)) for name in forecasts}


def forecast(speed: Speed, n_layers: int) -> dict[str, float]:
    layer_s, row_s = speed.layer_s, speed.layer_row_s
    return {
        "decode": speed.step_s + n_layers * layer_s + speed.head_s,
        "deep": speed.step_s + n_layers * (layer_s + DEPTH * speed.position_s) + speed.head_s,
        "wide": speed.step_s + n_layers * (layer_s + 7 * row_s) + speed.head_s
        + 7 * speed.head_row_s,
        # the facts are a median over all chunks, too
        "chunk": speed.step_s + n_layers * (speed.chunk_s + MIDDLE * speed.chunk_position_s),
    }  # fmt: skip


async def facts(path: Path, role: Role, clock: Any) -> dict[str, float]:
    """The same steps on real weights."""
    run = Run(os.urandom(16), role, 1024, NumberFormat.F16)
    config = StageConfig("llamacpp", str(path), "", role, Layers(0, 6), 1024, 8, 1024, 64, 1)
    async with await Worker.start("whole") as worker, asyncio.TaskGroup() as group:
        await open_run(worker, run, 1024, config)
        stage = own_stage(worker, run, "whole", "whole")
        listening = group.create_task(stage.listen(), name="listen")
        for slot in range(8 if run.samples else 0):
            await stage.begin(slot, 0, GREEDY, ())
        plain = np.resize(np.array([0.5, -0.5], np.float32), (1, 1024))
        row = b"\x05\0\0\0" if run.samples else bytes(encode_hidden(plain, run.number))

        async def took(segments: list[Segment]) -> float:
            rows = row * sum(segment.n_tokens for segment in segments)
            began = clock()
            await stage.forward(Step.of(segments, segments if run.samples else (), rows))
            return float(clock() - began)

        result: dict[str, float] = {}
        singles = [await took([Segment(0, 1, pos)]) for pos in range(13)]
        await stage.forget(0)
        wides = [await took([Segment(s, 1, pos) for s in range(8)]) for pos in range(9)]
        for slot in range(8):
            await stage.forget(slot)
        chunks = [await took([Segment(0, 64, pos)]) for pos in range(0, DEPTH, 64)]
        deeps = [await took([Segment(0, 1, pos)]) for pos in range(DEPTH, DEPTH + 9)]
        for name, steps in (("decode", singles), ("wide", wides), ("chunk", chunks), ("deep", deeps)):
            result[name] = statistics.median(steps[1:])
        listening.cancel()
    return result
