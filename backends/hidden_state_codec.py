"""The encoding of hidden states in a frame, for each number format. All numbers are little-endian.

Trained transformers produce a few massive activations, which are thousands of times larger than typical values and
occur mostly at the first token of a text. They reach 100,975 in Gemma 3 270M, but the maximum of f16 is 65,504. Two
formats preserve them:

- F16 writes a signed 16-bit exponent for each row, then the row's values in half precision, scaled down by that power
  of two. If the row fits into f16, the exponent is 0 and the values are exactly those of plain f16.
- Q8 writes the positions of the `n_outliers` largest values of each row, then these values as float32. A bfloat16 scale
  for each block of 32 values and one signed byte for each value follow. The bytes of outliers are 0.
"""

from __future__ import annotations

from math import isfinite

import numpy as np
from numpy.typing import NDArray

from backends.contract import BLOCK_VALUES, NumberFormat, StageError, n_blocks, n_outliers

VALUE = np.dtype("<f4")
Rows = NDArray[np.float32]

Q8_MAX = 127.0
F16_END = 65520.0  # from here on, values round to infinity
F16_MAX = 65504.0
F16_LAST_EXPONENT = 112  # the largest exponent for which 65,504 * 2**exponent fits in float32
F16_TOP = 16  # 2**16 is the first power of two beyond f16
BF16_BITS = 16  # low bits of a float32 that bfloat16 drops


def encode_hidden(rows: Rows, number: NumberFormat) -> memoryview:
    """Encode float32 `rows` [n, width] as a payload. For F32, the payload is a view, not a copy.

    Raises StageError if a value is not finite.
    """
    match number:
        case NumberFormat.F32:
            _check_finite(rows)
            wire: NDArray[np.generic] = np.ascontiguousarray(rows, dtype=VALUE)
        case NumberFormat.F16:
            wire = _to_f16(rows)
        case NumberFormat.Q8:
            wire = _to_q8(rows)
        case NumberFormat.IDS:
            raise StageError("hidden states are no token ids")
    return bytes_of(wire)


def decode_hidden(payload: bytes | bytearray | memoryview, width: int, number: NumberFormat) -> Rows:
    """Decode a payload to float32 rows [n, width]. For F32, the result is a view, not a copy.

    Raises StageError if the length is wrong or a value is not finite.
    """
    size = number.row_bytes(width)
    if len(payload) % size:
        raise StageError(f"{len(payload)} bytes are no whole number of rows of {size}")
    rows: Rows
    match number:
        case NumberFormat.F32:
            rows = np.frombuffer(payload, dtype=VALUE).reshape(-1, width)
        case NumberFormat.F16:
            rows = _from_f16(payload, width)
        case NumberFormat.Q8:
            rows = _from_q8(payload, width)
        case NumberFormat.IDS:
            raise StageError("token ids are no hidden states")
    _check_finite(rows)
    return rows


def bytes_of(array: NDArray[np.generic]) -> memoryview:
    """Return a view of the bytes of a contiguous array."""
    return array.reshape(-1).view(np.uint8).data


def encode_ids(ids: list[int] | tuple[int, ...]) -> bytes:
    """Encode token ids as int32."""
    return np.asarray(ids, dtype="<i4").tobytes()


def decode_ids(payload: bytes | bytearray | memoryview) -> NDArray[np.int32]:
    """Return the token ids in a payload, as a view."""
    return np.frombuffer(payload, dtype="<i4")


def _squares(rows: Rows) -> float:
    """Return the sum of the squares of all values. It is not finite if any value is not finite."""
    flat = rows.reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        return float(flat.dot(flat))


def _check_finite(rows: Rows) -> None:
    if not isfinite(_squares(rows)) and not np.isfinite(rows).all():
        raise StageError("a hidden state holds a value that is not finite")


def _f16(width: int) -> np.dtype[np.void]:
    return np.dtype([("exponent", "<i2"), ("values", "<f2", (width,))])


def _to_f16(rows: Rows) -> NDArray[np.void]:
    wire = np.zeros(len(rows), dtype=_f16(rows.shape[1]))
    # If the sum of squares is in range, so is each value. Otherwise each row is examined.
    if not _squares(rows) < F16_END**2:
        _check_finite(rows)
        largest = np.abs(rows).max(axis=1, initial=0.0)
        exponents = np.where(largest < F16_END, 0, np.frexp(largest)[1] - F16_TOP)
        # A row just below a power of two would round up to it, beyond the range of f16.
        exponents += np.ldexp(largest, -exponents) >= F16_END
        # With a larger exponent, values would decode to infinity. The very largest are clipped to the maximum of f16.
        wire["exponent"] = exponents = np.minimum(exponents, F16_LAST_EXPONENT)
        rows = np.clip(rows * _powers_of_two(-exponents), -F16_MAX, F16_MAX)
    wire["values"] = rows
    return wire


def _from_f16(payload: bytes | bytearray | memoryview, width: int) -> Rows:
    wire = np.frombuffer(payload, dtype=_f16(width))
    rows: Rows = wire["values"].astype(np.float32)
    if wire["exponent"].any():
        # senders are untrusted; non-finite values are rejected later
        with np.errstate(over="ignore", invalid="ignore"):
            rows *= _powers_of_two(wire["exponent"].astype(np.int32))
    return rows


def _powers_of_two(exponents: NDArray[np.int32]) -> Rows:
    """Return a column of powers of two, one for each row.

    Multiplying by this column is as exact as ldexp and ten times as fast.
    """
    factors: Rows = np.ldexp(np.float32(1), exponents)[:, None]
    return factors


def _q8(width: int) -> np.dtype[np.void]:
    outliers = n_outliers(width)
    return np.dtype(
        [
            ("places", "<u2", (outliers,)),
            ("outliers", VALUE, (outliers,)),
            ("scales", "<u2", (n_blocks(width),)),
            ("values", "i1", (width,)),
        ]
    )


def _to_q8(rows: Rows) -> NDArray[np.void]:
    _check_finite(rows)
    n_rows, width = rows.shape
    wire = np.empty(n_rows, dtype=_q8(width))
    padded = np.zeros((n_rows, n_blocks(width) * BLOCK_VALUES), dtype=np.float32)
    padded[:, :width] = rows
    outliers = n_outliers(width)
    places = np.argpartition(np.abs(rows), width - outliers, axis=1)[:, width - outliers :]
    wire["places"] = places
    wire["outliers"] = np.take_along_axis(rows, places, axis=1)
    np.put_along_axis(padded, places, np.float32(0), axis=1)
    blocks = padded.reshape(n_rows, -1, BLOCK_VALUES)
    bits = (np.abs(blocks).max(axis=2) / np.float32(Q8_MAX)).view(np.uint32)
    # Rounded up, because with a smaller scale the largest value of the block would not fit.
    wire["scales"] = (bits + np.uint32((1 << BF16_BITS) - 1)) >> np.uint32(BF16_BITS)
    scales = _scales(wire)
    divisors = np.where(scales > 0, scales, np.float32(1))[:, :, None]
    wire["values"] = np.rint(blocks / divisors).reshape(n_rows, -1)[:, :width]
    return wire


def _from_q8(payload: bytes | bytearray | memoryview, width: int) -> Rows:
    wire = np.frombuffer(payload, dtype=_q8(width))
    places = wire["places"].astype(np.intp)
    if (places >= width).any():
        raise StageError("a hidden state names a place beyond its width")
    with np.errstate(over="ignore", invalid="ignore"):  # senders are untrusted, as above
        scales = np.repeat(_scales(wire), BLOCK_VALUES, axis=1)[:, :width]
        rows: Rows = wire["values"].astype(np.float32) * scales
    np.put_along_axis(rows, places, wire["outliers"], axis=1)
    return rows


def _scales(wire: NDArray[np.void]) -> NDArray[np.float32]:
    """Return the block scales as float32. A bfloat16 is the upper half of a float32."""
    return (wire["scales"].astype(np.uint32) << np.uint32(BF16_BITS)).view(np.float32)
