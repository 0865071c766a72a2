"""The table of proved model families: whether, where and how each may be cut, and the kinds of a model's layers.

It has one row per family, keyed by GGUF's name of its architecture; docs/families.md shows the results of the
proofs. A family without a row, or a model outside what was proved of its family, runs whole on one machine.
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
    all_full,
    dense_lead,
    full_indexer,
    has_window,
    image_planes,
    moe_step,
    n_blocks,
    n_layers,
    n_layers_are,
    named,
    no_window,
    number,
    per_layer_embeddings,
    strange_lists,
    varying,
)
from app.catalog.gguf import tensor_types
from app.catalog.gguf.gguf_file import Header
from app.core.errors import Reason
from app.core.model import PLACEHOLDER_ROWS, RunRules, reachable
from backends.contract import USUAL, Traits

LITE_LAYERS, LITE_VOCABULARY = (26, 27), (48, 128_256)  # DeepSeek V2 Lite; GigaChat 3, Kanana 2


class Rule(Enum):
    """A rule that makes a run of layers compute the same result as in the whole model's graph."""

    F1 = "the loader wants an output matrix in every stage"
    F2 = "dense or experts is chosen by the number of leading dense layers"
    F3 = "which layers have a sliding window is counted from the file's first layer"
    F4 = "which layers are recurrent is counted from the file's first layer"
    F5 = "hidden states may enter only when positions have planes (M-RoPE)"
    F6 = "layers that predict further tokens stand behind the last one"
    F7 = "hidden states that enter are scaled like embeddings"
    F8 = "queries are scaled by the number of layers"
    F9 = "hidden states that enter are taken for those of an image"
    F10 = "a tensor is taken up by full-attention layers only"
    F11 = "what the file does not say is guessed from the number of layers"
    F12 = "the scale of embeddings is applied to hidden states that enter"
    F13 = "a layer's output has another name in the graph"
    F14 = "metadata with a value for each layer is cut like the layers"


Unproved = Callable[[Header], bool]
KV_HEADS, FFN = "attention.head_count_kv", "feed_forward_length"
WINDOWS, RECURRENTS = "attention.sliding_window_pattern", "attention.recurrent_layers"


@dataclass(frozen=True, slots=True)
class Window:
    """The layers that look back only over a sliding window: all but one of each `period`."""

    period: int = 0  # 0 if the file lists the layers
    full_first: bool = False  # the layer without a window is the first of its period, not the last
    by_default: bool = False  # even if the file states no window
    may_go: bool = False  # a run without such a layer drops the window; otherwise every run needs one


@dataclass(frozen=True, slots=True)
class Recurrent:
    """The layers that carry a state from token to token in place of a KV cache."""

    period: int = 0  # all layers but the last of each period; 0 if the fields below decide
    everywhere: bool = False  # every layer has a state in addition to attention
    no_ffn: bool = False  # the layers with neither KV heads nor feed-forward; otherwise those without KV heads


@dataclass(frozen=True, slots=True)
class Family:
    """A family that was proved to split."""

    architecture: str
    rules: frozenset[Rule]
    window: Window | None = None
    recurrent: Recurrent | None = None
    step: Callable[[Header], int] = lambda _: 1  # cuts must be at multiples of this
    starts: Callable[[Header, int], bool] = lambda _, __: True  # whether a run may begin at a layer
    not_long: tuple[int, ...] = ()  # lengths of a run that the engine would take for another model
    unproved: Unproved = lambda _: False  # whether a model is outside the proved range
    varies: tuple[str, ...] = ()  # per-layer lists whose values were proved to be allowed to differ
    planes: int = 1  # positions of each hidden state that enters a run
    entry_scaled: bool = False  # the host multiplies looked-up embeddings by sqrt(width)
    turns: bool = False  # F5 changes which rows are rotated together
    boundary: str = "l_out"  # name of the graph's tensor with a layer's output, without its number
    exact: bool = True  # bit for bit; otherwise within the variation caused by chunk sizes

    @property
    def may_vary(self) -> set[str]:
        """The per-layer lists whose values may differ between layers.

        For others, the engine may use the first layer's value for all layers, and a stage has another first layer.
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
        # all layers are alike, wherever they are
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
        _family("glm-dsa", "F1 F2", starts=full_indexer, varies=("attention.indexer.types",)),
        _family("granite", "F12"),
        _family("granitemoe", "F12"),
        _family("gemma", "F7", exact=False),
        # cut only at whole periods
        _family("smollm3", step=_every(4)),
        _family("ernie4_5-moe", "F2", step=moe_step),
        _family("llama4", "F3", window=Window(4, by_default=True),
                step=lambda header: lcm(4, moe_step(header))),
        _family("afmoe", "F2 F3 F7", window=Window(4), step=_every(4), unproved=no_window, exact=False),
        _family("laguna", "F2 F3", window=Window(4, full_first=True), step=_every(4),
                unproved=no_window, varies=("attention.head_count",)),
        # sliding windows
        _family("gemma2", "F3 F7", window=Window(2, by_default=True), not_long=(46,),
                unproved=n_layers_are(46), exact=False),
        _family("gemma3", "F3 F8", window=Window(6, may_go=True), not_long=(62,), entry_scaled=True),
        _family("gemma4", "F3 F10", window=Window(), not_long=(1,), unproved=per_layer_embeddings,
                varies=(KV_HEADS,), entry_scaled=True),
        _family("gpt-oss", "F1 F3", window=Window(2)),
        _family("olmo2", "F1 F3", window=Window(4, may_go=True)),
        _family("cohere2", "F3", window=Window(4)),
        _family("cohere2moe", "F1 F2 F3", window=Window(4, full_first=True)),
        _family("exaone-moe", "F1 F2 F3", window=Window(4)),
        _family("mimo2", "F1 F3", window=Window(), varies=(KV_HEADS,)),
        _family("granite_swa", "F3 F12", window=Window()),
        _family("mellum", "F1 F3", window=Window(4)),
        # positions with planes
        _family("qwen2vl", planes=4),
        _family("qwen3vl", "F9", planes=4),
        _family("glm4", "F5", planes=4, turns=True, unproved=image_planes, exact=False),
        _family("glm4moe", "F2 F5 F6", planes=4, unproved=image_planes),
        # hybrids of attention and recurrent layers
        _family("qwen35", "F4 F6", recurrent=Recurrent(4), planes=4),
        _family("qwen35moe", "F4 F6", recurrent=Recurrent(4), planes=4),
        _family("qwen3next", "F4", recurrent=Recurrent(4)),
        _family("lfm2", recurrent=Recurrent(), unproved=has_window, varies=(KV_HEADS,)),
        _family("lfm2moe", "F2", recurrent=Recurrent(), unproved=has_window, varies=(KV_HEADS,)),
        _family("granitehybrid", "F12", recurrent=Recurrent(), varies=(KV_HEADS,)),
        _family("kimi-linear", "F1 F2", recurrent=Recurrent(), varies=(KV_HEADS,)),
        _family("falcon-h1", recurrent=Recurrent(everywhere=True)),
        _family("nemotron_h", "F13", recurrent=Recurrent(no_ffn=True), varies=(KV_HEADS, FFN),
                boundary="nemotron_h_block_out"),
        _family("nemotron_h_moe", "F13", recurrent=Recurrent(no_ffn=True), varies=(KV_HEADS, FFN),
                boundary="nemotron_h_block_out"),
    )
}  # fmt: skip


WINDOW, WINDOW_LAYERS = "attention.sliding_window", "attention.sliding_window_pattern"


RECURRENT_LAYERS, INTERVAL = "attention.recurrent_layers", "full_attention_interval"


Kinds = tuple[bool, ...]  # one value for each layer


def windows(header: Header, family: Family) -> Kinds | None:
    """Return the layers with a sliding window, or None if the model has none. Raises BadInput."""
    window = family.window
    if window is None:
        return None
    absent = named(header, WINDOW) not in header.entries
    if not (window.by_default and absent) and number(header, WINDOW) == 0:
        return None
    listed = _listed(header, WINDOW_LAYERS)
    if listed is not None:
        return listed
    period, n = window.period, n_layers(header)
    key = named(header, WINDOW_LAYERS)
    if not period and key not in header.entries:
        raise header.odd(key, "nothing")
    period = header.integer(key, 0, MAX_LAYERS, period)
    full = 0 if window.full_first else period - 1
    return tuple(period == 0 or layer % period != full for layer in range(n))


def recurrents(header: Header, family: Family) -> Kinds | None:
    """Return the layers that carry a state, or None if all are attention. Raises BadInput."""
    kind, n = family.recurrent, n_layers(header)
    if kind is None:
        return None
    if kind.everywhere:
        return (True,) * n
    if kind.period:
        listed = _listed(header, RECURRENT_LAYERS)
        if listed is not None:
            return listed
        period = header.integer(named(header, INTERVAL), 1, MAX_LAYERS, kind.period)
        return tuple((layer + 1) % period != 0 for layer in range(n))
    heads, ffn = (_numbers(header, "attention.head_count_kv"), _numbers(header, "feed_forward_length"))
    if kind.no_ffn:
        return tuple(not h and not f for h, f in zip(heads, ffn, strict=True))
    return tuple(not h for h in heads)


def attentions(header: Header, family: Family) -> Kinds:
    """Return the layers with a KV cache. Raises BadInput."""
    state = recurrents(header, family)
    if state is None or (family.recurrent and family.recurrent.everywhere):
        return (True,) * n_layers(header)
    if family.recurrent and family.recurrent.no_ffn:
        return tuple(bool(h) for h in _numbers(header, "attention.head_count_kv"))
    return tuple(not is_recurrent for is_recurrent in state)


def _listed(header: Header, name: str) -> Kinds | None:
    """Return a list of flags from the file, or None if it has none."""
    key = named(header, name)
    value = header.entries.get(key)
    if value is None or not value.is_array:
        return None
    values, n = header.items(key), n_layers(header)
    if len(values) not in (n, n_blocks(header)) or any(isinstance(flag, str) for flag in values):
        raise header.odd(key, f"{len(values)} values for {n} layers")
    return tuple(bool(flag) for flag in values)[:n]


def _numbers(header: Header, name: str) -> tuple[int, ...]:
    n = n_blocks(header)
    numbers = header.integers(named(header, name), n, 0, MAX_VALUE) or (0,) * n
    return numbers[: n_layers(header)]


def boundaries(header: Header, architecture: str, n_vocab: int) -> tuple[tuple[int, ...], RunRules, Reason | None]:
    """Return the places where a model may be cut and the rules of its runs, or no places and the reason.

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
    legal = reachable(edges, n, rules)
    return legal, rules, None if legal else Reason("whole_small")


def unproved(header: Header, architecture: str) -> Reason | None:
    """Return the reason why this model, or a stage of it, may not be cut, or None if it may. Raises BadInput."""
    family = FAMILIES.get(architecture)
    if family is None:
        return Reason("whole_family", {"architecture": architecture})
    predicts = n_blocks(header) > n_layers(header) and Rule.F6 not in family.rules
    strange = strange_lists(header) or varying(header) - family.may_vary
    if predicts or strange or (family.window and all_full(header)) or family.unproved(header):
        return Reason("whole_variant", {"architecture": architecture})
    return None


def unproved_stage(architecture: str) -> Reason | None:
    """Return the reason why memory is not lent for such a stage, if any. Only its host can know whether it was cut
    correctly."""
    return None if architecture in FAMILIES else Reason("whole_family", {"architecture": architecture})


def is_lite(header: Header, n_vocab: int) -> bool:
    """Return whether llama.cpp treats a deepseek2 model as one of the small ones."""
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
    """Return the groups of layers of which every run needs at least one, since the engine has a cache for each kind."""
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
    """The facts about a model that come from its family. The fields are named as in Model."""

    first: Traits = USUAL
    later: Traits = USUAL
    idle_bytes: int = 0
    last_idle_bytes: int = 0
    state_bytes: tuple[int, ...] = ()


def family_facts(header: Header, architecture: str, width: int, n_vocab: int) -> Facts:
    """Return the facts of a proved family, or the defaults for any other. Raises BadInput."""
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
    """Return the smallest number type for unused rows of this width."""
    if width % 256 == 0:
        return tensor_types.TQ1_0
    return tensor_types.Q4_0 if width % 32 == 0 else tensor_types.F16


def idle_bytes(family: Family, width: int, n_vocab: int) -> tuple[int, int]:
    """Return the bytes of unread matrices, apart from the embedding's, in each run before the last and in the last."""
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
