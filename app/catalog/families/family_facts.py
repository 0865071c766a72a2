"""What engine and planner must know of a model because of its family, worked out from its metadata."""

from __future__ import annotations

import math
from dataclasses import dataclass

from app.catalog.families.cut_rules import Rule
from app.catalog.families.family_table import FAMILIES, Family
from app.catalog.families.layer_kinds import recurrents
from app.catalog.families.variants import n_layers, number
from app.catalog.gguf import tensor_types
from app.catalog.gguf.gguf_header import Header
from app.core.model import PLACEHOLDER_ROWS
from backends.contract import USUAL, Traits

STATE_VALUE_BYTES = 4  # f32


@dataclass(frozen=True, slots=True)
class Facts:
    """See Model, whose fields have these names."""

    first: Traits = USUAL
    later: Traits = USUAL
    idle_bytes: int = 0
    last_idle_bytes: int = 0
    state_bytes: tuple[int, ...] = ()


def family_facts(header: Header, architecture: str, width: int, n_vocab: int) -> Facts:
    """Of a family that is proved; nothing special of any other. Raises BadInput."""
    family = FAMILIES.get(architecture)
    if family is None:
        return Facts()
    root = math.sqrt(width)
    unscale = Rule.F7 in family.rules
    idle, last_idle = idle_bytes(family, width, n_vocab)
    return Facts(
        first=_traits(family, root if family.entry_scaled else 1.0),
        later=_traits(family, 1 / root if unscale else 1.0),
        idle_bytes=idle,
        last_idle_bytes=last_idle,
        state_bytes=_state_bytes(header, family, width),
    )


def _traits(family: Family, input_scale: float) -> Traits:
    boundary = family.boundary if Rule.F13 in family.rules else USUAL.boundary
    return Traits(input_scale, family.planes, boundary, family.recurrent is not None)


def idle_kind(width: int) -> int:
    """The smallest number type for rows of this width that nothing reads."""
    if width % 256 == 0:
        return tensor_types.TQ1_0
    return tensor_types.Q4_0 if width % 32 == 0 else tensor_types.F16


def idle_bytes(family: Family, width: int, n_vocab: int) -> tuple[int, int]:
    """Bytes of matrices that nothing reads, beside the embedding's: before the last run, and in it."""
    if Rule.F1 not in family.rules:
        return 0, 0
    before = tensor_types.tensor_bytes(tensor_types.F16, (width, PLACEHOLDER_ROWS))
    return before or 0, tensor_types.tensor_bytes(idle_kind(width), (width, n_vocab)) or 0


def _state_bytes(header: Header, family: Family, width: int) -> tuple[int, ...]:
    """Of each layer for one sequence. Source: llama_hparams::n_embd_r and n_embd_s."""
    kinds = recurrents(header, family)
    if kinds is None:
        return ()
    kernel = max(1, number(header, "ssm.conv_kernel", 1))
    head, heads = number(header, "kda.head_dim"), number(header, "attention.head_count", 1)
    if cache := number(header, "shortconv.l_cache"):
        values = width * (cache - 1)
    elif head:
        values = 3 * (kernel - 1) * heads * head + heads * head * head
    else:
        inner, state = number(header, "ssm.inner_size"), number(header, "ssm.state_size")
        groups = number(header, "ssm.group_count")
        values = (kernel - 1) * (inner + 2 * groups * state) + inner * state
    return tuple(STATE_VALUE_BYTES * values * has for has in kinds[: n_layers(header)])
