"""Whole requests to whole machines: real nodes, the Guide on each, and one of them killed in mid-answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from app.client import NodeClient
from tests.gateway.conftest import free_port
from tests.node.pool import TestNode, node, pair, paired
from tests.node.prometheus import samples

Json = dict[str, Any]
pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]

EACH = 16  # answers on each machine when one of them is killed
ORDER = {"model": "guide", "users": EACH, "context": 256, "shape": "replicas", "measure": False}
TOKENS = 50
SLOTS = 4  # of each machine, when programs ask; the fewest of several
WISHES = {"many": 30, "some": 16, "few": 8}  # requests of each program, all of them at once
TEXT = {
    "model": "guide", "prompt": "How do I add a computer?", "max_tokens": 80, "temperature": 0,
    "logit_bias": {"2": -100},  # the token that ends an answer: all are equally long
}  # fmt: skip
SHORT = [
    {"prompt": f"Question {n}: how do I pair?", "raw": True, "max_tokens": 100, "ignore_end": True,
     "sampling": {"temperature": 0}}
    for n in range(16)
]  # fmt: skip
MIXED = {
    "model": "guide", "users": 4, "context": 128, "number": "f32", "measure": False,
    "split": [2, 3, 3], "shape": "replicas",
}  # fmt: skip
LONG = 200  # of answers that should not be over before something happens


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[TestNode]]:
    with paired(tmp_path_factory.mktemp("replicas"), "den", "attic") as made:
        yield made


def question(n: int, **more: Any) -> Json:
    greedy = {"sampling": {"temperature": 0}, "max_tokens": TOKENS, "ignore_end": True}
    return {"prompt": f"Question {n}: how do I add a computer?", "raw": True, **greedy, **more}


async def ask(host: NodeClient, subject: Json, came: Callable[[], None] = lambda: None) -> Json:
    """The end of an answer, with the notices in it."""
    reports: list[Json] = []
    async with aclosing(host.stream("POST", "/ask", subject)) as lines:
        async for line in lines:
            if notice := line.get("recovery"):
                reports.append(notice)
            if "delta" in line:
                came()
            if "done" in line:
                return {**line["done"], "notices": reports}
    raise AssertionError("an answer without its end")


async def until(holds: Callable[[], Awaitable[bool]], within_s: float = 60) -> None:
    async with asyncio.timeout(within_s):
        while not await holds():  # noqa: ASYNC110  seen from outside
            await asyncio.sleep(0.02)


async def test_a_replica_killed_under_many_answers_takes_none_of_them_with_it(nodes: list[TestNode]) -> None:
    den, attic = nodes
    requests = [question(n) for n in range(2 * EACH)]
    async with den.client() as host:
        await host.work("POST", "/load", ORDER | {"shape": "one"})
        whole = await asyncio.gather(*(ask(host, subject) for subject in requests))
        loaded = (await host.work("POST", "/load", ORDER))["loaded"]
        assert loaded["shape"] == "replicas"
        assert [stage["role"] for stage in loaded["stages"]] == ["whole", "whole"]
        assert [replica["state"] for replica in loaded["replicas"]] == ["ready", "ready"]
        came, worker = 0, await attic.one_worker()

        def one_came() -> None:
            nonlocal came
            came += 1
            if came == 2 * EACH:  # soon: on a busy computer tokens are made faster than read
                worker.kill()

        done = await asyncio.gather(*(ask(host, subject, one_came) for subject in requests))
        assert [item["token_ids"] for item in done] == [item["token_ids"] for item in whole]
        moved = [item for item in done if item["recoveries"]]
        assert moved  # its slots were full, or nearly so, unless they had ended just then
        for item in moved:
            assert [notice["state"] for notice in item["notices"]] == ["rebuilding", "continued"]
            assert "attic" in item["notices"][0]["text"]
            assert [stage["machine"] for stage in item["placement"]] == ["den"]
        assert [item["notices"] for item in done if not item["recoveries"]] == [[]] * (2 * EACH - len(moved))

        async def is_back() -> bool:
            held = (await host.get("/status"))["loaded"]["replicas"]
            return [item["state"] for item in held] == ["ready", "ready"]

        await until(is_back)  # its machine is still there: it is opened again
        done = await asyncio.gather(*(ask(host, subject) for subject in requests[:8]))
        assert [item["token_ids"] for item in done] == [item["token_ids"] for item in whole[:8]]


async def test_a_chat_returns_to_its_machine_and_a_lender_that_pauses_is_left(nodes: list[TestNode]) -> None:
    den, attic = nodes
    async with den.client() as host, attic.client() as lender:
        if ((await host.get("/status"))["loaded"] or {}).get("shape") != "replicas":
            await host.work("POST", "/load", ORDER)
        begun = [f"Chat {n}. " + "How do I add a computer? " * 16 for n in range(4)]
        chats = [question(n, prompt=text, conversation=f"chat {n}", max_tokens=2) for n, text in enumerate(begun)]
        first = await asyncio.gather(*(ask(host, chat) for chat in chats))
        for chat, item in zip(chats, first, strict=True):
            again = await ask(host, chat | {"prompt": f"{chat['prompt']}{item['text']}!"})
            assert again["placement"] == item["placement"]
            assert again["reused_tokens"] > 60
        requests = [question(n, max_tokens=LONG) for n in range(8)]
        expected = await asyncio.gather(*(ask(host, subject) for subject in requests))
        began = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            answers = [group.create_task(ask(host, subject, began.set)) for subject in requests]
            await began.wait()
            await lender.post("/lending/pause", {})
        done = [answer.result() for answer in answers]
        assert [item["token_ids"] for item in done] == [item["token_ids"] for item in expected]
        assert {item["placement"][0]["machine"] for item in done} == {"den"}
        status = json.loads((await asyncio.to_thread(den.run, "status", "--json")).stdout)
        assert [replica["state"] for replica in status["loaded"]["replicas"]] == ["ready", "lost"]
        output = (await asyncio.to_thread(den.run, "status")).stdout
        assert [len(status["loaded"][name]) for name in ("stages", "holders")] == [2, 1]
        assert "Ready. guide is loaded on this machine." in output
        assert "attic" in output
        assert "lost" in output
        await asyncio.to_thread(attic.run, "lend", "--resume")

        async def lends_again() -> bool:
            machine = (await host.get("/status"))["machines"][attic.ready["id"]]
            return machine["state"] not in ("draining", "paused")

        await until(lends_again)  # what changes within a quarter of a second is told as one


async def test_programs_share_the_slots_of_all_replicas_in_turn(nodes: list[TestNode]) -> None:
    """Three keys with very different appetites: each gets its share while it wants one, on both machines."""
    den, _ = nodes
    async with den.client() as host:
        await host.work("POST", "/load", ORDER | {"users": SLOTS})
        port = (await host.post("/api", {"on": True, "port": free_port()}))["listens_at"]
        keys = {name: (await host.post("/api/keys", {"name": name}))["key"] for name in WISHES}
        done: list[str] = []
        looks: list[dict[str, int]] = []  # answers on each machine, made or waiting for its slot

        async def program(session: aiohttp.ClientSession, name: str) -> None:
            headers = {"Authorization": f"Bearer {keys[name]}"}
            async with session.post("/v1/completions", json=TEXT, headers=headers) as answer:
                assert answer.status == 200, await answer.text()
            done.append(name)

        async def watch() -> None:
            while len(done) < sum(WISHES.values()):
                held = (await host.get("/status"))["loaded"]["replicas"]
                looks.append({item["machine"]: item["answering"] + item["waiting"] for item in held})
                await asyncio.sleep(0.02)

        base = f"http://127.0.0.1:{port}"
        async with (
            aiohttp.ClientSession(base, connector=aiohttp.TCPConnector(limit=0)) as session,
            asyncio.TaskGroup() as group,
        ):
            group.create_task(watch(), name="watch the replicas")
            for key, n in WISHES.items():
                for number in range(n):
                    group.create_task(program(session, key), name=f"{key} {number}")
                await asyncio.sleep(0.03)  # all of this one's are there before the next one's come
        async with aiohttp.ClientSession(base, headers={"X-Api-Key": keys["few"]}) as session:
            page = await (await session.get("/metrics")).text()
    for machine in ("den", "attic"):
        replica = {"model": "guide", "machine": machine}
        assert samples(page, "replica_up", **replica) == [1]
        for state in ("running", "waiting"):
            assert samples(page, "replica_answers", **replica, state=state) == [0]
    most = max(sum(look.values()) for look in looks)
    assert SLOTS < most <= 2 * SLOTS, looks  # those of both machines, and no more
    assert all(max(look[machine] for look in looks) for machine in ("den", "attic")), looks
    assert {name: done.count(name) for name in WISHES} == WISHES
    # turn by turn, after those that had begun; at the end of one line for all it would be the last
    last = len(done) - done[::-1].index("few")
    assert last <= len(WISHES) * WISHES["few"] + 4 * SLOTS, done


async def test_a_split_serves_beside_a_whole_one_and_is_placed_anew_when_it_loses_a_machine(
    nodes: list[TestNode], tmp_path: Path
) -> None:
    den, attic = nodes
    with node(tmp_path, "shed") as shed:
        pair(den, shed)
        await split_beside_whole(den, {"attic": attic, "shed": shed})


async def split_beside_whole(den: TestNode, by_name: dict[str, TestNode]) -> None:
    async with den.client() as host:

        async def loaded() -> Json:
            now: Json = (await host.get("/status"))["loaded"]
            return now

        async def all_answer_on(n_stages: int) -> bool:
            now = await loaded()
            states = [replica["state"] for replica in now["replicas"]]
            return states == ["ready", "ready"] and len(now["stages"]) == n_stages

        placed = (await host.work("POST", "/load", MIXED))["loaded"]
        assert placed["shape"] == "replicas"
        assert [stage["role"] for stage in placed["stages"]] == ["first", "middle", "last", "whole"]
        lost, other = placed["stages"][1]["machine"], placed["stages"][3]["machine"]
        assert {lost, other} == set(by_name)
        assert [len(replica["ids"]) for replica in placed["replicas"]] == [2, 1]
        worker = await by_name[lost].one_worker()

        async def split_answers() -> bool:
            return bool((await loaded())["replicas"][0]["answering"])

        async def kill() -> None:
            await until(split_answers)
            worker.kill()

        async with asyncio.TaskGroup() as group:
            group.create_task(kill(), name="kill")
            disturbed = await asyncio.gather(*(ask(host, subject) for subject in SHORT))
        moved = [item for item in disturbed if item["recoveries"]]
        assert moved
        for item in moved:
            assert lost in item["notices"][0]["text"], item["notices"]
            assert [stage["machine"] for stage in item["placement"]] == [other]
        await until(lambda: all_answer_on(4))  # its machine is still there
        by_name[lost].process.terminate()  # for good: the host's pipeline goes on without it
        await until(lambda: all_answer_on(2))
        assert [(stage["machine"], stage["role"]) for stage in (await loaded())["stages"]] == [
            ("den", "whole"),
            (other, "whole"),
        ]
        done = await asyncio.gather(*(ask(host, subject) for subject in SHORT))
        assert [item["token_ids"] for item in done] == [item["token_ids"] for item in disturbed]
