"""One step of a stage: its rows, their positions, and attention over the cache of keys and values.

Each slot holds cells of the cache in the order of its positions. Cells are mostly consecutive, and then attention
reads them in place; otherwise it gathers them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.nn import functional

from backends.contract import Segment
from backends.gguf_weights.cells import CacheShape, Cells
from backends.gguf_weights.states import States

Tensor = Any  # torch.Tensor; the checked environment has no torch


class Cache:
    """The keys and values of all cells and layers."""

    def __init__(self, shapes: Sequence[CacheShape | None], n_cells: int, dtype: Any, device: Any) -> None:
        self.layers = [
            None if shape is None else tuple(
                torch.zeros((shape.n_heads, n_cells, size), dtype=dtype, device=device)
                for size in (shape.key, shape.value)
            )
            for shape in shapes
        ]  # fmt: skip

    @property
    def n_bytes(self) -> int:
        return sum(int(part.nbytes) for layer in self.layers if layer is not None for part in layer)


class Step:
    """The rows of a step, in the order of its segments."""

    def __init__(self, segments: Sequence[Segment], cells: Cells, cache: Cache, states: States, device: Any) -> None:
        self.segments, self.states = segments, states
        self._cache, self._device = cache, device
        self.positions = torch.cat([torch.arange(each.pos, each.end) for each in segments]).to(device)
        self._cells, self._masks = cells, dict[object, Tensor | None]()
        self._places = dict[tuple[int, int, int], slice | Tensor]()

    def parts(self) -> Iterator[tuple[Segment, slice]]:
        """Yield each segment and its rows in the step."""
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
        """Append keys and values to the cache, and return what each row reads: `[n, heads * values]`.

        query, key, value: `[n, heads, values]`. window: how many positions a row sees, itself included; 0: all before
        it. cap: the largest score, which larger ones approach. sinks: a score for each head that takes a share of the
        attention and adds nothing.
        """
        held = self._cache.layers[layer]
        assert held is not None
        results = []
        for segment, rows in self.parts():
            for cache, new in zip(held, (key, value), strict=True):
                cache[:, self._at(segment.slot, segment.pos, segment.end)] = new[rows].transpose(0, 1).to(cache.dtype)
            first = max(0, segment.pos - window + 1) if window else 0
            seen = self._at(segment.slot, first, segment.end)
            keys, values = (cache[:, seen].to(query.dtype) for cache in held)
            mask = self._mask(segment, first, window)
            own = query[rows].transpose(0, 1)
            if cap or sinks is not None:
                out = _attend_plainly(own, keys, values, mask, scale, cap, sinks)
            else:
                out = functional.scaled_dot_product_attention(
                    own[None], keys[None], values[None], attn_mask=mask, scale=scale, enable_gqa=True
                )[0]
            results.append(out.transpose(0, 1).reshape(segment.n_tokens, -1))
        return results[0] if len(results) == 1 else torch.cat(results)

    def _at(self, slot: int, first: int, last: int) -> slice | Tensor:
        """Return the cells of these positions, which all layers share."""
        place = (slot, first, last)
        if place not in self._places:
            cells = self._cells.of(slot, first, last)
            self._places[place] = cells if isinstance(cells, slice) else torch.tensor(cells, device=self._device)
        return self._places[place]

    def _mask(self, segment: Segment, first: int, window: int) -> Tensor | None:
        """Return which positions from `first` on each row of a segment sees, or None if it sees all of them."""
        if segment.n_tokens == 1:
            return None
        known = (segment, first, window)
        if known not in self._masks:
            rows = torch.arange(segment.pos, segment.end, device=self._device)[:, None]
            seen = torch.arange(first, segment.end, device=self._device)[None]
            mask = seen <= rows
            self._masks[known] = mask & (seen > rows - window) if window else mask
        return self._masks[known]


def _attend_plainly(
    query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, scale: float, cap: float, sinks: Tensor | None
) -> Tensor:
    """Return attention with what `scaled_dot_product_attention` lacks: a cap on scores, or sinks."""
    groups = query.shape[0] // keys.shape[0]
    keys, values = (part.repeat_interleave(groups, dim=0) for part in (keys, values))
    scores = query @ keys.transpose(1, 2) * scale
    if cap:
        scores = cap * torch.tanh(scores / cap)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    if sinks is not None:
        scores = torch.cat([scores, sinks[:, None, None].expand(-1, scores.shape[1], 1)], dim=-1)
        return torch.softmax(scores, dim=-1)[..., :-1] @ values
    return torch.softmax(scores, dim=-1) @ values
