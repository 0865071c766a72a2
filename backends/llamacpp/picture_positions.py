"""The positions of a sequence with pictures, for models that count them in several planes (M-RoPE)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from backends.contract import PictureGrid, Segment, StageError

TIME, LINE, COLUMN = range(3)  # the planes, in llama.cpp's order; there is a fourth, which is 0


def planes_of(segment: Segment, grids: Sequence[PictureGrid]) -> NDArray[np.int32]:
    """Return the positions of a segment's rows: `[3, n_tokens]`, by TIME, LINE and COLUMN.

    All are the same for text. grids: the pictures of the sequence, in order.
    """
    index = np.arange(segment.pos, segment.end, dtype=np.int32)
    saved = _saved_before(segment.pos, grids)
    planes = np.tile(index - saved, (3, 1))
    for grid in grids:
        if grid.end <= segment.pos:
            continue
        inside = (index >= grid.first) & (index < grid.end)
        row = index[inside] - grid.first
        start = grid.first - saved
        planes[TIME, inside] = start
        planes[LINE, inside] = start + row // grid.n_columns
        planes[COLUMN, inside] = start + row % grid.n_columns
        saved += grid.n_rows - grid.n_positions
        planes[:, index >= grid.end] = index[index >= grid.end] - saved
    return planes


def time_of(index: int, grids: Sequence[PictureGrid]) -> int:
    """Return the position in time at which a KV cache is cut to keep the rows before `index`.

    Raises StageError within a picture, whose rows all have the same time.
    """
    if any(grid.first < index < grid.end for grid in grids):
        raise StageError(f"a picture cannot be cut at {index}")
    return index - _saved_before(index, grids)


def _saved_before(index: int, grids: Sequence[PictureGrid]) -> int:
    """Return how many more rows than positions the pictures before `index` have."""
    return sum(grid.n_rows - grid.n_positions for grid in grids if grid.end <= index)
