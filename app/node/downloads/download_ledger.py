"""Every download on the list: what is kept of it on the disk, and what it does at this moment."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from msgspec import structs

from app.catalog.files import Disk
from app.catalog.transfers.download_records import Book, Places, Record
from app.catalog.transfers.file_transfer import LEFT_FREE_BYTES, no_room, to_its_end
from app.core.errors import BadInput
from app.node.downloads.download_state import Live, download_json

Json = dict[str, Any]


class Ledger:
    """Records by id, the oldest first. What is seen of them is on the disk, too."""

    def __init__(self, places: Places, disk: Disk) -> None:
        self.book, self._disk = Book(places), disk
        self._records: dict[str, Record] = {}
        self._live: dict[str, Live] = {}
        self._writing = asyncio.Lock()

    async def load(self) -> None:
        """What an earlier node left."""
        for record in await asyncio.to_thread(lambda: list(self.book.all())):
            self._records[record.id] = record
            self._live[record.id] = Live(self.book.done_bytes(record))

    def __iter__(self) -> Iterator[Record]:
        return iter(list(self._records.values()))

    def __contains__(self, download_id: str) -> bool:
        return download_id in self._records

    def __getitem__(self, download_id: str) -> Record:
        """Raises BadInput for one that is not on the list."""
        if download_id not in self._records:
            raise BadInput("download_unknown")
        return self._records[download_id]

    def live(self, download_id: str) -> Live:
        return self._live[download_id]

    def json(self) -> dict[str, Json]:
        """For the snapshot."""
        return {key: self.one(key) for key in self._records}

    def one(self, download_id: str) -> Json:
        return download_json(self[download_id], self._live[download_id])

    async def add(self, record: Record) -> None:
        """Put it on the list. Raises AppError where the disk does not take it."""
        async with self._writing:
            await to_its_end(lambda: self.book.write(record))
        self._live[record.id] = Live(self.book.done_bytes(record))
        self._records[record.id] = record

    async def change(self, download_id: str, **fields: Any) -> None:
        """Change a record. Raises AppError where the disk does not take it; then nothing is changed."""
        async with self._writing:
            changed = structs.replace(self[download_id], **fields)
            await to_its_end(lambda: self.book.write(changed))
            if download_id in self._records:  # not dropped meanwhile
                self._records[download_id] = changed

    def show(self, download_id: str, **fields: Any) -> None:
        """Change what is seen of a record and not what is kept."""
        self._records[download_id] = structs.replace(self[download_id], **fields)

    async def drop(self, download_id: str) -> int:
        """Delete its part and take it off the list; how many bytes that freed. Raises AppError; then it stays."""
        async with self._writing:
            freed = await to_its_end(lambda: self.book.remove(download_id))
            self._records.pop(download_id, None)
            self._live.pop(download_id, None)
            return freed

    def stopped(self, download_id: str) -> None:
        """Nothing is done for it now; the disk says how much is here."""
        if live := self._live.get(download_id):
            live.stopped(self.book.done_bytes(self._records[download_id]))

    def check_room(self, record: Record) -> None:
        """Refuse what will not fit, as far as its size is known. Raises DoesNotFit."""
        if record.total_bytes is None:
            return
        needed = record.total_bytes - self.book.done_bytes(record)
        room = self.room_bytes(record)
        if needed > 0 and needed + LEFT_FREE_BYTES > room:
            raise no_room(self.book.folder_of(record), needed, room)

    def room_bytes(self, record: Record) -> int:
        """Bytes free for a download, when the others that go on get theirs; one that is checked is whole.

        Raises Unreachable while its disk is away.
        """
        folder = self.book.folder_of(record)
        self.book.ensure(folder)
        others = sum(
            max(0, (one.total_bytes or 0) - self._live[one.id].done_bytes)
            for one in self._records.values()
            if one.id != record.id
            and one.standing == "going"
            and self._live[one.id].doing != "checking"
        )
        return self._disk.free_bytes(folder) - others
