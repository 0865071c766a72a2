"""The event stream: a full snapshot first, then numbered changes as JSON merge patches (RFC 7396).

A listener that reconnects soon and names the last change it received gets only the later changes.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from app.core.wire_json import merge_patch

Json = dict[str, Any]

MAX_WAITING = 64  # changes that a slow listener may fall behind before it gets a new snapshot
KEPT = MAX_WAITING  # changes stored for a listener that reconnects
PAINT_SECONDS = 1 / 30  # changes within this time become one event, because nobody reads faster (UX.md T10)
LIFE_BYTES = 8


@dataclass(frozen=True, slots=True)
class Event:
    """An event of the stream. `name` is "snapshot", "change" or "resumed"; `id` identifies the latest change that the
    event includes."""

    id: str
    name: str
    data: Json


class ChangeNotifier:
    """A callable that notifies all subscribers that the snapshot or this machine's status may have changed. Calls are
    cheap."""

    def __init__(self) -> None:
        self._followers: list[Callable[[], None]] = []

    def __call__(self) -> None:
        for follower in self._followers:
            follower()

    def subscribe(self, follower: Callable[[], None]) -> None:
        self._followers.append(follower)


class Events:
    """Turns change notifications into numbered changes for any number of listeners.

    life: the ID of this run of the node. It distinguishes numbers from those of an earlier run.
    """

    def __init__(self, build: Callable[[], Json], life: str = "") -> None:
        self._build = build
        self._life = life or secrets.token_hex(LIFE_BYTES)
        self._dirty = asyncio.Event()
        self._number = 0
        self._last: Json = {}
        self._kept: deque[Event] = deque(maxlen=KEPT)
        self._listeners: set[asyncio.Queue[Event]] = set()

    def changed(self) -> None:
        """Note that the snapshot may have changed. Calls are cheap."""
        self._dirty.set()

    async def run(self) -> None:
        """Compute, number and distribute changes until canceled."""
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            self._publish()
            await asyncio.sleep(PAINT_SECONDS)

    def _publish(self) -> None:
        if not self._listeners:
            return  # the next listener starts with a fresh snapshot
        now = self._build()
        if patch := merge_patch(self._last, now):
            self._number += 1
            self._last = now
            change = Event(self._id(self._number), "change", patch)
            self._kept.append(change)
            for listener in self._listeners:
                self._hand_over(listener, change)

    def _hand_over(self, listener: asyncio.Queue[Event], change: Event) -> None:
        if listener.full():
            while not listener.empty():
                listener.get_nowait()
            listener.put_nowait(self._snapshot())
        else:
            listener.put_nowait(change)

    async def listen(self, after: str = "") -> AsyncGenerator[Event, None]:
        """Yield a snapshot, or "resumed" and all changes since `after`. Then yield each new change."""
        with self._listening() as queue:
            self._publish()
            while not queue.empty():  # the first events already include this change
                queue.get_nowait()
            for event in self._beginning(after):
                yield event
            while True:
                yield await queue.get()

    def _beginning(self, after: str) -> list[Event]:
        """Return the first events for a listener that last received the change `after`: all later changes if they are
        still stored, otherwise a snapshot."""
        known = [self._id(self._number - len(self._kept)), *(event.id for event in self._kept)]
        if after not in known:
            return [self._snapshot()]
        since = list(self._kept)[known.index(after) :]
        return [Event(after, "resumed", {}), *since]

    def _snapshot(self) -> Event:
        return Event(self._id(self._number), "snapshot", self._last)

    def _id(self, number: int) -> str:
        return f"{self._life}-{number}"

    @contextmanager
    def _listening(self) -> Iterator[asyncio.Queue[Event]]:
        queue: asyncio.Queue[Event] = asyncio.Queue(MAX_WAITING)
        self._listeners.add(queue)
        try:
            yield queue
        finally:
            self._listeners.discard(queue)
