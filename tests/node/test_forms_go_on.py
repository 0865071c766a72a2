"""Answers of every form while a replica, and then the host's own worker, is killed: each ends as it would have."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator

import aiohttp
import pytest

from tests.gateway.conftest import Open, opened
from tests.gateway.tool_cases import MODEL, hermes
from tests.node.pool import Json, TestNode, paired

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]

COLORS = {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "minItems": 40, "maxItems": 40}
TOOL = {"name": "note", "parameters": {"type": "object", "properties": {"words": COLORS}, "required": ["words"]}}
FORMS: list[Json] = [
    {"max_tokens": 300},
    {"max_tokens": 300, "presence_penalty": 0.5, "frequency_penalty": 0.3, "repeat_penalty": 1.1},
    {"max_tokens": 600, "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": COLORS}}},
    {"max_tokens": 600, "tools": [{"type": "function", "function": TOOL}], "tool_choice": "required"},
]  # fmt: skip
EACH = 4  # of each form at once


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[list[TestNode], Open]]:
    """Run a household with a random model that computes the same numbers beside others and alone."""
    folder = tmp_path_factory.mktemp("forms")
    with paired(folder, "den", "attic") as nodes:
        assert nodes[0].run("import", str(hermes(folder)), "--name", MODEL).returncode == 0
        yield nodes, opened(nodes[0])


async def told(http: aiohttp.ClientSession, body: Json, came: Callable[[], None]) -> Json:
    """Return a stream's text or arguments, why it ended, and its cost."""
    result: Json = {"said": "", "end": "", "usage": None}
    async with http.post("/v1/chat/completions", json=body) as answer:
        async for line in answer.content:
            if not line.startswith(b"data: {"):
                continue
            chunk = json.loads(line[6:])
            for choice in chunk["choices"]:
                delta = choice["delta"]
                calls = [item["function"]["arguments"] for item in delta.get("tool_calls", ())]
                result["said"] += "".join(calls) or delta.get("content") or ""
                result["end"] = choice["finish_reason"] or result["end"]
            if usage := chunk.get("usage"):
                result["usage"] = usage["prompt_tokens"], usage["completion_tokens"]
            came()
    return result


async def all_told(api: Open, act: Callable[[], None], after: int) -> list[Json]:
    """`act` is called when so many pieces have come."""
    n = 0

    def came() -> None:
        nonlocal n
        n += 1
        if n == after:
            act()

    more = {"model": MODEL, "stream": True, "stream_options": {"include_usage": True}, "temperature": 0.8}
    requests = [
        {**more, **form, "seed": seed, "messages": [{"role": "user", "content": f"Question {seed}"}]}
        for seed in range(EACH) for form in FORMS
    ]  # fmt: skip
    headers = {"Authorization": f"Bearer {api.key}"}
    async with aiohttp.ClientSession(api.base, headers=headers) as http:
        return await asyncio.gather(*(told(http, body, came) for body in requests))


@pytest.mark.parametrize("victim", ["attic", "den"])
async def test_each_form_goes_on_elsewhere_as_it_began(house: tuple[list[TestNode], Open], victim: str) -> None:
    (den, attic), api = house
    async with den.client() as host:
        order = {"model": MODEL, "users": 16, "context": 1024, "shape": "replicas", "measure": False}
        await host.work("POST", "/load", order)
        calm = await all_told(api, lambda: None, 0)
        assert {item["end"] for item in calm} >= {"stop", "length"}
        assert all(item["usage"] for item in calm)
        workers = attic.workers() if victim == "attic" else den.workers()
        largest = max(workers, key=lambda process: process.memory_info().rss)  # the other one is for texts
        assert await all_told(api, largest.kill, 400) == calm
        assert not largest.is_running()
