"""Starting, ordering, pausing, resuming and canceling downloads. Two run at the same time; others wait."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import ClientSession

from app.api.downloads import Download, RemoveDownloadResponse
from app.catalog.files import Disk
from app.catalog.gguf.gguf_file import part_names
from app.catalog.hub.hub_address import MAIN, check_file_names
from app.catalog.hub.hub_files import new_session
from app.catalog.shelf import NAME, Shelf, name_for, whole_stem
from app.catalog.transfers.download_records import DownloadFolders, Record, delete_model, id_of, whole_bytes
from app.catalog.transfers.file_transfer import WAITS, without_limit
from app.catalog.transfers.hash_pins import pin_of
from app.core.errors import AppError, BadInput, Damaged, Unreachable, bug
from app.node.cancellation import in_thread
from app.node.downloads.download_ledger import DownloadLedger
from app.node.downloads.download_source import (
    DownloadRequest,
    DownloadServices,
    Fetch,
    FetchServices,
    PeerCopy,
    files_of,
    may_be_pinned,
    new_record,
    no_token,
)
from app.node.downloads.download_turns import DownloadTurns

log = logging.getLogger(__name__)

AT_ONCE = 2
STALL_LOOK_SECONDS = 1.0
AWAY = ("copy_away", "copy_unreached")  # reasons why a copy failed because the source machine is away


class Downloads:
    """All downloads, including finished ones until the user removes them from the list."""

    def __init__(
        self,
        places: DownloadFolders,
        shelf: Shelf,
        services: DownloadServices,
        disk: Disk | None = None,
        waits: tuple[float, ...] = WAITS,
        arrived: Callable[[int], Awaitable[None]] = without_limit,
    ) -> None:
        """Create the list of downloads. `arrived` is called with the size of each received chunk, and waits until
        the next chunk may be read.
        """
        self._disk, self._waits = disk or Disk(), waits
        self._ledger, self._shelf = DownloadLedger(places, self._disk), shelf
        self.book = self._ledger.book
        self._services, self._changed = services, services.changed
        self.arrived = arrived
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._turns = DownloadTurns(AT_ONCE, self._ledger.order)
        self._request_lock = asyncio.Lock()  # serializes requests of the user
        self._session: ClientSession
        self._group: asyncio.TaskGroup
        self._ready = asyncio.Event()
        self._is_held = False  # while set, no download may open its files

    async def run(self) -> None:
        """Serve until canceled. Downloads that were active when the node last stopped are continued."""
        await self._ledger.load()
        async with new_session() as session, asyncio.TaskGroup() as group:
            self._session, self._group = session, group
            for record in self._ledger:
                if record.standing == "going":
                    self._go(record.id)
            self._ready.set()
            self._changed()
            try:
                while True:  # notices stalled connections
                    await asyncio.sleep(STALL_LOOK_SECONDS)
                    await self._resume_copies()
                    if any(self._ledger.live(other.id).doing == "running" for other in self._ledger):
                        self._changed()
            finally:
                self._ready.clear()

    def snapshot(self) -> dict[str, Download]:
        """Return the state of each download by ID, oldest first."""
        return self._ledger.snapshot()

    def described(self, download_id: str) -> Download:
        """Return the state of a download. Raises BadInput if the ID is unknown."""
        return self._ledger.described(download_id)

    def id_of_file(self, repository: str, file: str) -> str | None:
        """Return the ID of the download of this file, if there is one."""
        key = id_of(repository, part_names(file)[0])
        return key if key in self._ledger else None

    async def start(
        self, repository: str, file: str, revision: str | None, name: str | None, copy: PeerCopy | None = None
    ) -> Download:
        """Start a download, or continue the existing one. A model in several files is identified by any of them.

        Raises AppError.

        copy: the machine of the household to copy from. Bytes that are already here are kept.
        """
        check_file_names(repository, file, revision)
        file = part_names(file)[0]
        name = name or name_for(whole_stem(file.rsplit("/", 1)[-1].rsplit(".", 1)[0]))
        if not NAME.fullmatch(name) or name_for(name) != name:
            raise BadInput("model_name_odd", name=name[:100])
        await self._ready.wait()
        request = DownloadRequest(repository, file, revision, name, copy)
        asks = copy is None and may_be_pinned(request, self._services)
        pin = await self._services.pin(repository, file) if asks else None
        async with self._request_lock:
            key = id_of(repository, file)
            if key in self._ledger:
                there = self._ledger[key]
                other = revision not in (None, MAIN, there.revision)
                if there.standing == "done":
                    known = await asyncio.to_thread(self._name_on_shelf, there)
                    other = known is None
                    if known not in (None, there.model):  # the model's original name was removed from the shelf
                        await self._ledger.change(key, model=known)
                if there.standing == "going" or not other:
                    await self._switch_source(there, request)
                    return await self._resume(key)
                await self._remove(key)
            record = new_record(request, self._services, pin)
            self._ledger.check_room(record)
            await self._ledger.add(record)
            self._go(key)
            return self.described(key)

    async def pause(self, download_id: str) -> Download:
        """Pause a download and keep its partial file."""
        async with self._request_lock:
            if self._ledger[download_id].standing == "going":
                await self._stop_task(download_id)
                if self._ledger[download_id].standing == "paused":  # the download may have ended meanwhile
                    await self._ledger.change(download_id, standing="paused")
            self._changed()
            return self.described(download_id)

    async def resume(self, download_id: str) -> Download:
        """Continue a download from its partial file, and clear its last error."""
        async with self._request_lock:
            return await self._resume(download_id)

    async def pause_all(self) -> dict[str, Download]:
        """Pause all downloads, and keep their partial files. Raises the first AppError, after all are paused."""
        first: AppError | None = None
        # the last first, because a paused one gives its turn to the next
        for record in reversed([record for record in self._ledger if record.standing == "going"]):
            if record.id in self._ledger:
                try:
                    await self.pause(record.id)
                except AppError as error:
                    first = first or error
        if first is not None:
            raise first
        return self.snapshot()

    async def resume_all(self) -> dict[str, Download]:
        """Continue all paused and failed downloads. A download that fails again reports its error."""
        for record in self._ledger:
            if record.standing in ("paused", "failed"):
                try:
                    await self.resume(record.id)
                except AppError as error:
                    if record.id in self._ledger:
                        await self._fail(record.id, error)
        return self.snapshot()

    async def move(self, download_id: str, before: str | None) -> dict[str, Download]:
        """Move a download in front of another, or to the end of the list. Downloads that are already running are
        not stopped.
        """
        async with self._request_lock:
            await self._ledger.move(download_id, before)
        self._changed()
        return self.snapshot()

    async def remove(self, download_id: str) -> RemoveDownloadResponse:
        """Cancel a download and delete its partial file. A completed download is only removed from the list."""
        async with self._request_lock:
            freed = await self._remove(download_id)
            return RemoveDownloadResponse(download_id, freed)

    def __contains__(self, download_id: str) -> bool:
        return download_id in self._ledger

    def name_of(self, download_id: str) -> str:
        """Return the name of a download, or "" if it is not on the list."""
        return self._ledger[download_id].name if download_id in self._ledger else ""

    def downloaded_hash(self, path: Path) -> str | None:
        """Return the SHA-256 of a file that this app downloaded, or None for any other file."""
        return self._ledger.book.sha256_of(path)

    async def forget(self, path: Path) -> int:
        """Delete a downloaded file that is no longer needed, together with its record. Return the bytes freed. Raises
        AppError."""
        sha256 = self.downloaded_hash(path)
        freed = await asyncio.to_thread(delete_model, path) if sha256 else 0
        for record in self._ledger:
            if record.sha256 == sha256 and record.standing == "done":
                await self.remove(record.id)
        return freed

    @asynccontextmanager
    async def suspended(self) -> AsyncIterator[None]:
        """Suspend active downloads while the block moves their files."""
        await self._ready.wait()
        async with self._request_lock:
            self._is_held = True
            for record in self._ledger:
                if record.standing == "going":
                    await self._stop_task(record.id)
                    self._ledger.show(record.id, standing="going")
        try:
            yield
        finally:
            self._is_held = False
            for record in self._ledger if self._ready.is_set() else ():
                if record.standing == "going" and record.id not in self._tasks:
                    self._go(record.id)

    async def try_again(self, codes: Collection[str], folders: Collection[str] | None = None) -> None:
        """Retry the downloads that failed for one of these reasons, optionally only in `folders`. A download that
        fails again reports its new error."""
        for record in self._ledger:
            where = folders is None or record.facts.get("folder") in folders
            if record.standing == "failed" and record.code in codes and where:
                try:
                    await self.resume(record.id)
                except AppError as error:
                    await self._fail(record.id, error)

    async def _resume_copies(self) -> None:
        """Resume failed copies whose source machine is connected again."""
        for record in () if self._is_held else self._ledger:
            waits = record.standing == "failed" and record.code in AWAY and record.machine
            if waits and self._services.is_near(waits):
                try:
                    await self.resume(record.id)
                except AppError as error:
                    await self._fail(record.id, error)

    async def _switch_source(self, there: Record, request: DownloadRequest) -> None:
        """Switch a download to the newly requested source, and keep its partial file. Raises AppError."""
        if there.standing == "done" or there.machine == (request.copy.machine if request.copy else None):
            return
        now = new_record(request, self._services)
        if request.copy and there.sha256 not in (None, now.sha256):
            raise BadInput("copy_no_hash", file=there.file, name=now.source)
        if there.standing == "going":
            await self._stop_task(there.id)
        fields = {"standing": "paused", "machine": now.machine, "source": now.source}
        if request.copy:
            fields |= {"sha256": now.sha256, "hash_from": there.hash_from or now.hash_from}
        await self._ledger.change(there.id, **fields)

    async def _resume(self, download_id: str) -> Download:
        record = self._ledger[download_id]
        if record.standing in ("paused", "failed"):
            self._ledger.check_room(record)
            await self._ledger.change(download_id, standing="going", code=None, facts={})
            self._go(download_id)
        return self.described(download_id)

    async def _remove(self, download_id: str) -> int:
        if download_id not in self._ledger:
            raise BadInput("download_unknown")
        await self._stop_task(download_id)
        record = self._ledger[download_id]
        freed = await self._ledger.drop(download_id)
        self._changed()
        if record.standing != "done":
            freed += await asyncio.to_thread(self._delete_unused, record)
        return freed

    def _go(self, download_id: str) -> None:
        self._ledger.live(download_id).waiting()
        if self._is_held:
            self._changed()
            return
        self._tasks[download_id] = self._group.create_task(self._download(download_id), name=f"download {download_id}")
        self._changed()

    async def _stop_task(self, download_id: str) -> None:
        """Stop a download and wait until its file is closed, even if canceled. The download is shown as paused."""
        task = self._tasks.pop(download_id, None)
        try:
            if task is not None:
                task.cancel()
                await _ended(task)
        finally:
            self._ledger.stopped(download_id)
            if self._ledger[download_id].standing == "going":
                self._ledger.show(download_id, standing="paused")
            self._changed()

    async def _download(self, download_id: str) -> None:
        """Run a download to completion. If it fails, save the error as the reason."""
        try:
            async with self._turns.turn(download_id):
                await self._fetch_and_shelve(download_id)
        except AppError as error:
            why = self._pin_error(download_id, error)
            await self._fail(download_id, await asyncio.to_thread(self._root_cause, download_id, why))
        except Exception as error:  # an unexpected error of one download must not end the node
            log.exception("the download %s failed", download_id)
            await self._fail(download_id, bug(error))
        finally:
            self._changed()

    async def _fetch_and_shelve(self, download_id: str) -> None:
        record, live = self._ledger[download_id], self._ledger.live(download_id)
        path = self._ledger.book.final_path(record)
        there = await asyncio.to_thread(whole_bytes, path)
        if not (record.sha256 and there):
            path = await Fetch(self._fetching(record), download_id).run()
        live.checking(await asyncio.to_thread(whole_bytes, path))
        self._changed()

        def tell(done: int, total: int) -> None:
            live.checked(done, total)
            self._changed()

        siblings = [
            self._ledger.book.final_path(other)
            for other in self._ledger
            if other.repository == record.repository and other.sha256 not in (None, record.sha256)
        ]
        try:
            entry = await in_thread(
                lambda hashed: self._shelf.import_file(path, hashed, name=record.name, siblings=siblings), tell
            )
        except BadInput as error:
            if error.reason.code.startswith("gguf"):  # the file is complete but not a model
                with contextlib.suppress(AppError):  # the original error is more important
                    await asyncio.to_thread(delete_model, path)
            raise
        await self._ledger.change(download_id, standing="done", model=entry.name)
        n_bytes = await asyncio.to_thread(whole_bytes, path)  # of this file, which may be the projector of the model
        live.finished(n_bytes)
        await self._pin(self._ledger[download_id], n_bytes)

    async def _pin(self, record: Record, n_bytes: int) -> None:
        """Pin the size and hash of a file whose hash the catalog does not list. Later downloads must then match."""
        listed = self._services.catalog().find(record.repository, record.file)
        if record.machine is None and listed is not None and listed[1].whole_hash is None:
            pin = pin_of(record, n_bytes, time.time())
            if pin is not None:
                await self._services.keep_pin(pin)

    def _pin_error(self, download_id: str, error: AppError) -> AppError:
        """Return the error to report: a specific one if the file differs from the household's first download,
        otherwise `error`."""
        record = self._ledger[download_id]
        codes = ("download_other_file", "download_other_size")
        if record.hash_from != "household" or error.reason.code not in codes:
            return error
        return Damaged("download_other_than_first", file=record.file, source=record.source)

    def _root_cause(self, download_id: str, error: AppError) -> AppError:
        """Return the error to report: Unreachable if the disk is disconnected, otherwise `error`."""
        try:
            self.book.ensure(self.book.folder_of(self._ledger[download_id]))
        except Unreachable as away:
            return away
        except AppError:
            return error
        return error

    def _fetching(self, record: Record) -> FetchServices:
        files = files_of(record, self._services, self._session)
        token = no_token if record.machine else self._services.token
        return FetchServices(self._ledger, files, self._disk, token, self._changed, self._waits, self.arrived)

    async def _fail(self, download_id: str, error: AppError) -> None:
        failed: dict[str, Any] = {"standing": "failed", "code": error.reason.code, "facts": error.reason.facts}
        try:
            await self._ledger.change(download_id, **failed)
        except (AppError, OSError):  # if the disk is full, the reason is shown but not saved
            log.warning("the state of the download %s could not be saved", download_id)
            self._ledger.show(download_id, **failed)
        self._ledger.stopped(download_id)

    def _name_on_shelf(self, record: Record) -> str | None:
        """Return the name of the downloaded file on the shelf, preferably its original name, or None if it is not
        there."""
        path = self._ledger.book.final_path(record).absolute()
        if not whole_bytes(path):
            return None
        names = [
            entry.name
            for entry in self._shelf.entries()
            if path in (Path(entry.path), Path(entry.model.projector.path) if entry.model.projector else None)
        ]
        return record.model if record.model in names else next(iter(names), None)

    def _delete_unused(self, record: Record) -> int:
        """Delete a complete file that is neither on the shelf nor used by another download. Return the bytes freed."""
        if record.sha256 is None or any(other.sha256 == record.sha256 for other in self._ledger):
            return 0
        if self._name_on_shelf(record) is not None:
            return 0
        return delete_model(self._ledger.book.final_path(record))


async def _ended(task: asyncio.Task[None]) -> None:
    """Wait until a task has ended, even if this wait is canceled."""
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError:
                continue
        raise
