"""Which layers of a model have a sliding window, and which are recurrent, as llama.cpp finds it out."""

from __future__ import annotations

from app.catalog.families.family_table import Family
from app.catalog.families.variants import MAX_LAYERS, MAX_VALUE, n_blocks, n_layers, named, number
from app.catalog.gguf.gguf_header import Header

WINDOW, WINDOW_LAYERS = "attention.sliding_window", "attention.sliding_window_pattern"
RECURRENT_LAYERS, INTERVAL = "attention.recurrent_layers", "full_attention_interval"

Kinds = tuple[bool, ...]  # one for each layer


def windows(header: Header, family: Family) -> Kinds | None:
    """The layers with a sliding window; None: this model has none. Raises BadInput."""
    window = family.window
    if window is None:
        return None
    absent = named(header, WINDOW) not in header.entries
    if not (window.by_default and absent) and number(header, WINDOW) == 0:
        return None
    listed = _listed(header, WINDOW_LAYERS)
    if listed is not None:
        return listed
    period, n = window.period, n_layers(header)
    key = named(header, WINDOW_LAYERS)
    if not period and key not in header.entries:
        raise header.odd(key, "nothing")
    period = header.integer(key, 0, MAX_LAYERS, period)
    full = 0 if window.full_first else period - 1
    return tuple(period == 0 or layer % period != full for layer in range(n))


def recurrents(header: Header, family: Family) -> Kinds | None:
    """The layers that carry a state; None: all are attention. Raises BadInput."""
    kind, n = family.recurrent, n_layers(header)
    if kind is None:
        return None
    if kind.everywhere:
        return (True,) * n
    if kind.period:
        listed = _listed(header, RECURRENT_LAYERS)
        if listed is not None:
            return listed
        period = header.integer(named(header, INTERVAL), 1, MAX_LAYERS, kind.period)
        return tuple((layer + 1) % period != 0 for layer in range(n))
    heads, ffn = (_numbers(header, "attention.head_count_kv"), _numbers(header, "feed_forward_length"))
    if kind.no_ffn:
        return tuple(not h and not f for h, f in zip(heads, ffn, strict=True))
    return tuple(not h for h in heads)


def attentions(header: Header, family: Family) -> Kinds:
    """The layers with a KV cache. Raises BadInput."""
    state = recurrents(header, family)
    if state is None or (family.recurrent and family.recurrent.everywhere):
        return (True,) * n_layers(header)
    if family.recurrent and family.recurrent.no_ffn:
        return tuple(bool(h) for h in _numbers(header, "attention.head_count_kv"))
    return tuple(not one for one in state)


def _listed(header: Header, name: str) -> Kinds | None:
    """A list of the file's; None where it has none."""
    key = named(header, name)
    value = header.entries.get(key)
    if value is None or not value.is_array:
        return None
    found, n = header.items(key), n_layers(header)
    if len(found) not in (n, n_blocks(header)) or any(isinstance(one, str) for one in found):
        raise header.odd(key, f"{len(found)} values for {n} layers")
    return tuple(bool(one) for one in found)[:n]


def _numbers(header: Header, name: str) -> tuple[int, ...]:
    n = n_blocks(header)
    found = header.integers(named(header, name), n, 0, MAX_VALUE) or (0,) * n
    return found[: n_layers(header)]
