"""This machine's memory, as its own models share it: what one takes, or is about to, is no other's."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from app.core.errors import DoesNotFit
from app.core.ids import MachineId
from app.core.planner.placement import Candidate, Plan
from app.node.models.loaded_models import LoadedModels, alive, releases, spares
from app.node.placement.idle import IdleTracker
from app.node.placement.placement import Placement
from app.node.placement.stages import Reservation, bytes_on
from app.node.planning.planner_inputs import PlannerInputs


class HostMemory:
    """Of all placements of one host. vectors: makes room for so many bytes where what does not write has them."""

    def __init__(
        self,
        loaded: LoadedModels,
        outlook: PlannerInputs,
        vectors: Callable[[int], Awaitable[None]],
        quiet: IdleTracker,
    ) -> None:
        self._loaded, self._outlook, self._vectors = loaded, outlook, vectors
        self.choosing, self._quiet = asyncio.Lock(), quiet

    def of(self, running: Placement) -> Reservation:
        """Its own."""
        return Reservation(partial(self.make, running), self.choosing, self._quiet.stirred)

    async def make(self, running: Placement, plan: Plan) -> None:
        """Before a model takes what is planned. Raises DoesNotFit where another one has taken it here meanwhile."""
        others = alive(self._loaded.but(running))
        await self._vectors(bytes_on(plan.host, plan.stages))
        if wanted := _of_spares(plan, spares(others)):
            for one in others:
                await one.holds.give_up_ahead(wanted)
        if others and not running.order.anyway:
            host, taken = self.here()
            if taken > host.lends_bytes:
                raise DoesNotFit("beside_no_room", model=running.entry.name)

    def here(self) -> tuple[Candidate, int]:
        """This machine with all that its own models may use, and what those that write have of it."""
        released = releases(self._loaded)
        host, _ = self._outlook.machines(released, {})
        return host, released.get(host.id, 0)


def _of_spares(plan: Plan, there: Mapping[MachineId, int]) -> frozenset[MachineId]:
    """Machines where a plan counts on what lies ahead for others."""
    lends = {one.id: one.lends_bytes for one in plan.machines}
    return frozenset(
        machine
        for machine, spare in there.items()
        if bytes_on(machine, plan.stages) > max(0, lends.get(machine, 0) - spare)
    )
