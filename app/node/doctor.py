"""What a running node finds about itself and its household: each finding with cause and cure."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from app.core.check import Check
from app.core.errors import Reason
from app.core.household import Machine
from app.core.reasons import size
from app.machine.checks import machine_checks
from app.node import doctor_network
from app.node.snapshot import sentence

if TYPE_CHECKING:
    from app.node.node import Node

Json = dict[str, Any]


async def checks(node: Node, whole: bool = False) -> list[Json]:
    """In the order a person would ask. `whole`: with what this computer itself is looked at for."""
    network = node.network
    found = [
        Check("Listening", True, f"Other machines reach this one at {network.address}."),
        node.finding.check(),
        *await doctor_network.checks(node),
        _household(node),
        _lending(node),
    ]
    found += [
        _reached(machine, network.calls.failed.get(machine.id))
        for machine in node.household.machines.values()
        if machine.id != network.id
    ]
    if loaded := node.hosting.loaded_json():
        good = loaded["state"] != "lost"
        cause = loaded["reason"] or f"{loaded['model']}: {loaded['state']}."
        found.append(Check("Model", good, cause, "" if good else "Load it again."))
    if whole:
        found += await machine_checks(node.home)
    return [asdict(check) for check in found]


def _household(node: Node) -> Check:
    network = node.network
    if network.dismissed:
        cure = "Reset this machine's household to pair it again."
        cause = "This machine was removed from its household."
        return Check("Household", False, cause, cure, "removed_needs_reset")
    others = len(network.members) - 1
    if others < 1:
        cure = (
            "Run `poolhouse pair --open` here, and `poolhouse pair ADDRESS` on the other machine."
        )
        return Check("Household", None, "Only this machine so far.", cure, "only_this_machine")
    return Check("Household", True, f"{others + 1} machines are paired.")


def _lending(node: Node) -> Check:
    lent, why = node.lending.lent_bytes(), sentence(node.lending.reason())
    if why is None and lent:
        return Check("Lending", True, f"Up to {size(lent)} for others.")
    cure = "`poolhouse lend` shows the rules, and --memory 2GiB lends."
    return Check("Lending", None, why or "No memory is free for others.", cure, "lends_nothing")


def _reached(machine: Machine, failed: Reason | None) -> Check:
    """One other machine. `failed`: why it could not be dialled just now."""
    at = machine.address or ""
    if machine.online:
        return Check(machine.name, True, f"Reached at {at}.", machine=machine.name, address=at)
    reason = failed or machine.reason
    if machine.address is None and reason is None:
        cause = "This machine has not met it yet, so its address is not known here."
        cure = "It is met when either side is given the address."
        return Check(machine.name, None, cause, cure, "peer_address_unknown", machine.name)
    cause = sentence(reason) or "It is off, or on another network."
    cure = "Start Poolhouse there; both machines must be on one network."
    code = reason.code if reason else "peer_offline"
    at = str(reason.facts.get("address", at)) if reason else at
    return Check(machine.name, False, cause, cure, code, machine.name, at)
