"""The number types of packed tensors, and their conversion to float32 with the same results as llama.cpp."""

from __future__ import annotations

from dataclasses import dataclass

import gguf
import numpy as np
from numpy.typing import NDArray

from backends.contract import StageError

Kind = gguf.GGMLQuantizationType
PLAIN = (Kind.F32, Kind.F16, Kind.BF16)  # each value stands alone
PACKED = (
    Kind.Q4_0, Kind.Q4_1, Kind.Q5_0, Kind.Q5_1, Kind.Q8_0, Kind.Q2_K, Kind.Q3_K, Kind.Q4_K, Kind.Q5_K, Kind.Q6_K,
    Kind.MXFP4,
)  # fmt: skip
READABLE = frozenset((*PLAIN, *PACKED))


@dataclass(frozen=True, slots=True)
class PackedTensor:
    """A tensor in the file's format. Its bytes are memory-mapped, so only the parts in use are read.

    blocks: `[*shape[:-1], bytes of a row]`. shape: the dimensions in the order that NumPy uses.
    """

    name: str
    kind: Kind
    shape: tuple[int, ...]
    blocks: NDArray[np.uint8]

    def unpack(self) -> NDArray[np.float32]:
        """Return all values as float32 in the tensor's shape."""
        return unpack(self.blocks, self.kind)


def row_bytes(kind: Kind, width: int) -> int:
    """Return the size of a row of `width` values. Raises ValueError if they do not fill whole blocks."""
    values, n_bytes = gguf.GGML_QUANT_SIZES[kind]
    if width % values:
        raise ValueError(f"{width} values do not fill blocks of {values}")
    return int(width // values * n_bytes)


def unpack(blocks: NDArray[np.uint8], kind: Kind) -> NDArray[np.float32]:
    """Convert rows of blocks to float32. Raises StageError if the number type is not supported."""
    values: NDArray[np.float32]
    if kind not in READABLE:
        raise StageError(f"numbers of type {kind.name} are not read here", "tensor_kind", tensor="", kind=kind.name)
    if kind is Kind.F32:
        values = np.ascontiguousarray(blocks).view(np.float32)
    elif kind is Kind.F16:
        values = np.ascontiguousarray(blocks).view(np.float16).astype(np.float32)
    else:
        values = gguf.quants.dequantize(np.ascontiguousarray(blocks), kind)
    return values
