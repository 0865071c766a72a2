"""Calls that commands make to the running node."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from app.core.errors import AppError

if TYPE_CHECKING:
    from app.client import NodeClient


T = TypeVar("T")


class Stopped(AppError):
    """An interruption by Ctrl-C while work is unfinished. The reason says what remains and how to continue."""


def ask_node(home: Path | None, work: Callable[[NodeClient], Awaitable[T]]) -> T:
    """Call `work` with a client of the running node and return its result. Raises Unreachable if no node is running."""
    from app.client import with_node
    from app.machine.paths import Home

    return asyncio.run(with_node(Home.at(home), work))


async def gather_first_error(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run all tasks concurrently and return their results in order.

    The first failure cancels the other tasks and is raised without an exception group.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(part, name=f"part {n}") for n, part in enumerate(work)]
    except* (AppError, OSError) as failed:
        error: BaseException = failed
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from None
    return [task.result() for task in tasks]
