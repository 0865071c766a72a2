"""The memory of this host, shared by its loaded models, and the reservations for them."""

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
        self._loaded, self._planner_inputs = loaded, planner_inputs
        self.choosing, self._idle = asyncio.Lock(), idle

    def reservation_for(self, running: Placement, shrink_embeddings: Callable[[int], Awaitable[None]]) -> Reservation:
        """Return the reservation for one placement. `shrink_embeddings` receives the size of the placement on this
        host, and unloads the embedding model if both do not fit.
        """
        return Reservation(partial(self._make, running, shrink_embeddings), self.choosing, self._idle.transfer)

    async def _make(self, running: Placement, shrink_embeddings: Callable[[int], Awaitable[None]], plan: Plan) -> None:
        """Free memory for a plan. Raises DoesNotFit if another model has taken the memory in the meantime."""
        neighbors = alive(self._loaded.except_for(running))
        await shrink_embeddings(bytes_on(plan.host, plan.stages))
        if machines := _of_spares(plan, standby_bytes(neighbors)):
            for neighbor in neighbors:
                await neighbor.claims.close_standby(machines)
        if neighbors and not running.order.anyway:
            host, taken = self._of_family(running.entry.model.family)
            if taken > host.lends_bytes:
                raise DoesNotFit("beside_no_room", model=running.entry.name)

    def _of_family(self, family: str) -> tuple[Candidate, int]:
        """Return this machine and the memory of the chat models, as `here` does, but for a model of this family.

        Only models in the same kind of memory count: the graphics card's or main memory, depending on the family.
        """
        host, _ = self._planner_inputs.machines(released_bytes(self._loaded), {}, family)
        refused, beside = host.refused_families, bool(host.processor_family)
        same = [other for other in self._loaded if (other.entry.model.family in refused) == beside]
        return host, released_bytes(same).get(host.id, 0)

    def here(self) -> tuple[Candidate, int]:
        """Return this machine with the memory for all its own models, and how many bytes of it the chat models use."""
        released = released_bytes(self._loaded)
        host, _ = self._planner_inputs.machines(released, {})
        return host, released.get(host.id, 0)


def _of_spares(plan: Plan, there: Mapping[MachineId, int]) -> frozenset[MachineId]:
    """Return the machines on which a plan needs memory that standby layers of other placements occupy."""
    lends = {machine.id: machine.lends_bytes for machine in plan.machines}
    return frozenset(
        machine
        for machine, spare in there.items()
        if bytes_on(machine, plan.stages) > max(0, lends.get(machine, 0) - spare)
    )


def released_bytes(goes: Iterable[Placement], stays: Iterable[Placement] = ()) -> dict[MachineId, int]:
    """Return how many bytes each machine would free if these placements ended.

    Bytes that the machine already reports as free are not counted. Ended placements free nothing on the host itself,
    because its own figures are always current.

    stays: placements that free only their standby layers.
    """
    back = standby_bytes(stays)
    for placement in goes:
        for machine, n_bytes in placement.released_bytes().items():
            if machine != placement.plan.host or not placement.ended.is_set():
                back[machine] = back.get(machine, 0) + n_bytes
    return back


def standby_bytes(some: Iterable[Placement]) -> dict[MachineId, int]:
    """Return how many bytes of standby layers each machine holds. Any model may claim this memory."""
    n_bytes: dict[MachineId, int] = {}
    for stage in (stage for placement in alive(some) for stage in placement.claims.standby()):
        n_bytes[stage.machine] = n_bytes.get(stage.machine, 0) + stage.total_bytes
    return n_bytes
