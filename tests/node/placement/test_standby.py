"""Tests of preparing for a possible loss, and for a machine that returned: only while nobody asks."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from app.api import plans, requests
from app.core.errors import BadInput, DoesNotFit, Reason, StageLost
from app.core.ids import MachineId
from app.core.planner.placement import Candidate, Plan, PlannedStage, Workload
from app.core.planner.placement_change import MOVED_S, QUIET_S, SETTLED_S, plans_keeping_runs
from app.core.planner.plan import plan
from app.core.recovery.recovery import Loss
from app.node.placement import standby
from app.node.placement.failover import describe_move
from app.node.placement.placement_state import IdleTracker, PlacementState
from app.node.placement.standby import LEAST_BETWEEN_SECONDS, StandbyManager
from testbed.households import MIB, link, machine, model, speed

DESCRIBED = plans.Plan(model="made")

WORK, MODEL = Workload(context=1024), model([100 * MIB] * 8)
ENTRY: Any = SimpleNamespace(model=MODEL, name="m")
DEN = machine("den", 1600, speed(0.002))
ATTIC, KITCHEN, STUDY = (machine(name, 1600, speed(0.002), link()) for name in ("attic", "kitchen", "study"))
SLOW = machine("slow", 1600, speed(0.02), link())
Option = tuple[Plan, plans.Plan]


def spread(*lenders: Candidate, sizes: Sequence[int]) -> Plan:
    return plan(DEN, lenders, MODEL, WORK, list(sizes))


class Scene(PlacementState):
    """A placement, and what is asked of whoever can place it anew, and of its pipeline."""

    def __init__(self, now: Plan, *lenders: Candidate, split: list[int] | None = None) -> None:
        super().__init__(ENTRY, requests.LoadModel(model="m", split=split), now, DESCRIBED, IdleTracker(), self.note)
        self.lenders = lenders
        self.clock_s = self.asked_at_s = self.placed_s = 1000.0
        self.went: list[Plan] = []
        self.steps: dict[MachineId, float] = {}
        self.told: list[MachineId | None] = []  # that this one is replaced, or none any more
        self.prepared: list[tuple[str, bool]] = []
        self.verifier: Any = None  # of samples
        self.failed: frozenset[MachineId] = frozenset()  # again and again
        self.ahead = StandbyManager(self, 0, self, self, lambda: self.clock_s)  # type: ignore[arg-type]

    def steps_s(self) -> dict[MachineId, float]:
        return self.steps

    def note(self) -> None:
        self.told.append(next(iter(self.replaced), None))

    @property
    def last_request_s(self) -> float:
        return self.asked_at_s

    def looked(self, **steps: float) -> Scene:
        self.steps = {MachineId(f"{name:0>64}"): step_s for name, step_s in steps.items()}
        self.ahead._slow_machines.update(self.steps, self.placed_s, self.clock_s)
        return self

    def intend(self, option: Option, *, is_recorded: bool) -> None:
        assert is_recorded
        self.went.append(option[0])

    def break_off(self, loss: Loss) -> None:
        self.is_moving = False  # at once

    def left_out(self) -> frozenset[MachineId]:
        return self.failed

    async def options(self, without: frozenset[MachineId], like: Plan | None = None) -> list[Option]:
        there = [lender for lender in self.lenders if lender.id not in without]
        sizes = split if (split := self.order.split) and len(split) - 2 <= len(there) else None
        best = plan(DEN, there, MODEL, WORK, sizes)
        return [(result, DESCRIBED) for result in (best, *plans_keeping_runs(like or self.plan, best, MODEL))]

    async def soonest(self, without: frozenset[MachineId]) -> Option:
        return (await self.options(without))[-1]

    async def like(self, before: Plan) -> Option | None:
        options = await self.options(frozenset(), before)
        return next((option for option in options if option[0].stages == before.stages), None)

    def missing(self, result: Plan) -> list[PlannedStage]:
        held = {(stage.machine, stage.layers) for stage in self.plan.stages}
        return [stage for stage in result.stages[1:-1] if (stage.machine, stage.layers) not in held]

    async def prepare(self, result: Plan, only: PlannedStage | None = None, *, load: bool = True) -> None:
        for stage in [only] if only else self.missing(result):
            run = f"{stage.name} {stage.layers.first}-{stage.layers.last}"
            self.prepared.append((run, load))

    def waits(self, seconds: float) -> Scene:
        self.clock_s += seconds
        return self


async def test_each_lenders_layers_are_placed_ahead_on_a_spare_machine() -> None:
    now = spread(ATTIC, KITCHEN, sizes=[2, 2, 2, 2])
    scene = Scene(now, ATTIC, KITCHEN, STUDY, split=[2, 2, 2, 2])
    await scene.ahead.improve()
    assert sorted(scene.prepared) == [("study 2-4", True), ("study 4-6", True)]
    assert scene.went == []


async def test_the_others_are_covered_while_one_is_slow_and_while_one_cannot_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Slow is better than not at all; and what fits nowhere keeps nothing else from being covered."""
    now = spread(ATTIC, KITCHEN, sizes=[2, 2, 2, 2])
    scene = Scene(now, ATTIC, KITCHEN, STUDY, split=[2, 2, 2, 2])
    scene.ahead._slow_machines._slow = {STUDY.id: (scene.clock_s, 9.0)}
    soonest = scene.soonest

    async def picky(without: frozenset[MachineId]) -> Option:
        if STUDY.id in without or ATTIC.id in without:
            raise DoesNotFit("nothing_fits")
        return await soonest(without)

    monkeypatch.setattr(scene, "soonest", picky)
    await scene.ahead.improve()
    assert scene.prepared == [("study 4-6", True)]


async def test_where_memory_is_scarce_the_disk_alone_is_taken() -> None:
    little = machine("study", 400, speed(0.002), link())
    now = spread(ATTIC, KITCHEN, sizes=[2, 2, 2, 2])
    scene = Scene(now, ATTIC, KITCHEN, little, split=[2, 2, 2, 2])
    await scene.ahead.improve()
    assert {load for _, load in scene.prepared} == {False}


async def test_a_machine_that_came_back_is_used_again_once_it_is_quiet() -> None:
    scene = Scene(spread(SLOW, sizes=[1, 6, 1]), ATTIC, SLOW)
    for seconds, moves in ((0.0, 0), (QUIET_S, 0), (SETTLED_S, 1)):
        scene.waits(seconds)
        await scene.ahead.improve()
        assert len(scene.went) == moves
    [better] = scene.went
    assert "attic" in {stage.name for stage in better.stages}
    assert any(run.startswith("attic") for run, _ in scene.prepared)  # before anything is let go


async def test_a_machine_that_became_far_slower_is_replaced_once_it_is_quiet() -> None:
    """Told while it is, and not gone back to as soon as it is no more part of the placement."""
    now = spread(ATTIC, sizes=[1, 6, 1])
    scene = Scene(now, ATTIC, KITCHEN).looked(den=0.02, attic=0.06)
    scene.looked(den=0.02, attic=0.6)
    await scene.waits(QUIET_S).ahead.improve()
    assert scene.went == []  # its layers came just now
    await scene.waits(SETTLED_S).ahead.improve()
    [better] = scene.went
    assert {stage.name for stage in better.stages} == {"den", "kitchen"}
    assert {machine for machine in scene.told if machine} == {ATTIC.id}
    assert scene.told[-1] is None
    assert any(run.startswith("kitchen") for run, _ in scene.prepared)  # before anything is let go
    scene.plan, scene.placed_s = better, scene.clock_s
    scene.looked(den=0.02, kitchen=0.06)
    await scene.waits(SETTLED_S).ahead.improve()
    assert len(scene.went) == 1


async def test_a_slow_machine_is_borne_where_the_others_are_worse_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "DEN", machine("den", 600, speed(0.002)))  # too small for all
    now = spread(ATTIC, sizes=[1, 6, 1])
    slower = machine("kitchen", 1600, speed(0.2), link())
    for candidates in ([slower], []):
        scene = Scene(now, ATTIC, *candidates).looked(den=0.02, attic=0.06)
        scene.looked(den=0.02, attic=0.36)
        assert await scene.waits(SETTLED_S).ahead._without_slow() is None
        assert not any(scene.told)


async def test_after_a_move_the_layers_stay_for_some_minutes() -> None:
    """Two machines that take turns in being faster do not make the layers go back and forth."""
    scene = Scene(spread(SLOW, sizes=[1, 6, 1]), ATTIC, SLOW)
    await scene.waits(SETTLED_S).ahead.improve()
    assert len(scene.went) == 1
    scene.plan, scene.placed_s, scene.is_moving = spread(SLOW, sizes=[1, 6, 1]), scene.clock_s, False
    await scene.waits(MOVED_S - 1).ahead.improve()
    assert len(scene.went) == 1
    await scene.waits(1).ahead.improve()
    assert len(scene.went) == 2


async def undone(scene: Scene) -> Scene:
    """The scene after a move by itself that the user does not want."""
    before = scene.plan
    await scene.waits(SETTLED_S).ahead.improve()
    assert scene.moved is not None
    assert scene.moved.before is before
    scene.plan, scene.placed_s = scene.went[-1], scene.clock_s
    scene.undo_move()
    await scene.waits(LEAST_BETWEEN_SECONDS).ahead.run_due_work()
    return scene


async def test_a_move_is_told_with_its_reason_and_can_be_undone() -> None:
    scene = Scene(before := spread(SLOW, sizes=[1, 6, 1]), ATTIC, SLOW)
    scene = await undone(scene)
    assert [stage.name for stage in scene.went[-1].stages] == [stage.name for stage in before.stages]
    assert scene.moved is None
    scene.plan, scene.placed_s = scene.went[-1], scene.clock_s
    await scene.waits(MOVED_S + SETTLED_S).ahead.improve()  # the faster machine is still there
    assert len(scene.went) == 2
    with pytest.raises(BadInput, match="move_none"):
        scene.undo_move()


async def test_what_cannot_be_undone_says_so() -> None:
    """The machine that held the layers has gone in the meantime."""
    scene = Scene(spread(SLOW, sizes=[1, 6, 1]), ATTIC, SLOW)
    await scene.waits(SETTLED_S).ahead.improve()
    scene.plan, scene.placed_s, scene.lenders = scene.went[-1], scene.clock_s, (ATTIC,)
    assert describe_move(scene.moved).undoable  # type: ignore[arg-type]
    scene.undo_move()
    assert describe_move(scene.moved).undoing  # type: ignore[arg-type]
    await scene.waits(LEAST_BETWEEN_SECONDS).ahead.run_due_work()
    assert len(scene.went) == 1
    assert scene.moved is not None
    described = describe_move(scene.moved)
    assert (described.undoable, described.undoing) == (False, False)
    assert described.problem is not None
    assert described.problem.startswith("The layers could not be moved back")


async def test_an_undo_that_fails_blames_no_later_move() -> None:
    """Another pipeline has moved in the meantime."""
    scene = Scene(spread(SLOW, sizes=[1, 6, 1]), ATTIC, SLOW)
    scene.record_move(0, Reason("recovery_joining"), 0.0, for_speed=True)
    scene.undo_move()
    scene.moved = replace(scene.moved, place=1)  # type: ignore[type-var]
    await scene.waits(LEAST_BETWEEN_SECONDS).ahead.run_due_work()
    assert scene.went == []  # that pipeline does it itself
    scene.record_move(0, later := Reason("layers_moved", {"machine": "attic"}), 0.0, for_speed=False)
    scene.refuse_undo(Reason("move_stays"))
    assert (scene.moved.why, scene.moved.problem) == (later, None)  # type: ignore[union-attr]
    scene.forget_move(1)
    assert scene.moved is not None


async def test_a_split_given_by_hand_is_kept_though_a_machine_is_slow() -> None:
    """Only another machine that takes as many layers replaces it."""
    for lenders, moves in (((ATTIC,), 0), ((ATTIC, KITCHEN), 1)):
        scene = Scene(spread(ATTIC, sizes=[1, 6, 1]), *lenders, split=[1, 6, 1]).looked(den=0.02, attic=0.06)
        scene.looked(den=0.02, attic=0.6)
        await scene.waits(SETTLED_S).ahead.improve()
        assert [[len(stage.layers) for stage in went.stages] for went in scene.went] == [[1, 6, 1]] * moves


async def test_nothing_is_moved_for_little_or_for_what_is_not_known() -> None:
    best = plan(DEN, [ATTIC, KITCHEN], MODEL, WORK)
    scene = Scene(best, ATTIC, KITCHEN).waits(SETTLED_S)
    await scene.ahead.improve()
    unknown = [machine(name, 1600, None) for name in ("attic", "kitchen")]
    scene_unknown = Scene(spread(*unknown[:1], sizes=[1, 6, 1]), *unknown).waits(SETTLED_S)
    await scene_unknown.ahead.improve()
    assert scene.went == scene_unknown.went == []


async def test_a_split_that_was_ordered_is_gone_back_to() -> None:
    scene = Scene(spread(KITCHEN, sizes=[1, 6, 1]), ATTIC, KITCHEN, split=[2, 2, 2, 2])
    await scene.waits(SETTLED_S).ahead.improve()
    assert [[len(stage.layers) for stage in result.stages] for result in scene.went] == [[2, 2, 2, 2]]


async def test_it_looks_when_something_is_new_and_nobody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standby, "LOOK_SECONDS", 0.01)
    now = spread(ATTIC, KITCHEN, sizes=[2, 2, 2, 2])
    scene = Scene(now, ATTIC, KITCHEN, STUDY, split=[2, 2, 2, 2])
    async with asyncio.TaskGroup() as group:
        task = group.create_task(scene.ahead.run())
        await asyncio.sleep(0.1)
        assert scene.prepared == []  # somebody asked just now
        scene.waits(QUIET_S)
        await until(lambda: len(scene.prepared) == 2)
        scene.waits(LEAST_BETWEEN_SECONDS)
        await asyncio.sleep(0.1)
        assert len(scene.prepared) == 2  # nothing is new
        scene.n_changes += 1
        await until(lambda: len(scene.prepared) == 4)
        task.cancel()


async def test_a_question_ends_it_and_it_is_taken_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standby, "LOOK_SECONDS", 0.01)
    now = spread(ATTIC, KITCHEN, sizes=[2, 2, 2, 2])
    scene = Scene(now, ATTIC, KITCHEN, STUDY, split=[2, 2, 2, 2]).waits(QUIET_S)
    begun: list[bool] = []

    async def slow(*_: Any, **__: Any) -> None:
        begun.append(True)
        await asyncio.sleep(60 if len(begun) == 1 else 0)

    monkeypatch.setattr(scene, "prepare", slow)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(scene.ahead.run())
        await until(lambda: bool(begun))
        scene.busy.set()
        scene.asked_at_s = scene.waits(LEAST_BETWEEN_SECONDS).clock_s
        await asyncio.sleep(0.1)
        assert len(begun) == 1
        scene.busy.clear()
        scene.waits(QUIET_S)
        await until(lambda: len(begun) == 3)
        task.cancel()


async def test_what_was_refused_is_tried_again_and_keeps_nothing_else_from_being_covered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Though nothing is new: a machine need not say that it has memory again. Less and less often."""
    now = spread(ATTIC, KITCHEN, sizes=[2, 2, 2, 2])
    scene = Scene(now, ATTIC, KITCHEN, STUDY, split=[2, 2, 2, 2]).waits(SETTLED_S)
    prepare, tries = scene.prepare, list[float]()

    async def refused(result: Plan, only: PlannedStage | None = None, **how: bool) -> None:
        if only is not None and only.layers.first == 2 and len(tries) < 3:
            tries.append(scene.clock_s)
            raise StageLost("stage_unreachable", machine="study")
        await prepare(result, only, **how)

    monkeypatch.setattr(scene, "prepare", refused)
    for _ in range(20):
        await scene.waits(LEAST_BETWEEN_SECONDS).ahead.run_due_work()
        assert ("study 4-6", True) in scene.prepared
    assert [after - before for before, after in pairwise(tries)] == [30.0, 60.0]
    assert scene.prepared.count(("study 2-4", True)) == 1  # then it rests


async def test_what_fits_nowhere_else_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standby, "LOOK_SECONDS", 0.01)
    scene = Scene(spread(ATTIC, sizes=[1, 6, 1]), ATTIC).waits(QUIET_S)
    n_tries: list[int] = []

    async def none(*_: Any) -> Any:
        n_tries.append(1)
        raise DoesNotFit("memory_short", worker="all", cause="a test")

    monkeypatch.setattr(scene, "soonest", none)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(scene.ahead.run())
        await until(lambda: bool(n_tries))
        await asyncio.sleep(0.05)
        assert not task.done()
        task.cancel()


async def until(holds: Any) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110  seen from outside
            await asyncio.sleep(0.01)


class Checking:
    """A stand-in for app/node/verification/verifier.py: the doubted machines, and whether a sample waits."""

    def __init__(self, *quarantine: MachineId, is_due: bool = False) -> None:
        self.quarantine, self.is_due, self.looked = set(quarantine), is_due, 0
        self.begun = asyncio.Event()
        self.until = asyncio.Event()

    async def check_oldest(self, plan: Plan) -> None:
        self.begun.set()
        await self.until.wait()
        self.looked += 1
        self.is_due = False


async def test_a_machine_whose_numbers_were_wrong_is_replaced_without_waiting_for_a_better_speed() -> None:
    now = spread(ATTIC, sizes=[1, 6, 1])
    scene = Scene(now, KITCHEN)  # the planner has left it out already
    scene.verifier = Checking(ATTIC.id)
    await scene.ahead.improve()
    [right] = scene.went
    assert {stage.name for stage in right.stages} == {"den", "kitchen"}
    assert any(run.startswith("kitchen") for run, _ in scene.prepared)  # before anything is let go


async def test_where_nobody_can_replace_it_the_placement_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(spread(ATTIC, sizes=[1, 6, 1]))
    scene.verifier = Checking(ATTIC.id)

    async def short(_: frozenset[MachineId]) -> Any:
        raise DoesNotFit("nothing_fits")

    monkeypatch.setattr(scene, "soonest", short)
    await scene.ahead.improve()
    assert scene.went == []


async def test_a_doubted_machine_is_tried_to_be_replaced_until_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """The replacement is retried at the usual intervals, even if nothing else is new."""
    monkeypatch.setattr(standby, "LOOK_SECONDS", 0.005)
    scene = Scene(spread(ATTIC, sizes=[1, 6, 1]), KITCHEN).waits(QUIET_S)
    scene.verifier, prepare, n_tries = Checking(ATTIC.id), scene.prepare, 0

    async def fails_first(*args: Any, **how: Any) -> None:
        nonlocal n_tries
        n_tries += 1
        if n_tries == 1:
            raise StageLost("stage_unreachable", machine="kitchen")
        await prepare(*args, **how)

    monkeypatch.setattr(scene, "prepare", fails_first)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(scene.ahead.run(), name="ahead")
        await until(lambda: n_tries == 1)
        await asyncio.sleep(0.05)
        assert (n_tries, scene.went) == (1, [])
        scene.waits(LEAST_BETWEEN_SECONDS)
        await until(lambda: scene.went)
        task.cancel()


async def test_a_machine_that_is_used_again_meanwhile_is_not_moved_away_from(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(spread(ATTIC, sizes=[1, 6, 1]), KITCHEN)
    checks = scene.verifier = Checking(ATTIC.id)

    async def used_again(*_: Any, **__: Any) -> None:
        checks.quarantine.clear()

    monkeypatch.setattr(scene, "prepare", used_again)
    await scene.ahead.improve()
    assert scene.went == []


async def test_a_question_ends_a_check_at_once_and_waits_for_none_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The order of events, not their times: asked, answered, and only then is the check done, another time."""
    monkeypatch.setattr(standby, "LOOK_SECONDS", 0.005)
    scene = Scene(spread(ATTIC, sizes=[1, 6, 1]), ATTIC)
    checks = scene.verifier = Checking(is_due=True)
    scene.ahead._seen = (0, True, frozenset())
    scene.asked_at_s = scene.clock_s - QUIET_S
    scene.placed_s = scene.clock_s - SETTLED_S
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        running = group.create_task(scene.ahead.run(), name="ahead")
        await checks.begun.wait()
        scene.asked_at_s = scene.clock_s  # somebody asks; what is answered needs nothing of the check
        scene.busy.set()
        await asyncio.sleep(0.05)
        assert (checks.looked, checks.is_due) == (0, True)
        checks.begun.clear()
        scene.busy.clear()  # it was answered
        await asyncio.sleep(0.05)
        assert not checks.begun.is_set()  # not so soon after an answer
        scene.clock_s += QUIET_S
        checks.until.set()
        await checks.begun.wait()
        running.cancel()
    assert checks.looked == 1
