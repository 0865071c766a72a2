"""Layers of random weights open and compute in the engine for each family that may be cut, as its own layers do."""

from __future__ import annotations

import asyncio
import math
import os
from pathlib import Path

import numpy as np
import pytest

from app.catalog.families.family_table import FAMILIES, WINDOW_LAYERS, window_layers
from app.catalog.gguf.gguf_file import Header, read_header
from app.catalog.gguf.model_reader import model_of
from app.catalog.gguf.model_shape_reader import shape_of
from app.catalog.stages import synthetic_stage
from app.core.model import LayerRun, Model, ModelShape
from app.core.verification import as_f16, rows_of
from app.inference.stages.stage_client import Run, Step
from app.inference.stages.stage_connection import close_run, open_run, own_stage
from app.inference.worker.worker import Worker
from app.node.planning.speed_measurer import speed_basis
from backends.contract import Hidden, Layers, NumberFormat, Role, Segment, StageConfig
from backends.hidden_state_codec import VALUE, bytes_of
from backends.llamacpp.stage import LlamaStage
from tests.families.fixtures import families

PROVED = sorted(name for name, family in families().items() if family.architecture in FAMILIES)
CHUNK = 512  # positions: in as many, a state that grew would be beyond all numbers
VALUES = (0.5, -1.0, 1.5, -0.25)


def opened(name: str) -> tuple[Header, Model]:
    header = read_header(families()[name].path)
    return header, model_of(header, name, "0" * 64)


def shape(name: str) -> ModelShape:
    return shape_of(*opened(name))


def config(path: Path, made: ModelShape, model: Model, role: Role) -> StageConfig:
    return StageConfig(
        "llamacpp", str(path), "", role, Layers(0, model.n_layers), made.width, 2, 2 * CHUNK, CHUNK,
        threads=1, traits=model.cuts.traits(role), any_engine=True,
    )  # fmt: skip


@pytest.mark.parametrize("name", PROVED)
def test_the_model_s_own_layers_are_what_is_measured(tmp_path: Path, name: str) -> None:
    basis = speed_basis(*opened(name))
    assert not basis.is_estimate
    made = basis.shape
    for role, run in ((Role.MIDDLE, made.runs[-1]), (Role.LAST, made.runs[0])):
        path = tmp_path / f"{role}.gguf"
        model = synthetic_stage.write(path, made, run, role)
        stage = LlamaStage(config(path, made, model, role))
        rows = np.random.default_rng(1).choice(VALUES, CHUNK * made.width).astype(VALUE)
        result = stage.forward(Hidden((Segment(0, CHUNK, 0),), bytes_of(rows)), [0])
        assert np.isfinite(np.frombuffer(result.rows, VALUE)).all()
        result = stage.forward(Hidden((Segment(0, 1, CHUNK),), bytes_of(rows[: made.width])), [0])
        assert np.isfinite(np.frombuffer(result.rows, VALUE)).all()
        stage.close()


@pytest.mark.long
async def test_a_worker_computes_the_layers_of_every_family(tmp_path: Path) -> None:
    async with await Worker.start("all", reads=[tmp_path]) as worker, asyncio.TaskGroup() as group:
        odd = {}
        for name in PROVED:
            made, path = shape(name), tmp_path / f"{name}.gguf"
            model = synthetic_stage.write(path, made, made.runs[-1], Role.MIDDLE)
            run = Run(os.urandom(16), Role.MIDDLE, made.width, NumberFormat.F16)
            await open_run(worker, run, 2 * CHUNK, config(path, made, model, Role.MIDDLE))
            path.unlink()
            stage = own_stage(worker, run, "all", "all")
            listening = group.create_task(stage.listen(), name="listen")
            for segment in (Segment(0, CHUNK, 0), Segment(0, 1, CHUNK)):
                row = as_f16((VALUES * made.width)[: made.width])
                step = await stage.forward(Step.of([segment], (), row * segment.n_tokens))
                rows = rows_of(bytes(step.rows), made.width, run.number)
                if len(rows) != segment.n_tokens or not all(map(math.isfinite, rows[-1])):
                    odd[name] = rows
            listening.cancel()
            await close_run(worker, run)
    assert odd == {}


@pytest.mark.parametrize("name", ["gemma3", "cohere2-moe", "gemma4", "llama4"])
def test_windows_are_counted_as_in_the_model(name: str) -> None:
    """Each run states which layers have a window, as in the whole model."""
    header, model = opened(name)
    near = window_layers(header, FAMILIES[model.architecture])
    assert near is not None
    made = shape_of(header, model)
    listed = [of_run(made, run) for run in made.runs]
    assert sum(listed[-1]) / len(listed[-1]) == pytest.approx(sum(near) / len(near), abs=0.1)
    assert all(len(group) == len(run.kinds) for group, run in zip(listed, made.runs, strict=True))


def of_run(made: ModelShape, run: LayerRun) -> list[bool]:
    key = f"{made.architecture}.{WINDOW_LAYERS}"
    return [bool(value) for setting in run.settings if setting.key == key for value in setting.values]


@pytest.mark.parametrize(
    ("name", "recurrent"),
    [("qwen3-5", "ssm_a"), ("kimi-linear", "ssm_a"), ("granite-hybrid", "ssm_a"),
     ("nemotron-h", "ssm_a"), ("lfm2", "shortconv.conv.weight")],
)  # fmt: skip
def test_each_run_of_a_hybrid_holds_both_kinds_of_layers(name: str, recurrent: str) -> None:
    made = shape(name)
    for run in made.runs:
        names = [{tensor.name for tensor in layer.tensors} for layer in made.layers(run)]
        assert 0 < sum(recurrent in name for name in names) < len(names)
    assert made.runs[-1].average_layers == pytest.approx(len(made.runs[-1].kinds), rel=0.15)


def test_experts_count_as_what_a_row_picks_of_them() -> None:
    """DeepSeek V2 Lite: a first layer without experts, which has as much work as one with all of them idle."""
    made = shape("deepseek-v2-lite")
    assert len(made.kinds) == 2
    dense = [any("_exps" in tensor.name for tensor in kind.tensors) for kind in made.kinds]
    assert sorted(dense) == [False, True]
    short, *_, longest = made.runs
    assert short.kinds == (made.runs[1].kinds[0],) == (0,)  # one with experts stands for most
    assert short.average_layers == pytest.approx(1, rel=0.1)
    assert len(longest.kinds) == 16
    assert longest.average_layers == pytest.approx(16, rel=0.1)


def test_of_large_layers_few_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hybrid's two layers then stand for its four, by the work of each."""
    monkeypatch.setattr("app.catalog.gguf.model_shape_reader.DEAR_BYTES", 1 << 10)
    made = shape("qwen3-5")
    assert [len(run.kinds) for run in made.runs] == [2]
    assert made.runs[0].average_layers == pytest.approx(2, rel=0.1)
