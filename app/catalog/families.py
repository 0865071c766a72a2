"""What is proved of each model family: whether it may be cut, where, and how.

One row for each family, named as GGUF names its architecture. A family without a row, or a model
outside what was proved of its family, runs whole on one machine. ARCHITECTURES.md has the facts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.catalog.gguf_header import Header
from app.core.errors import Reason

# Keys whose arrays have a value for each layer and are sliced with them (rule F14). Never guessed by
# length: an array may have as many values as there are layers by chance. "{a}" is the architecture.
PER_LAYER_KEYS = (
    "{a}.attention.head_count",
    "{a}.attention.head_count_kv",
    "{a}.feed_forward_length",
)


@dataclass(frozen=True, slots=True)
class Family:
    """A family that was proved to split."""

    architecture: str
    cuts: Callable[[Header, int], tuple[int, ...]]  # header, layers -> legal boundaries
    unproved: Callable[[Header], bool]  # whether this model is outside what was proved


def anywhere(_: Header, n_layers: int) -> tuple[int, ...]:
    """Every boundary between two layers."""
    return tuple(range(1, n_layers))


def has_experts(header: Header) -> bool:
    return header.integer(f"{header.text('general.architecture')}.expert_count", 0, 65_536, 0) > 0


FAMILIES: dict[str, Family] = {
    family.architecture: family
    for family in (
        Family("llama", cuts=anywhere, unproved=has_experts),  # Llama, Mistral, and the Guide
    )
}


def boundaries(
    header: Header, architecture: str, n_layers: int
) -> tuple[tuple[int, ...], Reason | None]:
    """Where a model may be cut; or nowhere, and why."""
    family = FAMILIES.get(architecture)
    if family is None:
        return (), Reason("whole_family", {"architecture": architecture})
    if family.unproved(header):
        return (), Reason("whole_variant", {"architecture": architecture})
    if n_layers < 2:
        return (), Reason("whole_one_layer")
    return family.cuts(header, n_layers), None
