"""The assignment of KV cache cells to the positions of each slot."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import pairwise

from backends.contract import Segment, StageError


@dataclass(frozen=True, slots=True)
class CacheShape:
    """The sizes of the keys and values that a layer caches for each position."""

    n_heads: int
    key: int  # values of a key
    value: int


class Cells:
    """The cells of each slot. Each slot either has its own equal share of the cells, or takes any free ones."""

    def __init__(self, slots: int, n_cells: int, *, apart: bool) -> None:
        self._n_cells = n_cells
        self._own: list[list[int]] = [[] for _ in range(slots)]
        share = n_cells // slots
        self._free = [list(range(slot * share, (slot + 1) * share)) for slot in range(slots)] if apart else []
        self._shared = [] if apart else list(range(n_cells))

    def extend(self, segment: Segment) -> None:
        """Assign a cell to each position of a segment. Raises StageError if too few cells are free."""
        own = self._own[segment.slot]
        if segment.pos != len(own):
            raise StageError(f"slot {segment.slot} has {len(own)} positions, not {segment.pos}")
        free = self._free[segment.slot] if self._free else self._shared
        if len(free) < segment.n_tokens:
            raise StageError(f"the {self._n_cells} cells of the KV cache are full")
        own += [heapq.heappop(free) for _ in range(segment.n_tokens)]

    def cut_back(self, slot: int, keep: int) -> None:
        own = self._own[slot]
        free = self._free[slot] if self._free else self._shared
        for cell in own[keep:]:
            heapq.heappush(free, cell)
        del own[keep:]

    def length(self, slot: int) -> int:
        return len(self._own[slot])

    def of(self, slot: int, first: int, last: int) -> slice | list[int]:
        """Return the cells of these positions: a slice if they are consecutive, otherwise their indexes."""
        cells = self._own[slot][first:last]
        if cells[-1] - cells[0] == len(cells) - 1 and all(b - a == 1 for a, b in pairwise(cells)):
            return slice(cells[0], cells[0] + len(cells))
        return cells
