"""Three real nodes: paired, loaded, asked, broken, mended. Every figure comes over the real wire."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import sys
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from app.client import NodeClient
from app.core.errors import AppError, BadInput
from app.core.scheduler.schedule import prompt_chunks
from backends.llamacpp import binding
from testbed import tiny
from tests.catalog.test_parts import in_parts
from tests.node.links.test_link_gossip import linked, measured, told_between
from tests.node.pool import TestNode, node, pair, paired

Json = dict[str, Any]
GUIDE = Path(__file__).parents[2] / "resources" / "guide.gguf"
PROMPTS = GUIDE.parents[1] / "guide" / "prompts.txt"
SEED = 7
QUESTION = "How do I add a computer?"
GREEDY = {"temperature": 0}


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[TestNode]]:
    with paired(tmp_path_factory.mktemp("pool"), "den", "attic", "kitchen") as nodes:
        yield nodes


@pytest.fixture
async def host(pool: list[TestNode]) -> AsyncGenerator[NodeClient, None]:
    async with pool[0].client() as client:
        yield client


async def load(host: NodeClient, split: list[int] | None, number: str = "f16") -> Json:
    order = {"model": "guide", "split": split, "number": number}
    return dict((await host.work("POST", "/load", order))["loaded"])


async def ask(host: NodeClient, **question: Any) -> Json:
    order = {"sampling": GREEDY, "max_tokens": 24, **question}
    return await host.work("POST", "/ask", order)


async def test_three_nodes_say_what_the_whole_model_says(host: NodeClient) -> None:
    loaded = await load(host, [2, 2, 2, 2], "f32")
    assert [stage["machine"] for stage in loaded["stages"]] == ["den", "attic", "kitchen", "den"]
    answer = await ask(host, prompt="A question: " + QUESTION * 12, raw=True, ignore_end=True)
    ids, tokens = await asyncio.to_thread(whole, "A question: " + QUESTION * 12, 24)
    assert answer["prompt_tokens"] == len(ids) > 64  # more than one chunk
    assert answer["token_ids"] == tokens


async def test_the_link_between_two_others_is_known_here(pool: list[TestNode], host: NodeClient) -> None:
    """One of the two measures it, and tells the third."""
    await linked(pool[1], pool[2].ready["id"])
    await measured(pool[1], pool[2].ready["id"])
    result = await told_between(host, pool[1].ready["id"], pool[2].ready["id"])
    assert min(result["out_bytes_per_s"], result["in_bytes_per_s"]) > 1e6
    assert result["kind"] == "loopback"


def whole(prompt: str, n_tokens: int) -> tuple[list[int], list[int]]:
    """Prompt ids and greedy answer of the whole model in llama.cpp, in the chunks a pipeline uses."""
    llama_cpp = binding.load()
    model = binding.llama_class()(
        str(GUIDE), n_ctx=1024, n_threads=1, n_batch=64, n_ubatch=64, flash_attn=True, verbose=False
    )
    ids = model.tokenize(prompt.encode(), add_bos=True, special=False)
    start = 0
    for size in prompt_chunks(len(ids)):
        model.eval(ids[start : start + size])
        start += size
    tokens: list[int] = []
    for _ in range(n_tokens):
        logits = np.ctypeslib.as_array(llama_cpp.llama_get_logits(model.ctx), (model.n_vocab(),))
        tokens.append(int(logits.argmax()))
        model.eval(tokens[-1:])
    model.close()
    return list(ids), tokens


@pytest.mark.long
async def test_a_second_load_moves_nothing_and_a_moved_boundary_only_its_layers(
    host: NodeClient, tmp_path: Path
) -> None:
    path = tiny.llama(tmp_path / "random.gguf", layers=8, width=256, ffn=512)
    await host.work("POST", "/models", {"path": str(path)})
    model = next(m for m in (await host.get("/models"))["models"] if m["name"] == "random")
    layer = model["file_bytes"] / 8  # a little more than one layer takes
    fetched = [
        (await host.work("POST", "/load", {"model": "random", "split": split}))["loaded"]["fetched_bytes"]
        for split in ([2, 2, 2, 2], [2, 2, 2, 2], [2, 3, 1, 2])
    ]
    assert 2 * layer < fetched[0] < 4 * layer  # the lenders' four layers, without the embedding
    assert fetched[1] == 0
    assert 0 < fetched[2] < layer
    await host.post("/unload")
    await host.delete("/models/random")


@pytest.mark.long
async def test_layers_of_a_model_in_several_files_go_to_lenders_like_those_of_one(
    host: NodeClient, tmp_path: Path
) -> None:
    single = tiny.llama(tmp_path / "single.gguf", layers=8, width=256, ffn=512)
    several = in_parts(single, tmp_path, first=3)
    said, fetched = [], []
    for path in (several[1], single):  # the parts first: then their layers are nowhere yet
        order = {"path": str(path), "name": path.stem[:6]}
        name = (await host.work("POST", "/models", order))["model"]["name"]
        loaded = await host.work("POST", "/load", {"model": name, "split": [2, 3, 2, 1]})
        fetched.append(loaded["loaded"]["fetched_bytes"])
        answer = await ask(host, prompt_ids=list(range(3, 90)), ignore_end=True)
        said.append(answer["token_ids"])
        await host.post("/unload")
    assert fetched[0] > 5 * 256 * 512
    assert fetched[1] == 0  # the same tensors, by their hashes
    assert said[0] == said[1]
    assert len(said[0]) == 24
    for name in ("big-Q8", "single"):
        await host.delete(f"/models/{name}")


@pytest.mark.long
async def test_several_answers_at_once_are_the_answers_alone(host: NodeClient) -> None:
    order = {"model": "guide", "split": [2, 2, 2, 2], "users": 4, "context": 256}
    await host.work("POST", "/load", order)
    questions = [QUESTION, "What is a lender?", "Who are you?", "Is it safe?"]
    alone = [await ask(host, prompt=question) for question in questions]
    together = await asyncio.gather(*(ask(host, prompt=question) for question in questions))
    assert [a["text"] for a in together] == [a["text"] for a in alone]


@pytest.mark.long
async def test_a_second_turn_reuses_the_first(host: NodeClient) -> None:
    await load(host, [2, 2, 2, 2])
    talk = [{"role": "user", "content": QUESTION}]
    first = await ask(host, messages=talk, conversation="c1")
    talk += [{"role": "assistant", "content": first["text"]}, {"role": "user", "content": "Thanks"}]
    second = await ask(host, messages=talk, conversation="c1")
    assert second["reused_tokens"] >= first["prompt_tokens"] - 1
    other = await ask(host, messages=talk, conversation="c2")
    assert other["reused_tokens"] == 0
    assert other["text"] == second["text"]


async def test_a_refused_load_keeps_what_is_loaded(host: NodeClient) -> None:
    await load(host, [2, 2, 2, 2])
    with pytest.raises(BadInput, match="split_sum"):
        await load(host, [3, 3, 3])
    loaded = (await host.get("/status"))["loaded"]
    assert (loaded["state"], len(loaded["stages"])) == ("ready", 4)


@pytest.mark.long
async def test_a_context_shorter_than_a_step_works(host: NodeClient) -> None:
    await host.work("POST", "/load", {"model": "guide", "split": [2, 2, 2, 2], "context": 32})
    answer = await ask(host, prompt="Hi", raw=True, ignore_end=True, max_tokens=99)
    assert answer["prompt_tokens"] + len(answer["token_ids"]) == 32


@pytest.mark.long
async def test_an_answer_can_be_cancelled_and_leaves_nothing(pool: list[TestNode], host: NodeClient) -> None:
    await load(host, [2, 2, 2, 2])
    order = {"prompt": QUESTION, "raw": True, "max_tokens": 900, "ignore_end": True}
    async with aclosing(host.stream("POST", "/ask", order)) as lines:
        n_deltas = 0
        async for line in lines:
            n_deltas += "delta" in line
            if n_deltas == 3:
                break
    await pool[0].until_nobody()


BAD = [
    ("/load", {"model": "guide", "split": [1, 1]}, BadInput, "split_sum"),
    ("/load", {"model": "guide", "split": [1, 1, 1, 1, 1, 3]}, BadInput, "split_lenders"),
    ("/load", {"model": "nothing"}, BadInput, "model_unknown"),
    ("/load", {"model": "guide", "context": 1 << 20}, BadInput, "context_too_long"),
    ("/load", {"model": "guide", "context": 1}, BadInput, "context_too_short"),
    ("/ask", {"prompt": "many words " * 2000, "raw": True}, BadInput, "prompt_beyond_model"),
    ("/ask", {"prompt": "a", "prompt_ids": [1]}, BadInput, "prompt_unclear"),
    ("/ask", {"prompt_ids": [1 << 30]}, BadInput, "token_unknown"),
    ("/models", {"path": "/nowhere/model.gguf"}, BadInput, "file_missing"),
]


@pytest.mark.parametrize(("path", "order", "kind", "code"), BAD)
async def test_what_cannot_be_is_said_and_the_node_goes_on(
    host: NodeClient, path: str, order: Json, kind: type[AppError], code: str
) -> None:
    with pytest.raises(kind) as caught:
        await host.work("POST", path, order)
    assert caught.value.reason.code == code
    assert (await ask(host, prompt=QUESTION))["text"]


@pytest.mark.long
async def test_a_killed_worker_is_explained_and_the_answer_goes_on(pool: list[TestNode], host: NodeClient) -> None:
    await load(host, [2, 2, 2, 2], "f32")
    order = {"prompt": QUESTION, "raw": True, "max_tokens": 300, "ignore_end": True}
    undisturbed = await ask(host, **order | {"max_tokens": 60})  # the rest is time to be killed in
    lenders_worker = await pool[1].one_worker()
    reports: list[Json] = []
    async with aclosing(host.stream("POST", "/ask", order | {"sampling": GREEDY})) as lines:
        async for line in lines:
            if "delta" in line and lenders_worker.is_running():
                lenders_worker.kill()
            reports.append(line)
    assert reports[-1]["done"]["token_ids"][:60] == undisturbed["token_ids"]
    shown = [token for line in reports if "delta" in line for token in line["delta"]["token_ids"]]
    assert shown == reports[-1]["done"]["token_ids"]
    said = [line["recovery"] for line in reports if "recovery" in line]
    assert [item["state"] for item in said] == ["lost", "rebuilding", "continued"]
    assert "attic" in said[0]["text"]
    assert reports[-1]["done"]["recoveries"] == 1
    assert reports[-1]["done"]["recovered"][0]["machine"] == "attic"
    status = await host.get("/status")
    assert (status["loaded"]["state"], status["loaded"]["recovery"]) == ("ready", None)


async def test_the_events_begin_with_a_snapshot_and_count(pool: list[TestNode]) -> None:
    import aiohttp

    async with pool[0].client() as client:
        url = f"http://127.0.0.1:{client.runtime.port}/events"
        headers = {"Authorization": f"Bearer {client.runtime.token}"}
        async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as events:
            first, name, snapshot = await _event(events.content)
            assert name == "snapshot"
            assert {machine["name"] for machine in snapshot["machines"].values()} == {
                "den", "attic", "kitchen",
            }  # fmt: skip
            await client.post("/unload")
            await client.work("POST", "/load", {"model": "guide", "measure": False})
            life, _, number = first.rpartition("-")
            assert (await _event(events.content))[0] == f"{life}-{int(number) + 1}"


async def _event(content: Any) -> tuple[str, str, Json]:
    fields: dict[str, str] = {}
    while line := (await content.readline()).decode().strip():
        key, _, value = line.partition(": ")
        fields[key] = value
    return fields["id"], fields["event"], json.loads(fields["data"])


@pytest.mark.long
async def test_a_family_that_is_not_proved_runs_whole_and_says_so(host: NodeClient, tmp_path: Path) -> None:
    path = tiny.llama(tmp_path / "other.gguf", layers=4, architecture="xverse")
    await host.work("POST", "/models", {"path": str(path)})
    order = {"model": "other", "measure": False}
    loaded = (await host.work("POST", "/load", order))["loaded"]
    assert loaded["shape"] == "one machine"
    assert any("xverse" in reason for reason in loaded["reasons"])
    assert (await ask(host, prompt="a", raw=True, model="other"))["token_ids"]
    with pytest.raises(BadInput, match="split_family"):
        await host.work("POST", "/load", {"model": "other", "split": [1, 2, 1]})
    await host.post("/unload")
    await host.delete("/models/other")


@pytest.mark.long
async def test_sixteen_answers_that_come_and_go_are_the_answers_alone(host: NodeClient) -> None:
    prompts = [json.loads(line) for line in PROMPTS.read_text().splitlines()[:32]]
    order = {"model": "guide", "split": [2, 2, 2, 2], "users": 16, "context": 256}
    await host.work("POST", "/load", order)
    alone = [await ask(host, prompt=prompt) for prompt in prompts]
    chance, gate = random.Random(SEED), asyncio.Semaphore(16)

    async def one(prompt: str) -> Json:
        await asyncio.sleep(chance.random())
        async with gate:
            return await ask(host, prompt=prompt)

    together = await asyncio.gather(*map(one, prompts))
    differ = [p for p, a, b in zip(prompts, alone, together, strict=True) if a["token_ids"] != b["token_ids"]]
    assert not differ, f"seed {SEED}: {differ}"


def test_a_small_lender_is_refused_with_both_numbers(tmp_path: Path) -> None:
    with paired(tmp_path, "host", "tiny", lend="80MiB") as nodes:
        said = nodes[0].run("load", "guide", "--split", "1,6,1")
        assert said.returncode == 1
        assert "MiB" in said.stderr
        assert len(said.stderr.strip().splitlines()) == 1
        assert nodes[0].control("GET", "/status")["loaded"] is None


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="stops a node by SIGSTOP")
async def test_a_lender_that_stood_still_gives_back_what_the_lost_link_held(tmp_path: Path) -> None:
    """The lender has room for these layers only once, and heard nothing of their end."""
    order = {"model": "guide", "split": [3, 2, 3]}
    with node(tmp_path / "host", "host", "2GiB") as den, node(tmp_path / "attic", "attic", "110MiB") as attic:
        pair(den, attic)
        async with den.client() as host:
            await host.work("POST", "/load", order)
            attic.process.send_signal(signal.SIGSTOP)
            await until(den, lambda machines: not machines["attic"]["online"])
            await host.post("/unload")
            attic.process.send_signal(signal.SIGCONT)
            await until(den, lambda machines: all_free(machines["attic"], 110 << 20))
            loaded = (await host.work("POST", "/load", order))["loaded"]
            assert loaded["state"] == "ready"


def all_free(machine: Json, lent_bytes: int) -> bool:
    return (machine["lent_bytes"], machine["used_bytes"]) == (lent_bytes, 0)


@pytest.mark.long
async def test_a_node_that_is_killed_is_offline_and_returns(tmp_path: Path) -> None:
    with paired(tmp_path, "host", "guest") as nodes:
        nodes[1].process.kill()
        nodes[1].process.wait()
        await until(nodes[0], lambda machines: not machines["guest"]["online"])
        await until(nodes[0], lambda machines: machines["guest"]["seen_at"] > time.time() - 60)
        with node(tmp_path / "guest", "guest"):
            await until(nodes[0], lambda machines: machines["guest"]["online"])


@pytest.mark.long
async def test_a_removed_machine_is_gone_in_seconds_and_comes_back_after_a_reset(tmp_path: Path) -> None:
    with node(tmp_path / "host", "host") as host:
        with node(tmp_path / "guest", "guest") as guest:
            pair(host, guest)
            assert host.run("remove", "guest", "--yes").returncode == 0
            await until(host, lambda machines: "guest" not in machines, within_s=20)
            refused = guest.run("reset", "--yes")
            assert refused.returncode == 1
            assert "Stop it first" in refused.stderr
        assert guest.run("reset", "--yes").returncode == 0
        with node(tmp_path / "guest", "guest") as guest:
            pair(host, guest)


async def until(of: TestNode, holds: Any, within_s: float = 60) -> None:
    async with of.client() as client:
        for _ in range(int(within_s / 0.1)):
            machines = (await client.get("/status"))["machines"].values()
            if holds({machine["name"]: machine for machine in machines}):
                return
            await asyncio.sleep(0.1)
    pytest.fail("it did not happen in time")


@pytest.mark.long
async def test_two_nodes_cannot_share_a_home_and_one_that_dies_leaves_no_worker(tmp_path: Path) -> None:
    with node(tmp_path / "one", "one") as test_node:
        second = test_node.run("node", "--port", "0", "--bind", "127.0.0.1")
        assert second.returncode == 1
        assert "is already running" in second.stderr
        async with test_node.client() as client:
            await client.work("POST", "/load", {"model": "guide", "measure": False})
        workers = test_node.workers()
        assert workers
        test_node.process.kill()
        test_node.process.wait()
        _, alive = psutil.wait_procs(workers, timeout=30)
        assert not alive


@pytest.mark.long
def test_a_wrong_code_is_one_sentence(tmp_path: Path) -> None:
    with node(tmp_path / "a", "a") as a, node(tmp_path / "b", "b") as b:
        opened = a.control("POST", "/pairing", {})
        wrong = f"{(int(opened['code']) + 1) % 10**6:06}"
        said = b.run("pair", opened["address"], "--code", wrong)
        assert said.returncode == 1
        assert "The code is wrong" in said.stderr
        right = {"address": opened["address"], "code": opened["code"]}
        assert b.control("POST", "/pairing/join", right)["machine"]
