"""A model computed by PyTorch or MLX and by llama.cpp, whole, cut and mixed: how far the results are apart.

All compute in float32: the weights are converted to it, and keys and values are cached in it. With halves, and with
llama.cpp's quick attention, its own rounding would be measured.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import mlx.core as mx
import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from app.catalog.shelf import Entry
from backends.apple.stage import MlxStage
from backends.contract import APPLE, LLAMACPP, PYTORCH, Hidden, Logits, Segment, StageConfig, Tokens
from backends.llamacpp import binding
from backends.llamacpp.stage import LlamaStage
from backends.pytorch.stage import TorchStage
from tests.families import proof
from tests.families.home import SLOTS, Home

F32 = 0  # ggml_type and llama_ftype
N_DECODED = 8
CHUNKS = ((0, 24), (1, 20)), ((0, 16), (1, 8))  # rows of both slots in each step of the prompts

Stage = LlamaStage | TorchStage | MlxStage
Scores = NDArray[np.float32]


class TorchInFloat32(TorchStage):
    """A stage whose cache has float32."""

    cache_type = torch.float32


class MlxInFloat32(MlxStage):
    """A stage whose cache has float32."""

    cache_type = mx.float32


IN_FLOAT32: dict[str, Callable[[StageConfig], Stage]] = {
    LLAMACPP: LlamaStage, PYTORCH: TorchInFloat32, APPLE: MlxInFloat32
}  # fmt: skip


def in_float32(path: Path, to: Path) -> Path:
    """The model of `path` with weights in float32, by llama.cpp's own hand."""
    llama = binding.load()
    params = llama.llama_model_quantize_default_params()
    params.ftype, params.nthread, params.allow_requantize = F32, 1, True
    assert llama.llama_model_quantize(str(path).encode(), str(to).encode(), ctypes.byref(params)) == 0
    return to


@contextmanager
def float32_cache() -> Iterator[None]:
    """Contexts of llama.cpp that are made meanwhile cache float32."""
    llama = binding.load()
    make = llama.llama_init_from_model

    def made(model: Any, params: Any) -> Any:
        params.type_k = params.type_v = F32
        return make(model, params)

    with patch.object(llama, "llama_init_from_model", made):
        yield


@contextmanager
def gelu_of_halves() -> Iterator[None]:
    """GELU is meanwhile computed as llama.cpp does on processors: from a table of halves, except far from 0."""
    gelu = functional.gelu

    def rounded(rows: Any, *, approximate: str) -> Any:
        inner = gelu(rows.half().float(), approximate=approximate).half().float()
        return torch.where(rows <= -10, 0.0, torch.where(rows >= 10, rows, inner))

    with patch.object(functional, "gelu", rounded):
        yield


@contextmanager
def opened(configs: Sequence[StageConfig]) -> Iterator[list[Stage]]:
    """The stages of a pipeline, each on the engine that it names."""
    with ExitStack() as stack, float32_cache():
        yield [stack.enter_context(closing(IN_FLOAT32[each.engine](each))) for each in configs]


def configs(home: Home, entry: Entry, cuts: proof.Cuts, engines: Sequence[str]) -> list[StageConfig]:
    """The stages between these cuts, on these engines in turn."""
    runs = proof.runs(entry.model.n_layers, cuts)
    return [
        replace(home.config(entry, layers, role, apart=False), engine=engines[n % len(engines)], flash_attention=False)
        for n, (layers, role) in enumerate(runs)
    ]


@dataclass(frozen=True, slots=True)
class Answers:
    """Two answers at once: the tokens that they were given, step by step, and the scores that came."""

    steps: tuple[tuple[tuple[Segment, ...], tuple[int, ...]], ...]
    scores: tuple[Scores, ...]


def answered(stages: Sequence[Stage], prompts: tuple[Sequence[int], Sequence[int]]) -> Answers:
    """Two greedy answers at once."""
    position, steps, scores = [0, 0], [], []
    for chunk in CHUNKS:
        segments = tuple(Segment(slot, n, position[slot]) for slot, n in chunk)
        ids = tuple(item for each in segments for item in prompts[each.slot][each.pos : each.end])
        steps.append((segments, ids))
        scores.append(computed(stages, segments, ids))
        position = [each.end for each in segments]
    for _ in range(N_DECODED):
        segments = tuple(Segment(slot, 1, position[slot]) for slot in range(SLOTS))
        ids = tuple(int(row.argmax()) for row in scores[-1])
        steps.append((segments, ids))
        scores.append(computed(stages, segments, ids))
        position = [each.end for each in segments]
    return Answers(tuple(steps), tuple(scores))


def repeated(stages: Sequence[Stage], known: Answers) -> tuple[Scores, ...]:
    """The scores for the same steps and tokens."""
    return tuple(computed(stages, segments, ids) for segments, ids in known.steps)


def computed(stages: Sequence[Stage], segments: tuple[Segment, ...], ids: Sequence[int]) -> Scores:
    """One step through all stages."""
    batch: Tokens | Hidden = Tokens(segments, ids)
    for stage in stages:
        out = stage.forward(batch, range(len(segments)))
        if isinstance(out, Logits):
            return np.frombuffer(bytes(out.rows), np.float32).reshape(len(segments), -1)
        batch = Hidden(segments, memoryview(bytes(out.rows)))
    raise AssertionError("no stage has the head")


@dataclass(frozen=True, slots=True)
class Parity:
    """The largest differences, relative to the largest logit."""

    name: str
    architecture: str
    whole: float  # the engine from llama.cpp, the whole model
    tokens_equal: bool
    cut: float  # the engine cut from the engine whole
    mixed: float  # pipelines of both engines from llama.cpp
    n_cuts: int


def parity(home: Home, path: Path, folder: Path, name: str = "", engine: str = PYTORCH) -> Parity:
    """Compare all cuts into two, some into three, and mixed pipelines of one cut into two and one into three."""
    entry = home.shelf.import_file(in_float32(path, folder / f"{path.stem}-F32.gguf"))
    model, prompts = entry.model, proof.prompts(entry.model.n_vocab)
    with opened(configs(home, entry, (), [LLAMACPP])) as stages:
        known = answered(stages, prompts)
    with opened(configs(home, entry, (), [engine])) as stages:
        ours = repeated(stages, known)
    twos, threes = proof.twos(model), proof.threes(model)
    cut = 0.0
    for cuts in (*twos, *threes):
        with opened(configs(home, entry, cuts, [engine])) as stages:
            cut = max(cut, apart(ours, repeated(stages, known)))
    mixed, equal = 0.0, same_tokens(known.scores, ours)
    for cuts in (*twos[:1], *threes[:1]):
        for engines in ((engine, LLAMACPP), (LLAMACPP, engine)):
            with opened(configs(home, entry, cuts, engines)) as stages:
                scores = repeated(stages, known)
            mixed, equal = max(mixed, apart(known.scores, scores)), equal and same_tokens(known.scores, scores)
    n_cuts = len(twos) + len(threes)
    return Parity(name, model.architecture, apart(known.scores, ours), equal, cut, mixed, n_cuts)


def apart(known: Sequence[Scores], compared: Sequence[Scores]) -> float:
    """The largest difference, relative to the largest logit of its step."""
    pairs = zip(known, compared, strict=True)
    return max(float(np.nan_to_num(np.abs(a - b).max() / np.abs(a).max(), nan=np.inf)) for a, b in pairs)


def same_tokens(known: Sequence[Scores], compared: Sequence[Scores]) -> bool:
    return all((a.argmax(1) == b.argmax(1)).all() for a, b in zip(known, compared, strict=True))
