"""Tests of the requests of the page "This computer": the switch, since when, hardware, programs, speed."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from app.client import NodeClient
from app.core.errors import BadInput
from app.machine.hardware import engines, graphics
from app.machine.hardware.cores import Threads
from app.machine.hardware.engines import Device, Engine
from app.machine.models_folders import ModelsFolders
from app.machine.paths import Home
from app.node.control import machine_routes
from app.node.control.machine_routes import system
from app.node.planning.local_speed import Hardware
from tests.node.pool import TestNode, node

Json = dict[str, Any]


@pytest.fixture(scope="module")
def den(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with node(tmp_path_factory.mktemp("this") / "den", "den") as made:
        yield made


@pytest.fixture
async def client(den: TestNode) -> AsyncGenerator[NodeClient, None]:
    async with den.client() as made:
        yield made


async def test_the_switch_keeps_the_limit_and_says_since_when(client: NodeClient) -> None:
    lending = (await client.get("/lending"))["lending"]
    assert (lending["state"], lending["code"]) == ("ready", None)
    assert 0 < lending["reserve_bytes"] < lending["total_bytes"]
    assert lending["own_bytes"] == 0
    shown = await client.post("/lending", {"on": False})
    assert (shown["lending"]["state"], shown["lending"]["code"]) == ("off", "lend_off")
    assert abs(shown["lending"]["since"] - time.time()) < 60
    assert shown["rules"]["memory_bytes"] == 1 << 30
    shown = await client.post("/lending", {"memory_bytes": 2 << 30, "on": False})
    assert shown["lending"]["state"] == "off"
    shown = await client.post("/lending", {"memory_bytes": 1 << 30})  # who says how much wants it
    assert (shown["lending"]["state"], shown["rules"]["on"]) == ("ready", True)


@pytest.mark.long
async def test_a_switched_off_machine_stays_so(tmp_path: Path) -> None:
    with node(tmp_path, "attic") as test_node:
        async with test_node.client() as client:
            await client.post("/lending", {"on": False})
    with node(tmp_path, "attic") as test_node:
        async with test_node.client() as client:
            assert (await client.get("/lending"))["lending"]["state"] == "off"


async def test_what_the_machine_has(client: NodeClient, den: TestNode) -> None:
    value = await client.get("/machine")
    assert value["system"] == system()
    assert value["processor"]
    assert 1 == value["threads"] <= value["cores"]
    assert 0 < value["memory"]["free_bytes"] <= value["memory"]["total_bytes"]
    assert 0 < value["disk"]["free_bytes"] <= value["disk"]["total_bytes"]
    assert value["disk"]["folder"] == str(den.root / "models" / "files")
    assert [engine["name"] for engine in value["engines"]] == ["llamacpp"]
    assert not value["engines"][0]["missing"]
    assert value["unused_graphics"] is None or "graphics card" in value["unused_graphics"]["reason"]
    value = await client.get("/programs")
    assert isinstance(value["programs"], list)
    assert all(set(game) == {"name", "program"} for game in value["games"])


async def test_a_card_is_told_with_why_it_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer() -> list[Engine]:
        return [Engine("llamacpp", "0.3", devices=[Device("CPU", kind="cpu")])]

    monkeypatch.setattr(engines, "probe_all", answer)
    monkeypatch.setattr(graphics, "list_cards", lambda: ["NVIDIA GA106"])
    hardware, home = Hardware(Threads(1), lambda: None), Home.at(tmp_path).create()
    result = await machine_routes.describe_computer(hardware, home, ModelsFolders(home.downloaded))
    unused = result.unused_graphics
    assert unused is not None
    assert (unused.reason or "").startswith("This computer has a graphics card (NVIDIA GA106), but ")
    assert (unused.cure or "").endswith("`poolhouse engine add FILE`.")
    monkeypatch.setattr(graphics, "list_cards", list)
    result = await machine_routes.describe_computer(hardware, home, ModelsFolders(home.downloaded))
    assert result.unused_graphics is None


async def test_a_speed_is_told_without_measuring_it(client: NodeClient) -> None:
    ident = (await client.get("/status"))["node"]["id"]
    known: Json = {"model": "guide", "only_here": True, "known_only": True}
    shown = await client.work("POST", "/speeds", known)
    assert shown["speeds"] == {ident: None}
    assert shown["n_layers"] == 8
    assert shown["batch_rows"] > 0


async def test_sign_in_is_asked_for_in_one_way(client: NodeClient) -> None:
    assert set(await client.get("/autostart")) == {"on", "where"}
    with pytest.raises(BadInput):
        await client.post("/autostart", {"on": "yes"})
