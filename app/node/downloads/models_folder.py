"""The models folder: its location, its availability, and its move to another folder."""

from __future__ import annotations

import asyncio
import logging
import secrets
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from msgspec import structs

from app.api.downloads import FolderChoice, FolderMove, FormerFolder, ModelsFolderRoom
from app.api.downloads import ModelsFolder as ModelsFolderState
from app.catalog.files import Disk
from app.catalog.shelf import Entry, Shelf
from app.catalog.transfers.download_records import StoredModel, stored_models
from app.catalog.transfers.file_transfer import LEFT_FREE_BYTES
from app.catalog.transfers.move_model import delete_path, move_path, sweep_unfinished
from app.core.errors import AppError, BadInput, Busy, DoesNotFit, Reason
from app.core.reasons import os_cause, said, sentence
from app.machine.models_folders import ModelsFolders
from app.machine.settings import ModelsChoice, SettingsStore
from app.node.cancellation import in_thread
from app.node.downloads.downloads import Downloads
from app.node.downloads.transfer_rate import TransferRate

log = logging.getLogger(__name__)

IN_USE_LOOK_SECONDS = 1.0  # interval while the move waits for a loaded model
LOOK_SECONDS = 2.0
HANGS_SECONDS = 5.0  # a disconnected network drive may never respond
AWAY = frozenset({"models_folder_away", "models_folder_other"})
FULL = frozenset({"download_no_room", "disk_full"})  # another folder may help; a disconnected disk must return


@dataclass(frozen=True, slots=True)
class FolderServices:
    """The node services needed to move the models folder."""

    folders: ModelsFolders
    shelf: Shelf
    downloads: Downloads
    in_use: Callable[[], Collection[str]]  # IDs of the loaded models
    changed: Callable[[], None]
    disk: Disk


class Move:
    """A move of the models folder. Models that have not been moved yet remain usable in the old folder."""

    def __init__(self, services: FolderServices, *, whole: bool) -> None:
        """Prepare a move. If `whole` is set, complete models are moved as well. Otherwise, only unfinished downloads
        are moved.
        """
        self._services, self._whole = services, whole
        self.name, self.waits_for = "", ""
        self.given_up: set[Path] = set()  # former folders that are empty now
        self.done_bytes = self.total_bytes = 0
        self._twice = 0  # progress of one item, counted twice because its bytes are copied and then read back
        self._base = 0
        self._pace = TransferRate()

    def snapshot(self) -> FolderMove:
        """Return the progress of the move."""
        speed = self._pace.bytes_per_s()
        left = max(0, self.total_bytes - self.done_bytes)
        waits = Reason("models_move_waits", {"name": self.waits_for}) if self.waits_for else None
        return FolderMove(
            name=self.name,
            done_bytes=self.done_bytes,
            total_bytes=self.total_bytes,
            bytes_per_s=speed,
            seconds_left=round(left / speed) if speed else None,
            waits=sentence(waits),
            waits_facts=waits,
        )

    async def run(self) -> None:
        """Move everything. If canceled, stop immediately without losing a model. Raises AppError."""
        every = await asyncio.to_thread(self._services.downloads.book.in_other_folders)
        parts = [item for item in every if item.is_part]
        whole = [item for item in every if not item.is_part] if self._whole else []
        self.total_bytes = sum(item.n_bytes for item in (*parts, *whole))
        if parts:
            async with self._services.downloads.suspended():
                for item in parts:
                    await self._part(item)
        loaded = [item for item in whole if await asyncio.to_thread(self._user_of, item.path)]
        for item in [*(item for item in whole if item not in loaded), *loaded]:
            await self._model(item)
        await asyncio.to_thread(self._tidy)

    async def _part(self, held: StoredModel) -> None:
        self.name = self._services.downloads.name_of(held.path.stem)
        await self._carried(held)
        await asyncio.to_thread(self._dropped, held.path)
        if held.path.stem not in self._services.downloads:  # the download was canceled in the meantime
            await asyncio.to_thread(self._dropped, self._services.folders.now / held.path.name)

    async def _model(self, held: StoredModel) -> None:
        names = await asyncio.to_thread(self._names, held.path)
        self.name = names[0] if names else held.path.stem[:12]
        await self._until_unloaded(held.path)
        await self._carried(held)
        await self._until_unloaded(held.path)
        new = self._services.folders.now / held.path.name
        if names and not await asyncio.to_thread(self._names, held.path):  # the model was deleted in the meantime
            await asyncio.to_thread(self._dropped, new)
        else:
            await asyncio.to_thread(self._services.shelf.record_move, held.path, new)
        await asyncio.to_thread(self._dropped, held.path)
        self._services.changed()

    async def _carried(self, held: StoredModel) -> None:
        services, folder = self._services, self._services.folders.now
        self._base, self._twice = self.done_bytes, 0
        await asyncio.to_thread(self._check_room, held)
        work = partial(move_path, held.path, folder, services.disk)
        await in_thread(work, self._count)
        self.done_bytes = self._base + held.n_bytes
        self._pace.clear()
        services.changed()

    def _count(self, n_bytes: int) -> None:
        self._twice += n_bytes
        self.done_bytes = min(self.total_bytes, self._base + self._twice // 2)
        self._pace.mark(self.done_bytes)
        self._services.changed()

    def _check_room(self, held: StoredModel) -> None:
        """Check the free space again before moving a model. The disk may have filled up. Raises AppError."""
        services, folder = self._services, self._services.folders.now
        services.downloads.book.ensure(folder)
        if not same_disk(held.path, folder):
            check_room(folder, held.n_bytes, services.disk)

    async def _until_unloaded(self, path: Path) -> None:
        """Wait until the model that uses this file is unloaded."""
        try:
            while name := await asyncio.to_thread(self._user_of, path):
                self.waits_for = name
                self._services.changed()
                await asyncio.sleep(IN_USE_LOOK_SECONDS)
        finally:
            self.waits_for = ""

    def _user_of(self, path: Path) -> str | None:
        """Return the name of a loaded model that may use this file, or None."""
        used = self._services.in_use()
        entries = self._services.shelf.entries() if used else ()
        mine = (entry for entry in entries if entry.model.id in used and self._is_of(entry, path))
        return next((entry.name for entry in mine), None)

    def _names(self, path: Path) -> list[str]:
        return [entry.name for entry in self._services.shelf.entries() if self._is_of(entry, path)]

    @staticmethod
    def _is_of(entry: Entry, path: Path) -> bool:
        return path in (Path(entry.path), Path(entry.path).parent)

    def _dropped(self, path: Path) -> None:
        try:
            delete_path(path)
        except OSError as error:
            raise BadInput("models_move_left", path=str(path), why=os_cause(error)) from error

    def _tidy(self) -> None:
        """Remove empty former folders from the list."""
        folders = self._services.folders
        for folder in folders.all:
            if folder not in (folders.now, folders.own):
                try:
                    if folders.release(folder):
                        self.given_up.add(folder)
                except OSError as error:
                    log.info("the empty folder %s could not be removed: %s", folder, error)


def check_room(folder: Path, n_bytes: int, disk: Disk) -> None:
    """Raise DoesNotFit if less than 5 GiB would remain free in the folder after `n_bytes` are added."""
    free = disk.free_bytes(nearest_existing(folder))
    if n_bytes + LEFT_FREE_BYTES > free:
        raise DoesNotFit(
            "models_move_no_room", folder=str(folder), needed_bytes=n_bytes + LEFT_FREE_BYTES, free_bytes=free
        )


def same_disk(first: Path, other: Path) -> bool:
    """Return whether both folders are on the same disk, so that files can be moved between them by renaming."""
    try:
        return first.stat().st_dev == nearest_existing(other).stat().st_dev
    except OSError:
        return False


def nearest_existing(folder: Path) -> Path:
    """Return the folder, or its nearest existing parent."""
    return next((candidate for candidate in (folder, *folder.parents) if candidate.is_dir()), folder)


class ModelsFolder:
    """The models folder of a node. `run` monitors which folders are reachable and continues an unfinished move."""

    def __init__(self, services: FolderServices, choices: SettingsStore, root: Path) -> None:
        self._services, self._choices, self._root = services, choices, root
        self._folders = services.folders
        self._elsewhere: dict[Path, tuple[int, int]] = {}  # number and bytes of the models in each former folder
        self._looks: dict[Path, threading.Event] = {}  # set when the last check of that folder has returned
        self._move: Move | None = None
        self._why: Reason | None = None  # why the last move ended early
        self._task: asyncio.Task[None] | None = None
        self._request_lock, self._look_lock = asyncio.Lock(), asyncio.Lock()
        self._group: asyncio.TaskGroup | None = None
        self._begun = asyncio.Event()  # set when the saved state is loaded, so that folders may be chosen

    async def run(self) -> None:
        """Watch the folders until canceled."""
        await self._look()
        await asyncio.to_thread(self._repair_shelf)
        async with asyncio.TaskGroup() as group:
            self._group = group
            if moving := self._choice.moving:
                self._begin(moving)
            self._begun.set()
            while True:
                await asyncio.sleep(LOOK_SECONDS)
                await self._look()

    def snapshot(self) -> ModelsFolderState:
        """Return the folder and the models in former folders, without reading the disk."""
        folders, away = self._folders, self._folders.unreachable
        reason = away.get(folders.now)
        return ModelsFolderState(
            folder=str(folders.now),
            default=folders.now == folders.own,
            there=folders.now not in away,
            reason=sentence(reason),
            reason_facts=reason,
            elsewhere=[
                _former_folder(folder, held, away.get(folder))
                for folder, held in self._elsewhere.items()
                if held[0] or folder in away
            ],
            move=self._move.snapshot() if self._move else None,
            stopped=sentence(self._why),
            stopped_facts=self._why,
        )

    async def state(self) -> ModelsFolderRoom:
        """Return the folder and the free space on its disk."""
        folder = self._folders.now
        free = None
        if folder not in self._folders.unreachable:
            free = await asyncio.to_thread(lambda: self._services.disk.free_bytes(nearest_existing(folder)))
        known = structs.asdict(self.snapshot())
        return ModelsFolderRoom(**known, free_bytes=free, room_bytes=room_bytes(free))

    async def preview(self, path: str) -> FolderChoice:
        """Return what choosing this folder would do, without changing anything. Raises AppError."""
        return await asyncio.to_thread(self._judge, path)

    async def choose(self, path: str, *, move: bool, new: bool = False) -> ModelsFolderRoom:
        """Use this folder ("" for the default folder) for new files, and move unfinished downloads there. Raises
        AppError.

        move: also move complete models, which otherwise remain usable in their old folder.
        new: create the folder if it does not exist.
        """
        await self._begun.wait()
        async with self._request_lock:
            if self._move is not None:
                raise Busy("models_moving")
            owner = self._choice.owner or secrets.token_hex(16)
            await asyncio.to_thread(self._delete_partial)
            folder = await asyncio.to_thread(self._claimed, path, owner, move, new)
            same = folder == self._folders.now
            former = tuple(
                str(former_folder) for former_folder in self._folders.all if former_folder != self._folders.own
            )
            mine = "" if folder == self._folders.own else str(folder)
            moving: Literal["", "parts", "all"] = "all" if move else "" if same else "parts"
            chosen = ModelsChoice(
                mine, tuple(former_folder for former_folder in former if former_folder != mine), owner, moving
            )
            await self._chosen(chosen)
            log.info("the models folder is now %s", folder)
            if moving:
                self._begin(moving)
            return await self.state()

    async def move(self) -> ModelsFolderRoom:
        """Move the models in former folders to the current one, or continue an interrupted move. Raises AppError."""
        await self._begun.wait()
        async with self._request_lock:
            if self._move is None:
                await self._look()
                await asyncio.to_thread(self._check_all, self._folders.now)
                await self._chosen(structs.replace(self._choice, moving="all"))
                self._begin("all")
            return await self.state()

    async def stop(self) -> ModelsFolderRoom:
        """Stop the move. Models that were moved stay in the new folder, and the others in the old one. A partial copy
        is deleted."""
        async with self._request_lock:
            if self._move is not None and self._task is not None:
                self._task.cancel()
                await asyncio.wait({self._task})
                await self._ended()
            self._why = None
            await asyncio.to_thread(self._delete_partial)
            return await self.state()

    @property
    def _choice(self) -> ModelsChoice:
        return self._choices.now.models

    async def _chosen(self, choice: ModelsChoice) -> None:
        await self._choices.change(lambda now: structs.replace(now, models=choice))
        self._folders.use(choice)
        await self._look()

    def _begin(self, moving: str) -> None:
        assert self._group is not None
        self._why, self._move = None, Move(self._services, whole=moving == "all")
        self._task = self._group.create_task(self._carry_out(self._move), name="move models")
        self._services.changed()

    async def _carry_out(self, move: Move) -> None:
        why: Reason | None = None
        try:
            await move.run()
        except AppError as error:
            why = error.reason
            log.info("the move of the models ended: %s", why)
        except Exception:  # an unexpected error of a move must not end the node
            log.exception("the move of the models failed")
            why = Reason("bug")
        if why is None:
            await self._services.downloads.try_again(FULL)
        await self._ended(why)

    async def _ended(self, why: Reason | None = None) -> None:
        """Record that the move has ended. `why` is the reason to report if the move can be continued."""
        given_up = self._move.given_up if self._move else set[Path]()
        held = await asyncio.to_thread(self._former_in_use, given_up)
        try:
            await self._chosen(structs.replace(self._choice, moving="", former=held))
        except AppError as error:
            log.warning("the end of the move could not be saved: %s", said(error))
        self._move, self._why = None, why
        self._services.changed()

    def _former_in_use(self, given_up: Collection[Path]) -> tuple[str, ...]:
        """Return the former folders that still contain models or cannot be read."""
        away = self._folders.unreachable
        former = (folder for folder in map(Path, self._choice.former) if folder not in given_up)
        return tuple(
            str(former_folder) for former_folder in former if former_folder in away or any(stored_models(former_folder))
        )

    def _judge(self, path: str) -> FolderChoice:
        folders = self._folders
        folder = folders.resolve_choice(path, self._root)
        held = self._held(folder)
        n_bytes = sum(item.n_bytes for item in held)
        copied = sum(item.n_bytes for item in held if not same_disk(item.path, folder))
        free = self._services.disk.free_bytes(nearest_existing(folder))
        try:
            check_room(folder, copied, self._services.disk)
            fits = True
        except AppError:
            fits = not copied
        return FolderChoice(
            folder=str(folder),
            same=folder == folders.now,
            free_bytes=free,
            room_bytes=room_bytes(free),
            models=sum(not item.is_part for item in held),
            bytes=n_bytes,
            copied_bytes=copied,
            fits=fits,
        )

    def _claimed(self, path: str, owner: str, move: bool, new: bool) -> Path:
        folder = self._folders.resolve_choice(path, self._root, new=new)
        if move:
            self._check_all(folder)
        self._folders.claim(folder, owner)
        return folder

    def _check_all(self, folder: Path) -> None:
        held = self._held(folder)
        copied = sum(item.n_bytes for item in held if not same_disk(item.path, folder))
        if copied:
            check_room(folder, copied, self._services.disk)

    def _held(self, folder: Path) -> list[StoredModel]:
        """Return the models that would be moved to this folder."""
        near = (near_folder for near_folder in self._folders.all if near_folder not in self._folders.unreachable)
        return [held for former_folder in near if former_folder != folder for held in stored_models(former_folder)]

    async def _look(self) -> None:
        """Check which folders are reachable, report changes, and resume downloads that were waiting for a folder."""
        async with self._look_lock:  # concurrent checks would mistake each other's thread for a hung one
            await self._look_at_all()

    async def _look_at_all(self) -> None:
        folders = self._folders
        if len(folders.all) == 1 and not folders.unreachable and not self._elsewhere:
            return
        before = dict(folders.unreachable), dict(self._elsewhere)
        looks = {folder: await self._look_at(folder) for folder in folders.all}
        folders.unreachable = {folder: why for folder, (why, _) in looks.items() if why}
        self._elsewhere = {folder: held for folder, (_, held) in looks.items() if folder != folders.now}
        if before[0] != folders.unreachable:
            self._services.shelf.changes += 1  # makes the window reload the models
            back = before[0].keys() - folders.unreachable.keys()
            if back and self._group is not None:
                again = self._services.downloads.try_again(AWAY, {str(folder) for folder in back})
                self._group.create_task(again, name="resume downloads")
        if before != (folders.unreachable, self._elsewhere):
            self._services.changed()

    async def _look_at(self, folder: Path) -> tuple[Reason | None, tuple[int, int]]:
        """Return the reason if a folder is unreachable, and the number and total size of its models. Uses a separate
        thread, which hangs if the disk hangs."""
        away = Reason("models_folder_away", {"folder": str(folder)})
        known = self._elsewhere.get(folder, (0, 0))
        if (before := self._looks.get(folder)) and not before.is_set():
            return away, known
        loop = asyncio.get_running_loop()
        done: asyncio.Future[tuple[Reason | None, tuple[int, int]]] = loop.create_future()

        is_back = self._looks[folder] = threading.Event()

        def work() -> None:
            try:
                why = self._folders.check_reachable(folder)
                held = list(stored_models(folder)) if why is None else []
            finally:  # not `is_alive`, because a finished thread stays alive for a moment
                is_back.set()
            amount = sum(not item.is_part for item in held), sum(item.n_bytes for item in held)
            _tell(loop, done, (why, known if why else amount))

        threading.Thread(target=work, daemon=True).start()
        try:
            async with asyncio.timeout(HANGS_SECONDS):
                return await done
        except TimeoutError:
            return away, known

    def _delete_partial(self) -> None:
        """Delete the partial files of an earlier move."""
        for folder in self._folders.all:
            if folder not in self._folders.unreachable:
                sweep_unfinished(folder)

    def _repair_shelf(self) -> None:
        """Update the paths on the shelf if a move was interrupted before it could record the new path of a file."""
        folders, shelf = self._folders, self._services.shelf
        for entry in shelf.entries():
            path = Path(entry.path)
            place = folders.folder_of(path)
            if place is None or place in folders.unreachable or path.exists():
                continue
            inside = path.relative_to(place)
            for other in folders.all:
                if other not in folders.unreachable and (other / inside).exists():
                    shelf.record_move(path, other / inside)
                    break


def room_bytes(free: int | None) -> int | None:
    """Return how much of the free space a download may use, in bytes, or None if the free space is unknown."""
    return None if free is None else max(0, free - LEFT_FREE_BYTES)


def _tell(loop: asyncio.AbstractEventLoop, done: asyncio.Future[Any], result: object) -> None:
    """Set the result unless the wait for it has already ended. Called from a thread."""

    def told() -> None:
        if not done.done():
            done.set_result(result)

    try:
        loop.call_soon_threadsafe(told)
    except RuntimeError:  # the node has ended in the meantime
        log.debug("a disk answered too late")


def _former_folder(folder: Path, held: tuple[int, int], away: Reason | None) -> FormerFolder:
    models, n_bytes = held
    return FormerFolder(str(folder), models, n_bytes, away is None, sentence(away), away)
