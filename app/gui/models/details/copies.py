"""Which machines of the household have the chosen file already, so that it need not be downloaded again."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QObject, Signal

from app.core.errors import AppError
from app.gui.app.app_context import AppContext
from app.gui.models.model_item import Item
from app.gui.models.node_calls import Calls

Json = dict[str, Any]
ASK = "copies"


class Copies(QObject):
    """Asked for each file that is chosen, and again when machines come or go."""

    changed = Signal()

    def __init__(self, services: AppContext, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pool, self._client, self._calls = services.pool, services.client, Calls()
        self._question: Json | None = None
        self._there: set[str] = set()
        self.machines: tuple[Json, ...] = ()
        self._pool.changed.connect(self._look)

    def ask(self, item: Item, file: Json | None) -> None:
        """Of this file now; what was known of another one is forgotten."""
        question = None
        if file is not None and file.get("usable") and not file.get("on_shelf"):
            question = {
                "repository": item.facts.get("repository"),
                "file": file["file"],
                "revision": item.facts.get("revision"),
                "sha256": file.get("sha256"),
            }
        if question != self._question:
            self._tell(())
        self._question, self._there = question, self._others()
        self._ask()

    def end(self) -> None:
        self._calls.end_all()

    def _ask(self) -> None:
        if self._question is None or not self._there:
            self._calls.end(ASK)
            self._tell(())
            return
        call = self._client.post("/copies", self._question, self._came, self._failed)
        self._calls.keep(ASK, call)

    def _look(self) -> None:
        there = self._others()
        if there != self._there:
            self._there = there
            self._ask()

    def _others(self) -> set[str]:
        """The machines of the household that are here, without this one."""
        every = self._pool.machines if self._pool.is_there else []
        return {str(one["id"]) for one in every if one.get("online") and not one.get("this")}

    def _came(self, answer: Json) -> None:
        self._calls.done(ASK)
        self._tell(tuple(answer["machines"]))

    def _failed(self, _: AppError) -> None:
        """Nobody asked for it: it can be downloaded."""
        self._calls.done(ASK)
        self._tell(())

    def _tell(self, machines: tuple[Json, ...]) -> None:
        if machines != self.machines:
            self.machines = machines
            self.changed.emit()
