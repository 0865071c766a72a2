"""Metadata with a value for each layer: which keys have one, and how they are cut like the layers.

Never guessed by length: a list may have as many values as there are layers by chance.
"""

from __future__ import annotations

from app.catalog.families.variants import n_blocks, n_layers
from app.catalog.gguf import tensor_types
from app.catalog.gguf.gguf_bytes import text, u32
from app.catalog.gguf.gguf_header import Header, Value
from backends.contract import Layers

PER_LAYER = (
    "attention.head_count",
    "attention.head_count_kv",
    "feed_forward_length",
    "expert_feed_forward_length",
    "expert_used_count",
    "attention.sliding_window_pattern",
    "attention.recurrent_layers",
    "attention.rope_pattern",
    "attention.indexer.types",
    "attention.compress_ratios",
    "swiglu_clamp_exp",
    "swiglu_clamp_shexp",
    "deepstack_mapping",
)
WITHOUT_PREFIX = frozenset({"xielu.alpha_n", "xielu.alpha_p", "xielu.beta", "xielu.eps"})
# What llama.cpp wants so many values of, and refuses a file with another number: where a file ends with
# blocks that predict further tokens, of each block these, of each layer that a token passes those. Of the
# other lists it takes what there is.
EACH_BLOCK = frozenset(PER_LAYER[:5]) | {"attention.recurrent_layers", "swiglu_clamp_exp", "swiglu_clamp_shexp"}
EACH_LAYER = WITHOUT_PREFIX | {"attention.indexer.types"}
FOR_ALL = frozenset({"rope.dimension_sections"})  # lists that every stage takes whole


def is_per_layer(header: Header, key: str) -> bool:
    """Whether this entry is a list with a value for each layer."""
    if not header.entries[key].is_array:
        return False
    prefix = f"{header.text('general.architecture')}."
    return key in WITHOUT_PREFIX or (key.startswith(prefix) and key.removeprefix(prefix) in PER_LAYER)


def strange_lists(header: Header) -> list[str]:
    """Lists of the architecture that nobody has proved anything about."""
    prefix = f"{header.text('general.architecture')}."
    return [
        key
        for key, value in header.entries.items()
        if value.is_array and key.startswith(prefix) and key.removeprefix(prefix) not in (*PER_LAYER, *FOR_ALL)
    ]


def varying(header: Header) -> set[str]:
    """The lists, by their names without the architecture's, whose values are not the same in all layers."""
    prefix, n = f"{header.text('general.architecture')}.", n_layers(header)
    lists = [key for key in header.entries if is_per_layer(header, key)]
    return {key.removeprefix(prefix) for key in lists if len(set(header.items(key)[:n])) > 1}


def sliced(header: Header, key: str, layers: Layers) -> bytes:
    """The entry with the values of these layers only. Raises BadInput for a list of another length."""
    value = header.entries[key]
    check(header, key, value)
    _, size = tensor_types.SCALARS[value.kind]
    items = header.raw[value.data + layers.first * size : value.data + layers.last * size]
    kinds = u32(tensor_types.ARRAY) + u32(value.kind)
    return text(key.encode()) + kinds + len(layers).to_bytes(8, "little") + items


def check_all(header: Header) -> None:
    """Raise BadInput where a list of this file has not a value for each layer."""
    for key, value in header.entries.items():
        if is_per_layer(header, key):
            check(header, key, value)


def check(header: Header, key: str, value: Value) -> None:
    """Raise BadInput for a list that cannot be one of a value for each layer."""
    n, blocks = n_layers(header), n_blocks(header)
    name = key.removeprefix(f"{header.text('general.architecture')}.")
    right = {blocks} if name in EACH_BLOCK else {n} if name in EACH_LAYER else {n, blocks}
    if value.count not in right or value.kind == tensor_types.STRING:
        raise header.odd(key, f"{value.count} values for {max(right)} layers")
