"""What a running node finds about itself and its household: each finding with cause and cure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.core.household import Machine
from app.core.reasons import size
from app.node.snapshot import sentence

if TYPE_CHECKING:
    from app.node.node import Node

Json = dict[str, Any]


async def checks(node: Node) -> list[Json]:
    """In the order a person would ask."""
    network = node.network
    port = f"Other machines reach this one at {network.address}."
    found = [_check("Listening", True, port), node.finding.check()]
    found += [_household(node), _lending(node)]
    found += [
        _reached(machine)
        for machine in node.household.machines.values()
        if machine.id != network.id
    ]
    if loaded := node.hosting.loaded_json():
        good = loaded["state"] != "lost"
        cause = loaded["reason"] or f"{loaded['model']}: {loaded['state']}."
        found.append(_check("Model", good, cause, "" if good else "Load it again."))
    return found


def _household(node: Node) -> Json:
    network = node.network
    if network.dismissed:
        cure = "Reset this machine's household to pair it again."
        return _check("Household", False, "This machine was removed from its household.", cure)
    others = len(network.members) - 1
    if others < 1:
        cure = (
            "Run `poolhouse pair --open` here, and `poolhouse pair ADDRESS` on the other machine."
        )
        return _check("Household", None, "Only this machine so far.", cure)
    return _check("Household", True, f"{others + 1} machines are paired.")


def _lending(node: Node) -> Json:
    lent, why = node.lending.lent_bytes(), sentence(node.lending.reason())
    if why is None and lent:
        return _check("Lending", True, f"Up to {size(lent)} for others.")
    cure = "`poolhouse lend` shows the rules, and --memory 2GiB lends."
    return _check("Lending", None, why or "No memory is free for others.", cure)


def _reached(machine: Machine) -> Json:
    if machine.online:
        return _check(machine.name, True, f"Reached at {machine.address}.")
    if machine.address is None and machine.reason is None:
        cause = "This machine has not met it yet, so its address is not known here."
        return _check(machine.name, None, cause, "It is met when either side is given the address.")
    cause = sentence(machine.reason) or "It is off, or on another network."
    cure = "Start Poolhouse there; both machines must be on one network."
    return _check(machine.name, False, cause, cure)


def _check(name: str, ok: bool | None, cause: str, cure: str = "") -> Json:
    return {"name": name, "ok": ok, "cause": cause, "cure": cure}
