"""Models that another host has loaded: every member lists them and chats with them through that host."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from app.core.errors import AppError
from app.core.reasons import said
from tests.gateway.conftest import Open, opened
from tests.node.pool import BUSY, Json, TestNode, paired

SOON_SECONDS = 2.0
HELLO: Json = {"messages": [{"role": "user", "content": "Hello"}], "temperature": 0, "max_tokens": 6}


@dataclass(frozen=True)
class Pool:
    """A host that has loaded a model, another member, and its Chat API."""

    host: TestNode
    member: TestNode
    api: Open


def until_shared(node: TestNode, expected: list[str]) -> None:
    """Wait until a node lists these shared models as ready."""
    late = time.monotonic() + SOON_SECONDS * BUSY
    while (there := shared(node)) != expected:
        assert time.monotonic() < late, there
        time.sleep(0.05)


def shared(node: TestNode) -> list[str]:
    return [model["reference"] for model in node.control("GET", "/status")["shared"] if model["ready"]]


async def until_done(lines: AsyncGenerator[Json, None]) -> None:
    while "done" not in await anext(lines):
        pass


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    with paired(tmp_path_factory.mktemp("shared"), "den", "study") as (host, member):
        host.work("/load", {"model": "guide", "split": [8], "measure": False})
        until_shared(member, ["guide@den"])
        yield Pool(host, member, opened(member))


def test_the_command_line_asks_through_the_host_and_tells_so_once(pool: Pool) -> None:
    question = ("ask", "How do I add a computer?", "-t", "0", "-n", "12", "--json")
    first = pool.member.run(*question, "--model", "guide@den")
    assert "den answers with its model." in first.stdout + first.stderr
    again = pool.member.run(*question, "--model", "guide@den")
    assert "den answers" not in again.stdout + again.stderr
    here, there = json.loads(again.stdout), json.loads(pool.host.run(*question).stdout)
    assert (here["model"], there["model"]) == ("guide@den", "guide")
    assert here["token_ids"] == there["token_ids"]
    assert {stage["machine"] for stage in here["placement"]} == {"den"}
    assert not pool.member.workers()  # nothing was computed here
    kept = pool.host.control("GET", "/journal")["answers"][-2:]
    assert [tuple(item["whose"].values()) for item in kept] == [("machine", "study"), ("owner", "")]


async def test_programs_reach_the_model_under_its_reference(pool: Pool) -> None:
    headers = {"Authorization": f"Bearer {pool.api.key}"}
    async with aiohttp.ClientSession(pool.api.base, headers=headers) as http:
        async with http.get("/v1/models") as answer:
            listed = {model["id"]: model for model in (await answer.json())["data"]}
        assert set(listed) == {"guide"}  # all computers have the same Guide, so that of another one is not listed too
        async with http.post("/v1/chat/completions", json=HELLO | {"model": "guide@den"}) as answer:
            body = await answer.json()
            assert (answer.status, len(body["choices"])) == (200, 1), body
            assert answer.headers["X-Poolhouse-Host"] == "den"
        async with http.post("/api/chat", json={"model": "guide@den", "messages": HELLO["messages"]}) as answer:
            assert answer.status == 200
        async with http.post("/v1/chat/completions", json=HELLO | {"model": "guide@nowhere"}) as answer:
            assert answer.status == 404
    assert not pool.member.workers()


def test_both_are_hosts_and_members_at_once(pool: Pool) -> None:
    """Each has a model of its own and asks the other one's."""
    pool.member.work("/load", {"model": "guide", "split": [8], "measure": False})
    try:
        until_shared(pool.host, ["guide@study"])
        for asks, reference, machine in ((pool.host, "guide@study", "study"), (pool.member, "guide@den", "den")):
            reply = asks.work("/ask", {"prompt": "Hello", "max_tokens": 3, "model": reference})
            assert {stage["machine"] for stage in reply["placement"]} == {machine}
    finally:
        pool.member.control("POST", "/unload")
    until_shared(pool.host, [])


async def test_the_owner_decides_on_both_sides_at_once(pool: Pool) -> None:
    async def change(node: TestNode, field: str, *, on: bool) -> None:
        await asyncio.to_thread(node.control, "POST", "/settings", {field: on})

    async with pool.member.client() as client:
        order = {"prompt": "1 2 3", "max_tokens": 900, "ignore_end": True, "model": "guide@den"}
        lines = client.stream("POST", "/ask", order)
        try:
            async for line in lines:
                if "delta" in line:
                    break
            begun = time.monotonic()
            await change(pool.host, "answer_household", on=False)
            with pytest.raises(AppError, match="host_ended_answer"):
                await until_done(lines)
            with pytest.raises(AppError, match="host_answers_not"):
                await asyncio.to_thread(pool.member.work, "/ask", order)
            assert time.monotonic() - begun < SOON_SECONDS * BUSY
        finally:
            await lines.aclose()
            await change(pool.host, "answer_household", on=True)
    await asyncio.to_thread(until_shared, pool.member, ["guide@den"])
    try:
        await change(pool.member, "ask_household", on=False)
        assert await asyncio.to_thread(shared, pool.member) == []
    finally:
        await change(pool.member, "ask_household", on=True)
    assert await asyncio.to_thread(shared, pool.member) == ["guide@den"]


def test_a_machine_that_only_lends_asks_nobody(pool: Pool) -> None:
    path = f"/machines/{pool.member.ready['id'][:16]}/roles"
    try:
        pool.host.control("POST", path, {"roles": ["lender"]})
        until_shared(pool.member, [])
        with pytest.raises(AppError):
            pool.member.work("/ask", {"prompt": "Hello", "max_tokens": 3, "model": "guide@den"})
    finally:
        pool.host.control("POST", path, {"roles": ["host", "lender"]})
    until_shared(pool.member, ["guide@den"])


def test_what_is_unloaded_is_gone_for_all(pool: Pool) -> None:
    pool.host.control("POST", "/unload")
    try:
        until_shared(pool.member, [])
    finally:
        pool.host.work("/load", {"model": "guide", "split": [8], "measure": False})
    until_shared(pool.member, ["guide@den"])


async def test_an_answer_survives_its_host_by_one_more_question(tmp_path: Path) -> None:
    """The host is killed in mid-answer: the text so far is kept, the error names who takes over, and the same chat,
    which still names the lost host, is answered there."""
    with paired(tmp_path, "den", "study") as (host, member):
        host.work("/load", {"model": "guide", "split": [8], "measure": False})
        await asyncio.to_thread(until_shared, member, ["guide@den"])
        ids = list[int]()
        async with member.client() as client:
            order = {"prompt": "How do I add a computer?", "sampling": {"temperature": 0}, "model": "guide@den"}

            async def answer() -> None:
                async for line in client.stream("POST", "/ask", order | {"max_tokens": 900, "ignore_end": True}):
                    if "delta" in line:
                        ids.extend(line["delta"]["token_ids"])
                    if len(ids) == 8:
                        host.process.kill()

            with pytest.raises(AppError, match="host_gone_next") as raised:
                await answer()
            assert said(raised.value).startswith("den has disconnected. study is loading guide. To continue")
            assert len(ids) >= 8
            done = await asyncio.to_thread(member.work, "/ask", order | {"max_tokens": 8})
            assert {stage["machine"] for stage in done["placement"]} == {"study"}
            assert done["token_ids"] == ids[:8]  # the same words from the machine that took over
