"""A family of each kind through the real driver, real workers and a lender's channel."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from app.catalog.families.family_table import FAMILIES
from app.catalog.shelf import Entry
from app.inference.pipeline.pipeline import Pipeline
from app.inference.pipeline.scheduler import PipelineConfig
from app.inference.pipeline.sequence import Request
from app.inference.pipeline.speed_measurement import RequestFigures
from app.inference.stages.stage_client import Run
from app.inference.stages.stage_connection import lent_stage
from app.inference.stages.stage_host import RunOrder, StageHost
from app.network.peer.frame_channel import MemoryChannel
from backends.contract import NumberFormat, Role
from tests.families import proof
from tests.families.driven import HERE, Workers, opened
from tests.families.fixtures import families
from tests.families.home import CELLS, CONTEXT, ROWS, SLOTS, Home
from tests.inference.guessers import Oracle
from tests.inference.pool import answer, request

HYBRIDS = [name for name, family in families().items() if FAMILIES[family.architecture].recurrent]
KINDS = ("llama", "gemma2", "gemma3", "glm4", "glm4-moe-mtp", "granite", *HYBRIDS)
MANY = 1 << 40
N_TOKENS = 12


def test_hybrids_of_each_kind_are_among_them() -> None:
    architectures = {families()[name].architecture for name in HYBRIDS}
    assert architectures >= {"qwen35", "qwen3next", "lfm2", "granitehybrid", "nemotron_h"}
    assert architectures >= {"kimi-linear", "falcon-h1"}


@asynccontextmanager
async def pipeline(workers: Workers, home: Home, entry: Entry, cuts: tuple[int, ...]) -> AsyncIterator[Pipeline]:
    """The host's runs in its worker, a lender's in one that it starts; one run is the whole model."""
    model = entry.model
    form = PipelineConfig(SLOTS, CELLS, CONTEXT, model.n_vocab, ROWS, recurrent=model.cuts.later.recurrent)
    async with AsyncExitStack() as stack:
        group = await stack.enter_async_context(asyncio.TaskGroup())
        lender = await stack.enter_async_context(StageHost(lambda: MANY, "lender"))
        stages, serving = [], []
        for layers, role in proof.runs(model.n_layers, cuts):
            config = home.config(entry, layers, role, apart=True)
            if role is Role.MIDDLE:
                run = Run(os.urandom(16), role, model.width, NumberFormat.F32)
                await lender.open(RunOrder(run, CONTEXT, config, 1 << 30, 0, 0))
                near, far = MemoryChannel.pair()
                serving.append(group.create_task(lender.serve(run.pipeline, far), name="serve"))
                stages.append(lent_stage(near, run, "lender"))
            else:
                stages.append((await opened(stack, workers, config, HERE))[0])
        try:
            async with Pipeline(stages, form) as built:
                yield built
        finally:
            for task in serving:
                task.cancel()


async def talk(
    workers: Workers, home: Home, entry: Entry, cuts: tuple[int, ...]
) -> tuple[list[tuple[Request, list[int]]], RequestFigures]:
    """Two answers at once, then a second turn of the first; and the figures of that."""
    group, two = proof.prompts(entry.model.n_vocab)
    async with pipeline(workers, home, entry, cuts) as built:
        first = request(group, N_TOKENS, conversation="a")
        other = request(two, N_TOKENS, conversation="b")
        both = await asyncio.gather(answer(built, first), answer(built, other))
        said = [ids for ids, _ in both]
        later = request([*group, *said[0], *two[:9]], N_TOKENS, conversation="a")
        again, finish = await answer(built, later)
    return [(first, said[0]), (other, said[1]), (later, again)], finish.figures


@pytest.mark.many(keep=4)
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", KINDS)
async def test_a_pool_says_what_one_machine_says(
    name: str, workers: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This holds with right guesses, wrong guesses and none."""
    home = proof.home(tmp_path)
    entry = home.shelf.import_file(families()[name].path)
    whole, _ = await talk(workers, home, entry, ())
    cuts = [*proof.threes(entry.model), *proof.twos(entry.model)][0]
    oracle = Oracle(0.6, silence=0.2)
    for query, said in whole:
        oracle.knows(query.ids, said)
    oracle.speaks(monkeypatch)
    pooled, figures = await talk(workers, home, entry, cuts)
    assert pooled == whole, cuts
    assert figures.reused_tokens == proof.FIRST + N_TOKENS - 1  # the first turn is paid for once
    assert bool(figures.guessed) != entry.model.cuts.later.recurrent
