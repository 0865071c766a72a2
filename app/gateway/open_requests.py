"""The requests under way at a port for programs, and writes to their connections that must not hang.

When the port closes, or its key is revoked, each request ends with an error in its API's shape.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from aiohttp import web

from app.core.errors import AppError, Refused, StageLost

UNREAD_SECONDS = 30.0
PIECE_BYTES = 64 << 10  # a smaller answer fits into the system's buffers

STARTED = web.RequestKey("begun", bool)  # an error has no status of its own any more
COMPLETE = web.RequestKey("whole", bool)  # all of a stream is sent: who leaves then has it

END_SECONDS = 1.0  # for the errors to be sent; who reads nothing is cut off then
_LIMIT = web.RequestKey("limit", asyncio.Timeout)
_KEY_GONE = web.RequestKey("key gone", bool)


async def write(request: web.Request, answer: web.StreamResponse, part: bytes) -> None:
    """Write, and wait until the program has taken enough of it; the headers go first.

    A program that takes nothing is cut off, and its answer canceled.
    """
    request[STARTED] = True
    try:
        async with asyncio.timeout(UNREAD_SECONDS):
            await answer.prepare(request)  # once
            await answer.write(part)
    except (ConnectionError, TimeoutError):
        if request.transport is not None:
            request.transport.abort()
        raise asyncio.CancelledError from None


async def finish(answer: web.StreamResponse) -> None:
    """End an answer after its last part. A client that has left by now has all of it: OpenAI's leaves at `[DONE]`."""
    with suppress(ConnectionError):
        await answer.write_eof()


async def send_large(request: web.Request, answer: web.StreamResponse) -> web.StreamResponse:
    """Return a whole answer, sent here in pieces if it is large: aiohttp would wait forever until it is read."""
    body = answer.body if isinstance(answer, web.Response) and not answer.prepared else None
    if not isinstance(body, bytes) or len(body) <= PIECE_BYTES:
        return answer
    sent = web.StreamResponse(status=answer.status, headers=answer.headers)
    sent.content_length = len(body)
    for at in range(0, len(body), PIECE_BYTES):
        await write(request, sent, body[at : at + PIECE_BYTES])
    await finish(sent)
    return sent


class OpenRequests:
    """The requests under way at one port."""

    def __init__(self) -> None:
        self._limits: dict[asyncio.Timeout, tuple[web.Request, str]] = {}  # and the name of its key

    def __len__(self) -> int:
        return len(self._limits)

    @asynccontextmanager
    async def until_closed(self, request: web.Request, key: str = "") -> AsyncGenerator[None, None]:
        """Run a request until it ends or its port closes.

        Raises StageLost when the port closes meanwhile, Refused when its key is revoked. A stream that has begun
        reports that itself, by `closes`.
        """
        limit = request[_LIMIT] = asyncio.timeout(None)
        try:
            async with limit:
                self._limits[limit] = request, key
                yield
        except TimeoutError:
            if not limit.expired():
                raise
            if STARTED in request:  # its last words are sent
                raise asyncio.CancelledError from None
            raise closing_error(request) from None
        finally:
            self._limits.pop(limit, None)

    async def end_all(self, _: web.Application) -> None:
        """End all requests, soon."""
        for limit in self._limits:
            _end(limit)
        with suppress(TimeoutError):
            async with asyncio.timeout(END_SECONDS):
                while self._limits:  # noqa: ASYNC110  ends in other tasks
                    await asyncio.sleep(0.01)

    def end_requests_of(self, key: str) -> None:
        """End the requests of a key that was revoked."""
        for limit, (request, its_key) in self._limits.items():
            if its_key == key:
                request[_KEY_GONE] = True
                _end(limit)


def _end(limit: asyncio.Timeout) -> None:
    if not limit.expired():
        limit.reschedule(asyncio.get_running_loop().time())


def is_closing(request: web.Request) -> bool:
    """Return whether a request is canceled because its port closes to it, and not because its program has left."""
    return request[_LIMIT].expired()


def closing_error(request: web.Request) -> AppError:
    return Refused("api_key_gone") if request.get(_KEY_GONE) else StageLost("api_closed")
