"""Work that ends when it is told to, and threads that nobody leaves behind."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

from app.core.errors import BadInput, StageLost
from app.node.cancellation import in_thread, run_until


async def test_a_result_and_an_error_come_as_they_are() -> None:
    async def good() -> int:
        return 7

    async def bad() -> int:
        raise BadInput("prompt_empty")

    assert await run_until(asyncio.Event(), good(), StageLost("bug")) == 7
    with pytest.raises(BadInput):
        await run_until(asyncio.Event(), bad(), StageLost("bug"))


async def test_a_stop_cancels_the_work_and_waits_for_its_end() -> None:
    stop, ended = asyncio.Event(), []

    async def work() -> None:
        try:
            stop.set()
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.01)
            ended.append(True)

    with pytest.raises(StageLost) as caught:
        await run_until(stop, work(), StageLost("load_stopped", model="m"))
    assert caught.value.reason.code == "load_stopped"
    assert ended


@pytest.mark.parametrize("first", ["stop", "cancel"])
async def test_work_that_gives_back_what_it_had_is_not_interrupted(first: str) -> None:
    """Callers that wait for the work are canceled while it is being stopped, once or several times."""
    stop, ending, may_end, ended = (asyncio.Event() for _ in range(4))

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ending.set()
            await may_end.wait()
            ended.set()

    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        waiting = group.create_task(
            run_until(stop, work(), StageLost("load_stopped", model="m")), name="to be cancelled"
        )
        await asyncio.sleep(0)
        stop.set() if first == "stop" else waiting.cancel()
        await ending.wait()
        for _ in range(3):
            waiting.cancel()
            await asyncio.sleep(0)
        assert not waiting.done()
        may_end.set()
        await asyncio.wait({waiting})
    assert ended.is_set()
    assert waiting.cancelled()


async def test_a_fault_of_the_work_is_told_also_while_it_ends() -> None:
    stop = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("not given back")

    asyncio.get_running_loop().call_soon(stop.set)
    with pytest.raises(ExceptionGroup) as caught:
        await run_until(stop, work(), StageLost("load_stopped", model="m"))
    assert caught.group_contains(ValueError, match="not given back")


async def test_what_a_thread_reports_arrives_on_the_loop() -> None:
    reports: list[tuple[int, threading.Thread]] = []

    def work(report: Callable[..., None]) -> str:
        report(1)
        report(2)
        return "done"

    result = await in_thread(work, lambda n: reports.append((n, threading.current_thread())))
    assert result == "done"
    assert reports == [(1, threading.main_thread()), (2, threading.main_thread())]


async def test_a_cancelled_thread_is_over_when_the_cancel_returns() -> None:
    events: list[str] = []
    begun = threading.Event()

    def work(report: Callable[..., None]) -> None:
        try:
            while True:
                report()
                begun.set()
                time.sleep(0.02)
        finally:
            time.sleep(0.05)
            events.append("thread over")

    async with asyncio.TaskGroup() as group:
        task = group.create_task(in_thread(work, lambda: None), name="to be cancelled")
        await asyncio.to_thread(begun.wait)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()  # an impatient second one
        await asyncio.wait({task})
        events.append("task over")
    assert events == ["thread over", "task over"]
    assert task.cancelled()
