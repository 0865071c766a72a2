"""Where a model may be cut: boundaries, and what every run between two of them must hold."""

from __future__ import annotations

from app.catalog.families.cut_rules import Rule
from app.catalog.families.family_table import FAMILIES, Family
from app.catalog.families.layer_kinds import attentions, recurrents, windows
from app.catalog.families.per_layer import strange_lists, varying
from app.catalog.families.variants import all_full, n_blocks, n_layers
from app.catalog.gguf.gguf_header import Header
from app.core.errors import Reason
from app.core.model import RunRules, reachable

LITE_LAYERS, LITE_VOCABULARY = (26, 27), (48, 128_256)  # DeepSeek V2 Lite; GigaChat 3, Kanana 2


def boundaries(header: Header, architecture: str, n_vocab: int) -> tuple[tuple[int, ...], RunRules, Reason | None]:
    """Where a model may be cut, and what a run must hold; or nowhere, and why.

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
    """Why nobody may cut this model, or a stage of it; None: it is proved. Raises BadInput."""
    family = FAMILIES.get(architecture)
    if family is None:
        return Reason("whole_family", {"architecture": architecture})
    predicts = n_blocks(header) > n_layers(header) and Rule.F6 not in family.rules
    strange = strange_lists(header) or varying(header) - family.may_vary
    if predicts or strange or (family.window and all_full(header)) or family.unproved(header):
        return Reason("whole_variant", {"architecture": architecture})
    return None


def unproved_stage(architecture: str) -> Reason | None:
    """Why nobody lends for such a stage. Whether it was cut rightly, its host alone can know."""
    return None if architecture in FAMILIES else Reason("whole_family", {"architecture": architecture})


def is_lite(header: Header, n_vocab: int) -> bool:
    """Whether llama.cpp takes a deepseek2 for one of the small ones."""
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
    """Of each of these groups of layers every run must hold one: the engine has a cache for each kind."""
    kinds = []
    sliding = windows(header, family)
    if sliding is not None and family.window and not family.window.may_go:
        kinds.append(sliding)
    state = recurrents(header, family)
    if state is not None:
        kinds += [state, attentions(header, family)]
    return tuple(tuple(at for at, has in enumerate(kind) if has) for kind in kinds)
