"""Talk to nodes from a command that has no event loop: one conversation, or several things together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from app.core.errors import AppError

if TYPE_CHECKING:
    from app.client import NodeClient

T = TypeVar("T")


def ask_node(home: Path | None, work: Callable[[NodeClient], Awaitable[T]]) -> T:
    """Do `work` with the running node. Raises Unreachable when there is none."""
    from app.client import with_node
    from app.machine.paths import Home

    return asyncio.run(with_node(Home.at(home), work))


async def together(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """All results in order. One failure ends the rest and is raised alone: it is what to say."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(part, name=f"part {n}") for n, part in enumerate(work)]
    except* (AppError, OSError) as failed:
        error: BaseException = failed
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from None
    return [task.result() for task in tasks]
