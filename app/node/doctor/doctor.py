"""What a running node finds about itself and its household: each finding with cause and cure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from app.core.check import Check, in_order
from app.core.errors import Reason
from app.core.household.household import Machine
from app.core.reasons import in_words
from app.machine.checks import machine_checks
from app.machine.paths import Home
from app.network.network import Network
from app.node.doctor import doctor_links, doctor_network
from app.node.known_household import KnownHousehold
from app.node.lending.lending_policy import LendRules
from app.node.links.discovery_service import Finding
from app.node.links.link_registry import LinkBook
from app.node.models.model_manager import Hosting
from app.node.snapshot import sentence

Json = dict[str, Any]


class Doctor:
    """Checks a node and its household. `busy`: whether an answer runs, which goes first."""

    def __init__(
        self,
        home: Home,
        network: Network,
        household: KnownHousehold,
        finding: Finding,
        lending: LendRules,
        links: LinkBook,
        hosting: Hosting,
        busy: Callable[[], bool],
    ) -> None:
        self._home, self._network, self._household = home, network, household
        self._finding, self._lending, self._links = finding, lending, links
        self._hosting, self._busy = hosting, busy

    async def checks(self, whole: bool = False) -> list[Json]:
        """Check all of it, in the order a person would ask. `whole`: this computer itself too."""
        network, household = self._network, self._household.now
        found = [
            Check("Listening", True, in_words("check_listening", address=str(network.address))),
            self._finding.check(),
            *await doctor_network.checks(network, self._finding, household),
            _household(network),
            _lending(self._lending),
        ]
        failed = network.calls.failed
        found += [
            _reached(machine, household.today(failed[key]) if key in failed else None)
            for key, machine in household.machines.items()
            if key != network.id
        ]
        linked = [(machine, link.name) for machine, link in network.links.items()]
        found += await doctor_links.checks(self._links, linked, self._busy())
        found += [_model(running.json()) for running in self._hosting.loaded]
        if whole:
            found += await machine_checks(self._home)
        return [asdict(check) for check in in_order(found)]


def _model(loaded: Json) -> Check:
    """What is loaded, as hosting describes it; a state that is neither ready nor loading has a reason."""
    good = loaded["state"] != "lost"
    code = "check_model_ready" if loaded["state"] == "ready" else "check_model_loading"
    cause = loaded["reason"] or in_words(code, model=loaded["model"])
    return Check("Model", good, cause, "" if good else in_words("cure_model_lost"))


def _household(network: Network) -> Check:
    if network.dismissed:
        cause, cure = in_words("removed_from_household"), in_words("cure_removed")
        return Check("Household", False, cause, cure, "removed_needs_reset")
    others = len(network.members) - 1
    if others < 1:
        cause, cure = in_words("check_alone"), in_words("cure_alone")
        return Check("Household", None, cause, cure, "only_this_machine")
    return Check("Household", True, in_words("check_household", machines=others + 1))


def _lending(lending: LendRules) -> Check:
    lent, why = lending.lent_bytes(), sentence(lending.reason())
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
