"""Sixteen sequences at once that join and leave a pipeline: each gets the scores it gets alone."""

from __future__ import annotations

import random
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from backends.contract import KV_CELL_ALIGNMENT, Hidden, Logits, Segment, Stage, Tokens, can_separate_slots
from backends.llamacpp.stage import LlamaStage
from testbed import tiny
from tests.backends import cutting

N_SEQUENCES, N_SLOTS, BATCH_ROWS = 24, 16, 64
SHARED_CELLS = 1024
NOISE = 0.02  # of scores of about 3, with a KV cache in f16; weights in F32 add none of their own
SHAPE = tiny.Shape(layers=6, width=64, quant="F32", seed=16)
Scores = NDArray[np.float32]


@dataclass
class Sequence:
    """Token ids that are fed whatever is answered, and the scores after each step."""

    ids: list[int]
    pos: int = 0
    scores: dict[int, Scores] = field(default_factory=dict)  # by the position they follow

    def next_segment(self, slot: int, n_most: int) -> Segment:
        return Segment(slot, min(n_most, len(self.ids) - self.pos), self.pos)


def forward(stages: list[Stage], segments: tuple[Segment, ...], ids: list[int]) -> list[Scores]:
    out: Tokens | Hidden | Logits = Tokens(segments, ids)
    for stage in stages:
        assert not isinstance(out, Logits)
        out = stage.forward(out, range(len(segments)))
    assert isinstance(out, Logits)
    return list(np.frombuffer(out.rows, np.float32).reshape(len(segments), -1).copy())


def advance(stages: list[Stage], busy: dict[int, Sequence], n_most: dict[int, int]) -> None:
    segments = tuple(busy[slot].next_segment(slot, n_most[slot]) for slot in n_most)
    ids = [t for s in segments for t in busy[s.slot].ids[s.pos : s.end]]
    for segment, scores in zip(segments, forward(stages, segments, ids), strict=True):
        sequence = busy[segment.slot]
        sequence.pos = segment.end
        sequence.scores[segment.end - 1] = scores


def together(stages: list[Stage], sequences: list[Sequence], chance: random.Random) -> int:
    """Sequences take a free slot when chance wills, and give it back when they are done; the most at once."""
    waiting, busy, most = list(sequences), dict[int, Sequence](), 0
    while waiting or busy:
        free = [slot for slot in range(N_SLOTS) if slot not in busy]
        while waiting and free and chance.random() < 0.6:
            busy[free.pop(chance.randrange(len(free)))] = waiting.pop()
        most = max(most, len(busy))
        chosen = [slot for slot in busy if chance.random() < 0.8]
        chance.shuffle(chosen)
        if sizes := drawn(chosen, chance):
            advance(stages, busy, sizes)
        for slot in [slot for slot in busy if busy[slot].pos == len(busy[slot].ids)]:
            del busy[slot]
            for stage in stages:
                stage.forget(slot)
    return most


def drawn(slots: list[int], chance: random.Random) -> dict[int, int]:
    """Return how many tokens each takes in one step: mostly one, and together no more than a batch has rows."""
    sizes, room = dict[int, int](), BATCH_ROWS
    for n_before, slot in enumerate(slots):
        n_after = len(slots) - n_before - 1
        sizes[slot] = min(chance.choice([1, 1, 1, 5, 10]), room - n_after)
        room -= sizes[slot]
    return sizes


def alone(stages: list[Stage], sequence: Sequence, n_most: int) -> Sequence:
    same = Sequence(sequence.ids)
    while same.pos < len(same.ids):
        advance(stages, {0: same}, {0: n_most})
    for stage in stages:
        stage.forget(0)
    return same


def difference(group: Sequence, other: Sequence) -> float:
    both = group.scores.keys() & other.scores.keys()
    return max(float(np.abs(group.scores[pos] - other.scores[pos]).max()) for pos in both)


def loaded(path: Path, cuts: tuple[int, ...], stack: ExitStack, cells: int) -> list[Stage]:
    apart = can_separate_slots(N_SLOTS, cells, 100)
    return [
        stack.enter_context(closing(LlamaStage(cutting.config(
            path, *run, 64, slots=N_SLOTS, kv_cells=cells, batch_rows=BATCH_ROWS, apart=apart
        ))))
        for run in cutting.runs(SHAPE.layers, cuts)
    ]  # fmt: skip


@pytest.mark.parametrize("cells", [SHARED_CELLS, N_SLOTS * KV_CELL_ALIGNMENT], ids=["shared", "apart"])
def test_sixteen_sequences_get_the_scores_they_get_alone(tmp_path: Path, cells: int) -> None:
    path = tiny.llama(tmp_path / "whole.gguf", SHAPE)
    chance = random.Random(2024)
    lengths = [chance.randrange(20, 60) for _ in range(N_SEQUENCES)]
    ids = [[chance.randrange(3, 259) for _ in range(length)] for length in lengths]
    split, unsplit = [Sequence(i) for i in ids], [Sequence(i) for i in ids]
    with ExitStack() as stack:
        whole = loaded(path, (), stack, cells)
        assert together(loaded(path, (2, 3), stack, cells), split, random.Random(7)) == N_SLOTS
        assert together(whole, unsplit, random.Random(7)) == N_SLOTS
        singly = [alone(whole, sequence, 1) for sequence in split]
    for group, other in zip(split, unsplit, strict=True):
        assert difference(group, other) == 0, "the same steps give the same bits, split or not"
    # beyond that llama.cpp differs from itself between shapes of a batch
    assert max(map(difference, singly, unsplit)) < NOISE
    for group, other in zip(split, singly, strict=True):
        assert all(group.scores[pos].argmax() == other.scores[pos].argmax() for pos in group.scores)
