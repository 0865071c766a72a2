"""The queue of requests. Programs take turns, and the owner's own chats go first."""

from __future__ import annotations

import asyncio
import math
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

from app.core.errors import Busy

MAX_WAITING = 64
USUAL_S = 10.0  # assumed duration of an answer before the first has ended


@dataclass(slots=True, eq=False)
class Turn:
    """A request in the queue.

    `model` is the requested model, or "" for any. `admitted` is a future that is resolved when the request is
    admitted, with the time of the event loop, or fails with Busy.
    """

    key: str
    model: str
    admitted: asyncio.Future[float]

    async def wait(self, seconds: float) -> bool:
        """Wait for admission for at most `seconds`. Return whether the request was admitted. Raises Busy."""
        done, _ = await asyncio.wait({self.admitted}, timeout=seconds)
        if done:
            self.admitted.result()
        return bool(done)


class FairQueue:
    """A queue in which a program with many requests delays only its own requests.

    room: returns how many answers a model may generate at the same time. by: returns the loaded model that serves
    requests for a given model.

    If a model is full, requests for other models are not blocked. If the whole queue is full, a new request of a key
    with fewer waiting requests displaces the last request of the key that has the most.
    """

    def __init__(
        self, room: Callable[[str], int], max_waiting: int = MAX_WAITING, by: Callable[[str], str] = lambda _: ""
    ) -> None:
        self._room, self._max_waiting, self._by = room, max_waiting, by
        self._lines: dict[str, deque[Turn]] = {}  # by key, in the order of their turns
        self._usual_s = USUAL_S
        self._running: Counter[str] = Counter()  # by the requested model

    @property
    def n_running(self) -> int:
        return self._running.total()

    @property
    def n_waiting(self) -> int:
        return sum(map(len, self._lines.values()))

    def n_running_by(self, serving: str) -> int:
        """Return how many answers the loaded model `serving` is generating, whichever model the requests named."""
        return sum(n for model, n in self._running.items() if self._by(model) == serving)

    def is_full(self, model: str = "") -> bool:
        """Return whether the loaded model that serves requests for `model` has no free slot."""
        by = self._by(model)
        return self.n_running_by(by) >= self._room(by)

    def expected_wait_s(self, model: str) -> float:
        """Return the estimated time until a new request for this model would have a turn."""
        if not self.is_full(model):
            return 0.0
        by = self._by(model)
        ahead = sum(self._by(turn.model) == by for line in self._lines.values() for turn in line)
        return self._usual_s * (ahead + 1) / max(1, self._room(by))

    def has_waiting(self, model: str) -> bool:
        """Return whether a request for this model, or for any model, is waiting."""
        return any(turn.model in ("", model) for line in self._lines.values() for turn in line)

    @contextmanager
    def line(self, key: str, model: str = "") -> Iterator[Turn]:
        """Keep a place in the queue and, after admission, a turn until the block ends.

        Raises Busy if it is full.
        """
        turn = self._enter(key, model)
        try:
            yield turn
        finally:
            admitted = turn.admitted
            if admitted.done() and not admitted.cancelled() and admitted.exception() is None:
                self._usual_s += 0.2 * (asyncio.get_running_loop().time() - admitted.result() - self._usual_s)
                self._leave(turn.model)
            else:
                self._forget(turn)

    @asynccontextmanager
    async def turn(self, key: str, model: str = "") -> AsyncGenerator[Turn, None]:
        """Wait for a turn and keep it until the block ends. Raises Busy if the queue is full."""
        with self.line(key, model) as turn:
            await turn.admitted
            yield turn

    def place(self, turn: Turn) -> tuple[int, int] | None:
        """Return a waiting request's position, from 1, and the estimated seconds until its turn, or None.

        Keys take turns, so for each of its own key's requests ahead, one request of every other key also goes first.
        """
        line = self._lines.get(turn.key, deque())
        if turn not in line:
            return None
        index, own = line.index(turn), list(self._lines).index(turn.key)
        before = (
            min(len(other), index + (position < own))
            for position, other in enumerate(self._lines.values())
            if position != own
        )
        place = index + sum(before) + 1
        return place, math.ceil(self._usual_s * place / max(1, self._room(self._by(turn.model))))

    def assign_model(self, turn: Turn, model: str) -> None:
        """Count an admitted request toward `model`, which answers it even if the request named no model."""
        if model != turn.model:
            before, turn.model = turn.model, model
            self._running[model] += 1
            self._leave(before)

    def admit(self) -> None:
        """Admit all waiting requests for which a slot is free."""
        while (following := self._next()) is not None:
            key, turn = following
            line = self._lines.pop(key)
            line.remove(turn)
            if line:
                self._lines[key] = line  # move it behind all others
            if not turn.admitted.done():  # otherwise its client has disconnected
                self._running[turn.model] += 1
                turn.admitted.set_result(asyncio.get_running_loop().time())

    def _next(self) -> tuple[str, Turn] | None:
        """Return the first waiting request for which a slot is free, with its key, or None."""
        full: dict[str, bool] = {}  # by model
        for key, line in self._lines.items():
            for turn in line:
                if turn.model not in full:
                    full[turn.model] = self.is_full(turn.model)
                if not full[turn.model]:
                    return key, turn
        return None

    def _leave(self, model: str) -> None:
        self._running[model] -= 1
        self._running += Counter()  # remove models without running answers
        self.admit()

    def _enter(self, key: str, model: str) -> Turn:
        if self.n_waiting >= self._max_waiting:
            self._make_room(key, model)
        turn = Turn(key, model, asyncio.get_running_loop().create_future())
        self._lines.setdefault(key, deque()).append(turn)
        self.admit()
        return turn

    def _make_room(self, key: str, model: str) -> None:
        """Drop the last request of the key with the longest line.

        Raises Busy if that line is no longer than this key's line.
        """
        longest = max(self._lines.values(), key=len, default=deque())
        seconds = math.ceil(self._usual_s * (self.n_waiting + 1) / max(1, self._room(self._by(model))))
        full = Busy("queue_full", waiting=self.n_waiting, seconds=max(1, seconds))
        if len(self._lines.get(key, ())) + 1 >= len(longest):
            raise full
        last = longest.pop().admitted
        if not last.done():  # otherwise its client has disconnected
            last.set_exception(full)
            last.exception()  # mark the error as retrieved, because the client may be disconnecting

    def _forget(self, turn: Turn) -> None:
        line = self._lines.get(turn.key)
        if line is not None and turn in line:
            line.remove(turn)
            if not line:
                del self._lines[turn.key]
