"""The shelf, as the loopback API offers it: listed, added to with progress, removed from."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, Protocol

from app.api import requests
from app.catalog.families.family_table import FAMILIES
from app.catalog.gguf.model_reader import KNOWN
from app.catalog.shelf import Entry, Shelf
from app.catalog.stages.stage_store import StageStore
from app.core.errors import AppError, BadInput
from app.inference.worker.tokenizer import Text
from app.machine.paths import expanded
from app.node.cancellation import in_thread
from app.node.control.ndjson import Progress, hashing
from app.node.snapshot import model_json

Json = dict[str, Any]


class Origins(Protocol):
    """Knows where the files of the shelf came from."""

    def about(self, entry: Entry) -> Json:
        """Return what the shelf shows of a model beside its own facts; reads the disk."""

    async def forget(self, entry: Entry) -> int | None:
        """Delete the file of a model that is to leave the shelf, if it was downloaded here; the bytes freed,
        or None: it is kept. Raises AppError where it cannot be deleted."""


class Models:
    """Everything here runs in a thread: disks are slow."""

    def __init__(
        self,
        shelf: Shelf,
        stages: StageStore,
        in_use: Callable[[], Collection[str]],
        origins: Origins,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._shelf, self._stages = shelf, stages
        self._origins, self._changed = origins, changed
        self._in_use = in_use  # the ids of the models that are loaded

    async def listed(self) -> list[Json]:
        def all_of_them() -> list[Json]:
            return [self._json(entry) for entry in self._shelf.entries()]

        return await asyncio.to_thread(all_of_them)

    async def one(self, name: str) -> Json:
        """The model that a person means, as it is listed. Raises BadInput."""
        entry = await self.named(name)
        return {"model": await asyncio.to_thread(self._json, entry)}

    async def named(self, name: str, loaded: Collection[str] | None = None) -> Entry:
        """The model of this name; `loaded`: half a name means one of these, and no other. Raises BadInput."""
        return await asyncio.to_thread(self._shelf.get, name, loaded)

    async def add(self, order: requests.Import, report: Progress) -> Json:
        """Check and hash a file, and put it on the shelf. Cancelling stops the hashing."""

        def tell(done: int, total: int) -> None:
            report(hashing(done, total))

        path = expanded(order.path).absolute()
        await self._known_to_the_engine(path)
        entry = await in_thread(lambda hashed: self._shelf.import_file(path, hashed, name=order.name, whole=True), tell)
        self._changed()
        return {"model": await asyncio.to_thread(self._json, entry)}

    async def _known_to_the_engine(self, path: Path) -> None:
        """A family that nobody proved may be one that no engine here computes, and so may a new way to split words:
        better told now than when it is loaded. Raises BadInput; what else is wrong with the file is told by whoever
        meets it."""
        header_facts, splits_words = await asyncio.to_thread(self._shelf.looked_at, path)
        if header_facts.architecture in FAMILIES and splits_words in KNOWN:
            return
        try:
            async with await Text.open(str(path)):
                return
        except AppError as error:
            if error.reason.code in ("engine_knows_not", "engine_pre_unknown"):
                raise

    async def remove(self, name: str) -> Json:
        """Take a model from the shelf and delete its stages. A file that was downloaded here goes
        too; any other stays where it is. Raises AppError; then the model stays as well."""
        entry = await asyncio.to_thread(self._shelf.get, name)
        if entry.model.id in self._in_use() and not entry.builtin:
            raise BadInput("model_in_use", name=entry.name)
        if entry.builtin:
            raise BadInput("model_builtin", name=entry.name)
        of_file = await self._origins.forget(entry)
        freed = await asyncio.to_thread(self._removed, entry.name)
        self._changed()
        return {"removed": entry.name, "freed_bytes": freed + (of_file or 0), "file_deleted": of_file is not None}

    def _removed(self, name: str) -> int:
        before = self._stages.used_bytes()
        self._shelf.remove(name)
        return max(0, before - self._stages.used_bytes())

    def _json(self, entry: Entry) -> Json:
        known = model_json(entry.model, entry.path, entry.builtin)
        return {**known, **self._origins.about(entry)}
