"""A stage on PyTorch: its slots, what it refuses, and that a worker opens it like any other."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from app.catalog.shelf import Entry
from app.core.errors import StageLost
from backends.contract import (
    PYTORCH,
    DeviceUnusable,
    FamilyUnfit,
    Hidden,
    KvType,
    Layers,
    PictureGrid,
    Role,
    Segment,
    StageConfig,
    StageError,
    Tokens,
)
from backends.gguf_weights.stage_file import StageFile
from backends.pytorch.stage import TorchStage
from tests.engines.parity import computed
from tests.families import proof
from tests.families.driven import THERE, Workers, driven
from tests.families.fixtures import families
from tests.families.home import CELLS, Home
from tests.inference.pool import answer, request

PROMPT = tuple(range(40, 70))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return proof.home(tmp_path)


@pytest.fixture
def entry(home: Home) -> Entry:
    return home.shelf.import_file(families()["qwen3"].path)


@pytest.fixture
def config(home: Home, entry: Entry) -> StageConfig:
    whole = home.config(entry, Layers(0, entry.model.n_layers), Role.WHOLE, apart=False)
    return replace(whole, engine=PYTORCH)


@pytest.fixture
def stage(config: StageConfig) -> Iterator[TorchStage]:
    with closing(TorchStage(config)) as made:
        yield made


def scores(stage: TorchStage, slot: int, first: int, last: int) -> np.ndarray:
    segment = Segment(slot, last - first, first)
    return computed([stage], (segment,), PROMPT[first:last])[0]


@pytest.mark.parametrize("apart", [False, True])
def test_slots_do_not_see_each_other(config: StageConfig, apart: bool) -> None:
    """Their cells alternate if they share them, and attention gathers them."""
    with closing(TorchStage(replace(config, apart=apart))) as stage:
        for at in range(len(PROMPT) - 1):
            computed([stage], (Segment(0, 1, at), Segment(1, 1, at)), (PROMPT[at], PROMPT[-1 - at]))
        together = scores(stage, 0, len(PROMPT) - 1, len(PROMPT))
    with closing(TorchStage(config)) as alone:
        for at in range(len(PROMPT)):
            expected = scores(alone, 0, at, at + 1)
    np.testing.assert_allclose(together, expected, rtol=0, atol=1e-4 * np.abs(expected).max())


def test_a_slot_goes_on_from_where_it_was_cut_back(stage: TorchStage) -> None:
    scores(stage, 0, 0, 20)
    expected = scores(stage, 0, 20, 30)
    stage.forget(0, 20)
    np.testing.assert_array_equal(scores(stage, 0, 20, 30), expected)
    with pytest.raises(StageError, match="30 positions, not 12"):
        scores(stage, 0, 12, 30)


def test_a_step_that_fails_leaves_the_slots_as_they_were(stage: TorchStage) -> None:
    expected = scores(stage, 0, 0, 20)
    stage.forget(0, 0)
    with pytest.raises(StageError, match="slot 1 has 0 positions"):
        stage.forward(Tokens((Segment(0, 4, 0), Segment(1, 4, 3)), PROMPT[:8]), [])
    np.testing.assert_array_equal(scores(stage, 0, 0, 20), expected)


@pytest.mark.parametrize("name", ["lfm2", "qwen3-5"])
def test_a_recurrent_slot_returns_to_the_end_of_its_prompt(name: str, home: Home) -> None:
    entry = home.shelf.import_file(families()[name].path)
    config = home.config(entry, Layers(0, entry.model.n_layers), Role.WHOLE, apart=False)
    with closing(TorchStage(replace(config, engine=PYTORCH))) as stage:
        scores(stage, 0, 0, 20)
        expected = [scores(stage, 0, at, at + 1) for at in range(20, 24)]
        with pytest.raises(StageError, match="no state after position 22"):
            stage.forget(0, 22)
        stage.forget(0, 20)
        with pytest.raises(StageError, match="slot 1 has 0 positions"):  # and takes nothing from slot 0
            stage.forward(Tokens((Segment(0, 1, 20), Segment(1, 1, 3)), PROMPT[20:22]), [])
        result = [scores(stage, 0, at, at + 1) for at in range(20, 24)]
    np.testing.assert_array_equal(result, expected)


def test_full_cells_are_told(config: StageConfig) -> None:
    with closing(TorchStage(replace(config, kv_cells=64))) as stage:
        scores(stage, 0, 0, 30)
        scores(stage, 1, 0, 30)
        with pytest.raises(StageError, match=r"the 64 cells .* are full"):
            computed([stage], (Segment(0, 5, 30),), PROMPT[:5])
        stage.forget(1)
        computed([stage], (Segment(0, 5, 30),), PROMPT[:5])


def test_what_it_cannot_compute_is_refused_by_name(
    config: StageConfig, home: Home, stage: TorchStage, tmp_path: Path
) -> None:
    with pytest.raises(StageError) as kv:
        TorchStage(replace(config, kv=KvType.Q8_0))
    assert kv.value.cause == "torch_kv"
    other = home.shelf.import_file(families()["nemotron"].path)
    with pytest.raises(FamilyUnfit) as family:
        TorchStage(replace(config, path=str(other.path)))
    assert family.value.facts["architecture"] == "nemotron"
    with pytest.raises(DeviceUnusable) as device:
        TorchStage(replace(config, device="cuda:7"))
    assert device.value.cause == "torch_device"
    with pytest.raises(StageError) as picture:
        stage.lay_out(0, [PictureGrid(1, 2, 2)])
    assert picture.value.cause == "torch_pictures"
    with pytest.raises(StageError, match="pictures"):
        stage.forward(Tokens((Segment(0, 1, 0),), (-2,)), [0])
    with pytest.raises(StageError, match="beyond the"):
        stage.forward(Tokens((Segment(0, 1, 0),), (100_000,)), [0])
    with pytest.raises(StageError, match="token ids were expected"):
        stage.forward(Hidden((Segment(0, 1, 0),), memoryview(bytes(4 * config.width))), [0])


def damaged(path: Path, to: Path, name: str, value: float) -> Path:
    """The model of `path` with this number at the beginning of a tensor in float32."""
    data = bytearray(path.read_bytes())
    first = StageFile(str(path)).tensor(name, (-1,)).blocks.tobytes()
    at = data.index(first)
    data[at : at + 4] = np.float32(value).tobytes()
    to.write_bytes(data)
    return to


def test_a_number_that_is_none_is_told_with_its_tensor(config: StageConfig, tmp_path: Path) -> None:
    name = "blk.2.ffn_norm.weight"
    path = damaged(families()["qwen3"].path, tmp_path / "damaged.gguf", name, np.nan)
    with pytest.raises(StageError) as caught:
        TorchStage(replace(config, path=str(path)))
    assert (caught.value.cause, caught.value.facts) == ("weights_not_finite", {"tensor": name})


def test_a_worker_computes_with_both_engines(pytorch: str, tmp_path: Path) -> None:
    """llama.cpp, PyTorch, llama.cpp in two processes, by the driver of the node: the tokens of llama.cpp alone."""
    asyncio.run(_in_workers(pytorch, tmp_path))


def test_an_answer_goes_on_when_its_stage_moves_to_another_engine(pytorch: str, tmp_path: Path) -> None:
    """The process with PyTorch's layers is killed in mid-answer; llama.cpp reads all tokens again and goes on."""
    asyncio.run(_killed(pytorch, tmp_path))


async def _killed(folder: str, tmp_path: Path) -> None:
    home = MixedHome(proof.home(tmp_path), folder)
    entry = home.shelf.import_file(families()["qwen3"].path)
    runs, prompt = proof.runs(entry.model.n_layers, (1, 3)), list(PROMPT)
    async with Workers() as workers, driven(workers, home, entry, runs, apart=True) as (pipeline, _):  # type: ignore[arg-type]
        first, _ = await answer(pipeline, request(prompt, 6))
        os.kill((await workers.of(THERE)).pid, signal.SIGKILL)
        with pytest.raises(StageLost):
            await answer(pipeline, request([*prompt, *first], 2))
    async with Workers() as workers, driven(workers, home.plain, entry, runs, apart=True) as (pipeline, _):
        after, _ = await answer(pipeline, request([*prompt, *first], 6))
        expected, _ = await answer(pipeline, request(prompt, 12))
    assert [*first, *after] == expected


async def _in_workers(folder: str, tmp_path: Path) -> None:
    home = MixedHome(proof.home(tmp_path), folder)
    entry = home.shelf.import_file(families()["llama"].path)
    runs = proof.runs(entry.model.n_layers, (1, 3))
    answers = []
    for each in (home, home.plain):
        async with Workers() as workers, driven(workers, each, entry, runs, apart=True) as (pipeline, _):  # type: ignore[arg-type]
            answers.append((await answer(pipeline, request(list(PROMPT), 12)))[0])
    assert answers[0] == answers[1]
    assert len(answers[0]) == 12


class MixedHome:
    """A home whose stages in the middle are PyTorch's."""

    def __init__(self, home: Home, folder: str) -> None:
        self.plain, self._folder = home, folder
        self.shelf = home.shelf

    def config(self, entry: Entry, layers: Layers, role: Role, *, apart: bool) -> StageConfig:
        config = self.plain.config(entry, layers, role, apart=apart)
        if role is not Role.MIDDLE:
            return config
        assert config.kv_cells == CELLS
        return replace(config, engine=PYTORCH, library=self._folder)
