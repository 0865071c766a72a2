"""A transport that reports when the server has closed its side, which the SDK reports only to the next request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Any, Self

import anyio
from mcp.shared.message import SessionMessage


class _WatchedReader:
    """A stream of messages that calls `over` at its end."""

    def __init__(self, inner: Any, over: Callable[[], None]) -> None:
        self._inner, self._over = inner, over

    @property
    def last_context(self) -> Any:
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        try:
            message: SessionMessage | Exception = await self._inner.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._over()
            raise
        return message

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        closed: bool | None = await self._inner.__aexit__(kind, error, trace)
        return closed


@asynccontextmanager
async def watched(transport: AbstractAsyncContextManager[Any], over: Callable[[], None]) -> AsyncIterator[Any]:
    """Open a transport, and call `over` when the server has closed its side."""
    async with transport as (reader, writer):
        yield _WatchedReader(reader, over), writer
