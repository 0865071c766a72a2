"""Answers of models whose slots cannot be cut back by position go on without the machine that died, too."""

from __future__ import annotations

import asyncio
import random

import pytest

from tests.inference.pool import pool, request, shape
from tests.inference.test_recovery import SLOW, hear, kill
from tests.simulation.truth import undisturbed


@pytest.mark.many(keep=1)
@pytest.mark.parametrize("owner", ["host", "lender"])
@pytest.mark.parametrize("at", [1, 20, 58])
async def test_a_killed_worker_changes_no_token(owner: str, at: int) -> None:
    form, query = shape(recurrent=True), request("tell me " * 10, 60)
    async with pool(2, 4, 2, paths=[SLOW], rebuilds=True, form=form) as built:
        ids, _, finish = await hear(built.pipeline, query, {at: kill(built, owner)})
    assert ids == undisturbed(query, form)
    assert len(finish.figures.recoveries) == 1


@pytest.mark.many(keep=1)
@pytest.mark.parametrize("seed", range(4))
async def test_many_answers_survive_two_deaths(seed: int) -> None:
    form, chance = shape(recurrent=True, slots=4), random.Random(seed)
    requests = [request("x" * chance.randrange(1, 200), chance.randrange(1, 60)) for _ in range(9)]
    async with pool(2, 4, 2, paths=[SLOW], rebuilds=True, form=form) as built:
        hearing = asyncio.gather(*(hear(built.pipeline, query) for query in requests))
        for owner in chance.sample(["host", "lender", "lender"], 2):
            await asyncio.sleep(0.05 + chance.random() * 0.1)
            if built.pipeline.news is None:
                kill(built, owner)()
        heard = await hearing
    assert [ids for ids, _, _ in heard] == [undisturbed(query, form) for query in requests]
