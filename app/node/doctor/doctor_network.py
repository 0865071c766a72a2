"""What of this computer's network keeps machines apart: who got in, where others were, VPNs, IPv6."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from app.core.diagnostics import Check
from app.core.household.household import Household
from app.core.household.link import LinkKind
from app.core.ids import MachineId
from app.core.reasons import in_words
from app.machine.interfaces import Interface, interfaces, usable
from app.network.discovery.announcement import on_one_link
from app.network.messages import PROTOCOL, Called, speak_together
from app.network.network import Network
from app.network.sockets import Address
from app.node.links.discovery_service import DiscoveryService

ASKED = 3  # machines at most: each may take some seconds


class Linked(Protocol):
    """What is asked of a link; app/network/peer/peer_link.py has it."""

    @property
    def name(self) -> str: ...
    @property
    def dialled(self) -> bool: ...
    @property
    def peer(self) -> MachineId: ...
    @property
    def address(self) -> Address: ...
    @property
    def call_back(self) -> Caller: ...


class Caller(Protocol):
    """Asks the other side to connect: app/network/peer/peer_link.py has it."""

    async def ask(self) -> Called | None: ...


@dataclass(frozen=True, slots=True)
class Heard:
    """Of a machine that is linked: what it said when it was asked, and whether we hear it; None: not known."""

    name: str
    reached: bool | None
    hears_us: bool | None
    is_heard: bool | None
    address: str = ""


async def checks(network: Network, finding: DiscoveryService, household: Household) -> list[Check]:
    """Check what may keep machines apart."""
    every = await asyncio.to_thread(interfaces)
    used = usable(every, finding.choice.interfaces)
    away = {
        member.name: [str(address.host) for address in network.addresses(key)]
        for key, member in network.members.items()
        if key != network.id and key not in network.links
    }
    return [
        *same_protocol(seen.protocol for seen in household.strangers.values()),
        *same_network(used, away),
        *await outside(list(network.links.values()), finding.hears),
        *vpn(every, finding.choice.interfaces),
        virtual(every, finding.choice.interfaces),
        ipv6(used),
    ]


def same_protocol(nearby: Iterable[int]) -> list[Check]:
    """Whether those nearby speak as we do."""
    others = [one for one in nearby if not speak_together(one, PROTOCOL)]
    if not others:
        return []
    older = "cure_protocol_there" if max(others) < PROTOCOL else "cure_protocol_here"
    return [Check("Version", False, in_words("check_protocol"), in_words(older), "protocol_differs")]


def same_network(used: Sequence[Interface], away: dict[str, list[str]]) -> list[Check]:
    """Whether the machines that are not reached were last met on a network this computer is on now."""
    own = [address for one in used for address in one.addresses]
    near = [*own, "127.0.0.1", "::1"]  # nodes that share one computer
    return [
        Check(
            "Network",
            None,
            in_words("check_other_network", machine=name, address=hosts[0]),
            in_words("cure_other_network"),
            "other_network",
            name,
            hosts[0],
        )
        for name, hosts in away.items()
        if hosts and own and not any(on_one_link(host, near) for host in hosts)
    ]


def from_outside(dialled: Sequence[bool]) -> Check:
    """Whether another machine got in by itself: then no firewall of this computer is in the way."""
    if not dialled:
        cause = in_words("check_nobody_to_call")
        return Check("From outside", None, cause, "", "port_untested", tested=False)
    if all(dialled):
        cause, cure = in_words("check_called_all"), in_words("cure_called_all")
        return Check("From outside", None, cause, cure, "port_untested", tested=False)
    return Check("From outside", True, in_words("check_came_in"))


async def outside(links: Sequence[Linked], hears: Callable[[MachineId], bool | None]) -> list[Check]:
    """Whether others get in, and whether those that are linked hear each other's announcements."""
    async with asyncio.TaskGroup() as tasks:
        asked = [tasks.create_task(_asked(link, hears), name=f"ask {link.name}") for link in links[:ASKED]]
    heard = [one.result() for one in asked]
    return [called_back([link.dialled for link in links], heard), *both_ways(heard)]


async def _asked(link: Linked, hears: Callable[[MachineId], bool | None]) -> Heard:
    told = await link.call_back.ask()
    if told is None:
        return Heard(link.name, None, None, None)
    return Heard(link.name, told.reached, told.hears, hears(link.peer), str(link.address))


def called_back(dialled: Sequence[bool], heard: Iterable[Heard]) -> Check:
    """As `from_outside`; where nobody has come in yet, what others say that were asked to."""
    known = from_outside(dialled)
    if known.ok:
        return known
    for one in heard:
        if one.reached:
            cause = in_words("check_called_back", machine=one.name)
            return Check("From outside", True, cause, machine=one.name)
        if one.reached is False:  # of this computer, so no machine is named for the command
            cause = in_words("check_not_called_back", machine=one.name)
            return Check("From outside", False, cause, in_words("cure_not_called_back"), "port_closed")
    return known


def both_ways(heard: Iterable[Heard]) -> list[Check]:
    """Announcements may go one way only: then one finds the other, and is found by its address alone."""
    return [_way(one) for one in heard if one.hears_us is not None and one.is_heard is not None]


def _way(one: Heard) -> Check:
    name = one.name
    if one.hears_us and one.is_heard:
        return Check("Both ways", True, in_words("check_both_ways", machine=name), machine=name)
    if one.is_heard:
        cause = in_words("check_one_way_there", machine=name)
        cure = in_words("cure_one_way_there", machine=name)
        return Check("Both ways", None, cause, cure, "one_way_there", name, one.address)
    if one.hears_us:
        cause = in_words("check_one_way_here", machine=name)
        cure = in_words("cure_one_way_here", machine=name)
        return Check("Both ways", None, cause, cure, "one_way_here")
    cause = in_words("check_no_way", machine=name)
    return Check("Both ways", None, cause, in_words("cure_no_way"), "no_way_nearby", name)


def vpn(every: Iterable[Interface], chosen: frozenset[str]) -> list[Check]:
    """A VPN that is up may swallow what is meant for the home."""
    up = [
        one.name for one in every if one.kind is LinkKind.VPN and one.is_up and one.addresses and one.name not in chosen
    ]
    if not up:
        return [Check("VPN", True, in_words("check_no_vpn"))]
    cause = in_words("check_vpn", names=", ".join(up))
    return [Check("VPN", None, cause, in_words("cure_vpn"), "vpn_up")]


def virtual(every: Iterable[Interface], chosen: frozenset[str]) -> Check:
    """Networks that are inside this computer lead to no other one, and are left alone unless somebody chose them."""
    inner = [one.name for one in every if one.kind is LinkKind.VIRTUAL and one.is_up and one.addresses]
    if used := [name for name in inner if name in chosen]:
        names = ", ".join(used)
        cause, cure = (in_words("check_virtual_chosen", names=names), in_words("cure_virtual", names=names))
        return Check("Virtual", None, cause, cure, "virtual_chosen")
    if not inner:
        return Check("Virtual", True, in_words("check_no_virtual"))
    return Check("Virtual", True, in_words("check_virtual", names=", ".join(inner)))


def ipv6(used: Iterable[Interface]) -> Check:
    """IPv4 is enough, so this is only a note."""
    if any(":" in address for one in used for address in one.addresses):
        return Check("IPv6", True, in_words("check_ipv6"))
    return Check("IPv6", None, in_words("check_ipv6_off"), "", "ipv6_off")
