"""A small network of Linux namespaces, each of which represents a computer. All are connected to one switch (root).

The switch is a bridge in its own namespace, so this computer's real network is not affected.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
CLONE_NEWNET = 0x40000000  # linux/sched.h


class NoNamespaces(RuntimeError):
    """Raised if this computer does not allow network namespaces. The message states the reason."""


class Lan:
    """A network of computers numbered from 0. Computer n has the interface `eth0` with the address 10.231.90.(n+1)."""

    def __init__(self, name: str, n_computers: int) -> None:
        self.switch = f"{name}s"
        self.names = [f"{name}c{n}" for n in range(n_computers)]

    def address(self, computer: int) -> str:
        return f"10.231.90.{computer + 1}"

    def start(self, computer: int, *argv: str, **options: Any) -> subprocess.Popen[str]:
        """Start a process on this computer. Its process ID is that of the program itself."""
        command = ["ip", "netns", "exec", self.names[computer], *argv]
        return subprocess.Popen(command, text=True, **options)

    def on(self, computer: int, work: Callable[[], T]) -> T:
        """Call `work` so that the sockets it opens belong to this computer, and return its result."""
        results: list[T] = []
        failed: list[BaseException] = []

        def run() -> None:
            try:
                enter(self.names[computer])
                results.append(work())
            except BaseException as error:  # noqa: BLE001  handed to the caller
                failed.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        if failed:
            raise failed[0]
        return results[0]

    def multicast(self, works: bool, to: int | None = None) -> None:
        """Set whether the switch forwards multicast, as some access points do not.

        to: limits the change to traffic to one computer.
        """
        for n in range(len(self.names)) if to is None else (to,):
            flood = "on" if works else "off"
            _run("bridge", "-n", self.switch, "link", "set", "dev", f"p{n}", "mcast_flood", flood)

    def cable(self, computer: int, plugged: bool) -> None:
        """Plug in or unplug the network cable of this computer."""
        state = "up" if plugged else "down"
        _run("ip", "-n", self.switch, "link", "set", f"p{computer}", state)

    def move(self, computer: int, address: str) -> None:
        """Give this computer a new address, as a different DHCP server would."""
        _run("ip", "-n", self.names[computer], "addr", "flush", "dev", "eth0")
        _run("ip", "-n", self.names[computer], "addr", "add", f"{address}/24", "dev", "eth0")

    def sent_bytes(self, computer: int) -> int:
        """Return the number of bytes that this computer has sent through its interface."""
        shown = _run("ip", "-n", self.names[computer], "-s", "-j", "link", "show", "eth0")
        return int(json.loads(shown)[0]["stats64"]["tx"]["bytes"])


@contextlib.contextmanager
def lan(n_computers: int) -> Iterator[Lan]:
    """Create a network with this many computers during the block. Raises NoNamespaces if that is not possible."""
    made = Lan(f"phn{os.getpid()}", n_computers)
    try:
        try:
            _build(made)
        except (OSError, subprocess.CalledProcessError) as error:
            reason = getattr(error, "stderr", None) or error
            raise NoNamespaces(f"network namespaces cannot be made here: {reason}") from error
        yield made
    finally:
        for name in (*made.names, made.switch):
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def _build(made: Lan) -> None:
    for name in (made.switch, *made.names):
        _run("ip", "netns", "add", name)
        _run("ip", "-n", name, "link", "set", "lo", "up")
    _run("ip", "-n", made.switch, "link", "add", "sw", "type", "bridge")
    _run("ip", "-n", made.switch, "link", "set", "sw", "up")
    for n, name in enumerate(made.names):
        ends = ["type", "veth", "peer", "name", "eth0", "netns", name]
        _run("ip", "-n", made.switch, "link", "add", f"p{n}", *ends)
        _run("ip", "-n", made.switch, "link", "set", f"p{n}", "master", "sw", "up")
        _run("ip", "-n", name, "addr", "add", f"{made.address(n)}/24", "dev", "eth0")
        _run("ip", "-n", name, "link", "set", "eth0", "up")


def enter(name: str) -> None:
    """Move the current thread, but no other, into the namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    with Path("/run/netns", name).open("rb") as handle:
        if libc.setns(handle.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"cannot enter the namespace {name}")


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
