"""Packed blocks in MLX: the same numbers, and the error of products where MLX keeps halves."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest

from backends.apple.quantized import GROUP, is_exact, quantized
from backends.apple.weights import Stored
from backends.contract import StageError
from backends.gguf_weights.block_types import PACKED, PLAIN, Kind, PackedTensor, unpack
from tests.engines.test_blocks import blocks

EXACT = (Kind.Q4_0, Kind.Q4_1, Kind.Q5_0, Kind.Q5_1, Kind.Q8_0, Kind.Q4_K, Kind.Q5_K, Kind.MXFP4)
HALVES_WITHIN = 2.5e-4  # of types that MLX does not know, relative, root mean square (backends/apple/weights.py)


def packed(kind: Kind) -> PackedTensor:
    raw = blocks(kind)
    return PackedTensor("blk.0.ffn_up.weight", kind, unpack(raw, kind).shape, raw)


def apart(result: np.ndarray, expected: np.ndarray) -> float:
    """The difference relative to what was expected, root mean square."""
    difference, all_values = result.astype(np.float64) - expected, expected.astype(np.float64)
    return float(np.sqrt((difference**2).mean() / (all_values**2).mean()))


def test_the_types_that_stay_packed_are_these() -> None:
    assert {kind for kind in (*PACKED, *PLAIN) if is_exact(kind)} == set(EXACT)


@pytest.mark.parametrize("kind", EXACT, ids=lambda kind: kind.name)
def test_numbers_are_those_of_the_gguf_package(kind: Kind) -> None:
    """The same bits, except that zeros have no sign."""
    raw = blocks(kind)
    made = quantized(raw, kind)
    result = mx.dequantize(
        mx.array(made.words), mx.array(made.scales), None if made.biases is None else mx.array(made.biases),
        group_size=GROUP, bits=made.bits, mode=made.mode, dtype=mx.float32,
    )  # fmt: skip
    expected = unpack(raw, kind)
    assert len(np.unique(expected)) > len(expected)
    np.testing.assert_array_equal(np.array(result), expected)


@pytest.mark.parametrize("kind", [*PACKED, *PLAIN], ids=lambda kind: kind.name)
def test_products_are_those_of_the_numbers(kind: Kind) -> None:
    tensor = packed(kind)
    rows = np.random.default_rng(3).normal(size=(5, tensor.shape[-1])).astype(np.float32)
    expected = rows.astype(np.float64) @ tensor.unpack().astype(np.float64).T
    result = Stored(tensor, mx.float32).product(mx.array(rows))
    assert apart(np.array(result), expected) <= 1e-6


@pytest.mark.parametrize("kind", [Kind.Q2_K, Kind.Q3_K, Kind.Q6_K], ids=lambda kind: kind.name)
def test_halves_are_as_near_as_stated(kind: Kind) -> None:
    tensor = packed(kind)
    kept = Stored(tensor, mx.float16).data
    assert kept.dtype == mx.float16
    assert 1e-5 < apart(np.array(kept), tensor.unpack()) <= HALVES_WITHIN


@pytest.mark.parametrize("kind", PLAIN, ids=lambda kind: kind.name)
def test_plain_numbers_stay_as_they_are_on_a_card(kind: Kind) -> None:
    tensor = packed(kind)
    kept = Stored(tensor, mx.float16).data
    np.testing.assert_array_equal(np.array(kept.astype(mx.float32)), tensor.unpack())


@pytest.mark.parametrize("kind", [Kind.Q4_K, Kind.Q6_K, Kind.MXFP4, Kind.F16], ids=lambda kind: kind.name)
def test_experts_are_chosen_by_row(kind: Kind) -> None:
    tensor = packed(kind)
    values = tensor.unpack().reshape(4, 12, -1)
    of_experts = PackedTensor(tensor.name, kind, values.shape, tensor.blocks.reshape(4, 12, -1))
    rows = np.random.default_rng(3).normal(size=(3, values.shape[-1])).astype(np.float32)
    chosen = np.array([[0, 3], [2, 1], [3, 3]])
    result = Stored(of_experts, mx.float32).products(mx.array(rows)[:, None, None], mx.array(chosen))
    expected = np.einsum("ni,nkoi->nko", rows, values[chosen])
    assert apart(np.array(result)[:, :, 0], expected) <= 1e-6


@pytest.mark.parametrize("kind", [Kind.Q4_0, Kind.Q6_K, Kind.MXFP4, Kind.F32], ids=lambda kind: kind.name)
def test_numbers_that_are_none_are_refused(kind: Kind) -> None:
    """An infinite scale or exponent, or a number that is none."""
    raw, shape = blocks(kind), packed(kind).shape
    raw[-1, :4] = raw[-1, -4:] = 0xFF
    with pytest.raises(StageError) as caught:
        Stored(PackedTensor("output.weight", kind, shape, raw), mx.float32)
    assert caught.value.cause == "weights_not_finite"
