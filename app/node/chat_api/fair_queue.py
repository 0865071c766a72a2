"""Whose answer comes next: programs take turns, and the owner's own chats go first."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from app.core.errors import Busy

MAX_WAITING = 64
USUAL_S = 10.0  # an answer, before any was seen


class FairQueue:
    """`room` says how many answers may be made now. One who asks much waits behind his own questions only, and
    keeps nobody out: once too many wait, the last of the longest line makes room for whoever has a shorter one."""

    def __init__(self, room: Callable[[], int], max_waiting: int = MAX_WAITING) -> None:
        self._room, self._max_waiting = room, max_waiting
        self._lines: dict[str, deque[asyncio.Future[None]]] = {}  # in the order of their turns
        self._usual_s = USUAL_S
        self.n_running = 0

    @property
    def n_waiting(self) -> int:
        return sum(map(len, self._lines.values()))

    @asynccontextmanager
    async def turn(self, who: str) -> AsyncGenerator[None, None]:
        """Wait for a turn; it lasts as long as the block. Raises Busy when too many wait."""
        await self._wait(who)
        loop = asyncio.get_running_loop()
        begun = loop.time()
        try:
            yield
        finally:
            self._usual_s += 0.2 * (loop.time() - begun - self._usual_s)
            self.n_running -= 1
            self.look()

    def look(self) -> None:
        """Let in whoever there is room for now."""
        while self._lines and self.n_running < self._room():
            who, line = next(iter(self._lines.items()))
            turn = line.popleft()
            del self._lines[who]
            if line:
                self._lines[who] = line  # behind all others
            if not turn.done():  # else its asker left
                self.n_running += 1
                turn.set_result(None)

    async def _wait(self, who: str) -> None:
        if self.n_waiting >= self._max_waiting:
            self._make_room(who)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._lines.setdefault(who, deque()).append(turn)
        self.look()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.n_running -= 1  # the turn came in the same moment
                self.look()
            else:
                self._forget(who, turn)
            raise

    def _make_room(self, who: str) -> None:
        """Raises Busy, unless somebody has asked so much more that the last of it is turned away instead."""
        longest = max(self._lines.values(), key=len, default=deque())
        seconds = math.ceil(self._usual_s * (self.n_waiting + 1) / max(1, self._room()))
        full = Busy("queue_full", waiting=self.n_waiting, seconds=max(1, seconds))
        if len(self._lines.get(who, ())) + 1 >= len(longest):
            raise full
        last = longest.pop()
        if not last.done():  # else its asker has left
            last.set_exception(full)
            last.exception()  # seen: its asker may be leaving

    def _forget(self, who: str, turn: asyncio.Future[None]) -> None:
        line = self._lines.get(who)
        if line is not None and turn in line:
            line.remove(turn)
            if not line:
                del self._lines[who]
