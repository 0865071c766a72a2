"""Header -> ModelShape: what a lender needs to know to measure a model that it does not have."""

from __future__ import annotations

import math
from collections import Counter

from app.catalog import ggml
from app.catalog.cut import stage_header
from app.catalog.families import FAMILIES
from app.catalog.gguf import EMBEDDING, HEAD, head_tensor, layer_of
from app.catalog.gguf_header import Header, Scalar
from app.catalog.gguf_header import Tensor as StoredTensor
from app.catalog.layer_kinds import WINDOW_LAYERS
from app.catalog.per_layer import is_per_layer
from app.core.errors import BadInput
from app.core.model import Model
from app.core.model_shape import (
    MAX_KINDS,
    MAX_TEXT,
    MAX_VALUES,
    LayerKind,
    ModelShape,
    Setting,
    Tensor,
)
from backends.contract import Role

_CHANGED = ("block_count", "vocab_size")  # written anew for each number of layers


def shape_of(header: Header, model: Model) -> ModelShape:
    """The shape of a model that may be split. Raises BadInput for one of a family that is not proved.

    A model with more than MAX_KINDS kinds of layers is described by its most frequent ones.
    """
    if model.whole_reason and model.whole_reason.code != "whole_one_layer":
        raise BadInput(model.whole_reason.code, **model.whole_reason.facts)
    if not FAMILIES[model.architecture].measurable:
        raise BadInput("speed_family", architecture=model.architecture)
    as_stage = stage_header(model, header, Role.MIDDLE)
    prefix = f"{model.architecture}."
    lists = {key for key in as_stage.entries if is_per_layer(as_stage, key)}
    keys = [
        key
        for key in as_stage.entries
        if key.startswith(prefix) and key.removeprefix(prefix) not in _CHANGED and key not in lists
    ]
    return ModelShape(
        architecture=model.architecture,
        width=model.width,
        settings=tuple(found for key in keys if (found := _setting(as_stage, key))),
        layers=_kinds(header, as_stage, model, sorted(lists)),
        shared=tuple(
            _tensor(name, tensor)
            for name, tensor in header.tensors.items()
            if layer_of(name) is None and name not in (EMBEDDING, HEAD)
        ),
        head=_tensor(EMBEDDING, head_tensor(header)),
    )


def _kinds(
    header: Header, as_stage: Header, model: Model, lists: list[str]
) -> tuple[LayerKind, ...]:
    """Which layers are alike, most frequent first; with a window first of all, where a run needs one."""
    tensors: list[list[Tensor]] = [[] for _ in range(model.n_layers)]
    for name, stored in header.tensors.items():
        layer = layer_of(name)
        if layer is not None and layer < model.n_layers:
            tensors[layer].append(_tensor(name.removeprefix(f"blk.{layer}."), stored))
    values = {key: as_stage.items(key) for key in lists}
    found = Counter(
        (tuple(of_layer), tuple(values[key][layer] for key in lists))
        for layer, of_layer in enumerate(tensors)
    )
    kinds = [
        LayerKind(
            count,
            alike,
            tuple(
                Setting(key, as_stage.entries[key].kind, (value,), is_list=False)
                for key, value in zip(lists, own, strict=True)
            ),
        )
        for (alike, own), count in found.most_common(MAX_KINDS)
    ]
    return tuple(sorted(kinds, key=lambda kind: not has_window(kind)))


def has_window(kind: LayerKind) -> bool:
    """Whether it looks back over a sliding window only."""
    return any(one.key.endswith(f".{WINDOW_LAYERS}") and one.values[0] for one in kind.settings)


def _tensor(name: str, stored: StoredTensor) -> Tensor:
    return Tensor(name, stored.kind, stored.shape)


def _setting(header: Header, key: str) -> Setting | None:
    """The entry, or None for what no speed depends on: long lists and texts."""
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


def tensor_bytes(tensor: Tensor) -> int:
    """Bytes of a tensor; 0 when its type is unknown or its rows are not whole blocks."""
    return ggml.tensor_bytes(tensor.kind, tensor.dims) or 0


def layer_bytes(kind: LayerKind) -> int:
    """Bytes of one such layer's tensors."""
    return sum(tensor_bytes(tensor) for tensor in kind.tensors)


def mean_layer_bytes(shape: ModelShape) -> float:
    """Bytes of a layer on average over the model."""
    return sum(kind.count * layer_bytes(kind) for kind in shape.layers) / shape.n_layers
