"""This machine's memory, as its own models share it: what one takes, or is about to, is no other's."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from app.core.errors import DoesNotFit
from app.core.placement import Candidate
from app.core.plan import Plan
from app.node.holds import bytes_on
from app.node.loaded import Loaded, alive, releases
from app.node.outlook import Outlook
from app.node.room import Room
from app.node.running import Running


class Rooms:
    """Of all placements of one host. vectors: makes room for so many bytes where what does not write has them."""

    def __init__(
        self, loaded: Loaded, outlook: Outlook, vectors: Callable[[int], Awaitable[None]]
    ) -> None:
        self._loaded, self._outlook, self._vectors = loaded, outlook, vectors
        self.choosing = asyncio.Lock()

    def of(self, running: Running) -> Room:
        """Its own."""
        return Room(partial(self.make, running), self.choosing)

    async def make(self, running: Running, plan: Plan) -> None:
        """Before a model takes what is planned. Raises DoesNotFit where another one has taken it here meanwhile."""
        await self._vectors(bytes_on(plan.host, plan.stages))
        if alive(self._loaded.but(running)) and not running.order.anyway:
            host, taken = self.here()
            if taken > host.lends_bytes:
                raise DoesNotFit("beside_no_room", model=running.entry.name)

    def here(self) -> tuple[Candidate, int]:
        """This machine with all that its own models may use, and what those that write have of it."""
        released = releases(self._loaded)
        host, _ = self._outlook.machines(released, {})
        return host, released.get(host.id, 0)
