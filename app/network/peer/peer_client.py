"""A client of a peer: its control socket, data channels, stages and guest requests. All use pinned certificates."""

from __future__ import annotations

import asyncio
import errno
import io
import ipaddress
import socket
import ssl
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Any
from weakref import WeakSet

import aiohttp
import msgspec
from aiohttp import ClientTimeout, ClientWSTimeout

from app.core.errors import KINDS, AppError, Fact, Reason, Refused, Unreachable
from app.core.household.membership import Member
from app.core.ids import MachineId, PipelineId
from app.core.recovery import fault_table
from app.decoding import decode
from app.network.messages import MAX_MESSAGE_BYTES, displayable_reason
from app.network.peer.frame_channel import LEAVE, FrameChannel, FrameStream, PacedChannel, WebSocketChannel
from app.network.peer.listener import ANSWERS_PATH
from app.network.peer.probe import MAX_PROBE_BYTES, PROBE_PATH
from app.network.sockets import Address, LocalInterface, create_socket, tune
from app.network.tls import fingerprint, peer_der
from app.network.traffic_limits import ANSWER_BYTES, LinkPace, TooLong, TooSlow, whole_body

LOOK_SECONDS = 0.5  # between checks of whether the link to the host is still up
END_SECONDS = 0.25  # from the last part of a response to its end; after that, the connection is closed

CONNECT_SECONDS = 3.0
OPEN_SECONDS = 8.0  # to connect and complete the TLS handshake
ANSWER_SECONDS = 120.0  # a lender may need long to hash and write data before it answers
ANSWER_BYTES_PER_SECOND = 20e6  # extra time for large layers, at the speed of a slow disk
CLOSE_SECONDS = 1.0
REUSE_SECONDS = 5.0  # below the listener's idle limit, so that a connection being closed is never reused
CONNECTIONS = 16  # data channels of several pipelines, an upload and an offer
HOST_CONNECTIONS = 40  # more than a host answers at once; with CONNECTIONS, below its limit per member
MAX_FACT_CHARACTERS = 200  # the same limit as in a message


class HostClient:
    """A client for requests to the models of the household member `host` at `address`.

    ended: set when the link to the host has ended, which also ends every response.
    below: the path prefix of requests.
    session: returns the link's session, which reuses connections and so avoids handshakes.
    """

    def __init__(
        self,
        host: Member,
        address: Address,
        session: Callable[[], aiohttp.ClientSession],
        ended: asyncio.Event,
        below: str = ANSWERS_PATH,
    ) -> None:
        self.host, self._address, self._below = host, address, below
        self._session, self._ended = session, ended

    @asynccontextmanager
    async def request(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> AsyncGenerator[aiohttp.ClientResponse, None]:
        """Send a request and yield the response once its status has arrived. Leaving the block early disconnects.

        Raises Unreachable or Refused.
        """
        answer = await self._begun(method, path, body, headers or {})
        try:
            yield answer
            await _read_to_its_end(answer)
        finally:
            answer.close()  # has no effect on a response read to its end, whose connection is back in the pool

    async def chunks(self, answer: aiohttp.ClientResponse) -> AsyncGenerator[bytes, None]:
        """Yield the body of a response as it arrives. Raises Unreachable if it is interrupted."""
        while True:
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    chunk = await answer.content.readany()
            except TimeoutError:
                if self._ended.is_set():
                    raise Unreachable("peer_offline", name=self.host.name) from None
                continue
            except (aiohttp.ClientError, OSError, RuntimeError) as error:
                # RuntimeError means that this side closed the link, and this connection with it.
                raise connection_error(self.host, self._address, error) from error
            if not chunk:
                return
            yield chunk

    async def is_gone(self, seconds: float) -> bool:
        """Return whether the link to the host ends within this time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ended.wait()
        return self._ended.is_set()

    async def _begun(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> aiohttp.ClientResponse:
        """Send the request and wait for the status of the response.

        There is no timeout, because an answer that is not streamed may take any amount of time. If the host is
        gone, the link ends.
        """
        url = f"https://{self._address}{self._below}{path}"
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(_settled(self._session, method, url, body, headers), name="ask a host")
            over = group.create_task(self._ended.wait(), name="a host is gone")
            await asyncio.wait({asking, over}, return_when=asyncio.FIRST_COMPLETED)
            asking.cancel()
            over.cancel()
        if asking.cancelled():
            raise Unreachable("peer_offline", name=self.host.name)
        answer = asking.result()
        if isinstance(answer, Exception):
            raise connection_error(self.host, self._address, answer) from answer
        return answer


async def _settled(
    session: Callable[[], aiohttp.ClientSession], method: str, url: str, body: bytes, headers: Mapping[str, str]
) -> aiohttp.ClientResponse | Exception:
    """Send the request. An error is returned instead of raised, since a TaskGroup would wrap it."""
    try:
        return await session().request(method, url, data=body or None, headers=headers, allow_redirects=False)
    except (aiohttp.ClientError, OSError, RuntimeError) as error:
        return error


async def _read_to_its_end(answer: aiohttp.ClientResponse) -> None:
    """Read the end of a response after its last part has arrived."""
    with suppress(TimeoutError, aiohttp.ClientError, OSError):
        async with asyncio.timeout(END_SECONDS):
            await answer.content.readany()


class PinnedConnector(aiohttp.TCPConnector):
    """A connector that checks the certificate fingerprint of each connection, in addition to the TLS context."""

    def __init__(
        self, context: ssl.SSLContext, peer: MachineId, through: LocalInterface | None, limit: int = CONNECTIONS
    ) -> None:
        super().__init__(
            ssl=context, limit=limit, keepalive_timeout=REUSE_SECONDS, socket_factory=partial(_socket, through)
        )
        self._peer = peer
        self.n_in_use = 0  # connections in use, including those being opened

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[aiohttp.tracing.Trace], timeout: ClientTimeout
    ) -> aiohttp.connector.Connection:
        self.n_in_use += 1
        try:
            connection = await super().connect(req, traces, timeout)
        except BaseException:
            self._given_back()
            raise
        connection.add_callback(self._given_back)
        transport = connection.transport
        der = peer_der(transport.get_extra_info("ssl_object")) if transport else None
        if der is None or fingerprint(der) != self._peer:
            connection.close()
            raise aiohttp.ClientConnectionError("the certificate belongs to another machine")
        return connection

    def _given_back(self) -> None:
        self.n_in_use -= 1


class _WebSocket(aiohttp.ClientWebSocketResponse):
    """A WebSocket that releases its connection even if the other side aborted it. aiohttp's own class does not."""

    def __init__(
        self, reader: Any, writer: Any, protocol: Any, response: aiohttp.ClientResponse, *rest: Any, **more: Any
    ) -> None:
        super().__init__(reader, writer, protocol, response, *rest, **more)
        self._answer = response

    @property
    def is_open(self) -> bool:
        """Return whether the connection is still open, as a WebSocket or for raw frames."""
        connection = self._answer.connection
        transport = connection.transport if connection is not None else None
        return transport is not None and not transport.is_closing()

    async def switch_to_frames(self, peer_name: str, pace: LinkPace) -> FrameStream:
        """Switch to raw frames after the other end has switched. Raises Unreachable."""
        connection = self._answer.connection
        if connection is None or connection.transport is None:
            raise Unreachable("channel_closed", name=peer_name)
        # aiohttp counts the connection against its limit until it is released
        stream = FrameStream(connection.transport, peer_name, self, pace, self.release)
        await self.send_str(LEAVE)  # the last WebSocket message
        await stream.receive()  # the other end's first frame, which is empty
        return stream

    def release(self) -> None:
        """Abort the connection without a goodbye, which would block on a dead path. Can be called repeatedly."""
        connection = self._answer.connection
        if connection is not None and connection.transport is not None:
            connection.transport.abort()
        self._answer.close()


class PeerClient:
    """A client of `member` at `address`. `context` pins exactly this member's certificate.

    through: the interface to use, or None if the system chooses.
    pace: the bandwidth limit, or None.
    """

    def __init__(
        self,
        member: Member,
        address: Address,
        context: ssl.SSLContext,
        through: LocalInterface | None = None,
        pace: LinkPace | None = None,
    ) -> None:
        self.member, self.address, self.through = member, address, through
        self.pace = pace or LinkPace()
        self._context, self._closed = context, False
        self._host_session: aiohttp.ClientSession | None = None
        self._host_connector: PinnedConnector | None = None  # of the session for requests to a host
        self._n_asked = 0  # number of requests in progress and connections being opened
        self._websockets: WeakSet[_WebSocket] = WeakSet()
        self._session = aiohttp.ClientSession(
            base_url=f"https://{address}/",
            connector=PinnedConnector(context, member.id, through),
            ws_response_class=_WebSocket,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=_waits(0),
            auto_decompress=False,
            requote_redirect_url=False,
        )

    def host_session(self) -> aiohttp.ClientSession:
        """Return the HTTP session for requests to a host. It reuses connections and sets no time limit for answers.

        Raises RuntimeError if the client is closed.
        """
        if self._closed:
            raise RuntimeError("closed")
        if self._host_session is None:
            self._host_connector = PinnedConnector(self._context, self.member.id, self.through, HOST_CONNECTIONS)
            self._host_session = aiohttp.ClientSession(
                connector=self._host_connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=ClientTimeout(total=None, sock_connect=OPEN_SECONDS),
                auto_decompress=False,
                requote_redirect_url=False,
            )
        return self._host_session

    @property
    def is_idle(self) -> bool:
        """Return whether nothing opened by this client is in use."""
        is_asking_host = self._host_connector is not None and self._host_connector.n_in_use > 0
        return not (self._n_asked or is_asking_host or any(websocket.is_open for websocket in self._websockets))

    async def open_control(self) -> aiohttp.ClientWebSocketResponse:
        """Open the control socket. HELLO must be sent next. Raises Unreachable or Refused."""
        return await self._websocket("control", MAX_MESSAGE_BYTES)

    async def open_data(self, pipeline: PipelineId) -> FrameChannel:
        """Open a new data connection. Raises Unreachable or Refused."""
        link = await self._websocket(f"data/{pipeline.hex()}", MAX_MESSAGE_BYTES)
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                return await link.switch_to_frames(self.member.name, self.pace)
        except (aiohttp.ClientError, OSError, Unreachable) as error:
            link.release()
            raise connection_error(self.member, self.address, error) from error
        except asyncio.CancelledError:  # so that repeated attempts do not leak connections
            link.release()
            raise

    async def open_probe(self) -> tuple[FrameChannel, str]:
        """Open a probe connection. Return it with our address on it. Raises Unreachable or Refused."""
        link = await self._websocket(PROBE_PATH, MAX_PROBE_BYTES)
        own = link.get_extra_info("sockname", ("",))
        return PacedChannel(WebSocketChannel(link, self.member.name), self.pace), str(own[0])

    async def offer_stage(self, pipeline: PipelineId, body: bytes, total_bytes: int = 0) -> bytes:
        """Send a manifest and return the peer's answer. Raises the peer's AppError, or Unreachable.

        total_bytes: the size of all layers in the manifest. The timeout includes the time for hashing them.
        """
        return await self._request("PUT", f"stage/{pipeline.hex()}", io.BytesIO(body), total_bytes)

    async def upload_pieces(self, pipeline: PipelineId, chunks: AsyncIterator[bytes], total_bytes: int = 0) -> bytes:
        """Stream tensor bytes, preferably in chunks of 1 MiB. Return the peer's answer. Raises the same errors as
        `offer_stage`."""
        paced = self.pace.pace_sending(chunks)
        return await self._request("POST", f"stage/{pipeline.hex()}/pieces", paced, total_bytes)

    async def close(self) -> None:
        """Close everything that this client has opened."""
        self._closed = True
        for websocket in list(self._websockets):
            websocket.release()
        if self._host_session is not None:
            await self._host_session.close()
        await self._session.close()

    @contextmanager
    def _asking(self) -> Iterator[None]:
        self._n_asked += 1
        try:
            yield
        finally:
            self._n_asked -= 1

    async def _websocket(self, path: str, max_bytes: int) -> _WebSocket:
        try:
            with self._asking():
                async with asyncio.timeout(OPEN_SECONDS + CLOSE_SECONDS):
                    made = await self._session.ws_connect(
                        path,
                        max_msg_size=max_bytes + 1,  # aiohttp refuses messages as long as its limit
                        compress=0,
                        timeout=ClientWSTimeout(ws_close=CLOSE_SECONDS),
                    )
                    assert isinstance(made, _WebSocket)
                    self._websockets.add(made)
                    return made
        except (aiohttp.ClientError, OSError, RuntimeError) as error:
            raise connection_error(self.member, self.address, error) from error

    async def _request(
        self, method: str, path: str, body: io.BytesIO | AsyncIterator[bytes], total_bytes: int
    ) -> bytes:
        try:
            with self._asking():
                waits = _waits(total_bytes)
                async with self._session.request(
                    method, path, data=body, allow_redirects=False, timeout=waits
                ) as response:
                    content, length = response.content, response.content_length
                    answer = await whole_body(content, length, ANSWER_BYTES)
                    if response.status == 200:
                        return answer
        except (aiohttp.ClientError, OSError, RuntimeError, TooSlow, TooLong) as error:
            raise connection_error(self.member, self.address, error) from error
        raise reported_error(answer, self.member.name)


def connection_error(member: Member, address: Address, error: Exception) -> AppError:
    """Return the AppError for a failed connection. A RuntimeError means that our side closed the link."""
    facts = {"name": member.name, "address": str(address)}
    match error:
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientConnectorSSLError():
            return Refused("peer_is_another", **facts)
        case TimeoutError():
            return Unreachable("peer_silent", **facts)
        case aiohttp.ClientConnectorError(os_error=cause) if is_blocked_by_macos(cause, address):
            return Unreachable("peer_held_back", **facts)
        case aiohttp.ClientConnectorError(os_error=cause):
            refused = int(isinstance(cause, ConnectionRefusedError))  # nothing is listening there
            return Unreachable("peer_unreachable", **facts, refused=refused)
        case aiohttp.WSServerHandshakeError():
            return Refused("peer_refused")
        case _:
            return Unreachable("peer_hung_up", **facts)


def is_blocked_by_macos(cause: OSError, address: Address, platform: str = sys.platform) -> bool:
    """Return whether macOS is denying this program access to the local network.

    If it does, only machines in the local network are unreachable, with EHOSTUNREACH. For a machine that is off,
    macOS reports EHOSTDOWN. See UX.md T15; not yet verified on a Mac.
    """
    if platform != "darwin" or cause.errno != errno.EHOSTUNREACH:
        return False
    try:
        host = ipaddress.ip_address(address.host.partition("%")[0])
    except ValueError:
        return address.host.endswith(".local")
    return host.is_private and not host.is_loopback


def _waits(total_bytes: int) -> ClientTimeout:
    """Return the timeouts of a request that makes the peer process `total_bytes`."""
    return ClientTimeout(
        total=None,
        connect=OPEN_SECONDS,
        sock_connect=CONNECT_SECONDS,
        sock_read=ANSWER_SECONDS + total_bytes / ANSWER_BYTES_PER_SECOND,
    )


def _socket(through: LocalInterface | None, info: aiohttp.AddrInfoType) -> socket.socket:
    family, kind, protocol, _, _ = info
    made = create_socket(family, kind, protocol, through)
    tune(made)
    return made


class _Problem(msgspec.Struct, frozen=True):
    """The body of an error response from a peer's listener."""

    kind: str
    code: str
    facts: dict[str, Fact]


def reported_error(answer: bytes, name: str, *, of_its_pool: bool = False) -> AppError:
    """Return the error that the peer `name` reported. The peer is trusted only in statements about itself, so the
    error names no other machine.

    of_its_pool: the error may also name a machine that computes for the peer, as in a host's answer to a guest.
    """
    try:
        sent = decode(answer, _Problem)
        kind = KINDS[sent.kind]
    except (ValueError, KeyError):
        return Refused("peer_refused")
    short = Reason(sent.code, sent.facts).mapped(
        lambda _, fact: fact[:MAX_FACT_CHARACTERS] if isinstance(fact, str) else fact
    )
    displayable = displayable_reason(short)
    reason = (fault_table.about_requester if of_its_pool else fault_table.limited_to_sender)(displayable, name)
    return kind(reason.code, **reason.facts)
