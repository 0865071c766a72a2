"""What a model's metadata says of the variant of its family: questions that rows of families.py ask."""

from __future__ import annotations

from collections.abc import Callable

from app.catalog.gguf import tensor_types
from app.catalog.gguf.gguf_header import Header

MAX_LAYERS = 512  # LLAMA_MAX_LAYERS
MAX_VALUE = (1 << 31) - 1
LONG_CONTEXT = 1 << 20  # GLM-5.2's; before it every layer had an indexer of its own


def named(header: Header, name: str) -> str:
    """The metadata key of this name for the file's architecture."""
    return f"{header.text('general.architecture')}.{name}"


def number(header: Header, name: str, default: int = 0) -> int:
    """A whole number of the architecture, also where it is listed for each layer alike; the default where
    the file has none, a list of several, or one that is no such list."""
    key = named(header, name)
    value = header.entries.get(key)
    if value is not None and value.is_array:
        if value.count > MAX_LAYERS or value.kind not in tensor_types.INTEGERS:  # before any of it is read
            return default
        found = set(header.items(key))
        alike = found.pop() if len(found) == 1 else default
        return alike if isinstance(alike, int) and 0 <= alike <= MAX_VALUE else default
    return header.integer(key, 0, MAX_VALUE, default)


def n_blocks(header: Header) -> int:
    """Layers in the file, those that predict further tokens among them. Raises BadInput."""
    return header.integer(named(header, "block_count"), 1, MAX_LAYERS)


def n_layers(header: Header) -> int:
    """Layers that a token passes. Raises BadInput."""
    n, key = n_blocks(header), named(header, "nextn_predict_layers")
    return n - header.integer(key, 0, n - 1, 0)


def n_layers_are(n: int) -> Callable[[Header], bool]:
    """Whether the model has so many: there the engine computes otherwise, and no stage has as many."""
    return lambda header: n_layers(header) == n


def dense_lead(header: Header) -> bool:
    return number(header, "leading_dense_block_count") > 0


def has_window(header: Header) -> bool:
    return number(header, "attention.sliding_window") > 0


def no_window(header: Header) -> bool:
    return not has_window(header)


def all_full(header: Header) -> bool:
    """A window of nothing: engines differ in what they make of it, and nobody proved such a model."""
    value = header.entries.get(named(header, "attention.sliding_window"))
    return value is not None and not has_window(header)


def image_planes(header: Header) -> bool:
    """Positions have planes already, as in variants that see images."""
    return named(header, "rope.dimension_sections") in header.entries


def per_layer_embeddings(header: Header) -> bool:
    """Later layers need the token ids, or KV of earlier ones."""
    return number(header, "embedding_length_per_layer_input") > 0 or number(header, "attention.shared_kv_layers") > 0


def moe_step(header: Header) -> int:
    """Every so many layers one has experts."""
    return max(1, min(MAX_LAYERS, number(header, "interleave_moe_layer_step", 1)))


def indexers(header: Header) -> tuple[bool, ...]:
    """Which layers choose by themselves what attention looks at; the others use an earlier one's choice."""
    n, key = n_layers(header), named(header, "attention.indexer.types")
    value = header.entries.get(key)
    if value is not None and value.is_array:
        found = tuple(bool(one) for one in header.items(key))
        if len(found) not in (n, n_blocks(header)):
            raise header.odd(key, f"{len(found)} values for {n} layers")
        return found[:n]
    if value is None and number(header, "context_length") >= LONG_CONTEXT:
        return tuple(layer < 2 or layer % 4 == 2 for layer in range(n))
    return (True,) * n if value is None else (bool(header.integer(key, 0, 1)),) * n


def full_indexer(header: Header, layer: int) -> bool:
    return indexers(header)[layer]
