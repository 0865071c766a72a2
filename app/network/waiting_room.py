"""Limits on unauthenticated connections: how many may wait, and which one to drop when there is no room.

Nobody can lock others out by connecting first. When there is no room, a new connection replaces one from the
network with the most waiting connections. Connections that have sent nothing are replaced first, and among these
the oldest. A machine can have any number of IPv6 addresses, so a /64 network counts as one machine. Hosts at which
a member was reached have priority.

Failed handshakes are rate-limited too, since nothing else that a stranger can send costs as much. Members that
prove their identity and do not flood are not affected. Each host at which a member was reached has a separate
budget, which nobody else can use up. All other hosts share one budget, since addresses cost nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from app.network.sockets import plain_host

BURST, PER_SECOND = 16.0, 4.0  # for a host at which a member was reached, which may be barred or removed by now
OTHERS_BURST, OTHERS_PER_SECOND = 64.0, 16.0  # for all other hosts together
OTHERS = ""
MAX_PACED_HOSTS = 256  # that are remembered

PLACES, PLACES_OF_ONE_NETWORK = 64, 8
MAX_HOSTS = 64  # that are remembered
FIRST_BYTE_SECONDS = 1.0  # the dialing side speaks first, and does so immediately
NETWORK_BITS = 64  # of an IPv6 address; a machine can choose the remaining bits
LOOK_SECONDS = 0.02  # between checks for the rest of a first message, and where the loop cannot wait for bytes
TLS_HANDSHAKE, TLS_HEADER_BYTES, TLS_RECORD_BYTES = 22, 5, 1 << 14
Connection = TypeVar("Connection")


@dataclass(slots=True)
class _Bucket:
    left: float
    at_seconds: float


class HandshakePace:
    """A rate limit on failed handshakes at a port.

    is_known_host: returns whether a member was ever reached at a host.
    """

    def __init__(self, is_known_host: Callable[[str], bool], clock: Callable[[], float] = time.monotonic) -> None:
        self._is_known_host, self._clock = is_known_host, clock
        self._buckets: dict[str, _Bucket] = {}

    async def wait_turn(self, host: str) -> None:
        """Wait until the next handshake with `host` may begin."""
        while (seconds := self.wait_s(host)) > 0:  # noqa: ASYNC110  time itself is waited for
            await asyncio.sleep(seconds)

    def wait_s(self, host: str) -> float:
        """Return the seconds until the next handshake with `host` may begin."""
        bucket, per_second = self._filled(host)
        return max(0.0, (1 - bucket.left) / per_second)

    def count_failure(self, host: str) -> None:
        """Count a handshake with `host` that failed or did not prove a member's identity."""
        bucket, _ = self._filled(host)
        bucket.left -= 1

    def _filled(self, host: str) -> tuple[_Bucket, float]:
        """Return a host's bucket, refilled for the elapsed time, and its refill rate per second."""
        key = host if self._is_known_host(host) else OTHERS
        burst, per_second = (BURST, PER_SECOND) if key else (OTHERS_BURST, OTHERS_PER_SECOND)
        now = self._clock()
        bucket = self._buckets.pop(key, None) or _Bucket(burst, now)
        bucket.left = min(burst, bucket.left + (now - bucket.at_seconds) * per_second)
        bucket.at_seconds = now
        self._buckets[key] = bucket  # latest last
        if len(self._buckets) > MAX_PACED_HOSTS:
            del self._buckets[next(iter(self._buckets))]
        return bucket, per_second


def network_of(host: str) -> str:
    """Return the network that counts as one machine: an IPv4 address, or an IPv6 /64 network."""
    plain = host.partition("%")[0]
    try:
        address = ipaddress.ip_address(plain)
    except ValueError:
        return plain
    if address.version == 4:
        return plain
    return str(ipaddress.ip_network((int(address) >> NETWORK_BITS << NETWORK_BITS, NETWORK_BITS)))


@dataclass(slots=True)
class _Place:
    """The place of a waiting connection. If `expected`, a member was once reached at its host."""

    network: str
    expected: bool
    spoke: bool = False


class WaitingRoom(Generic[Connection]):
    """The connections that are waiting for authentication.

    is_known_host: returns whether a member was ever reached at a host.
    """

    def __init__(
        self,
        places: int = PLACES,
        of_one_network: int = PLACES_OF_ONE_NETWORK,
        is_known_host: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._n_places, self._of_one_network, self._is_known_host = places, of_one_network, is_known_host
        self._waiting: dict[Connection, _Place] = {}  # latest last
        self._of_network: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, connection: Connection) -> bool:
        return connection in self._waiting

    def enter(self, connection: Connection, host: str) -> Connection | None:
        """Give `connection` a place, and return the connection to drop, if any.

        This is `connection` itself if it is unexpected and all connections that it could displace are expected.
        """
        place = _Place(network_of(host), self._is_known_host(host))
        gone: Connection | None = None
        if self._of_network[place.network] >= self._of_one_network:
            gone = self._least(place.network, place)
        elif len(self._waiting) >= self._n_places:
            gone = self._least(None, place)
        else:
            self._take(connection, place)
            return None
        if gone is None:
            return connection
        self.leave(gone)
        self._take(connection, place)
        return gone

    def spoke(self, connection: Connection) -> None:
        """Record that the connection's first message is complete. Connections without one are dropped first."""
        if connection in self._waiting:
            self._waiting[connection].spoke = True

    def leave(self, connection: Connection) -> None:
        """Free the place of a connection that has proved its identity or ended. Can be called repeatedly."""
        place = self._waiting.pop(connection, None)
        if place is not None:
            self._of_network[place.network] -= 1
            if not self._of_network[place.network]:
                del self._of_network[place.network]

    def _take(self, connection: Connection, place: _Place) -> None:
        self._waiting[connection] = place
        self._of_network[place.network] += 1

    def _least(self, network: str | None, newcomer: _Place) -> Connection | None:
        """Return the connection to drop, either from the given network or, if None, from all networks.

        An expected connection is never dropped in favor of an unexpected one.
        """
        candidates = [
            (place.expected, -self._of_network[place.network], place.spoke, number, connection)
            for number, (connection, place) in enumerate(self._waiting.items())
            if network in (None, place.network) and (newcomer.expected or not place.expected)
        ]
        return min(candidates, key=lambda candidate: candidate[:4])[-1] if candidates else None


class AuthenticatedHosts:
    """The hosts from which callers have proved their identity, most recent last."""

    def __init__(self, most: int = MAX_HOSTS) -> None:
        self._most, self._hosts = most, dict[str, None]()

    def __contains__(self, host: str) -> bool:
        return host in self._hosts

    def met(self, host: str) -> None:
        """Record that a caller from `host` has just proved its identity."""
        host = plain_host(host)
        self._hosts.pop(host, None)
        self._hosts[host] = None
        if len(self._hosts) > self._most:
            del self._hosts[next(iter(self._hosts))]


class Entrance:
    """The new connections of a port. Each has a place in `room` until it has proved its identity or ended.

    welcome: handles a connection whose first message is complete. It owns the socket from then on, closes it if it
        raises, and returns when the connection no longer needs its place.
    """

    def __init__(
        self,
        welcome: Callable[[socket.socket, str], Coroutine[Any, Any, None]],
        room: WaitingRoom[socket.socket],
        patience_seconds: float,
    ) -> None:
        self.room = room
        self._welcome, self._patience_seconds = welcome, patience_seconds
        self._tasks: dict[socket.socket, asyncio.Task[None]] = {}

    def admit(
        self, sock: socket.socket, host: str, start: Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]]
    ) -> None:
        """Handle a newly accepted connection. `start` creates the task that serves it."""
        gone = self.room.enter(sock, host)
        if gone is sock:
            sock.close()
            return
        if gone is not None:
            self._tasks[gone].cancel()
        task = start(self._receive(sock, host), f"welcome {host}")
        self._tasks[sock] = task
        task.add_done_callback(partial(self._ended, sock))

    async def _receive(self, sock: socket.socket, host: str) -> None:
        try:
            await first_message(sock, FIRST_BYTE_SECONDS, self._patience_seconds)
        except OSError:  # the other side left or is silent (TimeoutError is an OSError)
            sock.close()
            return
        self.room.spoke(sock)
        await self._welcome(sock, host)

    def _ended(self, sock: socket.socket, task: asyncio.Task[None]) -> None:
        self.room.leave(sock)
        self._tasks.pop(sock, None)
        if task.cancelled():  # possibly before the task started
            sock.close()


async def first_message(sock: socket.socket, begun_within_s: float, whole_within_s: float) -> None:
    """Wait until the first TLS record is complete, or the data turns out not to be TLS. Consumes no data. Raises
    OSError.

    An incomplete record is treated as silence, so it keeps nobody else out.
    """
    async with asyncio.timeout(begun_within_s):
        await _readable(sock)
    late = time.monotonic() + whole_within_s
    while not _is_whole(sock.recv(TLS_HEADER_BYTES + TLS_RECORD_BYTES, socket.MSG_PEEK)):
        if time.monotonic() > late:
            raise TimeoutError("half a handshake")
        await asyncio.sleep(LOOK_SECONDS)


def _is_whole(said: bytes) -> bool:
    """Return whether the TLS stack can proceed: the record is complete, the data has ended, or it is not TLS."""
    if not said or said[0] != TLS_HANDSHAKE:
        return True
    needed = TLS_HEADER_BYTES + int.from_bytes(said[3:5], "big")
    return len(said) >= min(needed, TLS_HEADER_BYTES + TLS_RECORD_BYTES)


async def _readable(sock: socket.socket) -> None:
    """Wait until the socket is readable or the other side has left. Raises OSError."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    try:
        loop.add_reader(sock.fileno(), _set, ready)
    except NotImplementedError:  # Windows: its event loop can wait for reads, but not for readiness
        while True:
            with contextlib.suppress(BlockingIOError):
                sock.recv(1, socket.MSG_PEEK)
                return
            await asyncio.sleep(LOOK_SECONDS)
    try:
        await ready
    finally:
        loop.remove_reader(sock.fileno())


def _set(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
