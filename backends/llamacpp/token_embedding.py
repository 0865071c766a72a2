"""The token embedding of a GGUF file. The host reads single rows of it and feeds them to the first stage."""

from __future__ import annotations

import ctypes
import mmap
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass

import gguf
import numpy as np
from numpy.typing import NDArray

from backends.contract import StageError
from backends.hidden_state_codec import Rows
from backends.llamacpp import binding

TENSOR = "token_embd.weight"
MAX_PARTS = 1000
_PART = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$", re.IGNORECASE)
ALIGNMENT_KEY, DEFAULT_ALIGNMENT = "general.alignment", 32
STRING, ARRAY = 8, 9
SCALAR_BYTES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
U32 = 4


class TokenEmbedding:
    """A token embedding matrix that stays on disk. Only the requested rows are read and converted to float32."""

    def __init__(self, path: str, width: int) -> None:
        """Open the file. Raises StageError if it contains no embedding of this width."""
        try:
            self._data, place = _opened(path)
            self._type = gguf.GGMLQuantizationType(place.kind)
        except (OSError, ValueError, struct.error, KeyError) as error:
            raise StageError(f"no embedding can be read from {path}: {error}") from None
        if place.shape[0] != width or len(place.shape) != 2:
            raise StageError(f"{path} has an embedding of {place.shape}, not of width {width}")
        block, block_bytes = gguf.GGML_QUANT_SIZES[self._type]
        row_bytes = self._row_bytes = width // block * block_bytes
        self.n_rows = place.shape[1]
        self._width, self._unpack = width, native(self._type)
        if place.start + row_bytes * self.n_rows > len(self._data):
            raise StageError(f"{path} ends within its embedding")
        self._rows: NDArray[np.uint8] = np.frombuffer(
            self._data, np.uint8, row_bytes * self.n_rows, place.start
        ).reshape(self.n_rows, row_bytes)
        self._start: int = self._rows.ctypes.data

    def rows(self, ids: NDArray[np.int32]) -> Rows:
        """Return the rows of these tokens: float32 `[len(ids), width]`. Raises StageError if a token has no row."""
        rows: list[int] = ids.tolist()
        if not all(0 <= token < self.n_rows for token in rows):
            raise StageError(f"token ids beyond the {self.n_rows} of the vocabulary")
        if self._unpack is None:
            return self._plain(self._rows[ids])
        values = np.empty((len(rows), self._width), dtype=np.float32)
        start, row_bytes = values.ctypes.data, 4 * self._width
        for row, token in enumerate(rows):
            source = self._start + token * self._row_bytes
            self._unpack(source, start + row * row_bytes, self._width)
        return values

    def _plain(self, raw: NDArray[np.uint8]) -> Rows:
        """Convert rows of a number type for which ggml exports no conversion function."""
        match self._type:
            case gguf.GGMLQuantizationType.F32:
                return raw.view(np.float32)
            case gguf.GGMLQuantizationType.F16:
                return raw.view(np.float16).astype(np.float32)
        return unpacked(raw, self._type)


def unpacked(raw: NDArray[np.uint8], kind: gguf.GGMLQuantizationType) -> Rows:
    """Convert quantized rows to float32, with the same results as llama.cpp. Raises StageError."""
    try:
        values: Rows = gguf.quants.dequantize(raw, kind)
    except NotImplementedError:
        raise StageError(f"embeddings of type {kind.name} cannot be read") from None
    return values


def native(kind: gguf.GGMLQuantizationType) -> Callable[[int, int, int], None] | None:
    """Return ggml's own function for converting a row, which takes 3 µs instead of 50 µs, or None if ggml exports none.

    Its arguments are the address of the row, the address of the float32 output, and the number of values.
    """
    name = "dequantize_row_" + kind.name.lower().replace("_k", "_K")
    pointer, count = ctypes.c_void_p, ctypes.c_int64
    try:
        dequantize: Callable[[int, int, int], None] = binding.ggml(name, None, pointer, pointer, count)
    except AttributeError:
        return None
    return dequantize


@dataclass(frozen=True, slots=True)
class _Place:
    shape: tuple[int, ...]
    kind: int
    start: int  # offset in the file


def _opened(path: str) -> tuple[mmap.mmap, _Place]:
    """Return the memory map of the file that contains a model's embedding, and the embedding's location in it.

    A model may be split into several files (`-00001-of-00003.gguf`).
    """
    part = _PART.search(path)
    other_parts = range(1, min(int(part[2]), MAX_PARTS) + 1) if part else ()
    paths = [path, *(f"{path[: part.start()]}-{n:05}-of-{part[2]}.gguf" for n in other_parts if part)]
    for candidate in dict.fromkeys(paths):
        with open(candidate, "rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        place = _find(data)
        if place is not None:
            return data, place
    raise ValueError(f"it has no {TENSOR}")


def _find(data: mmap.mmap) -> _Place | None:
    """Find the embedding's entry in a file's header.

    The gguf package's reader would take seconds with a large vocabulary.
    """
    magic, version, n_tensors, n_entries = struct.unpack_from("<4sIQQ", data)
    if magic != b"GGUF" or version not in (2, 3):
        raise ValueError("it is no GGUF")
    offset, alignment = 24, DEFAULT_ALIGNMENT
    for _ in range(n_entries):
        key, offset = _string(data, offset)
        (kind,) = struct.unpack_from("<I", data, offset)
        offset += 4
        if key == ALIGNMENT_KEY and kind == U32:
            (alignment,) = struct.unpack_from("<I", data, offset)
        offset = _skip(data, offset, kind)
    tensor = None
    for _ in range(n_tensors):
        name, offset = _string(data, offset)
        (n_dims,) = struct.unpack_from("<I", data, offset)
        shape = struct.unpack_from(f"<{n_dims}Q", data, offset + 4)
        kind, start = struct.unpack_from("<IQ", data, offset + 4 + 8 * n_dims)
        offset += 16 + 8 * n_dims
        if name == TENSOR:
            tensor = (shape, kind, start)
    if tensor is None:
        return None
    shape, kind, start = tensor
    return _Place(shape, kind, start + -(-offset // alignment) * alignment)


def _string(data: mmap.mmap, offset: int) -> tuple[str, int]:
    (size,) = struct.unpack_from("<Q", data, offset)
    end = offset + 8 + size
    if end > len(data):
        raise ValueError("its header is cut short")
    return data[offset + 8 : end].decode("utf-8", "replace"), end


def _skip(data: mmap.mmap, offset: int, kind: int) -> int:
    """Return the offset of the byte after a metadata value."""
    if kind == STRING:
        (size,) = struct.unpack_from("<Q", data, offset)
        return int(offset + 8 + size)
    if kind != ARRAY:
        return offset + SCALAR_BYTES[kind]
    item, count = struct.unpack_from("<IQ", data, offset)
    offset += 12
    if item != STRING:
        return int(offset + count * SCALAR_BYTES[item])
    for _ in range(count):
        (size,) = struct.unpack_from("<Q", data, offset)
        offset += 8 + size
    return offset
