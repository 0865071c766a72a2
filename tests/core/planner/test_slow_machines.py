"""Tests of machines that became far slower than before, and of the effect on a forecast."""

from __future__ import annotations

from app.core.ids import MachineId
from app.core.planner.placement import Part, Workload
from app.core.planner.placement_change import LEAST_S, SLOWER, best_steps, slow_machines, slowed_forecast
from app.core.planner.plan import plan
from testbed.households import MIB, link, machine, model, speed

DEN, ATTIC, KITCHEN = map(MachineId, ("den", "attic", "kitchen"))
USUAL = {DEN: 0.02, ATTIC: 0.02, KITCHEN: 0.01}


def test_the_best_of_each_is_remembered_while_it_computes() -> None:
    assert best_steps({}, USUAL) == USUAL
    assert best_steps(USUAL, {DEN: 0.01, ATTIC: 0.5}) == {DEN: 0.01, ATTIC: 0.02}


def test_one_that_takes_five_times_as_long_is_degraded() -> None:
    assert slow_machines(USUAL, USUAL) == {}
    assert slow_machines(USUAL, USUAL | {ATTIC: 0.02 * (SLOWER - 0.1)}) == {}
    assert slow_machines(USUAL, USUAL | {ATTIC: 0.12}) == {ATTIC: 6.0}


def test_what_slows_all_alike_is_no_machines_fault() -> None:
    assert slow_machines(USUAL, {key: 9 * step_s for key, step_s in USUAL.items()}) == {}
    assert slow_machines({ATTIC: 0.01}, {ATTIC: 1.0}) == {}  # nothing to compare with


def test_a_short_step_says_nothing() -> None:
    short = {DEN: 0.0001, ATTIC: 0.0001}
    assert slow_machines(short, short | {ATTIC: LEAST_S * 0.9}) == {}


def test_a_forecast_grows_by_what_the_machine_computes() -> None:
    lender = machine("attic", 1600, speed(0.002), link())
    made = plan(machine("den", 600, speed(0.002)), [lender], model([100 * MIB] * 8), Workload(1024))
    known = made.forecast
    assert known is not None
    [busy_s] = [share.busy_s for share in known.shares if share.machine == lender.id and share.part is Part.MACHINE]
    assert slowed_forecast(known, lender.id, 3.0).request_s == known.request_s + 2.0 * busy_s
    assert slowed_forecast(known, MachineId("nobody"), 3.0) == known
