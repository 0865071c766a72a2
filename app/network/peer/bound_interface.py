"""Connections that leave by one interface of this computer, whatever its routes would choose."""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import socket
import sys
from dataclasses import dataclass

LINUX_BIND_TO_DEVICE = 25  # asm-generic/socket.h
MACOS_BOUND_IF, MACOS_BOUND_IF_6 = 25, 125  # netinet/in.h, netinet6/in6.h


@dataclass(frozen=True, slots=True)
class Through:
    """An interface of this computer, and its own addresses."""

    name: str
    hosts: tuple[str, ...]

    def has(self, family: int) -> bool:
        """Whether it can reach addresses of this family."""
        return self.host(family) is not None

    def host(self, family: int) -> str | None:
        """Its own address of this family; of IPv6 one that is not only for its own cable, if it can."""
        wanted = 6 if family == socket.AF_INET6 else 4
        known = [one for one in self.hosts if _version(one) == wanted]
        return min(known, key=lambda one: "%" in one, default=None)


def made_socket(family: int, kind: int, protocol: int, through: Through | None) -> socket.socket:
    """A socket whose connection leaves by `through`. Raises OSError where that cannot be."""
    made = socket.socket(family, kind, protocol)
    if through is None:
        return made
    try:
        _tie(made, through)
    except OSError:
        made.close()
        raise
    return made


def _tie(sock: socket.socket, through: Through) -> None:
    """The address decides on Windows; Linux and macOS are told the interface besides."""
    host = through.host(sock.family)
    if host is None:
        raise OSError(errno.EADDRNOTAVAIL, f"{through.name} has no address of this family")
    if sys.platform == "linux":
        name = through.name.encode() + b"\0"
        with contextlib.suppress(PermissionError):  # before Linux 5.7: its address must do
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
