"""A server port that closes a connection if no request arrives in time (SAFETY.md 5).

It also rejects invalid requests without logging or returning their bytes.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import secrets
from collections.abc import Callable, Iterable
from functools import partial

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from app.core.errors import BadInput
from app.network.sockets import plain_host
from app.network.waiting_room import WaitingRoom

log = logging.getLogger(__name__)

IDLE_SECONDS = 60  # this and the next line: SAFETY.md 5 and 7
MAX_HEADERS, MAX_HEADER_BYTES = 64, 8 << 10
LINGER_SECONDS = 1.0  # to receive the rest of a refused body
HEADER_SECONDS = 9.5  # so that a connection is closed within ten even if the event loop is busy
MOST_SILENT = 64  # connections that have not sent a request yet
# connections that have sent a request, if some are idle; systems give a program only a few hundred descriptors
MOST_KEPT = 64
NO_HTTP = "This request cannot be read as HTTP."
TAKEN = frozenset({errno.EADDRINUSE, errno.EACCES, 10013, 10048})  # the last two are Windows error codes


def runner_of(application: web.Application) -> web.AppRunner:
    """Return a runner for the application, with the limits that the loopback port and the LAN port share."""
    return web.AppRunner(
        application,
        handler_cancellation=True,
        access_log=None,
        shutdown_timeout=2,
        keepalive_timeout=IDLE_SECONDS,
        max_headers=MAX_HEADERS,
        max_field_size=MAX_HEADER_BYTES,
        max_line_size=MAX_HEADER_BYTES,
        auto_decompress=False,
        lingering_time=LINGER_SECONDS,
    )


class SlowClientGuard:
    """A listener that watches each connection until the headers of its first request have arrived."""

    def __init__(self, within_s: float = HEADER_SECONDS) -> None:
        self._within_s = within_s
        self._silent: dict[asyncio.BaseTransport, asyncio.TimerHandle] = {}
        self._room = WaitingRoom[asyncio.BaseTransport](MOST_SILENT, MOST_SILENT)
        self._kept: dict[asyncio.BaseTransport, _QuietRequestHandler] = {}  # most recently used last
        self._server: asyncio.Server | None = None

    async def listen(self, runner: web.AppRunner, ports: Iterable[int]) -> int:
        """Listen on the first free port of `ports` and return it. Raises BadInput if none is free.

        Port 0 stands for any free port.
        """
        loop = asyncio.get_running_loop()
        connection = self.protocol_factory(runner)
        first = 0
        for port in ports:
            first = first or port
            try:
                self._server = await loop.create_server(connection, "127.0.0.1", port)
            except OSError as error:
                if error.errno not in TAKEN:
                    raise
                continue
            bound: int = self._server.sockets[0].getsockname()[1]
            return bound
        raise BadInput("api_port_taken", port=first)

    def protocol_factory(self, runner: web.AppRunner) -> Callable[[], asyncio.Protocol]:
        """Return the protocol factory for new connections."""
        server, loop = runner.server, asyncio.get_running_loop()
        assert server is not None

        def connection() -> asyncio.Protocol:
            served = server()
            served.__class__ = _QuietRequestHandler
            return _WatchedConnection(served, partial(self._watch, loop), self._lost)

        return connection

    def note_request(self, request: web.Request) -> None:
        """Record that a request has arrived on its connection."""
        if (transport := request.transport) is None:
            return
        self._forget(transport)
        served = self._kept.pop(transport, request.protocol)
        if len(self._kept) >= MOST_KEPT:  # close the one that has been idle longest
            rest = next((idle for idle, other in self._kept.items() if other.is_idle), None)
            if rest is not None:
                del self._kept[rest]
                rest.close()
        if isinstance(served, _QuietRequestHandler):
            self._kept[transport] = served

    def close(self) -> None:
        """Stop listening, and close the connections on which no request has arrived."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for transport in list(self._silent):
            self._end(transport)

    def _watch(self, loop: asyncio.AbstractEventLoop, transport: asyncio.BaseTransport) -> None:
        peer = transport.get_extra_info("peername") or ("",)
        gone = self._room.enter(transport, plain_host(str(peer[0])))
        if gone is not None:  # the connection that has been silent longest, of the client with the most connections
            self._end(gone)
        self._silent[transport] = loop.call_later(self._within_s, self._end, transport)

    def _forget(self, transport: asyncio.BaseTransport) -> None:
        self._room.leave(transport)
        if timer := self._silent.pop(transport, None):
            timer.cancel()

    def _lost(self, transport: asyncio.BaseTransport) -> None:
        self._forget(transport)
        self._kept.pop(transport, None)

    def _end(self, transport: asyncio.BaseTransport) -> None:
        self._forget(transport)
        if isinstance(transport, asyncio.Transport):
            transport.abort()


class _QuietRequestHandler(web.RequestHandler):
    """A request handler that, unlike aiohttp's own, does not log or return the bytes of invalid requests.

    They may contain a key or chat text.
    """

    __slots__ = ()

    @property
    def is_idle(self) -> bool:
        """Return whether no request is in progress on this connection."""
        return not self._request_in_progress

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        is_garbled = isinstance(exc, HttpProcessingError)
        log.log(
            logging.INFO if is_garbled else logging.ERROR,
            "a request could not be served: %s",
            type(exc).__name__,
            exc_info=None if is_garbled else exc,
        )
        if request.writer.output_size > 0:
            raise ConnectionError("an answer has begun")
        kind = "invalid_request_error" if status < 500 else "server_error"
        words = NO_HTTP if status < 500 else "Something went wrong here."
        error = {"message": words, "type": kind, "param": None, "code": None}
        name = {"X-Request-Id": f"req_{secrets.token_hex(12)}"}
        answer = web.json_response({"error": error}, status=status, headers=name)
        answer.force_close()
        return answer


class _WatchedConnection(asyncio.Protocol):
    """A server connection that reports when it is opened and when it is lost."""

    def __init__(
        self,
        server: asyncio.Protocol,
        made: Callable[[asyncio.BaseTransport], None],
        lost: Callable[[asyncio.BaseTransport], None],
    ) -> None:
        self._server, self._made, self._lost = server, made, lost
        self._transport: asyncio.BaseTransport | None = None
        self.data_received = server.data_received  # type: ignore[method-assign]
        self.eof_received = server.eof_received  # type: ignore[method-assign]
        self.pause_writing = server.pause_writing  # type: ignore[method-assign]
        self.resume_writing = server.resume_writing  # type: ignore[method-assign]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._server.connection_made(transport)
        self._made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.connection_lost(exc)
        if self._transport is not None:
            self._lost(self._transport)
