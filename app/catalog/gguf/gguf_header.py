"""A checked GGUF header: its entries by key and its tensors by name, in the order of the file; and the bytes of a new
one."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.catalog.gguf import tensor_types
from app.core.errors import BadInput

Scalar = int | float | bool | str


@dataclass(frozen=True, slots=True)
class Value:
    """One metadata entry; its numbers are read from the header's bytes on demand."""

    kind: int  # of the items, where it is an array
    is_array: bool
    count: int
    start: int  # of the whole entry, key included, in `Header.raw`
    data: int  # of its first item
    end: int


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor's shape, number type and place; `shape[0]` is the length of a row."""

    shape: tuple[int, ...]
    kind: int
    offset: int  # in the file
    n_bytes: int
    path: str = ""  # of its file, where a model has several


@dataclass(frozen=True, slots=True)
class Header:
    """The checked contents of a GGUF file up to its tensors. Only gguf_check.py makes it."""

    path: str
    version: int
    raw: bytes
    entries: dict[str, Value]
    tensors: dict[str, Tensor]
    alignment: int
    file_bytes: int  # of all its files
    n_parts: int = 1

    def path_of(self, tensor: Tensor) -> str:
        """The file in which a tensor lies."""
        return tensor.path or self.path

    def integer(self, key: str, least: int, most: int, default: int | None = None) -> int:
        """An exact integer within bounds; without a default it must be there."""
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
        """Return one integer for each of `n` layers, from an array or one number for all; None if absent."""
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
        """A string, at most 200 characters of it, without control characters; "" if absent."""
        value = self.entries.get(key)
        if value is None or value.is_array or value.kind != tensor_types.STRING:
            return ""
        return shown(str(self.items(key)[0]), 200)

    def items(self, key: str) -> tuple[Scalar, ...]:
        """Return all values of an entry; a single value is a tuple of one."""
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
        """The error for an entry that cannot be right."""
        return BadInput("gguf_odd", path=self.path, key=shown(key), found=problem)


def shown(foreign: str, most: int = 64) -> str:
    """A name from a stranger's file as it may stand in a sentence."""
    return "".join(c if c.isprintable() else "?" for c in foreign[:most])


def aligned(n: int, alignment: int) -> int:
    """The next multiple of the alignment, a power of two."""
    return (n + alignment - 1) & -alignment


def header_bytes(
    alignment: int, entries: Sequence[bytes], tensors: Sequence[tuple[str, tuple[int, ...], int, int]]
) -> bytes:
    """Return the bytes before the tensors, not padded.

    entries: each as `entry` or a file's own bytes. tensors: name, shape, number type and bytes of each, in the order of
    the file.
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
