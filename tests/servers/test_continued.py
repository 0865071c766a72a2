"""Answers that move between the pool and a real llama-server in the middle: no word is lost, and both are named."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from app.api.responses import Answer, AnswerLine
from app.core.errors import AppError
from app.core.planner.placement import LEAST_SLOTS
from tests.gateway.conftest import Open, opened
from tests.node.pool import Json, TestNode, node, paired
from tests.servers.conftest import KEY, MODEL, LlamaServer

ASK: Json = {
    "prompt": "Count from 1 to 60 in words, separated by commas. Write nothing else.", "model": "smol",
    "max_tokens": 160, "sampling": {"temperature": 0.0, "seed": 7},
}  # fmt: skip
BEFORE = 12  # pieces of the answer that arrive before its source is killed
MIB = 1 << 20


def add(den: TestNode, server: LlamaServer, models: dict[str, str], **may: bool) -> None:
    order = {"name": "lab", "url": server.url, "models": models, "cap_tokens": 100_000, "key": KEY}
    den.control("POST", "/api/upstreams", order)
    den.control("POST", "/api/upstreams/lab", {"on": True, **may})


def bring(den: TestNode, name: str = "smol") -> None:
    done = den.run("import", str(MODEL), "--name", name)
    assert done.returncode == 0, done.stderr


async def lines_of(den: TestNode, body: Json) -> AsyncGenerator[AnswerLine, None]:
    async with den.client() as client, aclosing(client.stream("POST", "/ask", body, each=AnswerLine)) as lines:
        async for line in lines:
            yield line


async def answer_to(den: TestNode, body: Json, after: int = 0, act: Any = None) -> tuple[str, str, Answer]:
    """Return the text before `act` and after it, and the end of the answer."""
    before, later, n_pieces = "", "", 0
    async with aclosing(lines_of(den, body)) as lines:
        async for line in lines:
            if line.done is not None:
                return before, later, line.done
            if line.delta is not None and line.delta.text:
                n_pieces += 1
                if act is not None and n_pieces > after:
                    later += line.delta.text
                else:
                    before += line.delta.text
                if act is not None and n_pieces == after:
                    await asyncio.to_thread(act)
    raise AssertionError("the answer has no end")


@pytest.fixture
def den(tmp_path: Path) -> Iterator[TestNode]:
    with node(tmp_path / "den", "den") as made:
        yield made


async def test_what_only_a_server_has_is_answered_there_once_its_owner_allows_it(
    den: TestNode, server: LlamaServer
) -> None:
    await asyncio.to_thread(add, den, server, {"smol": server.name})
    with pytest.raises(AppError, match="server_consent"):
        await answer_to(den, ASK)
    assert den.control("GET", "/status")["servers"][0]["models"] == ["smol"]
    said = den.run("ask", "Hello", "--model", "smol@lab").stderr
    assert "lab, another server, would answer with smol" in " ".join(said.split())
    assert den.run("upstream", "change", "lab", "--chats").returncode == 0
    for name in ("smol", "smol@lab"):
        text, _, done = await answer_to(den, ASK | {"model": name, "max_tokens": 20})
        assert (done.text, done.model, done.n_tokens) == (text, "smol@lab", 20)
        assert [note.code for note in done.notes_facts] == ["answer_by_server"]
    output = den.run("ask", "Hello", "--model", "smol", "-n", "8")
    assert "lab, another server, wrote this answer." in " ".join(output.stderr.split())


async def test_a_server_that_is_killed_in_mid_answer_is_followed_by_the_pool(
    den: TestNode, server: LlamaServer
) -> None:
    await asyncio.to_thread(bring, den, "here")
    await asyncio.to_thread(add, den, server, {"there": server.name, "here": server.name}, chats=True)
    # `here` is a file of this computer too, so only its reference goes to the server
    body = ASK | {"model": "here@lab"}
    before, later, done = await answer_to(den, body, BEFORE, server.process.kill)
    print(repr(before), repr(later[:80]))
    assert before
    assert later
    assert done.text == before + later
    assert [note.code for note in done.notes_facts][-1] == "answer_server_then_pool"
    assert done.tokens_elsewhere >= BEFORE
    assert done.token_ids


async def test_a_pool_that_cannot_go_on_is_followed_by_a_server(tmp_path: Path, server: LlamaServer) -> None:
    with paired(tmp_path, "den", "attic") as (den, attic):
        await asyncio.to_thread(bring, den)
        await asyncio.to_thread(den.work, "/load", {"model": "smol", "split": [10, 10, 10], "context": 1024})
        whole = (await answer_to(den, ASK))[2].text
        # den alone may not hold the whole model
        await asyncio.to_thread(den.control, "POST", "/lending", {"limit_bytes": 90 * MIB})
        await asyncio.to_thread(add, den, server, {"smol": server.name})
        await asyncio.to_thread(den.control, "POST", "/api/upstreams/lab", {"continues": True})

        def kill() -> None:
            os.kill(attic.process.pid, signal.SIGKILL)

        before, later, done = await answer_to(den, ASK, BEFORE, kill)
        print(repr(before), repr(later[:80]), repr(whole[:120]))
        assert done.text == before + later
        assert [note.code for note in done.notes_facts] == ["answer_pool_then_server"]
        assert whole.startswith(before)
        assert done.n_tokens > BEFORE


async def test_a_program_s_answer_goes_on_at_a_server_and_says_so(tmp_path: Path, server: LlamaServer) -> None:
    with paired(tmp_path, "den", "attic") as (den, attic):
        await asyncio.to_thread(bring, den)
        await asyncio.to_thread(den.work, "/load", {"model": "smol", "split": [10, 10, 10], "context": 1024})
        await asyncio.to_thread(den.control, "POST", "/lending", {"limit_bytes": 90 * MIB})
        await asyncio.to_thread(add, den, server, {"smol": server.name})
        await asyncio.to_thread(den.control, "POST", "/api/upstreams/lab", {"continues": True})
        api = await asyncio.to_thread(opened, den)
        messages = [{"role": "user", "content": ASK["prompt"]}]
        body = {"model": "smol", "messages": messages, "max_tokens": 160, "stream": True, "temperature": 0, "seed": 7,
                "stream_options": {"include_usage": True}}  # fmt: skip
        _, marks, usage = await streamed(api, body, lambda: os.kill(attic.process.pid, signal.SIGKILL))
        assert marks[0] is None
        assert marks[-1] == {"upstream": "lab", "pool": True}
        assert usage["completion_tokens"] > BEFORE


async def streamed(api: Open, body: Json, act: Callable[[], object]) -> tuple[list[str], list[Any], Json]:
    """Return the texts of a stream, the mark of each, and the usage. `act` is called in the middle."""
    texts, marks, usage = list[str](), list[Any](), Json()
    headers = {"Authorization": f"Bearer {api.key}"}
    async with (
        aiohttp.ClientSession(api.base, headers=headers) as session,
        session.post("/v1/chat/completions", json=body) as answer,
    ):
        assert answer.status == 200
        async for line in answer.content:
            if not line.startswith(b"data: {"):
                continue
            chunk = json.loads(line[6:])
            usage = chunk.get("usage") or usage
            for choice in chunk["choices"]:
                if text := choice["delta"].get("content"):
                    texts.append(text)
                    marks.append(chunk.get("poolhouse"))
                    if len(texts) == BEFORE:
                        act()
    return texts, marks, usage


async def test_a_program_s_answer_comes_back_to_the_pool_when_the_server_is_killed(
    den: TestNode, server: LlamaServer
) -> None:
    """All slots of the pool are taken, so one request more goes to the server."""
    await asyncio.to_thread(bring, den)
    await asyncio.to_thread(den.work, "/load", {"model": "smol", "context": 4096, "users": LEAST_SLOTS})
    await asyncio.to_thread(add, den, server, {"smol": server.name})
    api = await asyncio.to_thread(opened, den)
    messages = [{"role": "user", "content": ASK["prompt"]}]
    body = {"model": "smol", "messages": messages, "max_tokens": 160, "stream": True, "temperature": 0, "seed": 7,
            "stream_options": {"include_usage": True}}  # fmt: skip
    async with asyncio.TaskGroup() as group:
        holding = [  # each another conversation, which has a slot of its own
            group.create_task(
                streamed(api, body | {"max_tokens": 400, "user": f"{number}"}, lambda: None),
                name=f"in the pool {number}",
            )
            for number in range(LEAST_SLOTS)
        ]
        async with asyncio.timeout(30):
            while (await asyncio.to_thread(den.answers))["running"] < LEAST_SLOTS:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        further = group.create_task(streamed(api, body, server.process.kill), name="at the server")
    assert {mark is None for task in holding for mark in task.result()[1]} == {True}
    texts, marks, usage = further.result()
    print(repr("".join(texts)))
    assert marks[0] == {"upstream": "lab"}
    assert marks[-1] == {"upstream": "lab", "pool": True}
    assert len(texts) > BEFORE
    assert usage["completion_tokens"] == 160
