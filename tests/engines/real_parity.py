"""A public model computed by PyTorch or MLX and by llama.cpp: how far apart their next tokens are likely to be.

llama.cpp on a processor rounds the rows that it multiplies with packed weights to 8 bits, and the others do not. So the
same weights are also computed by llama.cpp in float32, which shows whose rounding a difference is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import mlx.core as mx
import numpy as np

from app.catalog.shelf import Entry
from backends.apple.stage import MlxStage
from backends.contract import APPLE, PYTORCH, Layers, Role, Segment, StageConfig
from backends.llamacpp.stage import LlamaStage
from backends.pytorch.stage import TorchStage
from tests.engines.parity import Scores, Stage, computed, float32_cache, in_float32
from tests.families import proof
from tests.families.home import CONTEXT, Home
from tests.real.asking import begun
from tests.real.words import BEGUN, PASSAGE, QUESTION, STORY

TEXTS = (PASSAGE, " ".join((STORY, QUESTION, *BEGUN)))


class MlxOfCards(MlxStage):
    """A stage that multiplies and attends in halves, as on Metal."""

    work_type = mx.float16


ENGINES: dict[str, Callable[[StageConfig], Stage]] = {PYTORCH: TorchStage, APPLE: MlxOfCards}
N_PROMPT = 16  # tokens of each text that are not compared


@dataclass(frozen=True, slots=True)
class Likeness:
    """The likeness of two engines in what they think of the next token."""

    mean_kl: float  # Kullback-Leibler divergence
    top: float  # share of positions with the same likeliest token


@dataclass(frozen=True, slots=True)
class RealParity:
    """The likeness of three ways to compute a model, at so many positions."""

    n_positions: int
    exact: Likeness  # the engine to llama.cpp in float32
    working: Likeness  # the engine to llama.cpp as people use it
    rounding: Likeness  # llama.cpp in float32 to llama.cpp as people use it


def real_parity(path: Path, folder: Path, most: int = CONTEXT, engine: str = PYTORCH) -> RealParity:
    """Compare the model on the first tokens of fixed texts, one by one."""
    home = proof.home(folder)
    texts = [ids[:most] for ids in asyncio.run(begun(path, *TEXTS))]
    entry = home.shelf.import_file(path)
    working = _scores(LlamaStage(_config(home, entry)), texts)
    ours = _scores(ENGINES[engine](replace(_config(home, entry), engine=engine)), texts)
    plain = home.shelf.import_file(in_float32(path, folder / "F32.gguf"))
    with float32_cache():
        exact = _scores(LlamaStage(replace(_config(home, plain), flash_attention=False)), texts)
    return RealParity(len(ours), likeness(exact, ours), likeness(working, ours), likeness(working, exact))


def likeness(known: Scores, other: Scores) -> Likeness:
    expected, result = _logarithms(known), _logarithms(other)
    divergence = (np.exp(expected) * (expected - result)).sum(axis=1)
    return Likeness(float(divergence.mean()), float((known.argmax(1) == other.argmax(1)).mean()))


def _config(home: Home, entry: Entry) -> StageConfig:
    return replace(home.config(entry, Layers(0, entry.model.n_layers), Role.WHOLE, apart=False), threads=2)


def _scores(stage: Stage, texts: Sequence[Sequence[int]]) -> Scores:
    """The scores of all tokens of the texts but the first ones."""
    rows: list[Scores] = []
    with closing(stage):
        for ids in texts:
            stage.forget(0)
            computed([stage], (Segment(0, N_PROMPT, 0),), ids[:N_PROMPT])
            rows += (computed([stage], (Segment(0, 1, at),), ids[at : at + 1])[0] for at in range(N_PROMPT, len(ids)))
    return np.array(rows)


def _logarithms(scores: Scores) -> np.ndarray:
    values = scores.astype(np.float64)
    values -= values.max(axis=1, keepdims=True)
    return values - np.log(np.exp(values).sum(axis=1, keepdims=True))
