"""Tests with a grammar process that is killed or hangs: only its answer ends, and no machine is reported as lost."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import aiohttp
import psutil
import pytest

from app.core.errors import Reason
from app.core.reasons import said
from tests.gateway.conftest import Open, opened
from tests.node.pool import Json, TestNode, paired

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no such processes there"),
]
WORDS = {"type": "array", "items": {"type": "string"}, "minItems": 60}
FORM: Json = {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": WORDS}}}
N_TOKENS, STRIKE_AT = 160, 20
OTHERS = ("What is pairing?", "What is a host?")


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[list[TestNode], Open]]:
    """The Guide over two machines."""
    with paired(tmp_path_factory.mktemp("forms"), "den", "attic") as nodes:
        order = {"model": "guide", "split": [2, 4, 2], "users": 4, "number": "f32", "measure": False}
        nodes[0].work("/load", order)
        yield nodes, opened(nodes[0])


async def heard(http: aiohttp.ClientSession, question: str, more: Json, came: Callable[[], None]) -> Json:
    """Return a stream's text, why it ended, and its error."""
    result: Json = {"said": "", "end": "", "error": "", "n": 0}
    body = {
        "model": "guide", "stream": True, "temperature": 0, "max_tokens": N_TOKENS, "ignore_eos": True,
        "stream_options": {"include_usage": True}, "messages": [{"role": "user", "content": question}],
    } | more  # fmt: skip
    async with http.post("/v1/chat/completions", json=body) as answer:
        async for line in answer.content:
            if not line.startswith(b"data: {"):
                continue
            chunk = json.loads(line[6:])
            if "error" in chunk:
                result["error"] = chunk["error"]["message"]
                continue
            for choice in chunk["choices"]:
                result["said"] += choice["delta"].get("content") or ""
                result["end"] = choice["finish_reason"] or result["end"]
            result["n"] = (chunk.get("usage") or {}).get("completion_tokens", result["n"])
            came()
    return result


def followers(den: TestNode) -> list[psutil.Process]:
    """Return the grammar processes, which are children of a worker."""
    result = []
    for worker in den.workers():
        for starter in worker.children():
            result += starter.children()
    return result


async def all_heard(api: Open, strike: Callable[[], None]) -> tuple[Json, list[Json]]:
    """The answer that keeps to a form, and the others beside it; `strike` once some of it is there."""
    n = 0

    def came() -> None:
        nonlocal n
        n += 1
        if n == STRIKE_AT:
            strike()

    async with aiohttp.ClientSession(api.base, headers={"Authorization": f"Bearer {api.key}"}) as http:
        formed, *rest = await asyncio.gather(
            heard(http, "List words.", FORM, came), *(heard(http, name, {}, lambda: None) for name in OTHERS)
        )
    return formed, rest


def machines(den: TestNode) -> Json:
    """Return the report on each machine."""
    status = den.control("GET", "/status")
    assert status["loaded"]["state"] == "ready"
    return {machine["name"]: (machine["online"], machine["reason"]) for machine in status["machines"].values()}


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
async def test_its_own_answer_ends_and_the_others_say_all_they_would(
    house: tuple[list[TestNode], Open], how: signal.Signals
) -> None:
    (den, _), api = house
    calm, rest = await all_heard(api, lambda: None)
    assert not calm["error"]
    assert calm["n"] > STRIKE_AT
    before, workers = machines(den), [worker.pid for worker in den.workers()]
    struck: list[psutil.Process] = []

    def strike() -> None:
        struck.extend(followers(den))
        for process in struck:
            process.send_signal(how)

    try:
        began = time.monotonic()
        formed, then = await all_heard(api, strike)
        assert struck
        assert time.monotonic() - began < 60
        assert formed["error"] == said(Reason("form_too_heavy")), formed
        assert calm["said"].startswith(formed["said"])  # what was shown stays
        assert then == rest
        assert machines(den) == before
        assert [worker.pid for worker in den.workers()] == workers
    finally:
        for process in struck:
            with suppress(psutil.NoSuchProcess):
                process.kill()
    assert await all_heard(api, lambda: None) == (calm, rest)
