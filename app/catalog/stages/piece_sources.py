"""Where the bytes of a stage's pieces come from: the model's file as it is, in another order, or made up."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from app.catalog.files import CHUNK_BYTES, chunks
from app.core.errors import Damaged


@dataclass(frozen=True, slots=True)
class FromFile:
    """The bytes of a piece lie in the model's own file."""

    path: str
    offset: int
    n_bytes: int


@dataclass(frozen=True, slots=True)
class Given:
    """The bytes of a piece were made by the cut."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Zeros:
    """A piece that nothing reads."""

    n_bytes: int


@dataclass(frozen=True, slots=True)
class Reordered:
    """Rows of a tensor of the file in another order, the same one in each group of len(order) rows."""

    tensor: FromFile
    row_bytes: int
    order: tuple[int, ...]


Source = FromFile | Given | Zeros | Reordered


def read(source: Source, start: int = 0) -> Iterator[bytes]:
    """The bytes of a piece from `start` on, in chunks of at most 1 MiB. Raises Damaged."""
    match source:
        case FromFile():
            yield from _from_file(source, start)
        case Given(data):
            yield from _parts(data, start)
        case Zeros(n_bytes):
            for at in range(start, n_bytes, CHUNK_BYTES):
                yield bytes(min(CHUNK_BYTES, n_bytes - at))
        case Reordered():
            yield from _reordered(source, start)


def sha256(source: Source) -> str:
    """The hash of a piece. Raises Damaged."""
    found = hashlib.sha256()
    for chunk in read(source):
        found.update(chunk)
    return found.hexdigest()


def _parts(data: bytes, start: int) -> Iterator[bytes]:
    for at in range(start, len(data), CHUNK_BYTES):
        yield data[at : at + CHUNK_BYTES]


def _reordered(source: Reordered, start: int) -> Iterator[bytes]:
    group = source.row_bytes * len(source.order)
    skipped, rest = start - start % group, start % group
    waiting = b""
    for chunk in _from_file(source.tensor, skipped):
        waiting += chunk
        whole = len(waiting) - len(waiting) % group
        for at in range(0, whole, group):
            rows = waiting[at : at + group]
            size = source.row_bytes
            moved = b"".join(rows[row * size : (row + 1) * size] for row in source.order)
            yield from _parts(moved, rest)
            rest = 0
        waiting = waiting[whole:]


def _from_file(source: FromFile, start: int) -> Iterator[bytes]:
    left = source.n_bytes - start
    try:
        with open(source.path, "rb", buffering=0) as file:
            for chunk in chunks(file, source.offset + start, left):
                left -= len(chunk)
                yield chunk
    except OSError as error:
        raise Damaged("source_changed", path=source.path) from error
    if left:
        raise Damaged("source_changed", path=source.path)
