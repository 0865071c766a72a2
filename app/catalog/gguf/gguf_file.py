"""Reads and writes the headers of GGUF files, and parses the names of files and of their parts.

Headers come from untrusted files, so every size in them is checked against a hard limit before it is used.
"""

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
MAX_PARTS = 1000  # of one model
_PART = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$", re.IGNORECASE)
# Best first: quantizations with good answers for their size that every processor supports.
_LIKED = ("Q4_K_M", "MXFP4", "MXFP4_MOE", "UD-Q4_K_XL", "Q4_K_S", "Q4_0", "IQ4_XS", "Q5_K_M", "Q8_0")
PROJECTOR = "mmproj"
NOT_TEXT = (PROJECTOR, "imatrix", "mtp-")  # files in a model's repository that are not models themselves


def quantization_of(file: str) -> str | None:
    """Return the quantization in a file name (`Q4_K_M` for `Qwen3-8B-Q4_K_M.gguf`), or None if it contains none."""
    matches = _QUANT.findall(file.rsplit("/", 1)[-1])
    if not matches:
        return None
    return str(matches[-1]).upper().replace("FP16", "F16").replace("FP32", "F32")


def parts_of(file: str) -> int | None:
    """Return the number of parts of a split model, from the file name of any part. Return None for any other file."""
    match = _PART.search(file)
    return int(match[2]) if match and 1 < int(match[2]) <= MAX_PARTS else None


def part_names(file: str) -> tuple[str, ...]:
    """Return the file names of all parts of the model that this file belongs to, in order. Most models have one
    part."""
    match, n = _PART.search(file), parts_of(file)
    if match is None or n is None:
        return (file,)
    stem, ending = file[: match.start()], file[-len(".gguf") :]
    return tuple(f"{stem}-{number:05}-of-{n:05}{ending}" for number in range(1, n + 1))


def is_model(file: str) -> bool:
    """Return whether a file in a repository is a language model, judging by its name."""
    name = file.rsplit("/", 1)[-1].casefold()
    return name.endswith(".gguf") and not any(mark in name for mark in NOT_TEXT)


def is_projector_name(file: str) -> bool:
    """Return whether a file in a repository is a projector, which lets a model see, judging by its name."""
    name = file.rsplit("/", 1)[-1].casefold()
    return name.endswith(".gguf") and PROJECTOR in name


def recommended_file(files: Sequence[str]) -> str | None:
    """Return the file to recommend, based on its quantization, or None. Unsplit models are preferred."""
    ranked = sorted(files, key=lambda file: parts_of(file) is not None)
    whole = {quantization_of(file): file for file in reversed(ranked)}
    return next((whole[quant] for quant in _LIKED if quant in whole), None)


Scalar = int | float | bool | str


@dataclass(frozen=True, slots=True)
class Value:
    """The type and location of a metadata entry. Its values are decoded from the header's bytes on demand."""

    kind: int  # type code; that of the items if it is an array
    is_array: bool
    count: int
    start: int  # offset of the entry, including its key, in `Header.raw`
    data: int  # offset of the first value
    end: int


@dataclass(frozen=True, slots=True)
class Tensor:
    """The shape, number type and location of a tensor. `shape[0]` is the length of a row."""

    shape: tuple[int, ...]
    kind: int
    offset: int  # from the start of the file
    n_bytes: int
    path: str = ""  # the part that contains it, if the model is split


@dataclass(frozen=True, slots=True)
class Header:
    """The checked header of a GGUF file: everything before the tensor data. Created only by `read_header` and
    `header_in`."""

    path: str
    version: int
    raw: bytes
    entries: dict[str, Value]
    tensors: dict[str, Tensor]
    alignment: int
    file_bytes: int  # of all parts together
    n_parts: int = 1

    def path_of(self, tensor: Tensor) -> str:
        """Return the file that contains a tensor."""
        return tensor.path or self.path

    def integer(self, key: str, least: int, most: int, default: int | None = None) -> int:
        """Return an integer in the range `least` to `most`. If there is no default, the entry must exist. Raises
        BadInput."""
        value = self.entries.get(key)
        if value is None:
            if default is None:
                raise BadInput("gguf_key_missing", path=self.path, key=key)
            return default
        number = self.items(key)[0] if not value.is_array else None
        if value.kind not in tensor_types.INTEGERS or not isinstance(number, int):
            raise self.invalid(key, Reason("whole_number_missing"))
        if not least <= number <= most:
            raise self.invalid(key, str(number))
        return number

    def integers(self, key: str, n: int, least: int, most: int) -> tuple[int, ...] | None:
        """Return one integer for each of `n` layers, or None if the entry is absent. A single number applies to all
        layers."""
        value = self.entries.get(key)
        if value is None:
            return None
        if not value.is_array:
            return (self.integer(key, least, most),) * n
        if value.kind not in tensor_types.INTEGERS or value.count != n:
            raise self.invalid(key, Reason("values_for_layers", {"count": value.count, "layers": n}))
        numbers = tuple(int(item) for item in self.items(key))
        for number in numbers:
            if not least <= number <= most:
                raise self.invalid(key, str(number))
        return numbers

    def text(self, key: str) -> str:
        """Return the first 200 characters of a string, with unprintable characters replaced, or "" if the entry is
        absent."""
        value = self.entries.get(key)
        if value is None or value.is_array or value.kind != tensor_types.STRING:
            return ""
        return printable(str(self.items(key)[0]), 200)

    def items(self, key: str) -> tuple[Scalar, ...]:
        """Return all values of an entry. A single value is returned as a tuple of one."""
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

    def invalid(self, key: str, problem: Fact) -> BadInput:
        """Return the error that reports an invalid entry."""
        return BadInput("gguf_odd", path=self.path, key=printable(key), found=problem)


def printable(foreign: str, most: int = 64) -> str:
    """Return text from an untrusted file in a form that is safe in messages: truncated, and with unprintable
    characters replaced."""
    return "".join(c if c.isprintable() else "?" for c in foreign[:most])


def align_up(n: int, alignment: int) -> int:
    """Round `n` up to a multiple of `alignment`, which must be a power of two."""
    return (n + alignment - 1) & -alignment


def header_bytes(
    alignment: int, entries: Sequence[bytes], tensors: Sequence[tuple[str, tuple[int, ...], int, int]]
) -> bytes:
    """Encode a header, without the padding that follows it.

    entries: encoded by `entry` or copied from another header.
    tensors: the name, shape, number type and size in bytes of each tensor, in file order.
    """
    counts = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(entries))
    listed, offset = [], 0
    for name, shape, kind, n_bytes in tensors:
        dimensions = struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
        listed.append(text(name.encode()) + dimensions + struct.pack("<IQ", kind, offset))
        offset = align_up(offset + n_bytes, alignment)
    return b"".join([counts, *entries, *listed])


def entry(key: str, kind: int, values: Sequence[object], is_list: bool = False) -> bytes:
    """Encode a metadata entry: one value, or a list of values. Raises struct.error if a value does not fit its type."""
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
MAX_ALIGNMENT = 64 << 10  # this app's own limit: padding stays small compared to any tensor
MAX_TENSOR_NAME_BYTES = 63  # GGML_MAX_NAME without the terminator

FIRST_READ_BYTES = 64 << 10
DEFAULT_ALIGNMENT = 32
_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")


def part_paths(path: Path) -> tuple[Path, ...]:
    """Return the paths of all parts of the model that this file belongs to, in order. Most models have one part."""
    return tuple(path.with_name(name) for name in part_names(path.name))


def read_header(path: Path) -> Header:
    """Read and check the headers of all parts of a model, without reading any tensors. Raises BadInput."""
    paths = part_paths(path)
    return _joined([_read_one(part_path) for part_path in paths]) if len(paths) > 1 else _read_one(path)


def header_in(data: bytes, path: Path) -> Header:
    """Parse a header that this app encoded without tensors. `path` appears only in errors. Raises BadInput."""
    return _Reader(BytesIO(data), path, len(data)).header()


def _joined(parts: list[Header]) -> Header:
    """Merge the headers of all parts: the metadata of the first part and the tensors of all parts."""
    first, tensors = parts[0], dict[str, Tensor]()
    for number, part in enumerate(parts):
        count = part.integer("split.count", 0, MAX_PARTS, 0)
        if count != len(parts) or part.integer("split.no", 0, MAX_PARTS, 0) != number:
            raise BadInput("gguf_part", path=part.path, part=number + 1, parts=len(parts))
        for name, tensor in part.tensors.items():
            if name in tensors:
                raise BadInput("gguf_repeated", path=part.path, name=printable(name))
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
    """A tensor as listed in the header. Its offset is relative to the start of the tensor data."""

    name: str
    shape: tuple[int, ...]
    kind: int
    offset: int


class _Reader:
    """A sequential parser of one header. It checks every size before reading that many bytes."""

    def __init__(self, file: BinaryIO, path: Path, file_bytes: int) -> None:
        self._file = file
        self._path = str(path)
        self._file_bytes = file_bytes
        self._buffer = bytearray()
        self._pos = 0

    def header(self) -> Header:
        version = self._version()
        n_tensors = self._bounded(Reason("limit_tensors"), self._u64(), MAX_TENSORS)
        n_entries = self._bounded(Reason("limit_entries"), self._u64(), MAX_ENTRIES)
        entries: dict[str, Value] = {}
        for _ in range(n_entries):
            start, key = self._pos, self._name(MAX_KEY_BYTES, Reason("limit_key"))
            if key in entries:
                raise self._bad("gguf_repeated", name=printable(key))
            entries[key] = self._value(start, key)
        alignment = self._alignment(entries)
        listed = [self._listed() for _ in range(n_tensors)]
        raw = bytes(memoryview(self._buffer)[: self._pos])
        data_start = align_up(self._pos, alignment)
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
            count = self._bounded(Reason("limit_list", {"key": printable(key)}), self._u64(), MAX_ITEMS)
        data = self._pos
        if kind == tensor_types.STRING:
            self._skip_strings(count)
        elif kind in tensor_types.SCALARS:
            self._skip(count * tensor_types.SCALARS[kind][1])
        else:  # includes arrays of arrays
            raise self._bad("gguf_type", name=printable(key), kind=kind)
        return Value(kind, is_array, count, start, data, self._pos)

    def _skip_strings(self, count: int) -> None:
        """Skip strings. This is the only performance-critical loop here, since a vocabulary has hundreds of thousands
        of strings."""
        buffer, length_at, pos, limit = self._buffer, _U64.unpack_from, self._pos, MAX_STRING_BYTES
        for _ in range(count):
            if pos + 8 > len(buffer):
                self._pos = pos
                self._need(8)
            n_bytes: int = length_at(buffer, pos)[0]
            if n_bytes > limit:
                self._bounded(Reason("limit_text"), n_bytes, limit)
            pos += 8 + n_bytes
        self._pos = pos
        self._need(0)

    def _listed(self) -> _Listed:
        name = self._name(MAX_TENSOR_NAME_BYTES, Reason("limit_tensor_name"))
        n_dimensions = self._u32()
        if not 1 <= n_dimensions <= MAX_DIMENSIONS:
            raise self._bad("gguf_dimensions", name=printable(name), found=n_dimensions)
        shape = tuple(self._u64() for _ in range(n_dimensions))
        kind, offset = self._u32(), self._u64()
        if kind not in tensor_types.TENSORS:
            raise self._bad("gguf_type", name=printable(name), kind=kind)
        return _Listed(name, shape, kind, offset)

    def _placed(self, listed: list[_Listed], start: int, alignment: int) -> dict[str, Tensor]:
        """Return the tensors with their locations. As in llama.cpp, they must be contiguous and within the file."""
        tensors: dict[str, Tensor] = {}
        expected = 0
        for entry in listed:
            if entry.name in tensors:
                raise self._bad("gguf_repeated", name=printable(entry.name))
            n_bytes = tensor_types.tensor_bytes(entry.kind, entry.shape)
            if not n_bytes:  # no values, or rows that are not whole blocks
                raise self._bad("gguf_shape", name=printable(entry.name), shape=str(entry.shape))
            if start + entry.offset + n_bytes > self._file_bytes:
                raise self._bad("gguf_truncated", size_bytes=self._file_bytes)
            if entry.offset != expected:
                raise self._bad("gguf_offset", name=printable(entry.name))
            tensors[entry.name] = Tensor(entry.shape, entry.kind, start + entry.offset, n_bytes)
            expected = align_up(entry.offset + n_bytes, alignment)
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

    def _name(self, most: int, limit: Reason) -> str:
        n_bytes = self._bounded(limit, self._u64(), most)
        try:
            name = self._take(n_bytes).decode()
        except UnicodeDecodeError:
            raise self._bad("gguf_name") from None
        if not name:
            raise self._bad("gguf_name")
        return name

    def _bounded(self, limit: Reason, number: int, most: int) -> int:
        if number > most:
            raise self._bad("gguf_limit", what=limit, found=number, most=most)
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
        """Read ahead until the buffer contains the next `n_bytes`. First check that the file is long enough and the
        limit is not exceeded."""
        end = self._pos + n_bytes
        if end <= len(self._buffer):
            return
        if end > self._file_bytes:
            raise self._bad("gguf_truncated", size_bytes=self._file_bytes)
        self._bounded(Reason("limit_header"), end, MAX_HEADER_BYTES)
        target = min(max(end, 2 * len(self._buffer), FIRST_READ_BYTES), MAX_HEADER_BYTES)
        self._buffer += self._file.read(target - len(self._buffer))
        if end > len(self._buffer):  # the file shrank in the meantime
            raise self._bad("gguf_truncated", size_bytes=len(self._buffer))

    def _bad(self, code: str, **facts: Fact) -> BadInput:
        return BadInput(code, path=self._path, **facts)
