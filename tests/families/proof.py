"""The proof of one model: every legal cut says what the whole says, and no illegal one is to be had."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np

from app.catalog.families import FAMILIES
from app.catalog.rules import Rule
from app.catalog.shelf import Entry, Shelf
from app.catalog.stage_store import StageStore
from app.core.model import Model
from backends.contract import Layers, Role, Segment
from tests.families.line import Home, Line, Scores

FIRST, SECOND = 40, 28  # tokens of the two sequences' prompts: longer than any sliding window here
CHUNK_A, CHUNK_B = 24, 17  # of which so many enter first
N_DECODED = 16
NOISE = 0.02  # the largest difference that chunk sizes alone make (docs/families.md)
N_THREES = 3
LIMIT_BYTES = 1 << 30

Cuts = tuple[int, ...]


def home(folder: Path) -> Home:
    """An empty one."""
    stages = StageStore(folder / "stages", LIMIT_BYTES)
    return Home(Shelf(folder / "models", folder / "none.gguf", stages), stages)


@dataclass(frozen=True, slots=True)
class Said:
    """What two sequences that run together were told: scores of each step, [steps, 2, n_vocab]."""

    scores: Scores

    @property
    def tokens(self) -> list[list[int]]:
        found: list[list[int]] = self.scores.argmax(-1).tolist()
        return found


def runs(n_layers: int, cuts: Cuts) -> list[tuple[Layers, Role]]:
    """The runs between the cuts with their roles; no cut: the whole model."""
    found = [Layers(first, last) for first, last in pairwise((0, *cuts, n_layers))]
    if not cuts:
        return [(found[0], Role.WHOLE)]
    roles = [Role.FIRST, *[Role.MIDDLE] * (len(cuts) - 1), Role.LAST]
    return list(zip(found, roles, strict=True))


def said(home: Home, entry: Entry, cuts: Cuts, *, apart: bool = False) -> Said:
    """Both prompts in two chunks each, the second ones in one step; then greedy steps of both."""
    configs = [
        home.config(entry, layers, role, apart=apart)
        for layers, role in runs(entry.model.n_layers, cuts)
    ]
    one, two = prompts(entry.model.n_vocab)
    with Line(configs) as line:
        line.begin(0, FIRST)
        line.begin(1, SECOND)
        line.step([Segment(0, CHUNK_A, 0)], one[:CHUNK_A])
        line.step([Segment(1, CHUNK_B, 0)], two[:CHUNK_B])
        rest = [Segment(0, FIRST - CHUNK_A, CHUNK_A), Segment(1, SECOND - CHUNK_B, CHUNK_B)]
        seen = [line.step(rest, one[CHUNK_A:] + two[CHUNK_B:])]
        for step in range(N_DECODED):
            ids = [int(seen[-1][slot].argmax()) for slot in (0, 1)]
            seen.append(line.step([Segment(0, 1, FIRST + step), Segment(1, 1, SECOND + step)], ids))
    return Said(np.stack([[scores[0], scores[1]] for scores in seen]))


def prompts(n_vocab: int) -> tuple[list[int], list[int]]:
    """The same for every model of this vocabulary."""
    chance = Random(n_vocab)
    return tuple([chance.randrange(n_vocab) for _ in range(n)] for n in (FIRST, SECOND))  # type: ignore[return-value]


def twos(model: Model) -> list[Cuts]:
    """Every legal cut into two."""
    return [(cut,) for cut in model.boundaries if model.may_cut(_runs(model, (cut,)))]


def threes(model: Model, seed: int = 0) -> list[Cuts]:
    """Some legal cuts into three, by chance."""
    edges = model.boundaries
    found = [(a, b) for a in edges for b in edges if a < b and model.may_cut(_runs(model, (a, b)))]
    return Random(seed).sample(found, min(N_THREES, len(found)))


def illegal(model: Model) -> Iterator[Cuts]:
    """Every cut into two that is not legal."""
    legal = twos(model)
    yield from ((cut,) for cut in range(1, model.n_layers) if (cut,) not in legal)


def _runs(model: Model, cuts: Sequence[int]) -> tuple[Layers, ...]:
    return tuple(Layers(*pair) for pair in pairwise((0, *cuts, model.n_layers)))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a proof found of a model."""

    name: str
    architecture: str
    cuts: tuple[Cuts, ...]  # that were compared with the whole
    largest: float  # difference of a score
    tokens_equal: bool
    exact: bool  # no difference is allowed

    @property
    def holds(self) -> bool:
        return self.tokens_equal and self.largest <= (0.0 if self.exact else NOISE)


def prove(home: Home, entry: Entry, cuts: Sequence[Cuts]) -> Verdict:
    """Compare these cuts with the whole; two stages share cells, in three each slot has its own."""
    largest, equal = 0.0, True
    whole: dict[bool, Said] = {}
    for cut in cuts:
        apart = len(cut) > 1
        if apart not in whole:
            whole[apart] = said(home, entry, (), apart=apart)
        known = whole[apart]
        found = said(home, entry, cut, apart=apart)
        largest = max(largest, float(np.abs(known.scores - found.scores).max()))
        equal = equal and known.tokens == found.tokens
    model = entry.model
    return Verdict(
        model.name, model.architecture, tuple(cuts), largest, equal, must_be_exact(model)
    )


def must_be_exact(model: Model) -> bool:
    """Not where the cut scales what the engine scales in the whole: that rounds once more."""
    family = FAMILIES[model.architecture]
    scaled = Rule.F8 in family.rules and model.n_layers in family.not_long
    return family.exact and not scaled
