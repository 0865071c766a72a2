"""Llama, and models built like it: Mistral, Mixtral, the Guide, Ministral 3 and SmolLM3."""

from __future__ import annotations

import math
from typing import Any

import mlx.core as mx

from backends.apple.decoder import Decoder, FeedForward, heads, norm
from backends.apple.experts import Mixture, MixtureBeside
from backends.apple.step import Step
from backends.apple.weights import Tensor, Weights
from backends.contract import StageConfig
from backends.gguf_weights.rotation import Frequencies, scaled
from backends.gguf_weights.sizes import ExpertSizes, Pairs

UNROTATED = 4  # every fourth layer of SmolLM3 ignores positions


class Llama(Decoder):
    """Rotated grouped-query attention and a gated feed-forward part, each with a norm before it and a residual."""

    pairs = Pairs.ADJACENT
    feed_forward_norm = "ffn_norm"

    def __init__(self, weights: Weights, config: StageConfig) -> None:
        super().__init__(weights, config)
        self.rotate = self.rotation(self.frequencies(), self.pairs)
        self.scale = self.file.number("attention.scale", 0.0) or 1 / math.sqrt(self.sizes.key)
        self.layers: list[Any] = [self.layer_of(index) for index in range(self.sizes.n_layers)]

    def layer_of(self, index: int) -> object:
        """Return the weights of a layer."""
        return LlamaLayer(self, index)

    def frequencies(self) -> Frequencies:
        """Return the frequencies of the rotation. Llama 3 divides each of them by its own factor."""
        file, sizes, factors = self.file, self.sizes, None
        if file.has_tensor("rope_freqs.weight"):
            factors = file.tensor("rope_freqs.weight", (sizes.n_rot // 2,)).unpack()
        return scaled(file, sizes.base, sizes.n_rot, factors)

    def inner(self, index: int) -> FeedForward | Mixture | MixtureBeside:
        """Return a layer's feed-forward part."""
        name, width = f"blk.{index}", self.sizes.width
        if self.file.integer("expert_count", 0):
            return Mixture(self.weights, name, width, ExpertSizes.of(self.file))
        return FeedForward(self.weights, name, width, self.file.integer("feed_forward_length"))

    def layer(self, index: int, rows: Tensor, step: Step) -> Tensor:
        layer, eps = self.layers[index], self.sizes.eps
        rows = rows + self.attention(index, norm(rows, layer.attention_norm, eps), step)
        return rows + layer.feed_forward(norm(rows, layer.feed_forward_norm, eps))

    def attention(self, index: int, rows: Tensor, step: Step) -> Tensor:
        layer, sizes = self.layers[index], self.sizes
        query, key, value = layer.project(rows)
        query, key = self.turn(index, heads(query, sizes.key), heads(key, sizes.key), step)
        value = heads(value, sizes.value)
        return layer.out(step.attend(index, query, key, value, self.scale))

    def turn(self, index: int, query: Tensor, key: Tensor, step: Step) -> tuple[Tensor, Tensor]:
        """Return query and key, rotated by their positions."""
        return self.rotate(query, step), self.rotate(key, step)


class LlamaLayer:
    """The weights of a layer. Some files store the query, key and value matrices as one."""

    def __init__(self, model: Llama, index: int) -> None:
        weights, sizes, name = model.weights, model.sizes, f"blk.{index}"
        n_kv, width = sizes.n_kv_heads[index], sizes.width
        lengths = [sizes.n_heads * sizes.key, n_kv * sizes.key, n_kv * sizes.value]
        self._ends = [lengths[0], lengths[0] + lengths[1]]
        self.attention_norm = weights.vector(f"{name}.attn_norm.weight", width)
        if model.file.has_tensor(f"{name}.attn_qkv.weight"):
            self._matrices = [weights.matrix(f"{name}.attn_qkv", sum(lengths), width)]
        else:
            self._matrices = [
                weights.matrix(f"{name}.attn_{part}", length, width)
                for part, length in zip("qkv", lengths, strict=True)
            ]
        self.out = weights.matrix(f"{name}.attn_output", width, sizes.n_heads * sizes.value)
        self.feed_forward_norm = weights.vector(f"{name}.{model.feed_forward_norm}.weight", width)
        self.feed_forward = model.inner(index)

    def project(self, rows: Tensor) -> list[Tensor]:
        """Return queries, keys and values."""
        if len(self._matrices) == 1:
            return list(mx.split(self._matrices[0](rows), self._ends, axis=-1))
        return [matrix(rows) for matrix in self._matrices]


class Ministral3(Llama):
    """Llama whose queries grow with the logarithm of their position beyond the original training context."""

    def __init__(self, weights: Weights, config: StageConfig) -> None:
        super().__init__(weights, config)
        self._growth = self.file.number("attention.temperature_scale", 0.0)
        self._trained = self.file.integer("rope.scaling.original_context_length", self.file.integer("context_length"))

    def turn(self, index: int, query: Tensor, key: Tensor, step: Step) -> tuple[Tensor, Tensor]:
        query, key = super().turn(index, query, key, step)
        if self._growth:
            spans = mx.floor(step.positions / self._trained)
            query = query * (1 + self._growth * mx.log1p(spans))[:, None, None]
        return query, key


class SmolLm3(Llama):
    """Llama in which every fourth layer ignores positions. Stages must therefore start at a multiple of four."""

    def turn(self, index: int, query: Tensor, key: Tensor, step: Step) -> tuple[Tensor, Tensor]:
        if (index + 1) % UNROTATED == 0:
            return query, key
        return super().turn(index, query, key, step)
