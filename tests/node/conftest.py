"""A lender on the bench, for each test of what hosts may do there; a hub, and a place that downloads from it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from app.catalog.stages.cut import Cut
from app.machine.hardware.cores import Threads
from app.node.lending.lending_service import LendingService
from backends.contract import Layers, Role
from testbed import tiny
from tests.catalog.conftest import new_home
from tests.catalog.hub_server import HubServer, serving
from tests.node.download_place import Place, running
from tests.node.lending_bench import Bench, StandIn, Terms


@pytest.fixture
def cut(tmp_path: Path) -> Cut:
    host = new_home(tmp_path / "host")
    return host.shelf.cut(host.add("m", layers=8), Layers(2, 6), Role.MIDDLE)


@pytest.fixture
async def bench(tmp_path: Path, cut: Cut) -> AsyncGenerator[Bench, None]:
    home, lender, terms = new_home(tmp_path / "lender"), StandIn(), Terms()
    changes: list[int] = []
    async with asyncio.TaskGroup() as group:
        lending = LendingService(lender, home.shelf, home.stages, terms, Threads(3), group, lambda: changes.append(1))
        yield Bench(lending, lender, home, cut, terms, changes=changes)
        lending.end()


@pytest.fixture
async def server(tmp_path: Path) -> AsyncGenerator[HubServer, None]:
    data = tiny.llama(tmp_path / "served.gguf", layers=4, width=256, ffn=512).read_bytes()
    async with serving(data) as up:
        up.faults.bytes_at_once = 1 << 18
        yield up


@pytest.fixture
async def place(server: HubServer, tmp_path: Path) -> AsyncGenerator[Place, None]:
    async with running(Place(server, tmp_path)) as up:
        yield up
