"""Diagnostics of a running node, its household and its network. Each problem found has a cause and a remedy."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from app.api.computer import Check as Finding
from app.api.plans import LoadedModel
from app.core.diagnostics import Check, sorted_checks
from app.core.errors import AppError, Fact, Reason
from app.core.household.household import Household, Machine
from app.core.household.link import Link, LinkKind
from app.core.ids import MachineId
from app.core.reasons import sentence
from app.machine.checks import machine_checks
from app.machine.hardware.cards import PROCESSOR_ONLY, ComputingCard
from app.machine.interfaces import Interface, interfaces, usable_interfaces
from app.machine.paths import Home
from app.network.discovery.announcement import is_on_local_link
from app.network.messages import PROTOCOL, Called, are_compatible
from app.network.network import Network
from app.network.sockets import Address
from app.node.known_household import KnownHousehold
from app.node.lending.lending_policy import LendingPolicy
from app.node.links.discovery_service import DiscoveryService
from app.node.links.link_registry import LinkRegistry
from app.node.models.model_manager import ModelManager

MAX_ASKED = 3  # machines to ask at most, because each may take several seconds
MAX_TESTED = 3  # links to measure at most, because each takes one or two seconds
LINK_TEST_SECONDS = 8.0  # time limit for measuring one link
FEW_MBIT = 10  # below this, one decimal is shown
SLOW_MBIT = 40.0  # in each direction; 40 KiB per token of a large model then take 8 ms
SLOW_MS = 20.0  # round trip; two lenders then cost 40 ms per token


class CheckedLink(Protocol):
    """The part of a link that the checks use, implemented by app/network/peer/peer_link.py."""

    @property
    def name(self) -> str: ...
    @property
    def dialed(self) -> bool: ...
    @property
    def peer(self) -> MachineId: ...
    @property
    def address(self) -> Address: ...
    @property
    def reachability(self) -> CallBack: ...


class CallBack(Protocol):
    """Asks another machine to connect back to this one, implemented by app/network/peer/peer_link.py."""

    async def ask(self) -> Called | None: ...


@dataclass(frozen=True, slots=True)
class PeerReport:
    """The results of a connected machine's network checks, and whether its announcements arrive here. None means
    unknown."""

    name: str
    reached: bool | None
    hears_us: bool | None
    is_heard: bool | None
    address: str = ""


async def network_checks(network: Network, discovery: DiscoveryService, household: Household) -> list[Check]:
    """Run the checks for problems that keep machines from finding or reaching each other."""
    every = await asyncio.to_thread(interfaces)
    used = usable_interfaces(every, discovery.choice.interfaces)
    away = {
        member.name: [str(address.host) for address in network.addresses(key)]
        for key, member in network.members.items()
        if key != network.id and key not in network.links
    }
    return [
        *protocol_checks(seen.protocol for seen in household.strangers.values()),
        *network_location_checks(used, away),
        *await reachability_checks(list(network.links.values()), discovery.hears),
        *vpn_check(every, discovery.choice.interfaces),
        virtual_network_check(every, discovery.choice.interfaces),
        ipv6_check(used),
    ]


def protocol_checks(nearby: Iterable[int]) -> list[Check]:
    """Check that nearby machines speak a compatible protocol."""
    incompatible = [protocol for protocol in nearby if not are_compatible(protocol, PROTOCOL)]
    if not incompatible:
        return []
    older = "cure_protocol_there" if max(incompatible) < PROTOCOL else "cure_protocol_here"
    return [Check("Version", False, Reason("check_protocol"), Reason(older), "protocol_differs")]


def network_location_checks(used: Sequence[Interface], away: dict[str, list[str]]) -> list[Check]:
    """Return a finding for each unreachable machine that was last seen in a network that this computer is not in."""
    own = [address for interface in used for address in interface.addresses]
    near = [*own, "127.0.0.1", "::1"]  # for nodes on the same computer
    return [
        Check(
            "Network",
            None,
            Reason("check_other_network", {"machine": name, "address": hosts[0]}),
            Reason("cure_other_network"),
            "other_network",
            name,
            hosts[0],
        )
        for name, hosts in away.items()
        if hosts and own and not any(is_on_local_link(host, near) for host in hosts)
    ]


def known_inbound_check(dialed: Sequence[bool]) -> Check:
    """Check whether another machine has ever connected to this one, which shows that the firewall allows it."""
    if not dialed:
        cause = Reason("check_nobody_to_call")
        return Check("Incoming connections", None, cause, None, "port_untested", tested=False)
    if all(dialed):
        cause, cure = Reason("check_called_all"), Reason("cure_called_all")
        return Check("Incoming connections", None, cause, cure, "port_untested", tested=False)
    return Check("Incoming connections", True, Reason("check_came_in"))


async def reachability_checks(links: Sequence[CheckedLink], hears: Callable[[MachineId], bool | None]) -> list[Check]:
    """Check whether other machines can connect to this one, and whether announcements arrive in both directions."""
    async with asyncio.TaskGroup() as tasks:
        calls = [tasks.create_task(_ask_machine(link, hears), name=f"ask {link.name}") for link in links[:MAX_ASKED]]
    heard = [call.result() for call in calls]
    return [inbound_check([link.dialed for link in links], heard), *announcement_checks(heard)]


async def _ask_machine(link: CheckedLink, hears: Callable[[MachineId], bool | None]) -> PeerReport:
    answer = await link.reachability.ask()
    if answer is None:
        return PeerReport(link.name, None, None, None)
    return PeerReport(link.name, answer.reached, answer.hears, hears(link.peer), str(link.address))


def inbound_check(dialed: Sequence[bool], heard: Iterable[PeerReport]) -> Check:
    """Check whether other machines can connect to this one. If none has connected yet, rely on the reports of the
    machines that were asked to connect back.
    """
    known = known_inbound_check(dialed)
    if known.ok:
        return known
    for heard_peer in heard:
        if heard_peer.reached:
            cause = Reason("check_called_back", {"machine": heard_peer.name})
            return Check("Incoming connections", True, cause, machine=heard_peer.name)
        if heard_peer.reached is False:  # the remedy is on this computer, so the check names no machine
            cause = Reason("check_not_called_back", {"machine": heard_peer.name})
            return Check("Incoming connections", False, cause, Reason("cure_not_called_back"), "port_closed")
    return known


def announcement_checks(heard: Iterable[PeerReport]) -> list[Check]:
    """Check that announcements arrive in both directions. If they do not, one of the two machines can reach the other
    only by its address."""
    return [_announcement_check(peer) for peer in heard if peer.hears_us is not None and peer.is_heard is not None]


def _announcement_check(peer: PeerReport) -> Check:
    name = peer.name
    if peer.hears_us and peer.is_heard:
        return Check("Mutual discovery", True, Reason("check_both_ways", {"machine": name}), machine=name)
    if peer.is_heard:
        cause = Reason("check_one_way_there", {"machine": name})
        cure = Reason("cure_one_way_there", {"machine": name})
        return Check("Mutual discovery", None, cause, cure, "one_way_there", name, peer.address)
    if peer.hears_us:
        cause = Reason("check_one_way_here", {"machine": name})
        cure = Reason("cure_one_way_here", {"machine": name})
        return Check("Mutual discovery", None, cause, cure, "one_way_here")
    cause = Reason("check_no_way", {"machine": name})
    return Check("Mutual discovery", None, cause, Reason("cure_no_way"), "no_way_nearby", name)


def vpn_check(every: Iterable[Interface], chosen: frozenset[str]) -> list[Check]:
    """Check for an active VPN, which may reroute packets for the home network."""
    up = [
        interface.name
        for interface in every
        if interface.kind is LinkKind.VPN and interface.is_up and interface.addresses and interface.name not in chosen
    ]
    if not up:
        return [Check("VPN", True, Reason("check_no_vpn"))]
    cause = Reason("check_vpn", {"names": ", ".join(up)})
    return [Check("VPN", None, cause, Reason("cure_vpn"), "vpn_up")]


def virtual_network_check(every: Iterable[Interface], chosen: frozenset[str]) -> Check:
    """Check for virtual networks inside this computer. They do not lead to any other machine, and are used only if
    the user chose them.
    """
    inner = [
        interface.name
        for interface in every
        if interface.kind is LinkKind.VIRTUAL and interface.is_up and interface.addresses
    ]
    if used := [name for name in inner if name in chosen]:
        names = ", ".join(used)
        cause, cure = (Reason("check_virtual_chosen", {"names": names}), Reason("cure_virtual", {"names": names}))
        return Check("Virtual", None, cause, cure, "virtual_chosen")
    if not inner:
        return Check("Virtual", True, Reason("check_no_virtual"))
    return Check("Virtual", True, Reason("check_virtual", {"names": ", ".join(inner)}))


def ipv6_check(used: Iterable[Interface]) -> Check:
    """Report whether IPv6 is available. The app also works with IPv4 alone."""
    if any(":" in address for interface in used for address in interface.addresses):
        return Check("IPv6", True, Reason("check_ipv6"))
    return Check("IPv6", None, Reason("check_ipv6_off"), None, "ipv6_off")


# The link test: the current speed of each link, and which links are slow.


class LinkMeasurer(Protocol):
    """The part of the link registry that the checks use, implemented by app/node/links/link_registry.py."""

    async def measure_now(self, only: MachineId | None = None) -> Any: ...
    def link(self, machine: MachineId) -> Link | None: ...


async def link_checks(book: LinkMeasurer, linked: Iterable[tuple[MachineId, str]], busy: bool) -> list[Check]:
    """Measure the links to these connected machines (ID and name), and return a check for each.

    busy: whether an answer is running, which a measurement would slow down. In that case, nothing is measured and the
        links are reported as untested.
    """
    return [await _measured_check(book, machine, name, busy) for machine, name in list(linked)[:MAX_TESTED]]


async def _measured_check(book: LinkMeasurer, machine: MachineId, name: str, busy: bool) -> Check:
    if busy:
        cause = Reason("check_link_busy", {"machine": name})
        return Check("Link", None, cause, None, "link_untested", name, tested=False)
    with suppress(AppError, TimeoutError):  # if the measurement fails, the previous one is used, if any
        async with asyncio.timeout(LINK_TEST_SECONDS):
            await book.measure_now(machine)
    link = book.link(machine)
    if link is None:
        cause = Reason("check_link_untested", {"machine": name})
        return Check("Link", None, cause, None, "link_untested", name, tested=False)
    return link_speed_check(name, link)


def link_speed_check(machine: str, link: Link) -> Check:
    """Check whether a link is fast enough not to slow down answers."""
    mbit = min(link.out_bytes_per_s, link.in_bytes_per_s) * 8 / 1e6
    ms = link.round_trip_s * 1000
    facts: dict[str, Fact] = {
        "machine": machine,
        "mbit": round(mbit, 1) if mbit < FEW_MBIT else round(mbit),
        "ms": round(ms, 1),
    }
    if link.limit_bytes_per_s is not None and ms <= SLOW_MS:
        return Check("Link", True, Reason("check_link_limited", facts), machine=machine)
    if mbit >= SLOW_MBIT and ms <= SLOW_MS:
        return Check("Link", True, Reason("check_link", facts), machine=machine)
    kinds = (link.kind, link.far_kind)
    wireless, through_vpn = LinkKind.WIFI in kinds, LinkKind.VPN in kinds
    cure = "cure_link_vpn" if through_vpn else "cure_link_wifi" if wireless else "cure_link_cable"
    return Check("Link", None, Reason("check_link_slow", facts), Reason(cure), "link_slow", machine)


class Doctor:
    """Runs the diagnostics of a node and its household.

    busy: returns whether an answer is running. Measurements are skipped in that case.
    """

    def __init__(  # noqa: PLR0913  the parts of the node that it checks
        self,
        home: Home,
        network: Network,
        household: KnownHousehold,
        discovery: DiscoveryService,
        lending: LendingPolicy,
        links: LinkRegistry,
        model_manager: ModelManager,
        busy: Callable[[], bool],
        graphics: ComputingCard = PROCESSOR_ONLY,
    ) -> None:
        self._graphics = graphics
        self._home, self._network, self._household = home, network, household
        self._discovery, self._lending, self._links = discovery, lending, links
        self._model_manager, self._busy = model_manager, busy

    async def checks(self, whole: bool = False) -> list[Finding]:
        """Run all checks and return their findings, ordered from this computer's network to its models. If `whole`
        is set, also check the computer itself.
        """
        network, household = self._network, self._household.now
        results = [
            Check("Listening", True, Reason("check_listening", {"address": str(network.address)})),
            self._discovery.check(),
            *await network_checks(network, self._discovery, household),
            _household(network),
            _lending(self._lending),
            *_cards(self._graphics, (await asyncio.to_thread(self._graphics.reading)).celsius),
        ]
        failed = network.link_manager.failed
        results += [
            _reached(machine, household.with_current_names(failed[key]) if key in failed else None)
            for key, machine in household.machines.items()
            if key != network.id
        ]
        linked = [(machine, link.name) for machine, link in network.links.items()]
        results += await link_checks(self._links, linked, self._busy())
        results += [_model(running.describe()) for running in self._model_manager.loaded]
        if whole:
            results += await machine_checks(self._home)
        return [_finding(check) for check in sorted_checks(results)]


def _finding(check: Check) -> Finding:
    return Finding(
        check.name,
        check.ok,
        sentence(check.cause),
        check.cause,
        sentence(check.cure),
        check.cure,
        check.code,
        check.machine,
        check.address,
        check.tested,
    )


def _model(loaded: LoadedModel) -> Check:
    """Check a loaded model. If it is neither ready nor loading, the check contains the reason."""
    good = loaded.state != "lost"
    code = "check_model_ready" if loaded.state == "ready" else "check_model_loading"
    cause = loaded.reason_facts or Reason(code, {"model": loaded.model})
    return Check("Model", good, cause, None if good else Reason("cure_model_lost"))


def _household(network: Network) -> Check:
    if network.dismissed:
        cause, cure = Reason("removed_from_household"), Reason("cure_removed")
        return Check("Household", False, cause, cure, "removed_needs_reset")
    n_others = len(network.members) - 1
    if n_others < 1:
        cause, cure = Reason("check_alone"), Reason("cure_alone")
        return Check("Household", None, cause, cure, "only_this_machine")
    return Check("Household", True, Reason("check_household", {"machines": n_others + 1}))


def _lending(lending: LendingPolicy) -> Check:
    lent, why = lending.lent_bytes(), lending.reason()
    if why is None and lent:
        return Check("Lending", True, Reason("check_lending", {"lent_bytes": lent}))
    if why is not None and why.code == "lend_no_role":  # as for every guest; no rule of this machine changes that
        return Check("Lending", None, why, None, why.code)
    cause, cure = why or Reason("check_lends_nothing"), Reason("cure_lends_nothing")
    if cause.code == "pause_no_card":
        cure = Reason("cure_card_only")
    return Check("Lending", None, cause, cure, "lends_nothing")


def _cards(graphics: ComputingCard, celsius: float | None) -> list[Check]:
    """Report the graphics cards that compute, and why others do not. celsius: the temperature of the hottest one."""
    checks = []
    for card in graphics.computing:
        facts: dict[str, Fact] = {"device": card.label, "api": card.api, "total_bytes": card.total_bytes}
        cause = Reason("check_card", facts)
        if celsius is not None and len(graphics.computing) == 1:
            cause = Reason("check_card_at", {**facts, "degrees": round(celsius)})
        checks.append(Check("Device", True, cause))
    cure = Reason("cure_card_family")
    checks += [Check("Device", None, refused.reason, cure, "card_family") for refused in graphics.refused]
    for other in graphics.unused:
        cause = Reason("check_card_unused", {"device": other.label, "why": other.why})
        checks.append(Check("Device", None, cause, _card_cure(other.why.code), other.why.code))
    if graphics.is_starting:
        checks.append(Check("Device", None, Reason("check_card_testing")))
    return checks


def _card_cure(code: str) -> Reason | None:
    match code:
        case "card_switched_off":
            return Reason("cure_card_off")
        case "card_lost":
            return Reason("cure_card_lost")
        case "card_other_used" | "card_other_library":
            return None
    return Reason("cure_card_unused")


def _reached(machine: Machine, failed: Reason | None) -> Check:
    """Check the connection to another machine. `failed` is the reason why the last dial failed."""
    at = machine.address or ""
    if machine.online:
        cause = Reason("check_reached", {"address": at})
        return Check(machine.name, True, cause, machine=machine.name, address=at)
    reason = failed or machine.reason
    if machine.address is None and reason is None:
        cause, cure = Reason("check_address_unknown"), Reason("cure_address_unknown")
        return Check(machine.name, None, cause, cure, "peer_address_unknown", machine.name)
    # the machine's own reason is more precise than a failed dial, and the remedy is the same
    is_closed = machine.reason is not None and machine.reason.code == "shutting_down"
    known = machine.reason if is_closed else reason
    general = None if reason else Reason("cure_not_reached")  # a reason has its own cure
    code = reason.code if reason else "peer_offline"
    at = str(reason.facts.get("address", at)) if reason else at
    return Check(machine.name, False, known or Reason("check_not_reached"), general, code, machine.name, at)
