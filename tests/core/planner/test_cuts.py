"""Tests of the minimum of every run of layers, and of which boundaries are useful."""

from __future__ import annotations

from itertools import pairwise

import pytest

from app.core.model import ANY_RUN, RunRules, fewest_runs, neighbors, reachable_boundaries
from backends.contract import Layers

HYBRID = RunRules(required_groups=((0, 1, 2, 4, 5, 6), (3, 7)))


@pytest.mark.parametrize(
    ("first", "last", "allowed"),
    [(0, 3, False), (0, 4, True), (3, 4, False), (3, 5, True), (4, 8, True), (7, 8, False)],
)
def test_a_run_holds_one_layer_of_each_group(first: int, last: int, allowed: bool) -> None:
    assert HYBRID.allow(Layers(first, last)) is allowed


def test_a_run_is_not_of_a_forbidden_length() -> None:
    rules = RunRules(forbidden_lengths=(2,))
    assert [n for n in range(1, 5) if rules.allow(Layers(3, 3 + n))] == [1, 3, 4]


def test_boundaries_that_no_legal_way_passes_are_left_out() -> None:
    # layers 0 to 2 and 7 cannot stand alone
    assert reachable_boundaries(range(1, 8), 8, HYBRID) == (4, 5, 6)
    assert reachable_boundaries(range(1, 8), 8, RunRules()) == tuple(range(1, 8))
    assert reachable_boundaries((1, 2), 3, RunRules(forbidden_lengths=(1,))) == ()


def test_the_nearest_are_the_ones_on_both_sides() -> None:
    assert neighbors(5, (2, 4, 8)) == (4, 8)
    assert neighbors(1, (2, 4)) == (2,)
    assert neighbors(9, (2, 4)) == (4,)
    assert neighbors(3, ()) == ()


@pytest.mark.parametrize(
    ("rules", "most", "sizes"),
    [(ANY_RUN, 6, [6]), (ANY_RUN, 4, [2, 4]), (ANY_RUN, 1, []), (RunRules(forbidden_lengths=(2,)), 4, [3, 3]),
     (HYBRID, 3, [3, 3]), (HYBRID, 2, [])],
)  # fmt: skip
def test_a_run_in_the_fewest_parts_that_fit(rules: RunRules, most: int, sizes: list[int]) -> None:
    """Layers 2 to 8 of a model that may be cut before 2, 4, 5, 7 and 8."""
    parts = fewest_runs(Layers(2, 8), (2, 4, 5, 7, 8), rules, lambda layers: len(layers) <= most)
    assert [len(part) for part in parts] == sizes
    assert all(before.last == after.first for before, after in pairwise(parts))
