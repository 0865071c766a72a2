"""Mixtures of experts: the choice of experts for each row, and their output.

MLX multiplies every row by the matrices of its own experts in one operation, so the stage never has to wait until the
choice is known.
"""

from __future__ import annotations

import mlx.core as mx

from backends.apple.decoder import FeedForward, Gating, swiglu
from backends.apple.weights import Tensor, Weights
from backends.contract import StageError
from backends.gguf_weights.sizes import LEAST_SUM, ExpertSizes, Routing


class Mixture:
    """A mixture of experts. Each row uses only a few of them."""

    def __init__(self, weights: Weights, layer: str, width: int, sizes: ExpertSizes, gating: Gating = swiglu) -> None:
        n, n_inner, file = sizes.n_experts, sizes.n_inner, weights.file
        self._sizes, self._gating = sizes, gating
        self._router = weights.matrix(f"{layer}.ffn_gate_inp", n, width)
        self._preference = weights.vector_or_none(f"{layer}.exp_probs_b.bias", n)
        self._both = self._gate = self._up = None
        if file.has_tensor(f"{layer}.ffn_gate_up_exps.weight"):
            self._both = weights.experts(f"{layer}.ffn_gate_up_exps", n, 2 * n_inner, width)
        else:
            self._gate = weights.experts(f"{layer}.ffn_gate_exps", n, n_inner, width)
            self._up = weights.experts(f"{layer}.ffn_up_exps", n, n_inner, width)
        self._down = weights.experts(f"{layer}.ffn_down_exps", n, width, n_inner)
        self._down_scale = weights.vector_or_none(f"{layer}.ffn_down_exps.scale", n)

    def __call__(self, rows: Tensor, routed_by: Tensor | None = None) -> Tensor:
        """Return the weighted sum of the chosen experts' outputs. routed_by: the router's input, if not `rows`."""
        chosen, shares = self._choose(self._router(rows if routed_by is None else routed_by))
        own = rows[:, None, None]
        if self._both is not None:
            gate, up = mx.split(self._both(own, chosen), 2, axis=-1)
        else:
            assert self._gate is not None
            assert self._up is not None
            gate, up = self._gate(own, chosen), self._up(own, chosen)
        out = self._down(self._gating(gate, up), chosen)[:, :, 0]
        if self._down_scale is not None:
            out = out * self._down_scale[chosen][..., None]
        return (out * shares[..., None]).sum(axis=1)

    def _choose(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """Return the experts of each row and their weights: `[n, n_used]` each."""
        sizes = self._sizes
        match sizes.routing:
            case Routing.SOFTMAX:
                values = mx.softmax(scores, axis=-1)
            case Routing.SIGMOID:
                values = mx.sigmoid(scores)
            case Routing.SOFTMAX_OF_CHOSEN:
                values = scores
        ranked = values if self._preference is None else values + self._preference
        if sizes.n_groups > 1:
            groups = ranked.reshape(ranked.shape[0], sizes.n_groups, -1)
            of_groups = mx.topk(groups, 2, axis=-1).sum(axis=-1)
            best = _largest(of_groups, sizes.n_groups_used)
            allowed = mx.put_along_axis(mx.zeros_like(of_groups), best, mx.array(1.0), axis=-1)
            ranked = mx.where(allowed[..., None] > 0, groups, float("-inf")).reshape(ranked.shape)
        chosen = _largest(ranked, sizes.n_used)
        shares = mx.take_along_axis(values, chosen, axis=-1)
        if sizes.routing is Routing.SOFTMAX_OF_CHOSEN:
            shares = mx.softmax(shares, axis=-1)
        if sizes.normed:
            shares = shares / mx.maximum(shares.sum(axis=-1, keepdims=True), LEAST_SUM)
        return chosen, shares * sizes.scale


def _largest(values: Tensor, n: int) -> Tensor:
    """Return the indexes of the `n` largest values of each row, in descending order of value."""
    return mx.argsort(-values, axis=-1)[..., :n]


class MixtureBeside:
    """A mixture of experts plus a shared expert that every row uses."""

    def __init__(self, weights: Weights, name: str, width: int, sizes: ExpertSizes, n_inner: int) -> None:
        self._mixture = Mixture(weights, name, width, sizes)
        self._shared = FeedForward(weights, name, width, n_inner, suffix="_shexp")

    def __call__(self, rows: Tensor) -> Tensor:
        return self._mixture(rows) + self._shared(rows)


def dense_or_experts(
    weights: Weights, name: str, index: int, width: int, default: Routing
) -> FeedForward | MixtureBeside:
    """Return a layer's feed-forward part in a family whose first layers have no experts."""
    file = weights.file
    if index < file.integer("leading_dense_block_count", 0):
        return FeedForward(weights, name, width, file.integer("feed_forward_length"))
    routing = file.integer("expert_gating_func", 0) or default
    if routing not in (Routing.SOFTMAX, Routing.SIGMOID):
        raise StageError(f"{file.path} chooses experts in an unknown way", "weights_metadata", key="expert_gating_func")
    sizes = ExpertSizes.of(
        file,
        routing=Routing(routing),
        normed=file.flag("expert_weights_norm"),
        n_groups=file.integer("expert_group_count", 0) or 1,
        n_groups_used=file.integer("expert_group_used_count", 0) or 1,
    )
    return MixtureBeside(weights, name, width, sizes, sizes.n_inner * file.integer("expert_shared_count"))
