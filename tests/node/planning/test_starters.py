"""A real node names the model its household begins with, and the sum behind it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from app.catalog.model_catalog import load_catalog
from app.core.ids import MachineId
from app.core.planner.placement import Candidate
from app.core.planner.speed_estimates import Speed
from app.node.planning.verdicts import starter
from testbed.households import machine
from tests.node.pool import node

GIB = 1 << 30


async def test_the_best_of_the_catalog_that_fits_the_memory_of_today(tmp_path: Path) -> None:
    """2 GiB hold the smallest of the starters with room to spare; the next one would be tight."""
    with node(tmp_path, "den", lend="2GiB") as den:
        async with den.client() as client:
            result = (await client.get("/starter"))["starter"]
    smallest = load_catalog().starters()[-1]
    assert (result["id"], result["name"]) == (smallest.id, smallest.name)
    assert result["file"] == smallest.files[0].file
    assert result["size_bytes"] < result["needs_bytes"] < result["lends_bytes"] == 2 * GIB
    assert result["tok_s"] is None  # nothing is measured to say so


async def test_a_window_that_begins_asks_for_all_of_it_together(tmp_path: Path) -> None:
    """Threads that read the catalog for the first time together once ended the node, and no verdict came."""
    with node(tmp_path, "den", lend="2GiB") as den:
        async with den.client() as client:
            plan = client.post("/plan", {"model": "guide", "measure": False})
            shelf, offers, starter, planned = await asyncio.gather(
                client.get("/models"), client.get("/catalog"), client.get("/starter"), plan
            )
    assert [model["name"] for model in shelf["models"]] == ["guide"]
    assert starter["starter"]["id"] in {model["id"] for model in offers["models"]}
    assert planned["done"]["fits"]


class Around:
    """An outlook on three machines of which nothing is measured."""

    def machines(self, *_: object) -> tuple[Candidate, list[Candidate]]:
        return machine("den", 768, None), [machine(name, 512, None) for name in ("attic", "loft")]

    async def speeds_like(self, *_: object, **__: object) -> dict[MachineId, Speed]:
        return {}


async def test_where_no_first_model_fits_another_that_does_is_named() -> None:
    """The window and `pull` else said that none fits, above a list in which one does."""
    planner_inputs: Any = Around()
    result = await starter(planner_inputs, {})
    assert result is not None
    assert result.id in {other_starter.id for other_starter in load_catalog().other_starters()}
    sketch = {model.id: model for model in load_catalog().models}[result.id]
    assert "chat" in sketch.good_at
    assert not sketch.gated
    assert result.needs_bytes < result.lends_bytes == 1792 << 20


async def test_where_nothing_fits_with_room_none_is_named(tmp_path: Path) -> None:
    with node(tmp_path, "den", lend="512MiB") as den:
        async with den.client() as client:
            assert await client.get("/starter") == {"starter": None}
