"""Granite, with or without experts: Llama with factors for the embeddings, each part's output, and the logits."""

from __future__ import annotations

from backends.apple.decoder import FeedForward, norm
from backends.apple.experts import Mixture, MixtureBeside
from backends.apple.families.llama import Llama
from backends.apple.step import Step
from backends.apple.weights import Tensor, Weights
from backends.contract import StageConfig
from backends.gguf_weights.sizes import ExpertSizes


class Granite(Llama):
    """Llama with constant factors. A flag in the file marks models without rotary positions."""

    def __init__(self, weights: Weights, config: StageConfig) -> None:
        super().__init__(weights, config)
        self._entry = self.file.number("embedding_scale", 0.0) or 1.0
        self._share = self.file.number("residual_scale", 0.0) or 1.0
        self._divisor = self.file.number("logit_scale", 0.0) or 1.0
        self._rotates = self.file.flag("rope.scaling.finetuned", default=True)

    def inner(self, index: int) -> FeedForward | Mixture | MixtureBeside:
        shared = self.file.integer("expert_shared_feed_forward_length", 0)
        if not shared:
            return super().inner(index)
        sizes = ExpertSizes.of(self.file)
        return MixtureBeside(self.weights, f"blk.{index}", self.sizes.width, sizes, shared)

    def enter(self, rows: Tensor) -> Tensor:
        return rows * self._entry

    def layer(self, index: int, rows: Tensor, step: Step) -> Tensor:
        layer, eps = self.layers[index], self.sizes.eps
        rows = rows + self._share * self.attention(index, norm(rows, layer.attention_norm, eps), step)
        return rows + self._share * layer.feed_forward(norm(rows, layer.feed_forward_norm, eps))

    def turn(self, index: int, query: Tensor, key: Tensor, step: Step) -> tuple[Tensor, Tensor]:
        return super().turn(index, query, key, step) if self._rotates else (query, key)

    def leave(self, rows: Tensor) -> Tensor:
        return super().leave(rows) / self._divisor
