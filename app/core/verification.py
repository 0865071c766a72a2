"""The verification of a lender's results, which recomputes samples of them on this machine and compares the results.

The distance between two honest computations of the same rows depends on the model and on the number of layers, because
engines calculate the same sums by different methods. A fixed limit would therefore be useless. This machine computes
each sample twice, with and without flash attention. The distance between its two results shows how much honest results
differ for exactly these rows.

Measured with llama-cpp-python 0.3.36 on x86_64 with 64 rows: the largest distance of a row, relative to its norm.

    layers               repeated         without flash attention   fewer rows at once   weights in f32
    Guide, Q8_0, 4       0                0.008                     0.010                0.008
    random, Q4_K_M, 4    0                0.020                     0.024                0.019
    random, Q4_K_M, 20   –                0.040                     0.029                0.027
    random, Q8_0, 20     –                0.021                     0.020                0.018
    random, Q4_0, 4      0                0.013                     0.014                0.013
    random, F16, 4       0                0.0006                    0.0011               0.0005
    random, F16, 20      –                0.0008                    0.0012               0.0006

If layers choose experts or positions, a single different choice can make an honest machine's row differ a lot: in one
of eight samples of a tiny Mixtral, one row was 0.2 off while all others were within 0.001. For such models, a quarter
of the rows in this machine's two results, and three quarters of a lender's rows, may differ by any distance.

The wire format adds 0.0003 in f16 and at most 0.013 in 8 bits, whatever the values: 31 values of a block, each rounded
by 0.29 of a step on average, next to one of 127 steps. Other processors were not measured, so they get a larger
tolerance.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from enum import StrEnum

from backends.contract import BLOCK_VALUES, OUTLIER_BYTES, SCALE_BYTES, NumberFormat, n_blocks, n_outliers

CHANCE = 0.25  # the probability with which the first chunk of a prompt is kept as a sample, if there is none yet
REST_S = 600.0  # the minimum time between two checks of a machine
LEAST_ROWS = 16  # per sample; the known answer with which a new placement is checked is shorter
MOST_BYTES = 4 << 20  # per sample, input and output together
# an honest result is always less than this many times as far off as this machine's two results are from each other
FACTOR = 4.0
MOST_NOISE = 0.1  # beyond this, this machine's two results prove nothing
# the minimum tolerance, however close this machine's two results are
SAME_KIND = {NumberFormat.F32: 0.005, NumberFormat.F16: 0.006, NumberFormat.Q8: 0.06}
OTHER_KIND = 0.06  # the same for another processor or engine: bf16 has a precision of 8 bits, and there are many layers


class Finding(StrEnum):
    """The outcome of comparing the results of two machines."""

    AGREES = "agrees"
    DIFFERS = "differs"
    UNCLEAR = "unclear"  # the results allow no judgment


def takes_sample(n_rows: int, n_bytes: int, draw: float, rested_s: float) -> bool:
    """Return whether to save the first chunk of a prompt as a sample. `draw` is a random number from 0 to 1."""
    return n_rows >= LEAST_ROWS and n_bytes <= MOST_BYTES and draw < CHANCE and rested_s >= REST_S


def noise_of(distances: Sequence[float], *, chooses: bool) -> float:
    """Return the distance between this machine's two results for a sample.

    chooses: whether its layers choose experts or positions. If so, the most distant quarter of the rows is ignored.
    """
    return _at(distances, 0.75 if chooses else 1.0)


def distance_of(distances: Sequence[float], *, chooses: bool) -> float:
    """Return the distance between a lender's rows and the closer of this machine's two results.

    chooses: whether its layers choose experts or positions. If so, the most distant three quarters of the rows are
    ignored.
    """
    return _at(distances, 0.25 if chooses else 1.0)


def _at(distances: Sequence[float], share: float) -> float:
    """Return the smallest value that is at least as large as the fraction `share` of all values.

    Return infinity if there are no values.
    """
    place = math.ceil(share * len(distances)) - 1
    return sorted(distances)[place] if distances else math.inf


def honest_limit(noise: float, number: NumberFormat, *, same_kind: bool) -> float:
    """Return how far an honest machine's rows may be from this machine's.

    `noise` is the distance between this machine's two results.
    """
    least = SAME_KIND.get(number, OTHER_KIND) if same_kind else OTHER_KIND
    return max(least, FACTOR * noise)


def finding_of(distance: float, noise: float, most: float) -> Finding:
    """Return the finding on a machine whose rows have this distance from the closer of this machine's two results.

    most: the `honest_limit`.
    """
    if not (math.isfinite(noise) and noise <= MOST_NOISE):
        return Finding.UNCLEAR
    return Finding.AGREES if distance <= most else Finding.DIFFERS


def final_finding(lender: Finding, third: Finding | None) -> Finding:
    """Decide whether a lender's results are wrong.

    lender, third: the findings on the lender and on a third machine that computed the same rows, if there is one. Both
    are comparisons with this machine.

    If two of three machines agree, they are right. If there are only two, this machine is believed, because it has the
    whole file and is trusted in everything else too. If all three disagree, none is believed.
    """
    if lender is not Finding.DIFFERS or third is None:
        return lender
    return Finding.DIFFERS if third is Finding.AGREES else Finding.UNCLEAR


Row = Sequence[float]


F32_END = 2.0**128  # values from here on are infinite in f32, and NaN is not less than this either


def rows_of(payload: bytes, width: int, number: NumberFormat) -> list[Row]:
    """Return the rows of a payload in the format of backends/hidden_state_codec.py.

    Raises ValueError if its length is wrong.
    """
    size = number.row_bytes(width)
    if len(payload) % size:
        raise ValueError(f"{len(payload)} bytes are no whole number of rows of {size}")
    return [_row(payload[at : at + size], width, number) for at in range(0, len(payload), size)]


def _row(payload: bytes, width: int, number: NumberFormat) -> Row:
    match number:
        case NumberFormat.F32:
            return struct.unpack(f"<{width}f", payload)
        case NumberFormat.F16:
            exponent, *halves = struct.unpack(f"<h{width}e", payload)
            return [_scaled(half, exponent) for half in halves] if exponent else halves
        case NumberFormat.Q8:
            return _q8_row(payload, width)
        case NumberFormat.IDS:
            raise ValueError("token ids are no hidden states")


def _scaled(value: float, exponent: int) -> float:
    try:
        return math.ldexp(value, exponent)
    except OverflowError:  # infinitely far from any honest value
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


def are_usable(payload: bytes, width: int, number: NumberFormat) -> bool:
    """Return whether a worker would accept this payload.

    It must contain whole rows, and all values must be finite in f32.
    """
    if number is NumberFormat.IDS:
        return True
    try:
        rows = rows_of(payload, width, number)
    except ValueError:
        return False
    return all(abs(value) < F32_END for row in rows for value in row)


def as_f32(rows: Sequence[Row]) -> bytes:
    """Return these rows as a payload in f32."""
    return b"".join([struct.pack(f"<{len(row)}f", *row) for row in rows])


def as_f16(row: Row) -> bytes:
    """Return one row as a payload in f16. Its exponent is 0, so its values must fit into f16 without scaling."""
    return struct.pack(f"<h{len(row)}e", 0, *row)


def largest_distance(rows: Sequence[Row], other: Sequence[Row]) -> float:
    """Return the largest distance between corresponding rows, relative to the norm of the longer row.

    0 means that the rows are identical, and 1 that they are as far apart as a row is from zero. The result is infinity
    if the numbers of rows differ or a row is not finite.
    """
    return max(distances(rows, other), default=0.0)


def distances(rows: Sequence[Row], other: Sequence[Row]) -> list[float]:
    """Return the distance of each pair of corresponding rows, as in `largest_distance`."""
    if len(rows) != len(other):
        return [math.inf]
    return [_apart(a, b) for a, b in zip(rows, other, strict=True)]


def _apart(row: Row, other: Row) -> float:
    if len(row) != len(other):
        return math.inf
    mine, theirs = math.hypot(*row), math.hypot(*other)
    if not (math.isfinite(mine) and math.isfinite(theirs)):
        return math.inf
    longer = max(mine, theirs)
    return math.dist(row, other) / longer if longer else 0.0
