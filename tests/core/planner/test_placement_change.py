"""Tests of the cost of moving layers, and when it pays: what can stay stays, and a little speed moves nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.core.planner.placement import Candidate, Forecast, Plan, Workload
from app.core.planner.placement_change import (
    MARGIN,
    MOVED_S,
    QUIET_S,
    SETTLED_S,
    is_clearly_better,
    may_load_ahead,
    may_move,
    move_duration_s,
    plans_keeping_runs,
    soonest_plan,
)
from app.core.planner.plan import plan
from app.core.reasons import said
from testbed.households import MIB, link, machine, model, speed

WORK = Workload(context=1024)
MODEL = model([100 * MIB] * 8)
DEN = machine("den", 1600, speed(0.002))
ATTIC, KITCHEN, STUDY = (machine(name, 1600, speed(0.002), link()) for name in ("attic", "kitchen", "study"))
BEFORE = plan(DEN, [ATTIC, KITCHEN], MODEL, WORK, [2, 2, 2, 2])


def now(*lenders: Candidate, split: list[int] | None = None) -> Plan:
    return plan(DEN, lenders, MODEL, WORK, split)


def holders(result: Plan) -> list[str]:
    return [f"{stage.name} {stage.layers.first}-{stage.layers.last}" for stage in result.stages]


def test_what_is_not_lost_stays_and_a_spare_machine_takes_the_rest() -> None:
    planned = now(KITCHEN, STUDY, split=[2, 2, 2, 2])
    assert holders(planned) == ["den 0-2", "kitchen 2-4", "study 4-6", "den 6-8"]
    [kept] = plans_keeping_runs(BEFORE, planned, MODEL)
    assert holders(kept) == ["den 0-2", "study 2-4", "kitchen 4-6", "den 6-8"]
    assert kept.forecast is not None
    assert kept.machines == planned.machines
    assert all(said(reason) for reason in kept.reasons)


def test_every_spare_machine_may_take_it() -> None:
    spare = machine("loft", 1600, speed(0.002), link())
    plans = plans_keeping_runs(BEFORE, now(KITCHEN, STUDY, spare), MODEL)
    assert [holders(result)[1] for result in plans] == ["loft 2-4", "study 2-4"]


def test_without_a_spare_machine_nothing_is_kept() -> None:
    assert plans_keeping_runs(BEFORE, now(KITCHEN), MODEL) == ()
    small = replace(STUDY, lends_bytes=MIB)
    assert plans_keeping_runs(BEFORE, now(KITCHEN, small), MODEL) == ()


def test_a_whole_model_may_stay_whole() -> None:
    """Its present speed can then be compared with that of a split."""
    roomy = replace(DEN, lends_bytes=1 << 40, speed=speed(0.02))
    whole = plan(roomy, [], MODEL, WORK)
    split = plan(roomy, [ATTIC, KITCHEN], MODEL, WORK)
    assert len(split.stages) > 1
    [kept] = plans_keeping_runs(whole, split, MODEL)
    assert kept.stages == whole.stages
    assert is_clearly_better(kept.forecast, split.forecast)
    assert plans_keeping_runs(whole, whole, MODEL) == ()


def test_machines_load_at_the_same_time_and_what_lies_there_is_not_sent() -> None:
    planned = now(KITCHEN, STUDY, split=[2, 2, 2, 2])
    planned_stage, other = planned.stages[1:3]
    load_s, way_s = planned_stage.weight_bytes / 200e6, planned_stage.weight_bytes / 100e6
    assert move_duration_s(planned, [], [], 200e6) == 0.0
    assert move_duration_s(planned, [planned_stage], [], 200e6) == pytest.approx(load_s + way_s)
    assert move_duration_s(planned, [planned_stage], [planned_stage], 200e6) == pytest.approx(load_s)
    assert move_duration_s(planned, [planned_stage, other], [], 200e6) == pytest.approx(load_s + way_s)
    here = [planned.stages[0], planned.stages[3]]  # both on the host, and nothing is sent there
    both_s = sum(stage.weight_bytes for stage in here) / 200e6
    assert move_duration_s(planned, here, [], 200e6) == pytest.approx(both_s)


def test_the_plan_that_ends_a_request_first_is_taken() -> None:
    fast, slow = with_request_s(10.0), with_request_s(12.0)
    assert soonest_plan([fast, slow], [0.0, 0.0]) == 0
    assert soonest_plan([fast, slow], [5.0, 0.0]) == 1
    assert soonest_plan([fast, slow], [1.0, 0.0]) == 0
    unknown = replace(slow, forecast=None)
    assert soonest_plan([fast, unknown], [0.1, 0.0]) == 1  # only what is known of both counts
    assert soonest_plan([fast, unknown], [0.0, 0.0]) == 0


def test_only_a_clear_gain_is_one() -> None:
    before = forecast_of(10.0)
    assert is_clearly_better(before, forecast_of(10.0 * MARGIN - 0.1))
    assert not is_clearly_better(before, forecast_of(10.0 * MARGIN + 0.1))
    assert not is_clearly_better(before, None)
    assert not is_clearly_better(None, before)
    # no two placements are each clearly better than the other: it never goes to and fro
    assert not is_clearly_better(forecast_of(10.0 * MARGIN - 0.1), before)


def test_nothing_moves_under_an_answer_nor_soon_after_one() -> None:
    assert may_move(100.0, 100.0 - QUIET_S, 100.0 - SETTLED_S)
    assert not may_move(100.0, 100.0, 0.0)
    assert not may_move(100.0, 100.0 - QUIET_S + 1, 0.0)
    assert not may_move(100.0, 0.0, 100.0 - SETTLED_S + 1)
    assert not may_move(1000.0, 0.0, 0.0, 1000.0 - MOVED_S + 1)
    assert may_move(1000.0, 0.0, 0.0, 1000.0 - MOVED_S)


def test_half_of_a_spare_machine_stays_free() -> None:
    assert may_load_ahead(50, 100)
    assert not may_load_ahead(51, 100)


def forecast_of(request_s: float) -> Forecast:
    assert BEFORE.forecast is not None
    return replace(BEFORE.forecast, request_s=request_s)


def with_request_s(seconds: float) -> Plan:
    return replace(BEFORE, forecast=forecast_of(seconds))
