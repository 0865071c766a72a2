"""A placement is used only after a known answer: the same twice, finite, and that of one machine."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator
from dataclasses import replace

import pytest

from app.core.errors import StageLost
from app.core.scheduler.schedule import FIRST_S
from app.inference.pipeline.result_checks import (
    ANSWER_TOKENS,
    REPEAT_TOLERANCE,
    SPLIT_TOLERANCE,
    KnownAnswer,
    Logprobs,
    agree,
    check_known_answer,
    fits_whole_prompt,
)
from app.inference.pipeline.sequence import Finish, Request, Token
from backends.contract import GREEDY
from tests.inference.pool import N_LAYERS, pool, shape

SURE: Logprobs = ((7, -0.1), (7, -0.1), (3, -2.5))
TIED: Logprobs = ((3, -0.70), (3, -0.70), (7, -0.71))


def off_by(step: Logprobs, logs: float) -> Logprobs:
    return tuple((token, log - logs) for token, log in step)


@pytest.mark.parametrize(
    ("logprobs", "other", "tolerance", "same"),
    [
        ((SURE, SURE), (SURE, SURE), REPEAT_TOLERANCE, True),
        ((SURE,), (off_by(SURE, 0.05),), REPEAT_TOLERANCE, True),
        ((SURE,), (off_by(SURE, 0.5),), REPEAT_TOLERANCE, False),
        ((SURE,), (off_by(SURE, 0.5),), SPLIT_TOLERANCE, True),
        ((SURE,), (((9, -0.1), (9, -0.1)),), SPLIT_TOLERANCE, False),
        ((TIED, SURE), (((7, -0.70), (7, -0.70), (3, -0.72)), TIED), REPEAT_TOLERANCE, True),  # fell otherwise
        ((SURE, SURE), (SURE,), REPEAT_TOLERANCE, False),
    ],
)
def test_what_agrees(logprobs: tuple[Logprobs, ...], other: tuple[Logprobs, ...], tolerance: float, same: bool) -> None:
    assert agree(KnownAnswer(logprobs), KnownAnswer(other), tolerance) is same


async def test_a_split_says_what_one_machine_says() -> None:
    async with pool(N_LAYERS) as whole:
        known = await check_known_answer(whole.pipeline.generate, shape(), "m", None)
    assert len(known.steps) == ANSWER_TOKENS
    async with pool(3, 2, 3) as split:
        results = await check_known_answer(split.pipeline.generate, shape(), "m", known)
        after = split.pipeline.state_for(Request((1,), GREEDY, 1))
    assert agree(known, results, REPEAT_TOLERANCE)
    assert after.usual_s == FIRST_S  # that was nobody's request: the next ones take longer


async def test_a_split_that_says_something_else_than_one_machine_is_not_used() -> None:
    async with pool(3, 2, 3) as split:
        result = await check_known_answer(split.pipeline.generate, shape(), "m", None)
        items = tuple(tuple((token + 1, log) for token, log in step) for step in result.steps)
        with pytest.raises(StageLost) as raised:
            await check_known_answer(split.pipeline.generate, shape(), "m", KnownAnswer(items))
    assert raised.value.reason.code == "proof_differs"


async def test_a_context_too_short_for_the_question_is_no_other_answer() -> None:
    """Less of the question fits into it: nothing is compared with what was said to the whole."""
    short = shape(context=8, kv_cells=64)
    assert fits_whole_prompt(shape())
    assert not fits_whole_prompt(short)
    async with pool(N_LAYERS) as whole:
        known = await check_known_answer(whole.pipeline.generate, shape(), "m", None)
    async with pool(3, 2, 3, form=short) as split:
        result = await check_known_answer(split.pipeline.generate, short, "m", known)
    assert not agree(known, result, SPLIT_TOLERANCE)


class Moody:
    """A pipeline that says these, one after the other."""

    def __init__(self, *steps: Logprobs) -> None:
        self._steps = list(steps)

    async def generate(self, request: Request) -> AsyncGenerator[Token | Finish, None]:
        step = self._steps.pop(0)
        yield Token(step[0][0] if step else 0, step)


@pytest.mark.parametrize("second", [off_by(SURE, 1.0), off_by(SURE, math.inf), ((1, -3.0),)])
async def test_what_is_not_the_same_twice_is_not_used(second: Logprobs) -> None:
    with pytest.raises(StageLost) as raised:
        await check_known_answer(Moody(SURE, second).generate, shape(), "m", None)
    assert raised.value.reason.code == "proof_unsteady"


async def test_no_answer_proves_nothing() -> None:
    with pytest.raises(StageLost):
        await check_known_answer(Moody((), ()).generate, shape(), "m", None)


async def test_a_context_of_few_positions_is_enough() -> None:
    small = replace(shape(), context=8, kv_cells=64, slots=1)
    async with pool(N_LAYERS, form=small) as whole:
        assert (await check_known_answer(whole.pipeline.generate, small, "m", None)).steps
