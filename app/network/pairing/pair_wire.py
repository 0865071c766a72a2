"""Messages of a pairing attempt on one TLS connection: four bytes of length, then JSON."""

from __future__ import annotations

import asyncio
import socket
import ssl
from contextlib import suppress
from typing import TypeVar

from app.core.errors import Reason, Refused
from app.network.messages import BadMessage, Refuse, understood
from app.network.pairing.code_exchange import (
    MAX_PAIR_BYTES,
    PairMessage,
    PairRefuse,
    decode,
    encode,
)
from app.network.sockets import Address, tune
from app.network.tls import pairing_client_context, peer_der

HANDSHAKE_SECONDS, CONNECT_SECONDS, GOODBYE_SECONDS = 5.0, 3.0, 1.0
READ_AHEAD_BYTES = 2 * MAX_PAIR_BYTES

T = TypeVar("T", bound=PairMessage)


class PairWire:
    """One connection between a newcomer and a member."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self.writer = reader, writer

    @classmethod
    async def accepted(cls, sock: socket.socket, context: ssl.SSLContext) -> PairWire:
        """The server's side of a new connection. Raises OSError."""
        tune(sock)
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=READ_AHEAD_BYTES)
        protocol = asyncio.StreamReaderProtocol(reader)
        transport, _ = await loop.connect_accepted_socket(
            lambda: protocol,
            sock,
            ssl=context,
            ssl_handshake_timeout=HANDSHAKE_SECONDS,
            ssl_shutdown_timeout=GOODBYE_SECONDS,
        )
        return cls(reader, asyncio.StreamWriter(transport, protocol, reader, loop))

    @classmethod
    async def dialled(cls, address: Address) -> PairWire:
        """The newcomer's side. The server's certificate is read, not trusted. Raises OSError."""
        async with asyncio.timeout(CONNECT_SECONDS + HANDSHAKE_SECONDS):
            reader, writer = await asyncio.open_connection(
                address.host,
                address.port,
                limit=READ_AHEAD_BYTES,
                ssl=pairing_client_context(),
                ssl_handshake_timeout=HANDSHAKE_SECONDS,
                ssl_shutdown_timeout=GOODBYE_SECONDS,
            )
        return cls(reader, writer)

    def server_der(self) -> bytes:
        """The certificate the other side showed; empty when it showed none."""
        return peer_der(self.writer.get_extra_info("ssl_object")) or b""

    async def __aenter__(self) -> PairWire:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(GOODBYE_SECONDS):
                await self.writer.wait_closed()

    async def send(self, message: PairMessage) -> None:
        raw = encode(message)
        self.writer.write(len(raw).to_bytes(4, "big") + raw)
        await self.writer.drain()

    async def receive(self, kind: type[T]) -> T:
        """The next message, which must be of `kind`.

        Raises BadMessage when it is another, AppError when it says why it ends, EOFError, OSError.
        """
        length = int.from_bytes(await self._reader.readexactly(4), "big")
        if length > MAX_PAIR_BYTES:
            raise BadMessage(f"{length} bytes announced")
        message = decode(await self._reader.readexactly(length))
        if isinstance(message, kind):
            return message
        if isinstance(message, PairRefuse):
            reason = understood(Refuse(code=message.code, facts=message.facts))
            raise Refused(reason.code, **reason.facts)
        raise BadMessage(f"{type(message).__name__} out of order")

    async def refuse(self, why: Reason) -> None:
        """Say why it ends; that the other side may be gone is no matter."""
        with suppress(OSError):
            await self.send(PairRefuse(code=why.code, facts=why.facts))
