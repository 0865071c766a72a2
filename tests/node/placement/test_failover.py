"""Placing a model anew: when it is looked at again whether it fits, and what is said before a machine leaves."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from app.api import plans
from app.core.errors import DoesNotFit, Reason
from app.core.ids import MachineId
from app.core.planner.placement import Plan, PlannedStage
from app.core.recovery.recovery import Loss
from app.node.placement import failover
from app.node.placement.failover import Failover
from app.node.placement.placement_state import IdleTracker, PlacementState
from tests.node.placement.test_standby import ATTIC, ENTRY, KITCHEN, STUDY, spread

DESCRIBED = plans.Plan(model="made")

NOTHING: Any = None  # not asked for here


@pytest.mark.parametrize("said", [True, False])
async def test_it_is_looked_again_also_without_news(said: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory that this machine itself gets back is no news of the household."""
    monkeypatch.setattr(failover, "LEAST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(failover, "LONGEST_PAUSE_SECONDS", 30.0 if said else 0.1)
    state = PlacementState(NOTHING, NOTHING, spread(ATTIC, sizes=[2, 4, 2]), DESCRIBED, IdleTracker(), lambda: None)
    made = Failover(NOTHING, NOTHING, state, 0)
    if said:
        state.household_changed()
    began = time.monotonic()
    async with asyncio.timeout(10):
        await made.changed()
    assert time.monotonic() - began >= (0.01 if said else 0.1)


class Placing:
    """The places of one plan's layers, and the layers that others are to take."""

    def __init__(self, now: Plan, spare: Sequence[PlannedStage] = ()) -> None:
        self._held, self.prepared = {*now.stages, *spare}, list[str]()
        self.claimed: Plan | None = None
        self.reservation = SimpleNamespace(choosing=asyncio.Lock())

    def stages_to_load(self, then: Plan) -> list[PlannedStage]:
        return [stage for stage in then.stages if stage not in self._held]

    def was_sent(self, _: PlannedStage) -> bool:
        return False

    def lost(self) -> frozenset[Any]:
        return frozenset()

    async def prepare(self, stage: PlannedStage, *, load: bool) -> None:
        assert load
        self.prepared.append(stage.name)

    async def open(self, _: Plan) -> list[Any]:
        return []


@pytest.mark.parametrize("has_spare", [True, False])
async def test_before_a_machine_is_left_it_is_said_who_loads_its_layers(has_spare: bool) -> None:
    """The notice comes at once, with the expected time, while the answer continues. Layers in place need no wait."""
    now = spread(ATTIC, KITCHEN, sizes=[2, 2, 2, 2])
    then = spread(STUDY, KITCHEN, sizes=[2, 2, 2, 2])
    stage_set = Placing(now, then.stages if has_spare else ())
    reports: list[tuple[list[str], float, int]] = []

    async def replan(_: object) -> list[Any]:
        return [(then, DESCRIBED)]

    def say(rest: Sequence[str], seconds: float) -> None:
        reports.append((list(rest), seconds, len(stage_set.prepared)))

    made = Failover(stage_set, replan, NOTHING, 0)  # type: ignore[arg-type]
    await made.hand_over(frozenset({ATTIC.id}), say)
    assert made.intends
    if has_spare:
        assert reports == []
        return
    [(rest, seconds, n_before)] = reports
    assert rest == ["study"] == stage_set.prepared
    assert seconds > 0
    assert n_before == 0


def moving(now: Plan, *plans_of_others: Plan) -> tuple[Failover, PlacementState]:
    """A placement that a replan places in the first of these ways that needs no machine that is away."""
    state = PlacementState(ENTRY, NOTHING, now, DESCRIBED, IdleTracker(), lambda: None)

    async def replan(without: frozenset[MachineId], _: Plan | None = None) -> list[Any]:
        fitting = [plan for plan in plans_of_others if not {stage.machine for stage in plan.stages} & without]
        return [(plan, DESCRIBED) for plan in fitting]

    return Failover(Placing(now), replan, state, 0), state  # type: ignore[arg-type]


async def test_a_machine_that_leaves_on_its_own_account_is_named_in_the_notice_of_the_move() -> None:
    """Its layers move by themselves, as if it had been lost."""
    made, state = moving(spread(ATTIC, sizes=[2, 4, 2]), spread(KITCHEN, sizes=[2, 4, 2]))
    await made.hand_over(frozenset({ATTIC.id}), lambda *_: None)
    await made.plan(frozenset({ATTIC.id}))
    await made.build()
    assert state.moved is not None
    assert (state.moved.why, state.moved.is_for_speed) == (Reason("layers_moved", {"machine": "attic"}), False)


@pytest.mark.parametrize(("lost", "moved"), [([], "recovery_joining"), ([KITCHEN], None), ([ATTIC, KITCHEN], "attic")])
async def test_a_move_to_a_machine_that_is_lost_meanwhile_is_not_told(lost: list[Any], moved: str | None) -> None:
    """Nothing has moved if the layers stay; a machine that is lost as well is named instead."""
    now, better = spread(ATTIC, sizes=[2, 4, 2]), spread(KITCHEN, sizes=[2, 4, 2])
    made, state = moving(now, now, spread(STUDY, sizes=[2, 4, 2]))
    state.record_move(0, Reason("recovery_joining"), 0.0, for_speed=True)
    made.intend((better, DESCRIBED), is_recorded=True)
    await made.plan(frozenset(machine.id for machine in lost))
    await made.build()
    assert (state.moved and (state.moved.why.facts.get("machine") or state.moved.why.code)) == moved


DIED = Reason("worker_died")


async def chosen(made: Failover) -> set[str]:
    """Return the machines chosen to hold layers now."""
    plan, _ = (await made.options(frozenset()))[0]
    return {stage.name for stage in plan.stages[1:-1]}


@pytest.mark.parametrize("has_other", [True, False])
async def test_who_failed_twice_is_planned_without_where_that_can_be(has_other: bool) -> None:
    """Neither a recovery nor a move for speed gives it layers back."""
    with_it, without_it = spread(ATTIC, sizes=[2, 4, 2]), spread(KITCHEN, sizes=[2, 4, 2])

    async def replan(without: frozenset[MachineId], _: Plan | None = None) -> list[Any]:
        if ATTIC.id not in without:
            return [(with_it, DESCRIBED)]
        if not has_other:
            raise DoesNotFit("memory_short", worker="all", cause="a test")
        return [(without_it, DESCRIBED)]

    made = Failover(NOTHING, replan, NOTHING, 0)
    loss = Loss(ATTIC.id, "attic", DIED, 0.0)
    made.failed(loss)
    assert await chosen(made) == {"attic"}
    made.failed(loss)
    assert await chosen(made) == ({"kitchen"} if has_other else {"attic"})


@pytest.mark.parametrize("fits", [True, False])
async def test_the_host_alone_is_asked_for_by_leaving_out_all_others(fits: bool) -> None:
    split, alone = spread(ATTIC, KITCHEN, sizes=[2, 2, 2, 2]), spread(sizes=[8])
    machines: list[frozenset[MachineId]] = []

    async def replan(without: frozenset[MachineId], _: Plan | None = None) -> list[Any]:
        machines.append(without)
        if not {ATTIC.id, KITCHEN.id} <= without:
            return [(split, DESCRIBED)]
        if not fits:
            raise DoesNotFit("memory_short", worker="all", cause="a test")
        return [(alone, DESCRIBED)]

    made = Failover(NOTHING, replan, NOTHING, 0)
    assert await made.can_host_alone() is fits
    assert made.intends is fits
    assert len(machines) == 2
