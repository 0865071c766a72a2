"""Puts files on the shelf, one after another; each is checked and hashed first."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal

from app.core.errors import AppError
from app.gui.node_client import NodeClient
from app.gui.shelf.calls import Calls

Json = dict[str, Any]
IMPORT = "import"


class Importing(QObject):
    """`path` is the file that is taken in now; empty: none is. Pages come and go meanwhile: hashing takes minutes."""

    changed = Signal()
    imported = Signal(object)  # Json, the model
    failed = Signal(object)  # AppError
    ended = Signal(str, object)  # path, AppError or None

    def __init__(self, client: NodeClient, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._client, self._calls = client, Calls()
        self._waiting: list[tuple[str, str | None]] = []
        self.path = ""
        self.done_bytes = self.total_bytes = 0

    @property
    def name(self) -> str:
        return Path(self.path).name

    @property
    def paths(self) -> list[str]:
        """The files that are taken in now and next."""
        return [*([self.path] if self.path else []), *(path for path, _ in self._waiting)]

    def add(self, path: str, name: str | None = None) -> None:
        """Take in this file too, under a name of the shelf or its own."""
        self._waiting.append((path, name))
        if not self.path:
            self._next()

    def cancel(self) -> None:
        """Stop the one under way; the others that wait are taken in."""
        self._calls.end(IMPORT)
        self._next()

    def leave(self, paths: Collection[str]) -> None:
        """Take in none of these any more."""
        self._waiting = [one for one in self._waiting if one[0] not in paths]
        if self.path in paths:
            self.cancel()

    def _next(self) -> None:
        self.path, self.done_bytes, self.total_bytes = "", 0, 0
        if self._waiting:
            self.path, name = self._waiting.pop(0)
            body = {"path": self.path, "name": name}
            call = self._client.call(
                "POST", "/models", body, self._done, self._refused, self._stepped
            )
            self._calls.keep(IMPORT, call)
        self.changed.emit()

    def _stepped(self, line: Json) -> None:
        step = line.get("progress") or {}
        self.done_bytes, self.total_bytes = int(step.get("done") or 0), int(step.get("total") or 0)
        self.changed.emit()

    def _ended(self, error: AppError | None) -> None:
        """Told before the next one begins: who looks then finds what became of this one."""
        path, self.path = self.path, ""
        self.ended.emit(path, error)
        self._next()

    def _done(self, answer: Json) -> None:
        self._calls.done(IMPORT)
        self._ended(None)
        self.imported.emit(answer["model"])

    def _refused(self, error: AppError) -> None:
        self._calls.done(IMPORT)
        self._ended(error)
        self.failed.emit(error)
