"""Request and response bodies between machines, bounded in bytes and in time without progress."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from typing import Protocol

MAX_MANIFEST_BYTES = 16 << 20
ANSWER_BYTES = 16 << 20  # the missing pieces of a big model are a long list
STALL_SECONDS = 9.5  # without a single byte; told and closed within ten
START_SECONDS = 30.0  # for the first 64 KiB, each byte of which earns its part of what goes beyond a stall
START_BYTES = 64 << 10
MIN_BYTES_PER_SECOND = 16 << 10
CHUNK_BYTES = 1 << 20


class TooSlow(Exception):
    """A sender that is too slow to wait for."""


class TooLong(ValueError):
    """More bytes than this body may have."""


class Source(Protocol):
    """An aiohttp StreamReader; b"" at the end."""

    async def readany(self) -> bytes: ...


async def pieces_of(source: Source, clock: Callable[[], float] = time.monotonic) -> AsyncGenerator[bytes, None]:
    """Yield the bytes as they come. Raises TooSlow. Only the sender's time counts, not the reader's."""
    received, waited_seconds = 0, 0.0
    while True:
        started = clock()
        left_seconds = allowed_seconds(received) - waited_seconds
        try:
            async with asyncio.timeout(min(STALL_SECONDS, left_seconds)):
                chunk = await source.readany()
        except TimeoutError as error:
            waited_seconds += clock() - started
            raise TooSlow(f"{received} bytes in {waited_seconds:.0f} s") from error
        if not chunk:
            return
        waited_seconds += clock() - started
        received += len(chunk)
        if waited_seconds > allowed_seconds(received):
            raise TooSlow(f"{received} bytes in {waited_seconds:.0f} s")
        yield chunk


async def whole_body(source: Source, announced: int | None, limit: int) -> bytes:
    """Return the whole body. Raises TooLong, before reading if `announced` is too long already."""
    if announced is not None and announced > limit:
        raise TooLong(f"{announced} bytes announced, {limit} allowed")
    body = bytearray()
    async for chunk in pieces_of(source):
        body += chunk
        if len(body) > limit:
            raise TooLong(f"more than {limit} bytes")
    return bytes(body)


def allowed_seconds(received: int) -> float:
    """Return how long the sender may have taken for so many bytes.

    A sender of one byte a second gets no longer than a silent one; 64 KiB may still take half a minute.
    """
    earned = (START_SECONDS - STALL_SECONDS) * min(received, START_BYTES) / START_BYTES
    return STALL_SECONDS + earned + max(0, received - START_BYTES) / MIN_BYTES_PER_SECOND
