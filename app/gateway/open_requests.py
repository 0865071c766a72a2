"""The open requests of a server for programs, and writes that do not hang when a client stops reading.

When the server closes or a key is revoked, each affected request ends with an error in the format of its API.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from aiohttp import web

from app.core.errors import AppError, Refused, StageLost

UNREAD_SECONDS = 30.0
PIECE_BYTES = 64 << 10  # a smaller answer fits into the system's buffers

STARTED = web.RequestKey("begun", bool)  # headers are sent, so an error can no longer set the status
COMPLETE = web.RequestKey("whole", bool)  # the whole stream is sent, so a client that leaves now has received it

END_SECONDS = 1.0  # time to send the errors; clients that do not read are then cut off
_LIMIT = web.RequestKey("limit", asyncio.Timeout)
_KEY_GONE = web.RequestKey("key gone", bool)


async def write(request: web.Request, answer: web.StreamResponse, part: bytes) -> None:
    """Send the headers if necessary, then write a part of the answer. Waits while the client's buffer is full.

    A client that reads nothing for too long is disconnected, and its answer is canceled.
    """
    request[STARTED] = True
    try:
        async with asyncio.timeout(UNREAD_SECONDS):
            await answer.prepare(request)  # only the first call sends headers
            await answer.write(part)
    except (ConnectionError, TimeoutError):
        if request.transport is not None:
            request.transport.abort()
        raise asyncio.CancelledError from None


async def finish(answer: web.StreamResponse) -> None:
    """End an answer after its last part.

    The client may already have disconnected: OpenAI's client does so after `[DONE]`.
    """
    with suppress(ConnectionError):
        await answer.write_eof()


async def send_large(request: web.Request, answer: web.StreamResponse) -> web.StreamResponse:
    """Send a large answer in pieces, or return a small one unsent.

    aiohttp would wait forever for a client that stops reading.
    """
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
    """The open requests of one server."""

    def __init__(self) -> None:
        self._limits: dict[asyncio.Timeout, tuple[web.Request, str]] = {}  # with the name of its key

    def __len__(self) -> int:
        return len(self._limits)

    @asynccontextmanager
    async def until_closed(self, request: web.Request, key: str = "") -> AsyncGenerator[None, None]:
        """Run a request until it ends, its server closes or its key is revoked.

        Raises StageLost if the server closes, and Refused if the key is revoked. A stream that has already started
        must report this itself (see `is_closing`).
        """
        limit = request[_LIMIT] = asyncio.timeout(None)
        try:
            async with limit:
                self._limits[limit] = request, key
                yield
        except TimeoutError:
            if not limit.expired():
                raise
            if STARTED in request:  # the stream has already sent the error
                raise asyncio.CancelledError from None
            raise closing_error(request) from None
        finally:
            self._limits.pop(limit, None)

    async def end_all(self, _: web.Application | None = None) -> None:
        """End all requests, and wait briefly for their errors to be sent."""
        for limit in self._limits:
            _end(limit)
        with suppress(TimeoutError):
            async with asyncio.timeout(END_SECONDS):
                while self._limits:  # noqa: ASYNC110  ends in other tasks
                    await asyncio.sleep(0.01)

    def end_requests_of(self, key: str) -> None:
        """End the requests of a key that was revoked or replaced."""
        for limit, (request, its_key) in self._limits.items():
            if its_key == key:
                request[_KEY_GONE] = True
                _end(limit)


def _end(limit: asyncio.Timeout) -> None:
    if not limit.expired():
        limit.reschedule(asyncio.get_running_loop().time())


def is_closing(request: web.Request) -> bool:
    """Return whether a request is being canceled because its server closed or its key was revoked.

    The only other reason for a cancellation is that the client has disconnected.
    """
    return request[_LIMIT].expired()


def closing_error(request: web.Request) -> AppError:
    return Refused("api_key_gone") if request.get(_KEY_GONE) else StageLost("api_closed")
