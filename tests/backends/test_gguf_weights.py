"""Metadata and tensors of GGUF files for other engines: what a stranger's file claims is refused, not believed."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from backends.contract import StageError
from backends.gguf_weights.rotation import scaled
from backends.gguf_weights.sizes import ExpertSizes, Sizes
from backends.gguf_weights.stage_file import StageFile

SANE = {"block_count": 2, "embedding_length": 64, "attention.head_count": 4, "rope.dimension_count": 16}
STRING, U64, F32 = 8, 10, 6


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def written(
    folder: Path, values: Mapping[str, float], shape: tuple[int, ...] = (), n_bytes: int = 0, kind: str = ""
) -> StageFile:
    """A file with this metadata and, if it has a shape, one tensor in f32. kind: of the scaling of rotations."""
    entries = text("general.architecture") + struct.pack("<I", STRING) + text("llama")
    if kind:
        entries += text("llama.rope.scaling.type") + struct.pack("<I", STRING) + text(kind)
    for name, value in values.items():
        form = (U64, "Q") if isinstance(value, int) else (F32, "f")
        entries += text(f"llama.{name}") + struct.pack(f"<I{form[1]}", form[0], value)
    tensor = text("t") + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, 0) if shape else b""
    path = folder / "some.gguf"
    with path.open("wb") as file:
        file.write(struct.pack("<4sIQQ", b"GGUF", 3, bool(shape), 1 + bool(kind) + len(values)) + entries + tensor)
        file.truncate(max(n_bytes, file.tell()))
    return StageFile(str(path))


def test_sizes_are_read(tmp_path: Path) -> None:
    sizes = Sizes.of(written(tmp_path, SANE))
    assert (sizes.key, sizes.value, sizes.n_rot) == (16, 16, 16)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("attention.head_count", 65),
        ("attention.key_length", 0),
        ("attention.key_length", 1 << 40),
        ("attention.value_length", 0),
        ("rope.dimension_count", 0),
        ("rope.dimension_count", 17),
        ("rope.dimension_count", 32),
        ("rope.dimension_count", 1 << 40),
        ("rope.freq_base", 0.0),
        ("rope.freq_base", 1.0),
        ("rope.freq_base", -5.0),
    ],
)
def test_impossible_sizes_are_refused_before_they_cost_memory(name: str, value: float, tmp_path: Path) -> None:
    with pytest.raises(StageError) as refused:
        Sizes.of(written(tmp_path, SANE | {name: value}))
    assert refused.value.cause == "weights_metadata"


def test_a_tensor_larger_than_any_memory_is_refused(tmp_path: Path) -> None:
    length = 1 << 21
    shape = (length, length, length)
    file = written(tmp_path, SANE, shape, length)
    with pytest.raises(StageError) as refused:
        file.tensor("t", shape)
    assert refused.value.cause == "weights_unreadable"


EXPERTS = {"expert_count": 8, "expert_used_count": 2, "expert_feed_forward_length": 32}


def test_sound_groups_of_experts_are_read(tmp_path: Path) -> None:
    assert ExpertSizes.of(written(tmp_path, EXPERTS), n_groups=4, n_groups_used=2).n_groups == 4


@pytest.mark.parametrize(
    ("n_groups", "n_groups_used", "n_used"),
    [(3, 1, 2), (8, 4, 2), (16, 2, 2), (4, 5, 2), (4, 0, 2), (4, 1, 3)],
    ids=["unequal", "of one expert", "more than experts", "more used than there are", "none used", "too small"],
)
def test_impossible_groups_of_experts_are_refused(
    n_groups: int, n_groups_used: int, n_used: int, tmp_path: Path
) -> None:
    file = written(tmp_path, EXPERTS | {"expert_used_count": n_used})
    with pytest.raises(StageError) as refused:
        ExpertSizes.of(file, n_groups=n_groups, n_groups_used=n_groups_used)
    assert refused.value.cause == "weights_metadata"


def test_rotations_are_computed_from_sound_factors(tmp_path: Path) -> None:
    factors = np.array([1, 2, 4, 8, 1e30, 1, 1, 1], np.float32)
    assert np.isfinite(scaled(written(tmp_path, SANE), 10_000.0, 16, factors).per_pair).all()


@pytest.mark.parametrize("odd", [0.0, float("nan"), float("inf") * 0])
def test_rotations_that_are_no_numbers_are_refused(odd: float, tmp_path: Path) -> None:
    with pytest.raises(StageError) as refused:
        scaled(written(tmp_path, SANE), 10_000.0, 16, np.array([1, odd, 1, 1, 1, 1, 1, 1], np.float32))
    assert refused.value.cause == "weights_metadata"


def test_an_impossible_length_of_the_training_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, SANE | {"context_length": 0, "rope.scaling.factor": 4.0}, kind="yarn")
    with pytest.raises(StageError) as refused:
        scaled(file, 10_000.0, 16)
    assert refused.value.cause == "weights_metadata"
