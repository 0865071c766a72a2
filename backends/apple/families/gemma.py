"""Gemma 2, 3 and 4, which have norms before and after each part, and layers with sliding-window attention."""

from __future__ import annotations

import math

import mlx.core as mx

from backends.apple.decoder import Decoder, FeedForward, geglu, heads, norm
from backends.apple.experts import Mixture
from backends.apple.step import Step
from backends.apple.weights import Tensor, Weights
from backends.contract import StageConfig, StageError
from backends.gguf_weights import rotation
from backends.gguf_weights.cells import CacheShape
from backends.gguf_weights.sizes import ExpertSizes, Pairs
from backends.gguf_weights.windows import windows

LOCAL_BASE = 10_000.0  # of the rotation in layers with a window


class Gemma(Decoder):
    """The parts that Gemma 2, 3 and 4 have in common."""

    period = 1  # the last layer of so many sees all positions
    default_window = 0
    largest = 0  # the number of layers of the largest model, which scales queries by the width of the whole model

    def __init__(self, weights: Weights, config: StageConfig) -> None:
        super().__init__(weights, config)
        sizes, file = self.sizes, self.file
        self.windows = windows(file, sizes.n_layers, self.period, self.default_window)
        head = sizes.width // sizes.n_heads if sizes.n_layers == self.largest else sizes.key
        self.scale = 1 / math.sqrt(head)
        self.cap = file.number("attn_logit_softcapping", 0.0)
        self.final_cap = file.number("final_logit_softcapping", 0.0)
        self.norms = {
            name: [weights.vector(f"blk.{index}.{name}.weight", sizes.width) for index in range(sizes.n_layers)]
            for name in ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm")
        }
        self.feed_forward = [
            FeedForward(weights, f"blk.{index}", sizes.width, n_inner, geglu)
            for index, n_inner in enumerate(file.per_layer("feed_forward_length", sizes.n_layers))
        ]

    def enter(self, rows: Tensor) -> Tensor:
        return rows * math.sqrt(self.sizes.width)

    def layer(self, index: int, rows: Tensor, step: Step) -> Tensor:
        rows = rows + self.normed("post_attention_norm", index, self.attention(index, rows, step))
        return rows + self.normed("post_ffw_norm", index, self.inner(index, rows))

    def attention(self, index: int, rows: Tensor, step: Step) -> Tensor:
        raise NotImplementedError

    def inner(self, index: int, rows: Tensor) -> Tensor:
        """Return the output of the feed-forward part, without the norm that follows it."""
        return self.feed_forward[index](self.normed("ffn_norm", index, rows))

    def normed(self, name: str, index: int, rows: Tensor) -> Tensor:
        return norm(rows, self.norms[name][index], self.sizes.eps)

    def leave(self, rows: Tensor) -> Tensor:
        scores = super().leave(rows)
        return self.final_cap * mx.tanh(scores / self.final_cap) if self.final_cap else scores


class Gemma2(Gemma):
    """Gemma 2. Every second layer has a sliding window, and attention scores are capped."""

    period, default_window, largest = 2, 4096, 46

    def __init__(self, weights: Weights, config: StageConfig) -> None:
        super().__init__(weights, config)
        sizes = self.sizes
        self.rotate = self.rotation(rotation.scaled(self.file, sizes.base, sizes.n_rot), Pairs.HALVES)
        self.parts = [_Attention(weights, self, index) for index in range(sizes.n_layers)]

    def attention(self, index: int, rows: Tensor, step: Step) -> Tensor:
        part = self.parts[index]
        query, key, value = part.project(self.normed("attn_norm", index, rows))
        query, key = self.turn(index, query, key, step)
        return part.out(step.attend(index, query, key, value, self.scale, window=self.windows[index], cap=self.cap))

    def turn(self, index: int, query: Tensor, key: Tensor, step: Step) -> tuple[Tensor, Tensor]:
        """Return query and key, rotated by their positions."""
        return self.rotate(query, step), self.rotate(key, step)


class Gemma3(Gemma2):
    """Gemma 3. Five of six layers have a sliding window and their own rotation. Queries and keys are normed."""

    period, default_window, largest = 6, 0, 62

    def __init__(self, weights: Weights, config: StageConfig) -> None:
        super().__init__(weights, config)
        sizes = self.sizes
        local = rotation.plain(self.file.number("rope.freq_base_swa", LOCAL_BASE), sizes.n_rot)
        self.rotate_locally = self.rotation(local, Pairs.HALVES)
        self.query_norms, self.key_norms = (
            [weights.vector(f"blk.{index}.attn_{part}_norm.weight", sizes.key) for index in range(sizes.n_layers)]
            for part in "qk"
        )

    def turn(self, index: int, query: Tensor, key: Tensor, step: Step) -> tuple[Tensor, Tensor]:
        eps = self.sizes.eps
        query, key = norm(query, self.query_norms[index], eps), norm(key, self.key_norms[index], eps)
        rotate = self.rotate_locally if self.windows[index] else self.rotate
        return rotate(query, step), rotate(key, step)


class _Attention:
    """The matrices of attention in Gemma 2 and 3."""

    def __init__(self, weights: Weights, model: Gemma, index: int) -> None:
        sizes, name = model.sizes, f"blk.{index}"
        self._sizes, n_kv = sizes, sizes.n_kv_heads[index]
        self._query = weights.matrix(f"{name}.attn_q", sizes.n_heads * sizes.key, sizes.width)
        self._key = weights.matrix(f"{name}.attn_k", n_kv * sizes.key, sizes.width)
        self._value = weights.matrix(f"{name}.attn_v", n_kv * sizes.value, sizes.width)
        self.out = weights.matrix(f"{name}.attn_output", sizes.width, sizes.n_heads * sizes.value)

    def project(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values: `[n, heads, values]` each."""
        return (
            heads(self._query(rows), self._sizes.key),
            heads(self._key(rows), self._sizes.key),
            heads(self._value(rows), self._sizes.value),
        )


class Gemma4(Gemma):
    """Gemma 4. Layers without a sliding window have longer heads, fewer keys, and use the keys as values.

    Values are normed. In some models, experts run in parallel with the feed-forward part. Models with per-layer
    embeddings (E2B, E4B) are not supported.
    """

    def __init__(self, weights: Weights, config: StageConfig) -> None:
        super().__init__(weights, config)
        sizes, file = self.sizes, self.file
        for key in ("embedding_length_per_layer_input", "attention.shared_kv_layers"):
            if file.integer(key, 0):
                raise StageError(f"{key} is not computed here", "weights_metadata", key=f"gemma4.{key}")
        self.local_key = file.integer("attention.key_length_swa")
        factors = None
        if file.has_tensor("rope_freqs.weight"):
            factors = file.tensor("rope_freqs.weight", (sizes.n_rot // 2,)).unpack()
        self.rotate = self.rotation(rotation.scaled(file, sizes.base, sizes.n_rot, factors), Pairs.HALVES)
        n_rot = file.integer("rope.dimension_count_swa", self.local_key)
        local = rotation.plain(file.number("rope.freq_base_swa", LOCAL_BASE), n_rot)
        self.rotate_locally = self.rotation(local, Pairs.HALVES)
        self.parts = [_Gemma4Layer(weights, self, index) for index in range(sizes.n_layers)]
        lengths = [self.key_length(index) for index in range(sizes.n_layers)]
        self.shapes = [CacheShape(n, size, size) for n, size in zip(sizes.n_kv_heads, lengths, strict=True)]

    def key_length(self, index: int) -> int:
        """Return the number of values in a head of layer `index`."""
        return self.local_key if self.windows[index] else self.sizes.key

    def attention(self, index: int, rows: Tensor, step: Step) -> Tensor:
        part, eps = self.parts[index], self.sizes.eps
        rows, length = self.normed("attn_norm", index, rows), self.key_length(index)
        rotate = self.rotate_locally if self.windows[index] else self.rotate
        query = rotate(norm(heads(part.query(rows), length), part.query_norm, eps), step)
        raw = part.key(rows)
        key = rotate(norm(heads(raw, length), part.key_norm, eps), step)
        value = norm(heads(raw if part.value is None else part.value(rows), length), None, eps)
        return part.out(step.attend(index, query, key, value, 1.0, window=self.windows[index]))

    def inner(self, index: int, rows: Tensor) -> Tensor:
        part, eps = self.parts[index], self.sizes.eps
        out = super().inner(index, rows)
        if part.experts is None:
            return out
        routed_by = norm(rows, None, eps) / math.sqrt(self.sizes.width) * part.router_scale
        mixed = part.experts(norm(rows, part.expert_norm, eps), routed_by)
        return norm(out, part.after_inner, eps) + norm(mixed, part.after_experts, eps)

    def layer(self, index: int, rows: Tensor, step: Step) -> Tensor:
        rows, scale = super().layer(index, rows, step), self.parts[index].scale
        return rows if scale is None else rows * scale


class _Gemma4Layer:
    """The weights of a Gemma 4 layer, except for the norms and the feed-forward part, which Gemma loads."""

    def __init__(self, weights: Weights, model: Gemma4, index: int) -> None:
        sizes, name, length = model.sizes, f"blk.{index}", model.key_length(index)
        width, n_kv = sizes.width, sizes.n_kv_heads[index]
        self.query = weights.matrix(f"{name}.attn_q", sizes.n_heads * length, width)
        self.key = weights.matrix(f"{name}.attn_k", n_kv * length, width)
        self.value = None
        if model.file.has_tensor(f"{name}.attn_v.weight"):
            self.value = weights.matrix(f"{name}.attn_v", n_kv * length, width)
        self.out = weights.matrix(f"{name}.attn_output", width, sizes.n_heads * length)
        self.query_norm, self.key_norm = (weights.vector(f"{name}.attn_{part}_norm.weight", length) for part in "qk")
        self.scale = weights.vector_or_none(f"{name}.layer_output_scale.weight", 1)
        self.experts = None
        if model.file.has_tensor(f"{name}.ffn_gate_inp.weight"):
            self.experts = Mixture(weights, name, width, ExpertSizes.of(model.file), geglu)
            self.router_scale = weights.vector(f"{name}.ffn_gate_inp.scale", width)
            self.expert_norm = weights.vector(f"{name}.pre_ffw_norm_2.weight", width)
            self.after_inner = weights.vector(f"{name}.post_ffw_norm_1.weight", width)
            self.after_experts = weights.vector(f"{name}.post_ffw_norm_2.weight", width)
