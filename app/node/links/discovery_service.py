"""Discovery of nearby machines: tracks this computer's addresses, reports strangers, and describes problems."""

from __future__ import annotations

import asyncio
import logging
import platform
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import psutil

from app.api.responses import DialAddressResponse
from app.api.snapshot import Discovery as DiscoveryState
from app.api.snapshot import MachineRef, Stranger
from app.core.diagnostics import Check
from app.core.errors import BadInput, Fact, Reason
from app.core.household import household as facts
from app.core.household.household import Announced, AnnouncementEnded, Machine
from app.core.ids import MachineId, clean_name
from app.core.reasons import sentence
from app.machine.interfaces import Interface, interfaces, usable_interfaces
from app.machine.settings import NodeOptions, Settings, SettingsStore, load, save
from app.network.discovery.announcement import ID_DIGITS, MAX_ADDRESSES
from app.network.discovery.mdns_discovery import Discovery
from app.network.network import Network
from app.network.sockets import Address, listening_near, listening_socket, own_host

log = logging.getLogger(__name__)


WATCH_SECONDS = 1.0  # between checks for new addresses, at 0.2 ms each
AGAIN_SECONDS = 10.0
Glance = tuple[list[tuple[str, str]], list[str]]  # (interface, address) pairs, and interfaces that are up
EVERY_IPV4, EVERY_ADDRESS = "0.0.0.0", "::"  # noqa: S104  compared, not bound


@dataclass(frozen=True, slots=True)
class DiscoveryChoice:
    """The owner's choices: whether discovery runs, the address to listen at, and additional interfaces to use."""

    on: bool
    bind: str
    interfaces: frozenset[str] = frozenset()  # names of interfaces such as VPNs, which are used only by choice


def choice_of(options: NodeOptions, saved: Settings) -> DiscoveryChoice:
    """Combine the settings with the command-line options. Either can turn discovery off. The interfaces from both are
    used."""
    extra = frozenset([*options.interfaces, *saved.interfaces])
    return DiscoveryChoice(options.discovery and saved.discovery, options.bind, extra)


def open_listening_socket(options: NodeOptions, settings_file: Path) -> socket.socket:
    """Open the socket on which members connect. Without a requested port, try the last one first, because other
    machines remember it.

    Raises Unreachable or BadInput.
    """
    if options.port is not None:
        return listening_socket(options.bind, options.port)
    saved = load(settings_file)
    sock = listening_near(options.bind, saved.port)
    port = sock.getsockname()[1]
    if port != saved.port:
        save(settings_file, msgspec.structs.replace(saved, port=port))
    return sock


class DiscoveryService:
    """Runs discovery for one node. `tell` receives events about strangers."""

    def __init__(
        self, network: Network, choices: SettingsStore, choice: DiscoveryChoice, tell: Callable[[facts.Event], None]
    ) -> None:
        self._network, self._choices, self.choice, self._tell = network, choices, choice, tell
        self._near: dict[str, Announced] = {}
        self._looked = False  # whether the interfaces have been read
        self._there: frozenset[str] = frozenset()  # names of this computer's interfaces
        self._discovery = Discovery(network.id[:ID_DIGITS], network.port, self._heard, self._is_member)

    async def run(self) -> None:
        """Run discovery until canceled. If it is turned off, only track this machine's own addresses."""
        self._network.link_manager.hears = self.hears
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_always(self._watch), name="watch the network interfaces")
            if self.choice.on:
                tasks.create_task(_always(self._discovery.run), name="discovery")

    def pairing_changed(self, device: str = "") -> None:
        """Update the announcements, which contain this machine's name only while the pairing window is open."""
        window = self._network.window
        if window is not None and not window.ended and window.seconds_left:
            name, port = clean_name(self._choices.now.name), window.address.port
            self._discovery.set_pairing_window(name, port, system_name(), device)
        else:
            self._discovery.set_pairing_window(None, None)

    def members_changed(self) -> None:
        """Report all nearby machines again after a stranger may have become a member, or vice versa."""
        for seen in self._near.values():
            self._tell(seen)

    @property
    def trouble(self) -> Reason | None:
        """Return why discovery finds only some machines or none, or None if there is no problem."""
        return self._discovery.trouble if self.choice.on and self._looked else None

    def hears(self, machine: MachineId) -> bool | None:
        """Return whether announcements from a machine arrive here, or None if this cannot be determined."""
        if not self.choice.on or not self._looked or not self._discovery.has_listened:
            return None
        return any(seen.is_of(machine) for seen in self._near.values())

    def snapshot(self) -> DiscoveryState:
        """Return whether discovery is on, and its problem if there is one."""
        return DiscoveryState(self.choice.on, sentence(self.trouble), self.trouble)

    def check(self) -> Check:
        """Return the result of the discovery check for the diagnostics."""
        if not self.choice.on:
            cause = Reason("check_discovery_off")
            return Check("Discovery", None, cause, code="discovery_off")
        if (trouble := self.trouble) is not None:
            at = str(trouble.facts.get("address", ""))
            return Check("Discovery", False, trouble, code=trouble.code, address=at)
        if awaited := sorted(self.choice.interfaces - self._there) if self._looked else []:
            there: Fact = ", ".join(sorted(self._there)) or Reason("none")
            cause = Reason("interface_awaited", {"name": awaited[0], "there": there})
            return Check("Discovery", None, cause, code="interface_awaited")
        if not self._near:
            cause, cure = Reason("check_discovery_alone"), Reason("cure_discovery_alone")
            return Check("Discovery", None, cause, cure, "discovery_alone")
        if (count := len(self._near)) == 1:
            return Check("Discovery", True, Reason("check_hears_one"))
        return Check("Discovery", True, Reason("check_hears", {"count": count}))

    def _heard(self, news: Announced | AnnouncementEnded) -> None:
        if isinstance(news, Announced):
            self._near[news.id16] = news
        else:
            self._near.pop(news.id16, None)
        self._network.address_book.note_announcement(news)
        self._tell(news)

    def _is_member(self, id16: str) -> bool:
        return any(machine.startswith(id16) for machine in self._network.members)

    async def _watch(self) -> None:
        """Track the addresses of this computer. The interfaces are read in full only after a change."""
        before: Glance | None = None
        while True:
            now = await asyncio.to_thread(_glance)
            if now != before:
                before = now
                every = await asyncio.to_thread(interfaces)
                self._there = frozenset(interface.name for interface in every)
                usable_now = usable_interfaces(every, self.choice.interfaces)
                addresses, speak_at = reachable_addresses(usable_now, self.choice.bind)
                self._network.address_book.own = preferred_address(addresses)
                self._discovery.use(addresses, speak_at)
                self._looked = True
                # Read again, because a link may use an address that appeared and disappeared in between.
                self._network.link_manager.drop_stale(_hosts(await asyncio.to_thread(_glance)))
            await asyncio.sleep(WATCH_SECONDS)


def system_name() -> str:
    """Return the name of this computer's operating system."""
    system = platform.system()
    return "macOS" if system == "Darwin" else system


async def reach(network: Network, machine: Machine, address: str) -> DialAddressResponse:
    """Connect to a machine of the household at an address that the user entered. Raises Unreachable or Refused."""
    if machine.id == network.id:
        raise BadInput("peer_is_this", name=machine.name)
    await network.link_manager.reach(network.members[machine.id], Address.parse(address))
    return DialAddressResponse(MachineRef(machine.id, machine.name))


async def _always(work: Callable[[], Awaitable[None]]) -> None:
    """Run a part of discovery, and restart it whenever it fails. The node keeps working meanwhile."""
    while True:
        try:
            await work()
        except Exception:  # an unexpected error must not end the node
            log.exception("discovery failed and will be restarted")
        await asyncio.sleep(AGAIN_SECONDS)


def reachable_addresses(interfaces: Iterable[Interface], bind: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the addresses of a node that listens at `bind`, and one address per interface to announce from."""
    if bind not in (EVERY_IPV4, EVERY_ADDRESS):
        return (bind,), (bind,)
    addresses: list[str] = []
    speak_at: list[str] = []
    for interface in interfaces:
        four = [address for address in interface.addresses if ":" not in address]
        six = [address for address in interface.addresses if ":" in address and "%" not in address]
        link_local = [address for address in interface.addresses if "%" in address]
        reached = four if bind == EVERY_IPV4 else (four + six) or link_local
        addresses += reached
        speak_at += reached[:1]
    return tuple(addresses)[:MAX_ADDRESSES], tuple(speak_at)[:MAX_ADDRESSES]


def preferred_address(addresses: Sequence[str]) -> str | None:
    """Return this computer's address on the default route if it is among `addresses`, otherwise the first of them."""
    on_the_way = own_host()
    return on_the_way if on_the_way in addresses else next(iter(addresses), None)


def describe_stranger(seen: Announced) -> Stranger:
    """Return the API's description of a nearby Poolhouse node."""
    pairing = seen.pairing_port
    return Stranger(
        id=seen.id16,
        name=seen.name,
        addresses=list(seen.addresses),
        pairing_address=str(Address(seen.addresses[0], pairing)) if pairing else None,
        protocol=seen.protocol,
        system=seen.system,
        device=seen.device,
    )


def _hosts(seen: Glance) -> frozenset[str]:
    """Return all addresses of interfaces that are up.

    On Linux, a secondary address of eth0 has its own label such as eth0:1, but only eth0 itself is reported as up.
    """
    addresses, up = seen
    return frozenset(
        address.partition("%")[0] for name, address in addresses if name in up or name.partition(":")[0] in up
    )


def _glance() -> Glance:
    """Return the addresses and the interfaces that are up. This is cheap enough to compare the results every few
    seconds."""
    addresses = psutil.net_if_addrs().items()
    stats = psutil.net_if_stats().items()
    return (
        sorted((name, entry.address) for name, entries in addresses for entry in entries),
        sorted(name for name, stat in stats if stat.isup),
    )
