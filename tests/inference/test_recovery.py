"""Answers outlive their stages: the tokens are those of an undisturbed run, whatever was lost in between."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from contextlib import aclosing

import pytest

from app.core.errors import Reason, StageLost, Unreachable
from app.core.reasons import said
from app.core.recovery.recovery import MAX_RECOVERIES, Loss, Notice, Recovered
from app.inference.pipeline.pipeline import Pipeline
from app.inference.pipeline.sequence import Finish, Request, Token
from app.inference.pipeline.speed_measurement import Deadlines
from app.inference.stages.stage_client import CREDIT, FrameChannel
from backends.contract import GREEDY, Sampling
from backends.frames import FrameKind, decode_header
from tests.inference.pool import Pool, answer, pool, request, shape
from tests.simulation.truth import undisturbed

SLOW = "fake:seconds_per_layer=0.001"
SOON_S = 20.0  # less than one, on a machine with nothing else to do
CREATIVE = Sampling(temperature=0.9, seed=11, repeat_penalty=1.2)
WILD = Sampling(temperature=40.0, top_k=0, top_p=1.0, min_p=0.0, seed=11)  # chance says every token
posix = pytest.mark.skipif(sys.platform == "win32", reason="needs signals")


async def hear(
    pipeline: Pipeline, query: Request, at: dict[int, Callable[[], None]] | None = None, into: list[int] | None = None
) -> tuple[list[int], list[Notice], Finish]:
    """All that a reader gets; `at`: what to do when so many tokens are there; `into`: also after an error."""
    ids: list[int] = [] if into is None else into
    notices: list[Notice] = []
    todo = {} if at is None else at
    async with aclosing(pipeline.generate(query)) as stream:
        async for item in stream:
            match item:
                case Token(id):
                    ids.append(id)
                    if deed := todo.pop(len(ids), None):
                        deed()
                case Notice():
                    notices.append(item)
                case Finish():
                    return ids, notices, item
    raise AssertionError("a stream without its end")


def kill(built: Pool, owner: str) -> Callable[[], None]:
    def deed() -> None:
        os.kill((built.host if owner == "host" else built.lent_worker()).pid, signal.SIGKILL)

    return deed


@pytest.mark.many(keep=2)
@posix
@pytest.mark.parametrize("owner", ["host", "lender"])
@pytest.mark.parametrize("sampling", [GREEDY, CREATIVE, WILD])
async def test_a_killed_worker_changes_no_token(owner: str, sampling: Sampling) -> None:
    query = request("tell me", 60, sampling=sampling)
    expected = undisturbed(query, shape())
    async with pool(2, 4, 2, paths=[SLOW], rebuilds=True) as built:
        ids, notices, finish = await hear(built.pipeline, query, {20: kill(built, owner)})
        assert ids == expected
        assert [notice.state for notice in notices] == ["lost", "rebuilding", "continued"]
        assert all(said(notice.reason) for notice in notices)
        [once] = finish.figures.recoveries
        assert isinstance(once, Recovered)
        assert once.machine == ("host" if owner == "host" else "lender-1")
        assert once.others == "spare"
        assert 0 <= once.detected_after_s < SOON_S
        assert 0 < once.recovered_after_s < SOON_S
        assert built.pipeline.news is None
        assert (await answer(built.pipeline, query))[0] == expected


@pytest.mark.long
@posix
@pytest.mark.parametrize("seed", range(2))
async def test_many_answers_at_once_all_go_on(seed: int) -> None:
    """More than there are slots; some in their prompt, some waiting, some just ending."""
    chance = random.Random(seed)
    requests = [request("x" * chance.randrange(1, 200), chance.randrange(1, 60)) for _ in range(9)]
    expected = [undisturbed(query, shape()) for query in requests]
    async with pool(2, 4, 2, paths=[SLOW], rebuilds=True, form=shape(slots=4)) as built:
        hearing = asyncio.gather(*(hear(built.pipeline, query) for query in requests))
        for owner in chance.sample(["host", "lender", "lender"], 2):
            await asyncio.sleep(0.05 + chance.random() * 0.1)
            if built.pipeline.news is None:
                kill(built, owner)()
        heard = await hearing
    assert [ids for ids, _, _ in heard] == expected


@pytest.mark.long
@posix
async def test_the_fourth_loss_of_one_answer_ends_it_in_words() -> None:
    expected = undisturbed(request("x", 90), shape())
    async with pool(2, 4, 2, paths=[SLOW], rebuilds=True) as built:
        deeds = {n * 10: kill(built, "lender") for n in range(1, 5)}
        ids: list[int] = []
        with pytest.raises(StageLost) as raised:
            await hear(built.pipeline, request("x", 90), deeds, ids)
        assert raised.value.reason.code == "recovery_too_often"
        assert said(raised.value)
        assert not deeds
        assert ids == expected[: len(ids)]
        assert len(built.rebuild.planned) == MAX_RECOVERIES


@pytest.mark.long
@posix
async def test_who_fails_a_second_time_gets_no_layers_back() -> None:
    """This holds even if tokens came in between, or another answer had the first failure."""
    query = request("x", 60)
    async with pool(2, 4, 2, paths=[SLOW], rebuilds=True) as built:

        def fail() -> None:
            built.pipeline._stages[1].key = "id-1"
            kill(built, "lender")()

        await hear(built.pipeline, query, {9: fail})
        ids, _, _ = await hear(built.pipeline, query, {20: fail})
        assert built.rebuild.planned == [frozenset(), frozenset({"id-1"})]
        assert ids == undisturbed(query, shape())


@pytest.mark.long
@posix
async def test_what_the_host_alone_can_finish_is_finished() -> None:
    """An answer recovers from a limited number of losses on others. The loss of its own worker is then the last."""
    query = request("x", 90)
    expected = undisturbed(query, shape())
    async with pool(2, 4, 2, paths=[SLOW], rebuilds=True) as built:
        built.rebuild.fits_here = True
        deeds = {n * 10: kill(built, "lender") for n in range(1, 5)}
        ids, _, finish = await hear(built.pipeline, query, deeds)
        assert ids == expected
        assert len(finish.figures.recoveries) == MAX_RECOVERIES + 1
        deeds = {n * 10: kill(built, "host") for n in range(1, 6)}
        with pytest.raises(StageLost) as raised:
            await hear(built.pipeline, query, deeds)
        assert raised.value.reason.code == "recovery_too_often"


@posix
async def test_what_is_lost_while_it_is_rebuilt_is_planned_again_without_it() -> None:
    expected = undisturbed(request("x", 40), shape())
    async with pool(2, 4, 2, paths=[SLOW], rebuilds=True) as built:
        built.rebuild.failing = 2
        ids, _, finish = await hear(built.pipeline, request("x", 40), {9: kill(built, "host")})
        assert ids == expected
        assert len(finish.figures.recoveries) == 1
        assert built.rebuild.planned == [frozenset(), frozenset(), frozenset({"id-1"})]


@posix
async def test_what_cannot_be_rebuilt_ends_in_words() -> None:
    async with pool(2, 4, 2, paths=[SLOW], rebuilds=True) as built:
        built.rebuild.failing = 9
        with pytest.raises(StageLost) as raised:
            await hear(built.pipeline, request("x", 40), {9: kill(built, "host")})
        assert raised.value.reason.code == "recovery_too_often"
        assert built.pipeline.lost is raised.value


@pytest.mark.long
@posix
async def test_short_memory_is_said_and_the_answer_goes_on_when_a_machine_returns() -> None:
    expected = undisturbed(request("x", 40), shape())
    async with pool(2, 4, 2, paths=[SLOW], rebuilds=True) as built:
        built.rebuild.misfits = 1
        deeds = {9: kill(built, "lender")}
        hearing = asyncio.gather(hear(built.pipeline, request("x", 40), deeds))
        short = asyncio.Event()
        built.pipeline.on_news = lambda: (
            short.set() if built.pipeline.news and built.pipeline.news.state == "short" else None
        )
        async with asyncio.timeout(30):
            await short.wait()
        late = asyncio.gather(hear(built.pipeline, request("x", 5)))  # asked meanwhile
        await asyncio.sleep(0.1)
        assert not hearing.done()
        built.rebuild.news.set()
        [(ids, notices, _)] = await hearing
        assert ids == expected
        assert [n.state for n in notices] == ["lost", "short", "rebuilding", "continued"]
        [(few, reports, _)] = await late
        assert few == expected[:5]
        assert reports[0].state == "short"


@pytest.mark.long
@posix
async def test_an_answer_that_is_mended_can_be_cancelled() -> None:
    async with pool(2, 4, 2, paths=[SLOW], rebuilds=True) as built:
        built.rebuild.misfits = 1
        async with aclosing(built.pipeline.generate(request("x", 300))) as stream:
            async for item in stream:
                if isinstance(item, Token) and built.host.died is None:
                    kill(built, "host")()
                if isinstance(item, Notice) and item.state == "short":
                    break
        built.rebuild.news.set()
        assert len((await answer(built.pipeline, request("y", 5)))[0]) == 5


async def test_a_machine_that_leaves_on_purpose_is_left_between_two_tokens() -> None:
    """Nothing was under way then that would be computed in vain."""
    expected = undisturbed(request("x", 60), shape())
    async with pool(2, 4, 2, paths=[SLOW], rebuilds=True) as built:
        work, under_way = built.pipeline._work, list[int]()
        interrupt = work.interrupt

        def noted(loss: Loss, *, alone: bool = False) -> None:
            under_way.append(work._under_way)
            interrupt(loss, alone=alone)

        work.interrupt = noted  # type: ignore[method-assign]
        begun = asyncio.Event()
        hearing = asyncio.gather(hear(built.pipeline, request("x", 60), {9: begun.set}))
        await begun.wait()
        why = Reason("lend_taken_back", {"machine": "lender-1", "why": ""})
        await built.pipeline.leave(Loss("id-1", "lender-1", why, time.monotonic(), is_gone=True))
        [(ids, _, finish)] = await hearing
        assert ids == expected
        assert [once.why for once in finish.figures.recoveries] == [why]
        assert built.rebuild.planned == [frozenset({"id-1"})]
        assert under_way == [0]


@posix
async def test_a_machine_that_leaves_and_is_lost_meanwhile_is_left_once() -> None:
    """Its messages while it is being replaced must not delay the answers in progress."""
    expected = undisturbed(request("x", 60), shape())
    async with pool(2, 4, 2, paths=[SLOW], rebuilds=True) as built:
        built.rebuild.planning = asyncio.Event()
        hearing = asyncio.gather(hear(built.pipeline, request("x", 60), {9: kill(built, "lender")}))
        async with asyncio.timeout(30):
            while not built.rebuild.planned:  # noqa: ASYNC110  seen from outside
                await asyncio.sleep(0.01)
        why = Reason("lend_taken_back", {"machine": "lender-1", "why": ""})
        loss = Loss("id-1", "lender-1", why, time.monotonic(), is_gone=True)
        await built.pipeline.leave(loss)
        built.rebuild.planning.set()
        async with asyncio.timeout(30):
            [(ids, _, finish)] = await hearing
        assert ids == expected
        assert len(finish.figures.recoveries) == len(built.rebuild.planned) == 1


@pytest.mark.long
@posix
async def test_a_loss_at_the_moment_of_leaving_is_one_recovery() -> None:
    expected = undisturbed(request("x", 60), shape())
    async with pool(2, 4, 2, paths=[SLOW], rebuilds=True) as built:
        begun = asyncio.Event()
        hearing = asyncio.gather(hear(built.pipeline, request("x", 60), {9: begun.set}))
        await begun.wait()
        os.kill(built.lent_worker().pid, signal.SIGSTOP)
        await asyncio.sleep(0.3)  # by now a step is there, and never comes back
        why = Reason("lend_taken_back", {"machine": "lender-1", "why": ""})
        loss = Loss("id-1", "lender-1", why, time.monotonic(), is_gone=True)
        leaving = asyncio.gather(built.pipeline.leave(loss))
        await asyncio.sleep(0.1)
        kill(built, "lender")()
        await leaving
        [(ids, _, finish)] = await hearing
        assert ids == expected
        assert len(finish.figures.recoveries) == len(built.rebuild.planned) == 1


class Breaking:
    """A channel that breaks: after so many frames there, and so many back."""

    def __init__(self, inner: FrameChannel, there: int, back: int) -> None:
        self.inner, self._there, self._back = inner, there, back

    async def send(self, frame: bytes) -> None:
        self._there -= 1
        if self._there == 0:
            await self.inner.close()
        await self.inner.send(frame)

    async def deliver(self, to: Callable[[bytes], None]) -> None:
        def counted(data: bytes) -> None:
            self._back -= 1
            if self._back == -1:
                raise Unreachable("channel_closed", name="a test")
            to(data)

        try:
            await self.inner.deliver(counted)
        finally:
            await self.inner.close()

    async def close(self) -> None:
        await self.inner.close()


def steps_seen(built: Pool) -> list[int]:
    """The numbers of the steps that the lender's worker is given from now on."""
    worker, seen = built.lent_worker(), []
    send = worker.send

    def note(data: bytes, n_rows: int = 0) -> None:
        if data[3] == FrameKind.STEP:
            seen.append(decode_header(data).seq)
        send(data, n_rows)

    worker.send = note  # type: ignore[method-assign]
    return seen


@pytest.mark.many(keep=1)
@pytest.mark.parametrize("seed", range(4))
async def test_a_broken_channel_is_made_again_and_nothing_computed_twice(seed: int) -> None:
    """The frame that was lost on its way there, and the answer lost on its way back."""
    chance = random.Random(seed)
    requests = [request("x" * 150, 30), request("hello", 50), request("y" * 20, 40)]
    expected = [undisturbed(query, shape()) for query in requests]

    made: list[FrameChannel] = []

    def wrap(channel: FrameChannel) -> FrameChannel:
        made.append(channel)
        there, back = chance.choice(((1, 0), (0, 1)))
        after = chance.randrange(2, 20)
        return Breaking(channel, there * after or 1 << 30, back * after or 1 << 30)

    async with pool(2, 4, 2, wrap=wrap, peers=True, rebuilds=True) as built:
        seen = steps_seen(built)
        heard = await asyncio.gather(*(hear(built.pipeline, query) for query in requests))
        assert [ids for ids, _, _ in heard] == expected
        assert not built.rebuild.planned
        assert not any(finish.figures.recoveries for _, _, finish in heard)
        # only what had no answer yet is sent again
        assert len(seen) - len(set(seen)) <= CREDIT * (len(made) - 1)
        assert any(notice.state == "reconnecting" for _, notices, _ in heard for notice in notices)


class Deaf:
    """A channel that delivers nothing any more after some answers, and does not break."""

    def __init__(self, inner: FrameChannel, after: int) -> None:
        self._inner, self._after = inner, after

    async def send(self, frame: bytes) -> None:
        await self._inner.send(frame)

    async def deliver(self, to: Callable[[bytes], None]) -> None:
        def heard(data: bytes) -> None:
            self._after -= 1
            if self._after >= 0:
                to(data)

        await self._inner.deliver(heard)

    async def close(self) -> None:
        await self._inner.close()


async def test_a_channel_that_falls_silent_is_replaced_within_the_deadline() -> None:
    expected = undisturbed(request("hello", 30), shape())
    quick = Deadlines(decode_least_s=0.3, decode_most_s=0.3, prefill_least_s=0.3, dead_s=30.0)
    after = itertools.chain([8], itertools.repeat(1000))
    async with pool(2, 4, 2, wrap=lambda c: Deaf(c, next(after)), peers=True, rebuilds=True, deadlines=quick) as built:
        began = time.monotonic()
        ids, notices, _ = await hear(built.pipeline, request("hello", 30))
        assert ids == expected
        assert not built.rebuild.planned
        states = [notice.state for notice in notices]  # again where this computer is slow
        assert states == ["reconnecting", "continued"] * (len(states) // 2) != []
        assert time.monotonic() - began < 30


@pytest.mark.long
@posix
async def test_what_stands_still_for_a_while_goes_on_without_a_new_plan() -> None:
    expected = undisturbed(request("hello", 60), shape())
    quick = Deadlines(decode_least_s=0.3, decode_most_s=0.3, still_s=30.0, dead_s=30.0)
    for name in ("host", "lender"):
        async with pool(2, 4, 2, paths=[SLOW], peers=True, rebuilds=True, deadlines=quick) as built:
            worker = built.host if name == "host" else built.lent_worker()
            hearing = asyncio.gather(hear(built.pipeline, request("hello", 60)))
            await asyncio.sleep(0.1)
            os.kill(worker.pid, signal.SIGSTOP)
            await asyncio.sleep(1.0)
            os.kill(worker.pid, signal.SIGCONT)
            [(ids, _, _)] = await hearing
            assert ids == expected
            assert not built.rebuild.planned


@pytest.mark.many(keep=1)
@posix
@pytest.mark.parametrize("owner", ["host", "lender"])
async def test_what_stands_still_for_ever_is_replaced(owner: str) -> None:
    expected = undisturbed(request("hello", 60), shape())
    quick = Deadlines(decode_least_s=0.3, decode_most_s=0.3, still_s=1.0, dead_s=1.2)
    async with pool(2, 4, 2, paths=[SLOW], peers=True, rebuilds=True, deadlines=quick) as built:
        worker = built.host if owner == "host" else built.lent_worker()
        deeds: dict[int, Callable[[], None]] = {9: lambda: os.kill(worker.pid, signal.SIGSTOP)}
        ids, _, finish = await hear(built.pipeline, request("hello", 60), deeds)
        assert ids == expected
        assert finish.figures.recoveries[0].detected_after_s < SOON_S
        assert worker.died is not None


@pytest.mark.long
@posix
async def test_a_question_on_its_way_finds_the_stages_again() -> None:
    """The question was accepted, but its prompt is not in the pipeline yet when a stage is lost."""
    expected = undisturbed(request("x", 5), shape())
    async with pool(2, 4, 2, rebuilds=True) as built:
        built.rebuild.asked = True
        kill(built, "lender")()
        event = asyncio.Event()
        built.pipeline.on_news = event.set
        async with asyncio.timeout(30):
            await event.wait()
        assert (await answer(built.pipeline, request("x", 5)))[0] == expected
        built.rebuild.asked = False
        kill(built, "lender")()  # nobody asks: it ends, and the next question loads
        assert (await built.pipeline.wait_lost()).reason.code == "worker_died"
