"""Layers that lie ahead of a loss are given up where another model needs their memory, and only there."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any, cast

import pytest

from app.api import requests
from app.core.planner.placement import Candidate, Plan
from app.inference.stages.stage_client import Run, StageClient
from app.node.models.model_manager import ModelManager
from app.node.placement.stages import OpenRun, StageSet, _key
from tests.node.models.test_model_manager import ATTIC, Scene, hosting, load, scene, shelf
from tests.node.placement.test_stages import Lender, Place, place

__all__ = ["hosting", "place", "scene", "shelf"]  # fixtures


def laid_ahead(stage_set: StageSet, plan: Plan, closed: list[str]) -> None:
    """These stages are loaded, as far as it knows."""
    for stage in plan.stages:
        closing = AsyncExitStack()
        closing.callback(closed.append, f"{stage.name} {stage.layers.first}")
        client = cast("StageClient", type("Client", (), {"lost": None}))
        stage_set._held[_key(stage)] = OpenRun(stage, cast("Run", None), "", client, closing)


async def test_only_what_lies_ahead_there_is_given_up(place: Place) -> None:
    serving, ahead = place.plan(1, 2, 1), place.plan(1, 1, 2)
    closed: list[str] = []
    async with AsyncExitStack() as stack:
        stage_set = place.stage_set(Lender(), stack)
        for item in (serving, ahead):
            laid_ahead(stage_set, item, closed)
        assert [item.machine for item in stage_set.standby(serving)] == [ATTIC]
        await stage_set.close_standby(serving, {ATTIC})
        assert closed == ["attic 1"]
        assert not stage_set.standby(serving)
        assert not stage_set._hurry.is_set()


async def test_what_this_machine_goes_over_from_is_no_spare(place: Place) -> None:
    """A model that goes on here alone still holds its ends for a moment, and has its whole claimed: who counted them
    as spare would plan on memory that is not there."""
    async with AsyncExitStack() as stack:
        stage_set = place.stage_set(Lender(), stack)
        laid_ahead(stage_set, before := place.plan(1, 2, 1), [])
        over = replace(before, stages=())
        assert [item.machine for item in stage_set.standby(over)] == [ATTIC]


async def test_it_waits_for_nothing_that_is_done_ahead(place: Place) -> None:
    serving, begun = place.plan(1, 2, 1), asyncio.Event()
    async with AsyncExitStack() as stack:
        stage_set = place.stage_set(Lender(), stack)

        async def slow(*_: Any) -> None:
            begun.set()
            await asyncio.sleep(60)

        stage_set._prepare = slow  # type: ignore[assignment, method-assign]
        async with asyncio.TaskGroup() as group:
            ahead = group.create_task(prepared(stage_set, serving), name="standby")
            await begun.wait()
            async with asyncio.timeout(30):
                await stage_set.close_standby(serving, {ATTIC})
        assert ahead.result() == "pipeline_closed"


async def test_nothing_is_done_ahead_while_the_layers_of_another_model_move(
    hosting: ModelManager, place: Place
) -> None:
    """This holds even if nobody requested the move, as when it returns to a machine that came back."""
    await load(hosting, "one")
    await load(hosting, "two", beside=True)
    item, two = hosting.loaded
    rested_s, waited = two.last_request_s, list[bool]()

    async def moves(_: Plan) -> None:
        waited.append(two.state.busy.is_set() and two.last_request_s > rested_s)

    async with AsyncExitStack() as stack:
        stage_set = place.stage_set(Lender(), stack)
        stage_set.reservation = replace(hosting.memory.reservation_for(item, hosting.embeddings.make_room), make=moves)
        await stage_set.open(replace(place.plan(1, 2, 1), stages=()))
    assert waited == [True]
    assert not two.state.busy.is_set()
    assert two.last_request_s == rested_s  # nobody has asked: what waited goes on at once


async def prepared(stage_set: StageSet, plan: Plan) -> str:
    with pytest.raises(Exception, match="pipeline_closed"):
        await stage_set.prepare(plan.stages[1])
    return "pipeline_closed"


@pytest.mark.parametrize("room", ["none beside", "enough beside"])
async def test_a_load_counts_what_lies_ahead_and_takes_it_where_it_must(
    hosting: ModelManager, scene: Scene, place: Place, room: str
) -> None:
    await load(hosting, "one")
    [loaded] = hosting.loaded
    closed: list[str] = []
    async with AsyncExitStack() as stack:
        stage_set = place.stage_set(Lender(), stack)
        laid_ahead(stage_set, place.plan(1, 2, 1), closed)
        loaded.claims.stage_sets.append(stage_set)
        spare = sum(stage.total_bytes for stage in stage_set.standby(loaded.plan) if stage.machine == ATTIC)
        assert spare > 0
        order = requests.LoadModel(model="two", split=[1, 2, 1], beside=True)
        await hosting.plan(order, lambda _: None)
        assert scene.released[-1][ATTIC] == spare
        needs = await hosting.plan(order, lambda _: None)
        of_attic = next(m.needs_bytes for m in needs.machines if m.id == ATTIC)
        scene.attic = Candidate(ATTIC, "attic", of_attic + (spare if room[0] == "e" else 0))
        assert await load(hosting, "two", split=[1, 2, 1], beside=True) == "loaded"
        two = hosting.loaded.by_id(hosting.loaded.ids[-1])
        assert two is not None
        await hosting.memory.reservation_for(two, hosting.embeddings.make_room).make(
            two.plan
        )  # as its placing does before it opens
        assert closed == ([] if room[0] == "e" else ["attic 1"])
        loaded.claims.stage_sets.clear()


async def test_what_is_lost_gets_the_spares_of_others_too(hosting: ModelManager, scene: Scene, place: Place) -> None:
    await load(hosting, "one", split=[1, 2, 1])
    await load(hosting, "two", beside=True)
    item, two = hosting.loaded
    async with AsyncExitStack() as stack:
        stage_set = place.stage_set(Lender(), stack)
        laid_ahead(stage_set, place.plan(1, 2, 1), [])
        two.claims.stage_sets.append(stage_set)
        own = item.released_bytes()[ATTIC]
        spare = sum(stage.total_bytes for stage in two.claims.standby() if stage.machine == ATTIC)
        await hosting._replanner.options(item, frozenset())
        assert scene.released[-1][ATTIC] == own  # nobody needs it: others keep theirs
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(item), "notice", "lost")
            await hosting._replanner.options(item, frozenset())
        assert scene.released[-1][ATTIC] == own + spare
        two.claims.stage_sets.clear()
