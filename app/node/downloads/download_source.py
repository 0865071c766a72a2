"""The source of a download (the hub or another machine of the household), and the expected sizes and hashes of its
files."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import aiohttp
from aiohttp import ClientSession

from app.catalog.files import Disk, part_bytes
from app.catalog.gguf.gguf_file import part_names
from app.catalog.hub.hub_address import MAIN, Hub
from app.catalog.hub.hub_files import FileFacts, FileRequest, HubFiles, OutageWatch
from app.catalog.model_catalog import Catalog, OfferedFile, OfferedModel
from app.catalog.transfers.download_records import PartFacts, Record, id_of, joint_hash
from app.catalog.transfers.file_transfer import (
    DownloadTarget,
    FileClient,
    PartialFile,
    Transfer,
    TransferHooks,
    run_to_completion,
)
from app.catalog.transfers.hash_pins import Pin
from app.core.errors import BadInput, Busy, Damaged, Reason, Refused, Unreachable
from app.node.downloads.download_ledger import DownloadLedger

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FetchServices:
    """The services that a fetch uses."""

    ledger: DownloadLedger
    files: FileClient
    disk: Disk
    token: Callable[[], Awaitable[str | None]]
    changed: Callable[[], None]
    waits: tuple[float, ...]  # delays between tries in seconds
    arrived: Callable[[int], Awaitable[None]]  # as in `Hooks` of app/catalog/transfers/file_transfer.py


class Fetch:
    """Fetches the files of one download."""

    def __init__(self, services: FetchServices, download_id: str) -> None:
        self._services, self._id = services, download_id
        self._ledger, self._live = services.ledger, services.ledger.live(download_id)

    async def run(self) -> Path:
        """Fetch the model and return its path, or the path of its first file. Raises AppError."""
        book, folder = self._ledger.book, self._ledger.book.folder_of(self._record)
        # raises if the disk is disconnected, so that no folder is created in its place
        await run_to_completion(lambda: book.ensure(folder))
        if not self._record.parts:
            return await self._single()
        await self._fetch_all_facts()
        before = 0
        for number in range(len(self._record.parts)):
            before += await self._part(number, before)
        record = self._record
        return await run_to_completion(lambda: self._ledger.book.assemble(record))

    @property
    def _record(self) -> Record:
        return self._ledger[self._id]

    # a model in one file

    async def _single(self) -> Path:
        record, book = self._record, self._ledger.book
        part = PartialFile(book.partial_path(record.id), self._services.disk)

        async def learnt(target: DownloadTarget) -> None:
            await self._ledger.change(
                self._id,
                revision=target.request.revision,
                total_bytes=target.total_bytes,
                sha256=target.sha256,
                hash_from=record.hash_from or ("server" if target.sha256 else None),
            )

        target = DownloadTarget(self._file_request(record.file), record.total_bytes, record.sha256)
        transfer = self._transfer(target, part, learnt, 0)
        path = await transfer.run(lambda sha256: part.path.with_name(book.complete_path(sha256).name))
        await self._ledger.change(self._id, sha256=transfer.target.sha256)
        return path

    # a model in several files

    async def _fetch_all_facts(self) -> None:
        """Request the sizes and hashes of all files first, so that progress covers the whole model and disk space is
        checked only once."""
        names, parts = part_names(self._record.file), list(self._record.parts)
        for number, (name, known) in enumerate(zip(names, parts, strict=True)):
            if known.total_bytes and known.sha256:
                continue
            answer = await self._file_facts(self._file_request(name))
            parts[number] = self._agreed(name, known, answer)
            await self._ledger.change(self._id, parts=tuple(parts), revision=answer.commit or self._record.revision)
        now, sha256 = self._record, joint_hash(part.sha256 for part in parts)
        total = sum(part.total_bytes or 0 for part in parts)
        if now.total_bytes not in (None, total):
            source = self._services.files.place.host
            raise Damaged(
                "download_other_size", file=now.file, source=source, found_bytes=total, known_bytes=now.total_bytes or 0
            )
        await self._ledger.change(
            self._id, total_bytes=total, sha256=sha256, hash_from=now.hash_from or ("server" if sha256 else None)
        )
        self._ledger.check_room(self._record)

    async def _file_facts(self, file: FileRequest) -> FileFacts:
        """Return the size and hash of a file as reported by the source. Retries if the connection breaks."""
        outage_watch = OutageWatch(self._services.files.place, self._held_up)
        self._live.starting()
        for tries, wait_s in enumerate((*self._services.waits, None), 1):
            token = await self._services.token()
            try:
                with outage_watch.waiting_for_response():
                    answer = await self._services.files.facts_of(file, token)
            except (Unreachable, Busy, aiohttp.ClientError, ConnectionError, TimeoutError) as error:
                log.info("the request about %s failed: %s", file.file, error)
                if wait_s is None:
                    raise outage_watch.final_error(error, tries) from error
                outage_watch.failed(error)
                await asyncio.sleep(wait_s)
            else:
                outage_watch.responded()
                return answer
        raise AssertionError("the last try ends the loop")

    def _agreed(self, name: str, known: PartFacts, answer: FileFacts) -> PartFacts:
        source = self._services.files.place.host
        total = known.total_bytes or answer.total_bytes
        if not total:
            raise BadInput("download_no_size", file=name, source=source)
        if known.sha256 is not None and answer.sha256 not in (None, known.sha256):
            raise Damaged("download_other_file", file=name, source=source)
        return PartFacts(total, known.sha256 or answer.sha256)

    async def _part(self, number: int, before: int) -> int:
        """Fetch one of several files, unless it is already complete, and return its size. `before` is the total size
        of the preceding files."""
        record, book = self._record, self._ledger.book
        facts, final = record.parts[number], book.part_path(record, number)
        if facts.total_bytes and facts.sha256 and part_bytes(final) == facts.total_bytes:
            return facts.total_bytes
        part = PartialFile(final.with_name(final.name + ".part"), self._services.disk)

        async def learnt(target: DownloadTarget) -> None:
            await self._note(number, PartFacts(target.total_bytes, target.sha256))

        name = part_names(record.file)[number]
        target = DownloadTarget(self._file_request(name), facts.total_bytes, facts.sha256)
        transfer = self._transfer(target, part, learnt, before)
        await transfer.run(lambda _: final)
        await self._note(number, PartFacts(part.n_bytes, transfer.target.sha256))
        return part.n_bytes

    async def _note(self, number: int, facts: PartFacts) -> None:
        """Record the size and hash of one file. Once all files are known, record the joint hash of the model."""
        parts = list(self._record.parts)
        parts[number] = facts
        sha256 = joint_hash(part.sha256 for part in parts)
        await self._ledger.change(self._id, parts=tuple(parts), sha256=sha256)

    # both kinds of models

    def _file_request(self, file: str) -> FileRequest:
        return FileRequest(self._record.repository, file, self._record.revision)

    def _held_up(self, why: Reason | None) -> None:
        if self._live.hold_up(why):
            self._services.changed()

    def _transfer(
        self,
        target: DownloadTarget,
        part: PartialFile,
        learnt: Callable[[DownloadTarget], Awaitable[None]],
        before: int,
    ) -> Transfer:
        def moved() -> None:
            if self._live.moved(before + part.n_bytes, transfer.is_flowing):
                self._services.changed()

        def room_bytes() -> int:
            return self._ledger.room_bytes(self._record)

        services = self._services
        hooks = TransferHooks(services.token, learnt, moved, room_bytes, self._held_up, services.arrived)
        transfer = Transfer(self._services.files, target, part, hooks, self._services.waits)
        self._live.starting()
        self._services.changed()
        return transfer


def new_parts(file: str, known: tuple[PartFacts, ...] = ()) -> tuple[PartFacts, ...]:
    """Return the sizes and hashes that are known before the source is asked, or () for a model in one file."""
    names = part_names(file)
    if len(names) == 1:
        return ()
    return known if len(known) == len(names) else (PartFacts(),) * len(names)


@dataclass(frozen=True, slots=True)
class PeerCopy:
    """A copy of a file on another machine of the household. The copied bytes are verified by their hash."""

    machine: str  # ID of the machine
    name: str
    sha256: str | None = None  # set if the catalog does not list the file


def no_members(_: Record) -> FileClient:
    """Raise the error for a copy that is requested while this machine has no household. This is the default of
    `member`.
    """
    raise Refused("copy_not_offered", name="")


async def no_pin(repository: str, file: str) -> Pin | None:
    """Return None. This is the default of `pin`."""
    return None


async def keep_no_pin(pin: Pin) -> None:
    """Ignore the pin. This is the default of `keep_pin`."""


@dataclass(frozen=True, slots=True)
class DownloadServices:
    """The node services that downloads need."""

    hub: Callable[[], Hub]  # may raise AppError
    catalog: Callable[[], Catalog]
    token: Callable[[], Awaitable[str | None]]
    changed: Callable[[], None]  # called when the snapshot has changed
    contacted: Callable[[], None] = lambda: None  # called when the hub is contacted
    member: Callable[[Record], FileClient] = no_members  # returns the files of the machine to copy from
    is_near: Callable[[str], bool] = lambda _: False  # returns whether that machine is connected
    pin: Callable[[str, str], Awaitable[Pin | None]] = no_pin  # returns the household's pin of a file
    keep_pin: Callable[[Pin], Awaitable[None]] = keep_no_pin


@dataclass(frozen=True, slots=True)
class DownloadRequest:
    """The user's request, with validated names. If `revision` is None, use the revision in the catalog, or else the
    newest."""

    repository: str
    file: str
    revision: str | None
    name: str
    copy: PeerCopy | None = None


def new_record(request: DownloadRequest, services: DownloadServices, pin: Pin | None = None) -> Record:
    """Return the record of a new download, with the size and hash from the catalog or else from the household's pin.

    Raises AppError."""
    known = catalog_entry(services.catalog(), request.repository, request.file, request.revision)
    of_parts = known[1].parts if known else ()
    facts = tuple(PartFacts(part.size_bytes, part.sha256) for part in of_parts)
    parts = new_parts(request.file, facts)
    sha256 = joint_hash(part.sha256 for part in parts)
    if known and not parts:
        sha256 = known[1].sha256
    hash_from: Literal["catalog", "server"] | None = "catalog" if sha256 else None
    copy = request.copy
    if copy and not sha256 and copy.sha256 and not parts:
        sha256, hash_from = copy.sha256, "server"  # the hash comes from the hub's listing
    if copy and (sha256 is None or copy.sha256 not in (None, sha256)):
        raise BadInput("copy_no_hash", file=request.file, name=copy.name)
    if pin is not None and not sha256:
        return _pinned(request, services, pin)
    return Record(
        id=id_of(request.repository, request.file),
        repository=request.repository,
        file=request.file,
        revision=known[0].revision if known else request.revision or MAIN,
        name=request.name,
        source=copy.name if copy else services.hub().host,
        started=time.time(),
        total_bytes=known[1].size_bytes if known and known[0].is_pinned else None,
        sha256=sha256,
        hash_from=hash_from,
        parts=parts,
        machine=copy.machine if copy else None,
    )


def _pinned(request: DownloadRequest, services: DownloadServices, pin: Pin) -> Record:
    return Record(
        id=id_of(request.repository, request.file),
        repository=request.repository,
        file=request.file,
        revision=pin.revision,
        name=request.name,
        source=services.hub().host,
        started=time.time(),
        total_bytes=pin.total_bytes,
        sha256=pin.sha256,
        hash_from="household",
        parts=pin.parts,
    )


def may_be_pinned(request: DownloadRequest, services: DownloadServices) -> bool:
    """Return whether the catalog lists the file without its hash."""
    known = catalog_entry(services.catalog(), request.repository, request.file, request.revision)
    return known is not None and known[1].whole_hash is None


def catalog_entry(
    catalog: Catalog, repository: str, file: str, revision: str | None
) -> tuple[OfferedModel, OfferedFile] | None:
    """Return the catalog entry of a file, or None if the catalog does not list the file in this revision."""
    known = catalog.find(repository, file)
    if known and revision not in (None, MAIN, known[0].revision):
        return None
    return known


def files_of(record: Record, services: DownloadServices, session: ClientSession) -> FileClient:
    """Return the source of a download's files. Raises AppError."""
    if record.machine is not None:
        return services.member(record)
    services.contacted()
    return HubFiles(services.hub(), session)


async def no_token() -> None:
    """Return None. The token is for the hub and is never sent to machines of the household."""
