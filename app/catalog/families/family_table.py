"""The table of model families that are proved to split, with their cutting rules and the kinds of their layers.

Each row is keyed by the family's architecture in GGUF. docs/families.md shows the results of the proofs. Models of
other families, or of variants that were not proved, run whole on one machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from math import lcm

from app.catalog.families.layer_metadata import (
    MAX_LAYERS,
    MAX_VALUE,
    dense_lead,
    has_empty_window,
    has_indexer,
    has_window,
    metadata_key,
    moe_step,
    n_blocks,
    n_layers,
    n_layers_are,
    no_window,
    number,
    per_layer_embeddings,
    unknown_lists,
    uses_mrope,
    varying_lists,
)
from app.catalog.gguf import tensor_types
from app.catalog.gguf.gguf_file import Header
from app.core.errors import Reason
from app.core.model import PLACEHOLDER_ROWS, RunRules, reachable_boundaries
from backends.contract import DEFAULT_TRAITS, FamilyTraits

LITE_LAYERS, LITE_VOCABULARY = (26, 27), (48, 128_256)  # DeepSeek V2 Lite; GigaChat 3 and Kanana 2


class Rule(Enum):
    """A reason why a plain cut of a family would be wrong. If all rules are obeyed, a run of layers computes the same
    results as in the whole model."""

    F1 = "the loader requires an output matrix in every stage"
    F2 = "the number of leading dense layers decides which layers have experts"
    F3 = "layers with a sliding window are counted from the file's first layer"
    F4 = "recurrent layers are counted from the file's first layer"
    F5 = "hidden states are accepted as input only if positions have planes (M-RoPE)"
    F6 = "layers for multi-token prediction follow the last ordinary layer"
    F7 = "hidden states passed in are scaled as embeddings are"
    F8 = "the scale of queries depends on the number of layers"
    F9 = "hidden states passed in are taken for those of an image"
    F10 = "a shared tensor is used only by full-attention layers"
    F11 = "missing metadata is guessed from the number of layers"
    F12 = "the embedding scale is applied to hidden states passed in"
    F13 = "a layer's output has a different name in the graph"
    F14 = "metadata with a value for each layer must be cut along with the layers"


Unproved = Callable[[Header], bool]
KV_HEADS, FFN = "attention.head_count_kv", "feed_forward_length"
WINDOWS, RECURRENTS = "attention.sliding_window_pattern", "attention.recurrent_layers"
LONG_FACTORS = "rope_factors_long.weight"


@dataclass(frozen=True, slots=True)
class WindowPattern:
    """The pattern of layers with a sliding window: all layers but one in each `period`."""

    period: int = 0  # 0 if the file lists the layers with a window
    full_first: bool = False  # whether the layer without a window is the first of its period rather than the last
    by_default: bool = False  # whether layers have a window even if the file states none
    may_go: bool = False  # whether a run may lack layers with a window, and then omits the window's metadata


@dataclass(frozen=True, slots=True)
class RecurrentPattern:
    """The pattern of recurrent layers, which carry a state from token to token, usually instead of a KV cache."""

    period: int = 0  # all layers but the last of each period are recurrent; 0 if the following fields decide
    everywhere: bool = False  # every layer has a state in addition to a KV cache
    # layers with neither KV heads nor a feed-forward part are recurrent; otherwise those without KV heads
    no_ffn: bool = False


@dataclass(frozen=True, slots=True)
class Family:
    """A model family whose stages were proved to compute the same results as the whole model."""

    architecture: str
    rules: frozenset[Rule]
    window: WindowPattern | None = None
    recurrent: RecurrentPattern | None = None
    step: Callable[[Header], int] = lambda _: 1  # cuts must be at multiples of this
    starts: Callable[[Header, int], bool] = lambda _, __: True  # whether a run may begin at a layer
    not_long: tuple[int, ...] = ()  # lengths of a run at which the engine would mistake it for another model
    unproved: Unproved = lambda _: False  # whether a model is a variant that was not proved
    varies: tuple[str, ...] = ()  # per-layer lists that were proved to work if their values differ
    planes: int = 1  # number of position values of each hidden state passed to a run
    entry_scaled: bool = False  # whether the host multiplies embeddings by sqrt(width)
    turns: bool = False  # whether rule F5 changes which values are rotated together
    boundary: str = "l_out"  # name of the graph's tensor with a layer's output, without its number
    # whether results are equal bit for bit; otherwise they vary as much as they do with the chunk size
    exact: bool = True

    @property
    def may_vary(self) -> set[str]:
        """The per-layer lists whose values may differ between layers.

        For any other list, the engine may apply the first value to all layers. In a stage that starts at another
        layer, that would be the wrong value.
        """
        kinds = {WINDOWS} if self.window else set[str]()
        if self.recurrent and self.recurrent.period:
            kinds.add(RECURRENTS)
        return kinds | set(self.varies)


def _family(architecture: str, rules: str = "", **facts: object) -> Family:
    names = ("F14", *rules.split())
    return Family(architecture, frozenset(Rule[name] for name in names), **facts)  # type: ignore[arg-type]


def _every(n: int) -> Callable[[Header], int]:
    return lambda _: n


FAMILIES: dict[str, Family] = {
    family.architecture: family
    for family in (
        # all layers are alike, regardless of their position
        _family("llama"),  # Llama, Mistral, Mixtral, and the Guide
        _family("qwen2"),
        _family("qwen3"),
        _family("qwen3moe"),
        _family("phi3"),  # Phi-3.5, Phi-4
        _family("mistral3"),
        _family("mistral4", unproved=dense_lead),
        _family("seed_oss"),
        _family("exaone4", not_long=(64,), unproved=n_layers_are(64)),
        _family("ernie4_5"),
        _family("hunyuan-dense"),
        _family("hunyuan-moe"),
        _family("command-r"),
        _family("starcoder2"),
        _family("arcee"),
        _family("olmo"),
        _family("hy_v3"),
        _family("minimax-m2", "F1"),
        _family("apertus", "F1", varies=("xielu.alpha_n", "xielu.alpha_p", "xielu.beta", "xielu.eps")),
        _family("qwen2moe", "F1"),
        _family("olmoe", "F1"),
        _family("phimoe", "F1"),
        _family("stablelm", "F1"),
        _family("nemotron", "F1"),
        _family("gptneox", "F1"),
        _family("dots1", "F1 F2"),
        _family("deepseek2", "F2 F6 F11", not_long=(26, 27)),
        _family("deepseek32", "F1 F2"),
        _family("glm-dsa", "F1 F2", starts=has_indexer, varies=("attention.indexer.types",)),
        _family("granite", "F12"),
        _family("granitemoe", "F12"),
        _family("gemma", "F7", exact=False),
        # cut only at whole periods
        _family("smollm3", step=_every(4)),
        _family("ernie4_5-moe", "F2", step=moe_step),
        _family("llama4", "F3", window=WindowPattern(4, by_default=True),
                step=lambda header: lcm(4, moe_step(header))),
        _family("afmoe", "F2 F3 F7", window=WindowPattern(4), step=_every(4), unproved=no_window, exact=False),
        _family("laguna", "F2 F3", window=WindowPattern(4, full_first=True), step=_every(4),
                unproved=no_window, varies=("attention.head_count",)),
        # sliding windows
        _family("gemma2", "F3 F7", window=WindowPattern(2, by_default=True), not_long=(46,),
                unproved=n_layers_are(46), exact=False),
        _family("gemma3", "F3 F8", window=WindowPattern(6, may_go=True), not_long=(62,), entry_scaled=True),
        _family("gemma4", "F3 F10", window=WindowPattern(), not_long=(1,), unproved=per_layer_embeddings,
                varies=(KV_HEADS,), entry_scaled=True),
        _family("gpt-oss", "F1 F3", window=WindowPattern(2)),
        _family("olmo2", "F1 F3", window=WindowPattern(4, may_go=True)),
        _family("cohere2", "F3", window=WindowPattern(4)),
        _family("cohere2moe", "F1 F2 F3", window=WindowPattern(4, full_first=True)),
        _family("exaone-moe", "F1 F2 F3", window=WindowPattern(4)),
        _family("mimo2", "F1 F3", window=WindowPattern(), varies=(KV_HEADS,)),
        _family("granite_swa", "F3 F12", window=WindowPattern()),
        _family("mellum", "F1 F3", window=WindowPattern(4)),
        # positions with several planes
        _family("qwen2vl", planes=4),
        _family("qwen3vl", "F9", planes=4),
        _family("glm4", "F5", planes=4, turns=True, unproved=uses_mrope, exact=False),
        _family("glm4moe", "F2 F5 F6", planes=4, unproved=uses_mrope),
        # hybrids of attention and recurrent layers
        _family("qwen35", "F4 F6", recurrent=RecurrentPattern(4), planes=4),
        _family("qwen35moe", "F4 F6", recurrent=RecurrentPattern(4), planes=4),
        _family("qwen3next", "F4", recurrent=RecurrentPattern(4)),
        _family("lfm2", recurrent=RecurrentPattern(), unproved=has_window, varies=(KV_HEADS,)),
        _family("lfm2moe", "F2", recurrent=RecurrentPattern(), unproved=has_window, varies=(KV_HEADS,)),
        _family("granitehybrid", "F12", recurrent=RecurrentPattern(), varies=(KV_HEADS,)),
        _family("kimi-linear", "F1 F2", recurrent=RecurrentPattern(), varies=(KV_HEADS,)),
        _family("falcon-h1", recurrent=RecurrentPattern(everywhere=True)),
        _family("nemotron_h", "F13", recurrent=RecurrentPattern(no_ffn=True), varies=(KV_HEADS, FFN),
                boundary="nemotron_h_block_out"),
        _family("nemotron_h_moe", "F13", recurrent=RecurrentPattern(no_ffn=True), varies=(KV_HEADS, FFN),
                boundary="nemotron_h_block_out"),
    )
}  # fmt: skip


WINDOW, WINDOW_LAYERS = "attention.sliding_window", "attention.sliding_window_pattern"


RECURRENT_LAYERS, INTERVAL = "attention.recurrent_layers", "full_attention_interval"


Kinds = tuple[bool, ...]  # one value for each layer


def window_layers(header: Header, family: Family) -> Kinds | None:
    """Return whether each layer has a sliding window, or None if the model has no such layers. Raises BadInput."""
    window = family.window
    if window is None:
        return None
    absent = metadata_key(header, WINDOW) not in header.entries
    if not (window.by_default and absent) and number(header, WINDOW) == 0:
        return None
    listed = _listed(header, WINDOW_LAYERS)
    if listed is not None:
        return listed
    period, n = window.period, n_layers(header)
    key = metadata_key(header, WINDOW_LAYERS)
    if not period and key not in header.entries:
        raise header.invalid(key, Reason("nothing"))
    period = header.integer(key, 0, MAX_LAYERS, period)
    full = 0 if window.full_first else period - 1
    return tuple(period == 0 or layer % period != full for layer in range(n))


def recurrent_layers(header: Header, family: Family) -> Kinds | None:
    """Return whether each layer carries a state, or None if the family has no recurrent layers. Raises BadInput."""
    kind, n = family.recurrent, n_layers(header)
    if kind is None:
        return None
    if kind.everywhere:
        return (True,) * n
    if kind.period:
        listed = _listed(header, RECURRENT_LAYERS)
        if listed is not None:
            return listed
        period = header.integer(metadata_key(header, INTERVAL), 1, MAX_LAYERS, kind.period)
        return tuple((layer + 1) % period != 0 for layer in range(n))
    heads, ffn = (_numbers(header, "attention.head_count_kv"), _numbers(header, "feed_forward_length"))
    if kind.no_ffn:
        return tuple(not h and not f for h, f in zip(heads, ffn, strict=True))
    return tuple(not h for h in heads)


def kv_cache_layers(header: Header, family: Family) -> Kinds:
    """Return whether each layer has a KV cache. Raises BadInput."""
    state = recurrent_layers(header, family)
    if state is None or (family.recurrent and family.recurrent.everywhere):
        return (True,) * n_layers(header)
    if family.recurrent and family.recurrent.no_ffn:
        return tuple(bool(h) for h in _numbers(header, "attention.head_count_kv"))
    return tuple(not is_recurrent for is_recurrent in state)


def _listed(header: Header, name: str) -> Kinds | None:
    """Return a per-layer list of flags from the file, or None if the file has no such list. Raises BadInput."""
    key = metadata_key(header, name)
    value = header.entries.get(key)
    if value is None or not value.is_array:
        return None
    values, n = header.items(key), n_layers(header)
    if len(values) not in (n, n_blocks(header)) or any(isinstance(flag, str) for flag in values):
        raise header.invalid(key, Reason("values_for_layers", {"count": len(values), "layers": n}))
    return tuple(bool(flag) for flag in values)[:n]


def _numbers(header: Header, name: str) -> tuple[int, ...]:
    n = n_blocks(header)
    numbers = header.integers(metadata_key(header, name), n, 0, MAX_VALUE) or (0,) * n
    return numbers[: n_layers(header)]


def boundaries(header: Header, architecture: str, n_vocab: int) -> tuple[tuple[int, ...], RunRules, Reason | None]:
    """Return the positions at which a model may be cut, the rules for its runs, and None. If it may not be cut, return
    no positions and, as the last value, the reason.

    Raises BadInput for impossible metadata.
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
    legal = reachable_boundaries(edges, n, rules)
    return legal, rules, None if legal else Reason("whole_small")


def unproved(header: Header, architecture: str) -> Reason | None:
    """Return the reason why this model may not be cut, or None if it may. Raises BadInput."""
    family = FAMILIES.get(architecture)
    if family is None:
        return Reason("whole_family", {"architecture": architecture})
    predicts = n_blocks(header) > n_layers(header) and Rule.F6 not in family.rules
    strange = unknown_lists(header) or varying_lists(header) - family.may_vary
    if predicts or strange or (family.window and has_empty_window(header)) or family.unproved(header):
        return Reason("whole_variant", {"architecture": architecture})
    return None


def unproved_stage(architecture: str) -> Reason | None:
    """Return the reason why a lender refuses stages of this architecture, or None.

    Only the host can tell whether a stage was cut correctly.
    """
    return None if architecture in FAMILIES else Reason("whole_family", {"architecture": architecture})


def is_lite(header: Header, n_vocab: int) -> bool:
    """Return whether llama.cpp treats a deepseek2 model as a Lite variant."""
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
    """Return groups of layers. Every run needs a layer of each group, since the engine expects a cache of each kind."""
    kinds = []
    sliding = window_layers(header, family)
    if sliding is not None and family.window and not family.window.may_go:
        kinds.append(sliding)
    state = recurrent_layers(header, family)
    if state is not None:
        kinds += [state, kv_cache_layers(header, family)]
    return tuple(tuple(at for at, has in enumerate(kind) if has) for kind in kinds)


STATE_VALUE_BYTES = 4  # f32


@dataclass(frozen=True, slots=True)
class FamilyFacts:
    """The facts about a model that follow from its family. They are named as in Model and its parts."""

    first: FamilyTraits = DEFAULT_TRAITS
    later: FamilyTraits = DEFAULT_TRAITS
    idle_bytes: int = 0
    last_idle_bytes: int = 0
    state_bytes: tuple[int, ...] = ()


def family_facts(header: Header, architecture: str, width: int, n_vocab: int) -> FamilyFacts:
    """Return the facts that follow from a family, or the defaults for a family that is not in the table. Raises
    BadInput."""
    family = FAMILIES.get(architecture)
    by_context = LONG_FACTORS in header.tensors
    if family is None:
        traits = FamilyTraits(by_context=by_context)
        return FamilyFacts(first=traits, later=traits)
    root = math.sqrt(width)
    unscale = Rule.F7 in family.rules
    idle, last_idle = idle_bytes(family, width, n_vocab)
    return FamilyFacts(
        first=_traits(family, root if family.entry_scaled else 1.0, by_context=by_context),
        later=_traits(family, 1 / root if unscale else 1.0, by_context=by_context),
        idle_bytes=idle,
        last_idle_bytes=last_idle,
        state_bytes=_state_bytes(header, family, width),
    )


def _traits(family: Family, input_scale: float, *, by_context: bool) -> FamilyTraits:
    boundary = family.boundary if Rule.F13 in family.rules else DEFAULT_TRAITS.boundary
    return FamilyTraits(input_scale, family.planes, boundary, family.recurrent is not None, by_context)


def idle_kind(width: int) -> int:
    """Return the number type in which unused rows of this width are smallest."""
    if width % 256 == 0:
        return tensor_types.TQ1_0
    return tensor_types.Q4_0 if width % 32 == 0 else tensor_types.F16


def idle_bytes(family: Family, width: int, n_vocab: int) -> tuple[int, int]:
    """Return the size of the matrices that the loader requires but never reads: in earlier runs, and in the last run.

    The embedding of earlier runs is not included.
    """
    if Rule.F1 not in family.rules:
        return 0, 0
    before = tensor_types.tensor_bytes(tensor_types.F16, (width, PLACEHOLDER_ROWS))
    return before or 0, tensor_types.tensor_bytes(idle_kind(width), (width, n_vocab)) or 0


def _state_bytes(header: Header, family: Family, width: int) -> tuple[int, ...]:
    """Return the size of each layer's state for one sequence. Source: llama_hparams::n_embd_r and n_embd_s."""
    kinds = recurrent_layers(header, family)
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
