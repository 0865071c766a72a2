"""Tests of the bars: which side is the numerator of a ratio, and when a bar is met."""

from __future__ import annotations

import pytest

from bench.bars import BARS, Bar, compare
from bench.figures import Figures

ROUNDS: dict[str, list[Figures]] = {
    "whole": [{"ttft_s": 8.0, "decode_ms": 80.0}, {"ttft_s": 8.0, "decode_ms": 76.0}],
    "pool": [{"ttft_s": 4.0, "decode_ms": 80.0}, {"ttft_s": 4.4, "decode_ms": 80.0}],
}


def test_times_and_speeds() -> None:
    results = {result.bar.figure: result for result in compare(BARS, ROUNDS)}
    assert results["ttft_s"].ratio.median == pytest.approx(0.525)  # our time by theirs
    assert results["decode_ms"].ratio.median == pytest.approx(0.975)  # our speed by theirs
    assert all(result.holds for result in results.values())


def test_sides_that_did_not_run_are_left_out() -> None:
    assert {result.bar.other for result in compare(BARS, ROUNDS)} == {"whole"}
    assert compare(BARS, {"whole": ROUNDS["whole"]}) == []


@pytest.mark.parametrize(("at_least", "value", "holds"), [(True, 0.9, False), (False, 0.9, True)])
def test_direction(at_least: bool, value: float, holds: bool) -> None:
    assert Bar("", "", "", 1.0, None, at_least).holds(value) is holds
