"""The queue of loads: each can be stopped by the name of its model, and its failure is written to the journal."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from app.core.errors import AppError, Reason, StageLost
from app.node.cancellation import run_until
from app.node.journal import Journal
from app.node.models.loaded_models import LoadedModels
from app.node.placement.placement import Placement


class LoadLock(asyncio.Lock):
    """The lock of a host's loads. A request for a model that the load spares need not wait for it."""

    def __init__(self, loaded: LoadedModels) -> None:
        super().__init__()
        self._loaded = loaded
        self.spared: tuple[Placement, ...] = ()
        self._first_goes = False  # it replaces what a question without a name is for

    @contextmanager
    def sparing(self, stays: tuple[Placement, ...]) -> Iterator[None]:
        """Keep these placements while the block runs. Call it with the lock held."""
        before = self.spared, self._first_goes
        self.spared, self._first_goes = stays, self._loaded.first not in stays
        try:
            yield
        finally:
            self.spared, self._first_goes = before

    def concerns(self, running: Placement, *, by_name: bool) -> bool:
        """Return whether the load under way may replace this placement, which a request wants."""
        stays = running in self.spared and (by_name or not self._first_goes)
        return self.locked() and not stays


T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Load:
    """A load that waits or is under way. model: the name as given, and the full name as soon as that is known."""

    model: str
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    over: asyncio.Event = field(default_factory=asyncio.Event)


class LoadQueue:
    """The loads of one host. `turn`: one load at a time."""

    def __init__(self, loaded: LoadedModels, journal: Journal) -> None:
        self.turn, self._journal = LoadLock(loaded), journal
        self._under_way: list[Load] = []
        self._closed = False

    def __len__(self) -> int:
        return len(self._under_way)

    async def stoppable(self, load: Load, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of a load that `stop` and `close` can end while it waits, hashes or opens stages."""
        if self._closed:
            work.close()
            raise StageLost("node_stops")
        self._under_way.append(load)
        try:
            return await run_until(load.stop, work, StageLost("load_stopped", model=load.model))
        except AppError as error:
            self._journal.note(Reason("log_model_failed", {"model": load.model, "why": error.reason}))
            raise
        except asyncio.CancelledError:
            self._journal.note(Reason("log_model_stopped", {"model": load.model}))
            raise
        finally:
            self._under_way.remove(load)
            load.over.set()

    def stop(self, name: str | None = None) -> list[asyncio.Event]:
        """End the loads of this model, or all; each returned event is set when one has ended."""
        ending = [load for load in self._under_way if name in (None, load.model)]
        for load in ending:
            load.stop.set()
        return [load.over for load in ending]

    def close(self) -> None:
        """End all loads, and refuse new ones."""
        self._closed = True
        self.stop()
