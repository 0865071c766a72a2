"""The order of answers: programs take turns, and the owner's own chats go first."""

from __future__ import annotations

import asyncio
import math
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from app.core.errors import Busy

MAX_WAITING = 64
USUAL_S = 10.0  # an answer, before any was seen


@dataclass(slots=True, eq=False)
class Turn:
    """One question in line: its model ("": any), and whether it may begin."""

    model: str
    admitted: asyncio.Future[None]


class FairQueue:
    """A queue in which a program that asks much waits only behind its own questions.

    `room` tells how many answers may be made now by a model, `by` which model answers for another; while one has no
    room, questions for others are let in. Once too many wait, the last of the longest line makes room for one with a
    shorter line.
    """

    def __init__(
        self, room: Callable[[str], int], max_waiting: int = MAX_WAITING, by: Callable[[str], str] = lambda _: ""
    ) -> None:
        self._room, self._max_waiting, self._by = room, max_waiting, by
        self._lines: dict[str, deque[Turn]] = {}  # in the order of their turns
        self._usual_s = USUAL_S
        self._running: Counter[str] = Counter()  # by the model that is asked

    @property
    def n_running(self) -> int:
        return self._running.total()

    @property
    def n_waiting(self) -> int:
        return sum(map(len, self._lines.values()))

    def n_running_by(self, serving: str) -> int:
        """Return how many answers this model makes, whichever models were named."""
        return sum(n for model, n in self._running.items() if self._by(model) == serving)

    def is_full(self, model: str = "") -> bool:
        """Return whether the model that answers for this one makes as many answers as it may."""
        by = self._by(model)
        return self.n_running_by(by) >= self._room(by)

    def waits_for(self, model: str) -> bool:
        """Return whether a request waits that this model would answer."""
        return any(turn.model in ("", model) for line in self._lines.values() for turn in line)

    @asynccontextmanager
    async def turn(self, key: str, model: str = "") -> AsyncGenerator[Turn, None]:
        """Wait for a turn; it lasts as long as the block. Raises Busy when too many wait."""
        turn = await self._wait(key, model)
        loop = asyncio.get_running_loop()
        begun = loop.time()
        try:
            yield turn
        finally:
            self._usual_s += 0.2 * (loop.time() - begun - self._usual_s)
            self._ended(turn)

    def assign_model(self, turn: Turn, model: str) -> None:
        """Count a question that named no model for the model that it came to."""
        if model != turn.model:
            before, turn.model = turn.model, model
            self._running[model] += 1
            self._leave(before)

    def admit(self) -> None:
        """Let in the questions for which there is room now."""
        while (following := self._next()) is not None:
            key, turn = following
            line = self._lines.pop(key)
            line.remove(turn)
            if line:
                self._lines[key] = line  # behind all others
            if not turn.admitted.done():  # else its asker left
                self._running[turn.model] += 1
                turn.admitted.set_result(None)

    def _next(self) -> tuple[str, Turn] | None:
        """Return the first question for which there is room, and its key."""
        full: dict[str, bool] = {}  # by model
        for key, line in self._lines.items():
            for turn in line:
                if turn.model not in full:
                    full[turn.model] = self.is_full(turn.model)
                if not full[turn.model]:
                    return key, turn
        return None

    def _ended(self, turn: Turn) -> None:
        self._leave(turn.model)

    def _leave(self, model: str) -> None:
        self._running[model] -= 1
        self._running += Counter()  # without what is at nought
        self.admit()

    async def _wait(self, key: str, model: str) -> Turn:
        if self.n_waiting >= self._max_waiting:
            self._make_room(key, model)
        turn = Turn(model, asyncio.get_running_loop().create_future())
        self._lines.setdefault(key, deque()).append(turn)
        self.admit()
        try:
            await turn.admitted
        except asyncio.CancelledError:
            if turn.admitted.done() and not turn.admitted.cancelled() and turn.admitted.exception() is None:
                self._ended(turn)  # the turn came in the same moment
            else:
                self._forget(key, turn)
            raise
        return turn

    def _make_room(self, key: str, model: str) -> None:
        """Turn away the last question of a key that has asked so much more, or raise Busy."""
        longest = max(self._lines.values(), key=len, default=deque())
        seconds = math.ceil(self._usual_s * (self.n_waiting + 1) / max(1, self._room(self._by(model))))
        full = Busy("queue_full", waiting=self.n_waiting, seconds=max(1, seconds))
        if len(self._lines.get(key, ())) + 1 >= len(longest):
            raise full
        last = longest.pop().admitted
        if not last.done():  # else its asker has left
            last.set_exception(full)
            last.exception()  # seen: its asker may be leaving

    def _forget(self, key: str, turn: Turn) -> None:
        line = self._lines.get(key)
        if line is not None and turn in line:
            line.remove(turn)
            if not line:
                del self._lines[key]
