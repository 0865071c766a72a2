"""Makes a small random BERT as a GGUF file, and computes what it should say of a text, in numpy alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

from testbed import tiny

LAYERS, WIDTH, HEADS, FFN, VOCAB, CONTEXT = 2, 32, 4, 64, 300, 64
EPSILON = 1e-6
Values = NDArray[np.float32]
Weights = dict[str, Values]


def bert(path: Path, pooling: gguf.PoolingType = gguf.PoolingType.MEAN, pair_template: str = "") -> Path:
    """Write it: same arguments in, same bytes out. pair_template: how a reranker combines a query and a text."""
    writer = gguf.GGUFWriter(str(path), "bert")
    writer.add_name("tiny bert")
    writer.add_block_count(LAYERS)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(FFN)
    writer.add_head_count(HEADS)
    writer.add_layer_norm_eps(EPSILON)
    writer.add_causal_attention(False)
    writer.add_pooling_type(pooling)
    writer.add_vocab_size(VOCAB)
    tiny.vocabulary(writer, VOCAB)
    writer.add_token_type_count(2)
    if pair_template:
        writer.add_string("tokenizer.chat_template.rerank", pair_template)
    for name, values in (weights() | (judging() if pooling is gguf.PoolingType.RANK else {})).items():
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def weights() -> Weights:
    chance = np.random.default_rng(7)

    def some(*shape: int) -> Values:
        made: Values = (chance.standard_normal(shape) * shape[-1] ** -0.5).astype(np.float32)
        return made

    def norm(name: str) -> Weights:
        return {f"{name}.weight": 1 + some(WIDTH), f"{name}.bias": some(WIDTH)}

    def linear(name: str, rows: int, columns: int) -> Weights:
        return {f"{name}.weight": some(rows, columns), f"{name}.bias": some(rows)}

    made = {"token_embd.weight": some(VOCAB, WIDTH), "position_embd.weight": some(CONTEXT, WIDTH),
            "token_types.weight": some(2, WIDTH), **norm("token_embd_norm")}  # fmt: skip
    for layer in range(LAYERS):
        at = f"blk.{layer}."
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            made |= linear(at + part, WIDTH, WIDTH)
        made |= norm(at + "attn_output_norm") | linear(at + "ffn_up", FFN, WIDTH)
        made |= linear(at + "ffn_down", WIDTH, FFN) | norm(at + "layer_output_norm")
    return made


def judging() -> Weights:
    """Return the tensors that make it a reranker: a layer over the first token's vector, and one row for the score."""
    chance = np.random.default_rng(11)

    def some(*shape: int) -> Values:
        made: Values = (chance.standard_normal(shape) * WIDTH**-0.5).astype(np.float32)
        return made

    return {"cls.weight": some(WIDTH, WIDTH), "cls.bias": some(WIDTH),
            "cls.output.weight": some(1, WIDTH), "cls.output.bias": some(1)}  # fmt: skip


def expected_score(ids: Sequence[int]) -> float:
    """Return a pair's score by a reranker of these weights.

    Source: RoBERTa's classification head (arXiv:1907.11692).
    """
    w, x = judging(), hidden(ids)
    inner = np.tanh(_linear(x[0], w, "cls"))
    return float(_linear(inner, w, "cls.output")[0])


def expected(ids: Sequence[int], first_only: bool = False) -> Values:
    """The pooled vector of these tokens, of length one."""
    x = hidden(ids)
    pooled: Any = x[0] if first_only else x.mean(axis=0)
    vector: Values = pooled / np.linalg.norm(pooled)
    return vector


def hidden(ids: Sequence[int]) -> Values:
    """A vector for each token. Source: the BERT paper (arXiv:1810.04805)."""
    w = weights()
    x = w["token_embd.weight"][list(ids)] + w["position_embd.weight"][: len(ids)]
    x = _norm(x + w["token_types.weight"][0], w, "token_embd_norm")
    for layer in range(LAYERS):
        at = f"blk.{layer}."
        x = _norm(x + _attention(x, w, at), w, at + "attn_output_norm")
        up = _linear(x, w, at + "ffn_up")
        gelu = 0.5 * up * (1 + np.tanh(0.7978845608 * (up + 0.044715 * up**3)))
        x = _norm(x + _linear(gelu, w, at + "ffn_down"), w, at + "layer_output_norm")
    return x


def _attention(x: Values, w: Weights, at: str) -> Values:
    n, size = len(x), WIDTH // HEADS
    q, k, v = (_linear(x, w, at + part).reshape(n, HEADS, size).swapaxes(0, 1)
               for part in ("attn_q", "attn_k", "attn_v"))  # fmt: skip
    scores = q @ k.swapaxes(1, 2) / size**0.5
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    return _linear((shares @ v).swapaxes(0, 1).reshape(n, WIDTH), w, at + "attn_output")


def _linear(x: Values, w: Weights, name: str) -> Values:
    made: Values = x @ w[f"{name}.weight"].T + w[f"{name}.bias"]
    return made


def _norm(x: Values, w: Weights, name: str) -> Values:
    centered = x - x.mean(axis=-1, keepdims=True)
    spread = np.sqrt((centered**2).mean(axis=-1, keepdims=True) + EPSILON)
    made: Values = centered / spread * w[f"{name}.weight"] + w[f"{name}.bias"]
    return made
