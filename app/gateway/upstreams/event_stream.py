"""The stream of events that another server answers with, as JSON objects: a stranger's, so all of it has bounds."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any, Protocol

from app.decoding import decode

MOST_LINE_BYTES = 4 << 20
MOST_EVENTS = 1 << 20  # also of those that say nothing
_DATA = re.compile(
    rb"^data:(.*)$", re.MULTILINE
)  # all else is passed over without a step of Python


class Odd(ValueError):
    """What a server sent is not as it should be, in our words."""


class Content(Protocol):
    """What aiohttp calls a StreamReader."""

    def iter_any(self) -> AsyncIterator[bytes]: ...


async def chunks(content: Content) -> AsyncGenerator[dict[str, Any], None]:
    """Raises ValueError for what is no object, Odd for a stream that has no end."""
    n_events = 0
    async with aclosing(_data(content)) as lines:
        async for line in lines:
            if line == b"[DONE]":
                return
            n_events += 1
            chunk = decode(line, dict[str, Any])
            if chunk.get("error"):
                raise Odd("an error in place of more")
            if n_events > MOST_EVENTS:
                raise Odd("more events than any answer has")
            yield chunk
    raise Odd("the stream ended in the middle")


async def _data(content: Content) -> AsyncGenerator[bytes, None]:
    """What stands behind `data:` in each line. Raises Odd for a line that is too long."""
    held = bytearray()
    async for part in content.iter_any():
        before, end = len(held), part.rfind(b"\n") + 1
        held += part
        if end:
            for line in _DATA.findall(held, 0, before + end):
                yield line.strip()
            del held[: before + end]
        if len(held) > MOST_LINE_BYTES:
            raise Odd("a line without an end")
    for line in _DATA.findall(held):
        yield line.strip()
