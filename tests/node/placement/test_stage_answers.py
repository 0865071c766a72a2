"""Tests that lenders' answers reach those who wait for them, and leave nothing behind."""

from __future__ import annotations

import asyncio
import gc

import pytest

from app.core.errors import AppError, DoesNotFit, Fact, StageLost, Unreachable
from app.core.ids import MachineId, PipelineId
from app.core.reasons import said
from app.network import messages
from app.node.models.load_queue import short_lender
from app.node.placement.lenders import StageAnswers

ATTIC = MachineId("a" * 64)
ONE = PipelineId(b"1" * 16)
READY = messages.StageReady(pipeline=ONE.hex(), epoch=1, memory_bytes=5, fetched_bytes=0)
TOO_LARGE = messages.StageFailed(
    pipeline=ONE.hex(),
    code="lend_too_large",
    facts={"needed_bytes": 3 << 30, "free_bytes": 1 << 30, "lent_bytes": 2 << 30},
)


async def answered(message: messages.StageReady | messages.StageFailed) -> messages.StageReady:
    answers = StageAnswers()
    with answers.expect(ATTIC, ONE) as ready:
        answers.receive(ATTIC, "attic", message)  # before anybody waits
        return await ready()


async def test_a_quick_answer_is_not_missed() -> None:
    assert await answered(READY) == READY


async def test_a_lender_that_is_short_is_named_with_what_it_has() -> None:
    with pytest.raises(DoesNotFit) as caught:
        await answered(TOO_LARGE)
    assert "attic" in said(caught.value)
    assert short_lender(caught.value) == (ATTIC, 1 << 30)


async def test_a_lender_that_fails_names_no_other_machine() -> None:
    facts: dict[str, Fact] = {"machine": "kitchen", "worker": "kitchen", "how": "x", "words": "", "cause": "x"}
    for code in ("stage_sent_odd", "stage_missing", "worker_died", "proof_differs"):
        with pytest.raises(AppError) as caught:
            await answered(messages.StageFailed(pipeline=ONE.hex(), code=code, facts=messages.sent_facts(facts)))
        assert said(caught.value).startswith("attic")
        assert "kitchen" not in said(caught.value)


@pytest.mark.parametrize("error", [DoesNotFit("lender_said", machine="attic", what="No."), DoesNotFit("disk_full")])
def test_other_errors_name_no_short_lender(error: DoesNotFit) -> None:
    assert short_lender(error) is None


async def test_an_order_that_was_not_sent_leaves_nothing() -> None:
    answers = StageAnswers()
    unseen: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, subject: unseen.append(str(subject)))

    async def unsent() -> None:
        with answers.expect(ATTIC, ONE):
            answers.link_lost(ATTIC, "attic")
            raise Unreachable("link_lost", name="attic")

    with pytest.raises(Unreachable):
        await unsent()
    assert not answers._waiting
    gc.collect()
    await asyncio.sleep(0)
    assert not unseen


async def test_a_link_that_ends_ends_the_waiting() -> None:
    answers = StageAnswers()

    async def waiting() -> AppError | None:
        with answers.expect(ATTIC, ONE) as ready:
            try:
                await ready()
            except AppError as error:
                return error
        return None

    async with asyncio.TaskGroup() as group:
        task = group.create_task(waiting(), name="wait for an answer")
        await asyncio.sleep(0)
        answers.link_lost(ATTIC, "attic")
    error = task.result()
    assert isinstance(error, StageLost)
    assert error.reason.code == "stage_unreachable"
