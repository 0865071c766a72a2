"""The law: a split model says exactly what the whole model says, whatever the cut."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from backends.contract import CPU_VARIANT, Hidden, Layers, Logits, Role, Segment, Stage, Tokens
from backends.llamacpp import binding
from backends.llamacpp.stage import LlamaStage
from testbed import tiny
from tests.backends import cutting

Scores = NDArray[np.float32]
CHUNK, N_DECODED, KV_CELLS = 64, 32, 256
PROMPT = [3 + (7 * index) % 256 for index in range(CHUNK + 23)]  # two chunks
CASES = {
    "F16": tiny.Shape(layers=8, width=64, quant="F16", tied=True),
    "Q8_0": tiny.Shape(layers=8, width=64, quant="Q8_0"),
    "Q4_K": tiny.Shape(layers=8, width=256, ffn=256, quant="Q4_K_M"),
}


def forward(stages: list[Stage], batch: Tokens | Hidden, due: list[int]) -> Scores:
    """One step through all runs; [len(due), n_vocab]."""
    out: Tokens | Hidden | Logits = batch
    for stage in stages:
        assert not isinstance(out, Logits)
        out = stage.forward(out, due)
    assert isinstance(out, Logits)
    n_rows = len(due)
    return np.frombuffer(out.rows, np.float32).reshape(n_rows, -1 if n_rows else 0).copy()


def greedy(stages: list[Stage], slot: int = 0) -> list[Scores]:
    """The scores after a prompt in two chunks, and after each of the decoded tokens."""
    seen: list[Scores] = []
    for start in range(0, len(PROMPT), CHUNK):
        part = PROMPT[start : start + CHUNK]
        seen.append(forward(stages, Tokens((Segment(slot, len(part), start),), part), [0])[0])
    for pos in range(len(PROMPT), len(PROMPT) + N_DECODED):
        token = int(seen[-1].argmax())
        seen.append(forward(stages, Tokens((Segment(slot, 1, pos),), [token]), [0])[0])
    return seen


def by_the_binding(path: Path, flash: bool = True) -> list[Scores]:
    """The same from llama_cpp.Llama on the whole file."""
    llama = binding.load()
    with closing(
        binding.llama_class()(
            str(path), n_ctx=KV_CELLS, n_batch=CHUNK, n_ubatch=CHUNK, n_threads=1,
            n_threads_batch=1, flash_attn=flash, verbose=False,
        )
    ) as model:  # fmt: skip
        seen: list[Scores] = []
        for start in range(0, len(PROMPT), CHUNK):
            model.eval(PROMPT[start : start + CHUNK])
            seen.append(_last(llama, model))
        for _ in range(N_DECODED):
            model.eval([int(seen[-1].argmax())])
            seen.append(_last(llama, model))
    return seen


def _last(llama: Any, model: Any) -> Scores:
    row = llama.llama_get_logits_ith(model.ctx, -1)
    scores: Scores = np.ctypeslib.as_array(row, shape=(model.n_vocab(),)).copy()
    return scores


class Shelf:
    """A model, its stages loaded once each, and what the whole says."""

    def __init__(self, path: Path, shape: tiny.Shape, stack: ExitStack, flash: bool = True) -> None:
        self.flash = flash
        self.path = tiny.llama(path, shape)
        self._shape, self._stack = shape, stack
        self._loaded: dict[tuple[Layers, Role], Stage] = {}

    def stages(self, cuts: tuple[int, ...]) -> list[Stage]:
        """The pipeline cut at these layers, with empty KV."""
        stages = [self._stage(*run) for run in cutting.runs(self._shape.layers, cuts)]
        for stage in stages:
            stage.forget(0)
        return stages

    def _stage(self, layers: Layers, role: Role) -> Stage:
        if (layers, role) not in self._loaded:
            sizes = cutting.config(self.path, layers, role, self._shape.width, flash=self.flash)
            self._loaded[layers, role] = self._stack.enter_context(closing(LlamaStage(sizes)))
        return self._loaded[layers, role]


@pytest.fixture(scope="module", params=CASES)
def shelf(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelf]:
    with ExitStack() as stack:
        folder = tmp_path_factory.mktemp(request.param)
        yield Shelf(folder / "whole.gguf", CASES[request.param], stack)


def test_every_cut_into_two_gives_the_bits_of_the_whole(shelf: Shelf) -> None:
    said = by_the_binding(shelf.path)
    assert np.array_equal(greedy(shelf.stages(())), said)
    for cut in range(1, 8):
        assert np.array_equal(greedy(shelf.stages((cut,))), said), f"cut at {cut}"


def test_every_cut_gives_the_bits_of_our_own_whole(shelf: Shelf) -> None:
    """Unlike the binding, a stage leaves the weights as they are in the file if the processor has AVX-512."""
    whole = greedy(shelf.stages(()))
    for cut in (1, 4, 7):
        assert np.array_equal(greedy(shelf.stages((cut,))), whole), f"cut at {cut}"


def test_the_law_holds_for_the_best_code_of_this_processor() -> None:
    """The other tests of this process use the code that all processors have in common."""
    chosen = f"{__file__}::{test_every_cut_gives_the_bits_of_our_own_whole.__name__}"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", chosen]
    done = subprocess.run(command, env={**os.environ, CPU_VARIANT: ""}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout


def test_the_law_holds_without_flash_attention_too(tmp_path: Path) -> None:
    with ExitStack() as stack:
        shelf = Shelf(tmp_path / "plain.gguf", CASES["Q8_0"], stack, flash=False)
        said = by_the_binding(shelf.path, flash=False)
        for cuts in ((), (3,), (2, 5)):
            assert np.array_equal(greedy(shelf.stages(cuts)), said), f"cut at {cuts}"


def test_every_cut_into_three_and_four_gives_the_bits_of_the_whole(tmp_path: Path) -> None:
    with ExitStack() as stack:
        shelf = Shelf(tmp_path / "six.gguf", tiny.Shape(layers=6, quant="Q8_0", seed=6), stack)
        said = by_the_binding(shelf.path)
        for n_cuts in (2, 3):
            for cuts in itertools.combinations(range(1, 6), n_cuts):
                assert np.array_equal(greedy(shelf.stages(cuts)), said), f"cut at {cuts}"


def test_a_graph_that_moved_is_found_again(tmp_path: Path) -> None:
    """The boundary knows its node by address; when that no longer holds, the step is done again."""
    with ExitStack() as stack:
        shelf = Shelf(tmp_path / "moved.gguf", tiny.Shape(layers=3, quant="F16"), stack)
        said = greedy(shelf.stages(()))
        stages = shelf.stages((1, 2))
        forward(stages, Tokens((Segment(0, 1, 0),), [9]), [])
        for stage in stages[:2]:
            assert isinstance(stage, LlamaStage)
            assert stage._boundary is not None
            stage._boundary._known = stage._boundary._wanted = {1}
        assert np.array_equal(greedy(shelf.stages((1, 2))), said)
