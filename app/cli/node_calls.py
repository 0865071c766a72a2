"""Calls of a command to its node, and several of them at once."""

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
    """Ctrl-C was typed. The reason says what is left of the work, and how it goes on."""


def ask_node(home: Path | None, work: Callable[[NodeClient], Awaitable[T]]) -> T:
    """Do `work` with the running node. Raises Unreachable when there is none."""
    from app.client import with_node
    from app.machine.paths import Home

    return asyncio.run(with_node(Home.at(home), work))


async def gather_first_error(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
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
