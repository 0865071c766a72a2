"""Converts a GGUF header into a ModelShape. With it, a lender can measure a model that it does not have.

A shape describes a few runs of the model's layers, with the same metadata as their stage files, such as which
layers are recurrent or dense and which have a sliding window. This way, every family that may be cut can be
measured.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import msgspec

from app.catalog.families.family_table import FAMILIES, unproved, window_layers
from app.catalog.families.layer_metadata import MAX_VALUE, WITHOUT_PREFIX, metadata_key, n_blocks, number
from app.catalog.gguf import tensor_types
from app.catalog.gguf.gguf_file import Header, Scalar
from app.catalog.gguf.gguf_file import Tensor as StoredTensor
from app.catalog.gguf.model_reader import EMBEDDING, EXPERTS, HEAD, head_tensor, layer_of
from app.catalog.stages.cut import stage_header
from app.core.errors import BadInput, Reason
from app.core.model import (
    MAX_RUN_LAYERS,
    MAX_SHAPE_BYTES,
    MAX_TEXT,
    MAX_VALUES,
    LayerKind,
    LayerRun,
    Model,
    ModelShape,
    Setting,
    Tensor,
)
from app.decoding import decode
from backends.contract import Layers, Role

# Runs below these sizes fit in the CPU's cache and seem faster than they are in a whole stage.
LEAST_WEIGHTS_BYTES = 96 << 20
LEAST_LAYERS = 3
DEAR_BYTES = 4 << 30  # size of a run above which an exact mix of layer kinds is not worth the time to write it


_CHANGED = ("block_count", "vocab_size")  # rewritten for each run


def shape_of(header: Header, model: Model) -> ModelShape:
    """Return the shape of a model. Raises BadInput if the model may not be cut or the shape cannot be sent."""
    if (why := unproved(header, model.architecture)) is not None:
        raise BadInput(why.code, **why.facts)
    own = _OwnLayers(header, model)
    runs = _chosen(own)
    stages = [stage_header(model, header, Role.MIDDLE, run) for run in runs]
    settings = [_settings(stage, model.architecture) for stage in stages]
    shared = [setting for setting in settings[0] if all(setting in run_settings for run_settings in settings)]
    kinds = list(dict.fromkeys(own.kinds[at] for run in runs for at in _places(run)))
    shape = ModelShape(
        architecture=model.architecture,
        width=model.width,
        settings=tuple(shared),
        kinds=tuple(kinds),
        runs=tuple(
            LayerRun(
                tuple(kinds.index(own.kinds[at]) for at in _places(run)),
                tuple(setting for setting in listed if setting not in shared),
                own.work(run) / own.mean_work,
            )
            for run, listed in zip(runs, settings, strict=True)
        ),
        shared=tuple(
            _tensor(name, tensor)
            for name, tensor in header.tensors.items()
            if layer_of(name) is None and name not in (EMBEDDING, HEAD)
        ),
        head=_tensor(EMBEDDING, head_tensor(header)),
    )
    _must_be_sent(shape)
    return shape


def measured_runs(header: Header, model: Model) -> tuple[Layers, ...]:
    """Return the runs of layers that the model's shape describes, shortest first. Raises BadInput."""
    return _chosen(_OwnLayers(header, model))


def uniform_runs(kind: LayerKind, n_layers: int) -> tuple[LayerRun, ...]:
    """Return the runs to measure for a model whose layers are all of one kind."""
    several = max(LEAST_LAYERS, math.ceil(LEAST_WEIGHTS_BYTES / layer_bytes(kind)))
    numbers = sorted({1, min(several, n_layers, MAX_RUN_LAYERS)})
    return tuple(LayerRun((0,) * n, (), float(n)) for n in numbers)


def tensor_bytes(tensor: Tensor) -> int:
    """Return the size of a tensor in bytes, or 0 if its type is unknown or its rows are not whole blocks."""
    return tensor_types.tensor_bytes(tensor.kind, tensor.dims) or 0


def layer_bytes(kind: LayerKind) -> int:
    """Return the size of one layer of this kind in bytes."""
    return sum(tensor_bytes(tensor) for tensor in kind.tensors)


def run_bytes(shape: ModelShape, run: LayerRun) -> int:
    """Return the size of all layers of a run in bytes."""
    return sum(map(layer_bytes, shape.layers(run)))


@dataclass(frozen=True)
class _OwnLayers:
    """The kind and the computational cost of each layer of a model."""

    header: Header
    model: Model

    @cached_property
    def kinds(self) -> list[LayerKind]:
        tensors: list[list[Tensor]] = [[] for _ in range(self.model.n_layers)]
        for name, stored in self.header.tensors.items():
            layer = layer_of(name)
            if layer is not None and layer < self.model.n_layers:
                tensors[layer].append(_tensor(name.removeprefix(f"blk.{layer}."), stored))
        return [LayerKind(tuple(layer_tensors)) for layer_tensors in tensors]

    @cached_property
    def forms(self) -> list[object]:
        """Return a key for each layer. Layers with the same computation have equal keys, regardless of the number
        types of their weights."""
        near = window_layers(self.header, FAMILIES[self.model.architecture])
        return [
            (tuple((tensor.name, tensor.dims) for tensor in kind.tensors), bool(near and near[at]))
            for at, kind in enumerate(self.kinds)
        ]

    @cached_property
    def shares(self) -> Counter[object]:
        return Counter(self.forms)

    @cached_property
    def works(self) -> list[float]:
        """Return how many bytes of weights each layer reads per row, counting only the experts that a row uses."""
        share = _picked(self.header, self.model)
        return [
            max(
                1.0,
                sum(tensor_bytes(tensor) * (share[at] if EXPERTS in tensor.name else 1.0) for tensor in kind.tensors),
            )
            for at, kind in enumerate(self.kinds)
        ]

    @cached_property
    def mean_work(self) -> float:
        return sum(self.works) / self.model.n_layers

    def work(self, run: Layers) -> float:
        return sum(self.works[run.first : run.last])

    def bytes(self, run: Layers) -> int:
        return sum(self.model.weights.layer_bytes[run.first : run.last])

    def unlike(self, run: Layers) -> float:
        """Return how much the mix of layer forms in a run differs from that of the model: 0 if equal, 2 if disjoint."""
        here = Counter(self.forms[run.first : run.last])
        forms = self.shares.items()
        return sum(abs(here[form] / len(run) - n / self.model.n_layers) for form, n in forms)


def _chosen(own: _OwnLayers) -> tuple[Layers, ...]:
    """Return the runs to measure, shortest first: a representative run and, within it, the shortest run and one of
    half the length.

    Raises BadInput if no run of the model is short enough.
    """
    legal = _legal(own.model)
    if not legal:
        raise BadInput("speed_shape_odd", what=Reason("layer_run"))

    def price(run: Layers) -> float:
        cached = max(0.0, 1 - own.work(run) / LEAST_WEIGHTS_BYTES)
        few = len(run) < LEAST_LAYERS
        return own.unlike(run) + 4 * cached + few + own.bytes(run) / DEAR_BYTES

    many = min(legal, key=price)
    within = [run for run in legal if many.first <= run.first and run.last <= many.last]

    def odd(run: Layers) -> float:
        return own.unlike(run) + abs(own.work(run) / (len(run) * own.mean_work) - 1)

    few = min(within, key=lambda run: (len(run), odd(run)))
    half = min(within, key=lambda run: (abs(len(run) - len(many) / 2), odd(run)))
    by_length = {len(run): run for run in (half, few, many)}
    return tuple(by_length[length] for length in sorted(by_length))


def _legal(model: Model) -> list[Layers]:
    """Return all runs of at most MAX_RUN_LAYERS layers that may be cut out of the model."""
    edges = sorted({0, *model.cuts.boundaries, model.n_layers})
    runs = (Layers(a, b) for a in edges for b in edges if a < b <= a + MAX_RUN_LAYERS)
    return [run for run in runs if model.cuts.rules.allow(run)]


def _places(run: Layers) -> range:
    return range(run.first, run.last)


def _picked(header: Header, model: Model) -> list[float]:
    """Return the share of each layer's experts that a row uses, or 1 if the file does not specify it."""
    n = number(header, "expert_count")
    used = header.integers(metadata_key(header, "expert_used_count"), n_blocks(header), 0, MAX_VALUE)
    if not n or used is None:
        return [1.0] * model.n_layers
    return [min(1.0, count / n) if count else 1.0 for count in used[: model.n_layers]]


def _tensor(name: str, stored: StoredTensor) -> Tensor:
    return Tensor(name, stored.kind, stored.shape)


def _settings(stage: Header, architecture: str) -> list[Setting]:
    prefix = f"{architecture}."
    changed = {prefix + name for name in _CHANGED}
    keys = [key for key in stage.entries if key.startswith(prefix) or key in WITHOUT_PREFIX]
    candidates = (_setting(stage, key) for key in keys if key not in changed)
    return [setting for setting in candidates if setting is not None]


def _setting(header: Header, key: str) -> Setting | None:
    """Return an entry as a setting, or None for long lists and for texts, which do not affect speed."""
    entry = header.entries[key]
    if not 1 <= entry.count <= MAX_VALUES:
        return None
    values = header.items(key)
    if not all(_short(value) for value in values):
        return None
    return Setting(key, entry.kind, values, entry.is_array)


def _short(value: Scalar) -> bool:
    if isinstance(value, str):
        return len(value) <= MAX_TEXT
    return math.isfinite(value)


def _must_be_sent(shape: ModelShape) -> None:
    """Raise BadInput if other machines would reject the shape because of its names, numbers or size."""
    data = msgspec.json.encode(shape)
    try:
        decode(data, ModelShape)
    except msgspec.ValidationError:
        raise BadInput("speed_shape_odd", what=Reason("name_or_number")) from None
    if len(data) > MAX_SHAPE_BYTES:
        raise BadInput("speed_shape_odd", what=Reason("metadata_too_much"))
