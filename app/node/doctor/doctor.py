"""What a running node finds about itself and its household: each finding with cause and cure."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict
from typing import Any, Protocol

from app.core.diagnostics import Check, in_order
from app.core.errors import AppError, Fact, Reason
from app.core.household.household import Machine
from app.core.household.link import Link, LinkKind
from app.core.ids import MachineId
from app.core.reasons import in_words
from app.machine.checks import machine_checks
from app.machine.paths import Home
from app.network.network import Network
from app.node.doctor import doctor_network
from app.node.known_household import KnownHousehold
from app.node.lending.lending_policy import LendingPolicy
from app.node.links.discovery_service import DiscoveryService
from app.node.links.link_registry import LinkRegistry
from app.node.models.model_manager import ModelManager
from app.node.snapshot import sentence

# The link test of the doctor: how fast the links to the others are at this moment, and which is slow.

TESTED = 3  # links at most: each takes a second or two
SECONDS = 8.0  # for one
FEW_MBIT = 10  # below, a tenth counts
SLOW_MBIT = 40.0  # each way: 40 KiB for each token of a large model take 8 ms then
SLOW_MS = 20.0  # there and back: two lenders cost 40 ms for every token then


class Book(Protocol):
    """Measures links; app/node/links/link_registry.py has it."""

    async def measure_now(self, only: MachineId | None = None) -> Any: ...
    def link(self, machine: MachineId) -> Link | None: ...


async def link_checks(book: Book, linked: Iterable[tuple[MachineId, str]], busy: bool) -> list[Check]:
    """One for each machine that is connected, by id and name. `busy`: an answer runs, and goes first."""
    return [await _tested(book, machine, name, busy) for machine, name in list(linked)[:TESTED]]


async def _tested(book: Book, machine: MachineId, name: str, busy: bool) -> Check:
    if busy:
        cause = in_words("check_link_busy", machine=name)
        return Check("Link", None, cause, "", "link_untested", name, tested=False)
    with suppress(AppError, TimeoutError):  # then what was measured before counts, if anything was
        async with asyncio.timeout(SECONDS):
            await book.measure_now(machine)
    link = book.link(machine)
    if link is None:
        cause = in_words("check_link_untested", machine=name)
        return Check("Link", None, cause, "", "link_untested", name, tested=False)
    return judged(name, link)


def judged(machine: str, link: Link) -> Check:
    """Whether a link is the reason why answers are slow."""
    mbit = min(link.out_bytes_per_s, link.in_bytes_per_s) * 8 / 1e6
    ms = link.round_trip_s * 1000
    facts: dict[str, Fact] = {
        "machine": machine,
        "mbit": round(mbit, 1) if mbit < FEW_MBIT else round(mbit),
        "ms": round(ms, 1),
    }
    if link.limit_bytes_per_s is not None and ms <= SLOW_MS:
        return Check("Link", True, in_words("check_link_limited", **facts), machine=machine)
    if mbit >= SLOW_MBIT and ms <= SLOW_MS:
        return Check("Link", True, in_words("check_link", **facts), machine=machine)
    kinds = (link.kind, link.far_kind)
    wireless, through_vpn = LinkKind.WIFI in kinds, LinkKind.VPN in kinds
    cure = "cure_link_vpn" if through_vpn else "cure_link_wifi" if wireless else "cure_link_cable"
    return Check("Link", None, in_words("check_link_slow", **facts), in_words(cure), "link_slow", machine)


Json = dict[str, Any]


class Doctor:
    """Checks a node and its household. `busy`: whether an answer runs, which goes first."""

    def __init__(
        self,
        home: Home,
        network: Network,
        household: KnownHousehold,
        finding: DiscoveryService,
        lending: LendingPolicy,
        links: LinkRegistry,
        hosting: ModelManager,
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
        found += await link_checks(self._links, linked, self._busy())
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


def _lending(lending: LendingPolicy) -> Check:
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
