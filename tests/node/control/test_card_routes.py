"""Tests of the routes for graphics cards, without a node."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from app.core.errors import Reason
from app.machine.hardware.cards import Card, UnusedCard
from app.machine.sensors.card_use import CardReading
from app.machine.settings import GraphicsSettings, Settings, SettingsStore, load, save
from app.node.control.card_routes import CardRoutes

BIG = Card("Vulkan0", "Big card", "Vulkan", Path("lib"), Path("cache"), "0000:01:00.0", False, 16, 12)
SMALL = Card("Vulkan1", "Small card", "Vulkan", Path("lib"), Path("cache"), "0000:02:00.0", True, 4, 4)


class Place:
    """The routes of a computer with two cards, of which the big one computes."""

    def __init__(self, path: Path) -> None:
        save(path, Settings("attic"))
        self.path, self.changes = path, 0
        self.graphics = SimpleNamespace(
            cards=(BIG, SMALL),
            card=BIG,
            computing=(BIG,),
            unused=(UnusedCard("Small card", Reason("card_other_used"), SMALL.key),),
            reading=lambda: CardReading(BIG.key, True, 61.0, 35.0, 3.0, 1),
        )
        self.choices = SettingsStore(path, load(path))

        def changed() -> None:
            self.changes += 1

        self.n_judged = 0
        self.application = web.Application()
        self.application.add_routes(CardRoutes(cast("Any", self.graphics), self.choices, changed, self.judge).routes())

    async def judge(self) -> None:
        self.n_judged += 1


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "settings.json")


@pytest.fixture
async def client(place: Place) -> AsyncIterator[Any]:
    async with TestClient(TestServer(place.application)) as made:
        yield made


async def test_each_card_says_what_it_does(client: Any) -> None:
    answer = await (await client.get("/cards")).json()
    big, small = answer["cards"]
    assert (big["computes"], big["on"], big["reason"], big["celsius"]) == (True, True, None, 61.0)
    assert (big["busy_percent"], big["others_percent"]) == (35.0, 3.0)
    assert (small["computes"], small["on"], small["reason_facts"]["code"]) == (False, True, "card_other_used")
    assert (small["celsius"], small["is_integrated"]) == (None, True)
    assert (answer["memory_percent"], answer["card_only"]) == (100, False)


async def test_changes_are_saved_and_told(client: Any, place: Place) -> None:
    answer = await (await client.post("/cards", json={"off": [BIG.key], "memory_percent": 80})).json()
    big, _ = answer["cards"]
    assert (big["computes"], big["on"], big["reason_facts"]["code"]) == (False, False, "card_switched_off")
    assert big["celsius"] is None
    assert place.changes == 1
    await client.post("/cards", json={"card_only": True})
    expected = GraphicsSettings((BIG.key,), 80, card_only=True)
    assert load(place.path).graphics == place.choices.now.graphics == expected
    await client.post("/cards", json={})
    assert place.changes == place.n_judged == 2  # lending follows at once


async def test_a_card_that_is_switched_on_again_is_tested_first(client: Any, place: Place) -> None:
    place.graphics.computing = ()
    place.graphics.unused = (UnusedCard("Big card", Reason("card_switched_off"), BIG.key),)
    big, _ = (await (await client.get("/cards")).json())["cards"]
    assert (big["computes"], big["reason_facts"]["code"]) == (False, "card_testing")


async def test_a_card_that_was_unplugged_stays_switched_off_and_an_unknown_one_is_refused(
    client: Any, place: Place
) -> None:
    graphics = GraphicsSettings(("unplugged",))
    await place.choices.change(lambda now: msgspec.structs.replace(now, graphics=graphics))
    assert (await client.post("/cards", json={"off": ["unplugged", SMALL.key]})).status == 200
    for body in ({"off": ["another"]}, {"memory_percent": 9}, {"memory_percent": 101}, {"nothing": 1}):
        assert (await client.post("/cards", json=body)).status != 200
    assert place.choices.now.graphics.off == ("unplugged", SMALL.key)
