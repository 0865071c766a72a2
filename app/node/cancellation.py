"""Work that can be ended early: by an event, or, in a thread, by the code that waits for it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from app.core.errors import AppError

T = TypeVar("T")
Report = Callable[..., None]


class Stopped(Exception):
    """Raised in a thread when it reports progress that nothing waits for anymore."""


async def run_until(stop: asyncio.Event, work: Coroutine[Any, Any, T], instead: AppError) -> T:
    """Return the result of `work`. If `stop` is set first, cancel `work`, wait for it to end and raise `instead`.

    `work` is cancelled only once even if several callers want that, so that it can finish its cleanup.
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


async def in_thread(work: Callable[[Report], T], tell: Report) -> T:
    """Run `work(report)` in a thread. Its reports reach `tell` on the event loop.

    If cancelled, the next report raises in the thread, and its end is awaited so that the same work can begin again
    safely.
    """
    loop, gone = asyncio.get_running_loop(), threading.Event()

    def report(*facts: Any) -> None:
        if gone.is_set():
            raise Stopped
        loop.call_soon_threadsafe(tell, *facts)

    done = loop.run_in_executor(None, work, report)
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        gone.set()
        while not done.done():
            try:
                await asyncio.wait({done})
            except asyncio.CancelledError:
                continue  # it is already ending
        raise


async def _all_over(*tasks: asyncio.Task[Any]) -> None:
    """Wait for cancelled tasks to end. If this wait is cancelled, a task group would cancel them again."""
    interrupted: asyncio.CancelledError | None = None
    while not all(task.done() for task in tasks):
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError as error:
            interrupted = error
    if interrupted is not None:
        raise interrupted


async def _settled(work: Coroutine[Any, Any, T]) -> T | AppError:
    """Return an AppError as a value, because a TaskGroup would wrap it."""
    try:
        return await work
    except AppError as error:
        return error
