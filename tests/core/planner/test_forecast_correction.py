"""Factors learned from forecasts that were wrong."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.ids import MachineId
from app.core.planner.forecast import Corrections
from app.core.planner.placement import Part
from app.core.planner.speed_estimates import MOST_FACTOR, Factor
from testbed.households import link, machine, speed

ATTIC = machine("attic", 1000, speed(0.01), link())


def learned(true_factor: float, n: int, noise: float = 0.0, seed: int = 1) -> Factor:
    """Return the state after n answers of a machine that takes this many times as long as measured."""
    chance, factor = Random(seed), Factor()
    for _ in range(n):
        factor = factor.learned(2.0 * factor.value, 2.0 * true_factor * (1 + chance.uniform(-noise, noise)))
    return factor


@pytest.mark.parametrize("true_factor", [0.6, 1.0, 1.3, 2.0])
def test_a_steady_error_is_learned_within_a_few_answers(true_factor: float) -> None:
    assert learned(true_factor, 8).value == pytest.approx(true_factor, rel=0.1)
    assert learned(true_factor, 40, noise=0.2).value == pytest.approx(true_factor, rel=0.1)


def test_one_odd_answer_moves_it_little() -> None:
    settled = learned(1.2, 30)
    odd = settled.learned(1.0, 50.0)
    assert odd.value / settled.value < 1.2
    assert odd.answers == settled.answers + 1


def test_twice_and_half_cancel_out() -> None:
    factor = Factor(1.0, 100)
    up = factor.learned(1.0, 2.0)
    assert up.learned(1.0, 0.5).value == pytest.approx(1.0)


@given(st.lists(st.tuples(st.floats(-1, 1e9), st.floats(-1, 1e9), st.floats(0, 1)), max_size=60))
def test_it_never_runs_away(answers: list[tuple[float, float, float]]) -> None:
    factor = Factor()
    for forecast_s, measured_s, part in answers:
        factor = factor.learned(forecast_s, measured_s, part)
    assert factor.value * 1.0000001 >= 1 / MOST_FACTOR
    assert factor.value <= MOST_FACTOR * 1.0000001


def test_times_that_say_nothing_change_nothing() -> None:
    factor = Factor(1.5, 3)
    for pair in ((0.0, 1.0), (1.0, 0.0), (-1.0, 1.0)):
        assert factor.learned(*pair) == factor
    assert factor.learned(1.0, 2.0, part=0.0) == factor
    assert Corrections().learned(ATTIC.id, 0.0, 0.0, 1.0) == Corrections()


def test_machine_and_link_learn_by_their_parts() -> None:
    known = Corrections().learned(ATTIC.id, compute_s=0.9, transfer_s=0.1, measured_s=2.0)
    assert known.of(Part.MACHINE, ATTIC.id).value > known.of(Part.LINK, ATTIC.id).value > 1.0
    host = Corrections().learned(ATTIC.id, compute_s=1.0, transfer_s=0.0, measured_s=2.0)
    assert not host.links
    assert known.of(Part.LINK, MachineId("another")) == Factor()


def test_a_corrected_machine_takes_so_much_longer_for_everything() -> None:
    known = Corrections({ATTIC.id: Factor(2.0, 9)}, {ATTIC.id: Factor(1.5, 9)})
    slower = known.corrected(ATTIC)
    assert slower.speed is not None
    assert slower.link is not None
    assert ATTIC.speed is not None
    assert ATTIC.link is not None
    assert slower.speed.chunk_s == 2 * ATTIC.speed.chunk_s
    assert slower.speed.head_s == 2 * ATTIC.speed.head_s
    assert slower.link.round_trip_s == 1.5 * ATTIC.link.round_trip_s
    assert slower.link.out_bytes_per_s == ATTIC.link.out_bytes_per_s / 1.5
    assert slower.link.kind is ATTIC.link.kind
    assert known.corrected(slower) == slower
    assert Corrections().corrected(slower) == ATTIC
    assert known.without({ATTIC.id}).corrected(ATTIC) == ATTIC
    unmeasured = machine("new", 1, None)
    assert known.corrected(unmeasured) == unmeasured
