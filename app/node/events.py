"""The event stream: a full snapshot first, then numbered changes as JSON merge patches (RFC 7396)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from app.core.merge_patch import merge_patch

Json = dict[str, Any]

MAX_WAITING = 64  # changes a slow listener may lag behind; then it gets a snapshot again
PAINT_SECONDS = 1 / 30  # bursts are merged: nobody reads faster (UX.md T10)


class Events:
    """Turns "something changed" into numbered changes for any number of listeners."""

    def __init__(self, build: Callable[[], Json]) -> None:
        self._build = build
        self._dirty = asyncio.Event()
        self._number = 0
        self._last: Json = {}
        self._listeners: set[asyncio.Queue[tuple[int, str, Json]]] = set()

    def changed(self) -> None:
        """Say that the snapshot may be another now. Cheap; call it as often as you like."""
        self._dirty.set()

    async def run(self) -> None:
        """Compare, number and hand out changes until cancelled."""
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            self._publish()
            await asyncio.sleep(PAINT_SECONDS)

    def _publish(self) -> None:
        if not self._listeners:
            return  # whoever comes begins with a snapshot of that moment
        now = self._build()
        if patch := merge_patch(self._last, now):
            self._number += 1
            self._last = now
            for listener in self._listeners:
                self._hand_over(listener, patch)

    def _hand_over(self, listener: asyncio.Queue[tuple[int, str, Json]], patch: Json) -> None:
        if listener.full():
            while not listener.empty():
                listener.get_nowait()
            listener.put_nowait((self._number, "snapshot", self._last))
        else:
            listener.put_nowait((self._number, "change", patch))

    async def listen(self) -> AsyncGenerator[tuple[int, str, Json], None]:
        """(number, "snapshot" or "change", data), beginning with a snapshot of now."""
        with self._listening() as queue:
            self._publish()
            while not queue.empty():  # the snapshot holds that change already
                queue.get_nowait()
            yield self._number, "snapshot", self._last
            while True:
                yield await queue.get()

    @contextmanager
    def _listening(self) -> Iterator[asyncio.Queue[tuple[int, str, Json]]]:
        queue: asyncio.Queue[tuple[int, str, Json]] = asyncio.Queue(MAX_WAITING)
        self._listeners.add(queue)
        try:
            yield queue
        finally:
            self._listeners.discard(queue)
