"""A household whose lenders are at the other ends of cables with faults (Linux, root): one namespace for each."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

from testbed.fault_link import FaultLink, Faults, cable, ip
from tests.faults.household import HOST, LENDERS, Household
from tests.node.pool import node, pair

CLEAN = Faults()
SECOND = 100  # so much higher is the number of the second network of a lender


def can_be() -> bool:
    return sys.platform == "linux" and os.geteuid() == 0


@dataclass
class Cabled(Household):
    """The host is in our own namespace, which is given a name for the cables' sake."""

    cables: dict[str, FaultLink] = field(default_factory=dict)

    def begin(self) -> None:
        room = f"phr{os.getpid()}"
        self.stack.enter_context(_named(room))
        for number, name in enumerate(LENDERS, 1):
            self.stack.enter_context(_namespace(space(name)))
            made = cable(room, space(name), CLEAN, net(number))
            self.cables[name] = self.stack.enter_context(made)
        super().begin()

    def start(self, name: str) -> None:
        launch: tuple[str, ...] = ()
        if name != HOST:
            launch = (sys.executable, "-m", "bench.launch", "--netns", space(name), "--")
        made = node(self.folder / name, name, launch=launch, bind=(), names=())
        self.nodes[name] = self.stack.enter_context(made)

    def join(self, name: str) -> None:
        here = f"{net(1 + LENDERS.index(name))}.1"
        pair(self.nodes[HOST], self.nodes[name], here)

    def use(self, faults: Faults, names: list[str]) -> None:
        for name in names:
            self.cables[name].use(faults)

    def move(self, name: str, last: int) -> None:
        """Another address for this lender, as from another DHCP server."""
        where, device = space(name), _device()
        ip("-n", where, "address", "flush", "dev", device)
        ip("-n", where, "address", "add", f"{self.net(name)}.{last}/24", "dev", device)

    def plug_in(self, name: str) -> None:
        """A second interface for this lender, to a network of its own."""
        where, ours, net = space(name), _second(), self.net(name, of=SECOND)
        ip("link", "add", ours, "type", "veth", "peer", "name", "second", "netns", where)
        ip("address", "add", f"{net}.1/24", "dev", ours)
        ip("link", "set", ours, "up")
        ip("-n", where, "address", "add", f"{net}.2/24", "dev", "second")
        ip("-n", where, "link", "set", "second", "up")

    def pull_first(self, name: str) -> None:
        """The cable that was there first: its interface goes down."""
        ip("-n", space(name), "link", "set", _device(), "down")

    def put_in(self, name: str) -> None:
        ip("-n", space(name), "link", "set", _device(), "up")

    def put_back(self, name: str) -> None:
        self.put_in(name)
        ip("link", "delete", _second())

    def tunnel(self, name: str, *, up: bool) -> None:
        """A VPN of this lender comes or goes."""
        where, device = space(name), "tun9"
        if not up:
            ip("-n", where, "link", "delete", device)
            return
        ip("-n", where, "tuntap", "add", "dev", device, "mode", "tun")
        ip("-n", where, "address", "add", "10.8.0.2/24", "dev", device)
        ip("-n", where, "link", "set", device, "up")

    def net(self, name: str, of: int = 0) -> str:
        return net(1 + LENDERS.index(name) + of)


def _device() -> str:
    """The lenders' end of their cables."""
    return f"to-phr{os.getpid()}"[:15]


def _second() -> str:
    """Our end of the second one."""
    return f"ph2{os.getpid()}"[:15]


def space(name: str) -> str:
    return f"ph{os.getpid()}{name}"


def net(number: int) -> str:
    """One of our own: another matrix may run on this computer."""
    return f"10.{64 + os.getpid() % 128}.{number}"


@contextlib.contextmanager
def _namespace(name: str) -> Iterator[None]:
    ip("netns", "add", name)
    try:
        ip("-n", name, "link", "set", "lo", "up")
        yield
    finally:
        subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


@contextlib.contextmanager
def _named(name: str) -> Iterator[None]:
    """A name for the namespace we are in; nothing else changes."""
    ip("netns", "attach", name, str(os.getpid()))
    try:
        yield
    finally:
        subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)
