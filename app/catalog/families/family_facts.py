"""Facts that engine and planner need because of a model's family: where it may be cut, and how its runs are treated."""

from __future__ import annotations

import math
from dataclasses import dataclass

from app.catalog.families.family_table import FAMILIES, Family, Rule, attentions, recurrents, windows
from app.catalog.families.layer_metadata import all_full, n_blocks, n_layers, number, strange_lists, varying
from app.catalog.gguf import tensor_types
from app.catalog.gguf.gguf_header import Header
from app.core.errors import Reason
from app.core.model import PLACEHOLDER_ROWS, RunRules, reachable
from backends.contract import USUAL, Traits

LITE_LAYERS, LITE_VOCABULARY = (26, 27), (48, 128_256)  # DeepSeek V2 Lite; GigaChat 3, Kanana 2


def boundaries(header: Header, architecture: str, n_vocab: int) -> tuple[tuple[int, ...], RunRules, Reason | None]:
    """Return where a model may be cut, and the rules of its runs; or no place, and the reason.

    Raises BadInput for metadata that cannot be.
    """
    why = unproved(header, architecture)
    n = n_layers(header)
    if why is None and n < 2:
        why = Reason("whole_one_layer")
    if why is not None:
        return (), RunRules(), why
    family = FAMILIES[architecture]
    step = family.step(header)
    edges = [at for at in range(1, n) if at % step == 0 and family.starts(header, at)]
    rules = RunRules(_groups(header, family), _not_long(header, family, n_vocab))
    legal = reachable(edges, n, rules)
    return legal, rules, None if legal else Reason("whole_small")


def unproved(header: Header, architecture: str) -> Reason | None:
    """Return the reason that this model, or a stage of it, may not be cut; None where it is proved. Raises BadInput."""
    family = FAMILIES.get(architecture)
    if family is None:
        return Reason("whole_family", {"architecture": architecture})
    predicts = n_blocks(header) > n_layers(header) and Rule.F6 not in family.rules
    strange = strange_lists(header) or varying(header) - family.may_vary
    if predicts or strange or (family.window and all_full(header)) or family.unproved(header):
        return Reason("whole_variant", {"architecture": architecture})
    return None


def unproved_stage(architecture: str) -> Reason | None:
    """Return the reason that such a stage is not lent for. Only its host can know whether it was cut correctly."""
    return None if architecture in FAMILIES else Reason("whole_family", {"architecture": architecture})


def is_lite(header: Header, n_vocab: int) -> bool:
    """Return whether llama.cpp takes a deepseek2 for one of the small ones."""
    n = n_layers(header)
    return n in LITE_LAYERS or (n, n_vocab) == LITE_VOCABULARY


def _not_long(header: Header, family: Family, n_vocab: int) -> tuple[int, ...]:
    if Rule.F11 not in family.rules:
        return family.not_long
    if is_lite(header, n_vocab):
        return ()
    layers, vocabulary = LITE_VOCABULARY
    return (*family.not_long, layers) if n_vocab == vocabulary else family.not_long


def _groups(header: Header, family: Family) -> tuple[tuple[int, ...], ...]:
    """Return the groups of layers of which every run must hold one: the engine has a cache for each kind."""
    kinds = []
    sliding = windows(header, family)
    if sliding is not None and family.window and not family.window.may_go:
        kinds.append(sliding)
    state = recurrents(header, family)
    if state is not None:
        kinds += [state, attentions(header, family)]
    return tuple(tuple(at for at, has in enumerate(kind) if has) for kind in kinds)


STATE_VALUE_BYTES = 4  # f32


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of a model's family. Its fields have the names of Model's."""

    first: Traits = USUAL
    later: Traits = USUAL
    idle_bytes: int = 0
    last_idle_bytes: int = 0
    state_bytes: tuple[int, ...] = ()


def family_facts(header: Header, architecture: str, width: int, n_vocab: int) -> Facts:
    """Return the facts of a proved family; the defaults for any other. Raises BadInput."""
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
    """Return the bytes of matrices that nothing reads, besides the embedding's: before the last run, and in it."""
    if Rule.F1 not in family.rules:
        return 0, 0
    before = tensor_types.tensor_bytes(tensor_types.F16, (width, PLACEHOLDER_ROWS))
    return before or 0, tensor_types.tensor_bytes(idle_kind(width), (width, n_vocab)) or 0


def _state_bytes(header: Header, family: Family, width: int) -> tuple[int, ...]:
    """Return the state bytes of each layer for one sequence. Source: llama_hparams::n_embd_r and n_embd_s."""
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
