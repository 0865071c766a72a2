"""The clients of the API's measurement, against a stand-in that answers like a node; and their figures."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator

import pytest
from aiohttp import web

from app.gateway.metrics import Metrics
from bench.parts.api import METRICS, NANOSECONDS, PATH, alone, at_driver, growth, many, unfairness

TOKENS, FIRST_S, EACH_S, ADDED_S = 5, 0.02, 0.01, 0.03


@pytest.fixture
async def base() -> AsyncGenerator[str, None]:
    """Keys `a` and `b` are answered; `c` is not; `d` gets half an answer."""

    async def chat(request: web.Request) -> web.StreamResponse:
        key = request.headers["Authorization"].removeprefix("Bearer ")
        if key == "c":
            return web.json_response({"error": "no"}, status=429)
        answer = web.StreamResponse()
        began = time.monotonic()
        await asyncio.sleep(ADDED_S)  # what the API adds before its driver begins
        await answer.prepare(request)
        for number in range(TOKENS):
            due = began + ADDED_S + FIRST_S + number * EACH_S
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            await answer.write(json.dumps({"message": {}, "done": False}).encode() + b"\n")
        if key != "d":
            figures = {"prompt_eval_duration": FIRST_S, "eval_duration": EACH_S * (TOKENS - 1)}
            result = {name: int(figure * NANOSECONDS) for name, figure in figures.items()}
            await answer.write(json.dumps({"done": True, "eval_count": TOKENS, **result}).encode())
        return answer

    async def metrics(request: web.Request) -> web.Response:
        figures = Metrics()
        for seconds in (0.0025, 0.003, 0.0031):
            figures.before.observe(seconds)
        return web.Response(body=figures.page())

    app = web.Application()
    app.add_routes([web.post(PATH, chat), web.get(METRICS, metrics)])
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def test_many_clients_count_answers_and_losses(base: str) -> None:
    load = await many(base, ["a", "b"], 4, 0.3, TOKENS)
    assert min(load.answers.values()) >= 1
    assert load.tokens == TOKENS * sum(load.answers.values())
    assert not load.lost
    assert len(load.waits_s) == sum(load.answers.values())
    for key, why in (("c", "429"), ("d", "200")):
        lost = await many(base, [key], 1, 0.3, TOKENS)
        assert lost.lost
        assert lost.lost[0].startswith(why)
        assert lost.answers == {key: 0}


async def test_what_the_api_adds_is_told_apart_from_the_driver(base: str) -> None:
    alones = await alone(base, "a", 2, TOKENS)
    assert all(ADDED_S <= item.and_back_s < ADDED_S + 20 for item in alones)
    assert all(-0.005 < item.per_token_s < 20 for item in alones)


async def test_the_node_counts_who_was_at_the_driver_in_time(base: str) -> None:
    assert await at_driver(base, "a", 0.003) == (2, 3)


def test_figures() -> None:
    assert unfairness([10, 8, 9]) == pytest.approx(0.2)
    assert unfairness([0, 0]) == unfairness([]) == 1.0  # nobody answered is not fair
    assert growth([1, 9, 10, 10, 10, 10, 12, 12]) == pytest.approx(12 / 10 - 1)
    with pytest.raises(ValueError, match="four"):
        growth([1, 2, 3])
