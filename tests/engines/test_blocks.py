"""Packed blocks in torch: the same bits as the gguf package and as llama.cpp."""

from __future__ import annotations

import gguf
import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from backends.gguf_weights.block_types import PACKED, PLAIN, Kind, unpack
from backends.llamacpp.token_embedding import native
from backends.pytorch.blocks import dequantize

N_ROWS, N_BLOCKS = 48, 3
HALVES = {  # where a block has half-precision numbers
    Kind.Q4_0: (0,), Kind.Q4_1: (0, 2), Kind.Q5_0: (0,), Kind.Q5_1: (0, 2), Kind.Q8_0: (0,), Kind.Q2_K: (80, 82),
    Kind.Q3_K: (108,), Kind.Q4_K: (0, 2), Kind.Q5_K: (0, 2), Kind.Q6_K: (208,), Kind.F16: (0,),
}  # fmt: skip


def blocks(kind: Kind) -> NDArray[np.uint8]:
    """Rows of blocks with any bits, except that their half-precision numbers are finite."""
    chance = np.random.default_rng(7)
    _, n_bytes = gguf.GGML_QUANT_SIZES[kind]
    raw = chance.integers(0, 256, (N_ROWS, N_BLOCKS, n_bytes), dtype=np.uint8)
    for first in HALVES.get(kind, ()):
        numbers = chance.normal(size=(N_ROWS, N_BLOCKS, 1)).astype(np.float16)
        raw[..., first : first + 2] = numbers.view(np.uint8)
    if kind in (Kind.F32, Kind.BF16):
        raw[..., -1] &= 0x3F
    if kind is Kind.MXFP4:
        raw[..., 0] = chance.integers(0, 200, (N_ROWS, N_BLOCKS))  # also the subnormal scales
    return raw.reshape(N_ROWS, -1)


@pytest.mark.parametrize("kind", [*PACKED, *PLAIN], ids=lambda kind: kind.name)
def test_numbers_are_those_of_the_gguf_package(kind: Kind) -> None:
    raw = blocks(kind)
    expected, result = unpack(raw, kind), dequantize(torch.from_numpy(raw), kind).numpy()
    assert np.isfinite(expected).all()
    assert len(np.unique(expected)) > N_ROWS
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("kind", PACKED, ids=lambda kind: kind.name)
def test_numbers_are_those_of_llama_cpp(kind: Kind) -> None:
    convert = native(kind)
    assert convert is not None
    raw = blocks(kind)
    result = dequantize(torch.from_numpy(raw), kind).numpy()
    expected = np.empty_like(result)
    for row, values in zip(raw, expected, strict=True):
        convert(row.ctypes.data, values.ctypes.data, values.size)
    np.testing.assert_array_equal(result, expected)
