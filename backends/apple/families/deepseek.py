"""DeepSeek V2 and V3, and models built like them: R1, Kimi K2, GLM-4.7-Flash.

The keys and values of all heads are compressed into one short vector, which is cached. Each head reads that vector
through its own matrices (multi-head latent attention). All layers except the first few have experts, including a
shared one.
"""

from __future__ import annotations

import math

import mlx.core as mx

from backends.apple.decoder import Decoder, heads, norm
from backends.apple.experts import dense_or_experts
from backends.apple.step import Step
from backends.apple.weights import Tensor, Weights
from backends.contract import StageConfig, StageError
from backends.gguf_weights.cells import CacheShape
from backends.gguf_weights.rotation import magnitude, scaled
from backends.gguf_weights.sizes import Pairs, Routing

CONVERTED = 0.1  # the factor with which files hold the multiplier of YaRN's logarithm


class DeepSeek2(Decoder):
    """Latent attention, then experts, each with a norm before it and a residual connection around it."""

    def __init__(self, weights: Weights, config: StageConfig) -> None:
        super().__init__(weights, config)
        file, sizes = self.file, self.sizes
        if file.number("attention.temperature_scale", 0.0):
            key = "deepseek2.attention.temperature_scale"
            raise StageError(f"{key} is not computed here", "weights_metadata", key=key)
        self.latent = file.integer("attention.kv_lora_rank")
        self.key, self.value = file.integer("attention.key_length_mla"), file.integer("attention.value_length_mla")
        self.rotate = self.rotation(scaled(file, sizes.base, sizes.n_rot), Pairs.ADJACENT)
        self.scale = self._stretch() ** 2 / math.sqrt(self.key)
        self.shapes = [CacheShape(1, self.latent + sizes.n_rot, self.latent)] * sizes.n_layers
        self.layers = [_Layer(weights, self, index) for index in range(sizes.n_layers)]

    def _stretch(self) -> float:
        """Return the factor by which YaRN enlarges queries and keys at the longest context."""
        file = self.file
        if file.text("rope.scaling.type", "linear") != "yarn":
            return 1.0
        factor, multiplier = file.number("rope.scaling.factor"), file.number("rope.scaling.yarn_log_multiplier", 0.0)
        if not multiplier:
            return magnitude(factor, 1.0)
        return magnitude(factor, multiplier / CONVERTED)

    def layer(self, index: int, rows: Tensor, step: Step) -> Tensor:
        layer, eps = self.layers[index], self.sizes.eps
        rows = rows + self.attention(index, norm(rows, layer.attention_norm, eps), step)
        return rows + layer.feed_forward(norm(rows, layer.feed_forward_norm, eps))

    def attention(self, index: int, rows: Tensor, step: Step) -> Tensor:
        layer, n_rot = self.layers[index], self.sizes.n_rot
        plain, turned = mx.split(heads(layer.queries(rows), self.key), [self.key - n_rot], axis=-1)
        latent, key = mx.split(layer.latent(rows), [self.latent], axis=-1)
        latent = norm(latent, layer.latent_norm, self.sizes.eps)[:, None]
        # each head's key matrix is applied to the query instead of to every cached latent vector
        query = mx.concatenate([mx.einsum("nhk,hlk->nhl", plain, layer.keys), self.rotate(turned, step)], axis=-1)
        key = mx.concatenate([latent, self.rotate(key[:, None], step)], axis=-1)
        read = heads(step.attend(index, query, key, latent, self.scale), self.latent)
        return layer.out(mx.einsum("nhl,hvl->nhv", read, layer.values).reshape(len(rows), -1))


class _Layer:
    """The weights of a layer. Lite models have one query matrix; others have two with a norm between them."""

    def __init__(self, weights: Weights, model: DeepSeek2, index: int) -> None:
        sizes, file, name = model.sizes, model.file, f"blk.{index}"
        width, n_heads = sizes.width, sizes.n_heads
        self._eps = sizes.eps
        self.attention_norm = weights.vector(f"{name}.attn_norm.weight", width)
        self._query_norm = None
        if file.has_tensor(f"{name}.attn_q.weight"):
            self._query = weights.matrix(f"{name}.attn_q", n_heads * model.key, width)
        else:
            rank = file.integer("attention.q_lora_rank")
            self._first = weights.matrix(f"{name}.attn_q_a", rank, width)
            self._query_norm = weights.vector(f"{name}.attn_q_a_norm.weight", rank)
            self._query = weights.matrix(f"{name}.attn_q_b", n_heads * model.key, rank)
        self.latent = weights.matrix(f"{name}.attn_kv_a_mqa", model.latent + sizes.n_rot, width)
        self.latent_norm = weights.vector(f"{name}.attn_kv_a_norm.weight", model.latent)
        self.keys = weights.vector(f"{name}.attn_k_b.weight", n_heads, model.latent, model.key - sizes.n_rot)
        self.values = weights.vector(f"{name}.attn_v_b.weight", n_heads, model.value, model.latent)
        self.out = weights.matrix(f"{name}.attn_output", width, n_heads * model.value)
        self.feed_forward_norm = weights.vector(f"{name}.ffn_norm.weight", width)
        self.feed_forward = dense_or_experts(weights, name, index, width, Routing.SOFTMAX)

    def queries(self, rows: Tensor) -> Tensor:
        if self._query_norm is None:
            return self._query(rows)
        return self._query(norm(self._first(rows), self._query_norm, self._eps))
