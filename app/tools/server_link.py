"""The connection to one tool server: its start, its list of tools, its calls, and its end."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import IO, Any, cast

import httpx2
import msgspec
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, Implementation, Tool, ToolListChangedNotification

from app import __version__
from app.api.tools import CallResult
from app.core.errors import AppError, BadInput, Refused, Unreachable
from app.core.tools.shown_values import visible
from app.decoding import decode
from app.tools import keeper
from app.tools.bounded_http import MAX_MESSAGE_BYTES, BoundedTransport, TooMuch
from app.tools.call_results import description_of, fingerprint, result_of, schema_of, storable
from app.tools.server_store import KnownServer
from app.tools.watched_streams import watched

log = logging.getLogger(__name__)
for _name in ("client", "mcp"):  # the SDK logs what servers send, which may be private and has no end
    logging.getLogger(_name).setLevel(logging.CRITICAL + 1)

START_SECONDS = 60.0  # some are downloaded when they are started
LIST_SECONDS = 20.0
LIST_AGAIN_SECONDS = 3.0  # between two lists of a server that says again and again that its tools changed
CALL_SECONDS = 120.0
END_SECONDS = 10.0  # the SDK itself ends a process after 4 s at the latest
MAX_TOOLS = 100  # of a server; more would fill a model's context
MAX_PAGES = 20
WORDS_CHARACTERS = 300


class LastWords(msgspec.Struct, frozen=True):
    """The reason why a program ended, as reported by its keeper."""

    unstarted: str = ""
    flooded: bool = False
    code: int | None = None
    words: str = ""


class ListedTool(msgspec.Struct, frozen=True):
    """A tool as listed by its server."""

    name: str
    description: str
    parameters: dict[str, Any]
    fingerprint: str


class ServerLink:
    """A started tool server. `run` keeps the connection until `close`, or until the server ends."""

    def __init__(self, server: KnownServer, changed: Callable[[], None] = lambda: None) -> None:
        self.server = server
        self.tools: tuple[ListedTool, ...] = ()
        self.n_left_out = 0
        self.error: AppError | None = None  # why it ended, or could not be started
        self._changed = changed
        self._client: Client | None = None
        self._started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._end = asyncio.Event()
        self._news = asyncio.Event()  # the end, or a changed list of tools
        self._closes = False  # we end it ourselves

    @property
    def name(self) -> str:
        return self.server.name

    @property
    def is_running(self) -> bool:
        """Return whether calls can be made now."""
        return self._client is not None and not self._end.is_set()

    async def started(self) -> None:
        """Wait until the server has listed its tools. Raises the AppError that explains why it could not be started."""
        await asyncio.shield(self._started)

    async def refresh(self) -> None:
        """List the tools again, because not every server says when they change. Raises Unreachable."""
        client = self._client
        if client is None:
            return
        try:
            await self._list(client)
        except TimeoutError:
            self._ended()
            raise Unreachable("tool_server_silent", **self._named(), seconds=int(LIST_SECONDS)) from None
        except Exception as error:  # noqa: BLE001  of the SDK and its libraries
            raise self.error or self._explain(error) from None

    def close(self) -> None:
        """End the server."""
        self._closes = True
        self._ended()

    async def run(self) -> None:
        """Start the server and keep the connection. Never raises an error of the server."""
        try:
            await self._run()
        except AppError as error:
            self.error = error
        except Exception as error:  # noqa: BLE001  the SDK raises groups of errors, and those of its libraries
            self.error = self._explain(error)
        finally:
            self._client = None
            self._end.set()
            if not self._started.done():
                self._started.set_exception(self.error or Unreachable("tool_server_ended", **self._named(), words=""))
                self._started.exception()  # it may have no listener
            self._changed()

    async def _run(self) -> None:
        with tempfile.TemporaryFile("w+") as words:
            try:
                async with asyncio.timeout(START_SECONDS) as limit:
                    async with self._connected(words) as client:
                        await self._list(client)
                        limit.reschedule(None)
                        self._client = client
                        self._started.set_result(None)
                        self._changed()
                        await self._follow(client)
            except TimeoutError:
                raise Unreachable("tool_server_silent", **self._named(), seconds=int(START_SECONDS)) from None
            except Exception as error:  # noqa: BLE001  likewise
                raise self._last_words(words) or self._explain(error) from None
            if not self._closes:
                raise self._last_words(words) or Unreachable("tool_server_ended", **self._named(), words="")

    @asynccontextmanager
    async def _connected(self, words: IO[str]) -> AsyncIterator[Client]:
        stored = self.server.stored
        if stored.command:
            program = StdioServerParameters(
                command=sys.executable,
                args=[
                    "-I",
                    "-S",
                    str(Path(keeper.__file__)),
                    str(MAX_MESSAGE_BYTES),
                    stored.command,
                    *stored.arguments,
                ],
                env=dict(self.server.environment),
                cwd=Path.home(),
            )
            async with self._client_of(stdio_client(program, cast("Any", words))) as client:
                yield client
            return
        transport = BoundedTransport(httpx2.AsyncHTTPTransport())
        async with httpx2.AsyncClient(
            transport=transport, headers=dict(self.server.headers), timeout=httpx2.Timeout(30.0, read=CALL_SECONDS)
        ) as http:
            streams = streamable_http_client(stored.url, http_client=http, max_sse_event_size=MAX_MESSAGE_BYTES)
            async with self._client_of(streams) as client:
                yield client

    @asynccontextmanager
    async def _client_of(self, transport: Any) -> AsyncIterator[Client]:
        async def heard(message: object) -> None:
            if isinstance(message, ToolListChangedNotification):
                self._news.set()

        client = Client(
            watched(transport, self._ended),
            client_info=Implementation(name="poolhouse", version=__version__),
            read_timeout_seconds=CALL_SECONDS,
            message_handler=heard,
            cache=None,
        )
        async with client:
            client.session.validate_tool_result = _unchecked  # type: ignore[method-assign]
            yield client

    async def _follow(self, client: Client) -> None:
        """Wait for the end, and list the tools again when the server says that they changed, after a pause."""
        while True:
            await self._news.wait()
            self._news.clear()
            if self._end.is_set():
                return
            await self._list(client)
            self._changed()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._end.wait(), LIST_AGAIN_SECONDS)

    def _ended(self) -> None:
        self._end.set()
        self._news.set()

    async def _list(self, client: Client) -> None:
        tools: list[ListedTool] = []
        n_left_out, cursor = 0, None
        async with asyncio.timeout(LIST_SECONDS):
            for _ in range(MAX_PAGES):
                page = await client.list_tools(cursor=cursor)
                for tool in page.tools:
                    listed = _listed(tool, self.server.stored.place)
                    if listed is None or len(tools) >= MAX_TOOLS:
                        n_left_out += 1
                    else:
                        tools.append(listed)
                cursor = page.next_cursor
                if cursor is None:
                    break
        self.tools, self.n_left_out = tuple(tools), n_left_out

    async def call(self, tool: str, arguments: str, shown: str) -> CallResult:
        """Call a tool. `shown` is the fingerprint of the tool that the user saw.

        Raises BadInput, Refused or Unreachable.
        """
        listed = next((known for known in self.tools if known.name == tool), None)
        if listed is None:
            raise BadInput("tool_gone", name=self.name, tool=tool[:100])
        if shown and listed.fingerprint != shown:
            raise Refused("tool_changed", name=self.name, tool=tool[:100])
        client = self._client
        if client is None:
            raise Unreachable("tool_server_ended", **self._named(), words="")
        try:
            values = decode(arguments or "{}", dict[str, Any])
        except ValueError:
            raise BadInput("tool_arguments", tool=tool[:100]) from None
        begun = time.monotonic()
        try:
            async with asyncio.timeout(CALL_SECONDS):
                answer = await self._until_end(client.call_tool(tool, values))
        except TimeoutError:
            raise Unreachable("tool_call_slow", tool=tool[:100], seconds=int(CALL_SECONDS)) from None
        except MCPError as error:
            return CallResult(text=self._clean(error.message), is_error=True, seconds=time.monotonic() - begun)
        except AppError:
            raise
        except Exception as error:  # noqa: BLE001  likewise
            raise self._explain(error) from None
        return result_of(answer, time.monotonic() - begun)

    async def _until_end(self, call: Any) -> CallToolResult:
        """Return the answer of a call. Raises Unreachable if the server ends first."""
        async with asyncio.TaskGroup() as group:
            work = group.create_task(_settled(call), name="call of a tool")
            end = group.create_task(self._end.wait(), name="end of a tool server")
            await asyncio.wait([work, end], return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                work.cancel()
            end.cancel()
        if work.cancelled():
            await asyncio.sleep(0)
            raise self.error or Unreachable("tool_server_ended", **self._named(), words="")
        answer, error = work.result()
        if error is not None:
            if self._end.is_set():
                raise self.error or Unreachable("tool_server_ended", **self._named(), words="") from error
            raise error
        return cast("CallToolResult", answer)

    def _named(self) -> dict[str, str]:
        return {"name": self.name}

    def _clean(self, text: str) -> str:
        """Return a server's message on one line, without its secrets."""
        words = " ".join(storable(self.server.redacted(text)).split())
        return words if len(words) <= WORDS_CHARACTERS else f"…{words[-WORDS_CHARACTERS:]}"

    def _last_words(self, file: IO[str]) -> AppError | None:
        """Return why the program ended, as its keeper wrote it, or None if it did not end by itself."""
        file.seek(0)
        for line in reversed(file.read(1 << 16).splitlines()):
            try:
                end = decode(line, LastWords)
            except ValueError:
                continue
            if end.unstarted:
                return BadInput("tool_server_unstarted", **self._named(), why=self._clean(end.unstarted))
            if end.flooded:
                return Refused("tool_server_flooded", **self._named(), most_bytes=MAX_MESSAGE_BYTES)
            if end.words:
                return Unreachable("tool_server_ended_saying", **self._named(), words=self._clean(end.words))
            return Unreachable("tool_server_ended", **self._named())
        return None

    def _explain(self, error: BaseException) -> AppError:
        """Return the error in a form that the user can act on."""
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, AppError):
            return error
        if isinstance(error, TooMuch):
            return Refused("tool_server_flooded", **self._named(), most_bytes=MAX_MESSAGE_BYTES)
        if isinstance(error, TimeoutError | httpx2.TimeoutException):
            return Unreachable("tool_server_silent", **self._named(), seconds=int(START_SECONDS))
        log.info("a tool server failed: %s", type(error).__name__)
        why = self._clean(str(error)) or type(error).__name__
        return Unreachable("tool_server_failed", **self._named(), why=why)


async def _settled(call: Any) -> tuple[object, Exception | None]:
    try:
        return await call, None
    except Exception as error:  # noqa: BLE001  handed to the caller whole, without a group around it
        return None, error


async def _unchecked(name: str, result: CallToolResult) -> None:
    """Accept structured content that does not match its schema, because only its text is used.

    The SDK would check it in our event loop, which one of the server's regular expressions could block forever.
    """


def _listed(tool: Tool, place: tuple[object, ...]) -> ListedTool | None:
    """Return a tool within our limits, or None if its schema is too large or its name cannot be shown.

    place: identifies the server, so that an identical tool of another server counts as another tool.
    """
    schema = schema_of(tool)
    if schema is None or not tool.name.strip() or len(tool.name) > 128 or visible(tool.name) != tool.name:
        return None
    with suppress(UnicodeEncodeError, ValueError):
        json.dumps(schema).encode()
        return ListedTool(
            tool.name,
            description_of(tool),
            schema,
            fingerprint((*place, tool.name, tool.description, tool.title, schema)),
        )
    return None
