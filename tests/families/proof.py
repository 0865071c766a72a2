"""The proof of one model: every legal cut says what the whole says, and no illegal one is to be had."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np

from app.catalog.families.family_table import FAMILIES, Rule
from app.catalog.shelf import Entry, Shelf
from app.catalog.stages.stage_store import StageStore
from app.core.model import Model
from backends.contract import Layers, Role
from tests.families.changed import longer
from tests.families.driven import Scores, Segments, Workers, driven, whole
from tests.families.home import SLOTS, Home
from tests.inference.pool import answer, request

FIRST, SECOND = 40, 28  # tokens of the two sequences' prompts: longer than any sliding window here
N_DECODED = 16
NOISE = 0.02  # the largest difference that chunk sizes alone make (docs/families.md)
N_THREES, SEED = 3, 7  # cuts into three, and what chooses them
MORE_LAYERS = 8  # two periods: room for so many in each family
LIMIT_BYTES = 1 << 30

Cuts = tuple[int, ...]
Prompts = tuple[Sequence[int], Sequence[int]]


def home(folder: Path) -> Home:
    """An empty one."""
    stages = StageStore(folder / "stages", LIMIT_BYTES)
    return Home(Shelf(folder / "models", folder / "none.gguf", stages), stages)


def runs(n_layers: int, cuts: Cuts) -> list[tuple[Layers, Role]]:
    """The runs between the cuts with their roles; no cut: the whole model."""
    layers = [Layers(first, last) for first, last in pairwise((0, *cuts, n_layers))]
    if not cuts:
        return [(layers[0], Role.WHOLE)]
    roles = [Role.FIRST, *[Role.MIDDLE] * (len(cuts) - 1), Role.LAST]
    return list(zip(layers, roles, strict=True))


@dataclass(frozen=True, slots=True)
class Said:
    """The scores and tokens of two concurrent answers."""

    steps: tuple[Segments, ...]  # that entered the last run
    ids: tuple[tuple[int, ...], ...]  # of each slot: prompt and answer
    due_from: tuple[int, ...]  # of each slot: the length of its prompt
    scores: dict[tuple[int, int], Scores]  # of each token, by slot and position

    def same(self, scores: dict[tuple[int, int], Scores]) -> bool:
        """Return whether the highest scores belong to the tokens that were generated."""
        return all(self.ids[slot][at] == int(row.argmax()) for (slot, at), row in scores.items())


async def said(workers: Workers, home: Home, entry: Entry, cuts: Cuts, both: Prompts | None = None) -> Said:
    """Two answers at once, by the driver: both prompts in chunks, then greedy steps."""
    both = both or prompts(entry.model.n_vocab)
    layers = runs(entry.model.n_layers, cuts)
    async with driven(workers, home, entry, layers, apart=keeps_apart(cuts)) as (pipeline, heard):
        # without guesses, so that each position is entered once and the steps can be replayed
        coroutines = [  # as chats: a slot keeps what it holds when its answer ends, so no cell changes meanwhile
            answer(pipeline, replace(request(prompt, 1 + N_DECODED, conversation=name), guesses=False))
            for name, prompt in zip("ab", both, strict=True)
        ]
        answers = [ids for ids, _ in await asyncio.gather(*coroutines)]
    ids: list[tuple[int, ...]] = [()] * SLOTS
    for prompt, tokens in zip(both, answers, strict=True):
        ids[heard.slots[len(prompt)]] = (*prompt, *tokens)
    result = Said(
        tuple(heard.steps), tuple(ids), tuple(len(each) - 1 - N_DECODED for each in ids),
        heard.scores,
    )  # fmt: skip
    _check(result)
    return result


def keeps_apart(cuts: Cuts) -> bool:
    """Two stages share their cells, in three each slot has its own."""
    return len(cuts) > 1


def _check(result: Said) -> None:
    """The proof is one: both entered in chunks and took turns, and the scores of every token are known."""
    for slot, first in enumerate(result.due_from):
        chunks = [s for step in result.steps for s in step if s.slot == slot and s.pos < first]
        assert len(chunks) > 1, chunks
    firsts = [min(n for n, step in enumerate(result.steps) if any(s.slot == slot for s in step))
              for slot in range(SLOTS)]  # fmt: skip
    lasts = [max(n for n, step in enumerate(result.steps) if any(s.slot == slot for s in step))
             for slot in range(SLOTS)]  # fmt: skip
    assert max(firsts) < min(lasts), result.steps
    assert len(result.scores) == SLOTS * (1 + N_DECODED)


def prompts(n_vocab: int) -> tuple[list[int], list[int]]:
    """The same for every model of this vocabulary."""
    chance = Random(n_vocab)
    return tuple([chance.randrange(n_vocab) for _ in range(n)] for n in (FIRST, SECOND))  # type: ignore[return-value]


def twos(model: Model) -> list[Cuts]:
    """Every legal cut into two."""
    return [(cut,) for cut in model.cuts.boundaries if model.may_cut(_runs(model, (cut,)))]


def threes(model: Model, seed: int = SEED) -> list[Cuts]:
    """Some legal cuts into three, by chance."""
    edges = model.cuts.boundaries
    results = [(a, b) for a in edges for b in edges if a < b and model.may_cut(_runs(model, (a, b)))]
    return Random(seed).sample(results, min(N_THREES, len(results)))


def illegal(model: Model) -> Iterator[Cuts]:
    """Every cut into two that is not legal."""
    legal = twos(model)
    yield from ((cut,) for cut in range(1, model.n_layers) if (cut,) not in legal)


def _runs(model: Model, cuts: Sequence[int]) -> tuple[Layers, ...]:
    return tuple(Layers(*pair) for pair in pairwise((0, *cuts, model.n_layers)))


@dataclass(frozen=True, slots=True)
class Task:
    """A model, and its cuts that are compared with the whole."""

    entry: Entry
    cuts: tuple[Cuts, ...]


def tasks(home: Home, path: Path, folder: Path, seed: int = SEED) -> list[Task]:
    """All cuts of a file into two, and some into three; of one with too few layers for these, on more of
    its layers, in a file that is made in `folder`. None: it is not cut at all."""
    entry = home.shelf.import_file(path)
    if not entry.model.cuts.boundaries:
        return []
    some = threes(entry.model, seed)
    results = [Task(entry, (*twos(entry.model), *some))]
    if len(some) < N_THREES:
        made = longer(path, folder / f"longer-{path.name}", MORE_LAYERS)
        entry = home.shelf.import_file(made)
        results.append(Task(entry, tuple(threes(entry.model, seed))))
    return results


@dataclass(frozen=True, slots=True)
class Verdict:
    """The findings of a proof about a model."""

    name: str
    architecture: str
    cuts: tuple[Cuts, ...]  # that were compared with the whole
    largest: float  # difference of a score
    tokens_equal: bool
    exact: bool  # no difference is allowed

    @property
    def holds(self) -> bool:
        return self.tokens_equal and self.largest <= (0.0 if self.exact else NOISE)


async def prove_all(workers: Workers, home: Home, some: Sequence[Task]) -> Verdict:
    """All cuts of these, in one verdict by the name of the first."""
    verdicts = [await prove(workers, home, task.entry, task.cuts) for task in some]
    return replace(
        verdicts[0],
        cuts=tuple(cuts for verdict in verdicts for cuts in verdict.cuts),
        largest=max(verdict.largest for verdict in verdicts),
        tokens_equal=all(verdict.tokens_equal for verdict in verdicts),
    )


async def prove(
    workers: Workers, home: Home, entry: Entry, cuts: Sequence[Cuts], anchor: Entry | None = None,
    prompts: Prompts | None = None,
) -> Verdict:  # fmt: skip
    """Compare these cuts with the whole model, or with the whole of `anchor`: it computes the same steps.

    prompts: of different lengths; None: tokens by chance."""
    largest, equal = 0.0, True
    for apart in (False, True):
        some = [cut for cut in cuts if keeps_apart(cut) is apart]
        if not some:
            continue
        results = [await said(workers, home, entry, cut, prompts) for cut in some]
        async with whole(workers, home, anchor or entry, apart=apart) as computed:
            known: dict[object, dict[tuple[int, int], Scores]] = {}
            for result in results:
                key = (result.steps, result.ids)
                if key not in known:
                    known[key] = await computed.replay(*key, result.due_from)
                largest = max(largest, difference(known[key], result.scores))
                equal = equal and result.same(known[key])
    model = entry.model
    return Verdict(model.name, model.architecture, tuple(cuts), largest, equal, must_be_exact(model))


def difference(item: dict[tuple[int, int], Scores], two: dict[tuple[int, int], Scores]) -> float:
    """The largest of a score; infinite where one is no number."""
    assert item.keys() == two.keys()
    results = (np.abs(item[key] - two[key]) for key in item)
    return max(float(np.nan_to_num(each, nan=np.inf, posinf=np.inf).max()) for each in results)


def must_be_exact(model: Model) -> bool:
    """Return False if the cut scales values that the engine scales in the whole model, which rounds once more."""
    family = FAMILIES[model.architecture]
    scaled = Rule.F8 in family.rules and model.n_layers in family.not_long
    return family.exact and not scaled
