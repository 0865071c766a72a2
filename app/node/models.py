"""The shelf, as the loopback API offers it: listed, added to with progress, removed from."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

from app.catalog.shelf import Entry, Shelf
from app.core.errors import BadInput
from app.node import requests as asked
from app.node.ndjson import Progress
from app.node.snapshot import model_json

Json = dict[str, Any]


class _Stopped(Exception):
    """The asker went away while a file was hashed."""


class Models:
    """Everything here runs in a thread: disks are slow."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self.in_use: str | None = None  # id of the model that is loaded

    async def listed(self) -> list[Json]:
        return [_json(entry) for entry in await asyncio.to_thread(self._shelf.entries)]

    async def add(self, order: asked.Import, report: Progress) -> Json:
        """Check and hash a file, and put it on the shelf. Cancelling stops the hashing."""
        gone = threading.Event()

        def tell(done: int, total: int) -> None:
            if gone.is_set():
                raise _Stopped
            progress = {"step": "hashing", "machine": None, "unit": "bytes"}
            report({**progress, "done": done, "total": total})

        try:
            entry = await asyncio.to_thread(self._shelf.import_file, Path(order.path), tell)
        except asyncio.CancelledError:
            gone.set()
            raise
        return {"model": _json(entry)}

    async def remove(self, name: str) -> Json:
        """Take a model from the shelf; its file stays where it is."""
        entry = await asyncio.to_thread(self._shelf.get, name)
        if entry.model.id == self.in_use:
            raise BadInput("model_in_use", name=entry.name)
        await asyncio.to_thread(self._shelf.remove, entry.name)
        return {"removed": entry.name}


def _json(entry: Entry) -> Json:
    return model_json(entry.model, entry.path, entry.builtin)
