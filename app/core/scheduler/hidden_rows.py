"""Hidden states of a frame as numbers, and how far two computations of the same rows are apart. Pure."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from backends.contract import BLOCK_VALUES, OUTLIER_BYTES, SCALE_BYTES, Number, n_blocks, n_outliers

Row = Sequence[float]
F32_END = 2.0**128  # from here on a value is infinite in f32; a NaN is not below it either


def rows_of(payload: bytes, width: int, number: Number) -> list[Row]:
    """The rows of a payload as in backends/wire_numbers.py. Raises ValueError when its length is wrong."""
    size = number.row_bytes(width)
    if len(payload) % size:
        raise ValueError(f"{len(payload)} bytes are no whole number of rows of {size}")
    return [_row(payload[at : at + size], width, number) for at in range(0, len(payload), size)]


def _row(payload: bytes, width: int, number: Number) -> Row:
    match number:
        case Number.F32:
            return struct.unpack(f"<{width}f", payload)
        case Number.F16:
            exponent, *halves = struct.unpack(f"<h{width}e", payload)
            return [_scaled(half, exponent) for half in halves] if exponent else halves
        case Number.Q8:
            return _q8_row(payload, width)
        case Number.IDS:
            raise ValueError("token ids are no hidden states")


def _scaled(value: float, exponent: int) -> float:
    try:
        return math.ldexp(value, exponent)
    except OverflowError:  # whoever sent this: infinitely far from anything honest
        return math.inf


def _q8_row(payload: bytes, width: int) -> Row:
    outliers, blocks = n_outliers(width), n_blocks(width)
    places, exact, halves, values = (
        struct.unpack_from(f"<{count}{kind}", payload, at)
        for count, kind, at in (
            (outliers, "H", 0),
            (outliers, "f", 2 * outliers),
            (blocks, "H", OUTLIER_BYTES * outliers),
            (width, "b", OUTLIER_BYTES * outliers + SCALE_BYTES * blocks),
        )
    )
    scales = struct.unpack(f"<{blocks}f", struct.pack(f"<{blocks}I", *(half << 16 for half in halves)))
    row = [scales[at // BLOCK_VALUES] * value for at, value in enumerate(values)]
    for place, value in zip(places, exact, strict=True):
        if place >= width:
            return [math.inf] * width
        row[place] = value
    return row


def are_usable(payload: bytes, width: int, number: Number) -> bool:
    """Tell whether a worker would take these rows: the right number of them, each value finite in f32."""
    if number is Number.IDS:
        return True
    try:
        rows = rows_of(payload, width, number)
    except ValueError:
        return False
    return all(abs(value) < F32_END for row in rows for value in row)


def as_f32(rows: Sequence[Row]) -> bytes:
    """The payload of these rows in f32."""
    return b"".join([struct.pack(f"<{len(row)}f", *row) for row in rows])


def as_f16(row: Row) -> bytes:
    """Return the payload of one row whose values fit into f16 as they are: its exponent is 0."""
    return struct.pack(f"<h{len(row)}e", 0, *row)


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


def _apart(one: Row, other: Row) -> float:
    if len(one) != len(other):
        return math.inf
    mine, theirs = math.hypot(*one), math.hypot(*other)
    if not (math.isfinite(mine) and math.isfinite(theirs)):
        return math.inf
    longer = max(mine, theirs)
    return math.dist(one, other) / longer if longer else 0.0
