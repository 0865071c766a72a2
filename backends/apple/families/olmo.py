"""OLMo 2 and 3, with a norm after each part instead of before it. Most layers of OLMo 3 have a sliding window.

Queries and keys are normed over all heads together.
"""

from __future__ import annotations

import math

from backends.apple.decoder import Decoder, FeedForward, heads, norm
from backends.apple.step import Step
from backends.apple.weights import Tensor, Weights
from backends.contract import StageConfig
from backends.gguf_weights import rotation
from backends.gguf_weights.sizes import Pairs
from backends.gguf_weights.windows import WINDOW, windows

PERIOD = 4  # the last layer of so many sees all positions, if the model has windows


class Olmo2(Decoder):
    """Attention and a gated feed-forward part, each with a norm after it and a residual connection.

    Layers with a sliding window do not scale their rotation for long contexts.
    """

    def __init__(self, weights: Weights, config: StageConfig) -> None:
        super().__init__(weights, config)
        sizes, file = self.sizes, self.file
        has_windows = bool(file.integer(WINDOW, 0))
        self.windows = windows(file, sizes.n_layers, PERIOD) if has_windows else (0,) * sizes.n_layers
        self.rotate = self.rotation(rotation.scaled(file, sizes.base, sizes.n_rot), Pairs.HALVES)
        self.rotate_locally = self.rotation(rotation.plain(sizes.base, sizes.n_rot), Pairs.HALVES)
        self.layers = [_Layer(weights, self, index) for index in range(sizes.n_layers)]

    def layer(self, index: int, rows: Tensor, step: Step) -> Tensor:
        layer, eps = self.layers[index], self.sizes.eps
        rows = rows + norm(self.attention(index, rows, step), layer.after_attention, eps)
        return rows + norm(layer.feed_forward(rows), layer.after_feed_forward, eps)

    def attention(self, index: int, rows: Tensor, step: Step) -> Tensor:
        layer, sizes, window = self.layers[index], self.sizes, self.windows[index]
        rotate = self.rotate_locally if window else self.rotate
        query = heads(norm(layer.query(rows), layer.query_norm, sizes.eps), sizes.key)
        key = heads(norm(layer.key(rows), layer.key_norm, sizes.eps), sizes.key)
        value = heads(layer.value(rows), sizes.value)
        scale = 1 / math.sqrt(sizes.key)
        return layer.out(step.attend(index, rotate(query, step), rotate(key, step), value, scale, window=window))


class _Layer:
    """The weights of a layer."""

    def __init__(self, weights: Weights, model: Olmo2, index: int) -> None:
        sizes, name = model.sizes, f"blk.{index}"
        width, n_query, n_kv = sizes.width, sizes.n_heads * sizes.key, sizes.n_kv_heads[index]
        self.query = weights.matrix(f"{name}.attn_q", n_query, width)
        self.key = weights.matrix(f"{name}.attn_k", n_kv * sizes.key, width)
        self.value = weights.matrix(f"{name}.attn_v", n_kv * sizes.value, width)
        self.query_norm = weights.vector(f"{name}.attn_q_norm.weight", n_query)
        self.key_norm = weights.vector(f"{name}.attn_k_norm.weight", n_kv * sizes.key)
        self.out = weights.matrix(f"{name}.attn_output", width, sizes.n_heads * sizes.value)
        self.after_attention = weights.vector(f"{name}.post_attention_norm.weight", width)
        self.feed_forward = FeedForward(weights, name, width, model.file.integer("feed_forward_length"))
        self.after_feed_forward = weights.vector(f"{name}.post_ffw_norm.weight", width)
