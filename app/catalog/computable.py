"""Numbers that an engine would not survive, or never end with: a file that has them is refused by name."""

from __future__ import annotations

import math

from app.catalog.gguf_header import Header

MAX_ROPE = 1 << 17  # as the width of a model
MAX_EXPERTS = 1 << 16
_EPSILONS = ("layer_norm_rms_epsilon", "layer_norm_epsilon")


def check(header: Header, architecture: str) -> None:
    """Raises BadInput."""
    for name in _EPSILONS:
        _check_epsilon(header, f"{architecture}.attention.{name}")
    _check_rope(header, f"{architecture}.rope.dimension_")
    _check_experts(header, f"{architecture}.expert_")


def _check_epsilon(header: Header, key: str) -> None:
    """What is added below a root: small, and no less than nothing."""
    if key not in header.entries:
        return
    for found in header.items(key):
        if not isinstance(found, float) or not math.isfinite(found) or not 0 <= found < 1:
            raise header.odd(key, str(found))


def _check_rope(header: Header, prefix: str) -> None:
    """Values are turned in pairs; llama.cpp divides by their number where they are in sections."""
    for key in (f"{prefix}count", f"{prefix}count_swa"):
        found = header.integer(key, 0, MAX_ROPE, 2)
        if found % 2 or (not found and f"{prefix}sections" in header.entries):
            raise header.odd(key, str(found))


def _check_experts(header: Header, prefix: str) -> None:
    """No more are asked than there are."""
    value = header.entries.get(f"{prefix}used_count")
    if value is None:
        return
    n_experts = header.integer(f"{prefix}count", 0, MAX_EXPERTS, 0)
    for found in header.items(f"{prefix}used_count"):
        if not isinstance(found, int) or not 0 <= found <= n_experts:
            raise header.odd(f"{prefix}used_count", f"{found} of {n_experts}")
