"""Tests of open requests when a port closes: each gets an error, unless its stream has sent it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, cast

import pytest
from aiohttp import web

from app.core.errors import Refused, StageLost
from app.gateway.open_requests import STARTED, OpenRequests


@pytest.mark.parametrize(("request_", "ends"), [({}, StageLost), ({STARTED: True}, asyncio.CancelledError)])
async def test_nothing_is_said_twice(request_: Any, ends: type[BaseException]) -> None:
    door, no_app = OpenRequests(), cast("web.Application", None)

    async def open_requests() -> None:
        async with door.until_closed(request_):
            await asyncio.sleep(60)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(caught(open_requests()), name="asked")
        await asyncio.sleep(0)
        await door.end_all(no_app)
        assert type(await task) is ends
    await door.end_all(no_app)  # nothing is left


async def test_a_key_that_is_taken_away_ends_what_was_asked_with_it_and_no_more() -> None:
    door = OpenRequests()

    async def open_requests(key: str) -> None:
        async with door.until_closed(cast("Any", {}), key):
            await asyncio.sleep(60)

    async with asyncio.TaskGroup() as group:
        its, other = (group.create_task(caught(open_requests(key)), name=key) for key in ("its", "other"))
        await asyncio.sleep(0)
        door.end_requests_of("its")
        assert isinstance(await its, Refused)
        assert not other.done()
        other.cancel()


async def test_another_s_time_that_is_over_is_no_closing() -> None:
    with pytest.raises(TimeoutError):
        async with OpenRequests().until_closed(cast("Any", {})):
            raise TimeoutError


async def caught(work: Coroutine[Any, Any, None]) -> BaseException | None:
    try:
        await work
    except BaseException as error:  # noqa: BLE001  a cancellation too
        return error
    return None
