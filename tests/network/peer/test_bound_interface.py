"""Connections that leave by one interface, whatever the routes would choose."""

from __future__ import annotations

import socket
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from app.network.sockets import LocalInterface, create_socket
from testbed.namespaces import Lan
from tests.network.namespaces import lan

TCP = (socket.AF_INET, socket.SOCK_STREAM, 0)
KILOBYTES = 32 << 10  # less than a socket takes before it is read


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS has only one address of its loopback")
def test_a_connection_has_the_address_of_its_interface() -> None:
    name = "lo" if sys.platform == "linux" else "Loopback"
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        create_socket(*TCP, LocalInterface(name, ("127.0.0.2",))) as made,
    ):
        made.connect(server.getsockname())
        accepted, peer = server.accept()
        accepted.close()
    assert peer[0] == "127.0.0.2"


def test_an_interface_that_is_not_there_or_has_no_such_address_is_an_error() -> None:
    with pytest.raises(OSError, match="no address of this family"):
        create_socket(*TCP, LocalInterface("eth0", ("fe80::1%eth0",)))
    with pytest.raises(OSError, match=r".+"):
        create_socket(*TCP, LocalInterface("nowhere9", ("203.0.113.7",)))


def test_without_one_the_system_chooses() -> None:
    with create_socket(*TCP, None) as made:
        assert made.family == socket.AF_INET


def test_an_address_beyond_the_own_cable_is_preferred() -> None:
    through = LocalInterface("eth0", ("fe80::1%eth0", "10.0.0.2", "fd00::2"))
    assert through.host(socket.AF_INET6) == "fd00::2"
    assert through.host(socket.AF_INET) == "10.0.0.2"
    assert not LocalInterface("eth0", ("10.0.0.2",)).has(socket.AF_INET6)


@pytest.mark.skipif(sys.platform != "linux", reason="network namespaces are Linux's")
def test_of_two_cables_in_one_network_the_chosen_one_carries_it() -> None:
    with lan(2) as made:
        second = _second_cable(made)
        assert _carried_by(made, None) == "eth0"
        assert _carried_by(made, LocalInterface("eth1", (second,))) == "eth1"


def _second_cable(made: Lan) -> str:
    """Computer 0 has another cable to the same switch, with an address of the same network."""
    ends = ["type", "veth", "peer", "name", "eth1", "netns", made.names[0]]
    _ip("-n", made.switch, "link", "add", "px", *ends)
    _ip("-n", made.switch, "link", "set", "px", "master", "sw", "up")
    _ip("-n", made.names[0], "addr", "add", "10.231.90.77/24", "dev", "eth1")
    _ip("-n", made.names[0], "link", "set", "eth1", "up")
    for name in ("all", "eth0", "eth1"):  # each answers only for its own address
        made.on(0, partial(Path(f"/proc/sys/net/ipv4/conf/{name}/arp_ignore").write_text, "1"))
    return "10.231.90.77"


def _carried_by(made: Lan, through: LocalInterface | None) -> str:
    """Return the interface of computer 0 that carries some kilobytes to computer 1."""
    before = [_sent(made, "eth0"), _sent(made, "eth1")]
    server = made.on(1, lambda: socket.create_server((made.address(1), 0)))
    client = made.on(0, lambda: create_socket(*TCP, through))
    with server, client:
        client.settimeout(5)
        client.connect(server.getsockname())
        accepted, _ = server.accept()
        with accepted:
            client.sendall(bytes(KILOBYTES))
            client.shutdown(socket.SHUT_WR)
            while accepted.recv(1 << 16):
                pass
    grew = [_sent(made, "eth0") - before[0], _sent(made, "eth1") - before[1]]
    assert max(grew) > KILOBYTES
    return "eth0" if grew[0] > grew[1] else "eth1"


def _sent(made: Lan, name: str) -> int:
    path = f"/sys/class/net/{name}/statistics/tx_bytes"
    shown = subprocess.run(
        ["ip", "netns", "exec", made.names[0], "cat", path], check=True, capture_output=True,
        text=True,
    )  # fmt: skip
    return int(shown.stdout)


def _ip(*command: str) -> None:
    subprocess.run(["ip", *command], check=True, capture_output=True)
