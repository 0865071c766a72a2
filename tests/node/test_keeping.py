"""Several pipelines of one placement: where a split of them goes when it loses a machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from app.core.errors import StageLost, Unreachable
from app.core.ids import MachineId
from app.core.plan import Plan, Shape, Workload, plan
from app.inference.pipeline import Pipeline
from app.inference.replicas import Replicas
from app.node import keeping
from app.node.keeping import Anew, Keeper
from app.node.opening import Opener
from app.node.placing import Placing
from app.node.rebuilding import Option, Rebuilding
from tests.core.households import MIB, machine, model
from tests.inference.pool import pool

HOST, ATTIC, SHED = (machine(name, 4000, None) for name in ("den", "attic", "shed"))
MODEL = model([100 * MIB] * 8)
WORK = Workload(256, users=2)
MIXED = plan(HOST, [ATTIC, SHED], MODEL, WORK, [2, 4, 2], shapes=frozenset({Shape.REPLICAS}))
ALONE = plan(HOST, [], MODEL, WORK)


@dataclass
class Opened:
    """In place of an opener: pipelines of fake engines, and how each would be placed anew."""

    parts: list[Plan] = field(default_factory=list)
    rebuilders: list[Rebuilding] = field(default_factory=list)

    async def open(
        self, part: Plan, stack: AsyncExitStack, rebuilding: Callable[[Placing], Rebuilding]
    ) -> Pipeline:
        self.parts.append(part)
        self.rebuilders.append(rebuilding(cast("Placing", None)))
        return (await stack.enter_async_context(pool(8))).pipeline


@dataclass
class Scene:
    """A keeper of a split beside a whole one, whose split can only go to this machine alone."""

    opened: Opened = field(default_factory=Opened)
    replicas: Replicas = field(default_factory=Replicas)
    without: list[frozenset[MachineId]] = field(default_factory=list)
    moves: list[tuple[int, Plan]] = field(default_factory=list)

    async def replan(self, without: frozenset[MachineId]) -> list[Option]:
        self.without.append(without)
        return [(ALONE, {})]

    def keeper(self) -> Keeper:
        def only(_: Placing) -> Rebuilding:
            raise AssertionError("there are two")

        anew = Anew(only, self.replan, lambda place, part: self.moves.append((place, part)))
        opener = cast("Opener", self.opened)
        return Keeper(MIXED, {}, opener, self.replicas, anew, lambda: None)


async def until(so: Callable[[], Any]) -> None:
    async with asyncio.timeout(10):
        while not so():  # noqa: ASYNC110  nobody tells
            await asyncio.sleep(0.01)


async def test_under_answers_a_split_goes_to_machines_that_no_other_pipeline_has() -> None:
    scene = Scene()
    keeper = scene.keeper()
    async with asyncio.TaskGroup() as group:
        await keeper.begin(group)
        split, whole = scene.opened.rebuilders
        [(found, _)] = await split.options(frozenset({ATTIC.id}))
        assert scene.without == [{ATTIC.id, SHED.id}]
        assert found is ALONE
        with pytest.raises(Unreachable):  # a whole one is there again, or its answers go elsewhere
            await whole.options(frozenset({SHED.id}))
        split._replaced(ALONE, {})
        assert scene.moves == [(0, ALONE)]
        assert [one.machines for one in scene.replicas.held] == [{HOST.id}, {SHED.id}]
        keeper.end()


async def test_a_split_that_was_lost_is_opened_again_where_it_can_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(keeping, "LEAST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(keeping, "LONGEST_PAUSE_SECONDS", 0.02)
    scene = Scene()
    keeper = scene.keeper()
    async with asyncio.TaskGroup() as group:
        await keeper.begin(group)
        scene.replicas.held[0].pipeline.end(StageLost("stage_lost", machine="attic"))
        await until(lambda: keeper.is_lost(ATTIC.id))
        assert keeper.is_lost(HOST.id)
        assert not keeper.is_lost(SHED.id)
        await until(lambda: len(scene.opened.parts) == 3)
        assert scene.opened.parts[2] is ALONE
        assert scene.without == [{SHED.id}]
        await until(lambda: scene.replicas.n_serving == 2)
        assert not keeper.is_lost(HOST.id)
        keeper.end()
