"""Tests of an owner's limit on a measured link."""

from __future__ import annotations

import pytest

from testbed.households import link


def test_the_figure_is_the_smaller_of_what_was_measured_and_what_is_allowed() -> None:
    measured = link(bytes_per_s=100e6)
    held = measured.limited_to(5e6)
    assert (held.out_bytes_per_s, held.in_bytes_per_s) == (5e6, 5e6)
    assert held.round_trip_s == measured.round_trip_s
    free = measured.limited_to(1e9)
    assert (free.out_bytes_per_s, free.in_bytes_per_s) == (100e6, 90e6)
    assert measured.limited_to(None) == measured


@pytest.mark.parametrize(
    ("then", "now", "below"),
    [(None, None, False), (None, 5e6, False), (5e6, 5e6, False), (5e6, 2e6, False),
     (5e6, 9e6, True), (5e6, None, True)],
)  # fmt: skip
def test_what_was_measured_under_a_tighter_limit_says_little(
    then: float | None, now: float | None, below: bool
) -> None:
    assert link().limited_to(then).was_limited_below(now) is below
