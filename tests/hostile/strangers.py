"""Sieges by strangers: connections from many addresses of this computer, made again as soon as they are ended."""

from __future__ import annotations

import asyncio
import random
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress

from app.core.errors import AppError
from app.network.identity import Identity
from app.network.membership.code_exchange import Newcomer, PairAnswer, PairConfirm
from app.network.membership.pairing_window import PairingConnection
from app.network.sockets import Address
from tests.faults import noise

AT_ONCE = 64
AGAIN_SECONDS = 0.1  # before the next connection in place of one that was ended
READ_BYTES = 4096
PAIRING = "greetings without a proof"


def whole_hello() -> bytes:
    """The first message of a handshake, as a client says it."""
    out = ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # nothing is ever read
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), out).do_handshake()
    return out.read()


def hosts(n: int) -> list[str]:
    return [f"127.0.0.{2 + number}" for number in range(n)]


Words = Callable[[random.Random], bytes]
# What is said, and from how many addresses.
SIEGES: dict[str, tuple[Words, int]] = {
    "silence from one address": (lambda _: b"", 1),
    "silence from eight addresses": (lambda _: b"", 8),
    "silence from sixty-four addresses": (lambda _: b"", 64),
    "half a handshake from one address": (lambda _: b"\x16\x03\x01\x02", 1),
    "half a handshake from eight addresses": (lambda _: b"\x16\x03\x01\x02", 8),
    "half a handshake from sixty-four addresses": (lambda _: b"\x16\x03\x01\x02", 64),
    "handshakes that go no further, from one address": (lambda _: whole_hello(), 1),
    "handshakes that go no further, from eight addresses": (lambda _: whole_hello(), 8),
    "handshakes that go no further, from sixty-four addresses": (lambda _: whole_hello(), 64),
    "noise from eight addresses": (noise.connection, 8),
    "a byte of a handshake from sixty-four addresses": (lambda _: b"\x16", 64),
    "half a request from eight addresses": (lambda _: b"GET /control HT", 8),
}
NAMES = (*SIEGES, PAIRING)


async def besiege(name: str, port: int, chance: random.Random) -> None:
    """Attack until canceled."""
    words, n_hosts = SIEGES[name]
    places = hosts(n_hosts)

    async def one(host: str) -> None:
        loop = asyncio.get_running_loop()
        while True:
            with suppress(OSError), socket.socket() as sock:
                sock.setblocking(False)
                sock.bind((host, 0))
                await loop.sock_connect(sock, ("127.0.0.1", port))
                await loop.sock_sendall(sock, words(chance))
                await loop.sock_recv(sock, READ_BYTES)
            await asyncio.sleep(AGAIN_SECONDS)

    async with asyncio.TaskGroup() as tasks:
        for number in range(AT_ONCE):
            tasks.create_task(one(places[number % len(places)]), name="a stranger")


async def greet(port: int, identity: Identity) -> None:
    """Try to pair again and again until canceled, without ever sending a proof."""

    async def one() -> None:
        while True:
            with suppress(OSError, EOFError, AppError):
                wire = await PairingConnection.dial(Address("127.0.0.1", port))
                async with wire:
                    first = Newcomer("000000", identity, "x", "0", wire.server_der(), b"n" * 32)
                    await wire.send(first.hello())
                    await wire.receive(PairAnswer)
                    await wire.receive(PairConfirm)
            await asyncio.sleep(AGAIN_SECONDS)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(16):
            tasks.create_task(one(), name="greets")
