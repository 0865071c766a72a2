"""Chats on models whose slots cannot be cut back by position: what was computed is not computed again."""

from __future__ import annotations

import asyncio

import pytest

from app.inference.pipeline.pipeline import Pipeline
from backends.contract import CheckpointRule
from tests.inference.pool import answer, pool, request, shape

RECURRENT = shape(recurrent=True)
SIZES = (2, 3, 3)


async def turn(pipeline: Pipeline, ids: list[int], n: int = 8) -> tuple[list[int], int]:
    """The answer's tokens, and how many of the prompt's were reused."""
    said, finish = await answer(pipeline, request(ids, n, conversation="one"))
    return said, finish.figures.reused_tokens


async def fresh(ids: list[int], n: int = 8) -> list[int]:
    """Return the tokens of a pipeline that has seen nothing before."""
    async with pool(*SIZES) as built:
        return (await answer(built.pipeline, request(ids, n)))[0]


PROMPT = [3 + n % 90 for n in range(70)]
MORE = [40, 41, 42, 43]


@pytest.mark.long
async def test_a_second_turn_does_not_pay_for_the_first_again() -> None:
    async with pool(*SIZES, form=RECURRENT) as built:
        said, reused = await turn(built.pipeline, PROMPT)
        assert reused == 0
        assert said == await fresh(PROMPT)
        second = PROMPT + said + MORE
        again, reused = await turn(built.pipeline, second)
        assert reused == len(PROMPT) + len(said) - 1  # its last token was sampled, and never entered
        assert again == await fresh(second)


async def test_an_answer_that_comes_back_otherwise_goes_on_from_its_prompt() -> None:
    async with pool(*SIZES, form=RECURRENT) as built:
        said, _ = await turn(built.pipeline, PROMPT)
        other = PROMPT + said[:3] + MORE
        again, reused = await turn(built.pipeline, other)
        assert reused == len(PROMPT)
        assert again == await fresh(other)


async def test_a_changed_prompt_is_read_from_its_start() -> None:
    async with pool(*SIZES, form=RECURRENT) as built:
        await turn(built.pipeline, PROMPT)
        changed = PROMPT[:50] + MORE
        again, reused = await turn(built.pipeline, changed)
        assert reused == 0
        assert again == await fresh(changed)


async def test_answers_of_several_at_once_are_those_of_each_alone() -> None:
    prompts = [PROMPT[n : n + 40 + n] for n in range(6)]
    async with pool(*SIZES, form=RECURRENT) as built:
        together = await asyncio.gather(*(answer(built.pipeline, request(prompt, 12)) for prompt in prompts))
    assert [said for said, _ in together] == [await fresh(prompt, 12) for prompt in prompts]


async def test_the_last_run_and_the_first_in_one_trip_would_compute_too_much() -> None:
    """An answer that ends is noticed before anything of it enters that would have to be taken back."""
    async with pool(*SIZES, form=RECURRENT) as built:
        for n in (1, 2, 5):
            assert await turn(built.pipeline, [*PROMPT, n + 10], n) is not None
        assert built.pipeline.lost is None


async def test_where_states_cost_more_than_reading_the_prompt_is_read_again() -> None:
    by_cost = shape(recurrent=True, keep=CheckpointRule(2, len(PROMPT) + 1))
    async with pool(*SIZES, form=by_cost) as built:
        said, _ = await turn(built.pipeline, PROMPT)
        other = PROMPT + said[:3] + MORE
        again, reused = await turn(built.pipeline, other)
        assert reused == 0
        assert again == await fresh(other)
        onward = other + again + MORE
        _, reused = await turn(built.pipeline, onward)
        assert reused == len(other) + len(again) - 1  # what was only continued needs no state
