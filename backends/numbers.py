"""Hidden states <-> the bytes of a frame, in each of the wire's number types. Little-endian."""

from __future__ import annotations

from math import isfinite

import numpy as np
from numpy.typing import NDArray

from backends.contract import Number, StageError

VALUE = np.dtype("<f4")
Rows = NDArray[np.float32]

Q8_MAX = 127.0
F16_END = 65520.0  # from here on a value would be rounded to infinity


def to_wire(rows: Rows, number: Number) -> memoryview:
    """The payload of float32 `rows` [n, width]; for F32 a view of them, not a copy.

    Raises StageError when a value is not finite, or too large for the number type.
    """
    match number:
        case Number.F32:
            _check_finite(rows)
            wire: NDArray[np.generic] = np.ascontiguousarray(rows, dtype=VALUE)
        case Number.F16:
            wire = _to_f16(rows)
        case Number.Q8:
            wire = _to_q8(rows)
        case Number.IDS:
            raise StageError("hidden states are no token ids")
    return bytes_of(wire)


def from_wire(payload: bytes | bytearray | memoryview, width: int, number: Number) -> Rows:
    """Float32 rows [n, width] of a payload; for F32 a view of it, not a copy.

    Raises StageError when the length is wrong or a value is not finite.
    """
    size = number.row_bytes(width)
    if len(payload) % size:
        raise StageError(f"{len(payload)} bytes are no whole number of rows of {size}")
    rows: Rows
    match number:
        case Number.F32:
            rows = np.frombuffer(payload, dtype=VALUE).reshape(-1, width)
        case Number.F16:
            rows = np.frombuffer(payload, dtype="<f2").astype(np.float32).reshape(-1, width)
        case Number.Q8:
            rows = _from_q8(payload, width)
        case Number.IDS:
            raise StageError("token ids are no hidden states")
    _check_finite(rows)
    return rows


def bytes_of(array: NDArray[np.generic]) -> memoryview:
    """A contiguous array's bytes, without a copy."""
    return array.reshape(-1).view(np.uint8).data


def ids_to_wire(ids: list[int] | tuple[int, ...]) -> bytes:
    """Token ids as int32."""
    return np.asarray(ids, dtype="<i4").tobytes()


def ids_from_wire(payload: bytes | bytearray | memoryview) -> NDArray[np.int32]:
    """Token ids of a payload, without a copy."""
    return np.frombuffer(payload, dtype="<i4")


def _check_finite(rows: Rows) -> None:
    flat = rows.reshape(-1)
    # One call sees all of them: the sum of squares is not finite when a value is not.
    if not isfinite(flat.dot(flat)) and not np.isfinite(rows).all():
        raise StageError("a hidden state holds a value that is not finite")


def _to_f16(rows: Rows) -> NDArray[np.float16]:
    flat = rows.reshape(-1)
    # As above: no value is beyond the range when their squares together are not; else each is looked at.
    if not flat.dot(flat) < F16_END**2 and not (np.abs(rows) < F16_END).all():
        raise StageError("a hidden state holds a value beyond the range of f16")
    return rows.astype("<f2")


def _q8(width: int) -> np.dtype[np.void]:
    return np.dtype([("scale", VALUE), ("values", "i1", (width,))])


def _to_q8(rows: Rows) -> NDArray[np.void]:
    _check_finite(rows)
    wire = np.empty(len(rows), dtype=_q8(rows.shape[1]))
    scale = np.abs(rows).max(axis=1) / np.float32(Q8_MAX)
    wire["scale"] = scale
    divisor = np.where(scale > 0, scale, np.float32(1))[:, None]
    wire["values"] = np.clip(np.rint(rows / divisor), -Q8_MAX, Q8_MAX)
    return wire


def _from_q8(payload: bytes | bytearray | memoryview, width: int) -> Rows:
    wire = np.frombuffer(payload, dtype=_q8(width))
    with np.errstate(over="ignore", invalid="ignore"):
        rows: Rows = wire["values"].astype(np.float32) * wire["scale"][:, None]
    return rows
