"""What is under way at a door for programs. When the door closes, or its key is taken away, each ends with an error in
its API's shape."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from aiohttp import web

from app.core.errors import AppError, Refused, StageLost
from app.gateway.writing import BEGUN

END_SECONDS = 1.0  # for the errors to be sent; who reads nothing is cut off then
_LIMIT = web.RequestKey("limit", asyncio.Timeout)
_KEY_GONE = web.RequestKey("key gone", bool)


class UnderWay:
    """Of one door."""

    def __init__(self) -> None:
        self._limits: dict[asyncio.Timeout, tuple[web.Request, str]] = {}  # and the name of its key

    def __len__(self) -> int:
        return len(self._limits)

    @asynccontextmanager
    async def until_closed(self, request: web.Request, key: str = "") -> AsyncGenerator[None, None]:
        """Raises StageLost when the door closes meanwhile, Refused when its key is taken away. A stream that has begun
        says so itself, by `closes`."""
        limit = request[_LIMIT] = asyncio.timeout(None)
        try:
            async with limit:
                self._limits[limit] = request, key
                yield
        except TimeoutError:
            if not limit.expired():
                raise
            if BEGUN in request:  # its last words are sent
                raise asyncio.CancelledError from None
            raise closed(request) from None
        finally:
            self._limits.pop(limit, None)

    async def end(self, _: web.Application) -> None:
        """All of it, soon."""
        for limit in self._limits:
            _end(limit)
        with suppress(TimeoutError):
            async with asyncio.timeout(END_SECONDS):
                while self._limits:  # noqa: ASYNC110  ends in other tasks
                    await asyncio.sleep(0.01)

    def end_of(self, key: str) -> None:
        """What was asked with a key that opens nothing any more."""
        for limit, (request, its_key) in self._limits.items():
            if its_key == key:
                request[_KEY_GONE] = True
                _end(limit)


def _end(limit: asyncio.Timeout) -> None:
    if not limit.expired():
        limit.reschedule(asyncio.get_running_loop().time())


def closes(request: web.Request) -> bool:
    """Whether a request is cancelled because its door closes to it, and not because its program has left."""
    return request[_LIMIT].expired()


def closed(request: web.Request) -> AppError:
    return Refused("api_key_gone") if request.get(_KEY_GONE) else StageLost("api_closed")
