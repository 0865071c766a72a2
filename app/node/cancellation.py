"""Cancellation of coroutines when an event is set, and of threads when the task that awaits them is canceled."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from app.core.errors import AppError

T = TypeVar("T")
Report = Callable[..., None]


class Stopped(Exception):
    """Raised in a thread by its next progress report after the task that awaits the thread was canceled."""


async def run_until(stop: asyncio.Event, work: Coroutine[Any, Any, T], instead: AppError) -> T:
    """Return the result of `work`. If `stop` is set first, cancel `work`, wait for it to end and raise `instead`.

    `work` is canceled only once, even if the caller is canceled as well, so that its cleanup is not interrupted.
    """
    async with asyncio.TaskGroup() as group:
        stopped = group.create_task(stop.wait(), name="stop the work")
        task = group.create_task(_settled(work), name="stoppable work")
        try:
            await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            task.cancel()
            stopped.cancel()
            await _all_over(task, stopped)
    if task.cancelled():
        raise instead
    result = task.result()
    if isinstance(result, AppError):
        raise result
    return result


async def in_thread(work: Callable[[Report], T], on_report: Report) -> T:
    """Run `work(report)` in a thread and return its result. Each report calls `on_report` on the event loop.

    If this task is canceled, the next report raises `Stopped` in the thread. The cancellation waits for the thread
    to end, so that the same work can safely be started again.
    """
    loop, gone = asyncio.get_running_loop(), threading.Event()

    def report(*facts: Any) -> None:
        if gone.is_set():
            raise Stopped
        loop.call_soon_threadsafe(on_report, *facts)

    done = loop.run_in_executor(None, work, report)
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        gone.set()
        while not done.done():
            try:
                await asyncio.wait({done})
            except asyncio.CancelledError:
                continue  # the thread is already about to end
        raise


async def _all_over(*tasks: asyncio.Task[Any]) -> None:
    """Wait for canceled tasks to end, even if this wait is itself canceled. If this wait ended early, the task group
    would cancel the tasks a second time.
    """
    interrupted: asyncio.CancelledError | None = None
    while not all(task.done() for task in tasks):
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError as error:
            interrupted = error
    if interrupted is not None:
        raise interrupted


async def _settled(work: Coroutine[Any, Any, T]) -> T | AppError:
    """Run `work` and return an AppError instead of raising it, because a TaskGroup would wrap it in an exception
    group."""
    try:
        return await work
    except AppError as error:
        return error
