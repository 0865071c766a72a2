"""Addresses as people type them, and sockets that notice a dead peer."""

from __future__ import annotations

import asyncio
import socket
import sys

import pytest

from app.core.errors import AppError, BadInput, Unreachable
from app.network.sockets import (
    LINUX_TCP_RTO_MAX_MS,
    LINUX_TCP_RTO_MIN_US,
    Address,
    accept_connection,
    listening_socket,
    own_host,
    plain_host,
    retransmit_quickly,
    tune,
)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("10.0.0.2:4242", Address("10.0.0.2", 4242)),
        (" den-pc.local:1 ", Address("den-pc.local", 1)),
        ("[fe80::1]:65535", Address("fe80::1", 65535)),
        ("[fe80::1%eth0]:7", Address("fe80::1%eth0", 7)),
    ],
)
def test_addresses_are_read_and_written(text: str, address: Address) -> None:
    assert Address.parse(text) == address
    assert Address.parse(str(address)) == address


@pytest.mark.parametrize(
    "text",
    [
        "| den",
        "den:",
        ":1",
        "den:x",
        "den:0",
        "den:65536",
        "d en:1",
        "http://den:1",
        "a@b:1",
        "[::1]",
        "[::1:5",
        "den%25:1",
        "dén:1",
        "den:１",
        "den:00000001",
    ],
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(BadInput):
        Address.parse(text)


def test_a_default_port() -> None:
    assert Address.parse("den", 7) == Address("den", 7)
    assert Address.parse("[::1]", 7) == Address("::1", 7)
    assert Address.parse("den:8", 7) == Address("den", 8)


def test_hosts_as_people_write_them() -> None:
    assert plain_host("::ffff:10.0.0.2") == "10.0.0.2"
    assert plain_host("fe80::1") == "fe80::1"
    assert own_host().count(".") == 3


def test_a_taken_port_is_said() -> None:
    with listening_socket("127.0.0.1", 0) as first, pytest.raises(Unreachable) as taken:
        listening_socket("127.0.0.1", first.getsockname()[1])
    assert taken.value.reason.code == "port_taken"


@pytest.mark.parametrize("host", ["203.0.113.1", "no-such-name.invalid"])
def test_an_address_of_another_machine_is_refused(host: str) -> None:
    with pytest.raises(BadInput) as refused:
        listening_socket(host, 0)
    assert (refused.value.reason.code, refused.value.reason.facts) == (
        "address_not_ours", {"address": host},
    )  # fmt: skip
    with pytest.raises(AppError):
        listening_socket("192.0.2.1", 0)


@pytest.mark.parametrize("dual", [True, False])
def test_without_a_host_every_address_is_served(monkeypatch: pytest.MonkeyPatch, dual: bool) -> None:
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: dual)
    with listening_socket(None, 0) as sock:
        socket.create_connection(("127.0.0.1", sock.getsockname()[1])).close()


def test_tuned_sockets_notice_a_dead_peer() -> None:
    with socket.socket() as sock:
        tune(sock)
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 5000
    tune(sock)  # gone already: no error


@pytest.mark.skipif(sys.platform != "linux", reason="other numbers")
def test_what_is_lost_is_sent_again_soon_where_the_system_can() -> None:
    """Linux from 2025 on; elsewhere nothing is another, and nothing fails."""
    with socket.socket() as sock:
        tune(sock)
        retransmit_quickly(sock)
        try:
            most = sock.getsockopt(socket.IPPROTO_TCP, LINUX_TCP_RTO_MAX_MS)
            least = sock.getsockopt(socket.IPPROTO_TCP, LINUX_TCP_RTO_MIN_US)
        except OSError:
            pytest.skip("this system has its own rule alone")
        assert most == 1000
        assert 45_000 <= least <= 60_000  # in whole ticks of the kernel
    retransmit_quickly(sock)  # gone already: no error


async def test_a_cancelled_accept_loses_nobody() -> None:
    with listening_socket("127.0.0.1", 0) as sock:
        waiting = asyncio.get_running_loop().create_task(accept_connection(sock))
        await asyncio.sleep(0.01)
        with socket.create_connection(sock.getsockname()) as caller:
            waiting.cancel()
            await asyncio.wait({waiting})
            there, host = await accept_connection(sock)
            assert host == "127.0.0.1"
            assert there.getpeername() == caller.getsockname()
            there.close()
