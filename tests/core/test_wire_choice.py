"""Eight bits travel where the links are what a request waits for, and nowhere else; the plan says so."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from app.core.planner.forecast import forecast
from app.core.planner.placement import Candidate, Topology, Workload
from app.core.planner.plan import NARROW_MAX_RATIO, plan, plan_with_wire
from backends.contract import NumberFormat
from testbed import households as h

MODEL = h.model([100 * h.MIB] * 16)
WORK = Workload(context=1024)
HOST = h.machine("den", 1400, h.speed(0.002))


def lender(megabits: float, round_trip_s: float = 0.001) -> Candidate:
    return h.machine("attic", 1800, h.speed(0.002), h.link(round_trip_s, megabits * 1e6 / 8))


def test_a_slow_link_carries_8_bits_and_the_plan_says_what_that_gains() -> None:
    result = plan_with_wire(HOST, [lender(10)], MODEL, WORK)
    usual = plan(HOST, [lender(10)], MODEL, WORK)
    assert result.workload.number is NumberFormat.Q8
    assert result.forecast
    assert usual.forecast
    assert result.forecast.request_s <= NARROW_MAX_RATIO * usual.forecast.request_s
    (why,) = [reason for reason in result.reasons if reason.code == "plan_narrow_wire"]
    assert why.facts == {"narrow_s": result.forecast.request_s, "usual_s": usual.forecast.request_s}


@pytest.mark.parametrize("round_trip_s", [0.0005, 0.05])
def test_a_quick_link_carries_f16_however_far_the_other_end_is(round_trip_s: float) -> None:
    result = plan_with_wire(HOST, [lender(1000, round_trip_s)], MODEL, WORK)
    assert result == plan(HOST, [lender(1000, round_trip_s)], MODEL, WORK)
    assert result.workload.number is NumberFormat.F16


def test_what_was_not_measured_carries_f16() -> None:
    result = plan_with_wire(HOST, [replace(lender(10), speed=None)], MODEL, WORK)
    assert result.forecast is None
    assert result.workload.number is NumberFormat.F16


def test_a_forced_split_carries_8_bits_too_where_that_pays() -> None:
    result = plan_with_wire(HOST, [lender(10)], MODEL, WORK, (4, 8, 4))
    assert result.workload.number is NumberFormat.Q8
    assert [len(stage.layers) for stage in result.stages] == [4, 8, 4]


def test_a_forecast_knows_what_travels() -> None:
    """Twice as many bytes take twice as long where the link is all that counts."""
    machines = {candidate.id: candidate for candidate in (HOST, lender(1))}
    stages = plan(HOST, [lender(1)], MODEL, WORK, (1, 14, 1)).stages
    f16, f32, q8 = (
        forecast(stages, machines, MODEL, replace(WORK, number=number))
        for number in (NumberFormat.F16, NumberFormat.F32, NumberFormat.Q8)
    )
    assert f16
    assert f32
    assert q8
    assert f32.ttft_s / f16.ttft_s == pytest.approx(2, rel=0.1)
    assert q8.ttft_s / f16.ttft_s == pytest.approx(1.145 / 2, rel=0.1)


@pytest.mark.parametrize("seed", range(30))
def test_the_shortcut_never_hides_a_gain(seed: int) -> None:
    """Planning twice is left out only where 8 bits could not have paid."""
    chance = Random(seed)
    host = h.machine("den", chance.uniform(600, 1600), h.some_speed(chance))
    lenders = [
        h.machine(
            f"l{n}", chance.uniform(500, 1600), h.some_speed(chance),
            h.link(10 ** chance.uniform(-4, -1.5), 10 ** chance.uniform(5, 8.5)),
        )
        for n in range(3)
    ]  # fmt: skip
    result = plan_with_wire(host, lenders, MODEL, WORK)
    usual = plan(host, lenders, MODEL, WORK)
    narrow = plan(host, lenders, MODEL, replace(WORK, number=NumberFormat.Q8))
    assert result.forecast
    assert usual.forecast
    assert narrow.forecast
    pays = narrow.forecast.request_s <= NARROW_MAX_RATIO * usual.forecast.request_s
    assert (result.workload.number is NumberFormat.Q8) == (pays and narrow.topology is not Topology.ONE_MACHINE)
