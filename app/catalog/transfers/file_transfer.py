"""Transfers and verifies a file. Interrupted transfers are resumed, and failed requests are retried."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Protocol, TypeVar

import aiohttp

from app.catalog.files import CHUNK_BYTES, Disk, disk_error, sync_folder
from app.catalog.hub.hub_files import Body, FileFacts, FileRequest, FileSource, OutageWatch
from app.core.errors import BadInput, Busy, Damaged, DoesNotFit, Reason, Unreachable
from app.core.reasons import os_cause

log = logging.getLogger(__name__)

T = TypeVar("T")
LEFT_FREE_BYTES = 5 << 30  # UX.md FR2
WAITS = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 30.0, 30.0)  # between attempts; after the last, the user decides
TURN_SECONDS = 3.0  # between attempts while the source serves another machine; these do not count
MY_TURN = "copy_waits"  # reason code for a source that serves another machine
PROGRESS_BYTES = 1 << 20  # if this much arrives between two interruptions, attempts are counted from zero again


class PartialFile:
    """The partial file of a download (`.part`). It is hashed while it is written, and again when it is reopened.

    The methods block. Except for `stop`, they must not run at the same time.
    """

    def __init__(self, path: Path, disk: Disk | None = None) -> None:
        self.path = path
        self._disk = disk or Disk()
        self._stop = threading.Event()
        self._file: BinaryIO | None = None
        self._hash = hashlib.sha256()
        self.n_bytes = 0  # written and hashed

    def reopen(self, tell: Callable[[], None] = lambda: None) -> None:
        """Open the file, creating it if necessary, and hash its existing contents. `stop` ends this early."""
        self.close()
        self._stop.clear()
        self._hash, self.n_bytes = hashlib.sha256(), 0
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
            self._file = os.fdopen(handle, "r+b", buffering=0)
            while not self._stop.is_set() and (chunk := self._file.read(CHUNK_BYTES)):
                self._hash.update(chunk)
                self.n_bytes += len(chunk)
                tell()
        except OSError as error:
            self.close()
            raise Damaged("download_stopped", why=os_cause(error)) from error

    def write(self, data: bytes, total_bytes: int) -> None:
        """Append and hash the data. Raises AppError if the disk is full or fails."""
        assert self._file is not None
        try:
            self._disk.write(self._file, memoryview(data))
        except OSError as error:
            self._cut_back()
            raise disk_error(self.path.parent, error, total_bytes - self.n_bytes) from error
        self._hash.update(data)
        self.n_bytes += len(data)

    def discard(self) -> None:
        """Discard everything written so far."""
        assert self._file is not None
        self._hash, self.n_bytes = hashlib.sha256(), 0
        self._cut_back()

    def sha256(self) -> str:
        return self._hash.hexdigest()

    def finish(self, final: Path) -> None:
        """Sync the file to disk and rename it to its final name."""
        assert self._file is not None
        try:
            self._disk.sync(self._file)
            self.close()
            self.path.replace(final)
            sync_folder(final.parent)
        except OSError as error:
            raise disk_error(final.parent, error, self.n_bytes) from error

    def stop(self) -> None:
        """Make `reopen` return early. Safe to call from any thread."""
        self._stop.set()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _cut_back(self) -> None:
        """Truncate the file to the bytes that were hashed."""
        assert self._file is not None
        self._file.truncate(self.n_bytes)
        self._file.seek(self.n_bytes)


@dataclass(frozen=True, slots=True)
class DownloadTarget:
    """The file to fetch, with its expected size and hash. If these are None, the hub's facts are used."""

    request: FileRequest
    total_bytes: int | None = None
    sha256: str | None = None


async def without_limit(n_bytes: int) -> None:
    """Return immediately. Used if there is no rate limit."""


class FileClient(Protocol):
    """A client for downloading files from the hub or from another machine of the household."""

    @property
    def place(self) -> FileSource: ...

    def opened(self, request: FileRequest, start: int, token: str | None) -> AbstractAsyncContextManager[Body]:
        """Request a file from offset `start` on. The response may still begin at 0.

        Raises AppError, and aiohttp's errors if the connection breaks.
        """
        ...

    async def facts_of(self, request: FileRequest, token: str | None) -> FileFacts:
        """Return the facts about a file without downloading it. Raises the same errors as `opened`."""
        ...


@dataclass(frozen=True, slots=True)
class TransferHooks:
    """Callbacks with which a transfer reports its progress and requests what it needs. All are called on the event
    loop."""

    token: Callable[[], Awaitable[str | None]]
    on_facts: Callable[[DownloadTarget], Awaitable[None]]  # stores facts learned from the source
    on_progress: Callable[[], None]  # called when more bytes are on disk, or the state of the transfer has changed
    room_bytes: Callable[[], int]  # returns the bytes available to this download besides those reserved for the others
    # called with the reason why no bytes arrive during an active download, or with None once they do
    on_outage: Callable[[Reason | None], None]
    # called with the number of bytes received; returns when more may be received
    throttle: Callable[[int], Awaitable[None]] = without_limit


class Transfer:
    """The transfer of one file."""

    def __init__(
        self,
        files: FileClient,
        target: DownloadTarget,
        part: PartialFile,
        hooks: TransferHooks,
        waits: tuple[float, ...] = WAITS,
    ) -> None:
        self._files, self.target, self._part, self._hooks = files, target, part, hooks
        self._waits, self._outage_watch = waits, OutageWatch(files.place, hooks.on_outage)
        self.is_flowing = False

    async def run(self, final: Callable[[str], Path]) -> Path:
        """Fetch and verify the file, and return its path. Raises AppError. If canceled, the partial file is kept.

        final: returns the path for a file with this SHA-256.
        """
        try:
            await run_to_completion(self._part.reopen, self._part.stop)
            self._hooks.on_progress()
            if not await self._is_whole():
                await self._fetch()
            digest = self._part.sha256()
            if self.target.sha256 not in (None, digest):
                await run_to_completion(self._part.discard)
                raise Damaged("download_damaged", file=self.target.request.file)
            path = final(digest)
            await run_to_completion(lambda: self._part.finish(path))
            self.target = replace(self.target, sha256=digest)
            return path
        finally:
            self.is_flowing = False
            self._part.close()

    async def _fetch(self) -> None:
        """Fetch the missing bytes over as many connections as necessary."""
        breaks, before = 0, self._part.n_bytes
        while not await self._is_whole():
            last: Exception = ConnectionError("the response ended early")
            try:
                await self._connection()
            except (Unreachable, Busy) as error:
                last = error
            except (aiohttp.ClientError, ConnectionError, TimeoutError) as error:
                log.info("the download of %s was interrupted: %s", self.target.request.file, error)
                last = error
            finally:
                self.is_flowing = False
            if await self._is_whole():
                return
            if self._part.n_bytes >= before + PROGRESS_BYTES:
                breaks = 0
            before = self._part.n_bytes
            waits_turn = isinstance(last, Busy) and last.reason.code == MY_TURN
            if breaks == len(self._waits) and not waits_turn:
                raise self._outage_watch.final_error(last, breaks + 1)
            self._outage_watch.failed(last)
            self._hooks.on_progress()
            if waits_turn:
                await asyncio.sleep(TURN_SECONDS)
                continue
            await asyncio.sleep(self._waits[breaks])
            breaks += 1

    async def _connection(self) -> None:
        """Fetch bytes over one connection until it ends."""
        token, start = await self._hooks.token(), self._part.n_bytes
        with self._outage_watch.waiting_for_response():
            async with self._files.opened(self.target.request, start, token) as body:
                self._outage_watch.responded()
                total = await self._agree(body.facts)
                if body.start != self._part.n_bytes:
                    await run_to_completion(self._part.discard)
                self._check_room(total)
                await self._pour(body, total)

    async def _pour(self, body: Body, total: int) -> None:
        self.is_flowing = True
        self._hooks.on_progress()
        chunks = aiter(body.chunks())
        while chunk := await self._next(chunks):
            received = self._part.n_bytes + len(chunk)
            if received > total:
                raise self._other_size(received, total)
            await run_to_completion(lambda data=chunk: self._part.write(data, total))  # type: ignore[misc]
            self._hooks.on_progress()
            await self._hooks.throttle(len(chunk))

    async def _next(self, chunks: AsyncIterator[bytes]) -> bytes:
        """Return the next chunk, which is empty at the end."""
        with self._outage_watch.waiting_for_data():
            return await anext(chunks, b"")

    async def _agree(self, facts: FileFacts) -> int:
        """Check the hub's facts against the expected ones, save new facts, and return the size of the file."""
        known, file = self.target, self.target.request.file
        if known.total_bytes is not None and facts.total_bytes not in (None, known.total_bytes):
            raise self._other_size(facts.total_bytes or 0, known.total_bytes)
        if known.sha256 is not None and facts.sha256 not in (None, known.sha256):
            raise Damaged("download_other_file", file=file, source=self._files.place.host)
        total = known.total_bytes or facts.total_bytes
        if not total:
            raise BadInput("download_no_size", file=file, source=self._files.place.host)
        commit = facts.commit or known.request.revision
        # later requests name this commit, so the bytes stay the same
        request = replace(known.request, revision=commit)
        now = DownloadTarget(request, total, known.sha256 or facts.sha256)
        if now != known:
            self.target = now
            await self._hooks.on_facts(now)
        return total

    def _check_room(self, total: int) -> None:
        needed, room = total - self._part.n_bytes, self._hooks.room_bytes()
        if needed + LEFT_FREE_BYTES > room:
            raise no_room(self._part.path.parent, needed, room)

    async def _is_whole(self) -> bool:
        total = self.target.total_bytes
        if total is not None and self._part.n_bytes > total:
            await run_to_completion(self._part.discard)  # the partial file belongs to another version
        return self._part.n_bytes == total

    def _other_size(self, size: int, known: int) -> Damaged:
        return Damaged(
            "download_other_size",
            file=self.target.request.file,
            source=self._files.place.host,
            found_bytes=size,
            known_bytes=known,
        )


def no_room(folder: Path, needed: int, room: int) -> DoesNotFit:
    return DoesNotFit(
        "download_no_room", folder=str(folder), needed_bytes=needed + LEFT_FREE_BYTES, free_bytes=max(0, room)
    )


async def run_to_completion(work: Callable[[], T], stop: Callable[[], None] = lambda: None) -> T:
    """Run `work` in a thread and wait for it even if canceled. This prevents a file from being closed during a
    write."""
    done = asyncio.get_running_loop().run_in_executor(None, work)
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        stop()
        while not done.done():
            try:
                await asyncio.wait({done})
            except asyncio.CancelledError:
                continue
        if not done.cancelled():
            done.exception()  # retrieved so that asyncio does not log it
        raise
