"""What must be known of a model to measure it without its weights: sizes and number types. Bounded facts.

A host sends it to a lender as JSON, so every field says its bounds; `msgspec` checks them when it decodes.
What llama.cpp makes of them is checked in catalog/synthetic.py, before anything is allocated.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

MAX_KINDS = 8  # of layers in one model: an attention and a quantisation mix have two or three
MAX_TENSORS = 64  # in one layer; a layer of experts has about twenty
MAX_SETTINGS = 96
MAX_VALUES = 64  # of a setting that is a list
MAX_TEXT = 64

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
    values: Annotated[
        tuple[bool | Number | float | Text, ...], Meta(min_length=1, max_length=MAX_VALUES)
    ]
    is_list: bool


class LayerKind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`count` layers that are alike. `settings`: one value each, where lists have one for each layer."""

    count: Annotated[int, Meta(ge=1, le=512)]
    tensors: Annotated[tuple[Tensor, ...], Meta(min_length=1, max_length=MAX_TENSORS)]
    settings: Annotated[tuple[Setting, ...], Meta(max_length=8)] = ()


class ModelShape(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One model: its kinds of layers, most frequent first, and what all of them share."""

    architecture: Architecture
    width: Annotated[int, Meta(ge=1, le=1 << 17)]
    settings: Annotated[tuple[Setting, ...], Meta(max_length=MAX_SETTINGS)]
    layers: Annotated[tuple[LayerKind, ...], Meta(min_length=1, max_length=MAX_KINDS)]
    shared: Annotated[tuple[Tensor, ...], Meta(max_length=MAX_TENSORS)]
    head: Tensor  # the output matrix

    @property
    def n_layers(self) -> int:
        """Layers of all kinds that are listed."""
        return sum(layer.count for layer in self.layers)
