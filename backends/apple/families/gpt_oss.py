"""gpt-oss. Every layer has experts, every second one a sliding window, and sinks absorb a share of the attention."""

from __future__ import annotations

import math

import mlx.core as mx

from backends.apple.decoder import Decoder, heads, norm
from backends.apple.experts import Mixture
from backends.apple.step import Step
from backends.apple.weights import Tensor, Weights
from backends.contract import StageConfig
from backends.gguf_weights import rotation
from backends.gguf_weights.sizes import ExpertSizes, Pairs, Routing
from backends.gguf_weights.windows import windows

PERIOD = 2  # the last layer of so many sees all positions
SLOPE, LIMIT = 1.702, 7.0  # of the gate


def clamped_swiglu(gate: Tensor, up: Tensor) -> Tensor:
    gate, up = mx.minimum(gate, LIMIT), mx.clip(up, -LIMIT, LIMIT)
    return gate * mx.sigmoid(SLOPE * gate) * (up + 1)


class GptOss(Decoder):
    """Attention with sinks, then a mixture of experts, each with a norm before it and a residual connection."""

    def __init__(self, weights: Weights, config: StageConfig) -> None:
        super().__init__(weights, config)
        sizes = self.sizes
        self.windows = windows(self.file, sizes.n_layers, PERIOD)
        self.rotate = self.rotation(rotation.scaled(self.file, sizes.base, sizes.n_rot), Pairs.HALVES)
        self.layers = [_Layer(weights, self, index) for index in range(sizes.n_layers)]

    def layer(self, index: int, rows: Tensor, step: Step) -> Tensor:
        layer, eps = self.layers[index], self.sizes.eps
        rows = rows + self.attention(index, norm(rows, layer.attention_norm, eps), step)
        return rows + layer.experts(norm(rows, layer.expert_norm, eps))

    def attention(self, index: int, rows: Tensor, step: Step) -> Tensor:
        layer, sizes = self.layers[index], self.sizes
        query = self.rotate(heads(layer.query(rows), sizes.key), step)
        key = self.rotate(heads(layer.key(rows), sizes.key), step)
        value = heads(layer.value(rows), sizes.value)
        scale, window = 1 / math.sqrt(sizes.key), self.windows[index]
        return layer.out(step.attend(index, query, key, value, scale, window=window, sinks=layer.sinks))


class _Layer:
    """The weights of a layer."""

    def __init__(self, weights: Weights, model: GptOss, index: int) -> None:
        sizes, name = model.sizes, f"blk.{index}"
        width, n_kv = sizes.width, sizes.n_kv_heads[index]
        self.attention_norm = weights.vector(f"{name}.attn_norm.weight", width)
        self.query = weights.matrix(f"{name}.attn_q", sizes.n_heads * sizes.key, width)
        self.key = weights.matrix(f"{name}.attn_k", n_kv * sizes.key, width)
        self.value = weights.matrix(f"{name}.attn_v", n_kv * sizes.value, width)
        self.out = weights.matrix(f"{name}.attn_output", width, sizes.n_heads * sizes.value)
        self.sinks = weights.vector(f"{name}.attn_sinks.weight", sizes.n_heads)
        self.expert_norm = weights.vector(f"{name}.post_attention_norm.weight", width)
        experts = ExpertSizes.of(model.file, routing=Routing.SOFTMAX_OF_CHOSEN, normed=False)
        self.experts = Mixture(weights, name, width, experts, clamped_swiglu)
