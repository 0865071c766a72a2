"""The sources of models: the catalog, the hub, other programs, downloads and copies from the household."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec

from app.api import models, requests
from app.api.downloads import Download
from app.api.models import (
    Catalog,
    CatalogModel,
    FoundFile,
    FoundFiles,
    HubListing,
    HubSearch,
    SearchedFolder,
    ShelfModel,
    TokenState,
)
from app.api.snapshot import MachineRef
from app.catalog.files import Disk
from app.catalog.gguf.gguf_file import part_names, part_paths
from app.catalog.hub import hub_search as online
from app.catalog.hub.hub_address import HUB, Hub
from app.catalog.hub.hub_search import HubFile, HubModel
from app.catalog.model_catalog import OfferedModel, load_catalog
from app.catalog.other_apps import ForeignModel, OtherApps, app_of
from app.catalog.shelf import Entry, Shelf
from app.catalog.stages.stage_store import StageStore
from app.catalog.transfers.hash_pins import Pin, Pins
from app.core.errors import AppError, BadInput, Damaged, Reason
from app.core.ids import machine_id
from app.core.reasons import said, sentence
from app.machine.models_folders import ModelsFolders
from app.machine.paths import Home
from app.machine.secret_stores import TokenStore
from app.machine.settings import SettingsStore
from app.network.network import Network
from app.node.control.shelf_routes import ShelfModels
from app.node.downloads.download_source import DownloadServices, PeerCopy, catalog_entry
from app.node.downloads.downloads import Downloads
from app.node.downloads.model_peers import ModelServer, PeerCopies
from app.node.downloads.models_folder import FolderServices, ModelsFolder

log = logging.getLogger(__name__)

MAX_QUERY = 200


class HouseholdPins:
    """The pins of models whose hash the catalog does not list. The first machine of the household to download a model
    pins it.

    ask_others: asks the other machines.
    note: reports once that this machine's list of pins is damaged. The damaged file stays until the user restores or
        deletes it.
    """

    def __init__(
        self, pins: Pins, ask_others: Callable[[str, str], Awaitable[Pin | None]], note: Callable[[Reason], None]
    ) -> None:
        self._pins, self._others, self._note = pins, ask_others, note
        self._is_told = False

    async def report_damage(self) -> None:
        """Report a damaged list before a download needs it."""
        await asyncio.to_thread(self.own_pin, "", "")

    async def of(self, repository: str, file: str) -> Pin | None:
        """Return this machine's pin of a file, or else another machine's. Raises Damaged if this machine's list is
        damaged and no other machine has a pin."""
        try:
            mine = await asyncio.to_thread(self._pins.of, repository, file)
        except Damaged as error:
            self._tell(error)
            if pin := await self._others(repository, file):
                return pin
            raise
        return mine or await self._others(repository, file)

    def own_pin(self, repository: str, file: str) -> Pin | None:
        """Return this machine's pin of a file, as the reply to another machine. Reads the disk."""
        try:
            return self._pins.of(repository, file)
        except Damaged as error:
            self._tell(error)
            return None

    async def keep(self, pin: Pin) -> None:
        """Save a pin. Errors are only logged, because the model is already on the shelf."""
        try:
            await asyncio.to_thread(self._pins.store, pin)
        except Damaged as error:
            self._tell(error)
        except AppError as error:  # such as a full disk
            log.warning("the pin of %s could not be saved: %s", pin.file, said(error))

    def _tell(self, error: Damaged) -> None:
        if not self._is_told:
            self._is_told = True
            self._note(Reason("log_node_pins_lost", {"path": error.reason.facts["path"]}))


class ModelSources:
    """The services that find, download and copy models."""

    def __init__(
        self,
        home: Home,
        choices: SettingsStore,
        shelf: Shelf,
        stages: StageStore,
        in_use: Callable[[], Collection[str]],
        changed: Callable[[], None],
        network: Network,
        note: Callable[[Reason], None],
    ) -> None:
        self.shelf, self._apps, self._tokens = shelf, OtherApps(), TokenStore(home)
        self.last_contact: float | None = None  # Unix time of the last contact with the hub since the start
        self.models = ShelfModels(shelf, stages, in_use, self, changed)
        copies = PeerCopies(network)
        self._network, self._copies = network, copies
        self.pins = HouseholdPins(Pins(home.pins), copies.pin, note)
        services = DownloadServices(
            Hub.of,
            load_catalog,
            self._tokens.get,
            changed,
            self._contacted,
            copies.files_of,
            copies.is_near,
            self.pins.of,
            self.pins.keep,
        )
        self.folders = ModelsFolders(home.downloaded, choices.now.models)
        self.downloads = Downloads(self.folders, shelf, services, arrived=network.pace.wait_after_receiving)
        shelf.why_away = self.folders.why_away
        moving = FolderServices(self.folders, shelf, self.downloads, in_use, changed, Disk())
        self.folder = ModelsFolder(moving, choices, home.root)
        self.server = ModelServer(self.complete_files, choices, network.pace, shelf.name_of, changed, self.pins.own_pin)

    async def run(self) -> None:
        """Serve until canceled."""
        await self.pins.report_damage()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.downloads.run(), name="download models")
            group.create_task(self.folder.run(), name="watch the models folder")

    async def catalog(self) -> Catalog:
        """Return the catalog that ships with the app. Uses no network."""
        known = await asyncio.to_thread(load_catalog)
        on_shelf = await asyncio.to_thread(self._by_hash)
        return Catalog(known.made, [self._catalog_model(offer, on_shelf) for offer in known.models])

    async def search(self, text: str, limit: int) -> HubSearch:
        """Search the hub for repositories. Raises AppError."""
        hub, token = Hub.of(), await self._tokens.get()
        if len(text) > MAX_QUERY:
            raise BadInput("text_too_long", characters=len(text), most=MAX_QUERY)

        self._contacted()
        matches = await online.search(hub, text, limit, token)
        return HubSearch(hub.host, [models.HubModel(**_hub_facts(match, hub)) for match in matches])

    async def files(self, repository: str) -> HubListing:
        """Return the GGUF files of a repository on the hub. Raises AppError."""
        hub, token = Hub.of(), await self._tokens.get()
        self._contacted()
        listing = await online.list_files(hub, repository, token)
        on_shelf = await asyncio.to_thread(self._by_hash)
        files = [self._described_file(repository, file, on_shelf) for file in listing.files]
        projectors = [self._described_file(repository, file, on_shelf) for file in listing.projectors]
        facts = _hub_facts(listing.about, hub)
        return HubListing(**facts, revision=listing.revision, files=files, projectors=projectors)

    async def start(self, order: requests.StartDownload) -> Download:
        """Start a download, or a copy from a machine of the household. Raises AppError."""
        copy = None
        if order.machine is not None:
            name = self._network.link(machine_id(order.machine)).name
            copy = PeerCopy(order.machine, name, order.sha256)
        return await self.downloads.start(order.repository, order.file, order.revision, order.name, copy)

    async def copies_of(self, order: requests.FindCopies) -> list[MachineRef]:
        """Return the machines of the household that have the requested file."""
        file = part_names(order.file)[0]
        known = catalog_entry(load_catalog(), order.repository, file, order.revision)
        several = len(part_names(file)) > 1
        sha256 = (known[1].whole_hash if known else None) or (None if several else order.sha256)
        holders = await self._copies.holders_of(sha256) if sha256 else []
        return [MachineRef(holder.machine, holder.name) for holder in holders]

    def complete_files(self, hashes: Collection[str]) -> dict[str, tuple[Path, ...]]:
        """Return the files of the downloaded or imported models with these hashes. Reads the disk."""
        files: dict[str, tuple[Path, ...]] = {}
        for entry in self.shelf.entries():
            path = Path(entry.path)
            sha256 = self._hash_of(entry)
            if sha256 is None or sha256 not in hashes or self._away(entry, path):
                continue
            if _missing(entry, path, None) is None:
                files[sha256] = tuple(part_paths(path))
        return files

    async def other_apps(self) -> FoundFiles:
        """Return the model files that other programs stored on this computer."""
        return await asyncio.to_thread(self._files_of_other_apps)

    def _files_of_other_apps(self) -> FoundFiles:
        files = self._apps.files()
        taken = {Path(entry.path).resolve(): entry.name for entry in self.shelf.entries()}
        places = [
            SearchedFolder(folder.app, str(folder.folder), folder.folder.is_dir()) for folder in self._apps.places
        ]
        return FoundFiles([_found_file(other, taken.get(other.path.resolve())) for other in files], places)

    async def token(self) -> TokenState:
        """Return whether a token is stored and where, but never the token itself."""
        known = await self._tokens.get()
        where = await self._tokens.where()
        return TokenState(known is not None, said(where), where)

    async def set_token(self, token: str) -> TokenState:
        await self._tokens.set(token)
        return await self.token()

    async def clear_token(self) -> TokenState:
        await self._tokens.clear()
        return await self.token()

    # origins of the models on the shelf

    def with_origin(self, entry: Entry, described: ShelfModel) -> ShelfModel:
        """Return the description of a model with its origin and whether its file still exists. Reads the disk."""
        path = Path(entry.path)
        is_own = self.downloads.downloaded_hash(path) is not None
        sha256 = self._hash_of(entry)
        away = self._away(entry, path)
        app = "Poolhouse" if is_own or entry.is_of_app else app_of(path, self._apps.places)
        missing = away or _missing(entry, path, app)
        return msgspec.structs.replace(
            described,
            downloaded=is_own,
            in_catalog=sha256 is not None and load_catalog().has(sha256),
            source=app,
            away=away is not None,  # the disk is disconnected; otherwise a missing file was deleted
            missing=sentence(missing),
            missing_facts=missing,
        )

    async def forget(self, entry: Entry) -> int | None:
        """Delete the file of a removed model if it was downloaded by this app. Return the bytes freed, or None if the
        file is kept."""
        freed = await self._forget_file(entry, Path(entry.path))
        if (projector := entry.model.projector) is not None:
            of_projector = await self._forget_file(entry, Path(projector.path))
            freed = freed if of_projector is None else (freed or 0) + of_projector
        return freed

    async def _forget_file(self, entry: Entry, path: Path) -> int | None:
        """Delete a file of a removed model. Return the bytes freed, or None if the file is kept."""
        if not self.downloads.downloaded_hash(path) or self.shelf.why_away(path):
            return None
        entries = await asyncio.to_thread(self.shelf.entries)
        if any(str(path) in _paths(other) for other in entries if other.name != entry.name):
            return None  # another model on the shelf has the same file
        return await self.downloads.forget(path)

    def _away(self, entry: Entry, path: Path) -> Reason | None:
        why = self.shelf.why_away(path)
        facts = {"name": entry.name, "folder": why.facts["folder"]} if why else {}
        return Reason("model_away", {**facts}) if why else None

    def _contacted(self) -> None:
        self.last_contact = time.time()

    def _by_hash(self) -> dict[str, str]:
        """Return the names of the models on the shelf, by the SHA-256 of their files and of downloaded projectors."""
        names: dict[str, str] = {}
        for entry in self.shelf.entries():
            if sha256 := self._hash_of(entry):
                names[sha256] = entry.name
            projector = entry.model.projector
            if projector is not None and (sha256 := self.downloads.downloaded_hash(Path(projector.path))):
                names.setdefault(sha256, entry.name)
        return names

    def _hash_of(self, entry: Entry) -> str | None:
        """Return the hash that identifies the model in the catalog and on all machines, or None if unknown. Reads the
        disk."""
        return self.downloads.downloaded_hash(Path(entry.path)) or self.shelf.whole_hash(entry)

    def _catalog_model(self, offer: OfferedModel, on_shelf: dict[str, str]) -> CatalogModel:
        files = [
            HubFile(
                file.file,
                file.quantization,
                file.size_bytes,
                file.whole_hash,
                file.recommended,
                n_parts=len(part_names(file.file)),
            )
            for file in offer.files
        ]
        return CatalogModel(
            id=offer.id,
            name=offer.name,
            maker=offer.maker,
            about=offer.about,
            about_in=offer.about_in,
            good_at=list(offer.good_at),
            n_languages=offer.n_languages,
            parameters=offer.parameters,
            active_parameters=offer.active_parameters,
            architecture=offer.architecture,
            n_layers=offer.n_layers,
            context_length=offer.context_length,
            kv_bytes_per_token=offer.kv_bytes_per_token,
            license=offer.license,
            gated=offer.gated,
            splits=offer.splits,
            repository=offer.repository,
            revision=offer.revision,
            page=Hub(HUB).page(offer.repository),
            files=[self._described_file(offer.repository, file, on_shelf) for file in files],
        )

    def _described_file(self, repository: str, file: HubFile, on_shelf: dict[str, str]) -> models.HubFile:
        download = self.downloads.id_of_file(repository, file.file)
        name = on_shelf.get(file.sha256 or "")
        if name is None and download:  # the hash may have become known with the download
            name = on_shelf.get(self.downloads.described(download).sha256 or "")
        return models.HubFile(
            file=file.file,
            parts=file.n_parts,
            quantization=file.quantization or "",
            size_bytes=file.size_bytes,
            sha256=file.sha256,
            recommended=file.recommended,
            usable=file.reason is None,
            reason=sentence(file.reason),
            reason_facts=file.reason,
            on_shelf=name,
            download=download,
        )


def _missing(entry: Entry, path: Path, app: str | None) -> Reason | None:
    try:
        n_bytes = sum(part.stat().st_size for part in part_paths(path))
        same = n_bytes == entry.model.file_bytes
    except OSError:
        if app and app != "Poolhouse":
            return Reason("found_not_here", {"path": entry.path, "app": app})
        return Reason("model_gone", {"name": entry.name, "path": entry.path})
    facts = {"name": entry.name, "path": entry.path}
    return None if same else Reason("model_changed", {**facts})


def _hub_facts(match: HubModel, hub: Hub) -> dict[str, Any]:
    """Return the fields that describe a model on the hub."""
    maker, _, name = match.repository.partition("/")
    return {**asdict(match), "name": name, "maker": maker, "splits": match.splits, "page": hub.page(match.repository)}


def _found_file(other: ForeignModel, on_shelf: str | None) -> FoundFile:
    model = other.model
    return FoundFile(
        path=str(other.path),
        app=other.app,
        name=other.name,
        size_bytes=other.size_bytes,
        architecture=model.architecture if model else None,
        quantization=model.quantization if model else None,
        n_layers=model.n_layers if model else None,
        context_length=model.context_length if model else None,
        splits=bool(model and model.cuts.boundaries),
        usable=model is not None,
        reason=sentence(other.reason),
        reason_facts=other.reason,
        on_shelf=on_shelf,
    )


def _paths(entry: Entry) -> tuple[str, ...]:
    """Return the paths of a model: its own first file, and its projector's file."""
    projector = entry.model.projector
    return (entry.path, projector.path) if projector is not None else (entry.path,)
