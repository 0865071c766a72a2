"""Several models at once in one host: each answers for itself, comes, goes and is lost alone."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from typing import Any

import pytest

from app.api import requests
from app.core.errors import BadInput, StageLost
from app.node.control.answer_conversion import for_every_model, generation_request
from app.node.models import model_manager as hosting_module
from app.node.models.model_manager import ModelManager
from tests.node.models.test_model_manager import ATTIC, DEN, Scene, ask, hosting, load, scene, shelf, until

__all__ = ["hosting", "scene", "shelf"]  # fixtures


async def both(hosting: ModelManager) -> None:
    assert await load(hosting, "one") == "loaded"
    assert await load(hosting, "two", beside=True) == "loaded"


def shown(hosting: ModelManager) -> tuple[str | None, list[str]]:
    """Return the model for questions without a name, and the others beside it."""
    loaded, beside = hosting.describe_loaded()
    return loaded.model if loaded else None, [item.model for item in beside]


async def test_each_question_goes_to_the_model_that_it_names(hosting: ModelManager, scene: Scene) -> None:
    await both(hosting)
    assert shown(hosting) == ("two", ["one"])
    assert [await ask(hosting, name) for name in ("one", "two", None)] == ["one!", "two!", "two!"]
    assert await ask(hosting, "ON") == "one!"  # a name may be short: both stay
    scene.may_answer.clear()
    async with asyncio.TaskGroup() as group:
        answers = [group.create_task(ask(hosting, name), name=name) for name in ("one", "two")]
        await until(lambda: [placement.n_requests for placement in hosting.loaded] == [1, 1])
        assert all(placement.state.busy.is_set() for placement in hosting.loaded)
        scene.may_answer.set()
    assert [answer.result() for answer in answers] == ["one!", "two!"]
    assert scene.names == ["one", "two"]


async def test_a_load_that_says_nothing_of_it_replaces_all(hosting: ModelManager, scene: Scene) -> None:
    await both(hosting)
    assert await load(hosting, "three") == "loaded"
    assert shown(hosting) == ("three", [])
    assert all(fake_running.ended.is_set() for fake_running in scene.placed[:2])
    assert await ask(hosting, "one") == "one!"  # so does a question for what is not loaded
    assert shown(hosting) == ("one", [])


async def test_a_model_beside_itself_is_loaded_anew(hosting: ModelManager, scene: Scene) -> None:
    await both(hosting)
    assert await load(hosting, "one", beside=True, context=300) == "loaded"
    assert shown(hosting) == ("one", ["two"])
    assert scene.placed[0].ended.is_set()
    assert [placement.context for placement in hosting.loaded] == [scene.placed[1].context, 300]


async def test_nobody_waits_for_a_model_that_comes_beside(hosting: ModelManager, scene: Scene) -> None:
    await load(hosting, "one")
    scene.may_load.clear()
    async with asyncio.TaskGroup() as group:
        second = group.create_task(load(hosting, "two", beside=True), name="second")
        await until(lambda: len(scene.placed) == 2)
        assert shown(hosting) == ("one", ["two"])
        async with asyncio.timeout(30):
            assert [await ask(hosting, name) for name in ("one", "On", None)] == ["one!"] * 3
            assert await hosting.unload("one") == ["one"]
        assert not second.done()
        scene.may_load.set()
    assert second.result() == "loaded"
    assert shown(hosting) == ("two", [])


async def test_a_load_that_is_being_stopped_says_so(
    hosting: ModelManager, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state says so as soon as the load is canceled, and neither before that nor once it is over."""
    values: list[bool] = []

    def look() -> None:
        values.extend(placement.describe().stopping for placement in hosting.loaded)

    monkeypatch.setattr(hosting, "_changed", look)
    scene.may_load.clear()
    async with asyncio.TaskGroup() as group:
        loading = group.create_task(load(hosting, "one"), name="load")
        await until(lambda: scene.placed)
        assert set(values) == {False}
        loading.cancel()
    assert values[-1]
    assert not scene.placed[0].describe().stopping


async def test_unloading_one_leaves_the_other(hosting: ModelManager, scene: Scene) -> None:
    await both(hosting)
    assert await hosting.unload("two") == ["two"]
    assert shown(hosting) == ("one", [])
    assert await ask(hosting) == "one!"
    await load(hosting, "two", beside=True)
    assert await hosting.unload(None) == ["one", "two"]
    assert shown(hosting) == (None, [])
    assert all(fake_running.ended.is_set() for fake_running in scene.placed)


async def test_a_lost_model_returns_for_its_question_beside_the_other(hosting: ModelManager, scene: Scene) -> None:
    await both(hosting)
    scene.placed[0].lose()
    assert await ask(hosting, "two") == "two!"
    assert await ask(hosting, "one") == "one!"
    assert scene.names == ["one", "two", "one"]
    assert shown(hosting) == ("two", ["one"])  # what was loaded last is so still
    scene.placed[2].lose()
    scene.errors.extend([StageLost("stage_gone")] * 9)  # more than a load tries
    assert await ask(hosting, "one") == "stage_gone"
    scene.errors.clear()
    assert shown(hosting) == ("two", ["one"])
    assert hosting.loaded.except_for(hosting.loaded.first)[0].describe().state == "lost"


async def test_half_a_name_is_enough_beside_what_is_loaded(hosting: ModelManager) -> None:
    await load(hosting, "one")
    assert await load(hosting, "on", beside=True) == "model_inexact"  # it would be placed anew
    assert await load(hosting, "tw", beside=True) == "loaded"
    assert shown(hosting) == ("two", ["one"])


async def test_the_memory_of_what_stays_is_no_part_of_the_plan(hosting: ModelManager, scene: Scene) -> None:
    await load(hosting, "one", split=[1, 2, 1])
    order = requests.PlanModel(model="two")
    plain = await hosting.plan(order, lambda _: None)
    assert scene.released[-1].keys() == {DEN, ATTIC}
    beside = await hosting.plan(requests.PlanModel(model="two", beside=True), lambda _: None)
    assert scene.released[-1] == {}
    reports = [[item.code for item in result.why] for result in (plain, beside)]
    assert ["plan_beside" in codes for codes in reports] == [False, True]
    scene.placed[0].lose()  # it has no memory that could be left to it
    beside = await hosting.plan(requests.PlanModel(model="two", beside=True), lambda _: None)
    assert "plan_beside" not in [item.code for item in beside.why]


async def test_a_model_whose_place_another_took_meanwhile_is_planned_for_again(
    hosting: ModelManager, scene: Scene
) -> None:
    await both(hosting)
    placement, two = hosting.loaded
    await hosting.memory.reservation_for(two, hosting.embeddings.make_room).make(two.plan)  # what was planned
    own = sum(stage.total_bytes for each in (placement, two) for stage in each.plan.stages)
    scene.den = type(scene.den)(DEN, "den", own - 1)
    with pytest.raises(Exception, match="beside_no_room"):
        await hosting.memory.reservation_for(two, hosting.embeddings.make_room).make(two.plan)
    await hosting.unload("one")
    await hosting.memory.reservation_for(two, hosting.embeddings.make_room).make(
        two.plan
    )  # alone it is bound by its plan


async def test_there_is_an_end_to_it(hosting: ModelManager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosting_module, "MOST_MODELS", 2)
    await both(hosting)
    assert await load(hosting, "three", beside=True) == "models_enough"
    assert shown(hosting) == ("two", ["one"])


async def test_a_question_that_may_bring_no_model_loads_none(hosting: ModelManager, scene: Scene) -> None:
    await load(hosting, "one")
    question: Any = for_every_model(generation_request(requests.Ask(prompt="?")))
    with pytest.raises(BadInput, match="api_model_not_loaded"):
        async with aclosing(hosting.answer("two", question, may_load=False)) as lines:
            await anext(lines)
    assert scene.names == ["one"]


async def test_nothing_is_done_ahead_of_one_while_the_other_is_asked(hosting: ModelManager, scene: Scene) -> None:
    await both(hosting)
    placement, two = hosting.loaded
    with placement.in_use():
        assert two.state.busy.is_set()
        now_s = time.monotonic()
        assert two.last_request_s >= now_s
        with two.in_use():
            pass
        assert placement.state.busy.is_set()
        assert placement.state.unused.is_set() < two.state.unused.is_set()
    assert not two.state.busy.is_set()
    assert placement.last_request_s == two.last_request_s < time.monotonic()


async def test_what_this_machine_got_back_for_a_reload_is_not_counted_twice(
    hosting: ModelManager, scene: Scene
) -> None:
    await both(hosting)
    assert await load(hosting, "one", beside=True, context=300) == "loaded"
    assert DEN not in scene.released[-1]  # the run before has ended, and its bytes are free


async def test_who_names_no_model_waits_for_the_lost_one_that_returns(hosting: ModelManager, scene: Scene) -> None:
    await both(hosting)
    scene.placed[1].lose()
    scene.may_load.clear()
    async with asyncio.TaskGroup() as group:
        answers = [group.create_task(ask(hosting), name="first")]
        await until(lambda: len(scene.placed) == 3)
        answers.append(group.create_task(ask(hosting), name="second"))
        assert await ask(hosting, "one") == "one!"
        scene.may_load.set()
    assert [answer.result() for answer in answers] == ["two!", "two!"]


async def test_lost_models_take_nobodys_place(
    hosting: ModelManager, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosting_module, "MOST_MODELS", 2)
    await both(hosting)
    scene.placed[0].lose()
    assert await load(hosting, "three", beside=True) == "loaded"


async def test_nothing_is_done_ahead_while_a_model_is_loaded(hosting: ModelManager, scene: Scene) -> None:
    await load(hosting, "one")
    scene.may_load.clear()
    async with asyncio.TaskGroup() as group:
        group.create_task(load(hosting, "two", beside=True), name="second")
        await until(lambda: len(scene.placed) == 2)
        assert scene.placed[0].state.busy.is_set()
        scene.may_load.set()
    assert not scene.placed[0].state.busy.is_set()
