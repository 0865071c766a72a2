"""Several pipelines of one placement: where a split of them goes when it loses a machine."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from app.api import plans, requests
from app.core.errors import StageLost, Unreachable
from app.core.ids import MachineId
from app.core.planner.placement import Candidate, Plan, PlannedStage, Topology, Workload
from app.core.planner.placement_change import plans_keeping_runs
from app.core.planner.plan import plan
from app.core.recovery.recovery import Loss
from app.inference.pipeline.pipeline import Pipeline
from app.inference.pipeline.replica_set import ReplicaSet
from app.inference.stages.stage_client import StageClient
from app.node.placement import replica_supervisor, standby
from app.node.placement.failover import Failover, Option, Replan
from app.node.placement.placement_state import IdleTracker, PlacementState
from app.node.placement.replica_supervisor import PipelineOpener, ReplicaSupervisor
from app.node.placement.stages import Reservation, StageSet
from testbed.households import MIB, machine, model
from tests.inference.pool import pool

DESCRIBED = plans.Plan(model="made")

HOST, ATTIC, SHED = (machine(name, 4000, None) for name in ("den", "attic", "shed"))
MODEL = model([100 * MIB] * 8)
ENTRY: Any = SimpleNamespace(model=MODEL)
ORDER = requests.LoadModel(model="m", split=[2, 4, 2])
WORK = Workload(256, users=2)
MIXED = plan(HOST, [ATTIC, SHED], MODEL, WORK, [2, 4, 2], topologies=frozenset({Topology.REPLICAS}))
ALONE = plan(HOST, [], MODEL, WORK)
LONG_AGO = -1e6  # by the monotonic clock


async def nothing_goes(_: Plan) -> None:
    """Free nothing, as there is room."""


@dataclass
class Placed:
    """A stand-in for the code that opens stages, which records the requests."""

    prepared: list[PlannedStage] = field(default_factory=list)
    opened: list[Plan] = field(default_factory=list)
    reservation: Reservation = field(default_factory=lambda: Reservation(nothing_goes))
    claimed: Plan | None = None

    def stages_to_load(self, result: Plan) -> list[PlannedStage]:
        return list(result.stages)

    def was_sent(self, stage: PlannedStage) -> bool:
        return stage in self.prepared

    async def prepare(self, stage: PlannedStage, *, load: bool) -> None:
        self.prepared.append(stage)

    async def open(self, result: Plan) -> list[StageClient]:
        self.opened.append(result)
        return []


@dataclass
class Opened:
    """A stand-in for an opener, with pipelines of fake engines and their replacements."""

    state: PlacementState
    parts: list[Plan] = field(default_factory=list)
    rebuilders: list[Failover] = field(default_factory=list)
    placed: Placed = field(default_factory=Placed)

    async def open(self, place: int, stack: AsyncExitStack, replan: Replan) -> tuple[Pipeline, Failover]:
        self.parts.append(self.state.part(place))
        stage_set = cast("StageSet", self.placed)
        self.rebuilders.append(Failover(stage_set, replan, self.state, place))
        return (await stack.enter_async_context(pool(8))).pipeline, self.rebuilders[-1]


@dataclass
class Scene:
    """A keeper of a split beside a whole one, whose split can only go to this machine alone."""

    without: list[frozenset[MachineId]] = field(default_factory=list)
    there: list[Candidate] = field(default_factory=list)
    state: PlacementState = field(
        default_factory=lambda: PlacementState(ENTRY, ORDER, MIXED, DESCRIBED, IdleTracker(), lambda: None)
    )
    opened: Opened = field(init=False)
    last_request_s: float | None = None  # None: just now, so it is not quiet

    def __post_init__(self) -> None:
        self.opened = Opened(self.state)
        self.state.placed_s = LONG_AGO
        if self.last_request_s is not None:
            self.state.made_s = self.state.idle.since_s = self.last_request_s

    @property
    def replicas(self) -> ReplicaSet:
        return self.state.pipelines

    async def replan(self, without: frozenset[MachineId], part: Plan | None = None, /) -> list[Option]:
        self.without.append(without)
        assert part is not None
        there = [candidate for candidate in self.there if candidate.id not in without]
        best = plan(HOST, there, MODEL, WORK, [2, 4, 2] if there else None)
        return [(result, DESCRIBED) for result in (best, *plans_keeping_runs(part, best, MODEL))]

    def keeper(self) -> ReplicaSupervisor:
        return ReplicaSupervisor(self.state, cast("PipelineOpener", self.opened), self.replan, lambda: None)


async def until(so: Callable[[], Any]) -> None:
    async with asyncio.timeout(60):
        while not so():  # noqa: ASYNC110  nobody tells
            await asyncio.sleep(0.01)


async def test_under_answers_a_split_goes_to_machines_that_no_other_pipeline_has() -> None:
    scene = Scene()
    keeper = scene.keeper()
    async with asyncio.TaskGroup() as group:
        await keeper.begin(group)
        split, whole = scene.opened.rebuilders
        [(result, _)] = await split.options(frozenset({ATTIC.id}))
        assert scene.without == [{ATTIC.id, SHED.id}]
        assert result.stages == ALONE.stages
        with pytest.raises(Unreachable):  # a whole one is there again, or its answers go elsewhere
            await whole.options(frozenset({SHED.id}))
        scene.state.place(0, ALONE, DESCRIBED)
        assert scene.state.part(0) == ALONE
        assert [replica.machines for replica in scene.replicas.held] == [{HOST.id}, {SHED.id}]
        keeper.end()


async def test_a_split_that_was_lost_is_opened_again_where_it_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica_supervisor, "LEAST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(replica_supervisor, "LONGEST_PAUSE_SECONDS", 0.02)
    scene = Scene()
    keeper = scene.keeper()
    async with asyncio.TaskGroup() as group:
        await keeper.begin(group)
        scene.replicas.held[0].pipeline.end(StageLost("stage_lost", machine="attic"))
        await until(lambda: keeper.is_lost(ATTIC.id))
        assert keeper.is_lost(HOST.id)
        assert not keeper.is_lost(SHED.id)
        await until(lambda: len(scene.opened.parts) == 3)
        assert scene.opened.parts[2].stages == ALONE.stages
        assert scene.without == [{SHED.id}]
        await until(lambda: scene.replicas.n_serving == 2)
        assert not keeper.is_lost(HOST.id)
        keeper.end()


@asynccontextmanager
async def shrunk(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Failover, list[Loss]]]:
    """Its split went to the host alone, and attic has come back; how it is placed anew, and why it breaks off."""
    monkeypatch.setattr(standby, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(standby, "LEAST_BETWEEN_SECONDS", 0.0)
    keeper, why = scene.keeper(), list[Loss]()
    async with asyncio.TaskGroup() as group:
        await keeper.begin(group)
        split = scene.opened.rebuilders[0]
        monkeypatch.setattr(scene.replicas.held[0].pipeline, "break_off", why.append)
        placed_s = scene.state.placed_s
        scene.state.place(0, ALONE, DESCRIBED)
        scene.state.placed_s = placed_s
        scene.there = [ATTIC, SHED]
        scene.state.household_changed()
        yield split, why
        keeper.end()


async def test_a_split_grows_back_when_its_machine_returns_and_nobody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its layers lie there before anything is let go; the whole replica keeps its own machine."""
    scene = Scene(last_request_s=LONG_AGO)
    async with shrunk(scene, monkeypatch) as (split, why):
        await until(lambda: why)
        assert [(loss.machine, loss.why.code, loss.is_gone) for loss in why] == [("", "recovery_joining", False)]
        assert [(stage.machine, len(stage.layers)) for stage in scene.opened.placed.prepared] == [(ATTIC.id, 4)]
        assert split.is_needed()  # else a pipeline that nobody asks would end here
        await split.plan(frozenset())
        assert not split.is_needed()
        await split.build()
        assert [len(stage.layers) for stage in scene.state.part(0).stages] == [2, 4, 2]
        assert [replica.machines for replica in scene.replicas.held] == [{HOST.id, ATTIC.id}, {SHED.id}]
        scene.state.household_changed()
        await asyncio.sleep(0.1)
        assert len(why) == 1  # as it was ordered: nothing more to go to


@pytest.mark.parametrize("cause", ["somebody asks", "placed just now", "not clearly better"])
async def test_a_split_stays_small(monkeypatch: pytest.MonkeyPatch, cause: str) -> None:
    scene = Scene() if cause == "somebody asks" else Scene(last_request_s=LONG_AGO)
    if cause == "placed just now":
        scene.state.placed_s = time.monotonic()
    if cause == "not clearly better":
        scene.state.order = requests.LoadModel(model="m")  # nobody ordered a split, and nothing was measured
    async with shrunk(scene, monkeypatch) as (_, why):
        await asyncio.sleep(0.2)
        assert why == []
        assert scene.opened.placed.prepared == []
