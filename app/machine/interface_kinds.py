"""What kind an interface is, from what each system says of it. Pure: no system is asked here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from app.core.household.link import LinkKind

# Names that programs give to what they make themselves, on any system
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

# Linux: kinds of interfaces that are software, as their drivers call themselves
_SOFTWARE = {
    *("bonding", "bridge", "dummy", "geneve", "gre", "gretap", "ifb", "ip6tnl", "ipip", "ipvlan"),
    *("macvlan", "macvtap", "sit", "team", "tun", "veth", "vlan", "vxlan", "wireguard"),
    "802.1Q VLAN Support",
}
IFF_TUN = 0x0001  # linux/if_tun.h

# Windows: interface types of IANA, in the registry as *IfType
IF_WIFI, IF_PPP, IF_TUNNEL, IF_LOOPBACK = 71, 23, 131, 24


@dataclass(frozen=True, slots=True)
class LinuxFacts:
    """What Linux tells of one interface."""

    name: str
    driver: str = ""  # as ethtool's ioctl gives it
    loopback: bool = False
    wireless: bool = False
    tun_flags: int | None = None
    lower: tuple[LinuxFacts, ...] = ()  # what it is built on: ports of a bridge, slaves of a bond
    is_port: bool = False  # of a bridge: addresses belong to the bridge


def linux_kind(facts: LinuxFacts) -> LinkKind:
    """The kind; a bridge, bond, VLAN or macvlan is what its best part is made of."""
    if facts.loopback:
        return LinkKind.LOOPBACK
    if facts.wireless:
        return LinkKind.WIFI
    named = named_kind(facts.name)
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
            # The end in a container or namespace is its cable. The end at the host is a bridge's port.
            return LinkKind.VIRTUAL if facts.is_port else LinkKind.ETHERNET
        case driver if driver in _SOFTWARE:
            return _best([linux_kind(part) for part in facts.lower if part.driver != "veth"])
        case "" if named is LinkKind.UNKNOWN:
            return LinkKind.UNKNOWN
    return LinkKind.WIFI if named is LinkKind.WIFI else LinkKind.ETHERNET


def is_software(driver: str) -> bool:
    """Whether no card stands behind a Linux interface, so that its speed is made up."""
    return driver in _SOFTWARE


def named_kind(name: str) -> LinkKind:
    """The kind that a name gives away; UNKNOWN for a name that tells nothing."""
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
    """macOS, `networksetup -listallhardwareports`: device -> what Apple calls its port."""
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
    """The kind of a macOS interface, `ports` from `hardware_ports`."""
    port = ports.get(name, "").lower()
    if "thunderbolt" in port and "ethernet" not in port:  # "Thunderbolt Ethernet" is an adapter
        return LinkKind.THUNDERBOLT
    if port in ("wi-fi", "airport"):
        return LinkKind.WIFI
    named = named_kind(name)
    if named is LinkKind.UNKNOWN and port:
        return LinkKind.ETHERNET
    return named


@dataclass(frozen=True, slots=True)
class WindowsFacts:
    """What the registry of Windows tells of one adapter."""

    name: str  # as people see it: "Wi-Fi", "vEthernet (WSL)"
    description: str = ""  # as its driver calls itself
    if_type: int | None = None
    virtual: bool = False  # no card behind it: NCF_VIRTUAL without NCF_PHYSICAL


def windows_kind(facts: WindowsFacts) -> LinkKind:
    """The kind of a Windows adapter: what its driver says goes before what it is called."""
    words = facts.description.lower()
    if facts.if_type == IF_LOOPBACK or facts.name.lower().startswith("loopback"):
        return LinkKind.LOOPBACK
    if "thunderbolt" in words or "usb4" in words:
        return LinkKind.THUNDERBOLT
    for text in (words, facts.name):
        if (named := named_kind(text)) in (LinkKind.VIRTUAL, LinkKind.VPN):
            return named
    if facts.if_type in (IF_PPP, IF_TUNNEL) or "tunnel" in words or "vpn" in words:
        return LinkKind.VPN
    if facts.virtual:
        return LinkKind.VIRTUAL
    if facts.if_type == IF_WIFI or named_kind(facts.name) is LinkKind.WIFI:
        return LinkKind.WIFI
    return LinkKind.ETHERNET


def _best(parts: list[LinkKind]) -> LinkKind:
    """What something built on `parts` is: real when one of them is."""
    for kind in (LinkKind.ETHERNET, LinkKind.THUNDERBOLT, LinkKind.WIFI):
        if kind in parts:
            return kind
    return LinkKind.VIRTUAL
