"""The folder of models as a face sees it: where it is, whether it can be reached, choosing another, the move."""

from __future__ import annotations

import asyncio
import logging
import secrets
import threading
from collections.abc import Collection
from pathlib import Path
from typing import Any, Literal

from msgspec import structs

from app.catalog.transfers.download_records import Held, held_in
from app.catalog.transfers.file_transfer import LEFT_FREE_BYTES
from app.catalog.transfers.move_model import swept
from app.core.errors import AppError, Busy, Reason
from app.core.reasons import said
from app.machine.settings import Choices, ModelsChoice
from app.node.downloads.models_move import Around, Move, check_room, existing, same_disk, sentence_of

log = logging.getLogger(__name__)

Json = dict[str, Any]
LOOK_SECONDS = 2.0
HANGS_SECONDS = 5.0  # a network drive that is gone may never answer
AWAY = frozenset({"models_folder_away", "models_folder_other"})
FULL = frozenset({"download_no_room", "disk_full"})  # another folder may help; a disk that is away is waited for


class ModelsFolder:
    """One for each node; `run` looks whether the folders are there, and goes on with a move."""

    def __init__(self, around: Around, choices: Choices, root: Path) -> None:
        self._around, self._choices, self._root = around, choices, root
        self._folders = around.folders
        self._elsewhere: dict[Path, tuple[int, int]] = {}  # models and bytes in each
        self._looks: dict[Path, threading.Event] = {}  # the last one of each; set: it came back
        self._move: Move | None = None
        self._why: str | None = None  # the last move ended early
        self._task: asyncio.Task[None] | None = None
        self._hands, self._eyes = asyncio.Lock(), asyncio.Lock()
        self._group: asyncio.TaskGroup | None = None
        self._begun = asyncio.Event()  # what the last start left is taken up: now one may choose

    async def run(self) -> None:
        """Until cancelled."""
        await self._look()
        await asyncio.to_thread(self._mend)
        async with asyncio.TaskGroup() as group:
            self._group = group
            if moving := self._choice.moving:
                self._begin(moving)
            self._begun.set()
            while True:
                await asyncio.sleep(LOOK_SECONDS)
                await self._look()

    def json(self) -> Json:
        """For the snapshot; asks no disk."""
        folders, away = self._folders, self._folders.known_away
        return {
            "folder": str(folders.now),
            "default": folders.now == folders.own,
            "there": folders.now not in away,
            "reason": _said(away.get(folders.now)),
            "elsewhere": [
                _elsewhere_json(one, held, away.get(one))
                for one, held in self._elsewhere.items()
                if held[0] or one in away
            ],
            "move": self._move.json() if self._move else None,
            "stopped": self._why,
        }

    async def told(self) -> Json:
        """With the room on its disk."""
        folder = self._folders.now
        free = None
        if folder not in self._folders.known_away:
            free = await asyncio.to_thread(lambda: self._around.disk.free_bytes(existing(folder)))
        return {**self.json(), "free_bytes": free, "room_bytes": room_bytes(free)}

    async def look(self, path: str) -> Json:
        """What choosing this folder would mean; nothing is changed. Raises AppError."""
        return await asyncio.to_thread(self._judge, path)

    async def choose(self, path: str, *, move: bool, new: bool = False) -> Json:
        """New files go to this folder ("": the one in the home) from now on. Unfinished downloads come along,
        and with `move` the models, too; else they stay, and are used, where they are. With `new` it may be one
        that is to be made. Raises AppError."""
        await self._begun.wait()
        async with self._hands:
            if self._move is not None:
                raise Busy("models_moving")
            owner = self._choice.owner or secrets.token_hex(16)
            await asyncio.to_thread(self._sweep)
            folder = await asyncio.to_thread(self._claimed, path, owner, move, new)
            same = folder == self._folders.now
            former = tuple(str(one) for one in self._folders.all if one != self._folders.own)
            mine = "" if folder == self._folders.own else str(folder)
            moving: Literal["", "parts", "all"] = "all" if move else "" if same else "parts"
            chosen = ModelsChoice(mine, tuple(one for one in former if one != mine), owner, moving)
            await self._chosen(chosen)
            log.info("models are kept in %s from now on", folder)
            if moving:
                self._begin(moving)
            return await self.told()

    async def move(self) -> Json:
        """Bring what lies elsewhere, or go on with that. Raises AppError."""
        await self._begun.wait()
        async with self._hands:
            if self._move is None:
                await self._look()
                await asyncio.to_thread(self._check_all, self._folders.now)
                await self._chosen(structs.replace(self._choice, moving="all"))
                self._begin("all")
            return await self.told()

    async def stop(self) -> Json:
        """What was moved stays moved, the rest stays where it is; a copy that is not whole is deleted."""
        async with self._hands:
            if self._move is not None and self._task is not None:
                self._task.cancel()
                await asyncio.wait({self._task})
                await self._ended()
            self._why = None
            await asyncio.to_thread(self._sweep)
            return await self.told()

    # inside

    @property
    def _choice(self) -> ModelsChoice:
        return self._choices.now.models

    async def _chosen(self, choice: ModelsChoice) -> None:
        await self._choices.change(lambda now: structs.replace(now, models=choice))
        self._folders.follow(choice)
        await self._look()

    def _begin(self, moving: str) -> None:
        assert self._group is not None
        self._why, self._move = None, Move(self._around, whole=moving == "all")
        self._task = self._group.create_task(self._carry_out(self._move), name="move models")
        self._around.changed()

    async def _carry_out(self, move: Move) -> None:
        why = None
        try:
            await move.run()
        except AppError as error:
            why = sentence_of(error)
        except Exception:  # the outer wall: a move must not end the node
            log.exception("the move of the models failed")
            why = said(Reason("bug"))
        if why is None:
            await self._around.downloads.try_again(FULL)
        await self._ended(why)

    async def _ended(self, why: str | None = None) -> None:
        """Nothing moves now; that is kept, too. What stopped it is told when it can go on, not before."""
        given_up = self._move.given_up if self._move else set[Path]()
        held = await asyncio.to_thread(self._former_left, given_up)
        try:
            await self._chosen(structs.replace(self._choice, moving="", former=held))
        except AppError as error:
            log.warning("the end of the move is not kept: %s", said(error))
        self._move, self._why = None, why
        self._around.changed()

    def _former_left(self, given_up: Collection[Path]) -> tuple[str, ...]:
        """Former folders that hold models still, or cannot be looked at."""
        away = self._folders.known_away
        former = (one for one in map(Path, self._choice.former) if one not in given_up)
        return tuple(str(one) for one in former if one in away or any(held_in(one)))

    def _judge(self, path: str) -> Json:
        folders = self._folders
        folder = folders.meant(path, self._root)
        held = self._held(folder)
        n_bytes = sum(one.n_bytes for one in held)
        copied = sum(one.n_bytes for one in held if not same_disk(one.path, folder))
        free = self._around.disk.free_bytes(existing(folder))
        try:
            check_room(folder, copied, self._around.disk)
            fits = True
        except AppError:
            fits = not copied
        return {
            "folder": str(folder),
            "same": folder == folders.now,
            "free_bytes": free,
            "room_bytes": room_bytes(free),
            "models": sum(not one.is_part for one in held),
            "bytes": n_bytes,
            "copied_bytes": copied,
            "fits": fits,
        }

    def _claimed(self, path: str, owner: str, move: bool, new: bool) -> Path:
        folder = self._folders.meant(path, self._root, new=new)
        if move:
            self._check_all(folder)
        self._folders.claim(folder, owner)
        return folder

    def _check_all(self, folder: Path) -> None:
        held = self._held(folder)
        copied = sum(one.n_bytes for one in held if not same_disk(one.path, folder))
        if copied:
            check_room(folder, copied, self._around.disk)

    def _held(self, folder: Path) -> list[Held]:
        """What a move to that folder would bring."""
        near = (one for one in self._folders.all if one not in self._folders.known_away)
        return [held for one in near if one != folder for held in held_in(one)]

    async def _look(self) -> None:
        """Which folders are there now. A change of that is told, and what waited for it goes on."""
        async with self._eyes:  # two at once would take each other's thread for one that hangs
            await self._look_at_all()

    async def _look_at_all(self) -> None:
        folders = self._folders
        if len(folders.all) == 1 and not folders.known_away and not self._elsewhere:
            return
        before = dict(folders.known_away), dict(self._elsewhere)
        found = {one: await self._looked(one) for one in folders.all}
        folders.known_away = {one: why for one, (why, _) in found.items() if why}
        self._elsewhere = {one: held for one, (_, held) in found.items() if one != folders.now}
        if before[0] != folders.known_away:
            self._around.shelf.changes += 1  # whoever shows the models looks again
            back = before[0].keys() - folders.known_away.keys()
            if back and self._group is not None:
                again = self._around.downloads.try_again(AWAY, {str(one) for one in back})
                self._group.create_task(again, name="go on with downloads")
        if before != (folders.known_away, self._elsewhere):
            self._around.changed()

    async def _looked(self, folder: Path) -> tuple[Reason | None, tuple[int, int]]:
        """Why a folder is away, and what it holds. In a thread of its own, which may hang with its disk."""
        away = Reason("models_folder_away", {"folder": str(folder)})
        known = self._elsewhere.get(folder, (0, 0))
        if (before := self._looks.get(folder)) and not before.is_set():
            return away, known
        loop = asyncio.get_running_loop()
        done: asyncio.Future[tuple[Reason | None, tuple[int, int]]] = loop.create_future()

        is_back = self._looks[folder] = threading.Event()

        def work() -> None:
            try:
                why = self._folders.look(folder)
                held = list(held_in(folder)) if why is None else []
            finally:  # a thread that has done its work lives on for a moment
                is_back.set()
            amount = sum(not one.is_part for one in held), sum(one.n_bytes for one in held)
            _tell(loop, done, (why, known if why else amount))

        threading.Thread(target=work, daemon=True).start()
        try:
            async with asyncio.timeout(HANGS_SECONDS):
                return await done
        except TimeoutError:
            return away, known

    def _sweep(self) -> None:
        """Delete what an earlier move left half-way."""
        for folder in self._folders.all:
            if folder not in self._folders.known_away:
                swept(folder)

    def _mend(self) -> None:
        """A move may have broken off between a file and what the shelf says of it."""
        folders, shelf = self._folders, self._around.shelf
        for entry in shelf.entries():
            path = Path(entry.path)
            place = folders.of(path)
            if place is None or place in folders.known_away or path.exists():
                continue
            inside = path.relative_to(place)
            for other in folders.all:
                if other not in folders.known_away and (other / inside).exists():
                    shelf.follow(path, other / inside)
                    break


def room_bytes(free: int | None) -> int | None:
    """What a download may take of it; None where that is not known."""
    return None if free is None else max(0, free - LEFT_FREE_BYTES)


def _tell(loop: asyncio.AbstractEventLoop, done: asyncio.Future[Any], found: object) -> None:
    """Nobody may wait any more."""

    def told() -> None:
        if not done.done():
            done.set_result(found)

    try:
        loop.call_soon_threadsafe(told)
    except RuntimeError:  # the node has ended meanwhile
        log.debug("a disk answered too late")


def _elsewhere_json(folder: Path, held: tuple[int, int], away: Reason | None) -> Json:
    models, n_bytes = held
    there = {"folder": str(folder), "models": models, "bytes": n_bytes}
    return {**there, "there": away is None, "reason": _said(away)}


def _said(reason: Reason | None) -> str | None:
    return said(reason) if reason else None
