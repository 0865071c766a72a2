"""The same greedy answer from a stage that looks for its number of threads and from one that has it."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from backends.contract import Layers, Role, Segment, StageConfig, Tokens
from backends.hidden_state_codec import VALUE
from backends.llamacpp import stage as module
from backends.llamacpp.stage import LlamaStage
from testbed import tiny


def answered(path: Path, begin: int) -> tuple[list[bytes], set[int]]:
    config = StageConfig("llamacpp", str(path), "", Role.WHOLE, Layers(0, 2), 256, 1, 768, 64, 2, begin_threads=begin)
    stage, result, threads, token = LlamaStage(config), [], set(), 5
    for pos in range(600):
        out = stage.forward(Tokens((Segment(0, 1, pos),), [token]), [0])
        scores = np.frombuffer(out.rows, VALUE)
        token = int(scores.argmax())
        result.append(scores.tobytes())
        threads.add(stage._threads)
    stage.close()
    return result, threads


def test_looking_for_a_number_changes_no_logit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step takes equally long on a quiet machine. Trials happen where they cannot be seen in the output."""
    ticks = itertools.count()
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: next(ticks) * 0.01))
    path = tiny.llama(tmp_path / "tiny.gguf", layers=2, width=256)
    fixed, _ = answered(path, 0)
    chunks, threads = answered(path, 2)
    assert threads == {1, 2}
    assert chunks == fixed


def of_many(path: Path, begin: int, seed: int) -> tuple[list[bytes], list[int]]:
    """Eight sequences that share their cells: they grow in turns, and are cut back and forgotten by chance."""
    config = StageConfig("llamacpp", str(path), "", Role.WHOLE, Layers(0, 2), 256, 8, 768, 64, 2, begin_threads=begin)
    stage, chunks, threads, chance = (LlamaStage(config), list[bytes](), list[int](), random.Random(seed))
    ends = [0] * 8
    for _ in range(500):
        slot = chance.randrange(8)
        if ends[slot] and chance.random() < 0.1:
            ends[slot] = chance.choice((0, ends[slot] // 2))
            stage.forget(slot, ends[slot])
        out = stage.forward(Tokens((Segment(slot, 1, ends[slot]),), [chance.randrange(200)]), [0])
        chunks.append(bytes(out.rows))
        threads.append(stage._threads)
        ends[slot] += 1
        stage.forward(Tokens((Segment(slot, 8, ends[slot]),), list(range(8))), [])
        ends[slot] += 8
        if sum(ends) > 700:
            for index in range(8):
                stage.forget(index)
            ends = [0] * 8
    stage.close()
    return chunks, threads


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_nor_with_many_that_share_their_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """The first cells are looked at whole: there it looks for its number, and further on it has found one."""
    ticks = itertools.count()
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: next(ticks) * 0.01))
    path = tiny.llama(tmp_path / "tiny.gguf", layers=2, width=256)
    fixed, _ = of_many(path, 0, seed)
    chunks, threads = of_many(path, 2, seed)
    assert set(threads) == {1, 2}
    assert chunks == fixed
