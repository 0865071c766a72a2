"""The fault link is what other figures rest on, so its own are measured first."""

from __future__ import annotations

import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from testbed.fault_link import Faults, Lane, cable, relay

pytestmark = pytest.mark.alone
PROJECT = Path(__file__).resolve().parent.parent


def arrivals(faults: Faults, n: int, every_s: float, seed: int = 1) -> list[list[float]]:
    lane = Lane(faults, str(seed))
    return [lane.due(number * every_s, 1000) for number in range(n)]


def test_a_lane_delays_and_limits_exactly() -> None:
    delayed = arrivals(Faults(delay_s=0.005), 10, 0.1)
    assert delayed == [[pytest.approx(n * 0.1 + 0.005)] for n in range(10)]
    limited = arrivals(Faults(rate_bits_per_s=8e6, queue_s=1.0), 100, 0.0)
    assert limited[-1] == [pytest.approx(0.1)]


def test_a_lane_drops_what_its_queue_cannot_hold() -> None:
    results = arrivals(Faults(rate_bits_per_s=8e6, queue_s=0.0105), 100, 0.0)
    assert sum(map(bool, results)) == 11


@pytest.mark.parametrize("faults", [Faults(0.001), Faults(loss=0.1), Faults(duplicate=0.1), Faults(0.001, reorder=0.1)])
def test_shares_are_what_they_say_and_follow_from_the_seed(faults: Faults) -> None:
    seed = random.SystemRandom().randrange(1 << 30)
    results = arrivals(faults, 5000, 0.01, seed)
    lost, twice = [sum(len(due) == times for due in results) / 5000 for times in (0, 2)]
    early = sum(due[:1] == [n * 0.01] for n, due in enumerate(results)) / 5000
    assert lost == pytest.approx(faults.loss, abs=0.03), f"seed {seed}"
    assert twice == pytest.approx(faults.duplicate, abs=0.03), f"seed {seed}"
    if faults.delay_s:
        assert early == pytest.approx(faults.reorder, abs=0.03), f"seed {seed}"
    assert results == arrivals(faults, 5000, 0.01, seed), f"seed {seed}"


def test_jitter_keeps_the_order() -> None:
    results = [due[0] for due in arrivals(Faults(delay_s=0.01, jitter_s=0.005), 500, 0.001, seed=3)]
    assert results == sorted(results)
    spread = statistics.stdev(due - n * 0.001 for n, due in enumerate(results))
    assert 0.0005 < spread < 0.01


def test_a_partition_loses_packets() -> None:
    assert not any(arrivals(Faults(partition=True), 10, 0.1))


@contextmanager
def serving() -> Iterator[int]:
    """A server that echoes after `e`, and after `t` takes everything and then says so."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def accept() -> None:
            while True:
                try:
                    end, _ = listening.accept()
                except OSError:
                    return
                threading.Thread(target=_serve, args=(end,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)


def _serve(end: socket.socket) -> None:
    with end:
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        echoes = end.recv(1) == b"e"
        while data := end.recv(1 << 16):
            if echoes:
                end.sendall(data)
        if not echoes:
            end.sendall(b"!")


def dial(port: int, kind: bytes) -> socket.socket:
    end = socket.create_connection(("127.0.0.1", port), timeout=10)
    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    end.sendall(kind)
    return end


def round_trip_s(port: int) -> float:
    """The quickest of forty: what a busy computer adds is not the link's."""
    with dial(port, b"e") as end:
        result = []
        for _ in range(40):
            begun = time.perf_counter()
            end.sendall(b"p")
            assert end.recv(1) == b"p"
            result.append(time.perf_counter() - begun)
    return min(result)


@pytest.mark.parametrize("delay_s", [0.0005, 0.005])
def test_a_relay_delays_within_three_tenths_of_a_millisecond(delay_s: float) -> None:
    with serving() as port, relay(port, Faults()) as link:
        before = min(round_trip_s(link.port) for _ in range(3))
        link.use(Faults(delay_s=delay_s))
        time.sleep(0.1)
        added = min(round_trip_s(link.port) for _ in range(3)) - before
    assert added / 2 == pytest.approx(delay_s, abs=0.0003)


@pytest.mark.parametrize("megabits", [10, 100])
def test_a_relay_limits_within_three_percent(megabits: int) -> None:
    size = megabits * 125_000 // 2  # half a second
    faults = Faults(rate_bits_per_s=megabits * 1e6)
    with serving() as port, relay(port, faults) as link, dial(link.port, b"t") as end:
        begun = time.perf_counter()
        end.sendall(bytes(size))
        end.shutdown(socket.SHUT_WR)
        assert end.recv(1) == b"!"
        took = time.perf_counter() - begun
    assert size * 8e-6 / took == pytest.approx(megabits, rel=0.03)


def test_a_partitioned_relay_holds_everything_until_it_heals() -> None:
    with serving() as port, relay(port, Faults()) as link, dial(link.port, b"e") as end:
        end.sendall(b"1")
        assert end.recv(1) == b"1"
        link.use(Faults(partition=True))
        time.sleep(0.1)
        end.sendall(b"2")
        end.settimeout(0.3)
        with pytest.raises(TimeoutError):
            end.recv(1)
        link.use(Faults())
        end.settimeout(5)
        assert end.recv(1) == b"2"


def test_a_connection_ends_through_the_relay_as_without_it() -> None:
    with serving() as port, relay(port, Faults(delay_s=0.01)) as link:
        with dial(link.port, b"t") as end:
            end.sendall(bytes(1 << 20))
            end.shutdown(socket.SHUT_WR)
            assert end.recv(10) == b"!"
            assert end.recv(10) == b""
        assert round_trip_s(link.port) > 0.02  # and others go on


@pytest.fixture
def namespaces() -> Iterator[tuple[str, str]]:
    ready = sys.platform == "linux" and os.geteuid() == 0 and Path("/dev/net/tun").exists()
    if not ready or shutil.which("ip") is None:
        pytest.skip("needs root, iproute2 and TUN")
    names = f"Cf{os.getpid()}a", f"Cf{os.getpid()}b"
    for name in names:
        subprocess.run(["ip", "netns", "add", name], check=True)
        subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True)
    yield names
    for name in names:
        subprocess.run(["ip", "netns", "del", name], check=True)


ECHO_ONE_SIDE = """
import socket, sys
listening = socket.create_server(("0.0.0.0", 9))
print("up", flush=True)
end, _ = listening.accept()
end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
total = 0
while data := end.recv(1 << 16):
    total += len(data)
    if total <= 1000:
        end.sendall(data)
end.sendall(b"!")
"""
ASK_OTHER_SIDE = """
import socket, sys, time
end = socket.create_connection((sys.argv[1], 9))
end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
found = []
for _ in range(40):
    begun = time.perf_counter()
    end.sendall(b"p")
    end.recv(1)
    found.append(time.perf_counter() - begun)
begun = time.perf_counter()
end.sendall(bytes(3_000_000))
end.shutdown(socket.SHUT_WR)
while end.recv(1 << 16):
    pass
print(min(found), 24 / (time.perf_counter() - begun))
"""


COUNT = """
import socket
end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end.bind(("0.0.0.0", 9))
end.settimeout(1.0)
print("up", flush=True)
count = 0
try:
    while end.recv(100):
        count += 1
except TimeoutError:
    print(count)
"""
SEND_1000 = """
import socket, sys, time
end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(1000):
    end.sendto(b"x" * 100, (sys.argv[1], 9))
    time.sleep(0.0002)
"""


@pytest.mark.root
def test_a_cable_between_namespaces_delays_limits_and_loses(namespaces: tuple[str, str]) -> None:
    """TCP over it: 2 × 5 ms; and of 50 Mbit/s on the cable 1448 of 1538 bytes are payload."""
    a, b = namespaces
    with cable(a, b, Faults(delay_s=0.005, rate_bits_per_s=50e6, queue_s=0.1)) as link:
        count, rate = _through(a, b, link.facts["a"])
        assert 0.0099 < count < 0.012  # never early; epoll counts milliseconds, each way
        assert rate == pytest.approx(50 * 1448 / 1538, rel=0.1)  # TCP's own start is in it
        link.use(Faults(loss=0.2))
        assert 700 < _datagrams(a, b, link.facts["a"]) < 900
        link.use(Faults(partition=True))
        assert _datagrams(a, b, link.facts["a"]) == 0


def _through(a: str, b: str, address: str) -> tuple[float, float]:
    """Round trip in seconds and Mbit/s, of TCP between the namespaces."""
    enter, python = ["ip", "netns", "exec"], [sys.executable, "-c"]
    with subprocess.Popen([*enter, a, *python, ECHO_ONE_SIDE], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        server.stdout.readline()
        try:
            answer = subprocess.run(
                [*enter, b, *python, ASK_OTHER_SIDE, address],
                capture_output=True, text=True, check=True, timeout=30,
            )  # fmt: skip
        finally:
            server.kill()
    text, rate = answer.stdout.split()
    return float(text), float(rate)


def _datagrams(a: str, b: str, address: str) -> int:
    """Return how many of 1000 datagrams from `b` reach `a`."""
    enter, python = ["ip", "netns", "exec"], [sys.executable, "-c"]
    with subprocess.Popen([*enter, a, *python, COUNT], stdout=subprocess.PIPE, text=True) as counter:
        assert counter.stdout is not None
        counter.stdout.readline()
        subprocess.run([*enter, b, *python, SEND_1000, address], check=True, timeout=30)
        return int(counter.stdout.read())
