"""Runs that share a machine: the one that others wait for computes first, and no turn is lost."""

from __future__ import annotations

import asyncio

from app.inference.stages.stage_client import PriorityLock

FIRST_RUN, LAST_RUN = 0, 2


async def test_a_first_run_goes_before_a_last_run_that_waited_longer() -> None:
    turns, order = PriorityLock(), list[str]()

    async def compute(rank: int, name: str) -> None:
        await turns.acquire(rank)
        order.append(name)
        await asyncio.sleep(0)
        turns.release()

    async with asyncio.TaskGroup() as group:
        group.create_task(compute(LAST_RUN, "last of A"))
        group.create_task(compute(LAST_RUN, "last of B"))
        group.create_task(compute(FIRST_RUN, "first of C"))
    assert order == ["last of A", "first of C", "last of B"]


async def test_the_next_step_of_whoever_leaves_comes_in_time() -> None:
    turns, order = PriorityLock(), list[str]()

    async def group_a() -> None:
        for rank, name in ((LAST_RUN, "last of A"), (FIRST_RUN, "first of A")):
            await turns.acquire(rank)
            order.append(name)
            await asyncio.sleep(0)
            turns.release()

    async def group_b() -> None:
        await turns.acquire(LAST_RUN)
        order.append("last of B")
        turns.release()

    async with asyncio.TaskGroup() as group:
        group.create_task(group_a())
        group.create_task(group_b())
    assert order == ["last of A", "first of A", "last of B"]


async def test_one_rank_keeps_its_order() -> None:
    turns, order = PriorityLock(), list[int]()

    async def compute(number: int) -> None:
        await turns.acquire(FIRST_RUN)
        order.append(number)
        turns.release()

    async with asyncio.TaskGroup() as group:
        for number in range(20):
            group.create_task(compute(number))
    assert order == list(range(20))


async def test_a_cancelled_waiter_gives_its_turn_on() -> None:
    turns = PriorityLock()
    await turns.acquire(FIRST_RUN)
    async with asyncio.TaskGroup() as group:
        cancelled = group.create_task(turns.acquire(FIRST_RUN))
        waiting = group.create_task(turns.acquire(LAST_RUN))
        await asyncio.sleep(0)
        turns.release()
        asyncio.get_running_loop().call_soon(cancelled.cancel)  # right after it was given the turn
        async with asyncio.timeout(30):
            await waiting
    turns.release()
    await asyncio.sleep(0)
    async with asyncio.timeout(30):
        await turns.acquire(LAST_RUN)
