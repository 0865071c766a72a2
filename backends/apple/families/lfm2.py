"""LFM2: short convolutions in most layers, attention in the others."""

from __future__ import annotations

import mlx.core as mx

from backends.apple.convolution import convolve
from backends.apple.decoder import FeedForward
from backends.apple.families.qwen import Qwen3
from backends.apple.step import Step
from backends.apple.weights import Tensor, Weights
from backends.contract import StageConfig, StageError
from backends.gguf_weights.windows import WINDOW


class Lfm2(Qwen3):
    """Qwen 3 in which layers without key heads use a short convolution instead of attention."""

    head_norm_name = "token_embd_norm"

    def __init__(self, weights: Weights, config: StageConfig) -> None:
        if weights.file.integer(WINDOW, 0):
            raise StageError("layers with a window are not computed here", "weights_metadata", key=f"lfm2.{WINDOW}")
        super().__init__(weights, config)
        self.shapes = [shape if shape and shape.n_heads else None for shape in self.shapes]

    def layer_of(self, index: int) -> object:
        return super().layer_of(index) if self.sizes.n_kv_heads[index] else _Convolution(self, index)

    def key_norm(self, part: str, index: int) -> Tensor | None:
        return super().key_norm(part, index) if self.sizes.n_kv_heads[index] else None

    def attention(self, index: int, rows: Tensor, step: Step) -> Tensor:
        layer = self.layers[index]
        return layer.mix(rows, step, index) if isinstance(layer, _Convolution) else super().attention(index, rows, step)


class _Convolution:
    """The weights of a convolution layer. One gate precedes the convolution and another follows it."""

    def __init__(self, model: Lfm2, index: int) -> None:
        weights, name, width = model.weights, f"blk.{index}", model.sizes.width
        self.attention_norm = weights.vector(f"{name}.attn_norm.weight", width)
        self._enter = weights.matrix(f"{name}.shortconv.in_proj", 3 * width, width)
        self._kernel = weights.vector(f"{name}.shortconv.conv.weight", width, model.file.integer("shortconv.l_cache"))
        self._leave = weights.matrix(f"{name}.shortconv.out_proj", width, width)
        self.feed_forward_norm = weights.vector(f"{name}.ffn_norm.weight", width)
        self.feed_forward = FeedForward(weights, name, width, model.file.integer("feed_forward_length"))

    def mix(self, rows: Tensor, step: Step, index: int) -> Tensor:
        first, last, values = mx.split(self._enter(rows), 3, axis=-1)
        gated, name, mixed = first * values, f"{index}", []
        for segment, place in step.parts():
            out, state = convolve(gated[place], self._kernel, step.states.of(segment.slot, name))
            step.states.set(segment.slot, name, state)
            mixed.append(out)
        return self._leave(last * mx.concatenate(mixed))
