"""Tests of when a sample of a lender's work is kept, how far rows may differ, and who is believed."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.verification import (
    CHANCE,
    FACTOR,
    LEAST_ROWS,
    MOST_BYTES,
    MOST_NOISE,
    OTHER_KIND,
    REST_S,
    SAME_KIND,
    Finding,
    as_f32,
    distance_of,
    final_finding,
    finding_of,
    honest_limit,
    largest_distance,
    noise_of,
    rows_of,
    takes_sample,
)
from backends.contract import NumberFormat
from backends.hidden_state_codec import decode_hidden, encode_hidden

SMALL = st.floats(-100, 100, width=16)
ROWS = st.lists(st.lists(SMALL, min_size=4, max_size=4), min_size=1, max_size=5)
HIDDEN = [NumberFormat.F32, NumberFormat.F16, NumberFormat.Q8]
AGREES, DIFFERS, UNCLEAR = Finding


@given(ROWS, st.sampled_from(HIDDEN))
def test_rows_are_read_as_the_workers_read_them(rows: list[list[float]], number: NumberFormat) -> None:
    payload = bytes(encode_hidden(np.asarray(rows, dtype=np.float32), number))
    theirs = decode_hidden(payload, 4, number)
    mine = rows_of(payload, 4, number)
    assert np.asarray(mine) == pytest.approx(theirs, rel=1e-6)
    assert largest_distance(rows_of(as_f32(mine), 4, NumberFormat.F32), mine) < 1e-6


def test_what_is_no_whole_row_or_no_hidden_state_is_refused() -> None:
    with pytest.raises(ValueError, match="9 bytes"):
        rows_of(bytes(9), 2, NumberFormat.F32)
    with pytest.raises(ValueError, match="token ids"):
        rows_of(bytes(4), 1, NumberFormat.IDS)


@given(ROWS, ROWS)
def test_a_distance_is_a_share_and_the_same_from_both_sides(
    first: list[list[float]], second: list[list[float]]
) -> None:
    assert largest_distance(first, first) == 0
    assert largest_distance(first, second) == largest_distance(second, first)
    assert (len(first) != len(second)) == math.isinf(largest_distance(first, second))
    assert math.isinf(largest_distance(first, second)) or 0 <= largest_distance(first, second) <= 2


def test_one_row_that_is_off_is_seen_among_many() -> None:
    rows = [[1.0, 2.0, 2.0]] * 64
    changed = [*rows[:40], [1.0, 2.0, 2.3], *rows[41:]]
    assert largest_distance(rows, changed) == pytest.approx(0.3 / math.sqrt(1 + 4 + 2.3**2))
    assert math.isinf(largest_distance(rows, [*rows[:63], [1.0, math.nan, 2.0]]))
    assert math.isinf(largest_distance(rows, [*rows[:63], [1.0, 2.0]]))


@pytest.mark.parametrize(
    ("n_rows", "n_bytes", "draw", "rested_s", "expected"),
    [
        (64, 1 << 20, 0.0, math.inf, True),
        (64, 1 << 20, CHANCE, math.inf, False),
        (LEAST_ROWS - 1, 1 << 10, 0.0, math.inf, False),
        (64, MOST_BYTES + 1, 0.0, math.inf, False),
        (64, 1 << 20, 0.0, REST_S - 1, False),
        (64, 1 << 20, 0.0, REST_S, True),
    ],
)
def test_a_sample_is_kept_now_and_then(n_rows: int, n_bytes: int, draw: float, rested_s: float, expected: bool) -> None:
    assert takes_sample(n_rows, n_bytes, draw, rested_s) is expected


@given(st.floats(0, MOST_NOISE), st.sampled_from(HIDDEN), st.booleans(), st.floats(0, 2))
def test_nobody_is_blamed_for_less_than_honest_ways_differ(
    noise: float, number: NumberFormat, same: bool, distance: float
) -> None:
    most = honest_limit(noise, number, same_kind=same)
    assert most >= FACTOR * noise
    assert most >= (SAME_KIND[number] if same else OTHER_KIND)
    assert finding_of(distance, noise, most) is (AGREES if distance <= most else DIFFERS)


@pytest.mark.parametrize("noise", [MOST_NOISE * 1.01, math.inf, math.nan])
def test_a_machine_whose_own_ways_are_far_apart_says_nothing(noise: float) -> None:
    assert finding_of(2.0, noise, honest_limit(noise, NumberFormat.F16, same_kind=True)) is UNCLEAR


def test_what_is_not_finite_differs() -> None:
    assert finding_of(math.inf, 0.0, 0.1) is DIFFERS


@given(st.sampled_from(Finding), st.none() | st.sampled_from(Finding))
def test_a_lender_is_blamed_only_where_nobody_else_has_its_numbers(lender: Finding, third: Finding | None) -> None:
    """Two of three are right; of two, the host is. A third machine that differs from the host clears the lender."""
    said = final_finding(lender, third)
    assert (said is DIFFERS) == (lender is DIFFERS and third in (None, AGREES))
    assert (said is AGREES) == (lender is AGREES)


def test_a_choice_that_fell_otherwise_in_some_rows_blames_nobody() -> None:
    """Experts may be chosen differently on any machine, which makes a row differ a lot."""
    near, far = [0.001] * 44, [0.2] * 20
    for own, theirs, said in (
        ([0.001] * 64, near + far, AGREES),
        (near + far, near + far, UNCLEAR),
        ([0.001] * 64, [0.2] * 64, DIFFERS),
        ([0.001] * 64, [0.001] * 15 + [0.2] * 49, DIFFERS),
    ):
        noise = noise_of(own, chooses=True)
        most = honest_limit(noise, NumberFormat.F16, same_kind=False)
        assert finding_of(distance_of(theirs, chooses=True), noise, most) is said
    assert distance_of(near + far, chooses=False) == noise_of(near + far, chooses=False) == 0.2
    assert math.isinf(distance_of([], chooses=True))


def test_f16_rows_of_the_wire_are_little_endian() -> None:
    assert list(rows_of(struct.pack("<h2e", 0, 1.5, -2.0), 2, NumberFormat.F16)[0]) == [1.5, -2.0]
    assert list(rows_of(struct.pack("<h2e", 3, 1.5, -2.0), 2, NumberFormat.F16)[0]) == [12.0, -16.0]
