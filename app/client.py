"""An asynchronous client for a node's loopback API, which finds the node, calls it and reads its streams."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any, Self, TypeVar, overload
from urllib.parse import quote

import aiohttp
import msgspec
from yarl import URL

from app import __version__
from app.api.plans import Progress
from app.core.errors import AppError, BadInput, Reason, Unreachable
from app.core.reasons import os_cause
from app.core.wire_json import LineSplitter, LineTooLong, error_of
from app.decoding import convert, decode
from app.machine import running_node
from app.machine.paths import Home
from app.machine.running_node import Runtime

Json = dict[str, Any]
T = TypeVar("T")

CONNECT_SECONDS = 5.0
KNOWN_SECONDS = 30.0  # for requests that need no work: a node that hangs is noticed soon
KNOWN = frozenset({"/status", "/machines", "/models", "/lending", "/api"})
ANSWER_SECONDS = 120.0  # unloading waits for running answers to end
MAX_LINE_BYTES = 64 << 20  # a complete answer with its token IDs is one line


def find_node(home: Home) -> Runtime:
    """Return the endpoint of this home's node. Raises Unreachable if no node is running, and BadInput if none can."""
    runtime = running_node.read(home.runtime_file)
    if runtime is None:
        raise _why_none(home)
    return runtime


def _why_none(home: Home) -> AppError:
    """Return an error that explains why this home's node cannot be reached."""
    try:
        if home.root.is_file():
            return BadInput("home_no_folder", path=str(home.root))
        if not home.root.exists() and not home.is_default:
            return Unreachable("home_missing", home=str(home.root))
        if home.runtime_file.exists():
            home.runtime_file.read_bytes()
    except OSError as error:
        return BadInput("home_unusable", path=str(home.root), why=os_cause(error))
    return Unreachable("node_not_running", home=str(home.root))


class NodeClient:
    """A client for a home's node, used as `async with NodeClient(home) as node`.

    Every method raises the AppError that the node sent, or Unreachable if the node does not answer.
    """

    def __init__(self, home: Home, *, any_version: bool = False) -> None:
        self._home = home
        self._any_version = any_version
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self.runtime = find_node(self._home)
        if not self._any_version and self.runtime.version != __version__:
            raise Unreachable("node_other_version", node=self.runtime.version, own=__version__)
        self._session = aiohttp.ClientSession(
            headers={"Authorization": f"Bearer {self.runtime.token}"},
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
            trust_env=False,  # a proxy must never see the token
            json_serialize=_json,
        )
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._session is not None:
            await self._session.close()

    # Without a type, the JSON is returned unchanged.

    @overload
    async def get(self, path: str) -> Json: ...
    @overload
    async def get(self, path: str, answer: type[T]) -> T: ...
    async def get(self, path: str, answer: Any = dict) -> Any:
        return await self._call("GET", path, None, answer)

    @overload
    async def post(self, path: str, body: Json | None = None) -> Json: ...
    @overload
    async def post(self, path: str, body: Json | None = None, *, answer: type[T]) -> T: ...
    async def post(self, path: str, body: Json | None = None, *, answer: Any = dict) -> Any:
        return await self._call("POST", path, body or {}, answer)

    @overload
    async def delete(self, path: str) -> Json: ...
    @overload
    async def delete(self, path: str, answer: type[T]) -> T: ...
    async def delete(self, path: str, answer: Any = dict) -> Any:
        return await self._call("DELETE", path, None, answer)

    @overload
    def stream(self, method: str, path: str, body: Json | None = None) -> AsyncGenerator[Json, None]: ...
    @overload
    def stream(self, method: str, path: str, body: Json | None = None, *, each: type[T]) -> AsyncGenerator[T, None]: ...
    async def stream(
        self, method: str, path: str, body: Json | None = None, *, each: Any = dict
    ) -> AsyncGenerator[Any, None]:
        """Yield the lines of a long operation, the last of which contains `done`.

        Closing the generator cancels the operation.
        """
        async with self._open(method, path, body) as response:
            async for line in _lines(response.content):
                if "error" in line:
                    raise error_of(line["error"])
                yield _typed(line, each)
                if "done" in line:
                    return
        raise Unreachable("node_went_away")

    @overload
    async def work(
        self, method: str, path: str, body: Json | None = None, progress: Callable[[Progress], None] = ...
    ) -> Json: ...
    @overload
    async def work(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        progress: Callable[[Progress], None] = ...,
        *,
        answer: type[T],
    ) -> T: ...
    async def work(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        progress: Callable[[Progress], None] = lambda step: None,
        *,
        answer: Any = dict,
    ) -> Any:
        """Run a long operation to its end, passing each step to `progress`, and return the content of `done`."""
        async with aclosing(self.stream(method, path, body)) as lines:
            async for line in lines:
                if "progress" in line:
                    progress(_typed(line["progress"], Progress))
                if "done" in line:
                    return _typed(line["done"], answer)
        raise Unreachable("node_went_away")

    async def _call(self, method: str, path: str, body: Json | None, answer: type[T]) -> T:
        seconds = KNOWN_SECONDS if method == "GET" and path in KNOWN else ANSWER_SECONDS
        try:
            async with asyncio.timeout(seconds):
                async with self._open(method, path, body) as response:
                    return _typed(_object(await response.read()), answer)
        except TimeoutError:
            raise Unreachable("node_silent", seconds=int(seconds)) from None

    @asynccontextmanager
    async def _open(self, method: str, path: str, body: Json | None) -> AsyncGenerator[aiohttp.ClientResponse, None]:
        assert self._session is not None, "use NodeClient in an async with"
        url = URL(f"http://127.0.0.1:{self.runtime.port}{path}", encoded=True)
        try:
            async with self._session.request(method, url, json=body) as response:
                if response.status >= 400:
                    raise _refusal(await response.read())
                yield response
        except aiohttp.ClientConnectorError:
            raise Unreachable("node_not_running", home=str(self._home.root)) from None
        except (aiohttp.ClientError, ConnectionError):
            raise Unreachable("node_went_away") from None


async def with_node(home: Home, work: Callable[[NodeClient], Awaitable[T]]) -> T:
    """Run `work` with a client for this home's node."""
    async with NodeClient(home) as node:
        return await work(node)


def _json(body: object) -> str:
    """Return the body as JSON. Raises UnicodeEncodeError if it contains a lone surrogate."""
    return msgspec.json.encode(body).decode()


def segment(name: str) -> str:
    """Return a name quoted as a single path segment. Raises UnicodeEncodeError if it contains a lone surrogate."""
    return quote(name, safe="")


async def _lines(content: aiohttp.StreamReader) -> AsyncGenerator[Json, None]:
    cutter = LineSplitter(MAX_LINE_BYTES)
    async for chunk in content.iter_any():
        try:
            lines = cutter.feed(chunk)
        except LineTooLong:
            raise AppError("node_fault", detail=Reason("line_without_end")) from None
        for line in lines:
            if line.strip():
                yield _object(line)


def _typed(content: Json, kind: type[T]) -> T:
    try:
        return convert(content, kind)
    except ValueError:
        raise AppError("node_fault", detail=Reason("answer_not_understood")) from None


def _object(data: bytes) -> Json:
    try:
        return decode(data, Json)
    except ValueError:
        raise AppError("node_fault", detail=Reason("answer_not_understood")) from None


def _refusal(data: bytes) -> AppError:
    try:
        return error_of(decode(data, Json).get("error"))
    except ValueError:
        return AppError("node_fault", detail=Reason("answer_not_understood"))
