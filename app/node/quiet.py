"""Whether anybody asks any model of this host now, and when somebody did last: what is done ahead waits for all."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Quiet:
    """Of all placements of one host."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()  # somebody asks
        self.since_s = time.monotonic()  # while nobody does
        self._n_askers = 0

    @property
    def asked_s(self) -> float:
        """When somebody asked last, by the monotonic clock; now, while somebody does."""
        return time.monotonic() if self._n_askers else self.since_s

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
                self.asked.clear()
