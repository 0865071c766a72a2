"""The loader of plans for the selected model with its current settings, which can also start measurements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from app.api.models import Verdicts
from app.api.plans import Plan
from app.api.responses import ProgressLine
from app.core.errors import AppError
from app.gui.api.node_client import Calls, NodeClient
from app.gui.models.model_item import ModelItem
from app.gui.models.verdicts import sketch

PAUSE_MS = 60  # delay before a request, which limits the requests of a moving slider
PLAN, MEASURE, BESIDE = "plan", "measure", "beside"
KEY = "chosen"


@dataclass(frozen=True, slots=True)
class Setup:
    """The settings for planning or loading a model. If `context` is None, the node chooses the context length."""

    item: ModelItem
    file: str | None = None
    context: int | None = None
    users: int = 1
    without: tuple[str, ...] = ()
    kv: str = "f16"  # format of the KV cache
    shape: str | None = None  # placement; None leaves the choice to the planner
    exact: bool = False  # use the same processor instructions on all computers
    draft: bool = False  # let a smaller model on this computer guess tokens ahead
    may_join: bool = False  # other models are loaded, and this one could be loaded in addition

    def load_body(self) -> dict[str, Any]:
        """Return the body of a request that loads the model."""
        return self.request_body() | ({"draft": "auto"} if self.draft else {})

    def request_body(self) -> dict[str, Any]:
        """Return the body of a request that plans or loads the model."""
        return {
            "model": self.item.name,
            "context": self.context,
            "users": self.users,
            "without": list(self.without),
            "kv": self.kv,
            "shape": self.shape,
            "exact": self.exact,
        }


class PlanLoader(QObject):
    """A loader of plans for the latest setup. It ignores replies for earlier setups."""

    planned = Signal(object)  # Plan
    refused = Signal(object)  # AppError
    joined = Signal(object)  # Plan or AppError for a load alongside the loaded models; None if not requested
    estimated = Signal(object)  # Verdict on a model that is not local, with its plan
    step = Signal(object)  # Progress of a measurement
    measuring_changed = Signal()

    def __init__(self, client: NodeClient, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._client, self._calls = client, Calls()
        self._setup: Setup | None = None
        self._again = False  # the setup has changed while a plan was pending
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(PAUSE_MS)
        self._soon.timeout.connect(self._ask)

    @property
    def measuring(self) -> bool:
        return self._calls.running(MEASURE)

    def ask(self, setup: Setup) -> None:
        """Request a plan after a short pause, so that dragging a slider does not send a request at every step."""
        self.stop_measuring()
        if self._setup is None or self._setup.item.key != setup.item.key:
            self._calls.end(PLAN)
            self._calls.end(BESIDE)
            self.joined.emit(None)
        self._setup = setup
        if not self._soon.isActive():
            self._soon.start()

    def forget(self) -> None:
        """Cancel all requests, because no model is selected."""
        self._setup = None
        self._soon.stop()
        self._calls.end_all()

    def measure_again(self) -> None:
        """Measure the selected model again, although its speed is known."""
        self.measure(again=True)

    def measure(self, *, again: bool = False) -> None:
        """Measure the selected model on all machines, then plan with the results. This takes about ten seconds.

        If the model is not local, similar layers are measured instead.
        """
        setup = self._setup
        if setup is None:
            return
        body = setup.request_body() if setup.item.is_here else self._sketched(setup)
        if body is None:
            return
        self._soon.stop()
        self._calls.end(PLAN)
        body["measure"] = True
        if again and setup.item.is_here:
            body["again"] = True
        failed, line = self._not_measured, self._stepped
        if setup.item.is_here:
            call = self._client.call(
                "POST", "/plan", body, self._measured, failed, line, answer=Plan, each=ProgressLine
            )
        else:
            call = self._client.call(
                "POST", "/verdicts", body, self._measured_sketch, failed, line, answer=Verdicts, each=ProgressLine
            )
        self._calls.keep(MEASURE, call)
        self.measuring_changed.emit()

    def stop_measuring(self) -> None:
        if self.measuring:
            self._calls.end(MEASURE)
            self.measuring_changed.emit()

    def _ask(self) -> None:
        setup, self._again = self._setup, self._calls.running(PLAN)
        if setup is None or self._again:
            return
        if setup.item.is_here:
            body = setup.request_body() | {"measure": False}
            call = self._client.call("POST", "/plan", body, self._planned, self._refused, answer=Plan)
            self._calls.keep(PLAN, call)
            return
        made = self._sketched(setup)
        if made is not None:
            call = self._client.post("/verdicts", made, self._judged, self._refused, answer=Verdicts)
            self._calls.keep(PLAN, call)

    def _sketched(self, setup: Setup) -> dict[str, Any] | None:
        """Return the body of an estimate request for a model that is not local, or None if its size is unknown."""
        made = sketch(setup.item, setup.item.file(setup.file), KEY)
        if made is None:
            return None
        body = setup.request_body()
        del body["model"], body["shape"], body["exact"]  # estimates always use the best placement
        return body | {"sketches": [msgspec.to_builtins(made)], "place": True}

    def _planned(self, plan: Plan) -> None:
        self._over()
        self.planned.emit(plan)
        self._ask_beside()

    def _refused(self, error: AppError) -> None:
        self._over()
        self.refused.emit(error)
        self._calls.end(BESIDE)
        self.joined.emit(None)  # a model that does not fit alone does not fit alongside others

    def _ask_beside(self) -> None:
        """Request a plan for loading the model alongside the loaded ones, based on existing measurements."""
        setup = self._setup
        self._calls.end(BESIDE)
        if setup is None or not setup.may_join or not setup.item.is_here:
            self.joined.emit(None)
            return
        body = setup.request_body() | {"measure": False, "beside": True}
        call = self._client.call("POST", "/plan", body, self._joined, self._joined, answer=Plan)
        self._calls.keep(BESIDE, call)

    def _joined(self, result: Plan | AppError) -> None:
        self._calls.done(BESIDE)
        self.joined.emit(result)

    def _judged(self, answer: Verdicts) -> None:
        self._over()
        self.estimated.emit(answer.verdicts[KEY])

    def _over(self) -> None:
        self._calls.done(PLAN)
        if self._again:
            self._soon.start()

    def _stepped(self, line: ProgressLine) -> None:
        self.step.emit(line.progress)

    def _measured(self, plan: Plan) -> None:
        self._calls.done(MEASURE)
        self.measuring_changed.emit()
        self.planned.emit(plan)
        self._ask_beside()

    def _measured_sketch(self, answer: Verdicts) -> None:
        self._calls.done(MEASURE)
        self.measuring_changed.emit()
        self.estimated.emit(answer.verdicts[KEY])

    def _not_measured(self, error: AppError) -> None:
        self._calls.done(MEASURE)
        self.measuring_changed.emit()
        self.refused.emit(error)
