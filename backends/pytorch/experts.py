"""Mixtures of experts: how the experts of a row are chosen, and what they add to it."""

from __future__ import annotations

import torch

from backends.contract import StageError
from backends.gguf_weights.sizes import LEAST_SUM, ExpertSizes, Routing
from backends.pytorch.decoder import FeedForward, Gating, swiglu
from backends.pytorch.weights import Tensor, Weights


class Mixture:
    """A mixture of experts, of which each row uses a few."""

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
        """Return what the chosen experts add. routed_by: the rows that choose them, if they are others."""
        chosen, shares = self._choose(self._router(rows if routed_by is None else routed_by))
        result = torch.zeros_like(rows)
        for expert in chosen.unique().tolist():
            row, place = torch.nonzero(chosen == expert, as_tuple=True)
            result.index_add_(0, row, self._expert(expert, rows[row]) * shares[row, place, None])
        return result

    def _expert(self, expert: int, rows: Tensor) -> Tensor:
        if self._both is not None:
            gate, up = self._both.of(expert, rows).chunk(2, dim=-1)
        else:
            assert self._gate is not None
            assert self._up is not None
            gate, up = self._gate.of(expert, rows), self._up.of(expert, rows)
        out = self._down.of(expert, self._gating(gate, up))
        return out if self._down_scale is None else out * self._down_scale[expert]

    def _choose(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """Return the experts of each row and their weights: `[n, n_used]` each."""
        sizes = self._sizes
        match sizes.routing:
            case Routing.SOFTMAX:
                values = torch.softmax(scores, dim=-1)
            case Routing.SIGMOID:
                values = torch.sigmoid(scores)
            case Routing.SOFTMAX_OF_CHOSEN:
                values = scores
        ranked = values if self._preference is None else values + self._preference
        if sizes.n_groups > 1:
            groups = ranked.unflatten(-1, (sizes.n_groups, -1))
            of_groups = groups.topk(2, dim=-1).values.sum(dim=-1)
            best = of_groups.topk(sizes.n_groups_used, dim=-1).indices
            unused = torch.ones_like(of_groups, dtype=torch.bool).scatter(-1, best, value=False)
            ranked = groups.masked_fill(unused[..., None], float("-inf")).flatten(-2)
        chosen = ranked.topk(sizes.n_used, dim=-1).indices
        shares = values.gather(-1, chosen)
        if sizes.routing is Routing.SOFTMAX_OF_CHOSEN:
            shares = torch.softmax(shares, dim=-1)
        if sizes.normed:
            shares = shares / shares.sum(dim=-1, keepdim=True).clamp_min(LEAST_SUM)
        return chosen, shares * sizes.scale


class MixtureBeside:
    """A mixture of experts beside a shared one, which every row uses."""

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
