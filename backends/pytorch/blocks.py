"""Packed blocks converted to float32 by torch, on whatever device holds them.

Each function takes blocks as uint8 `[n, bytes of a block]` and returns float32 `[n, values of a block]`, with the same
bits as llama.cpp: the same operations in the same order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gguf
import torch

from backends.gguf_weights.block_types import PLAIN, Kind

Blocks = Any  # torch.Tensor; the checked environment has no torch
Values = Any

K_BLOCK = 256  # values of a K-quant's block


def dequantize(blocks: Blocks, kind: Kind) -> Values:
    """Convert rows `[..., bytes of a row]` to float32 `[..., values of a row]`."""
    if kind in PLAIN:
        plain = {Kind.F32: torch.float32, Kind.F16: torch.float16, Kind.BF16: torch.bfloat16}
        return blocks.contiguous().view(plain[kind]).float()
    values, n_bytes = gguf.GGML_QUANT_SIZES[kind]
    n_blocks = blocks.shape[-1] // n_bytes
    numbers = UNPACK[kind](blocks.reshape(-1, n_bytes))
    return numbers.reshape(*blocks.shape[:-1], n_blocks * values)


def _f16(blocks: Blocks, first: int) -> Values:
    """Return the half-precision number at this byte of each block, as float32 `[n, 1]`."""
    return blocks[:, first : first + 2].contiguous().view(torch.float16).float()


def _nibbles(packed: Blocks) -> Values:
    """Return the low half of each byte, then the high half of each."""
    return torch.cat([packed & 0x0F, packed >> 4], dim=-1)


def _fifth_bits(blocks: Blocks, first: int) -> Values:
    """Return 32 bits, which begin at this byte of each block, as values 0 and 16."""
    return _bits(blocks[:, first : first + 4], 1).reshape(-1, 32) << 4


def _bits(packed: Blocks, width: int) -> Values:
    """Return the numbers of `width` bits in each byte, the lowest first: `[n, bytes, 8 / width]`."""
    shifts = torch.arange(0, 8, width, dtype=torch.uint8, device=packed.device)
    return (packed.unsqueeze(-1) >> shifts) & ((1 << width) - 1)


def _q4_0(blocks: Blocks) -> Values:
    return _f16(blocks, 0) * (_nibbles(blocks[:, 2:]).to(torch.int8) - 8).float()


def _q4_1(blocks: Blocks) -> Values:
    return _f16(blocks, 0) * _nibbles(blocks[:, 4:]).float() + _f16(blocks, 2)


def _q5_0(blocks: Blocks) -> Values:
    numbers = _nibbles(blocks[:, 6:]) | _fifth_bits(blocks, 2)
    return _f16(blocks, 0) * (numbers.to(torch.int8) - 16).float()


def _q5_1(blocks: Blocks) -> Values:
    numbers = _nibbles(blocks[:, 8:]) | _fifth_bits(blocks, 4)
    return _f16(blocks, 0) * numbers.float() + _f16(blocks, 2)


def _q8_0(blocks: Blocks) -> Values:
    return blocks[:, 2:].contiguous().view(torch.int8).float() * _f16(blocks, 0)


def _q2_k(blocks: Blocks) -> Values:
    scales, quants = blocks[:, :16], blocks[:, 16:80]
    scale, least = _f16(blocks, 80), _f16(blocks, 82)
    steps = (scale * (scales & 0x0F).float()).unsqueeze(-1)
    offsets = (least * (scales >> 4).float()).unsqueeze(-1)
    numbers = _bits(quants.reshape(-1, 2, 32), 2).permute(0, 1, 3, 2).reshape(-1, 16, 16).float()
    return steps * numbers - offsets


def _q3_k(blocks: Blocks) -> Values:
    high, quants, packed = blocks[:, :32], blocks[:, 32:96], blocks[:, 96:108]
    low = _nibbles(packed[:, :8])
    upper = _bits(packed[:, 8:12], 2).permute(0, 2, 1).reshape(-1, 16)
    scales = (low | (upper << 4)).to(torch.int8) - 32
    steps = (_f16(blocks, 108) * scales.float()).unsqueeze(-1)
    numbers = _bits(quants.reshape(-1, 2, 32), 2).permute(0, 1, 3, 2).reshape(-1, 16, 16).to(torch.int8)
    third = _bits(high, 1).permute(0, 2, 1).reshape(-1, 16, 16).to(torch.int8)
    return steps * (numbers - ((1 - third) << 2)).float()


def _six_bits(packed: Blocks) -> tuple[Values, Values]:
    """Return the eight scales and the eight minima of a block of Q4_K or Q5_K, 6 bits each, from its 12 bytes."""
    first, second, rest = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    scales = torch.cat([first & 0x3F, (rest & 0x0F) | ((first >> 2) & 0x30)], dim=-1)
    minima = torch.cat([second & 0x3F, (rest >> 4) | ((second >> 2) & 0x30)], dim=-1)
    return scales.float(), minima.float()


def _pairs(quants: Blocks) -> Values:
    """Return `[n, 8, 32]`: the low halves of each 32 bytes, then their high halves."""
    groups = quants.reshape(-1, 4, 1, 32)
    return torch.cat([groups & 0x0F, groups >> 4], dim=2).reshape(-1, 8, 32)


def _q4_k(blocks: Blocks) -> Values:
    scales, minima = _six_bits(blocks[:, 4:16])
    steps = (_f16(blocks, 0) * scales).unsqueeze(-1)
    offsets = (_f16(blocks, 2) * minima).unsqueeze(-1)
    return steps * _pairs(blocks[:, 16:]).float() - offsets


def _q5_k(blocks: Blocks) -> Values:
    scales, minima = _six_bits(blocks[:, 4:16])
    steps = (_f16(blocks, 0) * scales).unsqueeze(-1)
    offsets = (_f16(blocks, 2) * minima).unsqueeze(-1)
    fifth = _bits(blocks[:, 16:48], 1).permute(0, 2, 1) << 4
    return steps * (_pairs(blocks[:, 48:]) | fifth).float() - offsets


def _q6_k(blocks: Blocks) -> Values:
    low = blocks[:, :128].reshape(-1, 2, 1, 64)
    low = torch.cat([low & 0x0F, low >> 4], dim=2).reshape(-1, 8, 32)
    high = _bits(blocks[:, 128:192].reshape(-1, 2, 32), 2).permute(0, 1, 3, 2).reshape(-1, 8, 32)
    numbers = (low | (high << 4)).to(torch.int8) - 32
    scales = blocks[:, 192:208].contiguous().view(torch.int8).float()
    steps = (_f16(blocks, 208) * scales).unsqueeze(-1)
    return steps * numbers.reshape(-1, 16, 16).float()


FP4 = (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)  # twice the value of each code


def _mxfp4(blocks: Blocks) -> Values:
    exponents = blocks[:, :1].to(torch.int32)
    # half of 2 ** (exponent - 127), whose two smallest values are subnormal
    bits = torch.where(exponents < 2, 0x00200000 << exponents, (exponents - 1) << 23)
    codes = torch.tensor(FP4, dtype=torch.float32, device=blocks.device)
    return bits.to(torch.int32).view(torch.float32) * codes[_nibbles(blocks[:, 1:]).int()]


UNPACK: dict[Kind, Callable[[Blocks], Values]] = {
    Kind.Q4_0: _q4_0,
    Kind.Q4_1: _q4_1,
    Kind.Q5_0: _q5_0,
    Kind.Q5_1: _q5_1,
    Kind.Q8_0: _q8_0,
    Kind.Q2_K: _q2_k,
    Kind.Q3_K: _q3_k,
    Kind.Q4_K: _q4_k,
    Kind.Q5_K: _q5_k,
    Kind.Q6_K: _q6_k,
    Kind.MXFP4: _mxfp4,
}
