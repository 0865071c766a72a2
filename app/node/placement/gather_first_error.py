"""Work done at once, of which the first error ends all."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

from app.core.errors import AppError, StageLost

T = TypeVar("T")


async def together(*work: Coroutine[Any, Any, T]) -> list[T]:
    """Do all at once; the first AppError cancels the others and is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one, name="open a stage") for one in work]
    except BaseExceptionGroup as errors:
        known, unknown = errors.split(AppError)
        if unknown is not None or known is None:
            raise
        raise _first(known) from None
    return [task.result() for task in tasks]


async def ended(
    group: asyncio.TaskGroup, tasks: Iterable[asyncio.Task[None]], error: BaseException | None
) -> None:
    """The end of a group that was begun by hand, with its stack. An error from above ends its tasks, and stays what it
    is: the group would wrap it."""
    if error is not None:
        for task in tasks:
            task.cancel()
    await group.__aexit__(None, None, None)


def _first(errors: BaseExceptionGroup[AppError]) -> AppError:
    for error in errors.exceptions:
        if isinstance(error, BaseExceptionGroup):
            return _first(error)
        return error
    return StageLost("bug")
