"""A step in several passes: llama.cpp computes at once only slots that lie side by side, with as many rows each.

So it is where each slot has KV cells of its own (llama_batch_allocr::split_equal with `sequential`): other steps it
would cut itself, in an order of its own. Here the order of rows stays the step's.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from backends.contract import Hidden, Logits, Segment, Tokens
from backends.wire_numbers import VALUE, bytes_of


def neighbours(segments: Sequence[Segment]) -> list[list[int]]:
    """Indexes of the segments, in groups that can be computed at once."""
    order = sorted(range(len(segments)), key=lambda i: (segments[i].n_tokens, segments[i].slot))
    groups = [order[:1]]
    for before, index in pairwise(order):
        one, two = segments[before], segments[index]
        if one.n_tokens == two.n_tokens and one.slot + 1 == two.slot:
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups


def prompts_alone(groups: Sequence[list[int]], segments: Sequence[Segment]) -> list[list[int]]:
    """The same groups, but each segment of more than one row is one of its own."""
    found: list[list[int]] = []
    for group in groups:
        if segments[group[0]].n_tokens > 1:
            found += [[index] for index in group]
        else:
            found.append(group)
    return found


def by_length(segments: Sequence[Segment]) -> list[list[int]]:
    """Indexes of the segments: those of one row, then each longer one."""
    single = [i for i, segment in enumerate(segments) if segment.n_tokens == 1]
    return [one for one in (single, *([i] for i in range(len(segments)) if i not in single)) if one]


class Parts:
    """One step taken apart, and its outputs put together again."""

    def __init__(self, batch: Tokens | Hidden, due: Sequence[int], width: int) -> None:
        self._batch, self._due, self._width = batch, due, width
        ends = np.cumsum([segment.n_tokens for segment in batch.segments])
        self._rows = [np.arange(end - segment.n_tokens, end) for end, segment in zip(ends, batch.segments, strict=True)]
        self._out: np.ndarray | None = None
        self._is_hidden = True

    def take(self, group: Sequence[int]) -> tuple[Tokens | Hidden, list[int]]:
        """These segments as a step of their own, and which of them are due."""
        segments = tuple(self._batch.segments[index] for index in group)
        due = [place for place, index in enumerate(group) if index in self._due]
        rows = np.concatenate([self._rows[index] for index in group])
        if isinstance(self._batch, Tokens):
            return Tokens(segments, tuple(self._batch.ids[row] for row in rows)), due
        values = np.frombuffer(self._batch.rows, dtype=VALUE).reshape(-1, self._width)
        return Hidden(segments, bytes_of(values[rows])), due

    def give(self, group: Sequence[int], out: Hidden | Logits) -> None:
        """The output of a part; copied, because the next part's will lie in the same place."""
        self._is_hidden = isinstance(out, Hidden)
        if isinstance(out, Hidden):
            rows = np.concatenate([self._rows[index] for index in group])
            n_rows, n_parts = sum(map(len, self._rows)), len(rows)
        else:
            rows = np.array([self._due.index(index) for index in group if index in self._due], int)
            n_rows, n_parts = len(self._due), len(rows)
        if not n_parts:
            return
        values = np.frombuffer(out.rows, dtype=VALUE).reshape(n_parts, -1)
        if self._out is None:
            self._out = np.empty((n_rows, values.shape[1]), dtype=VALUE)
        self._out[rows] = values

    def whole(self) -> Hidden | Logits:
        """What one pass over the whole step would have returned."""
        rows = memoryview(b"") if self._out is None else bytes_of(self._out)
        if self._is_hidden:
            return Hidden(self._batch.segments, rows)
        return Logits(tuple(self._batch.segments[index] for index in self._due), rows)
