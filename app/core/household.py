"""The machines of the household as this node sees them: frozen facts, replaced by events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from app.core.errors import Reason
from app.core.ids import MachineId
from backends.contract import Layers


@dataclass(frozen=True, slots=True)
class Machine:
    """One member, as it last described itself. A name is decoration; the id is the machine."""

    id: MachineId
    name: str
    online: bool = False
    device: str = ""
    total_bytes: int = 0
    lends_bytes: int = 0  # what a new placement may take there now
    used_bytes: int = 0  # what placements hold there now
    roles: tuple[str, ...] = ()
    address: str | None = None
    reason: Reason | None = None
    layers: tuple[Layers, ...] = ()

    def could_lend(self, released_bytes: int) -> int:
        """What a new placement may take once `released_bytes` of an old one are given back.

        Never more than it lends in all: the news of the release may have arrived already.
        """
        return min(self.lends_bytes + released_bytes, self.lends_bytes + self.used_bytes)

    @property
    def state(self) -> str:
        """One word for the map and the table."""
        if not self.online:
            return "offline"
        if self.layers or self.used_bytes:
            return "working"
        return "ready" if self.lends_bytes else "off"


@dataclass(frozen=True, slots=True)
class Member:
    """The log says: this machine belongs to the household."""

    id: MachineId
    name: str
    roles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Removed:
    id: MachineId


@dataclass(frozen=True, slots=True)
class Came:
    """A link to the machine passed all checks."""

    id: MachineId
    address: str | None


@dataclass(frozen=True, slots=True)
class Told:
    """The machine described itself."""

    id: MachineId
    name: str
    device: str
    total_bytes: int
    lends_bytes: int
    used_bytes: int


@dataclass(frozen=True, slots=True)
class Doubted:
    """Nothing was heard for a while (a reason), or something again (None)."""

    id: MachineId
    reason: Reason | None


@dataclass(frozen=True, slots=True)
class Left:
    id: MachineId
    reason: Reason | None


@dataclass(frozen=True, slots=True)
class Holds:
    """A placement gave (or took) layers: what each machine holds now."""

    layers: Mapping[MachineId, tuple[Layers, ...]]


Event = Member | Removed | Came | Told | Doubted | Left | Holds


@dataclass(frozen=True, slots=True)
class Household:
    """All machines by id."""

    machines: Mapping[MachineId, Machine] = field(default_factory=dict)


def apply(household: Household, event: Event) -> Household:
    """The household after the event. News of a machine that is no member changes nothing."""
    machines = dict(household.machines)
    match event:
        case Member(id, name, roles):
            known = machines.get(id, Machine(id, name))
            machines[id] = replace(known, name=known.name or name, roles=roles)
        case Removed(id):
            machines.pop(id, None)
        case Holds(layers):
            machines = {key: replace(m, layers=layers.get(key, ())) for key, m in machines.items()}
        case Came() | Told() | Doubted() | Left():
            if event.id in machines:
                machines[event.id] = _after(machines[event.id], event)
        case _:
            assert_never(event)
    return Household(machines)


def _after(machine: Machine, event: Came | Told | Doubted | Left) -> Machine:
    match event:
        case Came(_, address):
            address = address or machine.address
            return replace(machine, online=True, address=address, reason=None)
        case Told(_, name, device, total_bytes, lends_bytes, used_bytes):
            return replace(
                machine,
                name=name,
                device=device,
                total_bytes=total_bytes,
                lends_bytes=lends_bytes,
                used_bytes=used_bytes,
            )
        case Doubted(_, reason):
            return replace(machine, reason=reason)
        case Left(_, reason):
            return replace(machine, online=False, lends_bytes=0, used_bytes=0, reason=reason)
