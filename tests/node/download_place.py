"""A shelf, a hub on loopback and the downloads between them; a restart is a new one in the same folder."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from app.api.downloads import Download
from app.catalog.files import Disk
from app.catalog.model_catalog import Catalog, OfferedFile, OfferedModel
from app.catalog.shelf import Shelf
from app.catalog.stages.stage_store import StageStore
from app.catalog.transfers.download_records import Record
from app.catalog.transfers.file_transfer import FileClient
from app.catalog.transfers.hash_pins import Pins
from app.machine.models_folders import ModelsFolders
from app.node.downloads.download_source import DownloadServices, no_members, no_pin
from app.node.downloads.downloads import Downloads
from app.node.downloads.model_sources import HouseholdPins
from tests.catalog.hub_server import COMMIT, FILE, REPOSITORY, HubServer

Json = dict[str, Any]
NO_CATALOG = Catalog("2026-01-01", ())


class Roomy(Disk):
    """A disk with as much room as a test says."""

    def __init__(self) -> None:
        self.free = 1 << 50

    def free_bytes(self, folder: Path) -> int:
        return self.free


class Place:
    """One machine's downloads."""

    def __init__(
        self,
        server: HubServer,
        folder: Path,
        catalog: Catalog = NO_CATALOG,
        member: Callable[[Record], FileClient] = no_members,
        is_near: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self.server, self.folder, self.disk = server, folder, Roomy()
        stages = StageStore(folder / "stages", 1 << 30)
        self.shelf = Shelf(folder / "models", folder / "no-guide", stages)
        self.news = asyncio.Event()
        self.token: str | None = None
        self.files = folder / "models" / "files"
        self.pins = Pins(folder / "models" / "pins.json")
        held = HouseholdPins(self.pins, no_pin, lambda _: None)
        around = DownloadServices(
            lambda: server.hub, lambda: catalog, self._token, self.news.set, member=member, is_near=is_near,
            pin=held.of, keep_pin=held.keep,
        )  # fmt: skip
        self.folders = ModelsFolders(self.files)
        self.downloads = Downloads(self.folders, self.shelf, around, self.disk, waits=(0.0, 0.0))

    async def _token(self) -> str | None:
        return self.token

    async def start(self, **more: Any) -> Download:
        order: Json = {"repository": REPOSITORY, "file": FILE, "revision": None, "name": None}
        return await self.downloads.start(**{**order, **more})

    async def until(self, key: str, holds: Callable[[Download], bool]) -> Download:
        """The download once that holds. It is looked at whenever something is told."""
        async with asyncio.timeout(60):
            while not holds(now := self.downloads.described(key)):
                self.news.clear()
                await self.news.wait()
        return now

    async def ended(self, key: str) -> Download:
        return await self.until(key, lambda now: now.state in ("done", "failed"))


@asynccontextmanager
async def running(place: Place) -> AsyncGenerator[Place, None]:
    """Its downloads go on until the end of the block."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(place.downloads.run())
        try:
            yield place
        finally:
            task.cancel()


def catalog_of(server: HubServer, sha256: str | None, n_bytes: int | None = None) -> Catalog:
    """A catalog of the server's one file."""
    file = OfferedFile(FILE, "Q4_K_M", n_bytes, sha256, recommended=True)
    offer = OfferedModel(
        id="tiny", name="Tiny", maker="maker", about="for tests, and for nothing else", about_in={}, good_at=(),
        n_languages=None,
        parameters=None, active_parameters=None, architecture="llama", n_layers=None,
        context_length=None, kv_bytes_per_token=None, license="MIT", gated=False,
        repository=REPOSITORY, revision=COMMIT, files=(file,),
    )  # fmt: skip
    return Catalog("2026-01-01", (offer,))
