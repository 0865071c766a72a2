"""Work that can be ended early: by an event, or in a thread by the code that waits for it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from app.core.errors import AppError

T = TypeVar("T")
Report = Callable[..., None]


class Stopped(Exception):
    """Raised in a thread, where it reports progress, once nothing waits for it any more."""


async def run_until(stop: asyncio.Event, work: Coroutine[Any, Any, T], instead: AppError) -> T:
    """Return the result of `work`. When `stop` is set first, cancel `work`, wait for its end and raise `instead`.

    It is cancelled only once, however many callers want its end: it finishes giving back what it holds.
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
    """Run `work(report)` in a thread; its reports reach `tell` on the event loop.

    Cancelled, it makes the next report raise and waits for the end of the thread, so that nothing goes on when the
    same work begins again.
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
                continue  # it is on its way out already
        raise


async def _all_over(*tasks: asyncio.Task[Any]) -> None:
    """Wait for cancelled tasks: a task group whose own end is interrupted would cancel them again."""
    interrupted: asyncio.CancelledError | None = None
    while not all(task.done() for task in tasks):
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError as error:
            interrupted = error
    if interrupted is not None:
        raise interrupted


async def _settled(work: Coroutine[Any, Any, T]) -> T | AppError:
    """Return an AppError as a value: a TaskGroup would wrap it."""
    try:
        return await work
    except AppError as error:
        return error
