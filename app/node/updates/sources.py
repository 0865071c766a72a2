"""The sources of updates: the address in the build, or a folder such as one on a USB stick. Both contain the same
files.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import urllib3
from tuf.api.exceptions import DownloadError, DownloadHTTPError
from tuf.ngclient import FetcherInterface
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.util import Timeout

from app.catalog.hub.hub_address import proxy_of, system_tls_context
from app.core.errors import BadInput
from app.node.updates.update_address import update_host

AGENT = "poolhouse"  # the version stays private
CHUNK_BYTES = 1 << 18
TIMEOUT = Timeout(connect=10.0, read=20.0)
ANSWER_SECONDS = (
    60.0  # for all headers of an answer, and for each part of a file: the timeout begins anew with each byte
)
NOT_FOUND = 404
METADATA, TARGETS = "metadata", "targets"


class Source(Protocol):
    """A repository of updates."""

    @property
    def name(self) -> str:
        """The name to show to the user: a host name or a folder."""
        ...

    def read(self, path: str, start: int = 0) -> tuple[int, Generator[bytes, None, None]]:
        """Open a file at an offset. Return the offset at which the data really starts, which may be 0, and the
        data.

        Raises DownloadHTTPError if there is no such file, and DownloadError or OSError if it cannot be read.
        """
        ...


class _Deadline:
    """A time limit for each part of a response. If a part is late, the connection is closed, even if bytes still
    trickle in.

    A single thread monitors all parts. Wait for each part in a `with deadline:` block.
    """

    def __init__(self, end: Callable[[], object]) -> None:
        self._end, self._is_late, self._is_over = end, False, False
        self._until: float | None = None  # None between two parts
        self._changed = threading.Condition()
        threading.Thread(target=self._watch, daemon=True, name="update-deadline").start()

    def __enter__(self) -> None:
        self._set(time.monotonic() + ANSWER_SECONDS)

    def __exit__(self, *_: object) -> None:
        self._set(None)
        if self._is_late:  # what was cut off may look like a short answer
            raise TimeoutError("timed out")

    def close(self) -> None:
        """End the thread."""
        self._is_over = True
        self._set(None)

    def _set(self, until: float | None) -> None:
        with self._changed:
            self._until = until
            self._changed.notify()

    def _watch(self) -> None:
        with self._changed:
            while not self._is_over:
                left = None if self._until is None else self._until - time.monotonic()
                if left is not None and left <= 0:
                    self._is_late = True
                    break
                self._changed.wait(left)
        if self._is_late:
            with contextlib.suppress(OSError, ValueError, RuntimeError):  # it was closed meanwhile
                self._end()


def _shut(connection: socket.socket) -> None:
    socket.socket.shutdown(connection, socket.SHUT_RDWR)  # that of TLS would change what the other thread reads from


class _Connection(HTTPConnection):
    """A connection that is closed unless it receives all response headers before a deadline."""

    def getresponse(self) -> urllib3.HTTPResponse:  # type: ignore[override]
        with contextlib.closing(_Deadline(partial(_shut, self.sock))) as deadline, deadline:
            return super().getresponse()


class _TlsConnection(HTTPSConnection):
    """A TLS connection that is closed unless it receives all response headers before a deadline."""

    def getresponse(self) -> urllib3.HTTPResponse:  # type: ignore[override]
        with contextlib.closing(_Deadline(partial(_shut, self.sock))) as deadline, deadline:
            return super().getresponse()


class _Pool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Connection


class _TlsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


class WebSource:
    """A repository at an HTTPS address. Redirects are not followed."""

    def __init__(self, address: str) -> None:
        """Create a source for this address. Raises BadInput unless the address uses HTTPS or a loopback host."""
        self._address, self.name = address.rstrip("/"), update_host(address)
        options: Mapping[str, object] = {"retries": False, "timeout": TIMEOUT, "headers": {"User-Agent": AGENT}}
        if urlsplit(address).scheme == "https":
            options = {**options, "ssl_context": system_tls_context()}
        proxy = proxy_of(address)
        self._pool: urllib3.PoolManager = (
            urllib3.ProxyManager(str(proxy), **options) if proxy else urllib3.PoolManager(**options)  # type: ignore[arg-type]
        )
        self._pool.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}

    def read(self, path: str, start: int = 0) -> tuple[int, Generator[bytes, None, None]]:
        headers = {"User-Agent": AGENT, "Accept-Encoding": "identity"}
        if start:
            headers["Range"] = f"bytes={start}-"
        try:
            answer = self._pool.request(
                "GET", f"{self._address}/{path}", headers=headers, preload_content=False, redirect=False
            )
        except urllib3.exceptions.HTTPError as error:
            raise DownloadError(str(error)) from error
        if start and answer.status == 416:  # nothing is left after this offset: the file there is shorter
            answer.release_conn()
            return self.read(path)
        if answer.status not in (200, 206):
            answer.release_conn()
            raise DownloadHTTPError(f"status {answer.status}", answer.status)
        begins = start if answer.status == 206 and _begins_at(answer.headers.get("Content-Range", ""), start) else 0
        if answer.status == 206 and begins != start:
            answer.release_conn()
            raise DownloadError("the server sent another range")
        return begins, _stream(answer)


def _begins_at(content_range: str, start: int) -> bool:
    return content_range.replace("=", " ").startswith(f"bytes {start}-")


def _stream(answer: urllib3.BaseHTTPResponse) -> Generator[bytes, None, None]:
    deadline = _Deadline(answer.shutdown)
    try:
        while True:
            with deadline:
                chunk = answer.read1(CHUNK_BYTES)  # what has arrived, so that little is lost with the connection
            if not chunk:
                return
            yield chunk
    except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:  # the last two: it was ended as above
        raise DownloadError(str(error)) from error
    finally:
        deadline.close()
        with contextlib.suppress(OSError, urllib3.exceptions.HTTPError):
            answer.close()


class FolderSource:
    """A repository in a folder, such as one on a USB stick."""

    def __init__(self, folder: Path) -> None:
        """Find the repository in or near the given folder or file. Raises BadInput if there is none."""
        places = (folder, folder / "poolhouse-updates", folder.parent, folder.parent.parent)
        repository = next((place for place in places if (place / METADATA / "timestamp.json").is_file()), None)
        if repository is None:
            raise BadInput("update_no_folder", folder=str(folder))
        self._folder, self.name = repository, str(repository)

    def read(self, path: str, start: int = 0) -> tuple[int, Generator[bytes, None, None]]:
        if ".." in path.split("/") or path.startswith("/"):
            raise DownloadHTTPError("not in the folder", NOT_FOUND)
        try:
            handle = os.open(
                self._folder / path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
            )
        except (FileNotFoundError, NotADirectoryError) as error:
            raise DownloadHTTPError(str(error), NOT_FOUND) from error
        return start, _file_chunks(handle, start)


def _file_chunks(handle: int, start: int) -> Generator[bytes, None, None]:
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):  # a pipe could make us wait forever
            raise DownloadError("not a file")
        file.seek(start)
        while chunk := file.read(CHUNK_BYTES):
            yield chunk


class SourceFetcher(FetcherInterface):
    """Provides the files of a source to the TUF client."""

    def __init__(self, source: Source, seconds: float, stop: threading.Event | None = None) -> None:
        """Create a fetcher that reads from a source for at most `seconds`, or until `stop` is set."""
        self._source, self._stop = source, stop or threading.Event()
        self._until = time.monotonic() + seconds

    def _fetch(self, url: str) -> Iterator[bytes]:
        self._require_time()
        _, chunks = self._source.read(url)
        with contextlib.closing(chunks):
            for chunk in chunks:
                self._require_time()
                yield chunk

    def _require_time(self) -> None:
        if self._stop.is_set() or time.monotonic() > self._until:
            raise DownloadError("timed out")
