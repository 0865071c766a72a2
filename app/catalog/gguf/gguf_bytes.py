"""The bytes of a GGUF header: entries and the list of tensors, as llama.cpp reads them."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

from app.catalog.gguf import tensor_types
from app.catalog.gguf.gguf_check import aligned


def header_bytes(
    alignment: int, entries: Sequence[bytes], tensors: Sequence[tuple[str, tuple[int, ...], int, int]]
) -> bytes:
    """All that stands before the tensors, not padded.

    entries: each as `entry` or a file's own bytes. tensors: name, shape, number type and bytes of
    each, in the order of the file.
    """
    counts = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(entries))
    listed, offset = [], 0
    for name, shape, kind, n_bytes in tensors:
        dimensions = struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
        listed.append(text(name.encode()) + dimensions + struct.pack("<IQ", kind, offset))
        offset = aligned(offset + n_bytes, alignment)
    return b"".join([counts, *entries, *listed])


def entry(key: str, kind: int, values: Sequence[object], is_list: bool = False) -> bytes:
    """One metadata entry: a value, or a list of them. Raises struct.error for values not of its kind."""
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
