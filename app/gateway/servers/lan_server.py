"""The Chat API's server on the LAN.

It uses only TLS and listens only at addresses of household interfaces. It uses a VPN only if the owner chose it.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import ipaddress
import logging
import socket
import ssl
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from aiohttp import web

from app.core.errors import BadInput, Refused, Unreachable
from app.gateway.access.slow_client_guard import SlowClientGuard, runner_of
from app.machine.interfaces import interfaces, usable_interfaces
from app.machine.paths import Home
from app.network.api_certificate import FILE, load_or_make, shown_fingerprint
from app.network.identity import Keystore
from app.network.sockets import Address, accept_connection, listening_socket, tune
from app.network.tls import free_handshake_memory, pairing_server_context
from app.network.waiting_room import AuthenticatedHosts, Entrance, HandshakePace, WaitingRoom

log = logging.getLogger(__name__)

HANDSHAKE_SECONDS, CLOSE_SECONDS = 5.0, 1.0
WORDS = b"This port speaks TLS. Ask it by https:// in place of http://.\n"
PLAIN = b"Content-Type: text/plain\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s"
NO_TLS = b"HTTP/1.1 400 Bad Request\r\n" + PLAIN % (len(WORDS), WORDS)


class LanServer:
    """The server on the LAN, which may be open or closed.

    `chosen` returns the interfaces to use in addition to the usual ones. `expects` returns whether a member has ever
    been met at an address. Members, and addresses from which a program has sent a valid key, have priority over
    strangers.
    """

    def __init__(
        self,
        home: Home,
        chosen: Callable[[], frozenset[str]],
        slow_clients: SlowClientGuard,
        expects: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._home, self._chosen, self.slow_clients = home, chosen, slow_clients
        self.port, self.addresses, self.certificate = 0, tuple[str, ...](), ""
        self._tasks: set[asyncio.Task[None]] = set()
        self._listening: dict[str, tuple[socket.socket, asyncio.Task[None]]] = {}
        self.known = AuthenticatedHosts()
        self._expects = expects
        # these two limits apply to all addresses together
        self._strangers = WaitingRoom[socket.socket](is_known_host=self._is_expected)
        self._handshakes = HandshakePace(self._is_expected)
        self._runner: web.AppRunner | None = None
        self._group: asyncio.TaskGroup | None = None

    def start(self, group: asyncio.TaskGroup) -> None:
        """Run the server's tasks in `group`. Must be called before `open`."""
        self._group = group

    def _is_expected(self, host: str) -> bool:
        return host in self.known or self._expects(host)

    def host_names(self) -> set[str]:
        """Return the values that are accepted in a request's Host header."""
        return set(self.sorted_host_names())

    def sorted_host_names(self) -> list[str]:
        """Return the values of `host_names`, IPv4 first."""
        return [str(Address(address, self.port)) for address in self.addresses]

    async def fingerprint(self) -> str:
        """Return the SHA-256 fingerprint of the certificate that browsers show, or "" if there is none."""
        return await asyncio.to_thread(shown_fingerprint, self._home.identity / FILE)

    async def open(self, application: web.Application, ports: Iterable[int], keys: Keystore) -> None:
        """Start listening. Raises BadInput if no address or port is available, Refused if the keyring is locked."""
        if self._group is None:
            return  # the node is still starting, and will open the server later
        addresses = await asyncio.to_thread(lan_addresses, self._chosen())
        if not addresses:
            raise BadInput("api_no_lan")
        context = await self._context(keys, addresses)
        made, self.port = _sockets(addresses, list(ports))
        self._runner = runner_of(application)
        await self._runner.setup()
        self._listen(made, context)

    async def follow_addresses(self, keys: Keystore) -> bool:
        """Listen at this computer's current addresses, without interrupting connections at unchanged addresses.

        Return False if this is impossible and the server must be reopened. Raises Refused.
        """
        addresses = await asyncio.to_thread(lan_addresses, self._chosen())
        if not (self._group and self.port and addresses):
            return False
        context = await self._context(keys, addresses)
        try:
            made, _ = _sockets([address for address in addresses if address not in self.addresses], [self.port])
        except BadInput:  # another program uses the port there
            return False
        gone = [self._listening.pop(address) for address in self.addresses if address not in addresses]
        self._listen(made, context)
        for sock, accepting in gone:
            accepting.cancel()
            await asyncio.wait([accepting])
            sock.close()
        return True

    def _listen(self, made: dict[str, socket.socket], context: ssl.SSLContext) -> None:
        for address, sock in made.items():
            work = self._accept_all(sock, context)
            self._listening[address] = sock, self._start(work, "programs of other computers")
        self.addresses = _sorted(self._listening)
        log.info("the Chat API listens on the LAN at %s", ", ".join(sorted(self.host_names())))

    async def close(self) -> None:
        """Stop listening, and close every connection."""
        tasks, self._tasks = self._tasks, set()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for sock, _ in self._listening.values():
            sock.close()
        self.slow_clients.close()
        runner, self._runner = self._runner, None
        self._listening, self.port, self.addresses = {}, 0, ()
        if runner is not None:
            await runner.cleanup()

    async def addresses_changed(self) -> bool:
        """Return whether this computer's addresses have changed."""
        return self.addresses != await asyncio.to_thread(lan_addresses, self._chosen())

    async def _context(self, keys: Keystore, addresses: Sequence[str]) -> ssl.SSLContext:
        passphrase = await keys.read()
        if not passphrase:
            raise keys.lost()
        file = self._home.identity / FILE
        now = dt.datetime.now(dt.UTC)
        try:
            self.certificate = await asyncio.to_thread(load_or_make, file, self._home.write, passphrase, addresses, now)
        except OSError as error:
            raise Refused("identity_unwritten", path=str(file)) from error
        return pairing_server_context(file, passphrase)

    async def _accept_all(self, sock: socket.socket, context: ssl.SSLContext) -> None:
        entrance = Entrance(partial(self._welcome, context), self._strangers, HANDSHAKE_SECONDS)
        while True:
            try:
                connection, host = await accept_connection(sock)
            except OSError as error:  # the client has already left, or no file descriptors are free
                log.info("accept failed: %s", error)
                await asyncio.sleep(0.05)
                continue
            entrance.admit(connection, host, self._start)
            await asyncio.sleep(0)  # let this connection's task start before another connection can displace it

    async def _welcome(self, context: ssl.SSLContext, sock: socket.socket, host: str) -> None:
        ours = None
        await self._handshakes.wait_turn(host)
        is_through = False
        try:
            assert self._runner is not None
            tune(sock)
            ours = sock.dup()  # asyncio closes its own if the handshake fails
            await asyncio.get_running_loop().connect_accepted_socket(
                self.slow_clients.protocol_factory(self._runner),
                sock,
                ssl=context,
                ssl_handshake_timeout=HANDSHAKE_SECONDS,
                ssl_shutdown_timeout=CLOSE_SECONDS,
            )
            is_through = self._is_expected(host)  # other clients are rate-limited until they have sent a valid key
        except OSError as error:  # silent, gone, or not speaking TLS; includes ssl.SSLError
            log.debug("handshake with %s failed: %s", host, error)
            if ours is not None and getattr(error, "reason", "") == "HTTP_REQUEST":
                with suppress(OSError):
                    ours.send(NO_TLS)
            free_handshake_memory(error)
            sock.close()
        except Exception:  # the outermost handler of a task: no client may bring the server down
            log.exception("handshake with %s", host)
            sock.close()
        finally:
            if not is_through:
                self._handshakes.count_failure(host)
            if ours is not None:
                ours.close()

    def _start(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        assert self._group is not None  # `start` was called first
        task = self._group.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def lan_addresses(chosen: frozenset[str]) -> tuple[str, ...]:
    """Return the addresses of household interfaces, IPv4 first, without link-local IPv6 addresses. Blocks."""
    addresses = [
        address
        for interface in usable_interfaces(interfaces(), chosen)
        for address in interface.addresses
        if "%" not in address
    ]
    return _sorted(addresses)


def _sorted(addresses: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(addresses, key=lambda address: (ipaddress.ip_address(address).version, address)))


def _sockets(addresses: Sequence[str], ports: Sequence[int]) -> tuple[dict[str, socket.socket], int]:
    """Listen at all addresses on the first port that is free at all of them. Raises BadInput."""
    for port in ports:
        made: dict[str, socket.socket] = {}
        try:
            made.update((address, listening_socket(address, port)) for address in addresses)
        except (Unreachable, BadInput):
            for sock in made.values():
                sock.close()
        else:
            return made, port
    raise BadInput("api_port_taken", port=ports[0] if ports else 0)
