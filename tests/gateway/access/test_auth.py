"""Tests of who may use the Chat API (SAFETY.md 7), and how much at once with one key, against a real node."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest

from app.gateway.access import auth
from app.node.control.guard import MAX_OPEN
from tests.gateway.conftest import Open
from tests.gateway.gate_calls import ASK, CHAT, control, rests, status_of
from tests.node.pool import Json

ROUTES = [
    ("GET", "/v1/models"), ("GET", "/v1/models/guide"), ("POST", CHAT), ("POST", "/v1/completions"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path"), [*ROUTES, ("GET", "/nothing"), ("DELETE", CHAT)])
async def test_who_may_pass(api: Open, method: str, path: str) -> None:
    right = {"Authorization": f"Bearer {api.key}"}
    cases: list[tuple[dict[str, str], int]] = [
        ({}, 401),
        ({"Authorization": "Bearer x"}, 401),
        ({"Authorization": f"Basic {api.key}"}, 401),
        ({"X-Api-Key": api.key[:-1]}, 401),
        (right | {"Host": "evil.example"}, 421),
        (right | {"Host": f"evil.example:{api.port}"}, 421),
        (right | {"Host": "127.0.0.1:1"}, 421),
        (right | {"Origin": "https://evil.example"}, 403),
        (right | {"Origin": "null"}, 403),
        (right | {"Origin": "https://evil.example", "Upgrade": "websocket", "Connection": "Upgrade"}, 403),
        (right | {"Content-Encoding": "br"}, 415),
    ]
    for headers, status in cases:
        got, body = await status_of(api.base, method, path, headers)
        assert (got, bool(body["error"])) == (status, True), headers


async def test_who_shows_no_key_hears_how_and_who_shows_another_that_it_is_another(api: Open) -> None:
    cases: list[tuple[dict[str, str], str]] = [
        ({}, auth.NO_KEY_SHOWN),
        ({"Authorization": api.key}, auth.NO_KEY_SHOWN),
        ({"Authorization": "Bearer ph-YOUR-KEY"}, auth.WRONG_KEY),
        ({"X-Api-Key": "ph-YOUR-KEY"}, auth.WRONG_KEY),
    ]
    for headers, words in cases:
        _, result = await status_of(api.base, "GET", "/v1/models", headers)
        assert result["error"]["message"] == words, headers


async def test_a_command_that_is_named_has_the_home_of_this_node_for_who_has_a_key(
    api: Open, http: aiohttp.ClientSession
) -> None:
    async with http.post(CHAT, json=ASK):
        pass  # it is loaded now
    unload_after = {"model": "guide", "keep_alive": 0}
    async with http.post("/api/generate", json=unload_after) as answer:
        assert f"`poolhouse api on --home {api.node.root} --may-load`" in await answer.text()
    strange: list[dict[str, str]] = [
        {}, {"Authorization": "Bearer x"}, {"Host": "evil.example"}, {"Origin": "https://evil.example"},
    ]  # fmt: skip
    for headers in strange:
        _, body = await status_of(api.base, "GET", "/v1/models", headers)
        assert "--home" not in body["error"]["message"]
    await asyncio.to_thread(api.control, "POST", "/api", {"ollama_open": True})
    try:
        async with aiohttp.request("POST", f"{api.base}/api/generate", json=unload_after) as answer:
            assert "`poolhouse api on --may-load`" in await answer.text()
    finally:
        await asyncio.to_thread(api.control, "POST", "/api", {"ollama_open": False})


async def test_our_own_names_pass(api: Open) -> None:
    for host in (f"127.0.0.1:{api.port}", f"localhost:{api.port}", f"[::1]:{api.port}"):
        for key in ({"Authorization": f"Bearer {api.key}"}, {"X-Api-Key": api.key}):
            assert (await status_of(api.base, "GET", "/v1/models", key | {"Host": host}))[0] == 200


async def test_the_key_of_the_control_api_opens_nothing_here_nor_ours_there(api: Open) -> None:
    async with api.node.client() as client:
        token, port = client.runtime.token, client.runtime.port
    assert (await status_of(api.base, "GET", "/v1/models", {"Authorization": f"Bearer {token}"}))[0] == 401
    async with (
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {api.key}"}) as session,
        session.get(f"http://127.0.0.1:{port}/status") as answer,
    ):
        assert answer.status == 401


@pytest.mark.parametrize("path", ["/status", "/api", "/load", "/shutdown", "/settings"])
async def test_no_route_of_management_is_here(http: aiohttp.ClientSession, path: str) -> None:
    async with http.get(path) as got, http.post(path, json={}) as posted:
        assert {got.status, posted.status} <= {404, 405}


async def test_a_key_has_at_most_so_many_requests_open(api: Open) -> None:
    """More are told to come again, and another key's are none of its business."""
    long = {"messages": ASK["messages"], "max_tokens": 2000, "stream": True, "logit_bias": {"2": -100}}
    other = (await asyncio.to_thread(api.control, "POST", "/api/keys", {"name": "other"}))["key"]
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(
            aiohttp.ClientSession(api.base, connector=aiohttp.TCPConnector(limit=0))
        )
        mine, rest = ({"Authorization": f"Bearer {item}"} for item in (api.key, other))
        async with asyncio.TaskGroup() as group:
            asking = [group.create_task(_held(session, long, mine), name="hold one open") for _ in range(MAX_OPEN)]
            async with asyncio.timeout(60):
                while True:  # until all of them are there
                    async with session.get("/v1/models", headers=mine) as answer:
                        if answer.status == 429:
                            break
            async with session.post(CHAT, json=ASK, headers=mine) as answer:
                assert answer.status == 429
                assert int(answer.headers["Retry-After"]) >= 1
                assert (await answer.json())["error"]["code"] == "rate_limit_exceeded"
            async with session.get("/v1/models", headers=rest) as answer:
                assert answer.status == 200
            for task in asking:
                task.cancel()
    await rests(api)
    assert await control(api, "DELETE", "/api/keys/other") == {"removed": "other"}


async def test_who_leaves_ends_his_answer(api: Open, http: aiohttp.ClientSession) -> None:
    long = {"messages": ASK["messages"], "max_tokens": 3000, "stream": True, "logit_bias": {"2": -100}}
    async with http.post(CHAT, json=long) as answer:
        await answer.content.readany()
        assert (await control(api, "GET", "/status"))["answers"]["running"] == 1
    await rests(api)
    waiting = asyncio.timeout(0.5)
    with pytest.raises(TimeoutError):
        async with waiting, http.post(CHAT, json=long | {"stream": False}):
            pass
    await rests(api)


async def _held(session: aiohttp.ClientSession, body: Json, headers: dict[str, str]) -> None:
    """Once more where somebody who only looked took its place."""
    while True:
        async with session.post(CHAT, json=body, headers=headers) as answer:
            if answer.status != 429:
                await answer.read()
                return


async def test_the_log_has_ids_and_no_text_and_no_key(api: Open, http: aiohttp.ClientSession) -> None:
    secret = "the cat sleeps in the piano"
    ask = ASK | {"messages": [{"role": "user", "content": secret}]}
    async with http.post(CHAT, json=ask, headers={"X-Request-Id": "my-own-id.7"}) as answer:
        assert answer.headers["X-Request-Id"] == "my-own-id.7"
    async with http.post(CHAT, json=ask, headers={"X-Request-Id": "no good id!"}) as answer:
        assert re.fullmatch(r"req_[0-9a-f]{24}", answer.headers["X-Request-Id"])
    log = (Path(api.node.root) / "logs" / "node.log").read_text("utf-8")
    assert "my-own-id.7 POST /v1/chat/completions of default: 200" in log
    assert re.search(r"my-own-id\.7: \d+ tokens after [\d.]+ s in the queue", log)
    assert re.search(r"my-own-id\.7 has slot \d", log)  # the driver knows it too
    lines = [json.loads(line) for line in log.splitlines()]
    mine = {line["logger"]: line["facts"] for line in lines if line.get("request") == "my-own-id.7"}
    assert mine["app.gateway.access.auth"]["path"] == CHAT
    assert mine["app.gateway.answer_service"]["tokens"] > 0
    assert mine["app.inference.pipeline.scheduler"]["slot"] >= 0
    result = await control(api, "GET", "/journal")
    assert "my-own-id.7" in [answer["request"] for answer in result["answers"]]
    assert result["answers"][-1]["whose"] == {"kind": "program", "name": "default"}
    assert secret not in log + str(result)
    assert api.key not in log
