"""Pairing, joining and naming machines, for the loopback API."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from app.core.errors import BadInput, Refused
from app.core.household import Machine
from app.core.ids import MachineId
from app.core.operations import Role
from app.lan.network import Network
from app.lan.pairing_window import PairingWindow
from app.lan.sockets import Address

Json = dict[str, Any]

ROLES = {
    "lend": (Role.LENDER,),
    "use_and_lend": (Role.HOST, Role.LENDER),
    "admin": (Role.ADMIN, Role.HOST, Role.LENDER),
}
WINDOW_SECONDS, WINDOW_TRIES = 120, 3  # SAFETY.md 3
LOOK_SECONDS = 0.5
LINKING_SECONDS = 5
MIN_PREFIX = 6


async def open_window(network: Network, role: str) -> Json:
    """A code for a machine that shall have the role's rights. Raises Refused or Busy."""
    last = network.window
    if last is not None and not last.ended and not last.seconds_left:
        with suppress(TimeoutError):  # the code was right, and the newcomer is linking just now
            async with asyncio.timeout(LINKING_SECONDS):
                await _settled(last)
    window = await network.open_pairing(ROLES[role])
    return {
        "code": window.code,
        "address": str(window.address),
        "seconds": WINDOW_SECONDS,
        "tries": WINDOW_TRIES,
    }


async def wait(network: Network, report: Callable[[Json], None]) -> Json:
    """Until the open window has ended: the machine that was paired. Raises Refused."""
    window = network.window
    if window is None:
        raise Refused("no_pairing_window")
    async with asyncio.TaskGroup() as group:
        ending = group.create_task(_settled(window), name="wait for pairing")
        while not (await asyncio.wait({ending}, timeout=LOOK_SECONDS))[0]:
            left = round(window.seconds_left)
            report({"step": "waiting", "machine": None, "done": WINDOW_SECONDS - left,
                    "total": WINDOW_SECONDS, "unit": "seconds", "tries_left": window.tries_left})  # fmt: skip
    machine = ending.result()
    if isinstance(machine, Refused):
        raise machine
    return {"machine": {"id": machine, "name": network.members[machine].name}}


async def _settled(window: PairingWindow) -> MachineId | Refused:
    try:
        return await window.result()
    except Refused as error:
        return error


async def join(network: Network, address: str, code: str) -> Json:
    """Join the household whose member shows `code` at `address`."""
    member = await network.join(Address.parse(address), code)
    return {"machine": {"id": member.id, "name": member.name}}


def window_json(window: PairingWindow | None) -> Json | None:
    """The open window, without its code: that is for the screen of whoever opened it."""
    if window is None or window.ended:
        return None
    return {
        "address": str(window.address),
        "seconds_left": round(window.seconds_left),
        "tries_left": window.tries_left,
    }


def named(ref: str, machines: Mapping[MachineId, Machine]) -> Machine:
    """The machine a person means by a name, an id, or its beginning. Raises BadInput."""
    by_name = [
        machine for machine in machines.values() if machine.name.casefold() == ref.casefold()
    ]
    by_id = [
        machine
        for key, machine in machines.items()
        if len(ref) >= MIN_PREFIX and key.startswith(ref)
    ]
    found = by_name or by_id
    if len(found) == 1:
        return found[0]
    if found:
        raise BadInput("machine_ambiguous", name=ref[:64], count=len(found))
    there = ", ".join(sorted(machine.name for machine in machines.values()))
    raise BadInput("machine_unknown", name=ref[:64], there=there)
