"""The pre-check of GGUF files: a header is read within hard limits, or refused in one sentence."""

from __future__ import annotations

import os
import stat
import struct
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from app.catalog.gguf import tensor_types
from app.catalog.gguf.gguf_header import Header, Tensor, Value, aligned, shown
from app.catalog.gguf.gguf_names import MAX_PARTS, part_names
from app.core.errors import BadInput, Fact, Reason
from app.core.reasons import os_cause

# SAFETY.md 7
MAX_TENSORS = 65_536
MAX_ENTRIES = 65_536
MAX_KEY_BYTES = 64 << 10
MAX_STRING_BYTES = 16 << 20
MAX_ITEMS = 16 << 20
MAX_HEADER_BYTES = 256 << 20
MAX_DIMENSIONS = 4
MAX_ALIGNMENT = 64 << 10  # ours: padding stays small beside any tensor
MAX_TENSOR_NAME_BYTES = 63  # GGML_MAX_NAME less its end mark

FIRST_READ_BYTES = 64 << 10
DEFAULT_ALIGNMENT = 32
_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")


def part_paths(path: Path) -> tuple[Path, ...]:
    """The files of the model that this one belongs to, in order: itself alone, or all parts."""
    return tuple(path.with_name(name) for name in part_names(path.name))


def read_header(path: Path) -> Header:
    """Read and check the header of a GGUF model, of all its files. No tensor is read. Raises BadInput."""
    paths = part_paths(path)
    return _joined([_read_one(part_path) for part_path in paths]) if len(paths) > 1 else _read_one(path)


def header_in(data: bytes, path: Path) -> Header:
    """The same of a header without tensors that was made here. path: for sentences. Raises BadInput."""
    return _Reader(BytesIO(data), path, len(data)).header()


def _joined(parts: list[Header]) -> Header:
    """Join the headers of all parts: the first part's metadata, and the tensors of all."""
    first, tensors = parts[0], dict[str, Tensor]()
    for number, part in enumerate(parts):
        count = part.integer("split.count", 0, MAX_PARTS, 0)
        if count != len(parts) or part.integer("split.no", 0, MAX_PARTS, 0) != number:
            raise BadInput("gguf_part", path=part.path, part=number + 1, parts=len(parts))
        for name, tensor in part.tensors.items():
            if name in tensors:
                raise BadInput("gguf_repeated", path=part.path, name=shown(name))
            tensors[name] = replace(tensor, path=part.path)
    file_bytes = sum(part.file_bytes for part in parts)
    return replace(first, tensors=tensors, file_bytes=file_bytes, n_parts=len(parts))


def _read_one(path: Path) -> Header:
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would keep us waiting
            raise BadInput("file_unreadable", path=str(path), why=Reason("not_a_file"))
        with path.open("rb") as file:
            return _Reader(file, path, os.fstat(file.fileno()).st_size).header()
    except FileNotFoundError:
        raise BadInput("file_missing", path=str(path)) from None
    except OSError as error:
        raise BadInput("file_unreadable", path=str(path), why=os_cause(error)) from None


@dataclass(frozen=True, slots=True)
class _Listed:
    """A tensor as the header lists it, its offset counted from the start of the data."""

    name: str
    shape: tuple[int, ...]
    kind: int
    offset: int


class _Reader:
    """The reader of a header, front to back; it reads no further than it must."""

    def __init__(self, file: BinaryIO, path: Path, file_bytes: int) -> None:
        self._file = file
        self._path = str(path)
        self._file_bytes = file_bytes
        self._buffer = bytearray()
        self._pos = 0

    def header(self) -> Header:
        version = self._version()
        n_tensors = self._bounded("number of tensors", self._u64(), MAX_TENSORS)
        n_entries = self._bounded("number of metadata entries", self._u64(), MAX_ENTRIES)
        entries: dict[str, Value] = {}
        for _ in range(n_entries):
            start, key = self._pos, self._name(MAX_KEY_BYTES, "length of a key")
            if key in entries:
                raise self._bad("gguf_repeated", name=shown(key))
            entries[key] = self._value(start, key)
        alignment = self._alignment(entries)
        listed = [self._listed() for _ in range(n_tensors)]
        raw = bytes(memoryview(self._buffer)[: self._pos])
        data_start = aligned(self._pos, alignment)
        tensors = self._placed(listed, data_start, alignment)
        return Header(self._path, version, raw, entries, tensors, alignment, self._file_bytes)

    def _version(self) -> int:
        if self._file_bytes < 4 or self._take(4) != b"GGUF":
            raise self._bad("gguf_not")
        version = self._u32()
        if version not in (2, 3):
            if version & 0xFFFF == 0:
                raise self._bad("gguf_big_endian")
            raise self._bad("gguf_version", version=version)
        return version

    def _value(self, start: int, key: str) -> Value:
        kind, is_array, count = self._u32(), False, 1
        if kind == tensor_types.ARRAY:
            kind, is_array = self._u32(), True
            count = self._bounded(f"length of {shown(key)}", self._u64(), MAX_ITEMS)
        data = self._pos
        if kind == tensor_types.STRING:
            self._skip_strings(count)
        elif kind in tensor_types.SCALARS:
            self._skip(count * tensor_types.SCALARS[kind][1])
        else:  # arrays of arrays come here too
            raise self._bad("gguf_type", name=shown(key), kind=kind)
        return Value(kind, is_array, count, start, data, self._pos)

    def _skip_strings(self, count: int) -> None:
        """The one hot loop: a vocabulary has hundreds of thousands of strings."""
        buffer, length_at, pos, limit = self._buffer, _U64.unpack_from, self._pos, MAX_STRING_BYTES
        for _ in range(count):
            if pos + 8 > len(buffer):
                self._pos = pos
                self._need(8)
            n_bytes: int = length_at(buffer, pos)[0]
            if n_bytes > limit:
                self._bounded("length of a text", n_bytes, limit)
            pos += 8 + n_bytes
        self._pos = pos
        self._need(0)

    def _listed(self) -> _Listed:
        name = self._name(MAX_TENSOR_NAME_BYTES, "length of a tensor's name")
        n_dimensions = self._u32()
        if not 1 <= n_dimensions <= MAX_DIMENSIONS:
            raise self._bad("gguf_dimensions", name=shown(name), found=n_dimensions)
        shape = tuple(self._u64() for _ in range(n_dimensions))
        kind, offset = self._u32(), self._u64()
        if kind not in tensor_types.TENSORS:
            raise self._bad("gguf_type", name=shown(name), kind=kind)
        return _Listed(name, shape, kind, offset)

    def _placed(self, listed: list[_Listed], start: int, alignment: int) -> dict[str, Tensor]:
        """Return the place of each tensor: one after another and inside the file, as llama.cpp wants it."""
        tensors: dict[str, Tensor] = {}
        expected = 0
        for entry in listed:
            if entry.name in tensors:
                raise self._bad("gguf_repeated", name=shown(entry.name))
            n_bytes = tensor_types.tensor_bytes(entry.kind, entry.shape)
            if not n_bytes:  # zero values, or rows of broken blocks
                raise self._bad("gguf_shape", name=shown(entry.name), shape=str(entry.shape))
            if start + entry.offset + n_bytes > self._file_bytes:
                raise self._bad("gguf_truncated", size_bytes=self._file_bytes)
            if entry.offset != expected:
                raise self._bad("gguf_offset", name=shown(entry.name))
            tensors[entry.name] = Tensor(entry.shape, entry.kind, start + entry.offset, n_bytes)
            expected = aligned(entry.offset + n_bytes, alignment)
        return tensors

    def _alignment(self, entries: dict[str, Value]) -> int:
        value = entries.get("general.alignment")
        if value is None:
            return DEFAULT_ALIGNMENT
        alignment = 0
        if value.kind == tensor_types.U32 and not value.is_array:
            alignment = _U32.unpack_from(self._buffer, value.data)[0]
        if not 1 <= alignment <= MAX_ALIGNMENT or alignment & (alignment - 1):
            raise self._bad("gguf_alignment")
        return alignment

    def _name(self, most: int, limit_name: str) -> str:
        n_bytes = self._bounded(limit_name, self._u64(), most)
        try:
            name = self._take(n_bytes).decode()
        except UnicodeDecodeError:
            raise self._bad("gguf_name") from None
        if not name:
            raise self._bad("gguf_name")
        return name

    def _bounded(self, limit_name: str, number: int, most: int) -> int:
        if number > most:
            raise self._bad("gguf_limit", what=limit_name, found=number, most=most)
        return number

    def _u32(self) -> int:
        return int.from_bytes(self._take(4), "little")

    def _u64(self) -> int:
        return int.from_bytes(self._take(8), "little")

    def _take(self, n_bytes: int) -> bytes:
        self._need(n_bytes)
        self._pos += n_bytes
        return bytes(self._buffer[self._pos - n_bytes : self._pos])

    def _skip(self, n_bytes: int) -> None:
        self._need(n_bytes)
        self._pos += n_bytes

    def _need(self, n_bytes: int) -> None:
        """Make sure that the next bytes are in the buffer. Sizes claimed by the file are checked before anything is
        read."""
        end = self._pos + n_bytes
        if end <= len(self._buffer):
            return
        if end > self._file_bytes:
            raise self._bad("gguf_truncated", size_bytes=self._file_bytes)
        self._bounded("size of the header in bytes", end, MAX_HEADER_BYTES)
        target = min(max(end, 2 * len(self._buffer), FIRST_READ_BYTES), MAX_HEADER_BYTES)
        self._buffer += self._file.read(target - len(self._buffer))
        if end > len(self._buffer):  # the file shrank meanwhile
            raise self._bad("gguf_truncated", size_bytes=len(self._buffer))

    def _bad(self, code: str, **facts: Fact) -> BadInput:
        return BadInput(code, path=self._path, **facts)
