"""Several pipelines of one model: requests are shared out, and go on elsewhere when one is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from app.core.errors import Reason, StageLost
from app.core.recovery.recovery import MAX_RECOVERIES, Loss, Notice
from app.core.scheduler.routing import Pace
from app.inference.pipeline.replica_set import Replica, ReplicaSet
from app.inference.pipeline.sequence import Finish, Request, Token
from backends.contract import GREEDY, Sampling
from tests.inference.pool import Pool, answer, pool, request, shape
from tests.simulation.truth import undisturbed

SLOW = ("fake:seconds_per_layer=0.001",)
CREATIVE = Sampling(temperature=0.9, seed=11, repeat_penalty=1.2)
GONE = Reason("worker_died", {"worker": "x", "how": "killed", "words": ""})


@asynccontextmanager
async def several(*sizes: tuple[int, ...], **how: Any) -> AsyncIterator[tuple[ReplicaSet, list[Pool]]]:
    """A replica for each list of runs; the first is here."""
    replicas, pools = ReplicaSet(), []
    async with AsyncExitStack() as stack:
        for place, runs in enumerate(sizes):
            built = await stack.enter_async_context(pool(*runs, **how))
            name = f"machine-{place}"
            replicas.put(place, Replica(name, built.pipeline, frozenset({name}), place == 0))
            pools.append(built)
        yield replicas, pools


def lost(place: int) -> Loss:
    return Loss(f"machine-{place}", f"machine-{place}", GONE, 0.0, is_gone=True)


async def hear(replicas: ReplicaSet, query: Request) -> tuple[list[int], list[Notice], Finish]:
    ids: list[int] = []
    notices: list[Notice] = []
    async with aclosing(replicas.generate(query)) as stream:
        async for item in stream:
            match item:
                case Token(id):
                    ids.append(id)
                case Notice():
                    notices.append(item)
                case Finish():
                    return ids, notices, item
    raise AssertionError("a stream without its end")


async def until(so: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not so():  # noqa: ASYNC110  nobody tells
            await asyncio.sleep(0.01)


async def test_requests_are_shared_out_and_nothing_of_an_answer_depends_on_where() -> None:
    requests = [request(f"number {n}", 20 + n) for n in range(8)]
    expected = [undisturbed(query, shape()) for query in requests]
    async with several((8,), (8,), paths=SLOW) as (replicas, pools):
        hearing = asyncio.gather(*(hear(replicas, query) for query in requests))
        await until(lambda: replicas.n_running == 8)
        assert [built.pipeline.n_running for built in pools] == [4, 4]
        assert replicas.n_running == 8
        heard = await hearing
    assert [ids for ids, _, _ in heard] == expected
    assert sorted(finish.figures.place for _, _, finish in heard) == [0] * 4 + [1] * 4


@pytest.mark.long
async def test_sixteen_answers_of_a_lost_replica_go_on_elsewhere() -> None:
    requests = [request("x" * (1 + 9 * n), 30 + n, sampling=(GREEDY, CREATIVE)[n % 2]) for n in range(16)]
    expected = [undisturbed(query, shape()) for query in requests]
    async with several((8,), (8,), paths=SLOW, form=shape(slots=8)) as (replicas, pools):
        hearing = asyncio.gather(*(hear(replicas, query) for query in requests))
        work = pools[1].pipeline._work
        await until(lambda: work.n_running == 8 and work._number > 20)
        replicas.break_off(lost(1))
        heard = await hearing
        assert [ids for ids, _, _ in heard] == expected
        assert {finish.figures.place for _, _, finish in heard} == {0}
        moved = [notices for _, notices, finish in heard if finish.figures.recoveries]
        assert len(moved) == 8
        assert {tuple(notice.state for notice in notices) for notices in moved} == {("rebuilding", "continued")}
        assert pools[1].pipeline.lost is not None
        assert replicas.lost is None
        assert not replicas.check_all_lost()
        assert (await hear(replicas, requests[0]))[0] == expected[0]


async def test_a_split_and_a_whole_one_replace_each_other() -> None:
    query = request("tell me", 60)
    expected = undisturbed(query, shape())
    async with several((8,), (2, 4, 2), paths=SLOW) as (replicas, pools):
        replicas.held[1].draining = True
        async with asyncio.TaskGroup() as group:
            hearing = group.create_task(hear(replicas, query))
            await until(lambda: pools[0].pipeline._work._number > 9)
            replicas.held[1].draining = False
            await replicas.leave(lost(0))
        ids, notices, finish = hearing.result()
        assert ids == expected
        assert finish.figures.place == 1
        assert len(finish.figures.stages) == 3
        assert "machine-1" in str(notices[0].reason.facts["to"])


async def test_a_chat_returns_to_where_it_is_held_and_a_grammar_goes_where_the_vocabulary_is() -> None:
    async with several((8,), (8,)) as (replicas, pools):
        begun = request("a long beginning of a chat " * 8, 4, conversation="chat")
        ids, _, first = await hear(replicas, begun)
        await hear(replicas, request("other", 2))
        more = (*begun.ids, *ids, 7, 8, 9)
        _, _, second = await hear(replicas, request(more, 4, conversation="chat"))
        assert second.figures.place == first.figures.place
        assert second.figures.reused_tokens >= len(begun.ids)
        pools[0].pipeline._stages[0]._meter.pace = Pace(1000.0, 1000.0)  # as slow as can be
        plain, written = request("x", 2), Request((5,), Sampling(0.0, grammar="root ::= x"), 2)
        assert replicas._choose(plain) is pools[1].pipeline
        assert replicas._choose(written) is pools[0].pipeline
        replicas.break_off(lost(0))
        await pools[0].pipeline.wait_lost()
        assert await hear(replicas, plain)
        with pytest.raises(StageLost, match="form_waits"):  # the model is there, and says more
            await hear(replicas, written)


async def test_a_chat_goes_where_it_is_read_anew_when_the_wait_would_cost_more() -> None:
    async with several((8,), (8,), paths=SLOW) as (replicas, pools):
        begun = request("short", 2, conversation="chat")
        ids, _, first = await hear(replicas, begun)
        place = first.figures.place
        replicas.held[1 - place].draining = True
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(hear(replicas, request("x" * 200, 90))) for _ in range(6)]
            await until(lambda: pools[place].pipeline.n_waiting == 2)
            replicas.held[1 - place].draining = False
            more = request((*begun.ids, *ids, 7), 2, conversation="chat")
            assert (await hear(replicas, more))[2].figures.place == 1 - place
            for other in tasks:
                other.cancel()


async def test_a_replica_that_is_given_back_gets_nothing_new() -> None:
    """Neither while it ends what it computes, nor where the other one has far more to do."""
    async with several((8,), (8,), paths=SLOW) as (replicas, pools):
        replica, other = replicas.held
        replica.draining = True
        async with asyncio.TaskGroup() as group:
            asking = [group.create_task(hear(replicas, request("x" * 50, 20))) for _ in range(6)]
            await until(lambda: other.pipeline.n_running + other.pipeline.n_waiting == 6)
            assert replicas._choose(request("y", 2)) is pools[1].pipeline
            assert (replica.pipeline.n_running, replicas.n_serving) == (0, 1)
            replica.draining = False
            assert replicas._choose(request("y", 2)) is pools[0].pipeline
        assert {task.result()[2].figures.place for task in asking} == {1}


@pytest.mark.long
async def test_who_asks_while_machines_leave_all_replicas_is_answered() -> None:
    query = request("tell me", 5)
    async with several((8,), (2, 4, 2)) as (replicas, pools):
        for replica in replicas.held:
            replica.draining = True
        replicas.break_off(lost(0))
        await pools[0].pipeline.wait_lost()
        ids, _, finish = await hear(replicas, query)
    assert (ids, finish.figures.place) == (undisturbed(query, shape()), 1)


async def test_an_answer_moves_three_times_and_no_fourth_time() -> None:
    query = request("tell me", 90)
    expected = undisturbed(query, shape())
    ids: list[int] = []
    places: list[int] = []

    async def break_again(replicas: ReplicaSet) -> None:
        async with aclosing(replicas.generate(query)) as stream:
            async for item in stream:
                ids.extend([item.id] if isinstance(item, Token) else [])
                if len(ids) == 10 * (len(places) + 1):
                    busy = [replica.pipeline.n_running > 0 for replica in replicas.held].index(True)
                    places.append(busy)
                    replicas.held[busy].pipeline.break_off(lost(busy))

    async with several(*[(8,)] * (MAX_RECOVERIES + 2), paths=SLOW) as (replicas, _):
        with pytest.raises(StageLost):
            await break_again(replicas)
        assert len(places) == len(set(places)) == MAX_RECOVERIES + 1
        assert ids == expected[: len(ids)]
        assert replicas.n_serving == 1  # it could have


async def test_the_last_replica_recovers_in_place_and_then_all_is_over() -> None:
    query = request("tell me", 60)
    expected = undisturbed(query, shape())
    async with several((8,), (8,), paths=SLOW, rebuilds=True) as (replicas, pools):
        await asyncio.gather(*(hear(replicas, request("x", 2)) for _ in range(2)))
        replicas.break_off(lost(1))
        await until(lambda: pools[1].pipeline.lost is not None)  # nobody wanted it
        async with asyncio.TaskGroup() as group:
            hearing = group.create_task(hear(replicas, query))
            await until(lambda: pools[0].pipeline._work._number > 9)
            pools[0].host.kill(GONE)
        ids, notices, finish = hearing.result()
        assert ids == expected
        assert [notice.state for notice in notices] == ["lost", "rebuilding", "continued"]
        assert finish.figures.place == 0
        pools[0].host.kill(GONE)
        await until(lambda: pools[0].pipeline.lost is not None)
        assert replicas.check_all_lost()
        assert isinstance(await replicas.wait_lost(), StageLost)
        with pytest.raises(StageLost):
            await hear(replicas, query)


@pytest.mark.long
async def test_the_only_one_is_left_by_any_machine_and_takes_questions_on() -> None:
    """Its stages move between machines: also one that came later can leave, and nothing drains."""
    query = request("tell me", 60)
    expected = undisturbed(query, shape())
    async with several((2, 4, 2), paths=SLOW, rebuilds=True) as (replicas, pools):
        for leaver in range(2):
            before = pools[0].pipeline._stages
            async with asyncio.TaskGroup() as group:
                hearing = group.create_task(hear(replicas, query))
                await until(lambda: pools[0].pipeline.n_running == 1)
                await asyncio.sleep(0.05)
                replicas.announce_leaving(f"machine-{leaver}", ["spare"], 3.0)
                reports = [replicas.leaves]  # what faces show
                await replicas.leave(replace(lost(leaver), leaves=True))
                reports.append(replicas.leaves)
                assert [notice is None for notice in reports] == [False, True]
            ids, notices, finish = hearing.result()
            assert ids == expected
            assert (notices[0].state, notices[0].machine) == ("leaving", f"machine-{leaver}")
            assert [recovery.left for recovery in finish.figures.recoveries] == [True]
            assert pools[0].pipeline._stages is not before


async def test_one_that_was_mended_in_place_of_leaving_takes_new_requests_again() -> None:
    """Requests that only it can answer keep it, and its owner resumes while it recovers."""
    async with several((8,), (8,), paths=SLOW, rebuilds=True) as (replicas, pools):
        pools[0].rebuild.asked = True  # somebody wants it: it is mended, and not given up
        pools[0].rebuild.planning = asyncio.Event()
        await replicas.leave(lost(0))
        await until(lambda: bool(pools[0].rebuild.planned))
        assert replicas.n_serving == 1
        pools[0].rebuild.planning.set()
        await until(lambda: pools[0].pipeline.news is None)
        assert replicas.n_serving == 2
        requests = [request(f"number {n}", 20) for n in range(8)]
        heard = await asyncio.gather(*(hear(replicas, query) for query in requests))
        assert {finish.figures.place for _, _, finish in heard} == {0, 1}


async def test_what_is_told_beside_a_token_does_not_make_its_machine_look_quick() -> None:
    """Logprobs arrive just before their token, which is not when its step began."""
    query = request("x", 12, sampling=replace(GREEDY, likely=5))
    async with pool(8, paths=SLOW, away=True) as built:
        await answer(built.pipeline, query)
        pace = built.pipeline._stages[0].pace
    assert pace is not None
    assert pace.step_s > 0.5 * 8 * 0.001  # of eight layers


async def test_closing_an_answer_that_moved_frees_its_slot() -> None:
    async with several((8,), (8,), paths=SLOW) as (replicas, pools):
        replicas.held[0].draining = True
        stream = replicas.generate(request("tell me", 500))
        assert isinstance(await anext(stream), Token)
        replicas.held[0].draining = False
        replicas.break_off(lost(1))
        while pools[0].pipeline.n_running == 0:
            await anext(stream)
        await stream.aclose()
        await until(lambda: pools[0].pipeline.n_running == 0)
