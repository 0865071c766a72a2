"""Vectors, by the official clients of OpenAI and Ollama, from a tiny BERT whose answers numpy knows."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Iterator
from types import SimpleNamespace
from typing import Any

import aiohttp
import gguf
import numpy as np
import ollama
import openai
import pytest

from app.core.errors import BadInput, Busy
from app.gateway.access.auth import BODY, CALLER
from app.gateway.access.token_budget import TokenBudget
from app.gateway.answer_service import Caller
from app.gateway.dialects.embedding_routes import EmbeddingRoutes
from app.gateway.metrics import Metrics
from app.inference.worker.embedder import Vector, normalized
from app.node.models.embeddings import Embedded
from testbed import tiny
from tests import tiny_bert
from tests.gateway.conftest import Open
from tests.gateway.described_answers import check
from tests.gateway.test_answer_service import told
from tests.gateway.test_fair_queue import all_had_a_turn
from tests.node.pool import Json
from tests.node.prometheus import samples

IDS = [5, 6, 7, 8]
LONG = "word " * 100  # more than the model reads


@pytest.fixture(scope="module")
def bert(api: Open, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path = tiny_bert.bert(tmp_path_factory.mktemp("bert") / "bert.gguf")
    assert api.node.run("import", str(path), "--name", "bert").returncode == 0
    yield "bert"
    api.control("POST", "/unload", {"model": "bert"})
    api.control("DELETE", "/models/bert")


@pytest.fixture
async def client(api: Open) -> AsyncGenerator[openai.AsyncOpenAI, None]:
    async with openai.AsyncOpenAI(api_key=api.key, base_url=f"{api.base}/v1", max_retries=0) as made:
        yield made


async def test_the_vector_is_right_and_of_length_one(client: openai.AsyncOpenAI, bert: str) -> None:
    made = await client.embeddings.create(model=bert, input=IDS)  # the client asks for base64
    (data,) = made.data
    assert np.abs(np.array(data.embedding) - tiny_bert.expected(IDS)).max() < 1e-3
    assert abs(np.linalg.norm(data.embedding) - 1) < 1e-5
    assert (made.model, made.usage.prompt_tokens, made.usage.total_tokens) == ("bert", 4, 4)


async def test_several_at_once_are_what_each_is(client: openai.AsyncOpenAI, bert: str) -> None:
    words = ["one text", "another, longer text", "one text"]
    plain = await client.embeddings.create(model=bert, input=words, encoding_format="float")
    assert [item.index for item in plain.data] == [0, 1, 2]
    assert plain.data[0].embedding == plain.data[2].embedding != plain.data[1].embedding
    alone = await client.embeddings.create(model=bert, input=words[1], encoding_format="float")
    assert alone.data[0].embedding == plain.data[1].embedding
    coded = await client.embeddings.create(model=bert, input=words[1], encoding_format="base64")
    assert isinstance(coded.data[0].embedding, str)
    ids = await client.embeddings.create(model=bert, input=[IDS, IDS[:2]])
    assert ids.usage.prompt_tokens == 6


async def test_fewer_dimensions_are_the_first_ones_at_length_one(client: openai.AsyncOpenAI, bert: str) -> None:
    whole = (await client.embeddings.create(model=bert, input=IDS)).data[0].embedding
    less = (await client.embeddings.create(model=bert, input=IDS, dimensions=8)).data[0].embedding
    assert np.allclose(less, normalized(whole[:8]), atol=1e-6)
    with pytest.raises(openai.BadRequestError, match="have 32 dimensions"):
        await client.embeddings.create(model=bert, input=IDS, dimensions=33)


@pytest.mark.parametrize("value", [[], "", [""], [[]], ["a", 1], [-1], [[1 << 31]], ["x"] * 2049, 7, None])
async def test_an_odd_input_is_refused(http: aiohttp.ClientSession, bert: str, value: object) -> None:
    async with http.post("/v1/embeddings", json={"model": bert, "input": value}) as answer:
        error = (await answer.json())["error"]
        assert (answer.status, error["type"]) == (400, "invalid_request_error"), error


async def test_ids_that_the_vocabulary_lacks_and_long_texts_are_refused(client: openai.AsyncOpenAI, bert: str) -> None:
    with pytest.raises(openai.BadRequestError, match="cannot be read"):
        await client.embeddings.create(model=bert, input=[tiny_bert.VOCAB])
    with pytest.raises(openai.BadRequestError, match="at most 64"):
        await client.embeddings.create(model=bert, input=LONG)


async def test_a_model_that_cannot_says_so(client: openai.AsyncOpenAI, bert: str) -> None:
    with pytest.raises(openai.BadRequestError, match=r"guide cannot create embeddings.*: bert"):
        await client.embeddings.create(model="guide", input="x")
    with pytest.raises(openai.NotFoundError, match=r"no embedding model called nothing.*: bert"):
        await client.embeddings.create(model="nothing", input="x")
    with pytest.raises(openai.BadRequestError, match="cannot write text"):
        await client.chat.completions.create(model=bert, messages=[{"role": "user", "content": "x"}])


async def test_it_stands_beside_the_model_that_writes_and_takes_nothing_from_its_answer(
    api: Open, client: openai.AsyncOpenAI, http: aiohttp.ClientSession, bert: str
) -> None:
    async def writes() -> AsyncGenerator[str, None]:
        async with await client.completions.create(
            model="guide", prompt="How", max_tokens=60, temperature=0, stream=True
        ) as chunks:
            async for chunk in chunks:
                yield chunk.choices[0].text

    alone = "".join([text async for text in writes()])
    api.control("POST", "/unload", {"model": bert})
    text, made = "", None
    async for more in writes():
        text += more
        made = made or await client.embeddings.create(model=bert, input=IDS)
    assert text == alone
    assert made is not None
    assert np.abs(np.array(made.data[0].embedding) - tiny_bert.expected(IDS)).max() < 1e-3
    now = api.control("GET", "/status")
    assert (now["loaded"]["model"], now["loaded"]["state"]) == ("guide", "ready")
    vectors = now["embeds"]
    assert (vectors["model"], vectors["state"], vectors["wished"]) == ("bert", "ready", False)
    (there,) = vectors["machines"]
    assert there["id"] == now["node"]["id"]
    own = now["loaded"]["machines"][0]["needs_bytes"] + there["needs_bytes"]
    assert now["node"]["lending"]["own_bytes"] == own
    async with http.get("/metrics") as answer:
        output = await answer.text()
    assert samples(output, "model_loaded", model="guide") == [1]
    assert samples(output, "model_loaded", model="bert") == [1]
    assert samples(output, "vectors_memory_bytes") == [there["needs_bytes"]]
    assert samples(output, "tokens_total", kind="vectors")
    assert "bert" in {item.id for item in (await client.models.list()).data}


async def test_a_person_loads_it_and_unloads_it(api: Open, client: openai.AsyncOpenAI, bert: str) -> None:
    run = api.node.run
    done = await asyncio.to_thread(run, "load", bert, "--context", "32")
    assert (done.returncode, "to create embeddings" in " ".join(done.stdout.split())) == (0, True), done
    assert api.control("GET", "/status")["embeds"]["wished"]
    with pytest.raises(openai.BadRequestError, match="at most 32"):
        await client.embeddings.create(model=bert, input=LONG)
    with pytest.raises(BadInput) as refused:  # nor is its file moved while it is loaded
        api.control("DELETE", "/models/bert")
    assert refused.value.reason.code == "model_in_use"
    done = await asyncio.to_thread(run, "unload", bert)
    assert done.stdout == "bert is unloaded.\n"
    assert api.control("GET", "/status")["embeds"] is None
    async with api.node.client() as control:
        for body in ({"split": [1, 1]}, {"shape": "replicas"}):
            with pytest.raises(BadInput) as refused:
                await control.work("POST", "/load", {"model": bert, **body})
            assert refused.value.reason.code == "embedding_only_whole"
        plan = await control.work("POST", "/plan", {"model": bert})
    assert (plan["context"], [stage["role"] for stage in plan["stages"]]) == (64, ["whole"])


def test_ollama_s_client_gets_the_same(api: Open, bert: str) -> None:
    with (
        ollama.Client(api.base, headers={"Authorization": f"Bearer {api.key}"}) as theirs,
        openai.OpenAI(api_key=api.key, base_url=f"{api.base}/v1", max_retries=0) as client,
    ):
        made = theirs.embed(model=bert, input=["one text", LONG])
        same = client.embeddings.create(model=bert, input="one text")
        assert np.allclose(made.embeddings[0], same.data[0].embedding, atol=1e-6)
        assert (made.model, len(made.embeddings)) == ("bert", 2)
        assert (made.prompt_eval_count or 0) > tiny_bert.CONTEXT  # cut, and read
        with pytest.raises(ollama.ResponseError, match="at most 64"):
            theirs.embed(model=bert, input=LONG, truncate=False)
        old = theirs.embeddings(model=bert, prompt="one text")
        assert np.allclose(old.embedding, same.data[0].embedding, atol=1e-6)
        assert theirs.embed(model=bert, input=[]).embeddings == []


OF_OLLAMA: dict[str, tuple[str, Json, int]] = {
    "one": ("/api/embed", {"input": "one text"}, 200),
    "several": ("/api/embed", {"input": ["one text", LONG], "dimensions": 8}, 200),
    "none": ("/api/embed", {"input": []}, 200),
    "an empty one": ("/api/embed", {"input": ""}, 200),
    "an empty one among others": ("/api/embed", {"input": ["one text", "", "another"]}, 400),
    "too long": ("/api/embed", {"input": LONG, "truncate": False}, 400),
    "a number": ("/api/embed", {"input": 7}, 400),
    "no such model": ("/api/embed", {"input": "x", "model": "nobody"}, 404),
    "the older one": ("/api/embeddings", {"prompt": "one text"}, 200),
    "the older one of nothing": ("/api/embeddings", {"prompt": 7}, 400),
}


@pytest.mark.parametrize("name", OF_OLLAMA)
async def test_ollamas_vectors_and_its_refusals_are_as_described(
    http: aiohttp.ClientSession, bert: str, name: str
) -> None:
    path, body, status = OF_OLLAMA[name]
    async with http.post(path, json={"model": bert, **body}) as answer:
        content = await answer.read()
    assert answer.status == status, content
    check(path, status, content)


async def test_many_at_once_are_all_answered_and_each_gets_its_own(client: openai.AsyncOpenAI, bert: str) -> None:
    texts = [[3 + number, 4 + number] for number in range(16)]
    made = await asyncio.gather(*(client.embeddings.create(model=bert, input=t) for t in texts))
    for ids, item in zip(texts, made, strict=True):
        assert np.abs(np.array(item.data[0].embedding) - tiny_bert.expected(ids)).max() < 1e-3


@pytest.mark.long
async def test_another_model_takes_the_place_and_no_name_means_the_only_one(
    api: Open, client: openai.AsyncOpenAI, bert: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert (await client.embeddings.create(model="default", input="x")).model == bert
    path = tiny.llama(tmp_path_factory.mktemp("last") / "l.gguf", layers=2, pooling=gguf.PoolingType.LAST)
    await asyncio.to_thread(api.node.run, "import", str(path), "--name", "causal")
    try:
        made = await client.embeddings.create(model="causal", input="x")
        assert (made.model, len(made.data[0].embedding)) == ("causal", 64)
        with pytest.raises(openai.BadRequestError, match="Available: bert, causal"):
            await client.embeddings.create(model="default", input="x")
        request: Json = {"model": bert, "input": IDS}
        again = (await client.embeddings.create(**request)).data[0].embedding
        assert np.abs(np.array(again) - tiny_bert.expected(IDS)).max() < 1e-3
    finally:
        await asyncio.to_thread(api.control, "POST", "/unload", {"model": "causal"})
        await asyncio.to_thread(api.control, "DELETE", "/models/causal")


def test_zeros_stay_zeros() -> None:
    assert list(normalized([0.0, 0.0])) == [0.0, 0.0]
    assert list(normalized([3.0, 4.0])) == pytest.approx([0.6, 0.8])


VECTOR = Vector([number / 7 for number in range(1024)], 3)


async def model(_: str) -> None:
    return None


async def embed(_: object, texts: list[Any], *__: object, **___: object) -> Embedded:
    return Embedded("bert", (VECTOR,) * len(texts))


def asking(n_texts: int) -> Any:
    """A request, as far as the route reads it."""
    return {BODY: json.dumps({"input": ["x"] * n_texts}).encode(), CALLER: Caller("k", "r")}


def routes_with(budget: TokenBudget) -> EmbeddingRoutes:
    embeddings: Any = SimpleNamespace(model=model, embed=embed)
    return EmbeddingRoutes(embeddings, budget, Metrics())


async def test_vectors_of_many_texts_are_written_before_anybody_waits_for_long() -> None:
    """A writer of Python's own took a second and a half, in which no stream of this node said a word."""
    routes = routes_with(TokenBudget(lambda _: 0, time.monotonic))
    begun_s = time.process_time()
    answer = await routes.openai(asking(2048))
    assert time.process_time() - begun_s < 0.8
    assert answer.content_type == "application/json"
    assert isinstance(answer.body, bytes)
    assert json.loads(answer.body)["data"][2047]["embedding"] == VECTOR.values


async def test_who_waited_while_its_tokens_were_used_up_gets_no_vectors() -> None:
    budget = TokenBudget(lambda _: 9, lambda: 0.0)
    routes = routes_with(budget)
    async with asyncio.TaskGroup() as group, routes._queue.turn("other"):
        task = group.create_task(told(routes.openai(asking(1))), name="asks")
        await all_had_a_turn()
        budget.spend("k", 9)
    error = task.result()
    assert isinstance(error, Busy)
    assert error.reason.code == "api_tokens_minute"
