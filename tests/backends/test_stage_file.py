"""GGUF files read for engines other than llama.cpp: what a hostile or odd file is told."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import numpy as np
import pytest

from backends.contract import StageError
from backends.gguf_weights.block_types import Kind, row_bytes
from backends.gguf_weights.stage_file import StageFile
from tests.families.fixtures import families

MODEL = families()["gemma4"].path


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return Path(shutil.copy(MODEL, tmp_path / "model.gguf"))


def changed(path: Path, before: bytes, after: bytes) -> StageFile:
    """The file with these bytes once replaced by others of the same length."""
    data = path.read_bytes()
    assert data.count(before) == 1
    assert len(before) == len(after)
    path.write_bytes(data.replace(before, after))
    return StageFile(str(path))


def listed(name: str, shape: tuple[int, ...], kind: int) -> bytes:
    """The beginning of a tensor's entry in the header."""
    size = struct.pack("<Q", len(name))
    return size + name.encode() + struct.pack(f"<I{len(shape)}QI", len(shape), *shape, kind)


def test_what_a_file_states() -> None:
    file = StageFile(str(MODEL))
    assert (file.architecture, file.integer("block_count"), file.text("nothing", "default")) == ("gemma4", 8, "default")
    assert file.per_layer("attention.head_count_kv", 8) == (2, 2, 2, 2, 2, 1, 2, 1)
    assert file.per_layer("attention.head_count", 3) == (4, 4, 4)
    assert file.flags("attention.sliding_window_pattern", 6) == (True, True, True, True, True, False)
    assert file.number("rope.freq_base") == 100_000.0
    norm = file.tensor("output_norm.weight", (32,)).unpack()
    assert norm.shape == (32,)
    assert np.isfinite(norm).all()


@pytest.mark.parametrize("key", ["block_count", "attention.head_count_kv", "nothing"])
def test_a_number_that_is_missing_or_odd_is_told_with_its_key(key: str) -> None:
    with pytest.raises(StageError) as caught:
        StageFile(str(MODEL)).number("attention.head_count_kv" if key == "block_count" else key)
    assert caught.value.cause == "weights_metadata"
    assert str(caught.value.facts["key"]).startswith("gemma4.")


def test_a_number_type_that_is_not_read_is_told_with_its_tensor(model: Path) -> None:
    name, shape = "blk.0.ffn_down.weight", (32, 32)
    file = changed(model, listed(name, shape, Kind.F16), listed(name, shape, Kind.IQ4_NL))
    with pytest.raises(StageError) as caught:
        file.tensor(name, (32, 32))
    assert (caught.value.cause, caught.value.facts) == ("tensor_kind", {"tensor": name, "kind": "IQ4_NL"})


def test_a_number_type_that_nobody_knows_is_told(model: Path) -> None:
    name, shape = "blk.0.ffn_down.weight", (32, 32)
    with pytest.raises(StageError) as caught:
        changed(model, listed(name, shape, Kind.F16), listed(name, shape, 4711)).tensor(name, (32, 32))
    assert caught.value.facts["kind"] == "4711"


def test_a_shape_that_is_not_expected_is_told() -> None:
    with pytest.raises(StageError) as caught:
        StageFile(str(MODEL)).tensor("blk.0.attn_q.weight", (64, 48))
    assert caught.value.facts == {"tensor": "blk.0.attn_q.weight", "found": "64 x 32", "wanted": "64 x 48"}


def test_a_tensor_that_is_missing_is_told() -> None:
    with pytest.raises(StageError) as caught:
        StageFile(str(MODEL)).tensor("output.weight", (272, 32))
    assert caught.value.cause == "tensor_missing"


def test_a_tensor_that_nobody_asked_for_is_told() -> None:
    file = StageFile(str(MODEL))
    with pytest.raises(StageError) as caught:
        file.require_all_used(8)
    assert caught.value.cause == "tensor_unknown"
    assert str(caught.value.facts["tensor"]).startswith("blk.")
    file.require_all_used(0)  # all layers are those of another stage


@pytest.mark.parametrize("shape", [(32, 1 << 40), (1 << 62, 32), (32, 0)])
def test_an_impossible_shape_is_refused_before_anything_is_read(model: Path, shape: tuple[int, int]) -> None:
    name = "blk.0.ffn_down.weight"
    with pytest.raises(StageError) as caught:
        changed(model, listed(name, (32, 32), Kind.F16), listed(name, shape, Kind.F16))
    assert caught.value.cause == "weights_unreadable"


def test_a_tensor_beyond_the_end_is_refused(model: Path) -> None:
    data = model.read_bytes()
    model.write_bytes(data[: len(data) // 2])
    with pytest.raises(StageError) as caught:
        StageFile(str(model)).tensor("blk.7.ffn_down.weight", (32, 32))
    assert caught.value.cause == "weights_unreadable"


@pytest.mark.parametrize("size", [0, 3, 24, 100, 5000])
def test_a_header_that_is_cut_short_is_refused(model: Path, size: int) -> None:
    model.write_bytes(model.read_bytes()[:size])
    with pytest.raises(StageError) as caught:
        StageFile(str(model))
    assert caught.value.cause == "weights_unreadable"


def test_rows_must_fill_whole_blocks() -> None:
    assert row_bytes(Kind.Q4_K, 512) == 288
    with pytest.raises(ValueError, match="do not fill"):
        row_bytes(Kind.Q4_K, 300)
