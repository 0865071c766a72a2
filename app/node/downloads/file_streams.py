"""One file on a link between two machines of a household: sending it from any position, and receiving it."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import BinaryIO

import aiohttp
from aiohttp import web

from app.catalog.files import CHUNK_BYTES
from app.catalog.hub.hub_files import Body, FileFacts
from app.catalog.transfers.file_transfer import run_to_completion
from app.core.errors import Refused, Unreachable
from app.network.peer.peer_client import HostClient, reported_error
from app.network.traffic_limits import LinkPace, TooLong, TooSlow, whole_body

MOST_BYTES = 64 << 10  # limit of a request, and of a reply that is not a file
TAKEN_SECONDS = 60.0  # time in which the receiver must accept a chunk, or the transfer ends
_RANGE = re.compile(r"bytes=(\d{1,15})-")
_CONTENT_RANGE = re.compile(r"bytes (\d{1,15})-(\d{1,15})/(\d{1,15})")


async def send_file(
    request: web.Request, path: Path, pace: LinkPace, is_allowed: Callable[[], bool], sent: Callable[[int], None]
) -> web.StreamResponse:
    """Answer a request with a file, from the requested position on. Raises OSError if the file cannot be opened.

    is_allowed: returns whether the owner still permits sending; if not, the connection is closed.
    sent: called first with the number of bytes that the receiver already has, then with the size of each chunk sent.
    """
    file = await asyncio.to_thread(path.open, "rb", 0)
    try:
        total = os.fstat(file.fileno()).st_size
        match = _RANGE.fullmatch(request.headers.get("Range", ""))
        start = int(match[1]) if match and int(match[1]) < total else 0
        answer = web.StreamResponse(status=206 if start else 200)
        answer.content_length = total - start
        if start:
            answer.headers["Content-Range"] = f"bytes {start}-{total - 1}/{total}"
        sent(start)
        await answer.prepare(request)
        async with (
            aclosing(_chunks(file, start, total, is_allowed)) as chunks,
            aclosing(pace.pace_sending(chunks)) as paced,
        ):
            async for chunk in paced:
                await _taken(answer, chunk)
                sent(len(chunk))
        return answer
    finally:
        file.close()


async def _chunks(
    file: BinaryIO, start: int, total: int, is_allowed: Callable[[], bool]
) -> AsyncGenerator[bytes, None]:
    """Yield the content of the file. If it may no longer be sent or has become shorter, raise ConnectionError, which
    closes the connection."""
    file.seek(start)
    while start < total:
        chunk = await run_to_completion(lambda: file.read(CHUNK_BYTES))
        if not chunk or not is_allowed():
            raise ConnectionAbortedError("it is not given any more")
        start += len(chunk)
        yield chunk[: len(chunk) - max(0, start - total)]


async def _taken(answer: web.StreamResponse, chunk: bytes) -> None:
    try:
        async with asyncio.timeout(TAKEN_SECONDS):
            await answer.write(chunk)
    except TimeoutError:
        raise TooSlow(f"took nothing in {TAKEN_SECONDS:.0f} s") from None


@asynccontextmanager
async def received_file(machine: HostClient, path: str, start: int) -> AsyncGenerator[Body, None]:
    """Request the file at `path` on another machine, and provide its content from position `start` on. Raises the
    error that the machine reports.
    """
    headers = {"Range": f"bytes={start}-"} if start else {}
    async with machine.request("GET", path, headers=headers) as answer:
        if answer.status not in (200, 206):
            raise reported_error(await short_body(answer), machine.host.name)
        facts, begins = _stands(answer, start)
        async with aclosing(machine.chunks(answer)) as chunks:
            yield Body(facts, begins, _Content(chunks))


class _Content:
    """The content of a file. A broken connection raises ConnectionResetError, so that the transfer retries."""

    def __init__(self, chunks: AsyncGenerator[bytes, None]) -> None:
        self._chunks = chunks

    async def readany(self) -> bytes:
        try:
            return await anext(self._chunks, b"")
        except Unreachable as error:
            raise ConnectionResetError(str(error)) from error


def _stands(answer: aiohttp.ClientResponse, start: int) -> tuple[FileFacts, int]:
    """Return the total size of the file and the position at which the response starts. Raises Refused."""
    begins, total = 0, answer.content_length
    if answer.status == 206:
        match = _CONTENT_RANGE.fullmatch(answer.headers.get("Content-Range", ""))
        if not match or int(match[1]) != start:
            raise Refused("peer_refused")
        begins, total = start, int(match[3])
    if not total:
        raise Refused("peer_refused")
    return FileFacts(total_bytes=total), begins


async def short_body(answer: aiohttp.ClientResponse, most_bytes: int = MOST_BYTES) -> bytes:
    """Return the body of a response that is not a file. Raises Refused if the body is longer than `most_bytes`,
    and TimeoutError if it arrives too slowly.
    """
    try:
        return await whole_body(answer.content, answer.content_length, most_bytes)
    except TooLong:
        raise Refused("peer_refused") from None
    except TooSlow as error:
        raise TimeoutError(str(error)) from None  # retried like a broken connection
