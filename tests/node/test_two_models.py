"""Two real nodes and two models at once: one split over both, one whole; each as it is alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from typing import Any

import aiohttp
import pytest

from app.client import NodeClient
from app.core.errors import BadInput
from testbed import tiny
from tests.gateway.conftest import opened
from tests.node.pool import TestNode, paired
from tests.node.prometheus import samples

Json = dict[str, Any]
SPLIT = {"model": "guide", "split": [2, 4, 2], "number": "f32"}
WHOLE = {"model": "random", "shape": "one", "measure": False}
TOKENS = 48
ASK = {"prompt": "How do I add a computer?", "raw": True, "ignore_end": True, "max_tokens": TOKENS}


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[TestNode]]:
    folder = tmp_path_factory.mktemp("two")
    path = tiny.llama(folder / "random.gguf", layers=6, width=64)
    with paired(folder, "den", "attic") as nodes:
        assert nodes[0].run("import", str(path)).returncode == 0
        yield nodes


@pytest.fixture
async def host(pool: list[TestNode]) -> AsyncGenerator[NodeClient, None]:
    async with pool[0].client() as client:
        yield client


async def load(host: NodeClient, order: Json, **more: Any) -> Json:
    return dict((await host.work("POST", "/load", order | more))["loaded"])


async def ask(host: NodeClient, model: str | None, at_first: Callable[[], object] | None = None) -> Json:
    """Its answer. at_first: called when its first word is there, and many are still to come."""
    order, is_first = ASK | {"model": model, "sampling": {"temperature": 0}}, True
    if at_first is not None:  # on a busy computer tokens are made faster than read
        order |= {"max_tokens": 5 * TOKENS}
    done: Json = {}
    async with aclosing(host.stream("POST", "/ask", order)) as lines:
        async for line in lines:
            if "delta" in line and is_first and at_first is not None:
                is_first = False
                at_first()
            done = line.get("done") or {}
    return done


async def status(host: NodeClient) -> Json:
    return await host.get("/status")


async def test_a_split_model_and_a_whole_one_answer_at_once_as_they_do_alone(
    pool: list[TestNode], host: NodeClient
) -> None:
    alone: dict[str, Json] = {}
    for order in (WHOLE, SPLIT):
        await load(host, order)
        alone[str(order["model"])] = (await ask(host, None))["token_ids"]
    loaded = await load(host, WHOLE, beside=True)
    assert [item["code"] for item in loaded["why"]].count("plan_beside") == 1
    now = await status(host)
    assert (now["loaded"]["model"], now["beside"][0]["model"]) == ("random", "guide")
    own = sum(
        need["needs_bytes"]
        for model in (now["loaded"], *now["beside"])
        for need in model["machines"]
        if need["id"] == pool[0].ready["id"]
    )
    assert now["node"]["lending"]["own_bytes"] == own
    names: list[str | None] = [*alone, None]
    answers = await asyncio.gather(*(ask(host, name) for name in names))
    assert [answer["token_ids"] for answer in answers] == [*alone.values(), alone["random"]]
    assert [len(answer["stages"]) for answer in answers] == [1, 3, 1]


async def test_a_program_s_request_goes_to_the_model_that_it_names(pool: list[TestNode], host: NodeClient) -> None:
    await load(host, SPLIT)
    await load(host, WHOLE, beside=True)
    api = await asyncio.to_thread(opened, pool[0])
    headers = {"Authorization": f"Bearer {api.key}"}
    names = ["guide", "random", "default"]
    async with aiohttp.ClientSession(api.base, headers=headers) as http:

        async def said(model: str) -> Json:
            order = {"model": model, "prompt": "How", "max_tokens": 8, "temperature": 0}
            async with http.post("/v1/completions", json=order) as answer:
                return dict(await answer.json())

        async with http.get("/v1/models") as listed:
            assert {item["id"] for item in (await listed.json())["data"]} == set(names[:2])
        answers = await asyncio.gather(*map(said, names))
        async with http.get("/metrics") as figures:
            page = await figures.text()
    assert [answer["model"] for answer in answers] == ["guide", "random", "random"]
    texts = [answer["choices"][0]["text"] for answer in answers]
    assert texts[0] != texts[1] == texts[2]
    for name in names[:2]:
        assert samples(page, "model_loaded", model=name) == [1]
    lender = {"model": "guide", "machine": "attic", "layers": "3-6"}  # the middle of the split
    for name in ("stage_busy_seconds", "stage_steps"):
        assert samples(page, f"{name}_total", **lender)[0] > 0
    assert samples(page, "stage_wait_seconds_total", **lender)[0] >= 0  # behind other steps
    for way in ("out", "in"):
        assert samples(page, "link_bytes_total", **lender, direction=way)[0] > 0
    now = await status(host)
    assert [now["loaded"]["model"], *(item["model"] for item in now["beside"])] == names[1::-1]


async def test_tokens_are_those_of_the_model_that_is_named(host: NodeClient) -> None:
    await load(host, SPLIT)
    await load(host, WHOLE, beside=True)
    counts = [
        (await host.post("/tokens", {"text": "computers at home", "model": name}))["tokens"]
        for name in ("guide", "random", None)
    ]
    assert counts[0] < counts[1] == counts[2]
    with pytest.raises(BadInput, match="nothing_loaded"):
        await host.post("/tokens", {"text": "x", "model": "other"})


@pytest.mark.long
async def test_a_lender_holds_layers_of_two_and_each_goes_for_itself(pool: list[TestNode], host: NodeClient) -> None:
    attic = pool[1].ready["id"]

    async def used() -> int:
        result = await asyncio.to_thread(pool[1].control, "GET", "/status")
        return int(result["machines"][attic]["used_bytes"])

    await host.post("/unload")
    async with asyncio.timeout(60):  # what the tests before had there
        while await used():  # noqa: ASYNC110  another process
            await asyncio.sleep(0.05)
    await load(host, SPLIT)
    of_guide = await used()
    await load(host, {"model": "random", "split": [2, 2, 2]}, beside=True)
    of_both = await used()
    assert of_both > of_guide > 0
    answers = await asyncio.gather(ask(host, "guide"), ask(host, "random"))
    assert [len(answer["stages"]) for answer in answers] == [3, 3]
    assert await host.post("/unload", {"model": "guide"}) == {"unloaded": "guide", "also": []}
    async with asyncio.timeout(60):
        while await used() != of_both - of_guide:  # noqa: ASYNC110  another process
            await asyncio.sleep(0.05)
    assert (await ask(host, None))["token_ids"] == answers[1]["token_ids"]


@pytest.mark.long
async def test_a_lender_that_dies_takes_nothing_from_the_model_that_it_held_nothing_of(
    pool: list[TestNode], host: NodeClient
) -> None:
    alone = {}
    await load(host, SPLIT)
    await load(host, WHOLE, beside=True)
    for name in ("guide", "random"):
        alone[name] = (await ask(host, name))["token_ids"]
    whole = (await status(host))["loaded"]["stages"]
    async with asyncio.TaskGroup() as group:
        kill = {"guide": pool[1].process.kill}
        tasks = [group.create_task(ask(host, name, kill.get(name)), name=name) for name in alone]
    answers = [task.result() for task in tasks]
    assert [answer["token_ids"][:TOKENS] for answer in answers] == list(alone.values())
    assert [answer["recoveries"] for answer in answers] == [1, 0]
    now = await status(host)
    assert (now["loaded"]["model"], now["loaded"]["stages"]) == ("random", whole)
    assert {stage["machine"] for stage in now["beside"][0]["stages"]} == {"den"}
