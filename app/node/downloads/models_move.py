"""Brings models to the chosen folder, one after another: each is used where it is until it is whole there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from app.catalog.files import Disk
from app.catalog.shelf import Entry, Shelf
from app.catalog.transfers.download_records import Held
from app.catalog.transfers.file_transfer import LEFT_FREE_BYTES
from app.catalog.transfers.move_model import carry, drop
from app.core.errors import AppError, BadInput, DoesNotFit, Reason
from app.core.reasons import said, with_reason
from app.machine.models_folders import ModelsFolders
from app.node.cancellation import in_thread
from app.node.downloads.downloads import Downloads
from app.node.downloads.transfer_rate import TransferRate

log = logging.getLogger(__name__)

Json = dict[str, Any]
LOOK_SECONDS = 1.0  # for a loaded model that keeps its file


@dataclass(frozen=True, slots=True)
class Around:
    """What a move needs of the node."""

    folders: ModelsFolders
    shelf: Shelf
    downloads: Downloads
    in_use: Callable[[], Collection[str]]  # the ids of the models that are loaded
    changed: Callable[[], None]
    disk: Disk


class Move:
    """One run of it. What it has not come to stays where it is, and is used there."""

    def __init__(self, around: Around, *, whole: bool) -> None:
        """whole: also models that are whole; else only downloads that are not."""
        self._around, self._whole = around, whole
        self.name, self.waits_for = "", ""
        self.given_up: set[Path] = set()  # former folders that hold nothing more
        self.done_bytes = self.total_bytes = 0
        self._twice = 0  # every byte is copied, and read back
        self._base = 0
        self._pace = TransferRate()

    def json(self) -> Json:
        speed = self._pace.bytes_per_s()
        left = max(0, self.total_bytes - self.done_bytes)
        waits = Reason("models_move_waits", {"name": self.waits_for}) if self.waits_for else None
        return {
            "name": self.name,
            "done_bytes": self.done_bytes,
            "total_bytes": self.total_bytes,
            "bytes_per_s": speed,
            "seconds_left": round(left / speed) if speed else None,
            **with_reason("waits", waits),
        }

    async def run(self) -> None:
        """To its end. Raises AppError; cancelled, it ends between two bytes, and nothing is lost."""
        every = await asyncio.to_thread(self._around.downloads.book.elsewhere)
        parts = [one for one in every if one.is_part]
        whole = [one for one in every if not one.is_part] if self._whole else []
        self.total_bytes = sum(one.n_bytes for one in (*parts, *whole))
        if parts:
            async with self._around.downloads.held():
                for one in parts:
                    await self._part(one)
        loaded = [one for one in whole if await asyncio.to_thread(self._user_of, one.path)]
        for one in [*(one for one in whole if one not in loaded), *loaded]:
            await self._model(one)
        await asyncio.to_thread(self._tidy)

    # inside

    async def _part(self, held: Held) -> None:
        self.name = self._around.downloads.name_of(held.path.stem)
        await self._carried(held)
        await asyncio.to_thread(self._dropped, held.path)
        if held.path.stem not in self._around.downloads:  # cancelled meanwhile
            await asyncio.to_thread(self._dropped, self._around.folders.now / held.path.name)

    async def _model(self, held: Held) -> None:
        names = await asyncio.to_thread(self._names, held.path)
        self.name = names[0] if names else held.path.stem[:12]
        await self._until_unloaded(held.path)
        await self._carried(held)
        await self._until_unloaded(held.path)
        new = self._around.folders.now / held.path.name
        if names and not await asyncio.to_thread(self._names, held.path):  # deleted meanwhile
            await asyncio.to_thread(self._dropped, new)
        else:
            await asyncio.to_thread(self._around.shelf.follow, held.path, new)
        await asyncio.to_thread(self._dropped, held.path)
        self._around.changed()

    async def _carried(self, held: Held) -> None:
        around, folder = self._around, self._around.folders.now
        self._base, self._twice = self.done_bytes, 0
        await asyncio.to_thread(self._check_room, held)
        work = partial(carry, held.path, folder, around.disk)
        await in_thread(work, self._count)
        self.done_bytes = self._base + held.n_bytes
        self._pace.clear()
        around.changed()

    def _count(self, n_bytes: int) -> None:
        self._twice += n_bytes
        self.done_bytes = min(self.total_bytes, self._base + self._twice // 2)
        self._pace.mark(self.done_bytes)
        self._around.changed()

    def _check_room(self, held: Held) -> None:
        """Before each: the disk may be fuller now. Raises AppError."""
        around, folder = self._around, self._around.folders.now
        around.downloads.book.ensure(folder)
        if not same_disk(held.path, folder):
            check_room(folder, held.n_bytes, around.disk)

    async def _until_unloaded(self, path: Path) -> None:
        """The file of a loaded model stays until it is unloaded."""
        try:
            while name := await asyncio.to_thread(self._user_of, path):
                self.waits_for = name
                self._around.changed()
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            self.waits_for = ""

    def _user_of(self, path: Path) -> str | None:
        """The model that is loaded and may read this file; the same bytes may have another name, too."""
        used = self._around.in_use()
        entries = self._around.shelf.entries() if used else ()
        mine = (one for one in entries if one.model.id in used and self._is_of(one, path))
        return next((one.name for one in mine), None)

    def _names(self, path: Path) -> list[str]:
        return [one.name for one in self._around.shelf.entries() if self._is_of(one, path)]

    @staticmethod
    def _is_of(entry: Entry, path: Path) -> bool:
        return path in (Path(entry.path), Path(entry.path).parent)

    def _dropped(self, path: Path) -> None:
        try:
            drop(path)
        except OSError as error:
            why = error.strerror or str(error)
            raise BadInput("models_move_left", path=str(path), why=why) from error

    def _tidy(self) -> None:
        """A former folder that is empty is no more ours."""
        folders = self._around.folders
        for folder in folders.all:
            if folder not in (folders.now, folders.own):
                try:
                    if folders.give_up(folder):
                        self.given_up.add(folder)
                except OSError as error:
                    log.info("the empty folder %s stays: %s", folder, error)


def check_room(folder: Path, n_bytes: int, disk: Disk) -> None:
    """Raises DoesNotFit where fewer than 5 GiB would stay free."""
    free = disk.free_bytes(existing(folder))
    if n_bytes + LEFT_FREE_BYTES > free:
        raise DoesNotFit(
            "models_move_no_room", folder=str(folder), needed_bytes=n_bytes + LEFT_FREE_BYTES, free_bytes=free
        )


def same_disk(one: Path, other: Path) -> bool:
    """Whether a rename does it, as far as the system tells."""
    try:
        return one.stat().st_dev == existing(other).stat().st_dev
    except OSError:
        return False


def existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists."""
    return next((one for one in (folder, *folder.parents) if one.is_dir()), folder)


def sentence_of(error: AppError) -> str:
    """Why a move ended early."""
    log.info("the move of the models ended: %s", said(error))
    return said(error)
