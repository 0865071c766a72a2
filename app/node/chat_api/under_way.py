"""What is under way at a door for programs. When the door closes, each ends with an error in its API's shape."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from aiohttp import web

from app.core.errors import StageLost
from app.node.chat_api.writing import BEGUN

END_SECONDS = 1.0  # for the errors to be sent; who reads nothing is cut off then
_LIMIT = web.RequestKey("limit", asyncio.Timeout)


class UnderWay:
    """Of one door."""

    def __init__(self) -> None:
        self._limits: set[asyncio.Timeout] = set()

    def __len__(self) -> int:
        return len(self._limits)

    @asynccontextmanager
    async def until_closed(self, request: web.Request) -> AsyncGenerator[None, None]:
        """Raises StageLost when the door closes meanwhile. A stream that has begun says so itself, by `closes`."""
        limit = request[_LIMIT] = asyncio.timeout(None)
        try:
            async with limit:
                self._limits.add(limit)
                yield
        except TimeoutError:
            if not limit.expired():
                raise
            if BEGUN in request:  # its last words are sent
                raise asyncio.CancelledError from None
            raise closed() from None
        finally:
            self._limits.discard(limit)

    async def end(self, _: web.Application) -> None:
        """All of it, soon."""
        now = asyncio.get_running_loop().time()
        for limit in self._limits:
            if not limit.expired():
                limit.reschedule(now)
        with suppress(TimeoutError):
            async with asyncio.timeout(END_SECONDS):
                while self._limits:  # noqa: ASYNC110  ends in other tasks
                    await asyncio.sleep(0.01)


def closes(request: web.Request) -> bool:
    """Whether a request is cancelled because its door closes, and not because its program has left."""
    return request[_LIMIT].expired()


def closed() -> StageLost:
    return StageLost("api_closed")
