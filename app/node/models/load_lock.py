"""One load at a time, and which models it leaves as they are."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from app.node.models.loaded_models import Loaded
from app.node.placement.placement import Running


class LoadTurn(asyncio.Lock):
    """Of one host. Whoever asks for what the load spares need not wait for it."""

    def __init__(self, loaded: Loaded) -> None:
        super().__init__()
        self._loaded = loaded
        self.spared: tuple[Running, ...] = ()
        self._first_goes = False  # it replaces what a question without a name is for

    @contextmanager
    def sparing(self, stays: tuple[Running, ...]) -> Iterator[None]:
        """From now on these stay. In the turn only."""
        before = self.spared, self._first_goes
        self.spared, self._first_goes = stays, self._loaded.first not in stays
        try:
            yield
        finally:
            self.spared, self._first_goes = before

    def concerns(self, running: Running, *, by_name: bool) -> bool:
        """Whether somebody waits for another model in the place of this one, which was asked for."""
        stays = running in self.spared and (by_name or not self._first_goes)
        return self.locked() and not stays
