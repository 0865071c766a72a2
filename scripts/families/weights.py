"""Random weights with which a tiny model produces varied text: seeded, of unit scale, and exact in half precision."""

from __future__ import annotations

import math

import torch

NORM_SPREAD, BIAS_SPREAD, TIED_GAIN = 0.2, 0.1, 2.0


def randomize(model: torch.nn.Module, seed: int) -> None:
    """Fill parameters and saved buffers with values that are exact in half precision, the same for both engines."""
    chance = torch.Generator().manual_seed(seed)
    tied = getattr(model.config.get_text_config(), "tie_word_embeddings", False)
    with torch.no_grad():
        for name, value in [*model.named_parameters(), *saved_buffers(model)]:
            if value.is_floating_point():
                noise = torch.randn(value.shape, generator=chance)
                value.copy_(fresh(name, value, noise, tied).half().float())


def saved_buffers(model: torch.nn.Module) -> list[tuple[str, torch.Tensor]]:
    """Return the buffers that are saved in the model's file, such as the bias of a router."""
    saved = model.state_dict().keys()
    return [(name, value) for name, value in model.named_buffers() if name in saved]


def fresh(name: str, old: torch.Tensor, noise: torch.Tensor, tied: bool) -> torch.Tensor:
    """Return the new values of a parameter."""
    kind = name.rsplit(".", 1)[-1]
    if "embed_tokens" in name or "wte" in name or "embed_in" in name:
        return noise * (old.shape[-1] ** -0.5 if tied else 1.0)
    if "norm" in name.lower():
        return old + NORM_SPREAD * noise  # around one, or around zero if one is added later
    if kind == "sinks":
        return noise
    if kind.endswith("bias") or old.dim() < 2:
        return old + BIAS_SPREAD * noise
    return noise * gain(name, tied) / math.sqrt(fan_in(name, old))


def gain(name: str, tied: bool) -> float:
    """Return the scale of a tensor's noise.

    With tied embeddings and weak layers, a model would only repeat its last token.
    """
    return TIED_GAIN if tied and name.endswith(("o_proj.weight", "down_proj.weight", "c_proj.weight")) else 1.0


def fan_in(name: str, matrix: torch.Tensor) -> int:
    """Return the number of inputs of a matrix. gpt-oss and Llama 4 store the matrices of their experts transposed."""
    return matrix.shape[-2] if matrix.dim() == 3 and "experts" in name else matrix.shape[-1]
