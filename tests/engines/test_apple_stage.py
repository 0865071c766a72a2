"""A stage on MLX: its slots, what it refuses, and that a worker opens it like any other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from app.catalog.shelf import Entry
from backends.apple.stage import MlxStage
from backends.contract import (
    APPLE,
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
from tests.engines.parity import computed
from tests.families import proof
from tests.families.fixtures import families
from tests.families.home import Home

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
    return replace(whole, engine=APPLE)


@pytest.fixture
def stage(config: StageConfig) -> Iterator[MlxStage]:
    with closing(MlxStage(config)) as made:
        yield made


def scores(stage: MlxStage, slot: int, first: int, last: int) -> np.ndarray:
    segment = Segment(slot, last - first, first)
    return computed([stage], (segment,), PROMPT[first:last])[0]


@pytest.mark.parametrize("apart", [False, True])
def test_slots_do_not_see_each_other(config: StageConfig, apart: bool) -> None:
    """Their cells alternate if they share them, and attention gathers them."""
    with closing(MlxStage(replace(config, apart=apart))) as stage:
        for at in range(len(PROMPT) - 1):
            computed([stage], (Segment(0, 1, at), Segment(1, 1, at)), (PROMPT[at], PROMPT[-1 - at]))
        together = scores(stage, 0, len(PROMPT) - 1, len(PROMPT))
    with closing(MlxStage(config)) as alone:
        for at in range(len(PROMPT)):
            expected = scores(alone, 0, at, at + 1)
    np.testing.assert_allclose(together, expected, rtol=0, atol=1e-4 * np.abs(expected).max())


def test_a_slot_goes_on_from_where_it_was_cut_back(stage: MlxStage) -> None:
    scores(stage, 0, 0, 20)
    expected = scores(stage, 0, 20, 30)
    stage.forget(0, 20)
    np.testing.assert_array_equal(scores(stage, 0, 20, 30), expected)
    with pytest.raises(StageError, match="30 positions, not 12"):
        scores(stage, 0, 12, 30)


def test_a_step_that_fails_leaves_the_slots_as_they_were(stage: MlxStage) -> None:
    expected = scores(stage, 0, 0, 20)
    stage.forget(0, 0)
    with pytest.raises(StageError, match="slot 1 has 0 positions"):
        stage.forward(Tokens((Segment(0, 4, 0), Segment(1, 4, 3)), PROMPT[:8]), [])
    np.testing.assert_array_equal(scores(stage, 0, 0, 20), expected)


def test_full_cells_are_told(config: StageConfig) -> None:
    with closing(MlxStage(replace(config, kv_cells=64))) as stage:
        scores(stage, 0, 0, 30)
        scores(stage, 1, 0, 30)
        with pytest.raises(StageError, match=r"the 64 cells .* are full"):
            computed([stage], (Segment(0, 5, 30),), PROMPT[:5])
        stage.forget(1)
        computed([stage], (Segment(0, 5, 30),), PROMPT[:5])


def test_what_it_cannot_compute_is_refused_by_name(
    config: StageConfig, home: Home, stage: MlxStage, tmp_path: Path
) -> None:
    with pytest.raises(StageError) as kv:
        MlxStage(replace(config, kv=KvType.Q8_0))
    assert kv.value.cause == "mlx_kv"
    other = home.shelf.import_file(families()["nemotron"].path)
    with pytest.raises(FamilyUnfit) as family:
        MlxStage(replace(config, path=str(other.path)))
    assert family.value.facts["architecture"] == "nemotron"
    with pytest.raises(DeviceUnusable) as device:
        MlxStage(replace(config, device="Metal"))
    assert device.value.cause == "mlx_device"
    with pytest.raises(StageError) as picture:
        stage.lay_out(0, [PictureGrid(1, 2, 2)])
    assert picture.value.cause == "mlx_pictures"
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
        MlxStage(replace(config, path=str(path)))
    assert (caught.value.cause, caught.value.facts) == ("weights_not_finite", {"tensor": name})
