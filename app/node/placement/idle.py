"""Whether anybody asks any model of this host now, and when somebody did last: what is done ahead waits for all."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager


class IdleTracker:
    """Of all placements of one host."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()  # somebody asks, or layers move
        self.since_s = time.monotonic()  # while nobody does
        self._n_askers = self._n_moves = 0

    @property
    def asked_s(self) -> float:
        """When somebody asked last, by the monotonic clock; now, while somebody does."""
        return time.monotonic() if self.asked.is_set() else self.since_s

    @contextmanager
    def broken(self) -> Iterator[None]:
        """Somebody asks inside."""
        self._n_askers += 1
        self.asked.set()
        try:
            yield
        finally:
            self._n_askers -= 1
            if not self._n_askers:
                self.since_s = time.monotonic()
            self._rest()

    @contextmanager
    def stirred(self) -> Iterator[None]:
        """Layers move inside, maybe for nobody: what is done ahead waits for that, and goes on at once."""
        self._n_moves += 1
        self.asked.set()
        try:
            yield
        finally:
            self._n_moves -= 1
            self._rest()

    def _rest(self) -> None:
        if not (self._n_askers or self._n_moves):
            self.asked.clear()
