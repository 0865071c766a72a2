"""Header -> ModelShape: what a lender needs to know to measure a model that it does not have."""

from __future__ import annotations

import math
from collections import Counter

from app.catalog import ggml
from app.catalog.families import FAMILIES
from app.catalog.gguf import EMBEDDING, HEAD, head_tensor, layer_of
from app.catalog.gguf_header import Header, Scalar
from app.catalog.gguf_header import Tensor as StoredTensor
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

_CHANGED = ("block_count", "vocab_size")  # written anew for each number of layers


def shape_of(header: Header, model: Model) -> ModelShape:
    """The shape of a model that may be split. Raises BadInput for one of a family that is not proved.

    A model with more than MAX_KINDS kinds of layers is described by its most frequent ones.
    """
    if model.whole_reason and model.whole_reason.code != "whole_one_layer":
        raise BadInput(model.whole_reason.code, **model.whole_reason.facts)
    if not FAMILIES[model.architecture].plain:
        raise BadInput("speed_family", architecture=model.architecture)
    prefix = f"{model.architecture}."
    lists = {key for key in header.entries if is_per_layer(header, key)}
    keys = [
        key
        for key in header.entries
        if key.startswith(prefix) and key.removeprefix(prefix) not in _CHANGED and key not in lists
    ]
    return ModelShape(
        architecture=model.architecture,
        width=model.width,
        settings=tuple(found for key in keys if (found := _setting(header, key))),
        layers=_kinds(header, model, sorted(lists)),
        shared=tuple(
            _tensor(name, tensor)
            for name, tensor in header.tensors.items()
            if layer_of(name) is None and name not in (EMBEDDING, HEAD)
        ),
        head=_tensor(EMBEDDING, head_tensor(header)),
    )


def _kinds(header: Header, model: Model, lists: list[str]) -> tuple[LayerKind, ...]:
    """Which layers are alike, most frequent first."""
    tensors: list[list[Tensor]] = [[] for _ in range(model.n_layers)]
    for name, stored in header.tensors.items():
        layer = layer_of(name)
        if layer is not None:
            tensors[layer].append(_tensor(name.removeprefix(f"blk.{layer}."), stored))
    values = {key: header.items(key) for key in lists}
    found = Counter(
        (tuple(of_layer), tuple(values[key][layer] for key in lists))
        for layer, of_layer in enumerate(tensors)
    )
    return tuple(
        LayerKind(
            count,
            alike,
            tuple(
                Setting(key, header.entries[key].kind, (value,), is_list=False)
                for key, value in zip(lists, own, strict=True)
            ),
        )
        for (alike, own), count in found.most_common(MAX_KINDS)
    )


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
