"""A KV cache in q8_0: half the memory, nearly the same scores, and split still equals whole."""

from __future__ import annotations

from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from app.catalog.gguf.gguf_file import read_header
from app.catalog.gguf.model_reader import model_of
from backends.contract import KvType, Stage
from backends.llamacpp.stage import LlamaStage
from testbed import tiny
from tests.backends import cutting
from tests.backends.test_split_equals_whole import Scores, greedy

SHAPE = tiny.Shape(layers=4, width=128, heads=4, kv_heads=2, quant="Q8_0")  # heads of 32 values
FAR = 0.3  # of a score whose spread is about 1; 0.11 was seen


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.llama(tmp_path_factory.mktemp("kv") / "whole.gguf", SHAPE)


def said(path: Path, cuts: tuple[int, ...], kv: KvType) -> list[Scores]:
    with ExitStack() as stack:
        stages: list[Stage] = []
        for layers, role in cutting.runs(SHAPE.layers, cuts):
            config = replace(cutting.config(path, layers, role, SHAPE.width), kv=kv)
            stages.append(stack.enter_context(closing(LlamaStage(config))))
        return greedy(stages)


@pytest.mark.parametrize("cuts", [(2,), (1, 3)])
def test_split_equals_whole(path: Path, cuts: tuple[int, ...]) -> None:
    assert np.array_equal(said(path, cuts, KvType.Q8_0), said(path, (), KvType.Q8_0))


def test_its_effect_is_small_and_there(path: Path) -> None:
    """Only the prompt's first chunk is compared: later scores follow tokens that may differ."""
    exact, near = (said(path, (), kv)[0] for kv in KvType)
    assert 0 < np.abs(exact - near).max() < FAR


def test_heads_must_be_whole_blocks(path: Path, tmp_path: Path) -> None:
    assert model_of(read_header(path), "m", "0" * 64).quantized_kv
    small = tiny.llama(tmp_path / "small.gguf", layers=2, width=64, heads=4)
    assert not model_of(read_header(small), "m", "0" * 64).quantized_kv
