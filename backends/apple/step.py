"""One step of a stage: its rows, their positions, and attention over the cache of keys and values.

Each slot owns cells of the cache, in the order of its positions. If they are consecutive, as is usual, attention reads
them in place; otherwise it gathers them. MLX evaluates lazily: it computes nothing until the stage requests the result
of its last layer, so it can schedule all operations of a step at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import mlx.core as mx
import numpy as np

from backends.contract import Segment
from backends.gguf_weights.cells import CacheShape, Cells
from backends.gguf_weights.states import States

Tensor = Any  # mlx.core.array; the checked environment has no MLX


class Cache:
    """The keys and values of all cells and layers."""

    def __init__(self, shapes: Sequence[CacheShape | None], n_cells: int, dtype: Any) -> None:
        self.layers = [
            None if shape is None else [
                mx.zeros((shape.n_heads, n_cells, size), dtype=dtype) for size in (shape.key, shape.value)
            ]
            for shape in shapes
        ]  # fmt: skip
        mx.eval(self.parts())

    def parts(self) -> list[Tensor]:
        return [part for layer in self.layers if layer is not None for part in layer]

    @property
    def n_bytes(self) -> int:
        return sum(int(part.nbytes) for part in self.parts())


class Step:
    """The rows of a step, in the order of its segments."""

    def __init__(self, segments: Sequence[Segment], cells: Cells, cache: Cache, states: States, work_type: Any) -> None:
        self.segments, self.states = segments, states
        self._cache, self._work_type = cache, work_type
        self.positions = mx.array(np.concatenate([np.arange(each.pos, each.end) for each in segments]))
        self._cells, self._masks = cells, dict[object, Tensor | None]()
        self._places = dict[tuple[int, int, int], slice | Tensor]()

    def parts(self) -> Iterator[tuple[Segment, slice]]:
        """Yield each segment with the range of its rows in the step."""
        start = 0
        for segment in self.segments:
            yield segment, slice(start, start + segment.n_tokens)
            start += segment.n_tokens

    def attend(
        self,
        layer: int,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        scale: float,
        *,
        window: int = 0,
        cap: float = 0.0,
        sinks: Tensor | None = None,
    ) -> Tensor:
        """Append keys and values to the cache, and return the attention output: `[n, heads * values]`.

        query, key, value: `[n, heads, values]`. window: the number of positions that a row sees, including its own;
        0 means that it sees its own and all earlier ones. cap: the soft limit of the scores; 0 means none. sinks: for
        each head, an extra score that absorbs a share of the attention without adding a value.
        """
        held = self._cache.layers[layer]
        assert held is not None
        results = []
        for segment, rows in self.parts():
            for cache, new in zip(held, (key, value), strict=True):
                cache[:, self._at(segment.slot, segment.pos, segment.end)] = (
                    new[rows].swapaxes(0, 1).astype(cache.dtype)
                )
            first = max(0, segment.pos - window + 1) if window else 0
            seen = self._at(segment.slot, first, segment.end)
            keys, values = (cache[:, seen].astype(self._work_type) for cache in held)
            mask = self._mask(segment, first, window)
            own = query[rows].swapaxes(0, 1).astype(self._work_type)
            if cap:
                out = _attend_with_cap(own, keys, values, mask, scale, cap)
            else:
                of_heads = None if sinks is None else sinks.astype(self._work_type)
                out = mx.fast.scaled_dot_product_attention(
                    own[None], keys[None], values[None], scale=scale, mask=mask, sinks=of_heads
                )[0]
            results.append(out.astype(mx.float32).swapaxes(0, 1).reshape(segment.n_tokens, -1))
        return results[0] if len(results) == 1 else mx.concatenate(results)

    def _at(self, slot: int, first: int, last: int) -> slice | Tensor:
        """Return the cells of positions `first` to `last`, excluding `last`. They are the same in all layers."""
        place = (slot, first, last)
        if place not in self._places:
            cells = self._cells.of(slot, first, last)
            self._places[place] = cells if isinstance(cells, slice) else mx.array(cells)
        return self._places[place]

    def _mask(self, segment: Segment, first: int, window: int) -> Tensor | None:
        """Return a mask of the positions, starting at `first`, that each row sees. None means all of them."""
        if segment.n_tokens == 1:
            return None
        known = (segment, first, window)
        if known not in self._masks:
            rows = np.arange(segment.pos, segment.end)[:, None]
            seen = np.arange(first, segment.end)[None]
            mask = seen <= rows
            self._masks[known] = mx.array(mask & (seen > rows - window) if window else mask)
        return self._masks[known]


def _attend_with_cap(
    query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, scale: float, cap: float
) -> Tensor:
    """Return attention with a cap on scores, which `scaled_dot_product_attention` lacks."""
    groups = query.shape[0] // keys.shape[0]
    keys, values = (mx.repeat(part, groups, axis=0) for part in (keys, values))
    scores = (query @ keys.swapaxes(1, 2)).astype(mx.float32) * scale
    scores = cap * mx.tanh(scores / cap)
    if mask is not None:
        scores = mx.where(mask, scores, float("-inf"))
    return mx.softmax(scores, axis=-1).astype(values.dtype) @ values
