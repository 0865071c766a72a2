"""Brings a model up on the machines, and knows where each of them stands with it."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QObject, Signal

from app.core.errors import AppError
from app.gui.api.node_state import NodeState
from app.gui.models.details.plan_loader import Setup
from app.gui.models.node_calls import Calls

Json = dict[str, Any]
LOAD, UNLOAD = "load", "unload"


class Loading(QObject):
    """One load at a time. What another face loads is seen as well."""

    changed = Signal()
    loaded = Signal(object)  # Json, what the node says of the loaded model
    failed = Signal(object)  # AppError

    def __init__(self, pool: NodeState, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pool, self._calls = pool, Calls()
        self._model = ""
        self._progress: dict[str, Json] = {}
        self._was: object = None
        pool.changed.connect(self._look)
        pool.link_changed.connect(self._look)  # one that is lost loads nothing

    @property
    def model(self) -> str:
        """The name of the model that is on its way; empty: none is."""
        if self._calls.running(LOAD):
            return self._model
        return str(self._coming.get("model") or "")

    @property
    def is_ours(self) -> bool:
        """Whether a load was asked for here that goes on: it ends with whoever asked."""
        return self._calls.running(LOAD)

    @property
    def _coming(self) -> Json:
        """As the node tells it; nothing else of a load is known of one that another face began."""
        coming = (one for one in self._pool.models if one.get("state") == "loading")
        return next((one for one in coming if not one.get("stopping")), {})

    @property
    def steps(self) -> list[Json]:
        """The newest step of each machine."""
        told = self._coming.get("progress") or {}
        every = {**self._progress, **told} if self._calls.running(LOAD) else told
        named = {key: step for key, step in every.items() if step.get("machine")}
        return list((named or every).values())

    def start(self, setup: Setup, *, anyway: bool = False, beside: bool = False) -> None:
        """Load it. What is loaded now stays until it is clear that the new one fits; `beside`: also then."""
        self._model, self._progress = setup.item.name, {}
        more = {"anyway": anyway, "beside": beside}
        body = setup.order() | {key: True for key, wanted in more.items() if wanted}
        client = self._pool.client
        call = client.call("POST", "/load", body, self._done, self._refused, self._stepped)
        self._calls.keep(LOAD, call)
        self.changed.emit()

    def cancel(self) -> None:
        """Nothing is loaded then."""
        if self._calls.running(LOAD):
            self._calls.end(LOAD)
            self.changed.emit()
        else:
            self.unload(self.model)

    def unload(self, model: str) -> None:
        """Give its memory back on every machine."""
        body = {"model": model} if model else None
        call = self._pool.client.post("/unload", body, self._unloaded, self._not_unloaded)
        self._calls.keep(UNLOAD, call)

    def end(self) -> None:
        self._calls.end_all()

    def _stepped(self, line: Json) -> None:
        step = line.get("progress")
        if isinstance(step, dict):
            self._progress[str(step.get("machine"))] = step
            self.changed.emit()

    def _done(self, answer: Json) -> None:
        self._calls.done(LOAD)
        self.changed.emit()
        self.loaded.emit(answer["loaded"])

    def _refused(self, error: AppError) -> None:
        self._calls.done(LOAD)
        self.changed.emit()
        self.failed.emit(error)

    def _unloaded(self, _: Json) -> None:
        self._calls.done(UNLOAD)
        self.changed.emit()

    def _not_unloaded(self, error: AppError) -> None:
        self._calls.done(UNLOAD)
        self.failed.emit(error)

    def _look(self) -> None:
        """Tell it when the loaded model, or a step of it, is another."""
        vectors = self._pool.embeds or {}
        facts = ("model", "state", "stopping", "progress", "last_answer")
        models = [str([one.get(fact) for fact in facts]) for one in self._pool.models]
        seen = models, vectors.get("model"), vectors.get("state")
        if seen != self._was:
            self._was = seen
            self.changed.emit()
