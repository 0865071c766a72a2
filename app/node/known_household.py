"""What this machine knows of its household now, and how a person's words find a machine in it."""

from __future__ import annotations

from collections.abc import Callable

from app.core.household.household import Event, Household, Machine, apply
from app.core.ids import MachineId
from app.node.control import pairing_routes
from app.node.links.last_seen import LastSeen


class KnownHousehold:
    """The household's facts, one event after another. `me`: this machine; `changed` is called after each."""

    def __init__(self, me: MachineId, sightings: LastSeen, changed: Callable[[], None]) -> None:
        self.me, self._sightings, self._changed = me, sightings, changed
        self.now = Household()

    def tell(self, event: Event) -> None:
        """Take an event in."""
        self.now = apply(self.now, self._sightings.told(event))
        self._changed()

    def machine(self, ref: str) -> Machine:
        """The machine a person means by a name or the beginning of an id. Raises BadInput."""
        return pairing_routes.named(ref, self.now.machines)

    def name(self, machine: MachineId) -> str:
        """The name of a machine; the beginning of its id where nobody told one."""
        return self.now.machines.get(machine, Machine(machine, machine[:8])).name
