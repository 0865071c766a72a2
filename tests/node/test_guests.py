"""A machine that was paired as guest: its host answers, and it can do nothing else with the household."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from app.core.errors import AppError, BadInput, Refused
from app.core.reasons import said
from tests.gateway.conftest import Open, opened
from tests.node.pool import BUSY, Json, TestNode, node, pair

CHAT = "/v1/chat/completions"
QUESTION = "How do I add a computer?"
SOON_SECONDS, AT_ONCE_SECONDS = 2.0, 3.0  # on a machine with nothing else to do
HELLO: Json = {"messages": [{"role": "user", "content": "Hello"}], "temperature": 0, "max_tokens": 6}
LONG: Json = {"prompt": "1 2 3", "max_tokens": 900, "sampling": {"temperature": 0}, "ignore_end": True}


@dataclass(frozen=True)
class Pool:
    """A host, its guest, and the guest's Chat API."""

    host: TestNode
    guest: TestNode
    api: Open


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    folder = tmp_path_factory.mktemp("guests")
    with node(folder / "den", "den") as host, node(folder / "visitor", "visitor") as guest:
        pair(host, guest, role="guest")
        host.work("/load", {"model": "guide", "measure": False})
        yield Pool(host, guest, opened(guest))


def session_of(api: Open) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(api.base, headers={"Authorization": f"Bearer {api.key}"})


@pytest.mark.long
def test_the_log_carries_the_role_and_both_sides_say_it(pool: Pool) -> None:
    for test_node in (pool.host, pool.guest):
        machines = test_node.control("GET", "/machines")["machines"]
        assert {m["name"]: m["roles"] for m in machines}["visitor"] == ["guest"]
    assert pool.guest.control("GET", "/status")["hosts"] == ["den"]
    assert pool.host.control("GET", "/status")["hosts"] is None
    assert "Ready. Answers come from den." in pool.guest.run("status").stdout
    assert "den answers with guide." in pool.guest.run("models").stdout


@pytest.mark.long
def test_its_command_line_is_answered_by_the_host(pool: Pool) -> None:
    requests = ("ask", "How do I add a computer?", "-t", "0", "-n", "12", "--json")
    here, there = (json.loads(test_node.run(*requests).stdout) for test_node in (pool.guest, pool.host))
    assert here["token_ids"] == there["token_ids"]
    assert [stage["machine"] for stage in here["placement"]] == ["den"]
    assert not pool.guest.workers()  # nothing was computed here
    kept = pool.host.control("GET", "/journal")["answers"][-2:]
    assert [tuple(item["whose"].values()) for item in kept] == [("guest", "visitor"), ("owner", "")]
    unknown = pool.guest.run("ask", "Hello", "--model", "other-model")
    assert unknown.returncode != 0
    assert "other-model" in unknown.stdout + unknown.stderr


async def test_its_own_api_passes_whole_requests_on_in_every_shape(pool: Pool) -> None:
    """The key is the guest's own; the host sees none, and says the same to its own programs."""
    async with session_of(pool.api) as http:
        async with http.get("/v1/models") as answer:
            assert [model["id"] for model in (await answer.json())["data"]] == ["guide"]
        async with http.get("/api/tags") as answer:
            assert len((await answer.json())["models"]) == 1
        async with http.get("/api/ps") as answer:  # what the host has loaded
            (there,) = (await answer.json())["models"]
            assert (there["name"], there["context_length"] > 0) == ("guide", True)
        async with http.post(CHAT, json=HELLO | {"model": "default", "n": 2}) as answer:
            body = await answer.json()
            assert (answer.status, len(body["choices"])) == (200, 2), body
            assert answer.headers["X-Request-Id"]
        async with http.post(CHAT, json=HELLO, headers={"X-Request-Id": "of-visitor.1"}) as answer:
            assert (answer.status, answer.headers["X-Request-Id"]) == (200, "of-visitor.1")
        journal = await asyncio.to_thread(pool.host.control, "GET", "/journal")
        assert journal["answers"][-1]["request"] == "of-visitor.1"  # the host knows it by the same
        async with http.post(CHAT, json=HELLO | {"model": "guide", "stream": True}) as answer:
            stream = (await answer.read()).decode()
            assert stream.endswith("data: [DONE]\n\n")
            assert answer.headers["X-Accel-Buffering"] == "no"
        words = [
            json.loads(line[6:])["choices"][0]["delta"].get("content") or ""
            for line in stream.split("\n\n")
            if line.startswith("data: {")
        ]
        assert "".join(words) == body["choices"][0]["message"]["content"]
        ollama = {"model": "guide", "messages": HELLO["messages"], "options": {"num_predict": 3}}
        async with http.post("/api/chat", json=ollama) as answer:
            assert len((await answer.text()).splitlines()) > 1
        async with http.post("/api/generate", json={"model": "guide", "keep_alive": 0}) as answer:
            why = (await answer.json())["error"]  # the guest's own --may-load would change nothing
            assert (answer.status, "guide stays loaded on " in why) == (400, True), why
        request = {"model": "guide", "input": "Hello"}
        async with http.post("/v1/responses/input_tokens", json=request) as answer:
            assert (await answer.json())["input_tokens"] > 0
        async with http.post("/v1/messages", json=HELLO | {"model": "guide"}) as answer:
            assert (await answer.json())["type"] == "message"
        message = HELLO | {"model": "guide", "stream": True}
        async with http.post("/v1/messages", json=message) as answer:
            assert answer.headers["request-id"] == answer.headers["X-Request-Id"]
        async with http.post("/v1/messages", json=HELLO | {"model": "other"}) as answer:
            assert (answer.status, (await answer.json())["type"]) == (404, "error")
        async with http.post(CHAT, data=b"{", headers={"Content-Type": "application/json"}) as answer:
            assert (answer.status, "error" in await answer.json()) == (400, True)
        async with http.post(CHAT, json=HELLO, headers={"Authorization": "Bearer x"}) as answer:
            assert answer.status == 401
    assert not pool.guest.workers()


async def until_done(lines: AsyncGenerator[Json, None]) -> None:
    while "done" not in await anext(lines):
        pass


async def begun(test_node: TestNode) -> AsyncGenerator[Json, None]:
    """A long answer whose first token has come."""
    async with test_node.client() as client, contextlib.aclosing(client.stream("POST", "/ask", LONG)) as lines:
        async for line in lines:
            yield line


async def first_token(lines: AsyncGenerator[Json, None]) -> None:
    while "delta" not in (line := await anext(lines)):
        assert "done" not in line, line


async def test_who_leaves_ends_the_answer_on_the_host(pool: Pool) -> None:
    async with contextlib.aclosing(begun(pool.guest)) as lines:
        await first_token(lines)
        assert (await asyncio.to_thread(pool.host.answers))["running"] == 1
    await pool.host.until_nobody(SOON_SECONDS)
    async with session_of(pool.api) as http:
        order = HELLO | {"model": "guide", "stream": True, "max_tokens": 900}
        async with http.post(CHAT, json=order) as answer:
            await answer.content.readany()
    await pool.host.until_nobody(SOON_SECONDS)


async def test_a_loss_on_the_host_takes_no_token_of_its_answers(pool: Pool) -> None:
    """The guest is told what happened, as the host's own people are, and its stream continues to the same end."""
    request = {"messages": [{"role": "user", "content": QUESTION}]}  # an answer that ends: nothing odd after it
    order, stream = request | {"sampling": {"temperature": 0}}, request | {"temperature": 0}
    undisturbed = await _both(pool, order, stream)
    disturbed = await _both(pool, order, stream, kill_after=4)
    assert disturbed[:2] == undisturbed[:2]
    notices, recoveries = disturbed[2:]
    assert any("den" in notice for notice in notices), notices
    assert (undisturbed[2:], recoveries) == (([], 0), 1)


async def _both(pool: Pool, order: Json, stream: Json, kill_after: int = 0) -> tuple[list[int], str, list[str], int]:
    """Both at once: the tokens of the one, the text of the other, what was told, how often it was recovered."""
    ids, notices, text = list[int](), list[str](), ""
    whole = stream | {"model": "guide", "stream": True}
    workers = pool.host.workers()

    async def streamed() -> None:
        nonlocal text
        async with session_of(pool.api) as http, http.post(CHAT, json=whole) as answer:
            async for line in answer.content:
                if line.startswith(b"data: {"):
                    text += json.loads(line[6:])["choices"][0]["delta"].get("content") or ""

    async with asyncio.TaskGroup() as group, pool.guest.client() as client:
        group.create_task(streamed())
        async with contextlib.aclosing(client.stream("POST", "/ask", order)) as lines:
            async for line in lines:
                if "delta" in line:
                    ids += line["delta"]["token_ids"]
                elif "recovery" in line:
                    notices.append(line["recovery"]["text"])
                elif "done" in line:
                    done = line["done"]
                if 0 < kill_after <= len(ids):
                    kill_after = 0
                    for worker in workers:
                        worker.kill()
    return ids, text, notices, done["recoveries"]


def test_what_it_loads_lies_on_itself_alone_and_answers_first(pool: Pool) -> None:
    """Though the host lends: a guest opens no pipelines."""
    refused = pool.guest.run("load", "guide", "--split", "2,4,2")
    assert refused.returncode != 0
    assert refused.stderr.startswith("visitor is a guest in its household. "), refused.stderr
    for path, more in (("/plan", {"split": [2, 4, 2]}), ("/load", {"shape": "replicas"})):
        with pytest.raises(Refused, match="guest_alone"):
            pool.guest.work(path, {"model": "guide", **more})
    try:
        planned = pool.guest.work("/load", {"model": "guide", "measure": False})["loaded"]
        assert {stage["machine"] for stage in planned["stages"]} == {"visitor"}
        reply = pool.guest.work("/ask", {"prompt": "Hello", "max_tokens": 3})
        assert [stage["machine"] for stage in reply["placement"]] == ["visitor"]
    finally:
        pool.guest.control("POST", "/unload")
    status = pool.guest.control("GET", "/status")
    assert (status["loaded"], status["hosts"]) == (None, ["den"])


def test_it_lends_nothing_and_may_not_change_the_household(pool: Pool) -> None:
    machines = pool.host.control("GET", "/status")["machines"]
    (visitor,) = [machine for machine in machines.values() if machine["name"] == "visitor"]
    assert visitor["lent_bytes"] == 0
    assert (visitor["state"], visitor["reason"]) == ("guest", None)
    assert "guest" in pool.host.run("machines").stdout
    refused = pool.guest.run("pair", "--open")
    assert refused.returncode != 0
    assert "is not an admin" in refused.stdout + refused.stderr
    tries: tuple[tuple[str, Json], ...] = (
        ("/machines/visitor/roles", {"roles": ["host"]}), ("/machines/den/name", {"name": "x"}),
    )  # fmt: skip
    for path, body in tries:
        with pytest.raises(AppError) as raised:
            pool.guest.control("POST", path, body)
        assert "is not an admin" in said(raised.value)


def test_nobody_is_guest_and_host_at_once(pool: Pool) -> None:
    """Such a machine would ask nobody, and be asked by other guests."""
    path, both = "/machines/visitor/roles", {"roles": ["guest", "host"]}
    with pytest.raises(BadInput) as raised:
        pool.host.control("POST", path, both)
    assert "visitor cannot be both" in said(raised.value)
    machines = pool.host.control("GET", "/machines")["machines"]
    assert {m["name"]: m["roles"] for m in machines}["visitor"] == ["guest"]


async def test_another_role_ends_what_is_under_way_and_the_stream_says_so(pool: Pool) -> None:
    control = pool.host.control
    stuck = {"prompt": "1 2 3", "logit_bias": {"300": 100}, "max_tokens": 900, "n": 4}
    order = stuck | {"model": "guide", "stream": True}
    try:
        async with session_of(pool.api) as http, http.post("/v1/completions", json=order) as answer:
            await answer.content.readany()
            await asyncio.to_thread(control, "POST", "/machines/visitor/roles", {"roles": ["lender"]})
            rest = (await answer.content.read()).decode()
            assert "data: [DONE]" not in rest
            assert '"error"' in rest.split("data: ")[-1]
        await pool.host.until_nobody(SOON_SECONDS)
    finally:
        await asyncio.to_thread(control, "POST", "/machines/visitor/roles", {"roles": ["guest"]})


@pytest.mark.long
async def test_a_removal_ends_its_answers_at_once(pool: Pool, tmp_path: Path) -> None:
    """Nothing is passed on afterwards, and the host has no work left. Of a guest of this test's own: who was
    removed stays out until it is reset."""
    with node(tmp_path / "caller", "caller") as guest:
        assert (await asyncio.to_thread(pair, pool.host, guest, role="guest"))["guest"]
        async with contextlib.aclosing(begun(guest)) as lines:
            await first_token(lines)
            started = time.monotonic()
            await asyncio.to_thread(pool.host.control, "DELETE", "/machines/caller")
            with pytest.raises(AppError):
                await until_done(lines)
            await pool.host.until_nobody(SOON_SECONDS)
            assert time.monotonic() - started < AT_ONCE_SECONDS * BUSY
        async with asyncio.timeout(60):  # it may read of its removal after its answer was cut off
            while (await asyncio.to_thread(guest.control, "GET", "/status"))["hosts"] is not None:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
    assert (await asyncio.to_thread(pool.guest.control, "GET", "/status"))["hosts"] == ["den"]
