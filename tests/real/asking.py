"""Loads and questions for a household of real nodes, and what the whole model thinks of their answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from app.client import NodeClient
from app.inference.worker.tokenizer import TextWorker
from backends.contract import Segment
from scripts.real_models import GEMMA3, SMOLLM2
from tests.families import proof
from tests.families.line import Line

Json = dict[str, Any]
SPLITS = {SMOLLM2.file: [7, 7, 9, 7], GEMMA3.file: [4, 5, 5, 4]}  # the host, two lenders, the host
N_TOKENS = 24
CHUNK = 64


async def load(host: NodeClient, file: str, **more: Any) -> Json:
    """Load the model, split over all three machines unless `more` says otherwise."""
    order = {"model": file, "split": SPLITS[file], "number": "f32", "context": 512, "users": 1}
    done = await host.work("POST", "/load", {**order, "measure": False, **more})
    loaded: Json = done["loaded"]
    return loaded


async def ask(host: NodeClient, came: Callable[[int], None] = lambda n: None, **more: Any) -> Json:
    """The end of a greedy answer, with the tokens and notices that came; `came` hears how many tokens did."""
    order = {"max_tokens": N_TOKENS, "sampling": {"temperature": 0}, **more}
    ids: list[int] = []
    notices: list[Json] = []
    async with aclosing(host.stream("POST", "/ask", order)) as lines:
        async for line in lines:
            if "delta" in line:
                ids += line["delta"]["token_ids"]
                came(len(ids))
            elif "recovery" in line:
                notices.append(line["recovery"])
            elif "done" in line:
                assert list(line["done"]["token_ids"]) == ids
                return {**line["done"], "notices": notices}
    raise AssertionError("an answer without its end")


async def begun(file: Path, *texts: str) -> list[list[int]]:
    """Their tokens."""
    async with await TextWorker.open(str(file)) as reader:
        return [list(await reader.tokenize(text)) for text in texts]


@dataclass(frozen=True, slots=True)
class Opinion:
    """The whole model's scores for an answer that it is given token by token.

    Greedy answers in other chunks are no measure: one near tie changes all the text after it.
    """

    mean_gap: float  # how much less likely the tokens were than the likeliest, as logarithms of probabilities
    agreement: float  # share of the tokens that were the likeliest


def opinions(folder: Path, file: Path, answers: Sequence[tuple[Sequence[int], Sequence[int]]]) -> list[Opinion]:
    """Return the whole model's scores for each answer to its prompt."""
    home = proof.home(folder)
    entry = home.shelf.import_file(file)
    (run,) = proof.runs(entry.model.n_layers, ())
    with Line([home.config(entry, *run, apart=False)]) as line:
        return [_opinion(line, prompt, ids) for prompt, ids in answers]


def _opinion(line: Line, prompt: Sequence[int], ids: Sequence[int]) -> Opinion:
    line.forget(0, 0)
    line.begin(0, len(prompt))
    scores: dict[int, Any] = {}
    for at in range(0, len(prompt), CHUNK):
        part = prompt[at : at + CHUNK]
        scores = line.step([Segment(0, len(part), at)], part)
    gaps = []
    for place, token in enumerate(ids):
        row = scores[0]
        gaps.append(float(row.max() - row[token]))
        scores = line.step([Segment(0, 1, len(prompt) + place)], [token])
    return Opinion(float(np.mean(gaps)), float(np.mean([gap == 0 for gap in gaps])))


async def opinions_of(
    folder: Path, file: Path, answers: Sequence[tuple[Sequence[int], Sequence[int]]]
) -> list[Opinion]:
    """The same, beside the loop."""
    return await asyncio.to_thread(opinions, folder, file, answers)
