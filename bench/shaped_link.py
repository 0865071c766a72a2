"""A link of limited speed between this machine and a network namespace (Linux, root)."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

HERE, THERE = "10.231.77.1", "10.231.77.2"
BURST = "256kb"  # two of the largest segments that the kernel hands over at once
SAMPLE_SECONDS = 0.02


class NoLink(RuntimeError):
    """Raised if such a link cannot be created here. The message states the reason."""


@dataclass(slots=True)
class Link:
    """A pair of virtual network interfaces: `near` on our side, and one in the namespace."""

    namespace: str
    near: str
    bytes_per_second: float

    def moved(self) -> int:
        """Return the bytes transferred so far in both directions."""
        shown = _run("ip", "-s", "-j", "link", "show", self.near)
        stats = json.loads(shown)[0]["stats64"]
        return int(stats["rx"]["bytes"]) + int(stats["tx"]["bytes"])


@dataclass(slots=True)
class Samples:
    """The number of bytes transferred over time."""

    points: list[tuple[float, int]] = field(default_factory=list)


def busy_rate(points: list[tuple[float, int]], trim: float = 0.05) -> float | None:
    """Return the bytes per second of a transfer, without the fraction `trim` of it at either end."""
    if len(points) < 2 or points[-1][1] <= points[0][1]:
        return None
    start, total = points[0][1], points[-1][1] - points[0][1]
    low = next(p for p in points if p[1] - start >= trim * total)
    high = next(p for p in points if p[1] - start >= (1 - trim) * total)
    return (high[1] - low[1]) / (high[0] - low[0]) if high[0] > low[0] else None


@contextlib.contextmanager
def sampled(link: Link) -> Iterator[Samples]:
    """Sample the byte counter of the link during the block."""
    samples, stop = Samples(), threading.Event()
    counters = [f"/sys/class/net/{link.near}/statistics/{way}_bytes" for way in ("rx", "tx")]

    def look() -> None:
        moved = 0
        for counter in counters:
            with open(counter, encoding="ascii") as file:
                moved += int(file.read())
        samples.points.append((time.monotonic(), moved))

    def watch() -> None:
        while not stop.wait(SAMPLE_SECONDS):
            look()

    look()
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield samples
    finally:
        stop.set()
        watcher.join()
        look()


@contextlib.contextmanager
def limited_link(rate_mbit: int) -> Iterator[Link]:
    """Create the namespace and a link limited to `rate_mbit` in both directions for the block. Raises NoLink."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        raise NoLink("network namespaces need root on Linux")
    if not (shutil.which("ip") and shutil.which("tc")):
        raise NoLink("the programs ip and tc (iproute2) are missing")
    name, near, far = f"phb{os.getpid()}", f"phb{os.getpid()}a", f"phb{os.getpid()}b"
    link = Link(name, near, rate_mbit * 125_000)
    try:
        _run("ip", "netns", "add", name)
        _run("ip", "link", "add", near, "type", "veth", "peer", "name", far, "netns", name)
        _run("ip", "addr", "add", f"{HERE}/30", "dev", near)
        _run("ip", "-n", name, "addr", "add", f"{THERE}/30", "dev", far)
        for command in (["-n", name, "link", "set", "lo"], ["link", "set", near],
                        ["-n", name, "link", "set", far]):  # fmt: skip
            _run("ip", *command, "up")
        tbf = ["tbf", "rate", f"{rate_mbit}mbit", "burst", BURST, "latency", "50ms"]
        _run("tc", "qdisc", "add", "dev", near, "root", *tbf)
        _run("tc", "-n", name, "qdisc", "add", "dev", far, "root", *tbf)
        yield link
    finally:
        for command in (["ip", "link", "del", near], ["ip", "netns", "del", name]):
            subprocess.run(command, check=False, capture_output=True)


def _run(*command: str) -> str:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise NoLink(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout
