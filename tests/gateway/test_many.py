"""Sixty-four programs' requests at once: none is lost, keys share fairly, and the owner does not wait behind them."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest

from tests.gateway.conftest import Open
from tests.node.pool import Json

EACH = 32
ASK: Json = {"messages": [{"role": "user", "content": "Hello. Who are you?"}], "max_tokens": 8, "temperature": 0}


@pytest.mark.long
async def test_sixty_four_at_once(api: Open) -> None:
    other = (await asyncio.to_thread(api.control, "POST", "/api/keys", {"name": "second"}))["key"]
    done: list[str] = []
    texts: list[str] = []

    async def ask(session: aiohttp.ClientSession, name: str, key: str) -> None:
        headers = {"Authorization": f"Bearer {key}"}
        async with session.post("/v1/chat/completions", json=ASK, headers=headers) as answer:
            assert answer.status == 200, await answer.text()
            texts.append((await answer.json())["choices"][0]["message"]["content"])
        done.append(name)

    async def own() -> None:
        async with api.node.client() as client:
            order = {"prompt": ASK["messages"][0]["content"], "max_tokens": 8, "sampling": {"temperature": 0}}
            texts.append((await client.work("POST", "/ask", order))["text"])
        done.append("owner")

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(api.base, connector=connector) as session, asyncio.TaskGroup() as group:
        for name, key in (("first", api.key), ("second", other)):
            for number in range(EACH):
                group.create_task(ask(session, name, key), name=f"{name} {number}")
            await asyncio.sleep(0.1)  # all of the first one's are there before the second's come
        group.create_task(own(), name="owner")
    await asyncio.to_thread(api.control, "DELETE", "/api/keys/second")
    assert len(done) == 2 * EACH + 1
    assert len(set(texts)) == 1
    assert done.index("owner") < 2 * EACH - 8  # not behind those who were there before
    shared = done[done.index("second") :]
    both = shared[: 2 * min(shared.count("first"), shared.count("second"))]
    assert abs(both.count("first") - both.count("second")) <= max(2, len(both) // 5), done
