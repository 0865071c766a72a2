"""The shelf, as the loopback API offers it: listed, added to with progress, removed from."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from app.catalog.shelf import Entry, Shelf
from app.catalog.stage_store import StageStore
from app.core.errors import BadInput
from app.node import requests as asked
from app.node.ndjson import Progress
from app.node.snapshot import model_json
from app.node.stoppable import in_thread

Json = dict[str, Any]


class Models:
    """Everything here runs in a thread: disks are slow."""

    def __init__(self, shelf: Shelf, stages: StageStore, in_use: Callable[[], str | None]) -> None:
        self._shelf, self._stages = shelf, stages
        self._in_use = in_use  # the id of the model that is loaded

    async def listed(self) -> list[Json]:
        return [_json(entry) for entry in await asyncio.to_thread(self._shelf.entries)]

    async def add(self, order: asked.Import, report: Progress) -> Json:
        """Check and hash a file, and put it on the shelf. Cancelling stops the hashing."""

        def tell(done: int, total: int) -> None:
            progress = {"step": "hashing", "machine": None, "unit": "bytes"}
            report({**progress, "done": done, "total": total})

        path = Path(order.path)
        entry = await in_thread(
            lambda hashed: self._shelf.import_file(path, hashed, name=order.name), tell
        )
        return {"model": _json(entry)}

    async def remove(self, name: str) -> Json:
        """Take a model from the shelf; its file stays where it is, its stages are deleted."""
        entry = await asyncio.to_thread(self._shelf.get, name)
        if entry.model.id == self._in_use() and not entry.builtin:
            raise BadInput("model_in_use", name=entry.name)
        return await asyncio.to_thread(self._removed, entry.name)

    def _removed(self, name: str) -> Json:
        before = self._stages.used_bytes()
        self._shelf.remove(name)
        return {"removed": name, "freed_bytes": max(0, before - self._stages.used_bytes())}


def _json(entry: Entry) -> Json:
    return model_json(entry.model, entry.path, entry.builtin)
