"""A GGUF file: the facts in its name, its parts, and its header. The header is read within hard limits and checked; it
can also be written."""

from __future__ import annotations

import os
import re
import stat
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from app.catalog.gguf import tensor_types
from app.core.errors import BadInput, Fact, Reason
from app.core.reasons import os_cause

_QUANT = re.compile(
    r"(?<![A-Za-z0-9])((?:UD-)?(?:I?Q\d(?:_K)?(?:_(?:XXS|XS|XL|NL|S|M|L|0|1|4_4|4_8|8_8))?"
    r"|TQ[12]_0|MXFP4(?:_MOE)?|BF16|FP?16|FP?32))(?![A-Za-z0-9])",
    re.IGNORECASE,
)
MAX_PARTS = 1000  # also the most that are read
_PART = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$", re.IGNORECASE)
# The best first: good answers for their size, and supported by every processor.
_LIKED = ("Q4_K_M", "MXFP4", "MXFP4_MOE", "UD-Q4_K_XL", "Q4_K_S", "Q4_0", "IQ4_XS", "Q5_K_M", "Q8_0")
NOT_TEXT = ("mmproj", "imatrix", "mtp-")  # files in a model's repository that are not models themselves


def quantization_of(file: str) -> str | None:
    """Return `Q4_K_M` for `Qwen3-8B-Q4_K_M.gguf`, or None if the name contains no quantization."""
    matches = _QUANT.findall(file.rsplit("/", 1)[-1])
    if not matches:
        return None
    return str(matches[-1]).upper().replace("FP16", "F16").replace("FP32", "F32")


def parts_of(file: str) -> int | None:
    """Return the number of parts if this file is one of several, else None."""
    match = _PART.search(file)
    return int(match[2]) if match and 1 < int(match[2]) <= MAX_PARTS else None


def part_names(file: str) -> tuple[str, ...]:
    """Return the names of all files of the model that this one belongs to, in order: all parts, or only itself."""
    match, n = _PART.search(file), parts_of(file)
    if match is None or n is None:
        return (file,)
    stem, ending = file[: match.start()], file[-len(".gguf") :]
    return tuple(f"{stem}-{number:05}-of-{n:05}{ending}" for number in range(1, n + 1))


def is_model(file: str) -> bool:
    """Return whether a file in a repository may be a chat model."""
    name = file.rsplit("/", 1)[-1].casefold()
    return name.endswith(".gguf") and not any(mark in name for mark in NOT_TEXT)


def recommended(files: Sequence[str]) -> str | None:
    """Return the file to try first. Among files of the same quantization, a single file is preferred."""
    ranked = sorted(files, key=lambda file: parts_of(file) is not None)
    whole = {quantization_of(file): file for file in reversed(ranked)}
    return next((whole[quant] for quant in _LIKED if quant in whole), None)


Scalar = int | float | bool | str


@dataclass(frozen=True, slots=True)
class Value:
    """One metadata entry. Its numbers are read from the header's bytes on demand."""

    kind: int  # of the items if it is an array
    is_array: bool
    count: int
    start: int  # of the whole entry with its key, in `Header.raw`
    data: int  # of the first item
    end: int


@dataclass(frozen=True, slots=True)
class Tensor:
    """The shape, number type and place of a tensor. `shape[0]` is the length of a row."""

    shape: tuple[int, ...]
    kind: int
    offset: int  # in the file
    n_bytes: int
    path: str = ""  # its file, if the model has several


@dataclass(frozen=True, slots=True)
class Header:
    """The checked contents of a GGUF file that precede its tensors. Created only by `read_header` and `header_in`."""

    path: str
    version: int
    raw: bytes
    entries: dict[str, Value]
    tensors: dict[str, Tensor]
    alignment: int
    file_bytes: int  # of all its files
    n_parts: int = 1

    def path_of(self, tensor: Tensor) -> str:
        """Return the file that contains a tensor."""
        return tensor.path or self.path

    def integer(self, key: str, least: int, most: int, default: int | None = None) -> int:
        """Return an integer within bounds. Without a default it must be present."""
        value = self.entries.get(key)
        if value is None:
            if default is None:
                raise BadInput("gguf_key_missing", path=self.path, key=key)
            return default
        number = self.items(key)[0] if not value.is_array else None
        if value.kind not in tensor_types.INTEGERS or not isinstance(number, int):
            raise self.odd(key, "not a whole number")
        if not least <= number <= most:
            raise self.odd(key, str(number))
        return number

    def integers(self, key: str, n: int, least: int, most: int) -> tuple[int, ...] | None:
        """Return one integer for each of `n` layers, from an array or a single number for all, or None if absent."""
        value = self.entries.get(key)
        if value is None:
            return None
        if not value.is_array:
            return (self.integer(key, least, most),) * n
        if value.kind not in tensor_types.INTEGERS or value.count != n:
            raise self.odd(key, f"{value.count} values for {n} layers")
        numbers = tuple(int(item) for item in self.items(key))
        for number in numbers:
            if not least <= number <= most:
                raise self.odd(key, str(number))
        return numbers

    def text(self, key: str) -> str:
        """Return the first 200 characters of a string, without control characters, or "" if it is absent."""
        value = self.entries.get(key)
        if value is None or value.is_array or value.kind != tensor_types.STRING:
            return ""
        return shown(str(self.items(key)[0]), 200)

    def items(self, key: str) -> tuple[Scalar, ...]:
        """Return all values of an entry. A single value becomes a tuple of one."""
        value = self.entries[key]
        if value.kind == tensor_types.STRING:
            return tuple(self._strings(value))
        letter, _ = tensor_types.SCALARS[value.kind]
        return struct.unpack_from(f"<{value.count}{letter}", self.raw, value.data)

    def _strings(self, value: Value) -> list[str]:
        strings, pos = [], value.data
        for _ in range(value.count):
            start = pos + 8
            pos = start + int.from_bytes(self.raw[pos:start], "little")
            strings.append(self.raw[start:pos].decode(errors="replace"))
        return strings

    def odd(self, key: str, problem: str) -> BadInput:
        """Return the error for an invalid entry."""
        return BadInput("gguf_odd", path=self.path, key=shown(key), found=problem)


def shown(foreign: str, most: int = 64) -> str:
    """Return a name from an untrusted file in a form that is safe to show in a sentence."""
    return "".join(c if c.isprintable() else "?" for c in foreign[:most])


def aligned(n: int, alignment: int) -> int:
    """Return the next multiple of `alignment`, which is a power of two."""
    return (n + alignment - 1) & -alignment


def header_bytes(
    alignment: int, entries: Sequence[bytes], tensors: Sequence[tuple[str, tuple[int, ...], int, int]]
) -> bytes:
    """Return the bytes that precede the tensors, without padding.

    Each of `entries` is made by `entry` or copied from a file. `tensors` are the name, shape, number type and bytes
    of each, in the order of the file.
    """
    counts = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(entries))
    listed, offset = [], 0
    for name, shape, kind, n_bytes in tensors:
        dimensions = struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
        listed.append(text(name.encode()) + dimensions + struct.pack("<IQ", kind, offset))
        offset = aligned(offset + n_bytes, alignment)
    return b"".join([counts, *entries, *listed])


def entry(key: str, kind: int, values: Sequence[object], is_list: bool = False) -> bytes:
    """Return one metadata entry: a value, or a list of them. Raises struct.error for values of another kind."""
    head = text(key.encode())
    if is_list:
        head += u32(tensor_types.ARRAY) + u32(kind) + len(values).to_bytes(8, "little")
    else:
        head += u32(kind)
    return head + b"".join(_values(kind, values))


def _values(kind: int, values: Iterable[object]) -> Iterable[bytes]:
    if kind == tensor_types.STRING:
        return (text(str(value).encode()) for value in values)
    letter, _ = tensor_types.SCALARS[kind]
    return (struct.pack(f"<{letter}", value) for value in values)


def u32_entry(key: str, number: int) -> bytes:
    return entry(key, tensor_types.U32, (number,))


def u32(number: int) -> bytes:
    return number.to_bytes(4, "little")


def text(data: bytes) -> bytes:
    return len(data).to_bytes(8, "little") + data


# SAFETY.md 7
MAX_TENSORS = 65_536
MAX_ENTRIES = 65_536
MAX_KEY_BYTES = 64 << 10
MAX_STRING_BYTES = 16 << 20
MAX_ITEMS = 16 << 20
MAX_HEADER_BYTES = 256 << 20
MAX_DIMENSIONS = 4
MAX_ALIGNMENT = 64 << 10  # a limit of this app: padding stays small compared to any tensor
MAX_TENSOR_NAME_BYTES = 63  # GGML_MAX_NAME without the terminator

FIRST_READ_BYTES = 64 << 10
DEFAULT_ALIGNMENT = 32
_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")


def part_paths(path: Path) -> tuple[Path, ...]:
    """Return all files of the model that this one belongs to, in order: all parts, or only itself."""
    return tuple(path.with_name(name) for name in part_names(path.name))


def read_header(path: Path) -> Header:
    """Read and check the header of a GGUF model, including those of all its parts.

    No tensor is read. Raises BadInput.
    """
    paths = part_paths(path)
    return _joined([_read_one(part_path) for part_path in paths]) if len(paths) > 1 else _read_one(path)


def header_in(data: bytes, path: Path) -> Header:
    """Read and check a header without tensors that this app made. `path` is for errors only. Raises BadInput."""
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
        if not stat.S_ISREG(path.stat().st_mode):  # reading a pipe would block
            raise BadInput("file_unreadable", path=str(path), why=Reason("not_a_file"))
        with path.open("rb") as file:
            return _Reader(file, path, os.fstat(file.fileno()).st_size).header()
    except FileNotFoundError:
        raise BadInput("file_missing", path=str(path)) from None
    except OSError as error:
        raise BadInput("file_unreadable", path=str(path), why=os_cause(error)) from None


@dataclass(frozen=True, slots=True)
class _Listed:
    """A tensor as listed in the header. Its offset is relative to the start of the data."""

    name: str
    shape: tuple[int, ...]
    kind: int
    offset: int


class _Reader:
    """A reader that reads a header from front to back, and no further than necessary."""

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
        else:  # includes arrays of arrays
            raise self._bad("gguf_type", name=shown(key), kind=kind)
        return Value(kind, is_array, count, start, data, self._pos)

    def _skip_strings(self, count: int) -> None:
        """Skip strings. This is the only hot loop, since a vocabulary has hundreds of thousands."""
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
        """Return the place of each tensor. Tensors must be contiguous and inside the file, as llama.cpp requires."""
        tensors: dict[str, Tensor] = {}
        expected = 0
        for entry in listed:
            if entry.name in tensors:
                raise self._bad("gguf_repeated", name=shown(entry.name))
            n_bytes = tensor_types.tensor_bytes(entry.kind, entry.shape)
            if not n_bytes:  # no values, or rows that are not whole blocks
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
        """Ensure that the next bytes are in the buffer.

        Sizes claimed by the file are checked before anything is read.
        """
        end = self._pos + n_bytes
        if end <= len(self._buffer):
            return
        if end > self._file_bytes:
            raise self._bad("gguf_truncated", size_bytes=self._file_bytes)
        self._bounded("size of the header in bytes", end, MAX_HEADER_BYTES)
        target = min(max(end, 2 * len(self._buffer), FIRST_READ_BYTES), MAX_HEADER_BYTES)
        self._buffer += self._file.read(target - len(self._buffer))
        if end > len(self._buffer):  # the file shrank in the meantime
            raise self._bad("gguf_truncated", size_bytes=len(self._buffer))

    def _bad(self, code: str, **facts: Fact) -> BadInput:
        return BadInput(code, path=self._path, **facts)
