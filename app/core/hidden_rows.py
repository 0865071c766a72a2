"""Hidden states of a frame as numbers, and how far two computations of the same rows are apart. Pure."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from backends.contract import Number

Row = Sequence[float]

Q8_MAX = 127.0  # as in backends/numbers.py


def rows_of(payload: bytes, width: int, number: Number) -> list[Row]:
    """The rows of a payload as in backends/numbers.py. Raises ValueError when its length is wrong."""
    size = number.row_bytes(width)
    if len(payload) % size:
        raise ValueError(f"{len(payload)} bytes are no whole number of rows of {size}")
    return [_row(payload[at : at + size], width, number) for at in range(0, len(payload), size)]


def _row(payload: bytes, width: int, number: Number) -> Row:
    match number:
        case Number.F32:
            return struct.unpack(f"<{width}f", payload)
        case Number.F16:
            return struct.unpack(f"<{width}e", payload)
        case Number.Q8:
            scale, *values = struct.unpack(f"<f{width}b", payload)
            return [scale * value for value in values]
        case Number.IDS:
            raise ValueError("token ids are no hidden states")


def as_f32(rows: Sequence[Row]) -> bytes:
    """The payload of these rows in f32."""
    return b"".join([struct.pack(f"<{len(row)}f", *row) for row in rows])


def apart(one: Sequence[Row], other: Sequence[Row]) -> float:
    """The largest distance of two rows at the same place, as a share of the longer of the two.

    0: the same; 1: as far as from a row to nothing. Infinite when there are not as many, or one is not finite.
    """
    return max(distances(one, other), default=0.0)


def distances(one: Sequence[Row], other: Sequence[Row]) -> list[float]:
    """The same of each two rows."""
    if len(one) != len(other):
        return [math.inf]
    return [_apart(a, b) for a, b in zip(one, other, strict=True)]


def beyond(rows: Sequence[Row], own: Sequence[Row], number: Number) -> list[float]:
    """`distances`, less what the wire takes from each of `own`: rows that came over it had the same taken."""
    found = distances(rows, own)
    return [max(0.0, far - _rounding(row, number)) for far, row in zip(found, own, strict=False)]


def _rounding(row: Row, number: Number) -> float:
    """How far a row is from what the wire makes of it. In 8 bits all its values share the scale of the largest:
    one huge value takes much from all others. Elsewhere it is as little for each row.
    """
    scale = max(map(abs, row), default=0.0) / Q8_MAX
    if number is not Number.Q8 or not scale or not math.isfinite(math.hypot(*row)):
        return 0.0
    return _apart(row, [scale * round(value / scale) for value in row])


def _apart(one: Row, other: Row) -> float:
    if len(one) != len(other):
        return math.inf
    mine, theirs = math.hypot(*one), math.hypot(*other)
    if not (math.isfinite(mine) and math.isfinite(theirs)):
        return math.inf
    longer = max(mine, theirs)
    return math.dist(one, other) / longer if longer else 0.0
