"""Qwen 2 and 2.5, whose queries, keys and values have biases, and Qwen 3, which norms queries and keys instead.

Qwen 3 MoE differs from Qwen 3 only in its feed-forward parts, which are mixtures of experts.
"""

from __future__ import annotations

from backends.apple.decoder import norm
from backends.apple.families.llama import Llama
from backends.apple.step import Step
from backends.apple.weights import Tensor, Weights
from backends.contract import StageConfig
from backends.gguf_weights.sizes import Pairs


class Qwen2(Llama):
    """Llama that rotates halves. `Weights.matrix` loads the biases together with their matrices."""

    pairs = Pairs.HALVES


class Qwen3(Qwen2):
    """Qwen 2 whose queries and keys are normed, head by head."""

    def __init__(self, weights: Weights, config: StageConfig) -> None:
        super().__init__(weights, config)
        self.query_norms, self.key_norms = (
            [self.key_norm(part, index) for index in range(self.sizes.n_layers)] for part in "qk"
        )

    def key_norm(self, part: str, index: int) -> Tensor | None:
        """Return the norm weights of a layer's queries or keys. part: "q" or "k"."""
        return self.weights.vector(f"blk.{index}.attn_{part}_norm.weight", self.sizes.key)

    def turn(self, index: int, query: Tensor, key: Tensor, step: Step) -> tuple[Tensor, Tensor]:
        eps = self.sizes.eps
        query, key = norm(query, self.query_norms[index], eps), norm(key, self.key_norms[index], eps)
        return super().turn(index, query, key, step)
