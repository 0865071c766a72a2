"""Blocks for multi-token prediction: model files contain them, transformers ignores them, and cutting drops them."""

from __future__ import annotations

import torch

from scripts.families.recipe import WIDTH, Recipe

Tensors = dict[str, torch.Tensor]


def block(recipe: Recipe, tensors: Tensors) -> Tensors:
    """Return the tensors of the block: a renamed copy of the last layer, and those that connect it to the model."""
    chance = torch.Generator().manual_seed(recipe.seed + 1)
    n_layers = recipe.sizes()["num_hidden_layers"]
    last = f"model.layers.{n_layers - 1}."
    copied = {name.removeprefix(last): value for name, value in tensors.items() if name.startswith(last)}
    norm, join = torch.ones(WIDTH), torch.randn(WIDTH, 2 * WIDTH, generator=chance).half().float()
    if recipe.mtp == "mtp.":  # Qwen
        names = ("mtp.fc.weight", "mtp.pre_fc_norm_embedding.weight", "mtp.pre_fc_norm_hidden.weight")
        inside, final = "mtp.layers.0.", "mtp.norm.weight"
    else:  # DeepSeek and GLM add one more layer
        inside = f"model.layers.{n_layers}."
        names = (inside + "eh_proj.weight", inside + "enorm.weight", inside + "hnorm.weight")
        final = inside + "shared_head.norm.weight"
    weights = dict(zip((*names, final), (join, norm, norm.clone(), norm.clone()), strict=True))
    return {**weights, **{inside + name: value.clone() for name, value in copied.items()}}


def metadata(recipe: Recipe) -> dict[str, int]:
    """Return the configuration entries of the block."""
    if not recipe.mtp:
        return {}
    return {"mtp_num_hidden_layers" if recipe.mtp == "mtp." else "num_nextn_predict_layers": 1}
