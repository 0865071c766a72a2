"""Numbers that an engine would not survive, or never end with: a file that has them is refused by name."""

from __future__ import annotations

import math

from app.catalog.families.family_table import FAMILIES
from app.catalog.families.per_layer import check_all
from app.catalog.families.variants import MAX_LAYERS
from app.catalog.gguf.gguf_header import Header, Scalar

MAX_ROPE = 1 << 17  # as the width of a model
MAX_EXPERTS = 1 << 16
PAIR = 2
PLANE_VALUES = 4  # two pairs: F5 gives the second and third plane one each
_EPSILONS = ("layer_norm_rms_epsilon", "layer_norm_epsilon")


def check(header: Header, architecture: str) -> None:
    """Raises BadInput."""
    if architecture in FAMILIES:  # of another, nobody knows which lists have a value for each layer
        check_all(header)
    for name in _EPSILONS:
        _check_epsilon(header, f"{architecture}.attention.{name}")
    _check_rope(header, architecture)
    _check_experts(header, f"{architecture}.expert_")


def _check_epsilon(header: Header, key: str) -> None:
    """What is added below a root: small, and no less than nothing."""
    if key not in header.entries:
        return
    for found in _values(header, key):
        if not isinstance(found, float) or not math.isfinite(found) or not 0 <= found < 1:
            raise header.odd(key, str(found))


def _values(header: Header, key: str) -> tuple[Scalar, ...]:
    """One for all layers, or one for each: no list is read that is longer."""
    count = header.entries[key].count
    if count > MAX_LAYERS:
        raise header.odd(key, f"{count} values")
    return header.items(key)


def _check_rope(header: Header, architecture: str) -> None:
    """Values are turned in pairs; where positions have planes, there is a pair for each (F5)."""
    family = FAMILIES.get(architecture)
    least = 0
    if (
        family is not None
    ):  # with nothing to turn, the engine does not come to an end in some of these
        least = PLANE_VALUES if family.planes > 1 else PAIR
    for name in ("count", "count_swa"):
        key = f"{architecture}.rope.dimension_{name}"
        if key in header.entries and (found := header.integer(key, least, MAX_ROPE)) % 2:
            raise header.odd(key, str(found))


def _check_experts(header: Header, prefix: str) -> None:
    """No more are asked than there are."""
    value = header.entries.get(f"{prefix}used_count")
    if value is None:
        return
    n_experts = header.integer(f"{prefix}count", 0, MAX_EXPERTS, 0)
    for found in _values(header, f"{prefix}used_count"):
        if not isinstance(found, int) or not 0 <= found <= n_experts:
            raise header.odd(f"{prefix}used_count", f"{found} of {n_experts}")
