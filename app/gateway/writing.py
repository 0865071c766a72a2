"""Bytes of an answer on their way to a program, which has gone when it takes none for long (SAFETY.md 5)."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from aiohttp import web

UNREAD_SECONDS = 30.0
PIECE_BYTES = 64 << 10  # what is smaller lies in the system's buffers, whoever reads it

BEGUN = web.RequestKey("begun", bool)  # an error has no status of its own any more
WHOLE = web.RequestKey("whole", bool)  # all of a stream is sent: who leaves then has it


async def write(request: web.Request, answer: web.StreamResponse, part: bytes) -> None:
    """Returns when the program has taken enough of it, after the headers. One that takes nothing is cut off, and the
    answer cancelled."""
    request[BEGUN] = True
    try:
        async with asyncio.timeout(UNREAD_SECONDS):
            await answer.prepare(request)  # once
            await answer.write(part)
    except (ConnectionError, TimeoutError):
        if request.transport is not None:
            request.transport.abort()
        raise asyncio.CancelledError from None


async def end(answer: web.StreamResponse) -> None:
    """After its last part. Who has left by now has all of it, as OpenAI's client, which leaves at `[DONE]`."""
    with suppress(ConnectionError):
        await answer.write_eof()


async def in_pieces(request: web.Request, answer: web.StreamResponse) -> web.StreamResponse:
    """A whole answer: sent here if it is a large one, for aiohttp would wait for ever until it is read."""
    body = answer.body if isinstance(answer, web.Response) and not answer.prepared else None
    if not isinstance(body, bytes) or len(body) <= PIECE_BYTES:
        return answer
    sent = web.StreamResponse(status=answer.status, headers=answer.headers)
    sent.content_length = len(body)
    for at in range(0, len(body), PIECE_BYTES):
        await write(request, sent, body[at : at + PIECE_BYTES])
    await end(sent)
    return sent
