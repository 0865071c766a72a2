"""Turn-taking for downloads: only a few run at a time, in the order of the download list."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager


class DownloadTurns:
    """Lets at most `at_once` downloads run at a time. The others wait in the order that `order` currently returns."""

    def __init__(self, at_once: int, order: Callable[[], Iterable[str]]) -> None:
        self._at_once, self._order = at_once, order
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self._running: set[str] = set()

    @asynccontextmanager
    async def turn(self, download_id: str) -> AsyncIterator[None]:
        """Wait until it is this download's turn, which lasts while the block runs."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[download_id] = future
        self._admit()
        try:
            await future
            yield
        finally:
            if self._waiting.get(download_id) is future:
                del self._waiting[download_id]
            else:
                self._running.discard(download_id)
            self._admit()

    def _admit(self) -> None:
        """Give free turns to the waiting downloads that come first in the list."""
        for key in self._order():
            if len(self._running) >= self._at_once:
                return
            if (future := self._waiting.pop(key, None)) is not None:
                self._running.add(key)
                if not future.done():
                    future.set_result(None)
