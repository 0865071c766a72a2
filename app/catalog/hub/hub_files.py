"""Streams files from the hub, starting at any offset. Checks redirects, and sends the access token only to the hub."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Protocol

import aiohttp
from yarl import URL

from app import __version__
from app.catalog.files import CHUNK_BYTES
from app.catalog.hub.hub_address import Hub, proxy_of, system_tls_context
from app.core.errors import AppError, BadInput, Busy, Reason, Refused, Unreachable

CONNECT_SECONDS = 15.0
SILENCE_SECONDS = 30.0
HOLD_SECONDS = 0.5  # interval at which even a slow connection reports progress
MAX_REDIRECTS = 5
REDIRECTS = (301, 302, 303, 307, 308)
_RANGE = re.compile(r"bytes (\d{1,15})-(\d{1,15})/(\d{1,15})")
_SHA256 = re.compile(r'"?([0-9a-f]{64})"?')
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class FileRequest:
    """The location of a file on the hub. Its names have been checked."""

    repository: str
    file: str
    revision: str


@dataclass(frozen=True, slots=True)
class FileFacts:
    """The facts that the hub reports about a file. Omitted facts are None."""

    commit: str | None = None
    total_bytes: int | None = None
    sha256: str | None = None


class Content(Protocol):
    """The part of aiohttp's StreamReader that is used here. `readany` returns b"" at the end."""

    async def readany(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Body:
    """The body of a response. Its first byte is at offset `start` of the file."""

    facts: FileFacts
    start: int
    content: Content

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield chunks of about 1 MiB, or smaller ones every half second. If the connection breaks, yield the
        remaining data before raising the error."""
        held, last = bytearray(), time.monotonic()
        while True:
            try:
                data = await self.content.readany()
            except (aiohttp.ClientError, ConnectionError, TimeoutError):
                if held:
                    yield bytes(held)
                raise
            if not data:
                break
            held += data
            if len(held) >= CHUNK_BYTES or time.monotonic() - last >= HOLD_SECONDS:
                yield bytes(held)
                held.clear()
                last = time.monotonic()
        if held:
            yield bytes(held)


def new_session() -> aiohttp.ClientSession:
    """Return an HTTP client for downloads, with the system's certificates but no cookies or environment settings."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=system_tls_context()),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=SILENCE_SECONDS),
        headers={"User-Agent": f"poolhouse/{__version__}", "Accept-Encoding": "identity"},
        auto_decompress=False,
        trust_env=False,
    )


class HubFiles:
    """A client for downloading files from one hub."""

    def __init__(self, hub: Hub, session: aiohttp.ClientSession) -> None:
        self.hub = self.place = hub
        self._session = session

    @asynccontextmanager
    async def opened(self, request: FileRequest, start: int, token: str | None) -> AsyncGenerator[Body, None]:
        """Request a file from offset `start` on. The response may still begin at 0.

        Raises AppError, and aiohttp's errors if the connection breaks.
        """
        url = self.hub.file(request.repository, request.revision, request.file)
        facts = FileFacts()
        for _ in range(MAX_REDIRECTS):
            headers = {"Range": f"bytes={start}-"} if start else {}
            if token and self.hub.is_own(url):
                headers["Authorization"] = f"Bearer {token}"
            async with self._session.get(
                URL(url, encoded=True), headers=headers, allow_redirects=False, proxy=proxy_of(url)
            ) as answer:
                if self.hub.is_own(url):
                    facts = _file_facts(facts, answer.headers)
                if answer.status in REDIRECTS:
                    url = self.hub.next(url, answer.headers.get("Location", ""))
                    continue
                if answer.status not in (200, 206):
                    raise self._refusal(request, answer, bool(token))
                yield self._body(answer, facts, start)
                return
        raise Unreachable("hub_odd", source=self.hub.host)

    async def facts_of(self, request: FileRequest, token: str | None) -> FileFacts:
        """Return the hub's facts about a file without downloading it.

        Raises AppError, and aiohttp's errors if the connection breaks.
        """
        url, facts = self.hub.file(request.repository, request.revision, request.file), FileFacts()
        for _ in range(MAX_REDIRECTS):
            headers = {}
            if token and self.hub.is_own(url):
                headers["Authorization"] = f"Bearer {token}"
            async with self._session.head(
                URL(url, encoded=True), headers=headers, allow_redirects=False, proxy=proxy_of(url)
            ) as answer:
                if self.hub.is_own(url):
                    facts = _file_facts(facts, answer.headers)
                if answer.status in REDIRECTS:
                    if facts.total_bytes:
                        return facts
                    url = self.hub.next(url, answer.headers.get("Location", ""))
                    continue
                if answer.status != 200:
                    raise self._refusal(request, answer, bool(token))
                return FileFacts(facts.commit, facts.total_bytes or answer.content_length, facts.sha256)
        raise Unreachable("hub_odd", source=self.hub.host)

    def _body(self, answer: aiohttp.ClientResponse, facts: FileFacts, start: int) -> Body:
        odd = Unreachable("hub_odd", source=self.hub.host)
        if answer.headers.get("Content-Encoding", "identity") != "identity":
            raise odd
        if answer.status == 200:
            start, total = 0, answer.content_length
        else:
            match = _RANGE.fullmatch(answer.headers.get("Content-Range", ""))
            if not match or int(match[1]) != start:
                raise odd
            total = int(match[3])
        if facts.total_bytes is not None and total not in (None, facts.total_bytes):
            raise odd
        whole = FileFacts(facts.commit, facts.total_bytes or total, facts.sha256)
        return Body(whole, start, answer.content)

    def _refusal(self, request: FileRequest, answer: aiohttp.ClientResponse, token: bool) -> AppError:
        code, source = answer.headers.get("X-Error-Code", ""), self.hub.host
        status, repository = answer.status, request.repository
        if not self.hub.is_own(str(answer.url)):  # a signed URL of a file store has expired
            return Unreachable("hub_fault", source=source, status=status)
        if status == 404 and code == "EntryNotFound":
            return BadInput("hub_file_unknown", repository=repository, file=request.file)
        if status == 404 or code == "RepoNotFound":
            return BadInput("hub_unknown", repository=repository, source=source)
        if status in (401, 403) and not token:
            return Refused("hub_token_needed", repository=repository)
        if status == 403 or code == "GatedRepo":
            return Refused("hub_gated", repository=repository)
        if status == 401:
            return Refused("hub_token_wrong", source=source)
        if status == 429:
            return Busy("hub_busy", source=source)
        return Unreachable("hub_fault", source=source, status=status)


def _file_facts(before: FileFacts, headers: Mapping[str, str]) -> FileFacts:
    """Fill in missing facts from the headers of a response."""
    commit = headers.get("X-Repo-Commit", "")
    size = headers.get("X-Linked-Size", "")
    tag = headers.get("X-Linked-Etag") or headers.get("ETag", "")
    match = _SHA256.fullmatch(tag)
    n_bytes = int(size) if size.isascii() and size.isdigit() and len(size) < 15 else None
    return FileFacts(
        before.commit or (commit if _COMMIT.fullmatch(commit) else None),
        before.total_bytes or n_bytes,
        before.sha256 or (match[1] if match else None),
    )


SILENT_SECONDS = 4.0  # time without a response before this is reported; users tolerate about five seconds


NOTHING_ANSWERS = Reason("nothing_answers")


class FileSource(Protocol):
    """A source of files: the hub, or another machine of the household."""

    @property
    def host(self) -> str:
        """The name to show to the user."""
        ...

    @property
    def outage_codes(self) -> tuple[str, str]:
        """The reason codes for an unreachable source: one while it is retried, and one after the last attempt."""
        ...


class OutageWatch:
    """A monitor of requests to a source. When the source stops responding, it calls `tell` with a reason. When the
    source responds again, it calls `tell` with None."""

    def __init__(self, place: FileSource, tell: Callable[[Reason | None], None]) -> None:
        self._place, self._tell = place, tell
        self._silence: asyncio.TimerHandle | None = None
        self._has_answered = self._has_reported = False

    @contextmanager
    def waiting_for_response(self) -> Iterator[None]:
        """Monitor the wait for a response. Enter this before sending the request."""
        self._has_answered = False
        loop = asyncio.get_running_loop()
        self._silence = loop.call_later(SILENT_SECONDS, self._held_up, NOTHING_ANSWERS)
        try:
            yield
        finally:
            self._silence.cancel()

    @contextmanager
    def waiting_for_data(self) -> Iterator[None]:
        """Monitor the wait for more data in a response."""
        stalled = Reason("hub_stalled", {"source": self._place.host})
        loop = asyncio.get_running_loop()
        silence = loop.call_later(SILENT_SECONDS, self._say, stalled)
        try:
            yield
        finally:
            silence.cancel()
        if self._has_reported:
            self._say(None)

    def responded(self) -> None:
        """Record that the source has responded, no matter how."""
        self._has_answered = True
        if self._silence is not None:
            self._silence.cancel()
        self._say(None)

    def failed(self, error: Exception) -> None:
        """Record that a request failed with this error and will be retried."""
        if isinstance(error, AppError):
            self._say(error.reason)
        else:
            self._held_up(connection_failure(error))

    def final_error(self, error: Exception, tries: int) -> AppError:
        """Return the error to raise for a request that will not be retried."""
        if isinstance(error, AppError):
            return error
        source = self._place.host
        if self._has_answered:
            return Unreachable("download_broken", source=source, tries=tries)
        return Unreachable(self._place.outage_codes[1], source=source, tries=tries, why=connection_failure(error))

    def _held_up(self, why: Reason) -> None:
        code = self._place.outage_codes[0]
        self._say(Reason(code, {"source": self._place.host, "why": why}))

    def _say(self, why: Reason | None) -> None:
        self._has_reported = why is not None
        self._tell(why)


def connection_failure(error: Exception) -> Reason:
    """Return the reason why a connection failed or broke."""
    match error:
        case aiohttp.ClientConnectorDNSError():
            return Reason("host_unknown")
        case aiohttp.ClientProxyConnectionError():
            return Reason("proxy_silent")
        case aiohttp.ClientHttpProxyError():
            return Reason("proxy_refuses")
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientSSLError():
            return Reason("certificate_untrusted")
        case TimeoutError():
            return NOTHING_ANSWERS
        case aiohttp.ClientConnectorError(os_error=ConnectionRefusedError()):
            return Reason("connection_refused")
        case aiohttp.ClientConnectorError():
            return Reason("no_route")
    return Reason("connection_breaks")
