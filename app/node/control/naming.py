"""Names and roles of machines. A machine can be renamed by its owner or by an admin of the household."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

import msgspec

from app.api.responses import MachineRoles, RemoveMachineResponse, RenamedMachine, RenameResponse, SetRolesResponse
from app.api.snapshot import MachineRef
from app.core.errors import BadInput, Refused
from app.core.household.household import Machine
from app.core.household.membership import Member
from app.core.household.operations import Add, OperationId, Role
from app.core.ids import MachineId, clean_name, is_taken, name_key
from app.machine.settings import SettingsStore
from app.network.network import Network


class Naming:
    """Keeps track of this machine's name. `changed` is called with each new name."""

    def __init__(self, choices: SettingsStore, changed: Callable[[str], None]) -> None:
        self._choices, self._changed = choices, changed
        self._news = asyncio.Event()
        self._wanted: tuple[OperationId, str] | None = None

    def members_changed(self, me: Member | None) -> None:
        """Schedule the change of this machine's name if the membership log has renamed it."""
        if me is not None and me.renamed and me.renamed != self._choices.now.renamed:
            self._wanted = (me.renamed, me.name)
            self._news.set()

    async def joined(self, me: Member | None) -> str | None:
        """Adopt and return the name that the joined household gave this machine, or return None if the name is
        unchanged."""
        if me is None or name_key(me.name) == name_key(self._choices.now.name):
            return None
        await self._take(me.name, None)
        return me.name

    async def run(self) -> None:
        """Adopt each new name that the household gives this machine, until canceled."""
        while True:
            await self._news.wait()
            self._news.clear()
            if self._wanted is not None:
                line, name = self._wanted
                await self._take(name, line)

    async def rename(
        self, network: Network, machine: Machine, name: str, machines: Mapping[MachineId, Machine]
    ) -> RenameResponse:
        """Rename `machine`. Raises BadInput for an invalid name, and Refused for another machine unless this one is an
        admin."""
        cleaned = clean_name(name)
        if not any(sign.isprintable() and not sign.isspace() for sign in name):
            raise BadInput("name_empty")
        neighbors = [other for key, other in machines.items() if key != machine.id]
        if is_taken(cleaned, (taken for other in neighbors for taken in (other.name, other.log_name))):
            raise BadInput("name_taken", name=cleaned)
        if machine.id == network.id:
            await self._take(cleaned, None)
        else:
            await network.rename(machine.id, cleaned)
        return RenameResponse(RenamedMachine(machine.id, cleaned, machine.name))

    async def _take(self, name: str, line: OperationId | None) -> None:
        answer = {"name": name} if line is None else {"name": name, "renamed": line}
        await self._choices.change(lambda now: msgspec.structs.replace(now, **answer))
        self._changed(name)


async def set_roles(network: Network, machine: Machine, roles: Sequence[str]) -> SetRolesResponse:
    """Set the roles of `machine`. Raises Refused, and BadInput for contradictory roles."""
    if {"guest", "host"} <= set(roles):
        raise BadInput("roles_contradict", name=machine.name)
    member = await network.set_roles(machine.id, [Role(role) for role in roles])
    return SetRolesResponse(MachineRoles(machine.id, machine.name, roles=sorted(map(str, member.roles))))


async def remove(
    network: Network, machine: Machine, added: str | None, names: Mapping[MachineId, Machine]
) -> RemoveMachineResponse:
    """Remove `machine` from the household.

    added: "keep" or "remove", for the machines that `machine` has added. Raises Refused if there are any and `added` is
        None.
    """
    if machine.id == network.id:
        raise BadInput("remove_itself")
    theirs = {
        line.id: line.body.machine
        for line in network.added_by(machine.id)
        if isinstance(line.body, Add) and line.body.machine in network.members
    }
    also_removed = set(theirs.values()) - {network.id}
    if also_removed and added is None:
        there = ", ".join(sorted(names[key].name for key in also_removed if key in names))
        raise Refused("remove_added", name=machine.name, added=there)
    keeps = added == "keep"
    kept = [line for line, key in theirs.items() if keeps or key == network.id]
    before = set(network.members)
    await network.remove(machine.id, kept)
    gone = before - network.members.keys() - {machine.id}
    also = sorted(names[key].name for key in gone if key in names)
    return RemoveMachineResponse(MachineRef(machine.id, machine.name), also)
