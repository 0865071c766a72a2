"""Tests of which models a program without the right unloads after its answer: only those that its request loaded."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from app.gateway.dialects.ollama_routes import ModelUnloader
from app.gateway.fair_queue import FairQueue
from app.node.models.model_manager import ModelManager
from tests.node.models.test_model_manager import Scene, ask, hosting, load, scene, shelf, until

__all__ = ["hosting", "scene", "shelf"]  # fixtures


@pytest.fixture
def going(hosting: ModelManager) -> ModelUnloader:
    answering: Any = SimpleNamespace(queue=FairQueue(lambda _: 1))
    return ModelUnloader(hosting, lambda: False, answering)


async def test_what_its_question_brought_goes(hosting: ModelManager, going: ModelUnloader) -> None:
    before = going.loaded_models()
    assert await ask(hosting, "one") == "one!"
    going.unload_unused("one", before)
    await until(lambda: not hosting.loaded)


async def test_what_its_owner_loaded_while_the_question_waited_stays(
    hosting: ModelManager, going: ModelUnloader
) -> None:
    """Such a load shows in nothing before its files were read and its machines measured."""
    before = going.loaded_models()
    await load(hosting, "one")
    assert await ask(hosting, "one") == "one!"
    going.unload_unused("one", before)
    assert [placement.is_ready for placement in hosting.loaded] == [True]


async def test_what_was_lost_and_is_there_again_for_the_question_stays(
    hosting: ModelManager, scene: Scene, going: ModelUnloader
) -> None:
    await load(hosting, "one")
    scene.placed[0].lose()
    before = going.loaded_models()
    assert await ask(hosting, "one") == "one!"
    going.unload_unused("one", before)
    assert [placement.is_ready for placement in hosting.loaded] == [True]
    assert len(scene.placed) == 2


async def test_what_its_owner_loads_anew_after_a_question_brought_it_stays(
    hosting: ModelManager, going: ModelUnloader
) -> None:
    before = going.loaded_models()
    await ask(hosting, "one")
    await load(hosting, "one")
    going.unload_unused("one", before)
    assert [placement.is_ready for placement in hosting.loaded] == [True]
