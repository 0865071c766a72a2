"""/health and /props, as llama.cpp's clients read them, against real nodes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
import pytest

from tests.gateway.conftest import Open, opened
from tests.gateway.gate_calls import ASK, CHAT, status_of
from tests.node.pool import node


@pytest.mark.parametrize("path", ["/health", "/v1/health"])
async def test_health_needs_no_key_and_keeps_to_place_and_origin(api: Open, path: str) -> None:
    assert await status_of(api.base, "GET", path, {}) == (200, {"status": "ok"})
    assert (await status_of(api.base, "GET", path, {"Authorization": "Bearer x"}))[0] == 200
    assert (await status_of(api.base, "GET", path, {"Host": "evil.example"}))[0] == 421
    assert (await status_of(api.base, "GET", path, {"Origin": "https://evil.example"}))[0] == 403
    assert (await status_of(api.base, "GET", "/health/x", {}))[0] == 401
    assert (await status_of(api.base, "GET", "/props", {}))[0] == 401


async def test_props_tell_of_the_model_that_answers(api: Open, http: aiohttp.ClientSession) -> None:
    async with http.post(CHAT, json=ASK):
        pass  # it is loaded now
    for query in ("", "?model=guide"):
        async with http.get(f"/props{query}") as answer:
            body = await answer.json()
        assert (answer.status, body["model_alias"], body["total_slots"] > 0) == (200, "guide", True)
        settings = body["default_generation_settings"]
        assert settings["n_ctx"] >= 256
        assert settings["params"]["temperature"] == pytest.approx(0.8)
        assert "<|im_start|>" in body["chat_template"]
        assert body["build_info"].startswith("poolhouse-")
        assert "/" not in body["model_path"]  # no folder of this computer
    async with http.get("/props?model=none-such") as answer:
        assert answer.status == 404
    async with http.post("/props", json={}) as answer:
        assert answer.status == 405


@pytest.mark.long
async def test_health_waits_while_a_model_is_loaded_and_props_say_that_none_is(tmp_path: Path) -> None:
    with node(tmp_path, "slow") as test_node:
        api = await asyncio.to_thread(opened, test_node)
        key = {"Authorization": f"Bearer {api.key}"}
        assert (await status_of(api.base, "GET", "/props", key))[0] == 404
        results: list[tuple[int, object]] = []
        async with asyncio.TaskGroup() as group:
            ask = group.create_task(_asked(api, key), name="a first question")
            while not ask.done():
                results.append(await status_of(api.base, "GET", "/health", {}))
                await asyncio.sleep(0.005)
        assert ask.result() == 200
        loading = {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}
        assert (503, loading) in results
        assert await status_of(api.base, "GET", "/health", {}) == (200, {"status": "ok"})


async def _asked(api: Open, key: dict[str, str]) -> int:
    async with aiohttp.request("POST", api.base + CHAT, json=ASK, headers=key) as answer:
        return answer.status
