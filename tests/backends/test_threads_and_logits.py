"""The same greedy answer from a stage that looks for its number of threads and from one that has it."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from backends.contract import Layers, Role, Segment, StageConfig, Tokens
from backends.llamacpp import stage as module
from backends.llamacpp.stage import LlamaStage
from backends.numbers import VALUE
from testbed import tiny


def answered(path: Path, begin: int) -> tuple[list[bytes], set[int]]:
    config = StageConfig(
        "llamacpp", str(path), "", Role.WHOLE, Layers(0, 2), 256, 1, 768, 64, 2, begin_threads=begin
    )
    stage, told, threads, token = LlamaStage(config), [], set(), 5
    for pos in range(600):
        out = stage.forward(Tokens((Segment(0, 1, pos),), [token]), [0])
        scores = np.frombuffer(out.rows, VALUE)
        token = int(scores.argmax())
        told.append(scores.tobytes())
        threads.add(stage._threads)
    stage.close()
    return told, threads


def test_looking_for_a_number_changes_no_logit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a quiet machine: every step takes as long. Tries happen, where they cannot be seen in what comes out."""
    ticks = itertools.count()
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: next(ticks) * 0.01))
    path = tiny.llama(tmp_path / "tiny.gguf", layers=2, width=256)
    fixed, _ = answered(path, 0)
    found, threads = answered(path, 2)
    assert threads == {1, 2}
    assert found == fixed
