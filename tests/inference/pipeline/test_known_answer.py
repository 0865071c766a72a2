"""A placement is used only after a known answer: the same twice, finite, and that of one machine."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator
from dataclasses import replace

import pytest

from app.core.errors import StageLost
from app.core.scheduler.schedule import FIRST_S
from app.inference.pipeline.known_answer import KNOWN, PROOF_TOKENS, SAME, Likely, Proof, agree, is_asked_whole, prove
from app.inference.pipeline.sequence import Finish, Request, Token
from backends.contract import GREEDY
from tests.inference.pool import N_LAYERS, pool, shape

SURE: Likely = ((7, -0.1), (7, -0.1), (3, -2.5))
TIED: Likely = ((3, -0.70), (3, -0.70), (7, -0.71))


def off_by(step: Likely, logs: float) -> Likely:
    return tuple((token, log - logs) for token, log in step)


@pytest.mark.parametrize(
    ("one", "other", "tolerance", "same"),
    [
        ((SURE, SURE), (SURE, SURE), SAME, True),
        ((SURE,), (off_by(SURE, 0.05),), SAME, True),
        ((SURE,), (off_by(SURE, 0.5),), SAME, False),
        ((SURE,), (off_by(SURE, 0.5),), KNOWN, True),
        ((SURE,), (((9, -0.1), (9, -0.1)),), KNOWN, False),
        ((TIED, SURE), (((7, -0.70), (7, -0.70), (3, -0.72)), TIED), SAME, True),  # fell otherwise
        ((SURE, SURE), (SURE,), SAME, False),
    ],
)
def test_what_agrees(one: tuple[Likely, ...], other: tuple[Likely, ...], tolerance: float, same: bool) -> None:
    assert agree(Proof(one), Proof(other), tolerance) is same


async def test_a_split_says_what_one_machine_says() -> None:
    async with pool(N_LAYERS) as whole:
        known = await prove(whole.pipeline, shape(), "m", None)
    assert len(known.steps) == PROOF_TOKENS
    async with pool(3, 2, 3) as split:
        found = await prove(split.pipeline, shape(), "m", known)
        after = split.pipeline.standing(Request((1,), GREEDY, 1))
    assert agree(known, found, SAME)
    assert after.usual_s == FIRST_S  # that was nobody's request: the next ones take longer


async def test_a_split_that_says_something_else_than_one_machine_is_not_used() -> None:
    async with pool(3, 2, 3) as split:
        found = await prove(split.pipeline, shape(), "m", None)
        others = tuple(tuple((token + 1, log) for token, log in step) for step in found.steps)
        with pytest.raises(StageLost) as told:
            await prove(split.pipeline, shape(), "m", Proof(others))
    assert told.value.reason.code == "proof_differs"


async def test_a_context_too_short_for_the_question_is_no_other_answer() -> None:
    """Less of the question fits into it: nothing is compared with what was said to the whole."""
    short = shape(context=8, kv_cells=64)
    assert is_asked_whole(shape())
    assert not is_asked_whole(short)
    async with pool(N_LAYERS) as whole:
        known = await prove(whole.pipeline, shape(), "m", None)
    async with pool(3, 2, 3, form=short) as split:
        found = await prove(split.pipeline, short, "m", known)
    assert not agree(known, found, KNOWN)


class Moody:
    """A pipeline that says these, one after the other."""

    def __init__(self, *steps: Likely) -> None:
        self._steps = list(steps)

    async def generate(self, request: Request) -> AsyncGenerator[Token | Finish, None]:
        step = self._steps.pop(0)
        yield Token(step[0][0] if step else 0, step)


@pytest.mark.parametrize("second", [off_by(SURE, 1.0), off_by(SURE, math.inf), ((1, -3.0),)])
async def test_what_is_not_the_same_twice_is_not_used(second: Likely) -> None:
    with pytest.raises(StageLost) as told:
        await prove(Moody(SURE, second), shape(), "m", None)  # type: ignore[arg-type]
    assert told.value.reason.code == "proof_unsteady"


async def test_no_answer_proves_nothing() -> None:
    with pytest.raises(StageLost):
        await prove(Moody((), ()), shape(), "m", None)  # type: ignore[arg-type]


async def test_a_context_of_few_positions_is_enough() -> None:
    small = replace(shape(), context=8, kv_cells=64, slots=1)
    async with pool(N_LAYERS, form=small) as whole:
        assert (await prove(whole.pipeline, small, "m", None)).steps
