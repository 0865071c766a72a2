"""Forecasts for running a model on this household, with all machines and without those that the user leaves out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QFrame

from app.api.models import Models
from app.api.plans import Plan
from app.core.errors import AppError, Unreachable
from app.core.nearest_names import MODEL_UNKNOWN
from app.gui.api.node_client import Call
from app.gui.app.app_context import AppContext
from app.gui.look import formats, sizes
from app.gui.look.accessibility import announce
from app.gui.look.sentences import model_name, said
from app.gui.look.theme import set_role
from app.gui.pool.machine_facts import MachineFacts
from app.gui.widgets.buttons import button
from app.gui.widgets.flow import Beside
from app.gui.widgets.labels import paragraph

LAST_MODEL = "pool/last_model"  # key in the preferences
UNFORECAST = "unforecast_"  # prefix of the reason codes for a missing forecast
SETTLE_MS = 150  # several clicks within this time cause a single request


@dataclass(frozen=True, slots=True)
class PlanOutcome:
    """The planner's result for a model, which is a forecast or the reason why the model does not fit."""

    model: str = ""
    fits: bool = False
    problem: str = ""
    machines: tuple[str, ...] = ()  # names of the participating machines
    tok_s: float | None = None  # None if not measured yet
    spread: float = 1.0  # the factor by which an answer may be faster or slower than forecast
    ttft_s: float | None = None  # time to first token for a prompt of `prompt_tokens`
    prompt_tokens: int = 0
    advice: tuple[str, ...] = ()
    room_bytes: int = 0  # memory available for a model on this machine
    alone: bool = False
    unforecast_reason: str = ""  # why a forecast is impossible even after a measurement


class LoadForecast(QObject):
    """The forecasts shown on the Pool page.

    They are updated whenever the machines, their memory, the links or the model change.
    """

    changed = Signal()

    def __init__(self, services: AppContext, parent: QObject) -> None:
        super().__init__(parent)
        self._services = services
        self._calls: list[Call] = []
        self._in_progress: object = None  # model and excluded machines of the requests in progress
        self._again = False  # whether something has changed since these requests
        self._builtin = ""  # the built-in model, used until another one is loaded
        self._seen: object = None
        self.without: frozenset[str] = frozenset()
        self.now = PlanOutcome()  # the forecast with all machines
        self.then: PlanOutcome | None = None  # the forecast without the excluded machines
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(SETTLE_MS)
        self._soon.timeout.connect(self._ask)
        services.pool.changed.connect(self.refresh)

    @property
    def model(self) -> str:
        """The loaded model or, if there is none, the most recently loaded one, or else the built-in model."""
        loaded = self._services.pool.now.loaded
        return loaded.model if loaded else self._last_model() or self._builtin

    def leave_out(self, machine: str, out: bool) -> None:
        """Exclude a machine from the forecast, or include it again if `out` is False."""
        self.without = self.without | {machine} if out else self.without - {machine}
        self.then = None
        self._seen = None
        self.changed.emit()
        self.refresh()

    def include_all(self) -> None:
        """Include all machines again."""
        self.without, self.then = frozenset(), None
        self.changed.emit()

    def refresh(self) -> None:
        """Request new forecasts if their inputs have changed."""
        pool = self._services.pool
        loaded, machines = pool.now.loaded, pool.now.sorted_machines
        if loaded and loaded.state == "ready" and loaded.model != self._last_model():
            self._services.preferences.keep(LAST_MODEL, loaded.model)
        self.without &= {machine.id for machine in machines}
        basis = (
            self.model,
            loaded.state if loaded else None,
            self.without,
            tuple((machine.id, machine.online, machine.lent_bytes) for machine in machines),
            tuple((key, link.measured_at) for key, link in sorted(pool.now.links.items())),
        )
        if pool.is_there and basis != self._seen:
            self._seen = basis
            # under constant changes, restarting the timer would postpone the request forever
            if not self._soon.isActive():
                self._soon.start()

    def forget(self) -> None:
        """Request new forecasts even if their inputs have not changed."""
        self._seen = None
        self.refresh()

    def stop(self) -> None:
        """Cancel all requests in progress."""
        for call in self._calls:
            call.cancel()
        self._calls.clear()

    def _last_model(self) -> str:
        return self._services.preferences.text(LAST_MODEL)

    def _ask(self) -> None:
        """Query the planner. Pending requests are canceled only if the model or the set of machines has changed.

        The amount of lent memory may change faster than the planner answers, so canceling on every such change
        could prevent any forecast.
        """
        request = (self.model, self.without)
        if request == self._in_progress and any(call.running for call in self._calls):
            self._again = True
            return
        self.stop()
        self._in_progress, self._again = request, False
        if not self.model:
            # if this fails, the window already explains why the node does not answer
            self._keep(self._services.client.get("/models", self._take_models, self._go_on, answer=Models))
            return
        self._plan(frozenset())
        if self.without:
            self._plan(self.without)

    def _take_models(self, answer: Models) -> None:
        self._builtin = next((model.name for model in answer.models if model.builtin), self._builtin)
        self._again = self._again or bool(self.model)
        self._go_on()

    def _go_on(self, _: AppError | None = None) -> None:
        """Query the planner again if something changed during the last request."""
        if self._again and not any(call.running for call in self._calls):
            self._ask()

    def _plan(self, without: frozenset[str]) -> None:
        model = self.model
        body = {"model": model, "measure": False, "without": sorted(without)}
        take, refused = partial(self._take_plan, without), partial(self._refused, without, model)
        self._keep(self._services.client.post("/plan", body, take, refused, answer=Plan))

    def _take_plan(self, without: frozenset[str], plan: Plan) -> None:
        self._take(without, expected_from_plan(plan))

    def _take(self, without: frozenset[str], expected: PlanOutcome) -> None:
        if not without:
            self.now = expected
        elif without == self.without:
            self.then = expected
        self.changed.emit()
        self._go_on()

    def _refused(self, without: frozenset[str], model: str, error: AppError) -> None:
        if isinstance(error, Unreachable):
            self._seen = None  # makes the next snapshot trigger a new request
        if error.reason.code in MODEL_UNKNOWN and model == self._last_model():
            self._services.preferences.forget(LAST_MODEL)  # the model has been deleted
            self.forget()
        else:
            self._take(without, PlanOutcome(model=model, problem=said(error)))

    def _keep(self, call: Call | None) -> None:
        if call is not None:
            self._calls = [kept for kept in self._calls if kept.running]
            self._calls.append(call)


def expected_from_plan(plan: Plan) -> PlanOutcome:
    """Return the forecast contained in a plan."""
    plan = plan.as_shown()
    machines = plan.facts.machines
    return PlanOutcome(
        model=plan.model,
        fits=True,
        machines=tuple(dict.fromkeys(stage.machine for stage in plan.stages)),
        tok_s=plan.forecast.decode_tok_s if plan.forecast else None,
        spread=plan.forecast.spread if plan.forecast else 1.0,
        ttft_s=plan.first_token.ttft_s if plan.first_token else None,
        prompt_tokens=plan.first_token.prompt_tokens if plan.first_token else 0,
        advice=tuple(said(entry.reason) for entry in plan.advice),
        room_bytes=machines[0].lends_bytes if machines else 0,
        alone=len(machines) <= 1,
        unforecast_reason=unforecast_reason(plan),
    )


def unforecast_reason(plan: Plan) -> str:
    """Return the reason why the speed of this plan cannot be forecast even with measurements, or ""."""
    return next((said(entry.reason) for entry in plan.why if entry.code.startswith(UNFORECAST)), "")


class WhatIf(QFrame):
    """A bar above the map that predicts the effect of leaving machines out. It is hidden if none are left out."""

    def __init__(self, load: Callable[[], object], take_back: Callable[[], object]) -> None:
        super().__init__()
        set_role(self, "notice")
        self.setAccessibleName(self.tr("What would change"))
        self.words = paragraph()
        self.load = button(self.tr("Load it this way"), load)
        self.back = button(self.tr("Include all again"), take_back)
        box = Beside(self.words, self.load, self.back, gap=sizes.S)
        box.setContentsMargins(sizes.M, sizes.S, sizes.S, sizes.S)
        self.setLayout(box)
        self.hide()

    def show_change(self, machines: Sequence[MachineFacts], now: PlanOutcome, then: PlanOutcome | None) -> None:
        """Compare the forecast for all machines (`now`) with the one for the remaining machines (`then`).

        `then` is None until the planner has answered.
        """
        left_out = [machine for machine in machines if machine.left_out]
        self.setVisible(bool(left_out))
        if not left_out:
            return
        text = self._text(left_out, now, then)
        if text != self.words.text():
            self.words.setText(text)
            announce(self, text)
        self.load.setEnabled(then is not None and then.fits)

    def _text(self, left_out: Sequence[MachineFacts], now: PlanOutcome, then: PlanOutcome | None) -> str:
        names = ", ".join(machine.name for machine in left_out)
        if then is None:
            return self.tr("Without {names}: planning…").format(names=names)
        name = model_name(then.model)
        if not then.fits:
            text = self.tr("Without {names}, {model} does not fit. {why}")
            return text.format(names=names, model=name, why=then.problem)
        where = self.tr("on %n machine(s)", "", len(then.machines))
        if then.tok_s is None:
            text = self.tr("Without {names}, {model} still fits, {where}. Its speed hasn't been measured yet.")
            return text.format(names=names, model=name, where=where)
        speed = formats.speed_range(then.tok_s, then.spread)
        before = "" if now.tok_s is None else formats.speed_range(now.tok_s, now.spread)
        # possible even for a machine without benefit, if the user placed the layers by hand
        in_use = any(machine.held.layers for machine in left_out)
        if before and before != speed:
            text = self.tr("Without {names}, {model} would run at {then} instead of {now}, {where}.")
        elif before and not in_use:
            text = self.tr("Without {names}, {model} would still run at {then}, {where}.")
        else:
            text = self.tr("Without {names}, {model} would run at {then}, {where}.")
        return text.format(names=names, model=name, then=speed, now=before, where=where)
