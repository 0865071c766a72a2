"""The facts needed to measure a model without its weights: sizes and number types, all of them bounded.

A host sends them to a lender as JSON, so every field states its bounds; `msgspec` checks them when it decodes. Their
meaning to llama.cpp is checked in app/catalog/stages/synthetic_stage.py, before anything is allocated.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

MAX_RUNS = 3  # the shortest, one of many layers, one between them for machines with little memory
MAX_RUN_LAYERS = 16
MAX_TENSORS = 64  # in one layer; a layer of experts has about twenty
MAX_SETTINGS = 96
MAX_VALUES = 64  # of a setting that is a list
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
    kind: Annotated[int, Meta(ge=0, le=255)]  # ggml's code of its number type
    dims: Annotated[tuple[Dimension, ...], Meta(min_length=1, max_length=4)]  # a row's length first


class Setting(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry of the file's metadata, exactly as it stands there."""

    key: Key
    kind: Annotated[int, Meta(ge=0, le=12)]  # GGUF's code of its values
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
    settings: Annotated[tuple[Setting, ...], Meta(max_length=MAX_SETTINGS)]  # beside the shape's
    # As much work as so many layers of the model on average: not the number of layers where they differ.
    average_layers: Annotated[float, Meta(ge=1e-3, le=1e4)]


class ModelShape(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One model: some runs of its layers, shortest first, and what all of them share."""

    architecture: Architecture
    width: Annotated[int, Meta(ge=1, le=1 << 17)]
    settings: Annotated[tuple[Setting, ...], Meta(max_length=MAX_SETTINGS)]
    kinds: Annotated[tuple[LayerKind, ...], Meta(min_length=1, max_length=MAX_RUN_LAYERS)]
    runs: Annotated[tuple[LayerRun, ...], Meta(min_length=1, max_length=MAX_RUNS)]
    shared: Annotated[tuple[Tensor, ...], Meta(max_length=MAX_TENSORS)]
    head: Tensor  # the output matrix

    def layers(self, run: LayerRun) -> tuple[LayerKind, ...]:
        """Return what each layer of a run is. Raise IndexError for a number that stands for none."""
        return tuple(self.kinds[number] for number in run.kinds)
