"""A step taken apart into passes, and put together again."""

from __future__ import annotations

import random

import numpy as np
import pytest

from backends.contract import Hidden, Logits, Segment, Tokens, can_separate_slots
from backends.hidden_state_codec import bytes_of
from backends.llamacpp.stage import Parts, neighbors

WIDTH, VOCABULARY = 3, 5


def test_neighbors_with_as_many_rows_go_together() -> None:
    segments = [Segment(4, 1, 9), Segment(0, 1, 7), Segment(2, 8, 0), Segment(1, 1, 3), Segment(3, 8, 0)]
    assert neighbors(segments) == [[1, 3], [0], [2, 4]]
    assert neighbors(segments[:1]) == [[0]]


@pytest.mark.parametrize(
    ("slots", "cells", "context", "apart"),
    [(8, 8 * 512, 512, True), (8, 8 * 512, 500, True), (8, 4 * 512, 512, False),
     (8, 8 * 500, 500, False), (1, 512, 512, False), (4, 4096, 4096, False)],
)  # fmt: skip
def test_slots_have_cells_of_their_own_where_there_are_enough(
    slots: int, cells: int, context: int, apart: bool
) -> None:
    assert can_separate_slots(slots, cells, context) is apart


@pytest.mark.parametrize("kind", [Tokens, Hidden])
@pytest.mark.parametrize("seed", range(5))
def test_the_parts_hold_the_rows_of_the_whole(kind: type[Tokens | Hidden], seed: int) -> None:
    chance = random.Random(seed)
    slots = chance.sample(range(9), 5)
    segments = tuple(Segment(slot, chance.choice([1, 1, 4]), slot) for slot in slots)
    n_rows = sum(segment.n_tokens for segment in segments)
    rows = np.arange(n_rows * WIDTH, dtype=np.float32).reshape(n_rows, WIDTH)
    whole = Hidden(segments, bytes_of(rows)) if kind is Hidden else Tokens(segments, range(n_rows))
    due = sorted(chance.sample(range(5), 3))
    n_scored = [chance.randint(1, segments[i].n_tokens) for i in due]
    inner, tail = Parts(whole, due, n_scored, WIDTH), Parts(whole, due, n_scored, WIDTH)
    for group in neighbors(segments):
        part, part_due, part_scored = inner.take(group)
        ids = (
            [int(row[0]) // WIDTH for row in np.frombuffer(part.rows, np.float32).reshape(-1, WIDTH)]
            if isinstance(part, Hidden)
            else list(part.ids)
        )
        inner.give(group, Hidden(part.segments, bytes_of(rows[ids] + 1)))
        ends = np.cumsum([segment.n_tokens for segment in part.segments])
        scored = [ids[row] for i, n in zip(part_due, part_scored, strict=True) for row in range(ends[i] - n, ends[i])]
        scores = np.array([[row] * VOCABULARY for row in scored], np.float32)
        tail.give(group, Logits(tuple(part.segments[i] for i in part_due), bytes_of(scores)))
    out = inner.whole()
    assert out == Hidden(segments, bytes_of(rows + 1))
    ends = np.cumsum([segment.n_tokens for segment in segments])
    scored = [row for i, n in zip(due, n_scored, strict=True) for row in range(ends[i] - n, ends[i])]
    expected = np.array([[row] * VOCABULARY for row in scored], np.float32)
    assert tail.whole() == Logits(tuple(segments[i] for i in due), bytes_of(expected))


def test_nothing_due_is_no_logits() -> None:
    segments = (Segment(0, 1, 0), Segment(5, 1, 0))
    parts = Parts(Tokens(segments, (1, 2)), (), (), WIDTH)
    for group in neighbors(segments):
        _, due, _ = parts.take(group)
        assert due == []
        parts.give(group, Logits((), memoryview(b"")))
    assert parts.whole() == Logits((), memoryview(b""))
