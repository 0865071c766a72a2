"""GLM-4 and GLM-4 MoE (GLM-4.5 to 4.7)."""

from __future__ import annotations

from backends.apple.decoder import FeedForward, norm
from backends.apple.experts import Mixture, MixtureBeside, dense_or_experts
from backends.apple.families.llama import Llama
from backends.apple.step import Step
from backends.apple.weights import Tensor, Weights
from backends.contract import StageConfig
from backends.gguf_weights.sizes import Pairs, Routing

SECTIONS = "rope.dimension_sections"  # of positions with several planes, which stages of llama.cpp need


class Glm4(Llama):
    """Llama with an additional norm after each part.

    In files cut into stages, the metadata lists rotation sections, and the rows of the query and key matrices are
    reordered so that the rotation pairs the two halves of a head.
    """

    def __init__(self, weights: Weights, config: StageConfig) -> None:
        self.pairs = Pairs.HALVES if weights.file.has(SECTIONS) else Pairs.ADJACENT
        super().__init__(weights, config)
        width = self.sizes.width
        self.after_attention, self.after_feed_forward = (
            [weights.vector(f"blk.{index}.{name}.weight", width) for index in range(self.sizes.n_layers)]
            for name in ("post_attention_norm", "post_ffw_norm")
        )

    def layer(self, index: int, rows: Tensor, step: Step) -> Tensor:
        layer, eps = self.layers[index], self.sizes.eps
        out = self.attention(index, norm(rows, layer.attention_norm, eps), step)
        rows = rows + norm(out, self.after_attention[index], eps)
        out = layer.feed_forward(norm(rows, layer.feed_forward_norm, eps))
        return rows + norm(out, self.after_feed_forward[index], eps)


class Glm4Moe(Llama):
    """Llama that rotates halves. All layers except the first few have experts and one shared expert.

    The largest models also norm queries and keys.
    """

    pairs = Pairs.HALVES
    feed_forward_norm = "post_attention_norm"

    def __init__(self, weights: Weights, config: StageConfig) -> None:
        super().__init__(weights, config)
        layers = range(self.sizes.n_layers)
        self.query_norms, self.key_norms = (
            [weights.vector_or_none(f"blk.{index}.attn_{part}_norm.weight", self.sizes.key) for index in layers]
            for part in "qk"
        )

    def inner(self, index: int) -> FeedForward | Mixture | MixtureBeside:
        return dense_or_experts(self.weights, f"blk.{index}", index, self.sizes.width, Routing.SIGMOID)

    def turn(self, index: int, query: Tensor, key: Tensor, step: Step) -> tuple[Tensor, Tensor]:
        of_query, of_key, eps = self.query_norms[index], self.key_norms[index], self.sizes.eps
        query = query if of_query is None else norm(query, of_query, eps)
        key = key if of_key is None else norm(key, of_key, eps)
        return super().turn(index, query, key, step)
