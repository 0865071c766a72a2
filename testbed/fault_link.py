"""A network link with configurable faults: a relay for TCP connections, or a cable between network namespaces.

    python -m testbed.fault_link relay HOST:PORT '{"delay_s": 0.005, "rate_bits_per_s": 1e8}'
    python -m testbed.fault_link cable NAME_A NAME_B 10.98.0 '{"loss": 0.02}'     (root, Linux)

The first line on stdout contains the addresses: {"port": …} or {"a": …, "b": …}. Each further line on stdin is a
new set of faults. The link ends with stdin, so that no test leaves one behind. Both directions have the same
faults, with separate random numbers derived from the seed. The link runs in its own process, on one thread. A relay
delays to within about 0.1 ms, because it busy-waits for the last 2 ms. A cable, which may carry packets
continuously, leaves the cores to the computers that it connects. It delays each way by up to 1 ms too long, because
epoll counts in milliseconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import heapq
import json
import os
import random
import selectors
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

READ_BYTES, READ_SECONDS = 64 << 10, 0.00025  # the most that a limited relay reads, in bytes and time on the line
BUFFER_BYTES = 64 << 10  # of a limited relay's sockets, so that data waits at the sender
FLYING_BYTES = 64 << 20  # most that a delay may hold back
CABLE_BYTES = 38  # Ethernet's overhead per packet: preamble, header, checksum and gap
FLYING_PACKETS = 20_000
LATE_SECONDS = 0.002  # how late a sleep may end: epoll counts milliseconds, and an idle core wakes slowly
PR_SET_TIMERSLACK = 29  # linux/prctl.h
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000  # linux/if_tun.h


@dataclass(frozen=True, slots=True)
class Faults:
    """The faults of each direction. Fractions are between 0 and 1."""

    delay_s: float = 0.0  # one way; a round trip takes twice as much
    jitter_s: float = 0.0  # standard deviation of the delay; the order is kept
    rate_bits_per_s: float = 0.0  # 0 for no limit; counts the payload on a relay, and as Ethernet does on a cable
    queue_s: float = 0.05  # longest wait for a turn on a limited link
    loss: float = 0.0  # share of packets dropped; a relay instead delays everything by `stall_s`
    stall_s: float = 0.2  # the time that TCP needs to notice a lost packet
    duplicate: float = 0.0  # share of packets that arrive twice; cable only
    reorder: float = 0.0  # share of packets that overtake earlier ones; cable only
    partition: bool = False  # nothing passes; a relay delivers it later


class Lane:
    """The arrival times of packets in one direction. The caller supplies the current time."""

    def __init__(self, faults: Faults, seed: str) -> None:
        self.faults = faults
        self._random = random.Random(seed)
        self._line_free = self._last_due = 0.0

    def waits(self, now: float) -> float:
        """Return the seconds until data sent now would start to cross the link."""
        return max(0.0, self._line_free - now)

    def due(self, now: float, size: int) -> list[float]:
        """Return the arrival times of a packet sent now. There are two for a duplicate and none for a loss.

        size: the number of bytes on the wire.
        """
        f, draw = self.faults, self._random.random
        lost, twice, early = draw() < f.loss, draw() < f.duplicate, draw() < f.reorder
        extra = self._random.gauss() * f.jitter_s
        if self.waits(now) > f.queue_s or f.partition:
            return []
        self._line_free = max(now, self._line_free)
        if f.rate_bits_per_s:
            self._line_free += size * 8 / f.rate_bits_per_s
        if lost:
            return []
        due = self._line_free + max(0.0, f.delay_s + extra) * (not early)
        if not early:
            due = self._last_due = max(due, self._last_due)
        return [due] * (1 + twice)

    def stream_due(self, now: float, size: int) -> float:
        """Return the arrival time of stream data sent now. It is only delayed, never lost or duplicated."""
        f = self.faults
        lost = self._random.random() < f.loss
        self._line_free = max(now, self._line_free) + lost * f.stall_s
        if f.rate_bits_per_s:
            self._line_free += size * 8 / f.rate_bits_per_s
        flight_s = max(0.0, f.delay_s + self._random.gauss() * f.jitter_s)
        self._last_due = max(self._line_free + flight_s, self._last_due)
        return self._last_due


class Relay:
    """A relay that forwards TCP connections to `target`, with the same faults in both directions."""

    def __init__(self, target: tuple[str, int], faults: Faults, seed: int) -> None:
        self._target, self._seed = target, seed
        self._lanes: list[Lane] = []
        self._loop = asyncio.get_running_loop()
        self.faults = faults
        self._open = asyncio.Event()

    def use(self, faults: Faults) -> None:
        self.faults = faults
        for lane in self._lanes:
            lane.faults = faults
        if faults.partition:
            self._open.clear()
        else:
            self._open.set()

    async def run(self, listening: socket.socket) -> None:
        self.use(self.faults)
        async with asyncio.TaskGroup() as tasks:
            while True:
                near, _ = await self._loop.sock_accept(listening)
                tasks.create_task(self._carry(near), name="connection")

    async def _carry(self, near: socket.socket) -> None:
        far = socket.socket(near.family, socket.SOCK_STREAM)
        number = len(self._lanes)
        lanes = [Lane(self.faults, f"{self._seed} {number} {way}") for way in ("out", "back")]
        self._lanes += lanes
        with near, far:
            for end in (near, far):
                end.setblocking(False)
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if self.faults.rate_bits_per_s:
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
            try:
                await self._open.wait()
                await self._loop.sock_connect(far, self._target)
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._pump(near, far, lanes[0]), name="out")
                    tasks.create_task(self._pump(far, near, lanes[1]), name="back")
            except* OSError:
                pass  # one end is gone, and so is the connection

    async def _pump(self, source: socket.socket, sink: socket.socket, lane: Lane) -> None:
        """Copy data until `source` ends. Raises OSError if either end is gone."""
        flying: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(FLYING_BYTES // READ_BYTES)
        async with asyncio.TaskGroup() as both:
            both.create_task(self._deliver(flying, sink), name="deliver")
            data = b"-"
            while data:
                await self._open.wait()
                data = await self._loop.sock_recv(source, self._read_bytes())
                await flying.put((lane.stream_due(self._loop.time(), len(data)), data))
                late = lane.waits(self._loop.time()) - lane.faults.queue_s
                if late > 0:
                    await asyncio.sleep(late)

    async def _deliver(self, flying: asyncio.Queue[tuple[float, bytes]], sink: socket.socket) -> None:
        while True:
            due, data = await flying.get()
            await self._open.wait()
            if (early := due - self._loop.time() - LATE_SECONDS) > 0:
                await asyncio.sleep(early)
            while self._loop.time() < due:  # noqa: ASYNC110  no clock is finer
                await asyncio.sleep(0)
            if not data:
                sink.shutdown(socket.SHUT_WR)
                return
            await self._loop.sock_sendall(sink, data)

    def _read_bytes(self) -> int:
        rate = self.faults.rate_bits_per_s
        return max(1448, min(READ_BYTES, int(rate / 8 * READ_SECONDS))) if rate else READ_BYTES


class CableEnd:
    """A carrier of packets in one direction, from one TUN device to the other."""

    def __init__(self, source: int, target: int, lane: Lane) -> None:
        self.lane = lane
        self._source, self._target = source, target
        self._flying: list[tuple[float, int, bytes]] = []
        self._number = 0
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(source, self._receive)

    def _receive(self) -> None:
        with contextlib.suppress(BlockingIOError):
            for _ in range(64):  # a limit, so that the other direction and the timers get their turn
                packet, now = os.read(self._source, 65536), self._loop.time()
                for due in self.lane.due(now, len(packet) + CABLE_BYTES):
                    self._number += 1
                    if len(self._flying) < FLYING_PACKETS:
                        heapq.heappush(self._flying, (due, self._number, packet))
        self._send()

    def _send(self) -> None:
        while self._flying and self._flying[0][0] <= self._loop.time():
            packet = heapq.heappop(self._flying)[2]
            if not self.lane.faults.partition:
                with contextlib.suppress(OSError):  # the device is down
                    os.write(self._target, packet)
        if self._timer is not None:
            self._timer.cancel()
        if self._flying:
            self._timer = self._loop.call_at(self._flying[0][0], self._send)


def tun(namespace: str, device: str, address: str) -> int:
    """Create a TUN device in a namespace. It is removed when the returned file descriptor is closed."""
    import fcntl

    handle = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    request = struct.pack("16sH22x", b"fault%d", IFF_TUN | IFF_NO_PI)
    made = fcntl.ioctl(handle, TUNSETIFF, request)[:16].rstrip(b"\0").decode()
    ip("link", "set", made, "netns", namespace, "name", device)
    ip("-n", namespace, "link", "set", device, "addrgenmode", "none")
    ip("-n", namespace, "address", "add", f"{address}/24", "dev", device)
    ip("-n", namespace, "link", "set", device, "up")
    return handle


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


async def run_relay(target: str, faults: Faults, seed: int) -> None:
    host, _, port = target.rpartition(":")
    relay = Relay((host, int(port)), faults, seed)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        if faults.rate_bits_per_s:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
        say({"port": listening.getsockname()[1]})
        await until_told(relay.run(listening), relay.use)


async def run_cable(a: str, b: str, net: str, faults: Faults, seed: int) -> None:
    addresses = f"{net}.1", f"{net}.2"
    in_a, in_b = tun(a, f"to-{b}"[:15], addresses[0]), tun(b, f"to-{a}"[:15], addresses[1])
    lanes = Lane(faults, f"{seed} out"), Lane(faults, f"{seed} back")
    ends = CableEnd(in_a, in_b, lanes[0]), CableEnd(in_b, in_a, lanes[1])

    def use(new: Faults) -> None:
        for end in ends:
            end.lane.faults = new

    say(dict(zip("ab", addresses, strict=True)))
    await until_told(asyncio.Event().wait(), use)


async def until_told(work: Any, use: Callable[[Faults], None]) -> None:
    """Run `work` until stdin ends. Pass each set of faults read from stdin to `use`."""
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as tasks:
        carrying = tasks.create_task(work)
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            use(Faults(**json.loads(line)))
        carrying.cancel()


def say(facts: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


@dataclass(frozen=True)
class FaultLink:
    """A running link. `facts` contains its addresses, and `use` changes its faults."""

    process: subprocess.Popen[str]
    facts: dict[str, Any]

    @property
    def port(self) -> int:
        return int(self.facts["port"])

    def use(self, faults: Faults) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(asdict(faults)) + "\n")
        self.process.stdin.flush()


@contextmanager
def relay(port: int, faults: Faults, seed: int = 1) -> Iterator[FaultLink]:
    """Run a relay to a port of this computer during the block."""
    with _link("relay", f"127.0.0.1:{port}", faults=faults, seed=seed) as link:
        yield link


@contextmanager
def cable(a: str, b: str, faults: Faults, net: str = "10.98.0", seed: int = 1) -> Iterator[FaultLink]:
    """Connect two existing namespaces with a cable during the block. This needs root."""
    with _link("cable", a, b, net, faults=faults, seed=seed) as link:
        yield link


@contextmanager
def _link(*words: str, faults: Faults, seed: int) -> Iterator[FaultLink]:
    with subprocess.Popen(
        [sys.executable, "-m", "testbed.fault_link", *words, json.dumps(asdict(faults)), str(seed)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdin is not None
        line = process.stdout.readline()
        assert line, "the fault link did not start"
        try:
            yield FaultLink(process, json.loads(line))
        finally:
            process.stdin.close()
            try:
                process.wait(5)
            finally:
                process.kill()


def main(words: list[str]) -> None:
    kind, *where = words
    seed = int(where.pop()) if where[-1].isdigit() else 1
    faults = Faults(**json.loads(where.pop()))
    if sys.platform == "linux":  # otherwise the system ends every sleep up to 50 µs late
        ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)
    with contextlib.suppress(OSError, AttributeError):  # a cable must not wait for other programs
        os.nice(-20)
    if kind == "relay":
        work = run_relay(where[0], faults, seed)
    else:
        work = run_cable(where[0], where[1], where[2], faults, seed)
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selectors.SelectSelector())) as runner:
        runner.run(work)


if __name__ == "__main__":
    main(sys.argv[1:])
