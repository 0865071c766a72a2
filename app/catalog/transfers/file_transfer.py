"""The transfer of a file up to its verification: resumed after interruptions and retried after failures."""

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
WAITS = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 30.0, 30.0)  # between attempts; afterwards a person decides
TURN_SECONDS = 3.0  # between attempts while the source serves another machine, which does not count as an outage
MY_TURN = "copy_waits"  # code of the reason that the source serves another machine
PROGRESS_BYTES = 1 << 20  # this much between two interruptions counts as progress and resets the count of attempts


class PartialFile:
    """The partial file of a download (`.part`), hashed as it is written, and again when it is resumed.

    Its methods block, and only one may run at a time.
    """

    def __init__(self, path: Path, disk: Disk | None = None) -> None:
        self.path = path
        self._disk = disk or Disk()
        self._stop = threading.Event()
        self._file: BinaryIO | None = None
        self._hash = hashlib.sha256()
        self.n_bytes = 0  # written and hashed

    def take_up(self, tell: Callable[[], None] = lambda: None) -> None:
        """Open the file, creating it if necessary, and hash its contents. `stop` ends this early."""
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

    def begin_again(self) -> None:
        """Discard the contents."""
        assert self._file is not None
        self._hash, self.n_bytes = hashlib.sha256(), 0
        self._cut_back()

    def sha256(self) -> str:
        return self._hash.hexdigest()

    def finish(self, final: Path) -> None:
        """Sync the file to disk and give it its final name."""
        assert self._file is not None
        try:
            self._disk.sync(self._file)
            self.close()
            self.path.replace(final)
            sync_folder(final.parent)
        except OSError as error:
            raise disk_error(final.parent, error, self.n_bytes) from error

    def stop(self) -> None:
        """Make `take_up` end soon. Safe to call from any thread."""
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
    """The file to fetch. Facts that are None are learned from the hub."""

    asked: FileRequest
    total_bytes: int | None = None
    sha256: str | None = None


async def without_limit(n_bytes: int) -> None:
    """Apply no rate limit."""


class Files(Protocol):
    """A source of bytes: a hub, or a machine of the household."""

    @property
    def place(self) -> FileSource: ...

    def opened(self, request: FileRequest, start: int, token: str | None) -> AbstractAsyncContextManager[Body]:
        """Open the file at `start`, or at 0. Raises AppError, and aiohttp's errors if the connection breaks."""
        ...

    async def facts_of(self, request: FileRequest, token: str | None) -> FileFacts:
        """Return the facts about a file without downloading it. Raises as `opened` does."""
        ...


@dataclass(frozen=True, slots=True)
class Hooks:
    """Callbacks that report the progress of a transfer. All are called on the event loop."""

    token: Callable[[], Awaitable[str | None]]
    learnt: Callable[[DownloadTarget], Awaitable[None]]  # stores facts learned from the hub
    moved: Callable[[], None]  # more bytes are on the disk
    room_bytes: Callable[[], int]  # free for this download after the other downloads have their shares
    # called with the reason why no bytes arrive although the download is active, or None once they do
    held_up: Callable[[Reason | None], None]
    # called with the number of bytes; returns when more may come
    arrived: Callable[[int], Awaitable[None]] = without_limit


class Transfer:
    """The transfer of one file into its partial file."""

    def __init__(
        self, files: Files, target: DownloadTarget, part: PartialFile, hooks: Hooks, waits: tuple[float, ...] = WAITS
    ) -> None:
        self._files, self.wanted, self._part, self._hooks = files, target, part, hooks
        self._waits, self._lookout = waits, OutageWatch(files.place, hooks.held_up)
        self.is_flowing = False

    async def run(self, final: Callable[[str], Path]) -> Path:
        """Fetch and verify the file, and return its path. Raises AppError. Canceling keeps the partial file.

        `final` returns the path for a file with a given SHA-256.
        """
        try:
            await to_its_end(self._part.take_up, self._part.stop)
            self._hooks.moved()
            if not await self._is_whole():
                await self._fetch()
            digest = self._part.sha256()
            if self.wanted.sha256 not in (None, digest):
                await to_its_end(self._part.begin_again)
                raise Damaged("download_damaged", file=self.wanted.asked.file)
            path = final(digest)
            await to_its_end(lambda: self._part.finish(path))
            self.wanted = replace(self.wanted, sha256=digest)
            return path
        finally:
            self.is_flowing = False
            self._part.close()

    async def _fetch(self) -> None:
        """Fetch until all bytes have arrived, over as many connections as necessary."""
        breaks, before = 0, self._part.n_bytes
        while not await self._is_whole():
            last: Exception = ConnectionError("it ended early")
            try:
                await self._connection()
            except (Unreachable, Busy) as error:
                last = error
            except (aiohttp.ClientError, ConnectionError, TimeoutError) as error:
                log.info("the download of %s broke: %s", self.wanted.asked.file, error)
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
                raise self._lookout.gave_up(last, breaks + 1)
            self._lookout.broke(last)
            self._hooks.moved()
            if waits_turn:
                await asyncio.sleep(TURN_SECONDS)
                continue
            await asyncio.sleep(self._waits[breaks])
            breaks += 1

    async def _connection(self) -> None:
        """Fetch as much as one connection delivers."""
        token, start = await self._hooks.token(), self._part.n_bytes
        with self._lookout.asking():
            async with self._files.opened(self.wanted.asked, start, token) as body:
                self._lookout.answered()
                total = await self._agree(body.facts)
                if body.start != self._part.n_bytes:
                    await to_its_end(self._part.begin_again)
                self._check_room(total)
                await self._pour(body, total)

    async def _pour(self, body: Body, total: int) -> None:
        self.is_flowing = True
        self._hooks.moved()
        chunks = aiter(body.chunks())
        while chunk := await self._next(chunks):
            received = self._part.n_bytes + len(chunk)
            if received > total:
                raise self._other_size(received, total)
            await to_its_end(lambda data=chunk: self._part.write(data, total))  # type: ignore[misc]
            self._hooks.moved()
            await self._hooks.arrived(len(chunk))

    async def _next(self, chunks: AsyncIterator[bytes]) -> bytes:
        """Return the next chunk, which is empty at the end."""
        with self._lookout.listening():
            return await anext(chunks, b"")

    async def _agree(self, facts: FileFacts) -> int:
        """Compare the hub's facts with the known ones, store new facts, and return the size of the file."""
        known, file = self.wanted, self.wanted.asked.file
        if known.total_bytes is not None and facts.total_bytes not in (None, known.total_bytes):
            raise self._other_size(facts.total_bytes or 0, known.total_bytes)
        if known.sha256 is not None and facts.sha256 not in (None, known.sha256):
            raise Damaged("download_other_file", file=file, source=self._files.place.host)
        total = known.total_bytes or facts.total_bytes
        if not total:
            raise BadInput("download_no_size", file=file, source=self._files.place.host)
        commit = facts.commit or known.asked.revision
        # requests the same bytes from now on, whatever changes on the hub
        request = replace(known.asked, revision=commit)
        now = DownloadTarget(request, total, known.sha256 or facts.sha256)
        if now != known:
            self.wanted = now
            await self._hooks.learnt(now)
        return total

    def _check_room(self, total: int) -> None:
        needed, room = total - self._part.n_bytes, self._hooks.room_bytes()
        if needed + LEFT_FREE_BYTES > room:
            raise no_room(self._part.path.parent, needed, room)

    async def _is_whole(self) -> bool:
        total = self.wanted.total_bytes
        if total is not None and self._part.n_bytes > total:
            await to_its_end(self._part.begin_again)  # the partial file belongs to something else
        return self._part.n_bytes == total

    def _other_size(self, size: int, known: int) -> Damaged:
        return Damaged(
            "download_other_size",
            file=self.wanted.asked.file,
            source=self._files.place.host,
            found_bytes=size,
            known_bytes=known,
        )


def no_room(folder: Path, needed: int, room: int) -> DoesNotFit:
    return DoesNotFit(
        "download_no_room", folder=str(folder), needed_bytes=needed + LEFT_FREE_BYTES, free_bytes=max(0, room)
    )


async def to_its_end(work: Callable[[], T], stop: Callable[[], None] = lambda: None) -> T:
    """Run `work` in a thread to its end, even if canceled, so that a file is never closed during a write."""
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
            done.exception()  # retrieved, so that asyncio does not log it later
        raise
