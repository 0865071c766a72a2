"""A model of which an owner took memory back while nobody asked: it is placed again on the other machines."""

from __future__ import annotations

import asyncio
import time

import pytest

from app.core.errors import DoesNotFit, Reason, StageLost
from app.core.recovery.placement_lifecycle import Closed, PipelinesLost
from app.node.models.model_manager import ModelManager
from tests.node.models.test_model_manager import FakeRunning, Scene, ask, hosting, load, scene, shelf, until
from tests.node.test_beside import both, shown

__all__ = ["hosting", "scene", "shelf"]  # fixtures

TAKEN_BACK = StageLost("lend_taken_back", machine="attic", why=Reason("pause_owner"))
UNREACHABLE = StageLost("stage_unreachable", machine="attic")


def end(running: FakeRunning, why: StageLost) -> None:
    """Lose the placement as a real one is lost: its task ends too."""
    running._step(PipelinesLost(why.reason))
    running._step(Closed(time.monotonic()))
    running.stop()


async def test_it_is_loaded_again_without_a_question(hosting: ModelManager, scene: Scene) -> None:
    await both(hosting)
    end(scene.placed[0], TAKEN_BACK)
    await until(lambda: len(scene.placed) == 3 and scene.placed[2].is_ready)
    assert shown(hosting) == ("two", ["one"])  # each as it was, and the other one was left alone
    assert scene.placed[1].is_ready
    assert not scene.placed[2].loaded_by_request
    assert await ask(hosting, "one") == "one!"
    assert len(scene.placed) == 3


@pytest.mark.parametrize("cause", ["a failure", "it does not fit", "unloaded"])
async def test_it_stays_lost(hosting: ModelManager, scene: Scene, cause: str) -> None:
    await load(hosting, "one")
    if cause == "it does not fit":
        scene.errors.append(DoesNotFit("too_large"))
    if cause == "unloaded":
        scene.may_load.clear()
    end(scene.placed[0], UNREACHABLE if cause == "a failure" else TAKEN_BACK)
    if cause == "unloaded":
        await until(lambda: len(scene.placed) == 2)
        assert await hosting.unload("one") == ["one"]
        assert shown(hosting) == (None, [])
        return
    await asyncio.sleep(0.3)
    loaded, _ = hosting.describe_loaded()
    assert loaded is not None
    assert (loaded.model, loaded.state) == ("one", "lost")
    assert await ask(hosting) == "one!", "the next question loads it"


async def test_a_question_that_is_faster_loads_it_once(hosting: ModelManager, scene: Scene) -> None:
    await load(hosting, "one")
    async with asyncio.TaskGroup() as group:
        question = group.create_task(ask(hosting, "one"), name="question")
        await scene.answering.wait()
        end(scene.placed[0], TAKEN_BACK)
    assert question.result() in ("one!", "pipeline_closed")
    assert await ask(hosting, "one") == "one!"
    assert len(scene.placed) == 2
