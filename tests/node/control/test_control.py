"""The control API of a real node: who may pass on each route, what the routes answer, how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import aiohttp
import pytest

from app.api.plans import Progress
from app.client import NodeClient
from app.core.errors import BadInput
from app.core.reasons import said
from app.machine.paths import Home
from app.node.control.servers import Servers
from testbed import tiny
from tests.node.pool import NOBODY, TestNode, node

Json = dict[str, Any]


def every_route(home: Path) -> list[tuple[str, str]]:
    """Return every route of the control API as a node builds it."""
    node = MagicMock(home=Home.at(home))  # which nobody asks anything
    routes = Servers(node, lambda: None).control.routes
    return [(route.method, route.resource.canonical) for route in routes if route.resource is not None]


@pytest.fixture(scope="module")
def den(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestNode]:
    with node(tmp_path_factory.mktemp("control"), "den") as test_node:
        yield test_node


@pytest.fixture
async def client(den: TestNode) -> AsyncGenerator[NodeClient, None]:
    async with den.client() as node_client:
        yield node_client


async def test_no_route_opens_without_the_token(client: NodeClient, tmp_path: Path) -> None:
    routes, right = every_route(tmp_path), {"Authorization": f"Bearer {client.runtime.token}"}
    assert {("GET", "/events"), ("GET", "/history/key"), ("POST", "/updates")} < set(routes)
    cases: list[tuple[dict[str, str], int]] = [
        ({}, 401),
        ({"Authorization": "Bearer x"}, 401),
        (right | {"Host": "evil.example"}, 421),
        (right | {"Origin": "http://evil.example"}, 403),
    ]
    async with aiohttp.ClientSession(f"http://127.0.0.1:{client.runtime.port}") as session:
        for (method, path), (headers, status) in product(routes, cases):
            body: Json | None = {} if method == "POST" else None
            async with session.request(method, path, json=body, headers=headers) as answer:
                assert answer.status == status, (method, path, headers)
                if method != "HEAD":
                    assert (await answer.json())["error"]["message"].endswith(".")


async def test_who_looks_for_keys_makes_none(client: NodeClient) -> None:
    """GET changes nothing."""
    for _ in range(2):
        assert (await client.get("/api/keys"))["keys"] == []
        assert (await client.get("/history/key"))["key"] is None
    api = await client.get("/api")  # where nobody has turned it on
    assert (api["on"], api["listening"], api["lan"], api["keys"]) == (False, False, False, [])
    assert api["upstreams"] == []


async def test_a_route_that_is_not_there_is_none(client: NodeClient) -> None:
    right = {"Authorization": f"Bearer {client.runtime.token}"}
    url = f"http://127.0.0.1:{client.runtime.port}/nothing"
    async with aiohttp.ClientSession() as session, session.get(url, headers=right) as answer:
        assert answer.status == 404


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"model": "guide", "context": 10**12}, "context must be at most 16777216"),
        ({"model": "guide", "users": 0}, "users must be at least 1"),
        ({"model": ""}, "model must not be empty"),
    ],
)
async def test_a_bound_is_told_in_words(client: NodeClient, body: Json, why: str) -> None:
    with pytest.raises(BadInput) as refused:
        await client.work("POST", "/plan", body)
    assert said(refused.value.reason) == f"The request is invalid: {why}."


async def test_the_snapshot_has_what_faces_show(client: NodeClient) -> None:
    status = await client.get("/status")
    assert set(status) == {
        "node", "machines", "strangers", "discovery", "links", "loaded", "load_failed", "beside", "embeds", "forecasts",
        "pairing", "answers", "pairing_closed", "journal", "downloads", "shelf", "hub", "hosts", "links_between",
        "models_folder", "paired", "giving", "exact", "shared", "servers",
    }  # fmt: skip
    assert status["answers"] == NOBODY
    (machine,) = (await client.get("/machines"))["machines"]
    assert (machine["name"], machine["this"]) == ("den", True)
    assert all(set(check) >= {"name", "ok"} for check in (await client.get("/doctor"))["checks"])


async def test_a_model_comes_by_name_is_used_and_goes(client: NodeClient, tmp_path: Path) -> None:
    path = tiny.llama(tmp_path / "file.gguf", layers=4)
    steps: list[Progress] = []
    order = {"path": str(path), "name": "chosen"}
    done = await client.work("POST", "/models", order, steps.append)
    assert done["model"]["name"] == "chosen"
    assert steps[-1].done == steps[-1].total
    forecast = await client.work("POST", "/plan", {"model": "chosen", "split": [4]})
    assert [stage["last"] for stage in forecast["stages"]] == [4]
    await client.work("POST", "/load", {"model": "chosen", "split": [4]})
    with pytest.raises(BadInput) as caught:  # though nobody has asked for a snapshot
        await client.delete("/models/chosen")
    assert caught.value.reason.code == "model_in_use"
    assert await client.post("/unload") == {"unloaded": "chosen", "also": []}
    assert await client.post("/unload") == {"unloaded": None, "also": []}
    gone = await client.delete("/models/chosen")
    assert gone["removed"] == "chosen"


@pytest.mark.long
async def test_several_questions_at_once_are_all_counted(den: TestNode, client: NodeClient) -> None:
    order = {"prompt": "?", "max_tokens": 40, "ignore_end": True, "sampling": {"temperature": 0}}
    most = most_running = 0

    async def look() -> None:
        nonlocal most, most_running
        while True:
            status = await client.get("/status")
            answers = status["answers"]
            if status["loaded"]:
                assert status["loaded"]["answering"] == answers["running"]
            most = max(most, answers["running"] + answers["waiting"])
            most_running = max(most_running, answers["running"])
            await asyncio.sleep(0.02)

    async with asyncio.TaskGroup() as group:
        looking = group.create_task(look(), name="look")
        async with asyncio.TaskGroup() as asking:
            tasks = [asking.create_task(client.work("POST", "/ask", order), name="ask") for _ in range(3)]
        looking.cancel()
    assert most == 3  # also those that wait for the model
    assert most_running > 0
    assert len({task.result()["text"] for task in tasks}) == 1
    await den.until_nobody()


@pytest.mark.long
def test_shutdown_ends_the_node(tmp_path: Path) -> None:
    with node(tmp_path, "short") as test_node:

        async def shut() -> None:
            async with test_node.client() as client:
                await client.post("/shutdown")

        asyncio.run(shut())
        test_node.process.wait(60)
        assert not (tmp_path / "runtime.json").exists()
