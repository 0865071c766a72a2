"""A tiny BERT gives the vectors that its weights mean; what gives none is refused."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest

from backends import worker_orders
from backends.contract import StageError
from backends.llamacpp.text_embedder import LlamaEmbedder
from backends.worker.service import Vectors
from testbed import tiny
from tests import tiny_bert


@pytest.mark.parametrize("pooling", [gguf.PoolingType.MEAN, gguf.PoolingType.CLS])
def test_the_vector_is_what_the_weights_mean(tmp_path: Path, pooling: gguf.PoolingType) -> None:
    embedder = LlamaEmbedder(str(tiny_bert.bert(tmp_path / "b.gguf", pooling)), tiny_bert.CONTEXT, 1)
    try:
        for text in ("Hello", "a longer text of some words"):
            ids = embedder.tokenize(text)
            vector = embedder.embed(ids)
            vector /= np.linalg.norm(vector)
            should = tiny_bert.expected(ids, first_only=pooling is gguf.PoolingType.CLS)
            assert np.abs(vector - should).max() < 1e-3
        for wrong in ([], [tiny_bert.VOCAB], [-1], [5] * (tiny_bert.CONTEXT + 1)):
            with pytest.raises(StageError, match="cannot be read"):
                embedder.embed(wrong)
    finally:
        embedder.close()


def test_a_causal_model_that_pools_its_last_token_keeps_nothing_between_texts(tmp_path: Path) -> None:
    path = tiny.llama(tmp_path / "l.gguf", layers=2, pooling=gguf.PoolingType.LAST)
    embedder = LlamaEmbedder(str(path), 64, 1)
    try:
        first, other, again = (embedder.embed(ids) for ids in ([5, 6, 7], [9, 9], [5, 6, 7]))
        assert np.array_equal(first, again)
        assert not np.allclose(first, other)
    finally:
        embedder.close()


def test_a_model_that_pools_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StageError, match="no vector"):
        LlamaEmbedder(str(tiny.llama(tmp_path / "l.gguf", layers=2)), 64, 1)


def test_orders_are_carried_out(tmp_path: Path) -> None:
    vectors = Vectors()
    with pytest.raises(StageError, match="no embedding model"):
        vectors.embed(worker_orders.Embed(request=1, text="x"))
    path = str(tiny_bert.bert(tmp_path / "b.gguf"))
    try:
        order = worker_orders.OpenEmbedder(request=2, path=path, context=16, threads=1, memory_limit_bytes=1 << 30)
        opened = vectors.open(order)
        assert (opened.request, opened.width) == (2, tiny_bert.WIDTH)
        whole = vectors.embed(worker_orders.Embed(request=3, ids=(4, 5)))
        assert (len(whole.vector), whole.n_tokens) == (4 * tiny_bert.WIDTH, 2)
        long = tuple(range(3, 30))
        assert vectors.embed(worker_orders.Embed(request=4, ids=long)).vector == b""
        cut = vectors.embed(worker_orders.Embed(request=5, ids=long, cut=True))
        embedded = vectors.embed(worker_orders.Embed(request=6, ids=(*long[:15], long[-1])))
        assert (cut.vector, cut.n_tokens) == (embedded.vector, 16)
    finally:
        vectors.close()


def test_a_reranker_scores_a_pair_as_its_weights_mean(tmp_path: Path) -> None:
    path = str(tiny_bert.bert(tmp_path / "r.gguf", gguf.PoolingType.RANK))
    model = LlamaEmbedder(path, tiny_bert.CONTEXT, 1)
    try:
        for query, text in (("what is a shed", "a small house"), ("what is a shed", "rain"), ("a", "b")):
            ids = model.pair(query, text)
            assert model.score(ids) == pytest.approx(tiny_bert.expected_score(ids), abs=1e-3)
        with pytest.raises(StageError, match="no vectors"):
            model.embed(ids)
    finally:
        model.close()
    vectors = Vectors()
    vectors.open(worker_orders.OpenEmbedder(request=1, path=path, context=8, threads=1, memory_limit_bytes=0))
    short = vectors.rank(worker_orders.Rank(request=2, query="a", text="b"))
    long = vectors.rank(worker_orders.Rank(request=3, query="a", text="b c d e f g h i j k l m n o p"))
    vectors.close()
    assert short.score is not None
    assert (long.score, long.n_tokens > 8) == (None, True)


def test_no_text_for_a_reranker_holds_control_tokens_and_its_template_does(tmp_path: Path) -> None:
    mark = tiny.CONTROL[1]
    path = tiny_bert.bert(tmp_path / "r.gguf", gguf.PoolingType.RANK, f"{{query}}{mark}{{document}}{mark}")
    model = LlamaEmbedder(str(path), tiny_bert.CONTEXT, 1)
    try:
        for query, text in (("a shed", "a house"), (f"a{mark}b", "{query}"), ("{document}", f"{mark}a{mark}")):
            assert model.pair(query, text).count(1) == 2, (query, text)
        ids = model.pair("a", "b")
        assert ids == [*model.pair("a", "")[:-1], *model.pair("b", "")[:-2], 1]
    finally:
        model.close()


def test_what_gives_vectors_gives_no_scores(tmp_path: Path) -> None:
    model = LlamaEmbedder(str(tiny_bert.bert(tmp_path / "b.gguf")), tiny_bert.CONTEXT, 1)
    try:
        with pytest.raises(StageError, match="no scores"):
            model.score([1, 2])
    finally:
        model.close()
