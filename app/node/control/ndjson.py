"""Long work over HTTP: progress lines while it runs, then one line with the result or the error."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

import msgspec
from aiohttp import web

from app.api.plans import Progress
from app.core.errors import AppError, bug
from app.node.control.guard import explained

log = logging.getLogger(__name__)

Json = dict[str, Any]
Report = Callable[[Progress], None]
PROGRESS_SECONDS = 0.1
UNREAD_SECONDS = 30.0  # an asker that takes nothing for so long has gone (SAFETY.md 5)


def hashing(done: int, total: int) -> Progress:
    """Return the progress of hashing a file."""
    return Progress("hashing", None, done, total, "bytes")


async def lines(request: web.Request, work: AsyncGenerator[Json, None]) -> web.StreamResponse:
    """Send each object of `work` as a line; an AppError becomes the last line."""
    answer = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
    await answer.prepare(request)
    try:
        async for line in work:
            await _write(request, answer, line)
    except AppError as error:
        await _write(request, answer, {"error": explained(error)})
    except Exception as error:  # the outer wall of a request whose answer has begun
        log.exception("%s failed", request.path)
        await _write(request, answer, {"error": explained(bug(error))})
    await answer.write_eof()
    return answer


async def _write(request: web.Request, answer: web.StreamResponse, line: Json) -> None:
    try:
        async with asyncio.timeout(UNREAD_SECONDS):
            await answer.write(msgspec.json.encode(line) + b"\n")
    except (ConnectionError, TimeoutError):
        if request.transport is not None:
            request.transport.abort()
        raise asyncio.CancelledError from None


async def with_progress(work: Callable[[Report], Awaitable[Any]]) -> AsyncGenerator[Json, None]:
    """Run `work` and yield its progress at most ten times a second, then {"done": result}.

    Closing the iterator cancels the work. `work` may report from any thread.
    """
    loop = asyncio.get_running_loop()
    news: asyncio.Queue[Json | None] = asyncio.Queue()
    last = [0.0]
    closed = False

    def report(progress: Progress) -> None:
        whole = progress.done == progress.total
        if whole or time.monotonic() - last[0] >= PROGRESS_SECONDS:
            last[0] = time.monotonic()
            loop.call_soon_threadsafe(news.put_nowait, {"progress": progress})

    async with asyncio.TaskGroup() as group:
        task = group.create_task(_settled(work(report), news), name="long work")
        try:
            while (line := await news.get()) is not None:
                yield line
        except GeneratorExit:  # a TaskGroup would wrap it
            closed = True
        finally:
            task.cancel()
    if closed:
        return
    result = task.result()
    if isinstance(result, AppError):
        raise result
    yield {"done": result}


async def _settled(work: Awaitable[Any], news: asyncio.Queue[Json | None]) -> Any:
    """Return the result or the AppError as a value, so that a TaskGroup does not wrap the error."""
    try:
        return await work
    except AppError as error:
        return error
    finally:
        news.put_nowait(None)


async def stream(request: web.Request, work: AsyncGenerator[Json, None]) -> web.StreamResponse:
    """Send the lines of `work`, and always close `work`."""
    async with aclosing(work) as closing:
        return await lines(request, closing)
