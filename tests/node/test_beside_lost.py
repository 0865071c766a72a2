"""A lost model among several: who waits while it is loaded again, and how that load is stopped."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from app.node.models.model_manager import ModelManager
from tests.node.models.test_model_manager import Scene, ask, hosting, load, scene, shelf, until
from tests.node.test_beside import both, shown

__all__ = ["hosting", "scene", "shelf"]  # fixtures


@pytest.mark.parametrize(("order", "unloaded"), [("ON", "one"), ("one", "ON"), (None, "one")])
async def test_a_reload_is_stopped_whatever_part_of_its_name_was_given(
    hosting: ModelManager, scene: Scene, order: str | None, unloaded: str
) -> None:
    await load(hosting, "two")
    await load(hosting, "one", beside=True)
    scene.placed[1].lose()
    scene.may_load.clear()
    async with asyncio.TaskGroup() as group:
        question = group.create_task(ask(hosting, order), name="question")
        await until(lambda: len(scene.placed) == 3)
        assert await hosting.unload(unloaded) == ["one"]
        assert shown(hosting) == ("two", [])
    assert question.result() == "load_stopped"
    assert shown(hosting) == ("two", [])  # it does not come back
    assert len(scene.placed) == 3


async def test_nobody_waits_while_it_is_looked_where_a_lost_one_may_go(
    hosting: ModelManager, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    await both(hosting)
    scene.placed[0].lose()
    looks, may_go, order = asyncio.Event(), asyncio.Event(), hosting._replanner.order_again

    async def slow(lost: Any) -> Any:
        looks.set()
        await may_go.wait()
        return await order(lost)

    monkeypatch.setattr(hosting._replanner, "order_again", slow)
    async with asyncio.TaskGroup() as group:
        lost = group.create_task(ask(hosting, "one"), name="lost")
        await looks.wait()
        async with asyncio.timeout(30):
            assert [await ask(hosting, name) for name in ("two", "Tw", None)] == ["two!"] * 3
        assert not lost.done()
        may_go.set()
    assert lost.result() == "one!"
