"""Guessed tokens in flight on the fake engine: no token changes, whatever is guessed and however an answer ends."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import replace

import pytest

from app.core.speculation.overlap import SpeculationGain
from app.inference.pipeline.pipeline import Pipeline
from app.inference.pipeline.sequence import Token
from backends.contract import GREEDY, Sampling
from backends.frames import FrameKind
from tests.inference.guessers import Oracle
from tests.inference.pipeline.test_pipeline import kinds_sent, until_idle
from tests.inference.pool import answer, pool, request, shape
from tests.simulation.truth import undisturbed

TEXTS = ("hello", "x" * 200)
CREATIVE = Sampling(temperature=50.0, top_k=0, top_p=1.0, min_p=0.0, seed=7, repeat_penalty=1.3)
N_TOKENS = 20
SPLITS = ((2, 4, 2), (1, 2, 2, 2, 1))
TRUTHS = (0.0, 0.5, 1.0)
KNOWN = {
    (text, how): undisturbed(request(text, 60, sampling=how), shape()) for text in TEXTS for how in (GREEDY, CREATIVE)
}


@pytest.fixture
def oracle(monkeypatch: pytest.MonkeyPatch) -> Oracle:
    result = Oracle(1.0)
    for (text, _), said in KNOWN.items():
        result.knows(request(text).ids, said)
    result.speaks(monkeypatch)
    return result


@pytest.mark.long
@pytest.mark.parametrize("sizes", SPLITS)
async def test_guesses_change_no_token(sizes: tuple[int, ...], oracle: Oracle) -> None:
    async with pool(*sizes, form=shape(slots=3)) as built:
        for oracle.truth in TRUTHS:
            await every_text(built.pipeline, oracle.truth)
            await company(built.pipeline)
        oracle.truth = 1.0
        for cut_at in range(1, 5):
            await stopped_among_guesses(built.pipeline, cut_at)
        assert built.pipeline.lost is None


async def every_text(pipeline: Pipeline, truth: float) -> None:
    for (text, how), said in KNOWN.items():
        ids, finish = await answer(pipeline, request(text, N_TOKENS, sampling=how))
        assert ids == said[:N_TOKENS]
        figures = finish.figures
        if truth == 1.0:
            assert figures.guessed_right == figures.guessed > N_TOKENS // 2
            assert 0 < figures.guess_runs <= figures.guessed
            assert figures.drafted_right == 0
            assert 0 <= figures.guess_took_s <= finish.figures.answer_tokens  # far less than a second for each token
            assert (figures.guess_plain_s > 0) == (figures.guess_took_s > 0)
        elif truth == 0.0:
            assert (figures.guessed_right, figures.guessed > 4) == (0, True)
        else:
            assert 0 < figures.guessed_right < figures.guessed


async def company(pipeline: Pipeline) -> None:
    """Answers come, go and are cancelled: guesses fill what they leave, and disturb nobody."""
    other = asyncio.gather(answer(pipeline, request("x" * 200, 40)))
    for n_read in (0, 1, 5):
        async with aclosing(pipeline.generate(request("hello", 40))) as stream:
            for index in range(n_read):
                item = await anext(stream)
                assert isinstance(item, Token)
                assert item.id == KNOWN["hello", GREEDY][index]
    assert (await other)[0][0] == KNOWN["x" * 200, GREEDY][:40]
    requests = [request(text, N_TOKENS, sampling=how) for text, how in KNOWN]
    together = await asyncio.gather(*(answer(pipeline, query) for query in requests))
    assert [ids for ids, _ in together] == [said[:N_TOKENS] for said in KNOWN.values()]
    await until_idle(pipeline)


async def stopped_among_guesses(pipeline: Pipeline, cut_at: int) -> None:
    """All that was guessed beyond the end is forgotten: the next turn finds its own past at once, no more."""
    whole = KNOWN["hello", GREEDY]
    end = whole[cut_at]
    said = whole[: whole.index(end)]
    known = [*request("hello").ids, *said]
    name = f"stopped at {cut_at}"
    query = request("hello", 40, end=[end], conversation=name)
    assert (await answer(pipeline, query))[0] == said
    again = request([*known, 7], 12, conversation=name)
    ids, finish = await answer(pipeline, again)
    assert finish.figures.reused_tokens >= len(known) - 1
    assert ids == undisturbed(again, shape())


async def test_a_right_guess_is_computed_once_and_none_beyond_the_context(oracle: Oracle) -> None:
    whole = KNOWN["hello", GREEDY]
    async with pool(1, 3, 3, 1, form=shape(slots=1, kv_cells=20, context=20, checks=False)) as built:
        kinds = kinds_sent(built.host)
        _, finish = await answer(built.pipeline, request("hello", 15))
        assert [stage.steps for stage in finish.figures.stages] == [15] * 4
        assert kinds.count(FrameKind.FORGET) == 0
        for oracle.truth in TRUTHS:
            wish = request("hello", 100, conversation="c")
            ids, finish = await answer(built.pipeline, wish)
            assert (ids, finish.reason) == (whole[:15], "length")
            for n in (1, 2, 3, 4):
                wish = request("hello", n, conversation="c")
                ids, finish = await answer(built.pipeline, wish)
                assert (ids, finish.reason) == (whole[:n], "length")
        assert built.pipeline.lost is None


async def guessed(pipeline: Pipeline, *texts: str, speculates: bool = True) -> int:
    requests = [replace(request(text, N_TOKENS), guesses=speculates) for text in texts]
    every = await asyncio.gather(*(answer(pipeline, query) for query in requests))
    for text, (ids, _) in zip(texts, every, strict=True):
        assert ids == KNOWN[text, GREEDY][:N_TOKENS]
    return sum(finish.figures.guessed for _, finish in every)


async def test_only_where_machines_would_stand_idle(oracle: Oracle) -> None:
    """None if it is turned off, if there are as many answers as machines, or if a state cannot be cut back."""
    assert oracle.truth == 1.0
    async with pool(2, 4, 2, form=shape(checks=False)) as built:
        assert await guessed(built.pipeline, "hello", speculates=False) == 0
        assert await guessed(built.pipeline, "hello") > 0
        assert await guessed(built.pipeline, *TEXTS * 2) <= 8  # at the ends, when one is left
    async with pool(2, 4, 2, form=shape(recurrent=True)) as built:
        assert await guessed(built.pipeline, "hello") == 0


async def test_a_text_that_repeats_is_guessed_and_any_other_hardly(monkeypatch: pytest.MonkeyPatch) -> None:
    """No oracle is used. The fake's tokens depend on all before, so only a bias makes a text repeat."""
    loop = Sampling(temperature=0.0, logit_bias=((100, 100.0),))
    monkeypatch.setattr(SpeculationGain, "pays", lambda _self, chance: chance > 0.3)  # of no busy test machine
    async with pool(2, 4, 2) as built:
        plain, finish = await answer(built.pipeline, request("hello", 60))
        assert plain == KNOWN["hello", GREEDY]
        assert finish.figures.guessed < 6
        ids, finish = await answer(built.pipeline, request("hello", 60, sampling=loop))
        assert ids == [100] * 60
        assert finish.figures.guessed_right == finish.figures.guessed > 30
