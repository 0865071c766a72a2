"""One machine's models, the folder they are in, and a second disk: for the tests of choosing another folder."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, BinaryIO

from app.api.downloads import ModelsFolder as ModelsFolderState
from app.machine import settings
from app.machine.models_folders import ModelsFolders
from app.node.downloads.models_folder import FolderServices, ModelsFolder
from tests.catalog.hub_server import HubServer
from tests.node.download_place import Place, Roomy

Json = dict[str, Any]


class TwoDisks(Roomy):
    """Nothing can be renamed from one to the other; the new one may fill up."""

    def __init__(self) -> None:
        super().__init__()
        self.full_after: int | None = None  # writes that still work

    def rename(self, source: Path, target: Path) -> None:
        raise OSError(errno.EXDEV, "another disk")

    def write(self, file: BinaryIO, data: memoryview) -> None:
        if self.full_after == 0:
            raise OSError(errno.ENOSPC, "full")
        if self.full_after is not None:
            self.full_after -= 1
        super().write(file, data)


class Computer:
    """One machine's models and the folder they are in; a restart is a new one in the same place."""

    def __init__(self, server: HubServer, root: Path) -> None:
        self.place, self.disk, self.in_use = Place(server, root), TwoDisks(), list[str]()
        self.choices = settings.SettingsStore(root / "settings.json", settings.load(root / "settings.json"))
        self.folders = ModelsFolders(self.place.files, self.choices.now.models)
        self.place.downloads.book.places = self.folders
        self.place.shelf.why_away = self.folders.why_away
        around = FolderServices(
            self.folders, self.place.shelf, self.place.downloads,
            lambda: self.in_use, self.place.news.set, self.disk,
        )  # fmt: skip
        self.folder = ModelsFolder(around, self.choices, root / "home")

    @property
    def entry_path(self) -> Path:
        [entry] = self.place.shelf.entries()
        return Path(entry.path)

    async def until(self, holds: Callable[[ModelsFolderState], bool]) -> ModelsFolderState:
        async with asyncio.timeout(60):
            while not holds(now := self.folder.snapshot()):  # noqa: ASYNC110  nothing tells of a look
                await asyncio.sleep(0.01)
        return now

    async def rested(self) -> ModelsFolderState:
        return await self.until(lambda now: now.move is None)


@asynccontextmanager
async def running(computer: Computer) -> AsyncGenerator[Computer, None]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(computer.place.downloads.run()), group.create_task(computer.folder.run())]
        await asyncio.sleep(0.05)  # both have begun
        try:
            yield computer
        finally:
            for task in tasks:
                task.cancel()
