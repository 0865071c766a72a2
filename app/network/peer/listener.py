"""The single port of a machine, which admits members over TLS 1.3 and rejects everyone else.

Connections are accepted here rather than by `loop.create_server`, for three reasons. Strangers are limited before a
handshake costs anything (app/network/waiting_room.py). Each handshake uses the current TLS context, so a removed
certificate is refused immediately. And every wait has a timeout. aiohttp handles HTTP and WebSocket on the admitted
connections.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from aiohttp import web

from app.core.errors import AppError, Reason
from app.core.household.membership import Member
from app.core.household.operations import Role
from app.core.ids import MachineId, PipelineId, pipeline_id
from app.network.messages import MAX_MESSAGE_BYTES
from app.network.peer.frame_channel import LEAVE, FrameChannel, FrameStream, PacedChannel, WebSocketChannel
from app.network.peer.probe import MAX_PROBE_BYTES, PROBE_PATH
from app.network.sockets import accept_connection, plain_host, tune
from app.network.tls import fingerprint, free_handshake_memory, peer_der
from app.network.traffic_limits import ANSWER_BYTES, MAX_MANIFEST_BYTES, LinkPace, TooSlow, body_chunks, whole_body
from app.network.waiting_room import Entrance, HandshakePace, WaitingRoom

HANDSHAKE_SECONDS = 5.0
IDLE_SECONDS = 9.0  # a member that sends no request, or an incomplete header, is disconnected within ten
SWEEP_SECONDS = 1.0
CONNECTIONS_OF_ONE_MEMBER = 64
CLOSE_SECONDS = 1.0
LEAVE_SECONDS = 2.0

FOR_ALL_ROLES = ("/control", f"/{PROBE_PATH}")  # paths below ANSWERS_PATH are also for guests, and all others for hosts
ANSWERS_PATH = "/answers"
MODELS_PATH = "/models"  # serves whole model files, if the owner permits it

MEMBER = web.RequestKey("member", Member)

log = logging.getLogger(__name__)

Probe = Callable[[Member, FrameChannel, tuple[str, str]], Awaitable[None]]
"""Answers a member's probe of the link (app/network/peer/probe.py), given its channel and both addresses."""
Control = Callable[[Member, web.WebSocketResponse, str], Awaitable[None]]
"""Serves an accepted control link until it ends, given the member, the socket and the host it came from."""


class StageHandlers(Protocol):
    """A lender's handlers for requests from hosts. Any AppError that they raise is sent back to the host."""

    async def stage_offer(self, member: Member, pipeline: PipelineId, body: bytes) -> bytes:
        """Accept a manifest (JSON, ≤ 16 MiB) and return the list of missing pieces (JSON)."""

    async def pieces(self, member: Member, pipeline: PipelineId, chunks: AsyncIterator[bytes]) -> bytes:
        """Accept the bytes of the requested tensors and return the result."""

    def require_expected(self, member: Member, pipeline: PipelineId) -> None:
        """Raise Refused unless a data connection from this member is expected for this pipeline."""

    async def data(self, member: Member, pipeline: PipelineId, channel: FrameChannel) -> None:
        """Serve frames until the channel ends. The caller then closes it."""


@dataclass(slots=True)
class _Connection:
    transport: asyncio.Transport
    machine: MachineId
    idle_since_seconds: float
    requests: int = 0


class Listener:
    """The server of this machine's port, on the listening socket `sock`. `use` sets which machines it admits.

    is_known_host: returns whether a member was ever reached at a host, which gives its connections priority.
    barred: returns whether a member is refused temporarily because it flooded this machine.
    """

    def __init__(
        self,
        sock: socket.socket,
        control: Control,
        stages: StageHandlers,
        probe: Probe,
        clock: Callable[[], float] = time.monotonic,
        is_known_host: Callable[[str], bool] = lambda _: False,
        barred: Callable[[MachineId], bool] = lambda _: False,
    ) -> None:
        self.port: int = sock.getsockname()[1]
        self._sock = sock
        self._control, self._stages, self._probe, self._clock = control, stages, probe, clock
        self.transfers = 0  # number of uploads of layers in progress
        self.pace = LinkPace(clock)  # for all traffic of this machine
        self._context: ssl.SSLContext | None = None
        self._members: Mapping[MachineId, Member] = {}
        self._connections: dict[asyncio.BaseTransport, _Connection] = {}
        self._strangers = WaitingRoom[socket.socket](is_known_host=is_known_host)
        self._entrance = Entrance(self._welcome, self._strangers, HANDSHAKE_SECONDS)
        self._handshakes, self._barred = HandshakePace(is_known_host, clock), barred
        self._application = self._with_routes()
        self._runner = web.AppRunner(
            self._application, access_log=None, keepalive_timeout=IDLE_SECONDS, shutdown_timeout=CLOSE_SECONDS
        )

    def mount(self, path: str, application: web.Application) -> None:
        """Serve `application` to members at `path` as well. Call this before `run`."""
        self._application.add_subapp(path, application)

    def use(self, context: ssl.SSLContext, members: Mapping[MachineId, Member]) -> None:
        """Admit exactly `members` from now on. Later requests from other machines are refused."""
        self._context, self._members = context, members

    def cut_strangers(self) -> None:
        """Abort the connections of machines that are no longer members."""
        for connection in self._connections.values():
            if connection.machine not in self._members:
                connection.transport.abort()

    def cut(self, machine: MachineId) -> None:
        """Abort all connections of a machine, without a goodbye, which the flood would delay."""
        for connection in self._connections.values():
            if connection.machine == machine:
                connection.transport.abort()

    async def run(self) -> None:
        """Accept connections until canceled. Then close everything within about a second."""
        await self._runner.setup()
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._sweep(), name="close idle connections")
                tasks.create_task(self._accept_all(tasks), name="accept")
        finally:
            self._sock.close()
            for connection in self._connections.values():
                connection.transport.abort()
            await self._runner.cleanup()

    async def _accept_all(self, tasks: asyncio.TaskGroup) -> None:
        while True:
            await self._accept(tasks)
            # if many connections arrive together, each is served before another can take its place
            await asyncio.sleep(0)

    async def _accept(self, tasks: asyncio.TaskGroup) -> None:
        try:
            sock, host = await accept_connection(self._sock)
        except OSError as error:  # the other side has already left, or file descriptors have run out
            log.info("accept failed: %s", error)
            await asyncio.sleep(0.05)
            return
        if self._context is None:
            sock.close()
            return

        def start(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
            return tasks.create_task(work, name=name)

        self._entrance.admit(sock, host, start)

    async def _welcome(self, sock: socket.socket, host: str) -> None:
        """Perform the TLS handshake, and check that the certificate belongs to a current member."""
        server, context = self._runner.server, self._context
        assert server is not None
        assert context is not None
        await self._handshakes.wait_turn(host)
        tune(sock)
        is_welcome = False
        try:
            transport, _ = await asyncio.get_running_loop().connect_accepted_socket(
                server, sock, ssl=context, ssl_handshake_timeout=HANDSHAKE_SECONDS, ssl_shutdown_timeout=CLOSE_SECONDS
            )
            connection = self._admit(transport)
            is_welcome = connection is not None and not self._barred(connection.machine)
        except OSError as error:  # refused, silent, gone, or not TLS (ssl.SSLError is an OSError)
            log.debug("handshake with %s failed: %s", host, error)
            free_handshake_memory(error)
            sock.close()
        except Exception:  # top of a task: no stranger may stop the listener
            log.exception("handshake with %s", host)
            sock.close()
        finally:
            if not is_welcome:
                self._handshakes.count_failure(host)

    def _admit(self, transport: asyncio.Transport) -> _Connection | None:
        """Return the connection of a member. Any other connection is aborted, and None is returned.

        The first request calls this again, since it may arrive before the handshake has called it.
        """
        if transport in self._connections:
            return self._connections[transport]
        der = peer_der(transport.get_extra_info("ssl_object"))
        machine = fingerprint(der) if der else None
        count = sum(other.machine == machine for other in self._connections.values())
        if machine is None or machine not in self._members or count >= CONNECTIONS_OF_ONE_MEMBER:
            transport.abort()
            return None
        connection = _Connection(transport, machine, self._clock())
        self._connections[transport] = connection
        return connection

    async def _sweep(self) -> None:
        """Close connections that are idle or stalled in the middle of a header. aiohttp would keep them open
        forever."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            limit = self._clock() - IDLE_SECONDS
            for transport, connection in list(self._connections.items()):
                if transport.is_closing():
                    del self._connections[transport]
                elif not connection.requests and connection.idle_since_seconds < limit:
                    transport.close()

    def _with_routes(self) -> web.Application:
        application = web.Application(middlewares=[self._guard], client_max_size=0)
        application.add_routes(
            [
                web.get("/control", self._on_control),
                web.get("/data/{pipeline}", self._on_data),
                web.get(f"/{PROBE_PATH}", self._on_probe),
                web.put("/stage/{pipeline}", self._on_offer),
                web.post("/stage/{pipeline}/pieces", self._on_pieces),
            ]
        )
        return application

    @web.middleware
    async def _guard(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Check that each request comes from a current member with the necessary role. Errors become JSON."""
        transport = request.transport
        connection = self._admit(transport) if transport is not None else None
        member = self._members.get(connection.machine) if connection else None
        if connection is None or member is None:
            raise web.HTTPForbidden  # `_admit` has already aborted the connection
        if not _may(member, request.path):
            return _problem("Refused", Reason("role_missing", {"name": member.name}))
        request[MEMBER] = member
        connection.requests += 1
        try:
            return await handler(request)
        except AppError as error:
            return _problem(type(error).__name__, error.reason)
        except (TooSlow, ConnectionError, ValueError) as error:
            log.info("a request from %s was aborted: %s", member.name, error)
            connection.transport.abort()
            return web.Response(status=400)
        finally:
            connection.requests -= 1
            connection.idle_since_seconds = self._clock()

    async def _on_control(self, request: web.Request) -> web.StreamResponse:
        link = _websocket(MAX_MESSAGE_BYTES)
        await link.prepare(request)
        try:
            await self._control(request[MEMBER], link, plain_host(request.remote or ""))
        finally:
            await _close(link)
        return link

    async def _on_data(self, request: web.Request) -> web.StreamResponse:
        pipeline, member = pipeline_id(request.match_info["pipeline"]), request[MEMBER]
        # before the upgrade, after which a refusal could no longer be sent
        self._stages.require_expected(member, pipeline)
        link = _websocket(MAX_MESSAGE_BYTES)
        await link.prepare(request)
        try:
            async with asyncio.timeout(LEAVE_SECONDS):
                said = await link.receive()
        except TimeoutError:
            raise TooSlow from None
        if said.data != LEAVE or request.transport is None:
            raise ValueError("a data connection must begin with the switch to frames")
        stream = FrameStream(request.transport, member.name, link, self.pace)
        try:
            await stream.send(b"")
            await self._stages.data(member, pipeline, stream)
        except AppError as error:
            log.info("the data connection from %s ended: %s", member.name, error)
        finally:
            await stream.close()
        return link

    async def _on_probe(self, request: web.Request) -> web.StreamResponse:
        link = _websocket(MAX_PROBE_BYTES)
        await link.prepare(request)
        member: Member = request[MEMBER]
        try:
            own = link.get_extra_info("sockname", ("",))[0]
            ends = plain_host(own), plain_host(request.remote or "")
            channel = PacedChannel(WebSocketChannel(link, member.name), self.pace)
            await self._probe(member, channel, ends)
        except AppError as error:
            log.info("the probe by %s ended: %s", member.name, error)
        finally:
            await _close(link)
        return link

    async def _on_offer(self, request: web.Request) -> web.StreamResponse:
        pipeline = pipeline_id(request.match_info["pipeline"])
        body = await whole_body(request.content, request.content_length, MAX_MANIFEST_BYTES)
        answer = await self._stages.stage_offer(request[MEMBER], pipeline, body)
        return _json(answer)

    async def _on_pieces(self, request: web.Request) -> web.StreamResponse:
        pipeline = pipeline_id(request.match_info["pipeline"])
        self.transfers += 1
        try:
            async with (
                contextlib.aclosing(body_chunks(request.content)) as chunks,
                contextlib.aclosing(self.pace.pace_receiving(chunks)) as paced,
            ):
                answer = await self._stages.pieces(request[MEMBER], pipeline, paced)
        finally:
            self.transfers -= 1
        return _json(answer)


def _may(member: Member, path: str) -> bool:
    """Return whether the member may use this path. Guests may only request answers; stages are for hosts."""
    if path.startswith(f"{ANSWERS_PATH}/"):
        return member.may_ask
    return path in FOR_ALL_ROLES or Role.HOST in member.roles


def _websocket(max_bytes: int) -> web.WebSocketResponse:
    return web.WebSocketResponse(
        max_msg_size=max_bytes + 1,  # aiohttp refuses messages as long as its limit
        compress=False,
        timeout=CLOSE_SECONDS,
    )


async def _close(link: web.WebSocketResponse) -> None:
    with contextlib.suppress(ConnectionError, TimeoutError):
        await link.close()


def _json(body: bytes) -> web.Response:
    assert len(body) <= ANSWER_BYTES
    return web.Response(body=body, content_type="application/json")


def _problem(kind: str, reason: Reason) -> web.Response:
    body = json.dumps({"kind": kind, **reason.to_json()})
    return web.Response(text=body, content_type="application/json", status=409)
