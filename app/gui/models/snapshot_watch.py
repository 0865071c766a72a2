"""Notices in the node's snapshot what makes verdicts or lists old."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from app.gui.api.node_state import Pool

Json = dict[str, Any]
GRAIN_BYTES = 256 << 20  # smaller changes of what is lent are not worth a plan
PAUSE_MS = 1000  # memory moves in bursts


class Watch(QObject):
    """Each signal comes once for each change."""

    memory = Signal()  # what machines lend, or which are there
    shelf = Signal()  # a model came or went
    downloads = Signal()  # some download began, moved or ended
    ended = Signal(object)  # Json, a download that is done or failed just now

    def __init__(self, pool: Pool, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pool = pool
        self._memory: object = None
        self._shelf: object = None
        self._downloads: dict[str, str] = {}
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(PAUSE_MS)
        self._soon.timeout.connect(self.memory)
        pool.changed.connect(self.look)
        self.look()

    def look(self) -> None:
        """Compare the snapshot with the one before."""
        memory = self._lends()
        if memory != self._memory:
            if self._memory is not None:
                self._soon.start()
            self._memory = memory
        shelf = (self._pool.snapshot.get("shelf") or {}).get("changes")
        if shelf != self._shelf:
            self._shelf = shelf
            self.shelf.emit()
        self._look_at_downloads()

    def _look_at_downloads(self) -> None:
        now: Json = self._pool.snapshot.get("downloads") or {}
        states = {key: str(one["state"]) for key, one in now.items()}
        before, self._downloads = self._downloads, states
        if states != before:
            self.downloads.emit()
        for key, state in states.items():
            if state in ("done", "failed") and before.get(key, state) != state:
                self.ended.emit(now[key])

    def _lends(self) -> list[tuple[Any, ...]]:
        """Roughly: what is free beside what is used moves all the time."""
        machines = [
            (one["id"], one.get("online"), int(one.get("lent_bytes") or 0) // GRAIN_BYTES)
            for one in self._pool.machines
        ]
        models = [(one.get("model"), one.get("state") == "ready") for one in self._pool.models]
        return [*machines, *models]
