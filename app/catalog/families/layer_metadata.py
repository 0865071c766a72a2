"""Reads the metadata of layers: per-layer lists, and the entries that show which variant of its family a model is.

Per-layer lists are cut along with the layers. They are recognized by name and never by length, since any list may
happen to have as many values as there are layers.
"""

from __future__ import annotations

from collections.abc import Callable

from app.catalog.gguf import tensor_types
from app.catalog.gguf.gguf_file import Header, Value, text, u32
from app.core.errors import Reason
from backends.contract import Layers

MAX_LAYERS = 512  # LLAMA_MAX_LAYERS
MAX_VALUE = (1 << 31) - 1
LONG_CONTEXT = 1 << 20  # the context of GLM-5.2; in earlier versions, every layer has its own indexer


def metadata_key(header: Header, name: str) -> str:
    """Return the full metadata key of an entry: the architecture followed by `name`."""
    return f"{header.text('general.architecture')}.{name}"


def number(header: Header, name: str, default: int = 0) -> int:
    """Return an integer of the architecture. It may be stored as a list with the same value for each layer.

    Return the default if the entry is missing, is not a valid list, or differs between layers.
    """
    key = metadata_key(header, name)
    value = header.entries.get(key)
    if value is not None and value.is_array:
        if value.count > MAX_LAYERS or value.kind not in tensor_types.INTEGERS:  # checked before any value is read
            return default
        values = set(header.items(key))
        alike = values.pop() if len(values) == 1 else default
        return alike if isinstance(alike, int) and 0 <= alike <= MAX_VALUE else default
    return header.integer(key, 0, MAX_VALUE, default)


def n_blocks(header: Header) -> int:
    """Return the number of layers in the file, including layers for multi-token prediction. Raises BadInput."""
    return header.integer(metadata_key(header, "block_count"), 1, MAX_LAYERS)


def n_layers(header: Header) -> int:
    """Return the number of layers, not counting layers for multi-token prediction. Raises BadInput."""
    n, key = n_blocks(header), metadata_key(header, "nextn_predict_layers")
    return n - header.integer(key, 0, n - 1, 0)


def n_layers_are(n: int) -> Callable[[Header], bool]:
    """Return a predicate for models with `n` layers. The engine treats this number specially, and a stage has fewer
    layers."""
    return lambda header: n_layers(header) == n


def dense_lead(header: Header) -> bool:
    return number(header, "leading_dense_block_count") > 0


def has_window(header: Header) -> bool:
    return number(header, "attention.sliding_window") > 0


def no_window(header: Header) -> bool:
    return not has_window(header)


def has_empty_window(header: Header) -> bool:
    """Return whether the file specifies a window of size 0. Engines disagree on its meaning, and no such model is
    proved."""
    value = header.entries.get(metadata_key(header, "attention.sliding_window"))
    return value is not None and not has_window(header)


def uses_mrope(header: Header) -> bool:
    """Return whether the model itself uses M-RoPE positions, as image-processing variants do."""
    return metadata_key(header, "rope.dimension_sections") in header.entries


def per_layer_embeddings(header: Header) -> bool:
    """Return whether later layers need the token ids or the KV cache of earlier layers, which are missing in a
    stage."""
    return number(header, "embedding_length_per_layer_input") > 0 or number(header, "attention.shared_kv_layers") > 0


def moe_step(header: Header) -> int:
    """Return the interval at which layers with experts occur."""
    return max(1, min(MAX_LAYERS, number(header, "interleave_moe_layer_step", 1)))


def indexers(header: Header) -> tuple[bool, ...]:
    """Return whether each layer has an indexer, which selects the positions that attention reads.

    Layers without an indexer reuse the selection of an earlier layer.
    """
    n, key = n_layers(header), metadata_key(header, "attention.indexer.types")
    value = header.entries.get(key)
    if value is not None and value.is_array:
        types = tuple(bool(item) for item in header.items(key))
        if len(types) not in (n, n_blocks(header)):
            raise header.invalid(key, Reason("values_for_layers", {"count": len(types), "layers": n}))
        return types[:n]
    if value is None and number(header, "context_length") >= LONG_CONTEXT:
        return tuple(layer < 2 or layer % 4 == 2 for layer in range(n))
    return (True,) * n if value is None else (bool(header.integer(key, 0, 1)),) * n


def has_indexer(header: Header, layer: int) -> bool:
    return indexers(header)[layer]


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
# llama.cpp refuses files in which these lists have another length. In files with blocks for multi-token prediction,
# lists in the first set have a value for each block, and those in the second only for each ordinary layer. Other lists
# may have either length.
EACH_BLOCK = frozenset(PER_LAYER[:5]) | {"attention.recurrent_layers", "swiglu_clamp_exp", "swiglu_clamp_shexp"}
EACH_LAYER = WITHOUT_PREFIX | {"attention.indexer.types"}
FOR_ALL = frozenset({"rope.dimension_sections"})  # lists that every stage receives unchanged


def is_per_layer(header: Header, key: str) -> bool:
    """Return whether an entry is a list with one value per layer."""
    if not header.entries[key].is_array:
        return False
    prefix = f"{header.text('general.architecture')}."
    return key in WITHOUT_PREFIX or (key.startswith(prefix) and key.removeprefix(prefix) in PER_LAYER)


def unknown_lists(header: Header) -> list[str]:
    """Return the keys of the architecture's lists that no proof covers."""
    prefix = f"{header.text('general.architecture')}."
    return [
        key
        for key, value in header.entries.items()
        if value.is_array and key.startswith(prefix) and key.removeprefix(prefix) not in (*PER_LAYER, *FOR_ALL)
    ]


def varying_lists(header: Header) -> set[str]:
    """Return the names, without the architecture's prefix, of the per-layer lists whose values differ."""
    prefix, n = f"{header.text('general.architecture')}.", n_layers(header)
    lists = [key for key in header.entries if is_per_layer(header, key)]
    return {key.removeprefix(prefix) for key in lists if len(set(header.items(key)[:n])) > 1}


def slice_entry(header: Header, key: str, layers: Layers) -> bytes:
    """Encode a per-layer entry with the values of only these layers. Raises BadInput for a list of the wrong length."""
    value = header.entries[key]
    check_list(header, key, value)
    _, size = tensor_types.SCALARS[value.kind]
    items = header.raw[value.data + layers.first * size : value.data + layers.last * size]
    kinds = u32(tensor_types.ARRAY) + u32(value.kind)
    return text(key.encode()) + kinds + len(layers).to_bytes(8, "little") + items


def check_lists(header: Header) -> None:
    """Raise BadInput if a per-layer list in this file has the wrong length or contains strings."""
    for key, value in header.entries.items():
        if is_per_layer(header, key):
            check_list(header, key, value)


def check_list(header: Header, key: str, value: Value) -> None:
    """Raise BadInput if this per-layer list has the wrong length or contains strings."""
    n, blocks = n_layers(header), n_blocks(header)
    name = key.removeprefix(f"{header.text('general.architecture')}.")
    right = {blocks} if name in EACH_BLOCK else {n} if name in EACH_LAYER else {n, blocks}
    if value.count not in right or value.kind == tensor_types.STRING:
        raise header.invalid(key, Reason("values_for_layers", {"count": value.count, "layers": max(right)}))
