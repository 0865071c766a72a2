"""The cost of trips by their rows: what is learned of it, and how many guesses are checked for that."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.speculation.trip_costs import FIRST_TRIES, LEAST_PLAIN, REMEASURED, TripCosts

MOST = 16


def measured(slope: float, plain_s: float = 0.02) -> TripCosts:
    costs = TripCosts()
    for _ in range(LEAST_PLAIN + 5):
        costs = costs.after(1, plain_s)
    for _ in range(8):
        for rows in (2, 3, 5, 9):
            costs = costs.after(rows, plain_s * (1 + slope * (rows - 1)))
    return costs.after(1, plain_s)


def chances(each: float, n: int = MOST) -> list[list[float]]:
    return [[each ** (place + 1) for place in range(n)]]


@pytest.mark.parametrize(
    ("slope", "each", "least", "most"),
    [
        (0.02, 0.9, 6, MOST),  # round trips take most of the time
        (0.02, 0.3, 1, 3),
        (0.45, 0.95, 2, 8),
        (0.45, 0.4, 0, 0),
        (0.9, 0.9, 0, 0),
        (1.0, 1.0, 0, 0),
    ],
)
def test_as_many_guesses_as_pay(slope: float, each: float, least: int, most: int) -> None:
    assert least <= measured(slope).depth(chances(each), MOST) <= most


def test_nothing_is_checked_before_a_plain_trip_is_known_nor_without_guesses() -> None:
    assert TripCosts().depth(chances(1.0), MOST) == 0
    costs = measured(0.0)
    assert costs.depth([], MOST) == costs.depth([[]], MOST) == costs.depth(chances(1.0), 0) == 0


def test_what_overlap_already_gives_need_not_be_checked() -> None:
    costs = measured(0.45)
    assert costs.depth(chances(0.8), MOST) > 0
    assert costs.depth(chances(0.8), MOST, lambda chance: 3.0 if chance > 0.7 else 1.0) == 0


def test_all_answers_of_a_step_check_equally_many() -> None:
    costs = measured(0.1)
    good, bad = chances(0.9)[0], chances(0.01)[0]
    assert costs.depth([good] * 4, 4) == 4
    assert costs.depth([good, good[:2]], MOST) <= 2
    assert measured(0.45).depth([good, bad, bad, bad], 4) == 0


def test_rows_that_were_not_measured_lie_between_those_that_were() -> None:
    costs = TripCosts(0.01, 10, 0, 9, {3: 2.0, 7: 3.0})
    assert costs.share(1) == 1.0
    assert costs.share(2) == 1.5
    assert costs.share(5) == 2.5
    assert costs.share(10) == pytest.approx(4.0)
    assert costs.most_rows == 15


def test_deeper_checks_are_tried_step_by_step() -> None:
    costs = TripCosts()
    for _ in range(LEAST_PLAIN):
        costs = costs.after(1, 0.02)
    depths = []
    for _ in range(6):
        depths.append(costs.depth(chances(1.0), MOST))
        costs = costs.after(1 + depths[-1], 0.02)
    assert depths[0] == 2
    assert depths == sorted(depths)
    assert depths[-1] == MOST


def test_what_takes_now_is_measured_again_now_and_then() -> None:
    costs = measured(0.0)
    for _ in range(REMEASURED):
        assert costs.depth(chances(1.0), MOST) > 0
        costs = costs.after(5, 0.02)
    assert costs.depth(chances(1.0), MOST) == 0
    assert costs.after(1, 0.02).depth(chances(1.0), MOST) > 0


def test_a_few_guesses_are_checked_only_to_learn_what_they_cost() -> None:
    costs, tried = TripCosts(), 0
    for _ in range(100):
        depth = costs.depth(chances(0.4), MOST)
        tried += depth > 0
        costs = costs.after(1 + depth, 0.02 * (1 + 0.9 * depth))
    assert tried == FIRST_TRIES


@given(st.floats(0.0, 1.2), st.floats(0.0, 1.0), st.integers(0, 100))
def test_an_answer_is_hardly_ever_slower_than_without(slope: float, each: float, seed: int) -> None:
    """600 tokens with true probabilities and costs that vary by a tenth: at most 3 % are lost."""
    chance = random.Random(seed)
    costs, spent, said = TripCosts(), 0.0, 0
    while said < 600:
        depth = costs.depth(chances(each), MOST)
        right = next((n for n in range(depth) if chance.random() >= each), depth)
        took = 0.02 * (1 + slope * depth)
        costs = costs.after(1 + depth, took * chance.uniform(0.95, 1.05))
        spent += took
        said += 1 + right
    assert spent / said < 0.02 * 1.03


def test_costs_that_changed_are_tried_again() -> None:
    costs = measured(1.0)
    assert costs.depth(chances(0.9), MOST) == 0
    for _ in range(800):
        costs = costs.after(1, 0.02)
    assert costs.depth(chances(0.9), MOST) > 0


def test_a_source_that_takes_a_while_is_tried_with_several_guesses() -> None:
    costs = TripCosts(first_depth=4)
    for _ in range(LEAST_PLAIN):
        costs = costs.after(1, 0.02)
    assert costs.depth(chances(0.6), MOST) == 4
    for _ in range(FIRST_TRIES):
        costs = costs.after(5, 0.03)
    assert costs.depth(chances(0.9), MOST) >= 4
