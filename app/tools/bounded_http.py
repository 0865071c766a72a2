"""HTTP to a tool server, with a limit on the size of each answer."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2

MAX_MESSAGE_BYTES = 8 << 20  # a message of a tool server


class TooMuch(Exception):
    """An answer beyond the limit."""


class BoundedTransport(httpx2.AsyncBaseTransport):
    """A transport that limits answers to POST to MAX_MESSAGE_BYTES. A GET stays open for the server's notifications."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._inner.handle_async_request(request)
        if request.method == "POST":
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = _Bounded(response.stream)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        n_bytes = 0
        async for piece in self._inner:
            n_bytes += len(piece)
            if n_bytes > MAX_MESSAGE_BYTES:
                raise TooMuch
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()
