"""The memory of this host that its loaded models share, and the reservation of each."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial

from app.core.errors import DoesNotFit
from app.core.ids import MachineId
from app.core.planner.placement import Candidate, Plan
from app.node.models.loaded_models import LoadedModels, alive
from app.node.placement.placement import Placement
from app.node.placement.placement_state import IdleTracker
from app.node.placement.stages import Reservation, bytes_on
from app.node.planning.planner_inputs import PlannerInputs


class HostMemory:
    """The memory of this host, shared by its placements."""

    def __init__(self, loaded: LoadedModels, planner_inputs: PlannerInputs, idle: IdleTracker) -> None:
        self._loaded, self._outlook = loaded, planner_inputs
        self.choosing, self._idle = asyncio.Lock(), idle

    def of(self, running: Placement, shrink_embeddings: Callable[[int], Awaitable[None]]) -> Reservation:
        """Return the reservation of one placement. `shrink_embeddings` makes the embedding model leave this many bytes
        to it."""
        return Reservation(partial(self._make, running, shrink_embeddings), self.choosing, self._idle.transfer)

    async def _make(self, running: Placement, shrink_embeddings: Callable[[int], Awaitable[None]], plan: Plan) -> None:
        """Free memory for a plan. Raises DoesNotFit if another model has taken it in the meantime."""
        neighbors = alive(self._loaded.except_for(running))
        await shrink_embeddings(bytes_on(plan.host, plan.stages))
        if machines := _of_spares(plan, standby_bytes(neighbors)):
            for neighbor in neighbors:
                await neighbor.claims.give_up_ahead(machines)
        if neighbors and not running.order.anyway:
            host, taken = self.here()
            if taken > host.lends_bytes:
                raise DoesNotFit("beside_no_room", model=running.entry.name)

    def here(self) -> tuple[Candidate, int]:
        """Return this machine, with the memory that all its own models may use, and the bytes that chat models take of
        it."""
        released = released_bytes(self._loaded)
        host, _ = self._outlook.machines(released, {})
        return host, released.get(host.id, 0)


def _of_spares(plan: Plan, there: Mapping[MachineId, int]) -> frozenset[MachineId]:
    """Return the machines on which a plan needs the memory of other placements' standby layers."""
    lends = {machine.id: machine.lends_bytes for machine in plan.machines}
    return frozenset(
        machine
        for machine, spare in there.items()
        if bytes_on(machine, plan.stages) > max(0, lends.get(machine, 0) - spare)
    )


def released_bytes(goes: Iterable[Placement], stays: Iterable[Placement] = ()) -> dict[MachineId, int]:
    """Return the bytes that each machine will free beyond what it reported as free if these placements end. The host's
    own figures are always current. stays: placements of which only standby layers can be freed."""
    back = standby_bytes(stays)
    for placement in goes:
        for machine, n_bytes in placement.releases().items():
            if machine != placement.plan.host or not placement.ended.is_set():
                back[machine] = back.get(machine, 0) + n_bytes
    return back


def standby_bytes(some: Iterable[Placement]) -> dict[MachineId, int]:
    """Return the bytes of standby layers on each machine, which any model may claim."""
    n_bytes: dict[MachineId, int] = {}
    for stage in (stage for placement in alive(some) for stage in placement.claims.ahead()):
        n_bytes[stage.machine] = n_bytes.get(stage.machine, 0) + stage.total_bytes
    return n_bytes
