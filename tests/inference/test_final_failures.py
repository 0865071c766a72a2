"""Tests of errors that a retry would repeat: the answer ends at once by that error, and no machine is lost."""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace

import pytest

from app.core.errors import AppError, StageFailed, StageLost
from app.core.reasons import said
from app.core.recovery.recovery import Notice
from app.inference.pipeline.pipeline import Pipeline
from app.inference.pipeline.sequence import Finish, Request, Token
from app.inference.stages.stage_client import FrameChannel
from backends.contract import GREEDY, NumberFormat, Sampling
from backends.frames import FrameKind, decode_frame, encode_frame
from tests.inference.pool import N_VOCAB, Pool, answer, pool, request, shape

Heard = tuple[list[int], list[Notice], AppError | None]
SLOW = "seconds_per_layer=0.002"
NAN = f"fake:nan_from=60,{SLOW}"  # of a prompt of 55 tokens soon, of a short answer never
SHORT = 40


async def hear(pipeline: Pipeline, query: Request) -> Heard:
    """Tokens, notices, and the error that ended it."""
    ids: list[int] = []
    notices: list[Notice] = []
    try:
        async with aclosing(pipeline.generate(query)) as stream:
            async for item in stream:
                if isinstance(item, Token):
                    ids.append(item.id)
                elif not isinstance(item, Finish):
                    notices.append(item)
    except AppError as error:
        return ids, notices, error
    return ids, notices, None


async def undisturbed() -> list[int]:
    async with pool(2, 4, 2) as built:
        return (await answer(built.pipeline, request("x", SHORT)))[0]


def begins(built: Pool) -> None:
    """The stages begin anew where they are, as app/node/placement/stages.py has it."""
    built.rebuild.making.renews = True


@pytest.mark.many(keep=2)
@pytest.mark.parametrize("number", [NumberFormat.F32, NumberFormat.F16, NumberFormat.Q8])
@pytest.mark.parametrize("place", [0, 1, 2])
async def test_numbers_that_are_not_finite_end_that_answer_and_no_other(place: int, number: NumberFormat) -> None:
    """The cases cover the first run, a lender, and the run that samples tokens."""
    expected = await undisturbed()
    paths = [f"fake:{SLOW}"] * 3
    paths[place] = NAN
    async with pool(2, 4, 2, paths=paths, number=number, rebuilds=True, renews=True) as built:
        future = asyncio.gather(*(hear(built.pipeline, request("x", SHORT)) for _ in range(2)))
        await asyncio.sleep(0.1)
        ids, notices, error = await hear(built.pipeline, request("x" * 55, 30))
        assert isinstance(error, StageFailed)
        assert error.reason.code == "numbers_not_finite"
        assert "lender" not in said(error)
        assert "lost" not in [notice.state for notice in notices]
        assert len(ids) == 6  # what came before is right, and nothing was computed twice for it
        for other, reports, ended in await future:
            assert (other, ended) == (expected, None)
            assert all("lender" not in said(notice.reason) for notice in reports)
        assert built.rebuild.planned == [frozenset()]
        assert (await answer(built.pipeline, request("x", SHORT)))[0] == expected  # still loaded


@pytest.mark.long
async def test_one_that_fails_often_costs_the_others_nothing() -> None:
    expected = await undisturbed()
    paths = [f"fake:{SLOW}", NAN, f"fake:{SLOW}"]
    async with pool(2, 4, 2, paths=paths, rebuilds=True, renews=True) as built:
        other = asyncio.gather(hear(built.pipeline, request("x", SHORT)))
        for _ in range(5):  # more often than an answer is recovered
            assert (await hear(built.pipeline, request("x" * 70, 9)))[2] is not None
        [(ids, _, error)] = await other
        assert (ids, error) == (expected, None)


async def test_an_engine_that_cannot_compute_is_not_asked_again() -> None:
    paths = ["fake:error_at=5", "fake:", "fake:"]
    async with pool(2, 4, 2, paths=paths, rebuilds=True) as built:
        ids, notices, error = await hear(built.pipeline, request("x", 30))
        assert isinstance(error, StageFailed)
        assert error.reason.code == "stage_failed"
        assert "asked to fail" in said(error)
        assert "lender" not in said(error)
        assert len(ids) == 3  # the fourth came with the step that failed
        assert not notices
        assert not built.rebuild.planned
        assert built.pipeline.lost is not None
        assert built.pipeline.lost.reason == error.reason


@pytest.mark.long
async def test_what_a_lender_says_of_its_engine_is_no_other_machines() -> None:
    """Its layers go elsewhere, and the answer on; where they fail once more, another one's engine says the same."""
    expected = await undisturbed()
    paths = ["fake:", "fake:error_at=5", "fake:"]
    async with pool(2, 4, 2, paths=paths, rebuilds=True) as built:
        built.pipeline._stages[1].key = "id-1"
        built.rebuild.making.paths = ["fake:"]
        ids, notices, error = await hear(built.pipeline, request("x", SHORT))
        assert (ids, error) == (expected, None)
        assert built.rebuild.planned == [frozenset({"id-1"})]
        assert "asked to fail" in said(notices[0].reason)
    async with pool(2, 4, 2, paths=["fake:", "fake:error_at=1", "fake:"], rebuilds=True) as built:
        ids, _, error = await hear(built.pipeline, request("x", SHORT))
        assert isinstance(error, StageLost)
        assert "its engine could not compute this" in said(error)
        assert not ids
        assert len(built.rebuild.planned) == 1


@pytest.mark.long
async def test_who_only_waits_goes_on_after_a_step_of_others_failed() -> None:
    # 9 steps take 180 ms, so the second question is waiting when the step fails, on a quick computer too.
    paths = ["fake:error_at=9,seconds_per_layer=0.01", "fake:", "fake:"]
    async with pool(2, 4, 2, paths=paths, form=shape(slots=1), rebuilds=True) as built:
        first = asyncio.gather(hear(built.pipeline, request("x", 30)))
        await asyncio.sleep(0.05)
        built.rebuild.making.paths = ["fake:"]
        later = asyncio.gather(hear(built.pipeline, request("x", 5)))
        [(_, _, error)], [(ids, _, fine)] = await first, await later
        assert isinstance(error, StageFailed)
        assert (len(ids), fine) == (5, None)


async def test_memory_that_runs_out_on_this_machine_is_not_looked_for_three_times() -> None:
    paths = ["fake:short_at=5", "fake:"]
    async with pool(2, 4, 2, paths=paths, rebuilds=True) as built:
        _, _, error = await hear(built.pipeline, request("x", 30))
        assert error is not None
        assert error.reason.code == "worker_memory_short"
        assert not built.rebuild.planned


@pytest.mark.long
async def test_a_process_that_crashes_is_started_once_more_and_not_twice() -> None:
    """The crash may have been chance. Otherwise the next request does not wait for the process again."""
    paths = ["fake:", "fake:die_at=1", "fake:"]  # each time it is built anew
    async with pool(2, 4, 2, paths=paths, rebuilds=True) as built:
        ids, notices, error = await hear(built.pipeline, request("x", 30))
        assert error is not None
        assert error.reason.code == "answer_ends_process"
        assert not ids
        assert [notice.state for notice in notices].count("lost") == 1
        assert len(built.rebuild.planned) == 1


@pytest.mark.many(keep=1)
@pytest.mark.parametrize("place", [1, 0, 2])
async def test_an_answer_that_crashes_processes_ends_alone(place: int) -> None:
    """The first time it may be a machine; the second time it was in the step alone, and no machine is left out."""
    expected, paths = await undisturbed(), [f"fake:{SLOW}"] * 3
    paths[place] = f"fake:die_from=60,{SLOW}"
    async with pool(2, 4, 2, paths=paths, rebuilds=True) as built:
        built.pipeline._stages[1].key = "id-1"
        future = asyncio.gather(*(hear(built.pipeline, request("x", SHORT)) for _ in range(3)))
        await asyncio.sleep(0.1)
        ids, _, error = await hear(built.pipeline, request("x" * 55, 30))
        assert isinstance(error, StageFailed)
        assert error.reason.code == "answer_ends_process"
        assert len(ids) == 6  # what came before is right
        for other, notices, ended in await future:
            assert (other, ended) == (expected, None)
            assert "Continued" in said(notices[-1].reason)
        assert len(built.rebuild.planned) == 2
        assert not built.rebuild.failures.left_out()


@pytest.mark.parametrize(
    ("sampling", "code", "rebuilt"),
    [
        (replace(GREEDY, logit_bias=((5, -1.0),)), "answer_ends_process", 2),
        (replace(GREEDY, repeat_penalty=1.1), "answer_ends_process", 2),
        (GREEDY, "recovery_too_often", 3),  # any answer is computed so: no sign of this one
    ],
)
async def test_a_process_that_vanishes_is_the_doing_of_an_answer_that_asks_for_more_than_a_draw(
    sampling: Sampling, code: str, rebuilt: int
) -> None:
    expected = await undisturbed()
    path = f"fake:vanish_from=60,{SLOW}"
    async with pool(8, paths=[path], rebuilds=True) as built:
        other = asyncio.gather(hear(built.pipeline, request("x", SHORT)))
        await asyncio.sleep(0.1)
        ids, _, error = await hear(built.pipeline, request("x" * 55, 30, sampling=sampling))
        assert error is not None
        assert error.reason.code == code
        assert len(built.rebuild.planned) == rebuilt
        assert len(ids) == 6
        [(group, _, ended)] = await other
        assert code != "answer_ends_process" or (group, ended) == (expected, None)


async def test_what_fails_at_once_ends_the_answer_whose_it_is_and_not_who_shared_its_step() -> None:
    expected, paths = await undisturbed(), [f"fake:error_from=60,{SLOW}", f"fake:{SLOW}"]
    async with pool(2, 4, 2, paths=paths, rebuilds=True) as built:
        future = asyncio.gather(*(hear(built.pipeline, request("x", SHORT)) for _ in range(3)))
        await asyncio.sleep(0.1)
        ids, _, error = await hear(built.pipeline, request("x" * 55, 30))
        assert error is not None
        assert error.reason.code in ("stage_failed", "answer_ends_process")
        assert len(ids) == 6
        for other, _, ended in await future:
            assert (other, ended) == (expected, None)


async def test_a_choice_that_cannot_be_made_ends_the_answer_that_asked_for_it() -> None:
    """No token is left to choose: that is the request's fault, and nobody else's."""
    expected = await undisturbed()
    nothing = Sampling(temperature=0.0, logit_bias=tuple((n, float("-inf")) for n in range(300)))
    async with pool(2, 4, 2, paths=[f"fake:{SLOW}"], rebuilds=True, renews=True) as built:
        other = asyncio.gather(hear(built.pipeline, request("x", SHORT)))
        await asyncio.sleep(0.1)
        ending = Request(tuple(range(3, 9)), nothing, 5)
        _, _, error = await hear(built.pipeline, ending)
        [(ids, _, fine)] = await other
        assert error is not None
        assert (ids, fine) == (expected, None)


async def test_a_frame_of_ours_that_a_lender_refuses_is_not_called_its_loss() -> None:
    async with pool(2, 4, 2, rebuilds=True, peers=True) as built:
        lent = built.lenders[0]._open[built.lent[0]]
        lent.agreed = type(lent.agreed)(
            lent.agreed.pipeline, lent.agreed.width + 1, lent.agreed.number, lent.agreed.slots, lent.agreed.context
        )  # fmt: skip  as if both sides had agreed on something else
        _, _, error = await hear(built.pipeline, request("x", 5))
        assert isinstance(error, StageLost)
        assert error.reason.code == "stage_bad_step"
        assert "bug in Poolhouse" in said(error)


class Odd:
    """A channel by which one answer of a lender comes with numbers that are not finite."""

    def __init__(self, inner: FrameChannel, after: list[int]) -> None:
        self._inner, self._after = inner, after

    async def send(self, frame: bytes) -> None:
        await self._inner.send(frame)

    async def deliver(self, to: Callable[[bytes], None]) -> None:
        def changed(data: bytes) -> None:
            frame = decode_frame(data)
            if frame.kind is FrameKind.OUTPUT:
                self._after[0] -= 1
                if self._after[0] == 0:
                    data = data[: -len(frame.payload)] + b"\xff" * len(frame.payload)
            to(data)

        await self._inner.deliver(changed)

    async def close(self) -> None:
        await self._inner.close()


@pytest.mark.long
async def test_who_sends_numbers_that_cannot_be_used_is_left_out_and_not_who_got_them() -> None:
    expected = await undisturbed()
    after = [7]
    async with pool(
        2, 2, 2, 2, number=NumberFormat.F32, rebuilds=True, wrap=lambda frame_channel: Odd(frame_channel, after)
    ) as built:
        for place, stage in enumerate(built.pipeline._stages[1:3], 1):
            stage.key = f"id-{place}"
        ids, notices, error = await hear(built.pipeline, request("x", SHORT))
        assert (ids, error) == (expected, None)
        [planned] = built.rebuild.planned
        assert len(planned) == 1
        assert "sent invalid numbers" in said(notices[0].reason)
        assert notices[0].machine == f"lender-{next(iter(planned)).removeprefix('id-')}"


class Says:
    """A channel by which a lender, in place of one answer, ends its layers with words of its own choice."""

    def __init__(self, inner: FrameChannel, after: list[int], code: str, **facts: object) -> None:
        self._inner, self._after = inner, after
        self._payload = json.dumps({"code": code, "facts": facts}).encode()

    async def send(self, frame: bytes) -> None:
        await self._inner.send(frame)

    async def deliver(self, to: Callable[[bytes], None]) -> None:
        def changed(data: bytes) -> None:
            frame = decode_frame(data)
            if frame.kind is FrameKind.OUTPUT:
                self._after[0] -= 1
                if self._after[0] == 0:
                    lost = replace(frame, kind=FrameKind.LOST, segments=(), payload=self._payload)
                    data = encode_frame(lost)
            to(data)

        await self._inner.deliver(changed)

    async def close(self) -> None:
        await self._inner.close()


async def test_who_refuses_numbers_that_can_be_used_is_left_out_and_not_who_sent_them() -> None:
    """The rows are kept here as they were sent, so a claim alone blames nobody."""
    expected, made = await undisturbed(), list[FrameChannel]()

    def second(channel: FrameChannel) -> FrameChannel:
        made.append(channel)
        return Says(channel, [7], "stage_input_odd", cause="odd") if len(made) == 2 else channel

    async with pool(2, 2, 2, 2, rebuilds=True, wrap=second) as built:
        for place, stage in enumerate(built.pipeline._stages[1:3], 1):
            stage.key = f"id-{place}"
        ids, notices, error = await hear(built.pipeline, request("x", SHORT))
        assert (ids, error) == (expected, None)
        assert built.rebuild.planned == [frozenset({"id-2"})]
        assert [notice.machine for notice in notices] == ["lender-2"] * len(notices)
        assert "lender-1" not in "".join(said(notice.reason) for notice in notices)


@pytest.mark.long
@pytest.mark.parametrize(
    ("code", "facts"),
    [
        ("stage_lost", {"machine": "kitchen"}),
        ("stage_sent_odd", {"machine": "kitchen"}),
        ("grammar_refused", {"cause": "kitchen"}),
        ("api_key_gone", {"name": "kitchen"}),
        ("model_not_loaded", {"name": "kitchen", "cause": "kitchen"}),
    ],
)
async def test_a_lender_ends_no_answer_and_names_no_machine_by_a_word(code: str, facts: dict[str, object]) -> None:
    expected = await undisturbed()
    after = [7]
    async with pool(
        2, 4, 2, rebuilds=True, wrap=lambda frame_channel: Says(frame_channel, after, code, **facts)
    ) as built:
        ids, notices, error = await hear(built.pipeline, request("x", SHORT))
        assert (ids, error) == (expected, None)
        assert "kitchen" not in "".join(said(notice.reason) for notice in notices)
        assert notices[0].machine == "lender-1"


@pytest.mark.long
async def test_a_lender_ends_no_answer_that_it_does_not_compute() -> None:
    expected, after = await undisturbed(), [30]
    facts = {"cause": "odd", "slots": "0,1,2,3"}
    async with pool(
        2, 4, 2, paths=[f"fake:{SLOW}"], rebuilds=True, renews=True,
        wrap=lambda frame_channel: Says(frame_channel, after, "numbers_not_finite", **facts),
    ) as built:  # fmt: skip
        coroutines = [hear(built.pipeline, request("x", SHORT)) for _ in range(3)]
        heard = await asyncio.gather(*coroutines)
        ended = [ids for ids, _, error in heard if error is None]
        assert 0 < len(ended) < 3
        assert all(ids == expected for ids in ended)


class Another:
    """A channel by which one answer of a lender comes changed."""

    def __init__(
        self, inner: FrameChannel, after: list[int], kind: FrameKind, change: Callable[[bytes], bytes]
    ) -> None:
        self._inner, self._after, self._kind, self._change = inner, after, kind, change

    async def send(self, frame: bytes) -> None:
        await self._inner.send(frame)

    async def deliver(self, to: Callable[[bytes], None]) -> None:
        def changed(data: bytes) -> None:
            frame = decode_frame(data)
            if frame.kind is self._kind:
                self._after[0] -= 1
                if self._after[0] == 0:
                    data = encode_frame(replace(frame, payload=self._change(bytes(frame.payload))))
            to(data)

        await self._inner.deliver(changed)

    async def close(self) -> None:
        await self._inner.close()


@pytest.mark.long
@pytest.mark.parametrize("token", [-1, N_VOCAB, 1 << 30])
async def test_a_token_that_is_none_is_the_fault_of_who_sampled_it(token: int) -> None:
    """This includes the token that on this machine means that a grammar was too heavy."""
    query, after = request("x", SHORT), [9]
    async with pool(8, away=True) as built:
        expected = (await answer(built.pipeline, query))[0]
    async with pool(
        8, away=True, rebuilds=True,
        wrap=lambda frame_channel: Another(frame_channel, after, FrameKind.SAMPLED, lambda _: struct.pack("<i", token)),
    ) as built:  # fmt: skip
        ids, notices, error = await hear(built.pipeline, query)
        assert (ids, error) == (expected, None)
        assert notices[0].machine == "lender-0"
        assert "an invalid token" in said(notices[0].reason)


@pytest.mark.parametrize(
    ("payload", "is_left"),
    [(struct.pack("<if", N_VOCAB, -1.0), False), (struct.pack("<if", 4, float("nan")), False), (b"\0" * 7, True)],
)
async def test_how_likely_a_token_was_is_not_taken_from_anybody(payload: bytes, is_left: bool) -> None:
    query, after = request("x", SHORT, sampling=replace(GREEDY, likely=2)), [9]
    async with pool(
        8, away=True, rebuilds=True,
        wrap=lambda frame_channel: Another(frame_channel, after, FrameKind.LIKELY, lambda _: payload),
    ) as built:  # fmt: skip
        ids, notices, error = await hear(built.pipeline, query)
        assert (len(ids), error) == (SHORT, None)
        assert bool(notices) is is_left
