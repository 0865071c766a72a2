"""Addresses, and sockets tuned to detect a dead peer and to send small frames without delay."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import socket
import sys
from dataclasses import dataclass
from typing import Protocol

from app.core.errors import BadInput, Unreachable
from app.core.reasons import os_cause

LINUX_BIND_TO_DEVICE = 25  # asm-generic/socket.h
MACOS_BOUND_IF, MACOS_BOUND_IF_6 = 25, 125  # netinet/in.h, netinet6/in6.h

# A fallback for our own heartbeats (SAFETY.md 5): idle time, interval and number of probes.
KEEPALIVE_IDLE_SECONDS, KEEPALIVE_EVERY_SECONDS, KEEPALIVE_PROBES = 2, 1, 3
UNACKED_MILLISECONDS = 5000
BACKLOG = 128
# Lost data is retransmitted after a usual round trip plus this time, then after twice as long, and so on. By default,
# systems wait between 200 ms and several minutes. The value must exceed 40 ms, the delay after which Linux acknowledges
# data to which there is no response.
RETRANSMIT_MICROSECONDS, MAX_RETRANSMIT_MILLISECONDS = 50_000, 1000
LINUX_TCP_RTO_MAX_MS, LINUX_TCP_RTO_MIN_US = 44, 45  # linux/tcp.h; older kernels reject them
MACOS_TCP_KEEPALIVE = 0x10  # netinet/tcp.h; Python names it TCP_KEEPALIVE since 3.10


@dataclass(frozen=True, slots=True)
class LocalInterface:
    """A network interface of this computer, and its addresses."""

    name: str
    hosts: tuple[str, ...]

    def has(self, family: int) -> bool:
        """Return whether the interface can reach addresses of this family."""
        return self.host(family) is not None

    def host(self, family: int) -> str | None:
        """Return the interface's address of this family, or None. Link-local IPv6 addresses are used only if there is
        no other."""
        version = 6 if family == socket.AF_INET6 else 4
        known = [host for host in self.hosts if _version(host) == version]
        return min(known, key=lambda host: "%" in host, default=None)


def create_socket(family: int, kind: int, protocol: int, through: LocalInterface | None) -> socket.socket:
    """Create a socket whose connection uses the interface `through`, regardless of the routing table.

    Raises OSError if that is impossible.
    """
    made = socket.socket(family, kind, protocol)
    if through is None:
        return made
    try:
        _tie(made, through)
    except OSError:
        made.close()
        raise
    return made


def _tie(sock: socket.socket, through: LocalInterface) -> None:
    """Bind a socket to an interface.

    On Windows, binding to its address is enough. On Linux and macOS, an interface option must be set as well.
    """
    host = through.host(sock.family)
    if host is None:
        raise OSError(errno.EADDRNOTAVAIL, f"{through.name} has no address of this family")
    if sys.platform == "linux":
        name = through.name.encode() + b"\0"
        # not permitted before Linux 5.7, where binding to the address must suffice
        with contextlib.suppress(PermissionError):
            sock.setsockopt(socket.SOL_SOCKET, LINUX_BIND_TO_DEVICE, name)
    elif sys.platform == "darwin":
        index = socket.if_nametoindex(through.name)
        if sock.family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, MACOS_BOUND_IF_6, index)
        else:
            sock.setsockopt(socket.IPPROTO_IP, MACOS_BOUND_IF, index)
    plain, _, scope = host.partition("%")
    if sock.family == socket.AF_INET6:
        sock.bind((plain, 0, 0, _scope_id(scope)))
    else:
        sock.bind((plain, 0))


def _scope_id(scope: str) -> int:
    if not scope:
        return 0
    return int(scope) if scope.isdecimal() else socket.if_nametoindex(scope)


def _version(host: str) -> int:
    return ipaddress.ip_address(host.partition("%")[0]).version


@dataclass(frozen=True, slots=True)
class Address:
    """A host and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str, default_port: int | None = None) -> Address:
        """Parse `10.0.0.2:4242`, `[fe80::1]:4242` or `den-pc.local:4242`. Raises BadInput."""
        host, colon, port = text.strip().rpartition(":")
        if not colon or (host.startswith("[") != host.endswith("]")) or text.endswith("]"):
            host, port = text.strip(), "" if default_port is None else str(default_port)
        host = host.removeprefix("[").removesuffix("]")
        good = (host.isascii() and host and not set(host) & set(" /?#@\\%")) or _is_scoped(host)
        digits = port.isascii() and port.isdecimal() and len(port) <= 5
        if not good or not digits or not 0 < int(port) < 65536:
            raise BadInput("address_wrong", address=text[:80])
        return cls(host, int(port))


def plain_host(host: str) -> str:
    """Return `host` without the prefix `::ffff:` that a dual-stack socket adds to IPv4 addresses."""
    return host.removeprefix("::ffff:") if "." in host else host


def listening_socket(host: str | None, port: int) -> socket.socket:
    """Create a non-blocking listening socket on `host`, or on all addresses of both families if it is None.

    Raises Unreachable("port_taken"), or BadInput if the address does not belong to this machine.
    """
    try:
        if host is None and socket.has_dualstack_ipv6():
            made = socket.create_server(("::", port), family=socket.AF_INET6, backlog=BACKLOG, dualstack_ipv6=True)
        else:
            family = socket.AF_INET6 if host and ":" in host else socket.AF_INET
            made = socket.create_server((host or "", port), family=family, backlog=BACKLOG)
    except OSError as error:
        if error.errno in (errno.EADDRNOTAVAIL, socket.EAI_NONAME):
            raise BadInput("address_not_ours", address=host or "") from error
        raise Unreachable("port_taken", port=port, why=os_cause(error)) from error
    made.setblocking(False)
    return made


def listening_near(host: str | None, port: int) -> socket.socket:
    """Create a listening socket on `port`, or on any free port if `port` is taken. Raises Unreachable."""
    try:
        return listening_socket(host, port)
    except (Unreachable, OverflowError):
        return listening_socket(host, 0)


async def accept_connection(sock: socket.socket) -> tuple[socket.socket, str]:
    """Accept the next connection to a listening socket. Return it and the host that connected. Raises OSError.

    `loop.sock_accept` is not used, since canceling it at the wrong moment loses an accepted connection.
    """
    loop = asyncio.get_running_loop()
    while True:
        try:
            connection, peer = sock.accept()
            connection.setblocking(False)
            return connection, plain_host(peer[0])
        except (BlockingIOError, InterruptedError):
            pass
        readable = loop.create_future()
        try:
            loop.add_reader(sock.fileno(), _wake, readable)
        except NotImplementedError:  # Windows: its event loop can wait for accepts, but not for readiness
            connection, peer = await loop.sock_accept(sock)
            return connection, plain_host(peer[0])
        try:
            await readable
        finally:
            loop.remove_reader(sock.fileno())


def _wake(readable: asyncio.Future[None]) -> None:
    if not readable.done():
        readable.set_result(None)


def tune(sock: socket.socket) -> None:
    """Set TCP_NODELAY, keepalive, and the timeout for unacknowledged data, as far as the system supports them."""
    with contextlib.suppress(OSError):  # the peer may be gone already
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if sys.platform == "darwin":
            sock.setsockopt(socket.IPPROTO_TCP, MACOS_TCP_KEEPALIVE, KEEPALIVE_IDLE_SECONDS)
        else:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_IDLE_SECONDS)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, KEEPALIVE_EVERY_SECONDS)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, KEEPALIVE_PROBES)
        if sys.platform == "linux":
            option = socket.TCP_USER_TIMEOUT
            sock.setsockopt(socket.IPPROTO_TCP, option, UNACKED_MILLISECONDS)
            option = LINUX_TCP_RTO_MAX_MS  # so that a path that recovers is used again within a second
            sock.setsockopt(socket.IPPROTO_TCP, option, MAX_RETRANSMIT_MILLISECONDS)


class Options(Protocol):
    """The methods of a socket, or of a transport's socket, for setting options."""

    def setsockopt(self, level: int, option: int, value: int, /) -> None: ...


def retransmit_quickly(sock: Options) -> None:
    """Retransmit lost data sooner. Meant for small, urgent frames; the system's defaults are better for bulk data.

    Measured at 10 % packet loss and 2 ms each way, for 1 KiB and its answer: 95 % arrive within 88 ms instead of
    254 ms, and the average is 19 ms instead of 53 ms.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, LINUX_TCP_RTO_MIN_US, RETRANSMIT_MICROSECONDS)


def own_host() -> str:
    """Return the address at which other machines can most probably reach this one. Sends no packets."""
    return own_host_towards("192.0.2.1") or "127.0.0.1"  # TEST-NET-1 (RFC 5737)


def own_host_towards(host: str) -> str | None:
    """Return this machine's address on the route to `host`, or None if there is no route. Sends no packets."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((host, 9))  # for UDP, this only looks up the route
            own: str = probe.getsockname()[0]
            return own
    except OSError:  # no route, or the family is not supported
        return None


def _is_scoped(host: str) -> bool:
    """Return whether `host` is a link-local IPv6 address that includes its interface, such as `fe80::1%eth0`."""
    with contextlib.suppress(ValueError):
        return ipaddress.IPv6Address(host).scope_id is not None
    return False
