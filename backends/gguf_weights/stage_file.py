"""A memory-mapped GGUF file with validated metadata and tensors, which are returned as packed blocks.

Files come from strangers. Every size in a file is checked against the file before it is used, and anything missing or
contradictory raises a StageError with a translatable sentence.
"""

from __future__ import annotations

import mmap
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from backends.contract import StageError
from backends.gguf_weights.block_types import READABLE, Kind, PackedTensor, row_bytes

MAX_PARTS = 1000
MAX_TENSORS = MAX_ENTRIES = 65_536
MAX_DIMENSIONS = 4
MAX_NUMBERS = 4096  # of a list that is kept; longer ones are those of vocabularies
DEFAULT_ALIGNMENT, MAX_ALIGNMENT = 32, 1 << 16
_PART = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$", re.IGNORECASE)
_LAYER = re.compile(r"blk\.(\d{1,6})\.")
_MAY_REMAIN = (
    "token_embd.weight", "output.weight", "output_norm.weight", "token_embd_norm.weight", "rope_freqs.weight",
    "rope_factors_long.weight", "rope_factors_short.weight",
)  # fmt: skip
_STRING, _ARRAY = 8, 9
_LETTERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}

Scalar = int | float | bool | str
Value = Scalar | tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class _Place:
    kind: int
    shape: tuple[int, ...]
    start: int
    data: mmap.mmap


class StageFile:
    """The metadata and tensors of a stage file, or of a whole model in one or more files."""

    def __init__(self, path: str) -> None:
        """Map the file and read its header. Raises StageError."""
        self.path = path
        self._values: dict[str, Value] = {}
        self._lengths: dict[str, int] = {}  # of lists, whether they were kept or not
        self._places: dict[str, _Place] = {}
        self._used: set[str] = set()
        try:
            for part in _part_paths(path):
                self._read(part)
        except (OSError, ValueError, struct.error, KeyError, OverflowError) as error:
            raise StageError(f"{path} cannot be read: {error}", "weights_unreadable", why=str(error)) from None
        self.architecture = str(self._values.get("general.architecture", ""))

    def integer(self, name: str, default: int | None = None) -> int:
        """Return the metadata integer ARCHITECTURE.`name`. Raises StageError if it is missing or invalid."""
        value = self._values.get(f"{self.architecture}.{name}", default)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self._odd(name)
        return value

    def number(self, name: str, default: float | None = None) -> float:
        """Return the metadata number ARCHITECTURE.`name`. Raises StageError if it is missing, invalid or not finite."""
        value = self._values.get(f"{self.architecture}.{name}", default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
            raise self._odd(name)
        return float(value)

    def text(self, name: str, default: str = "") -> str:
        value = self._values.get(f"{self.architecture}.{name}", default)
        if not isinstance(value, str):
            raise self._odd(name)
        return value

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return the metadata flag ARCHITECTURE.`name`, or `default` if it is missing."""
        return bool(self._values.get(f"{self.architecture}.{name}", default))

    def per_layer(self, name: str, n_layers: int, default: int | None = None) -> tuple[int, ...]:
        """Return an integer for each layer. The file states either one for all layers or a list. Raises StageError."""
        value = self._values.get(f"{self.architecture}.{name}", default)
        if not isinstance(value, tuple):
            return (self.integer(name, default),) * n_layers
        if len(value) < n_layers or not all(isinstance(item, int) and item >= 0 for item in value):
            raise self._odd(name)
        return tuple(int(item) for item in value[:n_layers])

    def has(self, name: str) -> bool:
        """Return whether the metadata has the key ARCHITECTURE.`name`."""
        return f"{self.architecture}.{name}" in self._values

    def n_listed(self, key: str) -> int:
        """Return the length of the metadata list `key`, or 0 if it is missing. key: including the architecture."""
        return self._lengths.get(key, 0)

    def flags(self, name: str, n_layers: int) -> tuple[bool, ...] | None:
        """Return a flag for each layer, or None if the file has no such list. Raises StageError."""
        value = self._values.get(f"{self.architecture}.{name}")
        if not isinstance(value, tuple):
            return None
        if len(value) < n_layers or any(isinstance(item, str) for item in value):
            raise self._odd(name)
        return tuple(bool(item) for item in value[:n_layers])

    def has_tensor(self, name: str) -> bool:
        return name in self._places

    def tensor(self, name: str, shape: tuple[int, ...]) -> PackedTensor:
        """Return a tensor. Raises StageError if it is missing, or if its shape or number type is unsuitable.

        shape: the expected dimensions in the order that NumPy uses; -1 allows any length.
        """
        place = self._places.get(name)
        self._used.add(name)
        if place is None:
            raise StageError(f"{self.path} has no tensor {name}", "tensor_missing", tensor=name)
        own = tuple(reversed(place.shape))
        if len(own) != len(shape) or any(want not in (-1, have) for want, have in zip(shape, own, strict=True)):
            is_so, should_be = " x ".join(map(str, own)), " x ".join("any" if n < 0 else str(n) for n in shape)
            words = f"{name} is {is_so}, not {should_be}"
            raise StageError(words, "tensor_shape", tensor=name, found=is_so, wanted=should_be)
        try:
            kind = Kind(place.kind)
        except ValueError:
            kind = None
        if kind not in READABLE or kind is None:
            label = kind.name if kind else str(place.kind)
            raise StageError(f"{name} has numbers of type {label}", "tensor_kind", tensor=name, kind=label)
        try:
            n_bytes = row_bytes(kind, own[-1])
            n_rows = prod(own[:-1])
            blocks = np.frombuffer(place.data, np.uint8, n_rows * n_bytes, place.start)
        except (ValueError, OverflowError) as error:
            raise StageError(f"{name}: {error}", "weights_unreadable", why=f"{name}: {error}") from None
        return PackedTensor(name, kind, own, blocks.reshape(*own[:-1], n_bytes))

    def require_all_used(self, n_layers: int) -> None:
        """Raise StageError if the engine did not request some tensor, because its results would be silently wrong.

        Embedding and output tensors, which another stage may use, and layers from `n_layers` on, which only predict
        further tokens, may remain unused.
        """
        for name in self._places.keys() - self._used:
            layer = _LAYER.match(name)
            if name not in _MAY_REMAIN and not (layer and int(layer[1]) >= n_layers):
                raise StageError(f"{self.path} has an unknown tensor {name}", "tensor_unknown", tensor=name[:64])

    def _odd(self, name: str) -> StageError:
        key = f"{self.architecture}.{name}"
        return StageError(f"{self.path} has no usable {key}", "weights_metadata", key=key)

    def _read(self, path: str) -> None:
        with open(path, "rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        magic, version, n_tensors, n_entries = struct.unpack_from("<4sIQQ", data)
        if magic != b"GGUF" or version not in (2, 3) or n_tensors > MAX_TENSORS or n_entries > MAX_ENTRIES:
            raise ValueError("it is no GGUF")
        offset, values = 24, dict[str, Value]()
        for _ in range(n_entries):
            key, offset = _string(data, offset)
            offset = self._entry(data, offset, key, values)
        alignment = values.get("general.alignment", DEFAULT_ALIGNMENT)
        if not isinstance(alignment, int) or not 0 < alignment <= MAX_ALIGNMENT:
            raise ValueError(f"its alignment is {alignment}")
        self._values = {**values, **self._values}  # the first part's values take precedence
        listed = []
        for _ in range(n_tensors):
            name, offset = _string(data, offset)
            (n_dims,) = struct.unpack_from("<I", data, offset)
            if not 0 < n_dims <= MAX_DIMENSIONS:
                raise ValueError(f"{name[:64]} has {n_dims} dimensions")
            shape = struct.unpack_from(f"<{n_dims}Q", data, offset + 4)
            kind, start = struct.unpack_from("<IQ", data, offset + 4 + 8 * n_dims)
            offset += 16 + 8 * n_dims
            listed.append((name, kind, shape, start))
        begin = -(-offset // alignment) * alignment
        for name, kind, shape, start in listed:
            if not all(0 < length <= len(data) for length in shape) or begin + start > len(data):
                raise ValueError(f"{name[:64]} is not within the file")
            self._places[name] = _Place(kind, shape, begin + start, data)

    def _entry(self, data: mmap.mmap, offset: int, key: str, values: dict[str, Value]) -> int:
        """Read a value, store it in `values` unless it is a list of strings or too long, and return its end offset."""
        (kind,) = struct.unpack_from("<I", data, offset)
        offset += 4
        if kind == _STRING:
            values[key], offset = _string(data, offset)
            return offset
        if kind != _ARRAY:
            letter = _LETTERS[kind]
            (values[key],) = struct.unpack_from(f"<{letter}", data, offset)
            return offset + struct.calcsize(letter)
        kind, count = struct.unpack_from("<IQ", data, offset)
        offset += 12
        self._lengths[key] = count
        if kind == _STRING:
            for _ in range(count):
                (size,) = struct.unpack_from("<Q", data, offset)
                offset += 8 + size
            return int(offset)
        letter = _LETTERS[kind]
        if count <= MAX_NUMBERS:
            values[key] = struct.unpack_from(f"<{count}{letter}", data, offset)
        end = offset + count * struct.calcsize(letter)
        if end > len(data):
            raise ValueError("its header is cut short")
        return int(end)


def _part_paths(path: str) -> Iterator[str]:
    part = _PART.search(path)
    if part is None:
        yield path
        return
    for number in range(1, min(int(part[2]), MAX_PARTS) + 1):
        yield f"{path[: part.start()]}-{number:05}-of-{part[2]}.gguf"


def _string(data: mmap.mmap, offset: int) -> tuple[str, int]:
    (size,) = struct.unpack_from("<Q", data, offset)
    end = offset + 8 + size
    if end > len(data):
        raise ValueError("its header is cut short")
    return data[offset + 8 : end].decode("utf-8", "replace"), end
