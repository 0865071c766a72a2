"""Texts are scored by a tiny reranker whose weights numpy knows, and other models say that they are none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import aiohttp
import gguf
import pytest

from backends.llamacpp.text_embedder import LlamaEmbedder
from tests import tiny_bert
from tests.gateway.conftest import Open
from tests.node.pool import Json

PATHS = ("/v1/rerank", "/v1/reranking", "/rerank", "/reranking")
QUERY, TEXTS = "what is a shed", ["rain", "a small house", "a house of wood", "b"]


@pytest.fixture(scope="module")
def scores(api: Open, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[float]]:
    """A reranker on the shelf, and what it should say of TEXTS."""
    path = tiny_bert.bert(tmp_path_factory.mktemp("rerank") / "r.gguf", gguf.PoolingType.RANK)
    assert api.node.run("import", str(path), "--name", "judge").returncode == 0
    model = LlamaEmbedder(str(path), tiny_bert.CONTEXT, 1)
    try:
        yield [tiny_bert.expected_score(model.pair(QUERY, text)) for text in TEXTS]
    finally:
        model.close()
        api.control("POST", "/unload", {"model": "judge"})
        api.control("DELETE", "/models/judge")


async def asked(http: aiohttp.ClientSession, path: str, **body: object) -> tuple[int, Any]:
    async with http.post(path, json=body) as answer:
        return answer.status, await answer.json()


async def test_without_one_it_says_so_and_how_to_get_one(http: aiohttp.ClientSession) -> None:
    got, result = await asked(http, PATHS[0], query=QUERY, documents=TEXTS)
    assert (got, "No reranker is available" in result["error"]["message"]) == (404, True)
    got, result = await asked(http, PATHS[0], model="guide", query=QUERY, documents=TEXTS)
    assert (got, "guide is not a reranker, and none is available" in result["error"]["message"]) == (400, True)


@pytest.mark.parametrize("path", PATHS)
async def test_the_scores_are_the_model_s_and_the_best_one_is_first(
    http: aiohttp.ClientSession, api: Open, scores: list[float], path: str
) -> None:
    status, result = await asked(http, path, model="judge", query=QUERY, documents=TEXTS)
    assert (status, result["object"], result["model"]) == (200, "list", "judge")
    order = sorted(range(len(TEXTS)), key=lambda index: -scores[index])
    assert [item["index"] for item in result["results"]] == order
    for item in result["results"]:
        assert item == {"index": item["index"], "relevance_score": pytest.approx(scores[item["index"]], abs=1e-3)}
    assert result["usage"]["prompt_tokens"] == result["usage"]["total_tokens"] > len(TEXTS)
    held = api.control("GET", "/status")["embeds"]
    assert (held["model"], held["ranks"]) == ("judge", True), "what is told to the window"


async def test_as_jina_s_and_as_tei_s_clients_ask(http: aiohttp.ClientSession, scores: list[float]) -> None:
    best = max(range(len(TEXTS)), key=lambda index: scores[index])
    documents = [{"text": TEXTS[0]}, *TEXTS[1:]]
    _, result = await asked(http, PATHS[0], query=QUERY, documents=documents, top_n=1, return_documents=True)
    (item,) = result["results"]
    assert (item["index"], item["document"]) == (best, {"text": TEXTS[best]})
    _, results = await asked(http, "/rerank", query=QUERY, texts=TEXTS, return_text=True)
    assert isinstance(results, list)
    assert (len(results), results[0]["index"], results[0]["text"]) == (len(TEXTS), best, TEXTS[best])
    assert results[0]["score"] == pytest.approx(scores[best], abs=1e-3)


async def test_other_models_and_wrong_bodies_are_refused_plainly(
    http: aiohttp.ClientSession, scores: list[float]
) -> None:
    body: Json = {"query": QUERY, "documents": TEXTS}
    for wrong, status, words in (
        ({"model": "guide"}, 400, "guide is not a reranker. Available rerankers: judge"),
        ({"model": "none-such"}, 404, "none-such"),
        ({"documents": []}, 400, "documents is empty"),
        ({"documents": None, "texts": []}, 400, ""),
        ({"query": ""}, 400, "query"),
        ({"documents": [3]}, 400, "documents"),
        ({"top_n": -1}, 400, "top_n"),
        ({"documents": ["word " * 100]}, 400, "tokens"),
    ):  # fmt: skip
        got, result = await asked(http, PATHS[0], **body | wrong)
        assert (got, words in result["error"]["message"]) == (status, True), (wrong, result)
    for path, field in (("/v1/embeddings", "input"), ("/v1/completions", "prompt")):
        got, result = await asked(http, path, model="judge", **{field: "x"})
        assert got in (400, 404), result
    _, result = await asked(http, "/v1/completions", model="judge", prompt="x")
    assert "judge is a reranker" in result["error"]["message"]
