"""Tests of parsing each system's list of interfaces, and of which of them are used by default."""

from __future__ import annotations

import ipaddress
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from app.core.household.link import LinkKind
from app.machine import interfaces as kinds
from app.machine.interfaces import (
    Interface,
    LinuxFacts,
    WindowsFacts,
    interface_of_connection,
    interfaces,
    usable_interfaces,
    windows_facts,
)

PROJECT = Path(__file__).resolve().parents[2]
CARD = LinuxFacts("enp3s0", "r8169")
VETH = LinuxFacts("veth12ab", "veth", is_port=True)

LINUX = [
    (LinuxFacts("lo", loopback=True), LinkKind.LOOPBACK),
    (CARD, LinkKind.ETHERNET),
    (LinuxFacts("eth0", "virtio_net"), LinkKind.ETHERNET),  # a virtual machine's card is its cable
    (LinuxFacts("wlp2s0", "iwlwifi", wireless=True), LinkKind.WIFI),
    (LinuxFacts("wlan0", "brcmfmac"), LinkKind.WIFI),  # /sys of another namespace
    (LinuxFacts("thunderbolt0", "thunderbolt-net"), LinkKind.THUNDERBOLT),
    (LinuxFacts("enx001", "r8152"), LinkKind.ETHERNET),
    (LinuxFacts("eth0", "veth"), LinkKind.ETHERNET),  # inside a container or namespace
    (VETH, LinkKind.VIRTUAL),  # its other end, at the host
    (LinuxFacts("docker0", "bridge", lower=(VETH,)), LinkKind.VIRTUAL),
    (LinuxFacts("br-0123456789ab", "bridge", lower=(VETH,)), LinkKind.VIRTUAL),
    (LinuxFacts("br0", "bridge", lower=(VETH, CARD)), LinkKind.ETHERNET),  # at home, for VMs
    (LinuxFacts("br0", "bridge", lower=(VETH,)), LinkKind.VIRTUAL),
    (LinuxFacts("virbr0", "bridge"), LinkKind.VIRTUAL),
    (LinuxFacts("bond0", "bonding", lower=(CARD, CARD)), LinkKind.ETHERNET),
    (LinuxFacts("eno1.20", "802.1Q VLAN Support", lower=(CARD,)), LinkKind.ETHERNET),
    (LinuxFacts("dummy0", "dummy"), LinkKind.VIRTUAL),
    (LinuxFacts("vmnet8", ""), LinkKind.VIRTUAL),
    (LinuxFacts("vboxnet0", "vboxnet"), LinkKind.VIRTUAL),
    (LinuxFacts("home", "wireguard"), LinkKind.VPN),
    (LinuxFacts("office", "tun", tun_flags=0x1801), LinkKind.VPN),
    (LinuxFacts("vnet3", "tun", tun_flags=0x1802), LinkKind.VIRTUAL),
    (LinuxFacts("ztabcdef12", "tun", tun_flags=0x1002), LinkKind.VPN),
    (LinuxFacts("tailscale0", "tun", tun_flags=0x1001), LinkKind.VPN),
    (LinuxFacts("ppp0", ""), LinkKind.VPN),
    (LinuxFacts("odd", ""), LinkKind.UNKNOWN),
]


@pytest.mark.parametrize(("facts", "kind"), LINUX, ids=[facts.name for facts, _ in LINUX])
def test_kinds_on_linux(facts: LinuxFacts, kind: LinkKind) -> None:
    assert kinds.linux_kind(facts) is kind


# `networksetup -listallhardwareports` as macOS prints it
LISTING = """
Hardware Port: Ethernet
Device: en0
Ethernet Address: 14:98:77:00:00:01

Hardware Port: Thunderbolt Bridge
Device: bridge0
Ethernet Address: 36:1d:7b:00:00:02

Hardware Port: Wi-Fi
Device: en1
Ethernet Address: 14:98:77:00:00:03

Hardware Port: Thunderbolt 1
Device: en2
Ethernet Address: 36:1d:7b:00:00:04

Hardware Port: USB 10/100/1G/2.5G LAN
Device: en7
Ethernet Address: 00:e0:4c:00:00:05

VLAN Configurations
===================
"""
MAC = {
    "lo0": LinkKind.LOOPBACK,
    "en0": LinkKind.ETHERNET,
    "en1": LinkKind.WIFI,
    "en2": LinkKind.THUNDERBOLT,
    "en7": LinkKind.ETHERNET,
    "bridge0": LinkKind.THUNDERBOLT,
    "bridge100": LinkKind.VIRTUAL,
    "utun3": LinkKind.VPN,
    "feth1234": LinkKind.VPN,
    "awdl0": LinkKind.VIRTUAL,
    "llw0": LinkKind.VIRTUAL,
    "vmenet0": LinkKind.VIRTUAL,
    "gif0": LinkKind.VIRTUAL,
    "en9": LinkKind.UNKNOWN,
}


def test_kinds_on_macos() -> None:
    ports = kinds.hardware_ports(LISTING)
    assert ports["en7"] == "USB 10/100/1G/2.5G LAN"
    assert len(ports) == 5
    assert {name: kinds.mac_kind(name, ports) for name in MAC} == MAC


def test_a_listing_that_is_none_gives_no_ports() -> None:
    assert kinds.hardware_ports("") == {}
    assert kinds.hardware_ports("Device: en0\nHardware Port\n\x00:\n") == {}


WINDOWS = [
    ("Ethernet", "Realtek PCIe GbE Family Controller", 6, 0x84, LinkKind.ETHERNET),
    ("Wi-Fi", "Intel(R) Wi-Fi 6 AX201 160MHz", 71, 0x84, LinkKind.WIFI),
    ("WLAN", "MediaTek Wireless Adapter", 71, 0x84, LinkKind.WIFI),
    ("Ethernet 3", "Thunderbolt(TM) Networking", 6, 0x84, LinkKind.THUNDERBOLT),
    ("Ethernet 4", "USB4(TM) P2P Network Adapter", 6, 0x84, LinkKind.THUNDERBOLT),
    ("vEthernet (WSL)", "Hyper-V Virtual Ethernet Adapter", 6, 0x29, LinkKind.VIRTUAL),
    ("VMware Network Adapter VMnet8", "VMware Virtual Ethernet Adapter for VMnet8", 6, 0x1, LinkKind.VIRTUAL),
    ("Ethernet 2", "VirtualBox Host-Only Ethernet Adapter", 6, 0x1, LinkKind.VIRTUAL),
    ("Home", "WireGuard Tunnel", 53, 0x1, LinkKind.VPN),
    ("Tailscale", "Tailscale Tunnel", 53, 0x1, LinkKind.VPN),
    ("ZeroTier One [a09acf]", "ZeroTier Virtual Port", 6, 0x1, LinkKind.VPN),
    ("Office", "TAP-Windows Adapter V9", 6, 0x1, LinkKind.VPN),
    ("Work", "WAN Miniport (PPPOE)", 23, 0x29, LinkKind.VPN),
    ("Ethernet 9", "Some Filter", 6, 0x1, LinkKind.VIRTUAL),
]  # fmt: skip


@pytest.mark.parametrize(("name", "words", "if_type", "marks", "kind"), WINDOWS)
def test_kinds_on_windows(name: str, words: str, if_type: int, marks: int, kind: LinkKind) -> None:
    adapter = {"DriverDesc": words, "*IfType": if_type, "Characteristics": marks}
    assert kinds.windows_kind(windows_facts(name, adapter)) is kind


def test_windows_adapters_that_say_nothing() -> None:
    assert windows_facts("Ethernet", {"*IfType": "6"}) == WindowsFacts("Ethernet")
    assert kinds.windows_kind(WindowsFacts("Loopback Pseudo-Interface 1")) is LinkKind.LOOPBACK
    assert kinds.windows_kind(WindowsFacts("Ethernet")) is LinkKind.ETHERNET


def made(name: str, kind: LinkKind, *addresses: str, up: bool = True) -> Interface:
    return Interface(name, kind, up, addresses)


ALL = (
    made("lo", LinkKind.LOOPBACK, "127.0.0.1", "::1"),
    made("eth0", LinkKind.ETHERNET, "192.168.1.20", "fe80::1%eth0"),
    made("eth1", LinkKind.ETHERNET),
    made("eth2", LinkKind.ETHERNET, "192.168.9.1", up=False),
    made("wlan0", LinkKind.WIFI, "192.168.1.21"),
    made("docker0", LinkKind.VIRTUAL, "172.17.0.1"),
    made("wg0", LinkKind.VPN, "10.8.0.2"),
    made("odd", LinkKind.UNKNOWN, "10.9.0.2"),
)


def test_docker_and_vpn_are_used_only_when_chosen() -> None:
    def names(*chosen: str) -> list[str]:
        return [usable_interface.name for usable_interface in usable_interfaces(ALL, frozenset(chosen))]

    assert names() == ["eth0", "wlan0", "odd"]
    assert names("wg0") == ["eth0", "wlan0", "wg0", "odd"]
    assert names("docker0", "lo", "eth1", "eth2") == ["lo", "eth0", "wlan0", "docker0", "odd"]


@pytest.mark.parametrize(
    ("local", "remote", "name"),
    [
        ("192.168.1.20", None, "eth0"),
        ("::ffff:192.168.1.21", None, "wlan0"),
        ("fe80::1", None, "eth0"),
        ("fe80::1%eth0", "fe80::2%eth0", "eth0"),
        ("10.8.0.2", "10.8.0.1", "wg0"),
        ("192.168.1.20", "192.168.1.21", "lo"),  # to ourselves
        ("192.168.1.20", "192.168.1.99", "eth0"),
        ("127.0.0.53", "127.0.0.1", "lo"),
        ("192.168.77.1", None, None),
        ("nonsense", None, None),
        ("", "", None),
    ],
)
def test_which_interface_carries_a_connection(local: str, remote: str | None, name: str | None) -> None:
    result = interface_of_connection(ALL, local, remote)
    assert (result.name if result else None) == name


def test_this_computer() -> None:
    result = {interface.name: interface for interface in interfaces()}
    assert result.keys() == psutil.net_if_addrs().keys()
    loopback = interface_of_connection(result.values(), "127.0.0.1")
    assert loopback is not None
    assert loopback.kind is LinkKind.LOOPBACK
    assert loopback.is_up
    assert loopback.negotiated_bits_per_s is None
    for item in result.values():
        for address in item.addresses:
            ipaddress.ip_address(address)  # raises for what is none


ASK = """
import json
from app.machine.interfaces import interfaces, usable_interfaces
found = interfaces()
print(json.dumps([{one.name: one.kind for one in found}, [one.name for one in usable_interfaces(found, frozenset())]]))
"""


@pytest.fixture
def namespace() -> Iterator[str]:
    if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("needs root and iproute2")
    name = f"Ci{os.getpid()}"
    ip("netns", "add", name)
    yield name
    ip("netns", "del", name)


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


@pytest.mark.root
@pytest.mark.parametrize(
    ("enter", "expected"),
    [
        ("ip netns exec NAME", ["eth0"]),
        # leaves the host's /sys in place, which does not know that `inside` is a bridge's port
        ("nsenter --net=/run/netns/NAME", ["eth0", "inside"]),
    ],
)
def test_a_namespace_has_a_cable_and_its_host_a_virtual_network(
    namespace: str, enter: str, expected: list[str]
) -> None:
    for words in (
        "link set lo up",
        "link add eth0 type veth peer name inside",
        "link add docker0 type bridge",
        "link set inside master docker0",
        "address add 10.97.0.2/24 dev eth0",
        "address add 172.17.0.1/16 dev docker0",
        "link set eth0 up",
        "link set inside up",
        "link set docker0 up",
        "tuntap add mode tun name office",
        "address add 10.96.0.1/24 dev office",
        "link set office up",
    ):
        ip("-n", namespace, *words.split())
    answer = subprocess.run(
        [*enter.replace("NAME", namespace).split(), sys.executable, "-c", ASK],
        capture_output=True, text=True, check=True, cwd=PROJECT,
    )  # fmt: skip
    result, used = json.loads(answer.stdout)
    assert result["eth0"] == "ethernet"
    assert result["docker0"] == "virtual"
    assert result["office"] == "vpn"
    assert used == expected
