"""The ports at which a node's processes listen, seen from inside their own network namespace (Linux)."""

from __future__ import annotations

import contextlib
import ipaddress
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

import psutil

from tests.node.pool import TestNode

LISTENS = "0A"  # linux/tcp_states.h, in hexadecimal
LOOPBACK = ipaddress.ip_network("127.0.0.0/8")
Place = tuple[str, int]


def unexpected(nodes: Iterable[TestNode]) -> str:
    """Return unexpected ports: any besides those for members and control, or a control port not on loopback."""
    for node in nodes:
        members, control = node.ready["peer_port"], node.ready["control_port"]
        names = set(listening(node.process.pid))
        missing = {members, control} - {port for _, port in names}
        if missing:
            return f"{node.name} is not seen to listen on {missing}"
        for host, port in sorted(names):
            if port not in (members, control):
                return f"{node.name} listens on {port}"
            if port == control and not _is_loopback(host):
                return f"{node.name}'s control port is open on {host}"
    return ""


def listening(pid: int) -> Iterator[Place]:
    """Address and port of each TCP socket at which this process or a child of it listens."""
    process = psutil.Process(pid)
    for each in (process, *process.children(recursive=True)):
        own = set(_sockets(each.pid))
        for table in ("tcp", "tcp6"):
            with contextlib.suppress(FileNotFoundError):  # it is gone, or has no IPv6
                lines = Path(f"/proc/{each.pid}/net/{table}").read_text("ascii").splitlines()[1:]
                yield from (place for inode, place in map(_read, lines) if inode in own and place)


def _read(line: str) -> tuple[str, Place | None]:
    """The inode of a line of /proc/net/tcp, and where it listens; None: it does not."""
    words = line.split()
    host, _, port = words[1].partition(":")
    if words[3] != LISTENS:
        return words[9], None
    raw = bytes.fromhex(host)
    whole = b"".join(struct.pack(">I", word) for (word,) in struct.iter_unpack("=I", raw))
    return words[9], (str(ipaddress.ip_address(whole)), int(port, 16))


def _sockets(pid: int) -> Iterator[str]:
    """Inodes of the sockets that a process holds."""
    with contextlib.suppress(FileNotFoundError):
        for handle in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                kind, _, inode = handle.readlink().name.partition(":")
                if kind == "socket":
                    yield inode.strip("[]")


def _is_loopback(host: str) -> bool:
    return ipaddress.ip_address(host) in LOOPBACK if "." in host else host == "::1"
