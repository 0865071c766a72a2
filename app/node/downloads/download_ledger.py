"""The list of downloads: their records on disk, and their current activity."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any, Literal

from msgspec import structs

from app.api.downloads import Download
from app.catalog.files import Disk
from app.catalog.transfers.download_records import DownloadFolders, DownloadRecords, Record
from app.catalog.transfers.file_transfer import LEFT_FREE_BYTES, no_room, run_to_completion
from app.core.errors import BadInput, Reason
from app.core.reasons import sentence
from app.node.downloads.transfer_rate import TransferRate

Activity = Literal["waiting", "starting", "running", "checking", "nothing"]

TELL_SECONDS = 0.25


class DownloadProgress:
    """The current activity of one download. It is not saved, because the partial file shows the progress."""

    def __init__(self, done_bytes: int) -> None:
        self.done_bytes = done_bytes
        self.doing: Activity = "nothing"
        self.held_up: Reason | None = None  # why an active download receives no bytes
        self._pace = TransferRate()
        self._told = 0.0

    def waiting(self) -> None:
        self._set("waiting")

    def starting(self) -> None:
        self._set("starting")

    def checking(self, done_bytes: int) -> None:
        self._set("checking")
        self.done_bytes = done_bytes

    def checked(self, done: int, total: int) -> None:
        """Record the progress of the final hash check, limited to the size of the file."""
        self.done_bytes = min(done, total)
        self._pace.mark(self.done_bytes)

    def finished(self, file_bytes: int) -> None:
        self._set("nothing")
        self.done_bytes = file_bytes

    def stopped(self, done_bytes: int) -> None:
        self._set("nothing")
        self.done_bytes = done_bytes

    def hold_up(self, why: Reason | None) -> bool:
        """Record why the download is stalled, or None if bytes are arriving. Return whether the reason changed."""
        news, self.held_up = why != self.held_up, why
        return news

    def moved(self, done_bytes: int, is_flowing: bool) -> bool:
        """Record the number of bytes on disk. Return whether a progress report is due."""
        now = time.monotonic()
        if is_flowing and self.doing != "running":
            self._set("running")
        self.done_bytes = done_bytes
        if is_flowing:
            self._pace.mark(done_bytes)
        else:
            self._pace.clear()
        due = now - self._told >= TELL_SECONDS
        self._told = now if due else self._told
        return due

    def bytes_per_s(self) -> int | None:
        """Return the speed over the last few seconds, or None if it is unknown."""
        return self._pace.bytes_per_s() if self.doing in ("running", "checking") else None

    def _set(self, doing: Activity) -> None:
        self.doing = doing
        self.held_up = None
        self._pace.clear()
        self._told = 0.0


def _described(record: Record, live: DownloadProgress, place: int) -> Download:
    going = record.standing == "going"
    reason = Reason(record.code, record.facts) if record.code else None
    held_up = live.held_up if going else None
    speed = live.bytes_per_s()
    left = None
    if speed and record.total_bytes:
        left = round(max(0, record.total_bytes - live.done_bytes) / speed)
    return Download(
        id=record.id,
        name=record.name,
        repository=record.repository,
        file=record.file,
        parts=len(record.parts) or 1,
        revision=record.revision,
        source=record.source,
        machine=record.machine,
        state=(live.doing if live.doing != "nothing" else "waiting") if going else record.standing,
        done_bytes=record.total_bytes or live.done_bytes if record.standing == "done" else live.done_bytes,
        total_bytes=record.total_bytes,
        bytes_per_s=speed,
        seconds_left=left,
        reason=sentence(reason),
        reason_facts=reason,
        code=record.code,
        held_up=sentence(held_up),
        held_up_facts=held_up,
        sha256=record.sha256,
        hash_from=record.hash_from,
        model=record.model,
        started=record.started,
        place=place,
    )


class DownloadLedger:
    """The records of downloads by ID, in the order in which they run. All records are also saved on disk."""

    def __init__(self, places: DownloadFolders, disk: Disk) -> None:
        self.book, self._disk = DownloadRecords(places), disk
        self._records: dict[str, Record] = {}
        self._live: dict[str, DownloadProgress] = {}
        self._writing = asyncio.Lock()

    async def load(self) -> None:
        """Load the records saved by earlier runs."""
        for record in await asyncio.to_thread(lambda: list(self.book.all())):
            self._records[record.id] = record
            self._live[record.id] = DownloadProgress(self.book.done_bytes(record))

    def __iter__(self) -> Iterator[Record]:
        return iter([self._records[key] for key in self.order()])

    def __contains__(self, download_id: str) -> bool:
        return download_id in self._records

    def __getitem__(self, download_id: str) -> Record:
        """Return the record of a download. Raises BadInput if the ID is unknown."""
        if download_id not in self._records:
            raise BadInput("download_unknown")
        return self._records[download_id]

    def live(self, download_id: str) -> DownloadProgress:
        return self._live[download_id]

    def order(self) -> list[str]:
        """Return the IDs of all downloads in the order in which they run."""
        return sorted(self._records, key=lambda key: self._records[key].rank)

    def snapshot(self) -> dict[str, Download]:
        """Return the state of each download by ID, in the order in which they run."""
        return {key: self._placed(key, place) for place, key in enumerate(self.order())}

    def described(self, download_id: str) -> Download:
        """Return the state of a download. Raises BadInput if the ID is unknown."""
        return self._placed(download_id, self.order().index(self[download_id].id))

    def _placed(self, download_id: str, place: int) -> Download:
        return _described(self[download_id], self._live[download_id], place)

    async def move(self, download_id: str, before: str | None) -> None:
        """Move a download in front of another, or to the end. Raises BadInput, or AppError if the new order cannot
        be saved.
        """
        async with self._writing:
            if before == self[download_id].id:
                return
            order = [key for key in self.order() if key != download_id]
            order.insert(len(order) if before is None else order.index(self[before].id), download_id)
            # all are numbered anew, because a number between two others does not exist after many moves
            moved = [structs.replace(self._records[key], place=float(place)) for place, key in enumerate(order)]
            changed = [record for record in moved if record != self._records[record.id]]

            def write() -> None:
                for record in changed:
                    self.book.write(record)

            await run_to_completion(write)
            for record in changed:
                self.show(record.id, place=record.place)

    async def add(self, record: Record) -> None:
        """Add a record. Raises AppError if it cannot be written to disk."""
        async with self._writing:
            if self._records and (last := max(self._records.values(), key=lambda other: other.rank)).rank > record.rank:
                record = structs.replace(record, place=last.rank[0] + 1)  # after one that was moved to the end
            await run_to_completion(lambda: self.book.write(record))
        self._live[record.id] = DownloadProgress(self.book.done_bytes(record))
        self._records[record.id] = record

    async def change(self, download_id: str, **fields: Any) -> None:
        """Change a record. If it cannot be written to disk, raise AppError and change nothing."""
        async with self._writing:
            changed = structs.replace(self[download_id], **fields)
            await run_to_completion(lambda: self.book.write(changed))
            if download_id in self._records:  # the download may have been removed in the meantime
                self._records[download_id] = changed

    def show(self, download_id: str, **fields: Any) -> None:
        """Change a record in memory without saving it."""
        self._records[download_id] = structs.replace(self[download_id], **fields)

    async def drop(self, download_id: str) -> int:
        """Delete a download's partial file and record, and return the bytes freed. If this raises AppError, the record
        is kept."""
        async with self._writing:
            freed = await run_to_completion(lambda: self.book.remove(download_id))
            self._records.pop(download_id, None)
            self._live.pop(download_id, None)
            return freed

    def stopped(self, download_id: str) -> None:
        """Mark a download as idle, and update its progress from the disk."""
        if live := self._live.get(download_id):
            live.stopped(self.book.done_bytes(self._records[download_id]))

    def check_room(self, record: Record) -> None:
        """Check that a download of known size will fit on the disk. Raises DoesNotFit."""
        if record.total_bytes is None:
            return
        needed = record.total_bytes - self.book.done_bytes(record)
        room = self.room_bytes(record)
        if needed > 0 and needed + LEFT_FREE_BYTES > room:
            raise no_room(self.book.folder_of(record), needed, room)

    def room_bytes(self, record: Record) -> int:
        """Return the disk space available to a download, after subtracting the space that other active downloads still
        need. A download that is being checked needs none.

        Raises Unreachable if the disk is not connected.
        """
        folder = self.book.folder_of(record)
        self.book.ensure(folder)
        reserved_bytes = sum(
            max(0, (other.total_bytes or 0) - self._live[other.id].done_bytes)
            for other in self._records.values()
            if other.id != record.id and other.standing == "going" and self._live[other.id].doing != "checking"
        )
        return self._disk.free_bytes(folder) - reserved_bytes
