"""The facts about one model file, where it may be cut, and the shape needed to measure it without its weights. Pure.

app/catalog reads them from the file's header.
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
from backends.contract import KEPT_STATES, USUAL, KvType, Layers, Role, Traits


@dataclass(frozen=True, slots=True)
class RunRules:
    """Rules that every run of a model's layers must obey. A whole model always does."""

    every_run: tuple[tuple[int, ...], ...] = ()  # a run must contain one layer of each of these groups
    not_long: tuple[int, ...] = ()  # numbers of layers that no run may have

    def allow(self, layers: Layers) -> bool:
        """Return whether an engine can hold just these layers."""
        if len(layers) in self.not_long:
            return False
        return all(_holds(group, layers) for group in self.every_run)


ANY_RUN = RunRules()


def _holds(group: Sequence[int], layers: Layers) -> bool:
    place = bisect_left(group, layers.first)
    return place < len(group) and group[place] < layers.last


PLACEHOLDER_ROWS = 32  # rows of the zero embedding in stages without a vocabulary
PLACEHOLDER_BYTES = 2  # bytes per value of it, in f16


@dataclass(frozen=True, slots=True)
class Weights:
    """The bytes of a model's tensors."""

    layer_bytes: tuple[int, ...]
    embedding_bytes: int
    head_bytes: int  # the output matrix, or the embedding if they are the same
    tied: bool  # whether embedding and output matrix are one tensor
    shared_bytes: int  # in every stage: the last norm, rope factors
    # bytes that are never read, in runs before the last (besides the placeholder) and in the last
    idle_bytes: int = 0
    last_idle_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Cuts:
    """The places where a model may be cut, and the rules for its runs."""

    boundaries: tuple[int, ...] = ()  # layers before which the model may be cut; empty if it must run whole
    whole_reason: Reason | None = None  # why it must run whole
    rules: RunRules = ANY_RUN  # the other requirements for every run
    first: Traits = USUAL  # how the engine treats the first run
    later: Traits = USUAL  # how the engine treats the other runs

    def traits(self, role: Role) -> Traits:
        """Return how the engine treats a run of this role."""
        return self.first if role is Role.FIRST else self.later


@dataclass(frozen=True, slots=True)
class Model:
    """One model: its size, the bytes of its parts, and where it may be cut."""

    id: str  # 64 hex digits: the hash of the hashes of the header and of every tensor
    name: str  # its name on the shelf, which a person types, not that of the file
    architecture: str
    n_layers: int
    width: int  # values of one hidden state
    n_vocab: int
    context_length: int  # positions that it was trained for
    weights: Weights
    cuts: Cuts
    kv_bytes_per_token: tuple[int, ...]  # for each layer, in f16
    file_bytes: int
    quantization: str  # llama.cpp's name for the mix, such as "Q4_K_M"; "" if the file has none
    license: str  # as stated in the file; "" if it states none
    has_template: bool  # whether it was made for chats
    quantized_kv: bool = True  # whether its heads consist of whole blocks of KvType.Q8_0
    state_bytes: tuple[int, ...] = ()  # for each layer and one slot, regardless of length; empty if there is none
    embeds: bool = False  # whether it produces one vector for a whole text
    writes: bool = True  # whether it scores the next token; encoders and rerankers do not
    ranks: bool = False  # whether it produces one score for a question and a text together
    n_parameters: int = 0

    @property
    def layers(self) -> Layers:
        return Layers(0, self.n_layers)

    def stage_bytes(self, layers: Layers, role: Role) -> int:
        """Return the bytes of weights that a stage holds: its layers, the shared tensors, and what its role adds."""
        weights = self.weights
        run = sum(weights.layer_bytes[layers.first : layers.last]) + weights.shared_bytes
        if role is Role.WHOLE:
            return run + weights.embedding_bytes + (0 if weights.tied else weights.head_bytes)
        if role is Role.LAST:
            return run + weights.head_bytes + weights.last_idle_bytes
        return run + PLACEHOLDER_ROWS * PLACEHOLDER_BYTES * self.width + weights.idle_bytes

    def kv_bytes(self, layers: Layers, cells: int, slots: int = 1, kind: KvType = KvType.F16) -> int:
        """Return the bytes of KV cache for `cells` positions over all slots, and of the slots' states."""
        return sum(self.layer_kv(cells, slots, kind)[layers.first : layers.last])

    def layer_kv(self, cells: int, slots: int, kind: KvType = KvType.F16) -> tuple[int, ...]:
        """Return the bytes of KV cache and states for each layer."""
        kept = slots * (1 + KEPT_STATES)
        states = self.state_bytes or (0,) * self.n_layers
        pairs = zip(self.kv_bytes_per_token, states, strict=True)
        return tuple(kind.bytes_of(cells * kv) + kept * state for kv, state in pairs)

    def may_cut(self, runs: tuple[Layers, ...]) -> bool:
        """Return whether these runs, in order, make up the whole model and are cut only at legal places."""
        if not runs or runs[0].first != 0 or runs[-1].last != self.n_layers:
            return False
        joined = all(a.last == b.first for a, b in pairwise(runs))
        legal = len(runs) == 1 or all(self.cuts.rules.allow(run) for run in runs)
        return joined and legal and all(run.first in self.cuts.boundaries for run in runs[1:])


def reachable(boundaries: Iterable[int], n_layers: int, rules: RunRules) -> tuple[int, ...]:
    """Return the boundaries that some legal cut through all layers uses."""
    edges = (0, *boundaries, n_layers)
    fore, back = {0}, {n_layers}
    for index, edge in enumerate(edges):
        if any(a in fore and rules.allow(Layers(a, edge)) for a in edges[:index]):
            fore.add(edge)
    for index, edge in reversed(list(enumerate(edges))):
        if any(b in back and rules.allow(Layers(edge, b)) for b in edges[index + 1 :]):
            back.add(edge)
    return tuple(edge for edge in edges[1:-1] if edge in fore and edge in back)


def fewest(
    run: Layers, boundaries: Iterable[int], rules: RunRules, fits: Callable[[Layers], bool]
) -> tuple[Layers, ...]:
    """Return the smallest number of legal runs that make up `run` and each fit, or none if that is impossible."""
    edges = [run.first, *(edge for edge in boundaries if run.first < edge < run.last), run.last]
    best_by_end: dict[int, tuple[Layers, ...]] = {run.first: ()}  # by the layer at which they end
    for place, last in enumerate(edges[1:], 1):
        parts = [Layers(first, last) for first in edges[:place] if first in best_by_end]
        there = [(*best_by_end[part.first], part) for part in parts if rules.allow(part) and fits(part)]
        if there:
            best_by_end[last] = min(there, key=len)
    return best_by_end.get(run.last, ())


def nearest(target: int, allowed: Sequence[int]) -> tuple[int, ...]:
    """Return the closest of these numbers below and above `target`, or fewer if there are none."""
    place = bisect_left(allowed, target)
    return tuple(allowed[max(0, place - 1) : place + 1])


MAX_RUNS = 3  # the shortest, one of many layers, and one in between for machines with little memory
MAX_RUN_LAYERS = 16
MAX_TENSORS = 64  # per layer; a layer of experts has about twenty
MAX_SETTINGS = 96
MAX_VALUES = 64  # in a setting that is a list
MAX_TEXT = 64
MAX_SHAPE_BYTES = 56 << 10  # as JSON, so that it fits into a message

Dimension = Annotated[int, Meta(ge=1, le=1 << 32)]
Number = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
Text = Annotated[str, Meta(max_length=MAX_TEXT)]
TensorName = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_.]{0,47}$")]
Key = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}\.[A-Za-z0-9._-]{1,63}$")]
Architecture = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]


class Tensor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tensor by its name within its layer, such as `attn_q.weight`."""

    name: TensorName
    kind: Annotated[int, Meta(ge=0, le=255)]  # ggml's code for its number type
    dims: Annotated[tuple[Dimension, ...], Meta(min_length=1, max_length=4)]  # row length first


class Setting(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry of the file's metadata, unchanged."""

    key: Key
    kind: Annotated[int, Meta(ge=0, le=12)]  # GGUF's code for the type of its values
    values: Annotated[tuple[bool | Number | float | Text, ...], Meta(min_length=1, max_length=MAX_VALUES)]
    is_list: bool


class LayerKind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Layers that have the same tensors."""

    tensors: Annotated[tuple[Tensor, ...], Meta(min_length=1, max_length=MAX_TENSORS)]


class LayerRun(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A run of the model's layers that is a stage by itself: the kinds of its layers in their order, by number."""

    kinds: Annotated[
        tuple[Annotated[int, Meta(ge=0, lt=MAX_RUN_LAYERS)], ...], Meta(min_length=1, max_length=MAX_RUN_LAYERS)
    ]
    settings: Annotated[tuple[Setting, ...], Meta(max_length=MAX_SETTINGS)]  # in addition to those of the shape
    # The work of the run, as a number of average layers of the model. It differs from the number of layers if layers
    # differ.
    average_layers: Annotated[float, Meta(ge=1e-3, le=1e4)]


class ModelShape(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The shape of a model: some runs of its layers, shortest first, and the tensors that all of them share.

    A host sends it to a lender as JSON, so every field states its bounds, which msgspec checks when it decodes.
    app/catalog/stages/synthetic_stage.py checks what it means to llama.cpp before anything is allocated.
    """

    architecture: Architecture
    width: Annotated[int, Meta(ge=1, le=1 << 17)]
    settings: Annotated[tuple[Setting, ...], Meta(max_length=MAX_SETTINGS)]
    kinds: Annotated[tuple[LayerKind, ...], Meta(min_length=1, max_length=MAX_RUN_LAYERS)]
    runs: Annotated[tuple[LayerRun, ...], Meta(min_length=1, max_length=MAX_RUNS)]
    shared: Annotated[tuple[Tensor, ...], Meta(max_length=MAX_TENSORS)]
    head: Tensor  # the output matrix

    def layers(self, run: LayerRun) -> tuple[LayerKind, ...]:
        """Return the kind of each layer of a run. Raises IndexError for an unknown number."""
        return tuple(self.kinds[number] for number in run.kinds)
