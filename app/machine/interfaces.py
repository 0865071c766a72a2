"""This computer's network interfaces: their kinds, addresses and speeds, and which of them are used by default."""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import platform
import re
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import psutil

from app.core.household.link import LinkKind

USED_BY_DEFAULT = frozenset(
    [LinkKind.ETHERNET, LinkKind.WIFI, LinkKind.THUNDERBOLT, LinkKind.UNKNOWN]
)  # kinds that normally connect the computers of a household
SYS_NET = Path("/sys/class/net")
MAX_BITS_PER_S = 10**12  # some drivers report 2^32-1 Mbit/s for "unknown"
LISTING_SECONDS = 5.0
SIOCETHTOOL, ETHTOOL_GDRVINFO, DRIVER_INFO_BYTES = 0x8946, 3, 196  # linux/sockios.h, ethtool.h
MAX_LAYERS = 4  # a VLAN on a bridge on a bond on a card
ARPHRD_LOOPBACK = 772  # linux/if_arp.h
# Windows: the registry key of network adapters, and the bits of their Characteristics
ADAPTERS = r"SYSTEM\CurrentControlSet\Control\Class\{4D36E972-E325-11CE-BFC1-08002BE10318}"
CONNECTIONS = r"SYSTEM\CurrentControlSet\Control\Network\{4D36E972-E325-11CE-BFC1-08002BE10318}"
NCF_VIRTUAL, NCF_PHYSICAL = 0x1, 0x4

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Interface:
    """The current state of a network interface. Link-local addresses include their scope (`fe80::1%eth0`)."""

    name: str
    kind: LinkKind
    is_up: bool
    addresses: tuple[str, ...]
    mtu: int | None = None
    negotiated_bits_per_s: int | None = None  # known only for physical cards


def interfaces() -> tuple[Interface, ...]:
    """Return all network interfaces of this computer, sorted by name.

    Blocks for a few milliseconds, or up to 5 s on macOS.
    """
    names = tuple(sorted(psutil.net_if_addrs()))
    kind_of, is_card = _classifier(names)
    stats = psutil.net_if_stats()
    return tuple(
        Interface(
            name,
            kind_of(name),
            name in stats and stats[name].isup,
            tuple(_addresses(name, entries)),
            (stats[name].mtu or None) if name in stats else None,
            _negotiated(stats[name].speed) if name in stats and is_card(name) else None,
        )
        for name, entries in sorted(psutil.net_if_addrs().items())
    )


def usable_interfaces(candidates: Iterable[Interface], chosen: frozenset[str]) -> tuple[Interface, ...]:
    """Return the interfaces that are up, have an address, and may be used for links within a household.

    Loopback, container, virtual machine and VPN interfaces are included only if their names are in `chosen`.
    """
    return tuple(
        interface
        for interface in candidates
        if interface.is_up and interface.addresses and (interface.kind in USED_BY_DEFAULT or interface.name in chosen)
    )


def interface_of_connection(candidates: Iterable[Interface], local: str, remote: str | None = None) -> Interface | None:
    """Return the interface that a connection between two addresses uses, or None if none has the address `local`.

    A connection to this computer's own address never leaves the computer, so it uses the loopback interface.
    """
    all_interfaces = tuple(candidates)
    if remote is not None and _holder(all_interfaces, remote) is not None:
        return next((interface for interface in all_interfaces if interface.kind is LinkKind.LOOPBACK), None)
    return _holder(all_interfaces, local)


def _holder(all_interfaces: tuple[Interface, ...], address: str) -> Interface | None:
    target = _plain(address)
    if target is not None and target.is_loopback:  # any address of 127.0.0.0/8, such as 127.0.0.53
        return next((interface for interface in all_interfaces if interface.kind is LinkKind.LOOPBACK), None)
    for interface in all_interfaces:
        if target is not None and target in map(_plain, interface.addresses):
            return interface
    return None


def _plain(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Parse an address without its scope, and return None if it is invalid. An IPv4-mapped address becomes IPv4."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return None
    return getattr(parsed, "ipv4_mapped", None) or parsed


def _addresses(name: str, entries: Iterable[object]) -> Iterable[str]:
    for entry in entries:
        family, address = getattr(entry, "family", None), str(getattr(entry, "address", ""))
        if family == socket.AF_INET:
            yield address
        elif family == socket.AF_INET6:
            scoped = "%" in address or not ipaddress.IPv6Address(address).is_link_local
            yield address if scoped else f"{address}%{name}"


def _negotiated(megabits_per_s: int) -> int | None:
    bits = megabits_per_s * 1_000_000
    return bits if 0 < bits < MAX_BITS_PER_S else None


def _classifier(names: tuple[str, ...]) -> tuple[Callable[[str], LinkKind], Callable[[str], bool]]:
    """Return two functions that take an interface's name.

    The first returns its kind. The second returns whether it is a physical card.
    """
    match platform.system():
        case "Linux":
            return (lambda name: linux_kind(_linux_facts(name)), lambda name: not is_software(_driver(name)))
        case "Darwin":
            ports = _mac_ports(names)
            return lambda name: mac_kind(name, ports), lambda name: name in ports
    adapters = _windows_adapters(names)
    return (
        lambda name: windows_kind(adapters.get(name, WindowsFacts(name))),
        lambda name: name in adapters and not adapters[name].virtual,
    )


def _linux_facts(name: str, depth: int = 0) -> LinuxFacts:
    """Collect the facts about an interface from /sys and its driver.

    /sys may show the network namespace in which it was mounted instead of ours, so it is used only if the interface
    index matches.
    """
    folder = SYS_NET / name
    try:
        known = int(_read(folder / "ifindex") or 0) == socket.if_nametoindex(name)
    except (OSError, ValueError):
        known = False
    if not known:
        return LinuxFacts(name, _driver(name), loopback=name == "lo")
    lower = sorted(path.name.removeprefix("lower_") for path in folder.glob("lower_*"))
    tun = _read(folder / "tun_flags")
    return LinuxFacts(
        name,
        _driver(name),
        loopback=_read(folder / "type") == str(ARPHRD_LOOPBACK),
        wireless=(folder / "wireless").exists() or (folder / "phy80211").exists(),
        tun_flags=int(tun, 16) if tun else None,
        lower=tuple(_linux_facts(part, depth + 1) for part in lower) if depth < MAX_LAYERS else (),
        is_port=(folder / "brport").exists(),
    )


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def _driver(name: str) -> str:
    """Return the driver's name from ethtool's ioctl, which needs no privileges, or "" if there is none."""
    if sys.platform == "linux":
        import array
        import fcntl

        info = struct.pack("I", ETHTOOL_GDRVINFO).ljust(DRIVER_INFO_BYTES, b"\0")
        answer = array.array("B", info)
        request = struct.pack("16sP8x", name.encode()[:15], answer.buffer_info()[0])
        with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as endpoint:
            fcntl.ioctl(endpoint, SIOCETHTOOL, request)
            return bytes(answer[4:36]).partition(b"\0")[0].decode("ascii", "replace")
    return ""


@lru_cache(maxsize=1)
def _mac_ports(names: tuple[str, ...]) -> Mapping[str, str]:
    """Return this Mac's hardware ports as a mapping from device to Apple's name for the port.

    It is empty if they cannot be listed. The result is cached until the interfaces change.
    """
    try:
        listing = subprocess.run(
            ["/usr/sbin/networksetup", "-listallhardwareports"],
            capture_output=True,
            text=True,
            timeout=LISTING_SECONDS,
            check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        log.warning("the hardware ports of this Mac cannot be listed: %s", error)
        return {}
    return hardware_ports(listing)


@lru_cache(maxsize=1)
def _windows_adapters(names: tuple[str, ...]) -> Mapping[str, WindowsFacts]:
    """Return the adapters in the registry, keyed by the name that Windows displays.

    The result is cached until the interfaces change.
    """
    adapters: dict[str, WindowsFacts] = {}
    for key in _registry_keys(ADAPTERS):
        adapter = _registry_values(rf"{ADAPTERS}\{key}")
        connection = rf"{CONNECTIONS}\{adapter.get('NetCfgInstanceId', '')}\Connection"
        if name := _registry_values(connection).get("Name"):
            adapters[str(name)] = windows_facts(str(name), adapter)
    return adapters


def _registry_keys(path: str) -> list[str]:
    """Return the names of a key's subkeys in HKEY_LOCAL_MACHINE, or nothing if the key is missing or inaccessible."""
    if sys.platform == "win32":
        import winreg

        with contextlib.suppress(OSError), winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, path) as key:
            return [winreg.EnumKey(key, n) for n in range(winreg.QueryInfoKey(key)[0])]
    return []


def _registry_values(path: str) -> dict[str, object]:
    """Return the values of a key in HKEY_LOCAL_MACHINE by name, or nothing if the key is missing or inaccessible."""
    if sys.platform == "win32":
        import winreg

        with contextlib.suppress(OSError), winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, path) as key:
            entries = [winreg.EnumValue(key, n) for n in range(winreg.QueryInfoKey(key)[1])]
            return {name: value for name, value, _ in entries}
    return {}


def windows_facts(name: str, adapter: Mapping[str, object]) -> WindowsFacts:
    """Extract the facts about an adapter from its registry values. `name` is the name that Windows displays."""
    if_type, marks = adapter.get("*IfType"), adapter.get("Characteristics")
    marks = marks if isinstance(marks, int) else NCF_PHYSICAL
    return WindowsFacts(
        name,
        str(adapter.get("DriverDesc", "")),
        if_type if isinstance(if_type, int) else None,
        virtual=bool(marks & NCF_VIRTUAL) and not marks & NCF_PHYSICAL,
    )


# Names of interfaces that software creates, on any system
_VIRTUAL_NAME = re.compile(
    r"docker|br-[0-9a-f]{12}$|podman|cni|flannel|cali|lxcbr|lxdbr|virbr|vnet\d|vmnet|vboxnet|vmenet"
    r"|vethernet|vmware|virtualbox|hyper-v|npcap|awdl|llw|anpi|ap\d|bridge1\d\d|dummy|ifb|gif\d|stf\d"
    r"|loopback pseudo|incusbr|waydroid"
)


_VPN_NAME = re.compile(
    r"zt|feth|zerotier|tailscale|wg\d|wg-|wireguard|tun\d|tap-windows|tap\d|utun|ppp|ipsec|nordlynx"
    r"|proton|mullvad|openvpn|wintun|hamachi|nebula|netbird|wt\d|cscotun|anyconnect|vpn"
)


_WIFI_NAME = re.compile(r"wl|wi-?fi|airport|wireless")


# Linux: drivers of software interfaces
_SOFTWARE = {
    *("bonding", "bridge", "dummy", "geneve", "gre", "gretap", "ifb", "ip6tnl", "ipip", "ipvlan"),
    *("macvlan", "macvtap", "sit", "team", "tun", "veth", "vlan", "vxlan", "wireguard"),
    "802.1Q VLAN Support",
}


IFF_TUN = 0x0001  # linux/if_tun.h


# Windows: IANA's interface types, in the registry as *IfType
IF_WIFI, IF_PPP, IF_TUNNEL, IF_LOOPBACK = 71, 23, 131, 24


@dataclass(frozen=True, slots=True)
class LinuxFacts:
    """The facts that determine the kind of a Linux interface."""

    name: str
    driver: str = ""  # from ethtool's ioctl
    loopback: bool = False
    wireless: bool = False
    tun_flags: int | None = None
    lower: tuple[LinuxFacts, ...] = ()  # the interfaces beneath it: ports of a bridge, members of a bond
    is_port: bool = False  # whether it belongs to a bridge, which then has the addresses


def linux_kind(facts: LinuxFacts) -> LinkKind:
    """Return the kind of a Linux interface.

    A bridge, bond, VLAN or macvlan has the kind of the best interface below it.
    """
    if facts.loopback:
        return LinkKind.LOOPBACK
    if facts.wireless:
        return LinkKind.WIFI
    named = kind_from_name(facts.name)
    if named in (LinkKind.VIRTUAL, LinkKind.VPN):
        return named
    match facts.driver:
        case "thunderbolt-net" | "thunderbolt_net":
            return LinkKind.THUNDERBOLT
        case "wireguard":
            return LinkKind.VPN
        case "tun":
            is_tap = facts.tun_flags is not None and not facts.tun_flags & IFF_TUN
            return LinkKind.VIRTUAL if is_tap else LinkKind.VPN
        case "veth":
            # Inside a container or namespace, a veth acts as the network card. Its end on the host is a port of a
            # bridge.
            return LinkKind.VIRTUAL if facts.is_port else LinkKind.ETHERNET
        case driver if driver in _SOFTWARE:
            return _best([linux_kind(part) for part in facts.lower if part.driver != "veth"])
        case "" if named is LinkKind.UNKNOWN:
            return LinkKind.UNKNOWN
    return LinkKind.WIFI if named is LinkKind.WIFI else LinkKind.ETHERNET


def is_software(driver: str) -> bool:
    """Return whether a Linux driver implements software interfaces, whose reported speeds are meaningless."""
    return driver in _SOFTWARE


def kind_from_name(name: str) -> LinkKind:
    """Return the kind that an interface's name suggests, or UNKNOWN."""
    low = name.lower()
    if low == "lo" or re.fullmatch(r"lo\d+", low):
        return LinkKind.LOOPBACK
    if _VIRTUAL_NAME.match(low):
        return LinkKind.VIRTUAL
    if _VPN_NAME.match(low):
        return LinkKind.VPN
    if _WIFI_NAME.match(low):
        return LinkKind.WIFI
    return LinkKind.UNKNOWN


def hardware_ports(listing: str) -> dict[str, str]:
    """Parse macOS's `networksetup -listallhardwareports` into a mapping from device to Apple's name for the port."""
    ports: dict[str, str] = {}
    port = ""
    for line in listing.splitlines():
        label, _, value = line.partition(":")
        if label == "Hardware Port":
            port = value.strip()
        elif label == "Device" and port:
            ports[value.strip()] = port
            port = ""
    return ports


def mac_kind(name: str, ports: Mapping[str, str]) -> LinkKind:
    """Return the kind of a macOS interface. `ports` is the result of `hardware_ports`."""
    port = ports.get(name, "").lower()
    if "thunderbolt" in port and "ethernet" not in port:  # a "Thunderbolt Ethernet" port is an Ethernet adapter
        return LinkKind.THUNDERBOLT
    if port in ("wi-fi", "airport"):
        return LinkKind.WIFI
    named = kind_from_name(name)
    if named is LinkKind.UNKNOWN and port:
        return LinkKind.ETHERNET
    return named


@dataclass(frozen=True, slots=True)
class WindowsFacts:
    """The facts in the registry that determine the kind of a Windows adapter."""

    name: str  # as Windows displays it: "Wi-Fi", "vEthernet (WSL)"
    description: str = ""  # the driver's name for the adapter
    if_type: int | None = None
    virtual: bool = False  # without a card: NCF_VIRTUAL and not NCF_PHYSICAL


def windows_kind(facts: WindowsFacts) -> LinkKind:
    """Return the kind of a Windows adapter. The driver's description takes precedence over the adapter's name."""
    words = facts.description.lower()
    if facts.if_type == IF_LOOPBACK or facts.name.lower().startswith("loopback"):
        return LinkKind.LOOPBACK
    if "thunderbolt" in words or "usb4" in words:
        return LinkKind.THUNDERBOLT
    for text in (words, facts.name):
        if (named := kind_from_name(text)) in (LinkKind.VIRTUAL, LinkKind.VPN):
            return named
    if facts.if_type in (IF_PPP, IF_TUNNEL) or "tunnel" in words or "vpn" in words:
        return LinkKind.VPN
    if facts.virtual:
        return LinkKind.VIRTUAL
    if facts.if_type == IF_WIFI or kind_from_name(facts.name) is LinkKind.WIFI:
        return LinkKind.WIFI
    return LinkKind.ETHERNET


def _best(parts: list[LinkKind]) -> LinkKind:
    """Return the best physical kind in `parts`, the interfaces below a layered interface, or VIRTUAL."""
    for kind in (LinkKind.ETHERNET, LinkKind.THUNDERBOLT, LinkKind.WIFI):
        if kind in parts:
            return kind
    return LinkKind.VIRTUAL
