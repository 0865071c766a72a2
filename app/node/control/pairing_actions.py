"""Pairing: opens pairing windows, joins households, and finds machines by name."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress

from app.api.plans import Progress
from app.api.responses import JoinResponse, MachineResponse, PairingCode
from app.api.snapshot import MachineRef, Pairing
from app.core.errors import BadInput, Refused, Unreachable
from app.core.household.household import Announced, Machine
from app.core.household.membership import Member
from app.core.household.operations import Role
from app.core.household.pairing import Closed, Done
from app.core.ids import MachineId, same_name
from app.network.membership.pairing_window import PairingWindow
from app.network.network import Network
from app.network.sockets import Address
from app.node.control.json_bodies import Report

ROLES = {
    "lend": (Role.LENDER,),
    "guest": (Role.GUEST,),
    "use_and_lend": (Role.HOST, Role.LENDER),
    "admin": (Role.ADMIN, Role.HOST, Role.LENDER),
}
WINDOW_SECONDS, WINDOW_TRIES = 120, 3  # SAFETY.md 3
LOOK_SECONDS = 0.5
LINKING_SECONDS = 5
MIN_PREFIX = 6


async def open_window(network: Network, role: str) -> PairingCode:
    """Open a pairing window and return its code. A machine that enters the code gets the rights of `role`. Raises
    Refused or Busy."""
    last = network.window
    if last is not None and not last.ended and not last.seconds_left:
        with suppress(TimeoutError):  # the code was correct, and the new machine is still connecting
            async with asyncio.timeout(LINKING_SECONDS):
                await _settled(last)
    window = await network.open_pairing(ROLES[role])
    return PairingCode(window.code, str(window.address), WINDOW_SECONDS, WINDOW_TRIES)


async def wait(network: Network, report: Report) -> MachineResponse:
    """Wait until the open pairing window closes, and return the paired machine. Raises Refused."""
    window = network.window
    if window is None:
        raise Refused("no_pairing_window")
    async with asyncio.TaskGroup() as group:
        ending = group.create_task(_settled(window), name="wait for pairing")
        while not (await asyncio.wait({ending}, timeout=LOOK_SECONDS))[0]:
            left = round(window.seconds_left)
            report(
                Progress(
                    "waiting", None, WINDOW_SECONDS - left, WINDOW_SECONDS, "seconds", tries_left=window.tries_left
                )
            )
    machine = ending.result()
    if isinstance(machine, Refused):
        raise machine
    return MachineResponse(MachineRef(machine, network.members[machine].name))


async def _settled(window: PairingWindow) -> MachineId | Refused:
    try:
        return await window.result()
    except Refused as error:
        return error


async def join(
    network: Network, ref: str, code: str, near: Iterable[Announced], machines: Mapping[MachineId, Machine]
) -> JoinResponse:
    """Join the household of the member that shows `code`. `ref` is the member's address, or its name if the member is
    in `near`.

    Raises Refused if `ref` is one of `machines`, which already belong to this household.
    """
    *earlier, last = _places(ref, near, machines, network.id)
    for place in earlier:  # all are addresses of one machine; the first that responds is used
        try:
            return _joined(network, await network.join(place, code))
        except Unreachable as error:
            if error.reason.code != "pairing_unreachable":
                raise
    return _joined(network, await network.join(last, code))


def _joined(network: Network, member: Member) -> JoinResponse:
    own = network.members.get(network.id)
    return JoinResponse(MachineRef(member.id, member.name), own is not None and own.is_guest)


def _places(ref: str, near: Iterable[Announced], machines: Mapping[MachineId, Machine], me: MachineId) -> list[Address]:
    """Return the addresses to try. `ref` is the name of a nearby machine, an address, or "" for the only nearby
    machine.

    Raises BadInput, or Refused for a machine of this household.
    """
    is_open = [seen for seen in near if seen.name and seen.pairing_port]
    nearby = [seen for seen in is_open if not ref or _is_called(seen, ref)]
    if not nearby and ref:
        try:
            return [Address.parse(ref)]
        except BadInput:
            _refuse_member(ref, machines, me)
            raise
    if not nearby:
        raise BadInput("pairing_nobody_near")
    if len(nearby) > 1:
        there = ", ".join(f"{seen.name} ({_door(seen)[0]})" for seen in nearby)
        raise BadInput("pairing_several_near", there=there)
    return _door(nearby[0])


def _refuse_member(ref: str, machines: Mapping[MachineId, Machine], me: MachineId) -> None:
    """Raise Refused if `ref` is this machine or a member of its household."""
    with suppress(BadInput):  # no machine of this household has this name
        machine = find_machine(ref, machines)
        raise Refused("peer_is_this" if machine.id == me else "pairing_member", name=machine.name)


def _is_called(seen: Announced, ref: str) -> bool:
    by_id = len(ref) >= MIN_PREFIX and seen.id16.startswith(ref)
    return by_id or (seen.name is not None and same_name(seen.name, ref))


def _door(seen: Announced) -> list[Address]:
    return [Address(host, seen.pairing_port or 0) for host in seen.addresses]


def open_pairing(window: PairingWindow | None) -> Pairing | None:
    """Return the open pairing window without its code, which is shown only where the window was opened."""
    if window is None or window.ended:
        return None
    return Pairing(str(window.address), round(window.seconds_left), window.tries_left)


def paired_machine(window: PairingWindow | None) -> MachineId | None:
    """Return the machine that was paired through the last window, or None."""
    state = window.state if window is not None else None
    return state.machine if isinstance(state, Done) else None


def why_closed(window: PairingWindow | None) -> str | None:
    """Return the code of the reason why the last window closed, or None if it paired a machine or was canceled."""
    state = window.state if window is not None else None
    return state.why.code if isinstance(state, Closed) and state.why is not None else None


def find_machine(ref: str, machines: Mapping[MachineId, Machine]) -> Machine:
    """Return the machine with this name, ID or ID prefix. Raises BadInput if none or several match."""
    alike = [machine for machine in machines.values() if same_name(machine.name, ref)]
    by_name = [machine for machine in alike if machine.name == ref] or alike
    by_id = [machine for key, machine in machines.items() if len(ref) >= MIN_PREFIX and key.startswith(ref)]
    matches = by_name or by_id
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise BadInput("machine_ambiguous", name=ref[:64], count=len(matches))
    there = ", ".join(sorted(machine.name for machine in machines.values()))
    raise BadInput("machine_unknown", name=ref[:64], there=there)
