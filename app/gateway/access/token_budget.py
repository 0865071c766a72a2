"""The budget of tokens per minute of each key: one that has used it up waits until enough of them are a minute old."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from functools import partial

from app.core.errors import Busy

WINDOW_SECONDS = 60.0


class TokenBudget:
    """The tokens of all keys.

    Prompts count too, less what was cached. `most` tells how many a key may have; 0: any number.
    """

    def __init__(self, most: Callable[[str], int], clock: Callable[[], float]) -> None:
        self._most, self._clock = most, clock
        self._had: dict[str, deque[tuple[float, int]]] = {}  # when, how many

    def check(self, key: str) -> None:
        """Raise Busy for a key that has used up its tokens. An answer that uses them up is finished."""
        most, had = self._most(key), self._recent(key)
        left = sum(count for _, count in had)
        if not most or left < most:
            return
        free_at = self._clock()
        for at, count in had:
            left, free_at = left - count, at + WINDOW_SECONDS
            if left < most:
                break
        seconds = max(1, math.ceil(free_at - self._clock()))
        raise Busy("api_tokens_minute", most=most, seconds=seconds)

    def spend(self, key: str, n_tokens: int) -> None:
        """Count so many more tokens of this key."""
        if n_tokens > 0 and self._most(key):
            self._recent(key).append((self._clock(), n_tokens))

    def spender(self, key: str) -> Callable[[int], None]:
        """Return a callback that counts tokens as they are computed: a client that leaves early has had them too."""
        return partial(self.spend, key)

    def _recent(self, key: str) -> deque[tuple[float, int]]:
        had = self._had.setdefault(key, deque())
        while had and had[0][0] <= self._clock() - WINDOW_SECONDS:
            had.popleft()
        return had
