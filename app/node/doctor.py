"""What a running node finds about itself and its household: each finding with cause and cure."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from app.core.check import Check, in_order
from app.core.errors import Reason
from app.core.household import Machine
from app.core.reasons import in_words
from app.machine.checks import machine_checks
from app.node import doctor_links, doctor_network
from app.node.snapshot import sentence

if TYPE_CHECKING:
    from app.node.node import Node

Json = dict[str, Any]


async def checks(node: Node, whole: bool = False) -> list[Json]:
    """In the order a person would ask. `whole`: with what this computer itself is looked at for."""
    network = node.network
    found = [
        Check("Listening", True, in_words("check_listening", address=str(network.address))),
        node.finding.check(),
        *await doctor_network.checks(node),
        _household(node),
        _lending(node),
    ]
    household, failed = node.household, network.calls.failed
    found += [
        _reached(machine, household.today(failed[key]) if key in failed else None)
        for key, machine in household.machines.items()
        if key != network.id
    ]
    linked = [(machine, link.name) for machine, link in network.links.items()]
    found += await doctor_links.checks(node.links, linked, node.busy())
    found += [_model(running.json()) for running in node.hosting.loaded]
    if whole:
        found += await machine_checks(node.home)
    return [asdict(check) for check in in_order(found)]


def _model(loaded: Json) -> Check:
    """What is loaded, as hosting describes it; a state that is neither ready nor loading has a reason."""
    good = loaded["state"] != "lost"
    code = "check_model_ready" if loaded["state"] == "ready" else "check_model_loading"
    cause = loaded["reason"] or in_words(code, model=loaded["model"])
    return Check("Model", good, cause, "" if good else in_words("cure_model_lost"))


def _household(node: Node) -> Check:
    network = node.network
    if network.dismissed:
        cause, cure = in_words("removed_from_household"), in_words("cure_removed")
        return Check("Household", False, cause, cure, "removed_needs_reset")
    others = len(network.members) - 1
    if others < 1:
        cause, cure = in_words("check_alone"), in_words("cure_alone")
        return Check("Household", None, cause, cure, "only_this_machine")
    return Check("Household", True, in_words("check_household", machines=others + 1))


def _lending(node: Node) -> Check:
    lent, why = node.lending.lent_bytes(), sentence(node.lending.reason())
    if why is None and lent:
        return Check("Lending", True, in_words("check_lending", lent_bytes=lent))
    cause, cure = why or in_words("check_lends_nothing"), in_words("cure_lends_nothing")
    return Check("Lending", None, cause, cure, "lends_nothing")


def _reached(machine: Machine, failed: Reason | None) -> Check:
    """One other machine. `failed`: why it could not be dialled just now."""
    at = machine.address or ""
    if machine.online:
        cause = in_words("check_reached", address=at)
        return Check(machine.name, True, cause, machine=machine.name, address=at)
    reason = failed or machine.reason
    if machine.address is None and reason is None:
        cause, cure = in_words("check_address_unknown"), in_words("cure_address_unknown")
        return Check(machine.name, None, cause, cure, "peer_address_unknown", machine.name)
    # it said so itself, and no call can tell more: what helps is the same
    is_closed = machine.reason is not None and machine.reason.code == "shutting_down"
    cause = sentence(machine.reason if is_closed else reason) or in_words("check_not_reached")
    cure = "" if reason else in_words("cure_not_reached")  # a reason brings its own
    code = reason.code if reason else "peer_offline"
    at = str(reason.facts.get("address", at)) if reason else at
    return Check(machine.name, False, cause, cure, code, machine.name, at)
