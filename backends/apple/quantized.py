"""The conversion of GGUF's packed blocks to the format that MLX multiplies: the same numbers, with reordered bits.

MLX stores a scale and a bias for each group of 32 numbers in a row. Types with blocks or sub-blocks of 32 numbers are
converted exactly, with float32 scales; half-precision scales would cause errors of 1e-2. Q2_K, Q3_K and Q6_K have
sub-blocks of 16, which MLX does not support, so these types are unpacked instead (backends/apple/weights.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import gguf
import numpy as np
from numpy.typing import NDArray

from backends.gguf_weights.block_types import Kind

GROUP = 32
WORD = np.dtype("<u4")
AFFINE, MXFP4 = "affine", "mxfp4"
MAX_MXFP4_EXPONENT = 252  # larger ones make infinite numbers in MLX

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Quantized:
    """Rows for `mlx.core.quantized_matmul`.

    words: `[..., bits * values / 32]`. scales: `[..., groups]`, as float32 or as MXFP4's exponents. biases: none for
    MXFP4.
    """

    words: NDArray[np.uint32]
    scales: NDArray[np.float32] | Bytes
    biases: Floats | None
    bits: int

    @property
    def mode(self) -> str:
        return MXFP4 if self.biases is None else AFFINE


def is_exact(kind: Kind) -> bool:
    """Return whether MLX can multiply by quantized matrices of this type without changing their values."""
    return kind in _CONVERT or kind is Kind.MXFP4


def quantized(blocks: Bytes, kind: Kind) -> Quantized:
    """Convert rows of blocks `[..., bytes of a row]` of a type that `is_exact`."""
    _, n_bytes = gguf.GGML_QUANT_SIZES[kind]
    shape = blocks.shape[:-1]
    each = np.ascontiguousarray(blocks).reshape(-1, n_bytes)
    if kind is Kind.MXFP4:
        words = _packed(_nibbles(each[:, 1:]), 4)
        return Quantized(words.reshape(*shape, -1), each[:, :1].reshape(*shape, -1), None, 4)
    bits, convert = _CONVERT[kind]
    numbers, scales, biases = convert(each)
    words = _packed(numbers.reshape(-1, GROUP), bits)
    return Quantized(words.reshape(*shape, -1), scales.reshape(*shape, -1), biases.reshape(*shape, -1), bits)


def _packed(numbers: Bytes, bits: int) -> NDArray[np.uint32]:
    """Pack numbers `[n, 32]` of `bits` bits into 32-bit words, lowest bits first."""
    if bits == 8:
        packed = np.ascontiguousarray(numbers)
    elif bits == 4:
        packed = numbers[:, 0::2] | (numbers[:, 1::2] * np.uint8(16))
    else:
        eights = numbers.reshape(-1, 8).astype("<u8") << (np.arange(8, dtype="<u8") * np.uint64(bits))
        together = np.bitwise_or.reduce(eights, axis=1)
        packed = np.ascontiguousarray(together.view(np.uint8).reshape(-1, 8)[:, :bits]).reshape(len(numbers), -1)
    return packed.view(WORD)


def _f16(blocks: Bytes, first: int) -> Floats:
    """Return the half-precision number at byte `first` of each block: `[n, 1]`."""
    return np.ascontiguousarray(blocks[:, first : first + 2]).view("<f2").astype(np.float32)


def _nibbles(packed: Bytes) -> Bytes:
    """Return the low 4 bits of all bytes, followed by the high 4 bits of all bytes."""
    return np.concatenate([packed & 0x0F, packed >> 4], axis=-1)


def _fifth_bits(blocks: Bytes, first: int) -> Bytes:
    """Return the 32 bits that start at byte `first` of each block, each as 0 or 16."""
    return np.unpackbits(blocks[:, first : first + 4], axis=1, bitorder="little") * np.uint8(16)


Affine = tuple[Bytes, Floats, Floats]  # unsigned numbers, scales and biases


def _q4_0(blocks: Bytes) -> Affine:
    scale = _f16(blocks, 0)
    return _nibbles(blocks[:, 2:]), scale, -8 * scale


def _q4_1(blocks: Bytes) -> Affine:
    return _nibbles(blocks[:, 4:]), _f16(blocks, 0), _f16(blocks, 2)


def _q5_0(blocks: Bytes) -> Affine:
    scale = _f16(blocks, 0)
    return _nibbles(blocks[:, 6:]) | _fifth_bits(blocks, 2), scale, -16 * scale


def _q5_1(blocks: Bytes) -> Affine:
    return _nibbles(blocks[:, 8:]) | _fifth_bits(blocks, 4), _f16(blocks, 0), _f16(blocks, 2)


def _q8_0(blocks: Bytes) -> Affine:
    scale = _f16(blocks, 0)
    return blocks[:, 2:] ^ np.uint8(0x80), scale, -128 * scale  # the flipped bit adds 128


def _scales(blocks: Bytes) -> tuple[Floats, Floats]:
    """Return the eight scales and eight biases of each Q4_K or Q5_K block, which packs them as 6 bits each."""
    first, second, rest = blocks[:, 4:8], blocks[:, 8:12], blocks[:, 12:16]
    scales = np.concatenate([first & 0x3F, (rest & 0x0F) | ((first >> 2) & 0x30)], axis=-1)
    minima = np.concatenate([second & 0x3F, (rest >> 4) | ((second >> 2) & 0x30)], axis=-1)
    return _f16(blocks, 0) * scales, -(_f16(blocks, 2) * minima)


def _pairs(quants: Bytes) -> Bytes:
    """Return `[n, 8, 32]`: for every 32 bytes, their low 4 bits, then their high 4 bits."""
    groups = quants.reshape(-1, 4, 1, 32)
    return np.concatenate([groups & 0x0F, groups >> 4], axis=2).reshape(-1, 8, 32)


def _q4_k(blocks: Bytes) -> Affine:
    return _pairs(blocks[:, 16:]), *_scales(blocks)


def _q5_k(blocks: Bytes) -> Affine:
    fifth = np.unpackbits(blocks[:, 16:48, None], axis=2, bitorder="little").transpose(0, 2, 1) * np.uint8(16)
    return _pairs(blocks[:, 48:]) | fifth, *_scales(blocks)


_CONVERT: dict[Kind, tuple[int, Callable[[Bytes], Affine]]] = {
    Kind.Q4_0: (4, _q4_0),
    Kind.Q4_1: (4, _q4_1),
    Kind.Q5_0: (5, _q5_0),
    Kind.Q5_1: (5, _q5_1),
    Kind.Q8_0: (8, _q8_0),
    Kind.Q4_K: (4, _q4_k),
    Kind.Q5_K: (5, _q5_k),
}
