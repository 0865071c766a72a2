"""A node and its window talk to nobody outside their network: no telemetry, no updates, no names asked for. UX.md P5"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path

import pytest

from testbed.computers import Computer
from testbed.namespaces import Lan
from tests.network.namespaces import lan

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs network namespaces"),
]
ALL_PROTOCOLS = 0x0003  # linux/if_ether.h
IPV4, ARP, IPV6 = 0x0800, 0x0806, 0x86DD
GATEWAY = "10.231.90.254"  # the way to everybody else; nobody is there
BEYOND = "192.0.2.1"
SHOWN_SECONDS, LAST_SECONDS, MOST_SECONDS = 2.0, 0.5, 60.0


@contextmanager
def tapped(net: Lan) -> Iterator[socket.socket]:
    """All that this computer sends, kept until it is read."""

    def tap() -> socket.socket:
        made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PROTOCOLS))
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        made.bind(("eth0", ALL_PROTOCOLS))
        made.setblocking(False)
        return made

    with net.on(0, tap) as made:
        yield made


def reached_for(tap: socket.socket, own: str) -> set[str]:
    """Addresses that are no group's, as packets go to them, or as their place is asked for."""
    mine, names = tap.getsockname()[4], set[str]()
    while True:
        try:
            packet = tap.recv(1 << 16)
        except BlockingIOError:
            return names - {own}
        kind = int.from_bytes(packet[12:14], "big")
        if packet[6:12] != mine:
            continue
        if kind == ARP:
            names.add(str(ip_address(packet[38:42])))
        elif kind in (IPV4, IPV6):
            to = ip_address(packet[30:34] if kind == IPV4 else packet[38:54])
            names |= set() if to.is_multicast else {str(to)}


def knock() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.sendto(b"x", (BEYOND, 9))


def window(net: Lan, home: Path) -> None:
    """Run a window for a while, from when it saves its first setting."""
    shown = net.start(
        0, sys.executable, "-m", "app", "--home", str(home),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env=os.environ | {"DISPLAY": ":0", "QT_QPA_PLATFORM": "offscreen", "POOLHOUSE_KEYSTORE": "file"},
    )  # fmt: skip
    try:
        late = time.monotonic() + MOST_SECONDS
        while not (home / "window").is_dir():
            assert shown.poll() is None, shown.stdout and shown.stdout.read()
            assert time.monotonic() < late, "no window was opened"
            time.sleep(0.05)
        time.sleep(SHOWN_SECONDS)
        assert shown.poll() is None, shown.stdout and shown.stdout.read()
    finally:
        shown.kill()
        shown.communicate()


@pytest.mark.long
def test_at_rest_and_at_work_nobody_else_is_reached_for(tmp_path: Path) -> None:
    with lan(1) as net:
        way = ["ip", "-n", net.names[0], "route", "add", "default", "via", GATEWAY]
        subprocess.run(way, check=True)
        with tapped(net) as tap:
            den = Computer(net, 0, tmp_path / "den")
            den.start()
            try:
                den.wait()
                assert den.run("ask", "What is a pool?", "--max-tokens", "8")["text"]
                for path in ("/models", "/catalog", "/doctor?whole=1"):
                    assert den.ask("GET", path)
                window(net, den.root)
            finally:
                den.end()
            time.sleep(LAST_SECONDS)
            assert reached_for(tap, net.address(0)) == set()
            net.on(0, knock)
            late = time.monotonic() + MOST_SECONDS
            while GATEWAY not in reached_for(tap, net.address(0)):  # else the tap had proved nothing
                assert time.monotonic() < late, "what was sent was not seen"
                time.sleep(0.05)
