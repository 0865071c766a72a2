"""The limit on each key's tokens per minute.

A key that has used up its tokens must wait until enough of them are a minute old.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from functools import partial

from app.core.errors import Busy

WINDOW_SECONDS = 60.0


class TokenBudget:
    """The tokens that each key has spent in the last minute.

    Prompt tokens count too, except those that were cached. `most` returns the limit of a key, where 0 means no
    limit.
    """

    def __init__(self, most: Callable[[str], int], clock: Callable[[], float]) -> None:
        self._most, self._clock = most, clock
        self._had: dict[str, deque[tuple[float, int]]] = {}  # per key: time, number of tokens

    def check(self, key: str) -> None:
        """Raise Busy if this key has used up its tokens.

        An answer in progress is not interrupted if it exceeds the limit.
        """
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
        """Add `n_tokens` to the tokens that this key has spent."""
        if n_tokens > 0 and self._most(key):
            self._recent(key).append((self._clock(), n_tokens))

    def spender(self, key: str) -> Callable[[int], None]:
        """Return a callback that counts tokens as they are computed.

        The tokens of a client that disconnects early are therefore counted too.
        """
        return partial(self.spend, key)

    def _recent(self, key: str) -> deque[tuple[float, int]]:
        had = self._had.setdefault(key, deque())
        while had and had[0][0] <= self._clock() - WINDOW_SECONDS:
            had.popleft()
        return had
