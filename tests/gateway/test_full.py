"""No slot is left, and more is asked: the owner is next, and who would wait too long is told when to come again."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp

from app.gateway.api_request import MOST_ANSWERS
from app.gateway.fair_queue import MAX_WAITING
from tests.gateway.conftest import Open
from tests.gateway.full_pool import ENDLESS, Full, asked, figures, full
from tests.gateway.gate_calls import ASK, CHAT, control
from tests.node.pool import Json

OPENAI = {"type": "rate_limit_error", "param": None, "code": "rate_limit_exceeded"}
FEW: Json = {"options": {"num_predict": 2}}
EVERYWHERE: list[tuple[str, Json]] = [
    (CHAT, ASK), ("/v1/completions", {"prompt": "x"}), ("/v1/responses", {"input": "x"}), ("/v1/messages", ASK),
    ("/api/chat", {"messages": ASK["messages"], **FEW}), ("/api/generate", {"prompt": "x", **FEW}),
]  # fmt: skip


async def test_the_owner_is_next_before_programs_that_came_earlier(api: Open, http: aiohttp.ClientSession) -> None:
    """Some of these have had their turn, and wait for room in the KV cache."""
    ends: list[str] = []
    while not ends:
        async with full(api, http) as pool:
            ends = await ends_in_turn(pool)
    assert ends[0] == "owner", ends


async def ends_in_turn(pool: Full) -> list[str]:
    """Return the requests that end after the first was canceled, or nothing if that one had already ended."""
    first, ours = pool.holding[0], {"prompt": "Hello", "max_tokens": 40, "ignore_end": True}

    async def own() -> None:
        async with pool.api.node.client() as client:
            await client.work("POST", "/ask", ours)

    async def owner_waits() -> bool:
        now = (await control(pool.api, "GET", "/journal"))["now"]
        return any(item["whose"]["kind"] == "owner" for item in now)

    async with asyncio.TaskGroup() as group:
        group.create_task(own(), name="owner")
        await pool.until(owner_waits)
        first.cancel()
    broken, *ended = await pool.ended()
    return [item["whose"]["kind"] for item in ended] if broken["end"] == "stopped" else []


async def test_who_would_wait_too_long_is_told_when_to_come_again_in_the_shape_of_each_api(
    api: Open, http: aiohttp.ClientSession
) -> None:
    reports: list[tuple[str, int, str, Any]] = []
    while not reports:
        async with full(api, http) as pool:
            reports = await told_by_all(pool)
    for path, status, after, body in reports:
        assert (status, int(after) >= 1) == (429, True), path
        error = body["error"]
        words = error if path.startswith("/api/") else error["message"]
        assert words == f"{MAX_WAITING} requests are already waiting. Try again in {after} s."
        if path == "/v1/messages":
            assert (body["type"], error["type"]) == ("error", "rate_limit_error")
        elif path.startswith("/v1/"):
            assert error == OPENAI | {"message": words}
        else:
            assert list(body) == ["error"]


async def told_by_all(pool: Full) -> list[tuple[str, int, str, Any]]:
    """Return the answers of each API, streams too, while all slots are taken; nothing if the pool was not full yet."""
    reports: list[tuple[str, int, str, Any]] = []

    async def tell(path: str, body: Json) -> None:
        async with pool.http.post(path, json=body) as answer:
            after = answer.headers.get("Retry-After", "0")
            reports.append((path, answer.status, after, await answer.json()))

    async def all_wait() -> bool:
        return (await figures(pool.http))["queue_waiting"] == MAX_WAITING

    async with asyncio.TaskGroup() as group:
        each = ENDLESS | {"n": MOST_ANSWERS}
        waiting = [
            group.create_task(asked(pool.http, each, f"wait-{n}"), name=f"wait {n}")
            for n in range(MAX_WAITING // MOST_ANSWERS)
        ]
        await pool.until(all_wait)
        for path, body in EVERYWHERE:
            for stream in (False, True):
                task = group.create_task(tell(path, body | {"stream": stream}), name=path)
                await asyncio.wait({task, *pool.holding}, return_when=asyncio.FIRST_COMPLETED)
                if not task.done():  # a place came free
                    task.cancel()
        for item in waiting:
            item.cancel()
    return reports if await pool.was_full() and len(reports) == 2 * len(EVERYWHERE) else []
