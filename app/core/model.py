"""The facts about a model file: its sizes, the layers between which it may be cut, and the shapes of its layers.

app/catalog reads these facts from the header of the file. The shapes suffice to measure the speed of layers without
their weights.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

import msgspec
from msgspec import Meta

from app.core.errors import Reason
from backends.contract import DEFAULT_TRAITS, MAX_CHECKPOINTS, FamilyTraits, KvType, Layers, Role


@dataclass(frozen=True, slots=True)
class RunRules:
    """The rules that every run of a model's layers must obey. A whole model always obeys them."""

    required_groups: tuple[tuple[int, ...], ...] = ()  # a run must contain a layer of each of these groups
    forbidden_lengths: tuple[int, ...] = ()  # the numbers of layers that a run may not have

    def allow(self, layers: Layers) -> bool:
        """Return whether an engine can load exactly these layers as a run."""
        if len(layers) in self.forbidden_lengths:
            return False
        return all(_holds(group, layers) for group in self.required_groups)


ANY_RUN = RunRules()


def _holds(group: Sequence[int], layers: Layers) -> bool:
    place = bisect_left(group, layers.first)
    return place < len(group) and group[place] < layers.last


MAX_FAMILY = 80  # characters in the name of a family
PLACEHOLDER_ROWS = 32  # rows of the placeholder embedding in stages without a vocabulary, all zero
PLACEHOLDER_BYTES = 2  # bytes per value of the placeholder, which is f16


@dataclass(frozen=True, slots=True)
class Weights:
    """The sizes of a model's tensors, in bytes."""

    layer_bytes: tuple[int, ...]
    embedding_bytes: int
    head_bytes: int  # the output matrix, or the embedding if both are one tensor
    tied: bool  # whether embedding and output matrix are one tensor
    shared_bytes: int  # needed by every stage: the last norm, rope factors
    # bytes that are never used, besides the placeholder: in each run before the last, and in the last run
    idle_bytes: int = 0
    last_idle_bytes: int = 0
    expert_bytes: tuple[int, ...] = ()  # of each layer, the part that are experts; empty if unknown


@dataclass(frozen=True, slots=True)
class Cuts:
    """The layers before which a model may be cut, and the rules for its runs."""

    boundaries: tuple[int, ...] = ()  # the model may be cut before each of these layers; empty if it must stay whole
    whole_reason: Reason | None = None  # why it must stay whole
    rules: RunRules = ANY_RUN  # further requirements for every run
    first: FamilyTraits = DEFAULT_TRAITS  # how the engine treats the first run
    later: FamilyTraits = DEFAULT_TRAITS  # how the engine treats the other runs

    def traits(self, role: Role) -> FamilyTraits:
        """Return the traits that the engine needs for a run of this role."""
        return self.first if role is Role.FIRST else self.later


@dataclass(frozen=True, slots=True)
class Projector:
    """The part of a model that looks at pictures, in a file of its own (mmproj)."""

    path: str
    kind: str  # as its file names it
    file_bytes: int
    picture_rows: int = 0  # rows of a picture that are computed in one step; 0: they may be divided
    memory_bytes: int = 0  # its weights, and what it needs to look at a picture
    reason: Reason | None = None  # why it cannot be used
    most_rows: int = 0  # the limit for a picture; 0 for the limit in the file

    @property
    def is_usable(self) -> bool:
        return self.reason is None


@dataclass(frozen=True, slots=True)
class Model:
    """A model with the sizes of its parts and the layers before which it may be cut."""

    id: str  # 64 hex digits: a hash over the hashes of the header and of all tensors
    name: str  # the name under which it is stored and which users type, not the name of the file
    architecture: str
    n_layers: int
    width: int  # number of values in a hidden state
    n_vocab: int
    context_length: int  # the number of positions for which it was trained
    weights: Weights
    cuts: Cuts
    kv_bytes_per_token: tuple[int, ...]  # for each layer, with f16 values
    file_bytes: int
    quantization: str  # llama.cpp's name for the format, such as "Q4_K_M"; "" if the file states none
    license: str  # as stated in the file; "" if it states none
    has_template: bool  # whether it was made for chats
    quantized_kv: bool = True  # whether an attention head consists of whole blocks of KvType.Q8_0
    # recurrent state for each layer and one slot, which does not grow with the text; empty if there is none
    state_bytes: tuple[int, ...] = ()
    embeds: bool = False  # whether it produces one vector for a whole text
    writes: bool = True  # whether it predicts tokens; encoders and rerankers do not
    ranks: bool = False  # whether it scores how well a text answers a query
    n_parameters: int = 0
    has_tools: bool = False  # whether its chat template describes tools to it
    thinks: bool = False  # whether its chat template knows thoughts
    languages: tuple[str, ...] = ()  # as stated in the file
    maker: str = ""  # as stated in the file
    projector: Projector | None = None

    @property
    def sees(self) -> bool:
        """Return whether the model can look at pictures."""
        return self.projector is not None and self.projector.is_usable

    @property
    def is_base(self) -> bool:
        """Return whether this is a base model, which completes text but was not made for chats."""
        return self.writes and not self.has_template

    @property
    def layers(self) -> Layers:
        return Layers(0, self.n_layers)

    @property
    def family(self) -> str:
        """Return the architecture and the number format, such as `falcon-h1 Q4_K_M`.

        A graphics card that computes one model of a family is assumed to compute the others as well.
        """
        return family_of(self.architecture, self.quantization)

    def stage_bytes(self, layers: Layers, role: Role) -> int:
        """Return the size of a stage's weights: its layers, the shared tensors, and the tensors that its role adds."""
        weights = self.weights
        run = sum(weights.layer_bytes[layers.first : layers.last]) + weights.shared_bytes
        if role is Role.WHOLE:
            return run + weights.embedding_bytes + (0 if weights.tied else weights.head_bytes)
        if role is Role.LAST:
            return run + weights.head_bytes + weights.last_idle_bytes
        return run + PLACEHOLDER_ROWS * PLACEHOLDER_BYTES * self.width + weights.idle_bytes

    def kv_bytes(self, layers: Layers, cells: int, slots: int = 1, kind: KvType = KvType.F16) -> int:
        """Return the bytes of KV cache for `cells` positions over all slots, including the slots' recurrent states."""
        return sum(self.layer_kv(cells, slots, kind)[layers.first : layers.last])

    def layer_kv(self, cells: int, slots: int, kind: KvType = KvType.F16) -> tuple[int, ...]:
        """Return the size of the KV cache and recurrent states of each layer, in bytes."""
        kept = slots * (1 + MAX_CHECKPOINTS)
        states = self.state_bytes or (0,) * self.n_layers
        pairs = zip(self.kv_bytes_per_token, states, strict=True)
        return tuple(kind.bytes_of(cells * kv) + kept * state for kv, state in pairs)

    def may_cut(self, runs: tuple[Layers, ...]) -> bool:
        """Return whether these runs, in order, make up the whole model and obey its rules."""
        if not runs or runs[0].first != 0 or runs[-1].last != self.n_layers:
            return False
        joined = all(a.last == b.first for a, b in pairwise(runs))
        legal = len(runs) == 1 or all(self.cuts.rules.allow(run) for run in runs)
        return joined and legal and all(run.first in self.cuts.boundaries for run in runs[1:])


def family_of(architecture: str, quantization: str) -> str:
    """Return the name of a family (Model.family)."""
    return f"{architecture} {quantization}".strip()[:MAX_FAMILY]


def reachable_boundaries(boundaries: Iterable[int], n_layers: int, rules: RunRules) -> tuple[int, ...]:
    """Return the boundaries that occur in at least one legal division of all layers."""
    edges = (0, *boundaries, n_layers)
    fore, back = {0}, {n_layers}
    for index, edge in enumerate(edges):
        if any(a in fore and rules.allow(Layers(a, edge)) for a in edges[:index]):
            fore.add(edge)
    for index, edge in reversed(list(enumerate(edges))):
        if any(b in back and rules.allow(Layers(edge, b)) for b in edges[index + 1 :]):
            back.add(edge)
    return tuple(edge for edge in edges[1:-1] if edge in fore and edge in back)


def fewest_runs(
    run: Layers, boundaries: Iterable[int], rules: RunRules, fits: Callable[[Layers], bool]
) -> tuple[Layers, ...]:
    """Return the smallest number of legal runs that make up `run` and all fit, or () if this is impossible."""
    edges = [run.first, *(edge for edge in boundaries if run.first < edge < run.last), run.last]
    # for each edge, the best division of the layers before it
    best_by_end: dict[int, tuple[Layers, ...]] = {run.first: ()}
    for place, last in enumerate(edges[1:], 1):
        parts = [Layers(first, last) for first in edges[:place] if first in best_by_end]
        there = [(*best_by_end[part.first], part) for part in parts if rules.allow(part) and fits(part)]
        if there:
            best_by_end[last] = min(there, key=len)
    return best_by_end.get(run.last, ())


def neighbors(target: int, allowed: Sequence[int]) -> tuple[int, ...]:
    """Return the numbers in `allowed` that are closest to `target` from below and above. Either may be missing."""
    place = bisect_left(allowed, target)
    return tuple(allowed[max(0, place - 1) : place + 1])


MAX_RUNS = 3  # a shortest run, a run of many layers, and one in between for machines with little memory
MAX_RUN_LAYERS = 16
MAX_TENSORS = 64  # per layer; a layer with experts has about twenty
MAX_SETTINGS = 96
MAX_VALUES = 64  # for a setting that is a list
MAX_TEXT = 64
MAX_SHAPE_BYTES = 56 << 10  # as JSON, which must fit into one message

Dimension = Annotated[int, Meta(ge=1, le=1 << 32)]
Number = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
Text = Annotated[str, Meta(max_length=MAX_TEXT)]
TensorName = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_.]{0,47}$")]
Key = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}\.[A-Za-z0-9._-]{1,63}$")]
Architecture = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]


class Tensor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tensor, named relative to its layer, such as `attn_q.weight`."""

    name: TensorName
    kind: Annotated[int, Meta(ge=0, le=255)]  # ggml's code for its number type
    dims: Annotated[tuple[Dimension, ...], Meta(min_length=1, max_length=4)]  # the length of a row first


class Setting(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A metadata entry of the model file, unchanged."""

    key: Key
    kind: Annotated[int, Meta(ge=0, le=12)]  # GGUF's code for the type of its values
    values: Annotated[tuple[bool | Number | float | Text, ...], Meta(min_length=1, max_length=MAX_VALUES)]
    is_list: bool


class LayerKind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A kind of layer, defined by its tensors."""

    tensors: Annotated[tuple[Tensor, ...], Meta(min_length=1, max_length=MAX_TENSORS)]


class LayerRun(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A run of the model's layers that can form a stage by itself.

    `kinds` lists the kind of each layer, as an index into the kinds of the shape.
    """

    kinds: Annotated[
        tuple[Annotated[int, Meta(ge=0, lt=MAX_RUN_LAYERS)], ...], Meta(min_length=1, max_length=MAX_RUN_LAYERS)
    ]
    # settings in addition to those of the whole shape
    settings: Annotated[tuple[Setting, ...], Meta(max_length=MAX_SETTINGS)]
    # The work of the run, measured in average layers of the model. It differs from the number of layers if layers are
    # not alike.
    average_layers: Annotated[float, Meta(ge=1e-3, le=1e4)]


class ModelShape(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The shape of a model: some runs of its layers, shortest first, and the tensors that all runs share.

    A host sends it to a lender as JSON, so every field declares bounds, which msgspec checks while decoding.
    app/catalog/stages/synthetic_stage.py checks what the values mean to llama.cpp before memory is allocated.
    """

    architecture: Architecture
    width: Annotated[int, Meta(ge=1, le=1 << 17)]
    settings: Annotated[tuple[Setting, ...], Meta(max_length=MAX_SETTINGS)]
    kinds: Annotated[tuple[LayerKind, ...], Meta(min_length=1, max_length=MAX_RUN_LAYERS)]
    runs: Annotated[tuple[LayerRun, ...], Meta(min_length=1, max_length=MAX_RUNS)]
    shared: Annotated[tuple[Tensor, ...], Meta(max_length=MAX_TENSORS)]
    head: Tensor  # the output matrix

    def layers(self, run: LayerRun) -> tuple[LayerKind, ...]:
        """Return the kind of each layer of a run. Raises IndexError for an unknown index."""
        return tuple(self.kinds[number] for number in run.kinds)
