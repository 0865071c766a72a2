"""Qwen 3.5: a gated delta net in most layers, gated attention in the others.

For each head, a delta net stores a matrix that maps a key to a value. Each token first fades this matrix, then moves
the value that it returns for the token's key part of the way toward the token's value.
"""

from __future__ import annotations

import math

import mlx.core as mx
from mlx import nn

from backends.apple.convolution import convolve
from backends.apple.decoder import Decoder, FeedForward, heads, norm
from backends.apple.step import Step
from backends.apple.weights import Tensor, Weights
from backends.contract import StageConfig
from backends.gguf_weights.rotation import scaled
from backends.gguf_weights.sizes import Pairs

INTERVAL = 4  # the last layer of so many attends, unless the file states another pattern


class Qwen35(Decoder):
    """A delta net or attention, then a gated feed-forward part, each with a norm before it and a residual."""

    def __init__(self, weights: Weights, config: StageConfig) -> None:
        super().__init__(weights, config)
        file, sizes = self.file, self.sizes
        recurrent = file.flags("attention.recurrent_layers", sizes.n_layers)
        if recurrent is None:
            interval = max(1, file.integer("full_attention_interval", INTERVAL))
            recurrent = tuple((index + 1) % interval != 0 for index in range(sizes.n_layers))
        self.shapes = [None if is_net else shape for is_net, shape in zip(recurrent, self.shapes, strict=True)]
        self.rotate = self.rotation(scaled(file, sizes.base, sizes.n_rot), Pairs.HALVES)
        self.mixers = [
            DeltaNet(self, index) if is_net else GatedAttention(self, index) for index, is_net in enumerate(recurrent)
        ]
        self.before_mixer, self.before_inner = (
            [weights.vector(f"blk.{index}.{name}.weight", sizes.width) for index in range(sizes.n_layers)]
            for name in ("attn_norm", "post_attention_norm")
        )
        n_inner = file.integer("feed_forward_length")
        self.inner = [FeedForward(weights, f"blk.{index}", sizes.width, n_inner) for index in range(sizes.n_layers)]

    def layer(self, index: int, rows: Tensor, step: Step) -> Tensor:
        rows = rows + self.mixers[index](norm(rows, self.before_mixer[index], self.sizes.eps), step)
        return rows + self.inner[index](norm(rows, self.before_inner[index], self.sizes.eps))


class GatedAttention:
    """Attention with an output gate, which the query matrix computes together with the query of each head."""

    def __init__(self, model: Qwen35, index: int) -> None:
        weights, sizes, name = model.weights, model.sizes, f"blk.{index}"
        self._model, self._index, n_kv = model, index, sizes.n_kv_heads[index]
        self._query = weights.matrix(f"{name}.attn_q", 2 * sizes.n_heads * sizes.key, sizes.width)
        self._key = weights.matrix(f"{name}.attn_k", n_kv * sizes.key, sizes.width)
        self._value = weights.matrix(f"{name}.attn_v", n_kv * sizes.value, sizes.width)
        self._query_norm, self._key_norm = (
            weights.vector(f"{name}.attn_{part}_norm.weight", sizes.key) for part in "qk"
        )
        self._out = weights.matrix(f"{name}.attn_output", sizes.width, sizes.n_heads * sizes.value)

    def __call__(self, rows: Tensor, step: Step) -> Tensor:
        sizes, rotate = self._model.sizes, self._model.rotate
        query, gate = mx.split(heads(self._query(rows), 2 * sizes.key), 2, axis=-1)
        query = rotate(norm(query, self._query_norm, sizes.eps), step)
        key = rotate(norm(heads(self._key(rows), sizes.key), self._key_norm, sizes.eps), step)
        value = heads(self._value(rows), sizes.value)
        read = step.attend(self._index, query, key, value, 1 / math.sqrt(sizes.key))
        return self._out(read * mx.sigmoid(gate.reshape(len(rows), -1)))


class DeltaNet:
    """A gated delta net. A short convolution first mixes each token's query, key and value with earlier ones."""

    def __init__(self, model: Qwen35, index: int) -> None:
        weights, file, name, width = model.weights, model.file, f"blk.{index}", model.sizes.width
        self._name, self._eps = str(index), model.sizes.eps
        self._size, self._n_keys = file.integer("ssm.state_size"), file.integer("ssm.group_count")
        self._n_heads, inner = file.integer("ssm.time_step_rank"), file.integer("ssm.inner_size")
        channels = inner + 2 * self._n_keys * self._size
        self._enter = weights.matrix(f"{name}.attn_qkv", channels, width)
        self._kernel = weights.vector(f"{name}.ssm_conv1d.weight", channels, file.integer("ssm.conv_kernel"))
        self._gate = weights.matrix(f"{name}.attn_gate", inner, width)
        self._share = weights.matrix(f"{name}.ssm_beta", self._n_heads, width)
        self._fade = weights.matrix(f"{name}.ssm_alpha", self._n_heads, width)
        self._fade_bias = weights.vector(f"{name}.ssm_dt.bias", self._n_heads)
        self._fade_scale = weights.vector(f"{name}.ssm_a", self._n_heads)
        self._norm = weights.vector(f"{name}.ssm_norm.weight", inner // self._n_heads)
        self._out = weights.matrix(f"{name}.ssm_out", width, inner)

    def __call__(self, rows: Tensor, step: Step) -> Tensor:
        entered, share = self._enter(rows), mx.sigmoid(self._share(rows))
        fade = mx.exp(nn.softplus(self._fade(rows) + self._fade_bias) * self._fade_scale)
        results = []
        for segment, place in step.parts():
            before, memory = (step.states.of(segment.slot, f"{self._name} {kind}") for kind in ("rows", "memory"))
            mixed, after = convolve(entered[place], self._kernel, before)
            out, memory = self._remember(nn.silu(mixed), share[place], fade[place], memory)
            step.states.set(segment.slot, f"{self._name} rows", after)
            step.states.set(segment.slot, f"{self._name} memory", memory)
            results.append(out)
        gate = nn.silu(self._gate(rows)).reshape(len(rows), self._n_heads, -1)
        return self._out((norm(mx.concatenate(results), self._norm, self._eps) * gate).reshape(len(rows), -1))

    def _remember(self, mixed: Tensor, share: Tensor, fade: Tensor, memory: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the value `[n, heads, values]` that the memory returns for each row's query, and the new memory."""
        n_key = self._n_keys * self._size
        query, key, value = mx.split(mixed, [n_key, 2 * n_key], axis=-1)
        # each head of values uses the head of keys that comes in turn
        query, key = (
            mx.tile(self._unit(part.reshape(len(part), self._n_keys, -1)), (1, self._n_heads // self._n_keys, 1))
            for part in (query, key)
        )
        value = value.reshape(len(value), self._n_heads, -1)
        if memory is None:
            memory = mx.zeros((self._n_heads, value.shape[-1], self._size))
        answers = []
        for at in range(mixed.shape[0]):
            memory = memory * fade[at, :, None, None]
            error = (value[at] - _answer(memory, key[at])) * share[at, :, None]
            memory = memory + error[:, :, None] * key[at][:, None]
            answers.append(_answer(memory, query[at]) / math.sqrt(self._size))
        return mx.stack(answers), memory

    def _unit(self, rows: Tensor) -> Tensor:
        """Return each row divided by its length."""
        return rows * mx.rsqrt(rows.square().sum(axis=-1, keepdims=True) + self._eps)


def _answer(memory: Tensor, key: Tensor) -> Tensor:
    """Return the value that each head's memory stores for its key."""
    return (memory @ key[:, :, None])[..., 0]
