"""The forecast for a model in this household, as it is now and with machines left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QFrame

from app.core.errors import AppError, Unreachable
from app.gui.api.node_client import Call
from app.gui.app.app_context import AppContext
from app.gui.look import formats
from app.gui.look import theme as sizes
from app.gui.look.accessibility import announce
from app.gui.look.sentences import here, model_name, said
from app.gui.look.theme import set_role
from app.gui.pool.machine_facts import MachineFacts
from app.gui.widgets.buttons import button
from app.gui.widgets.flow import Beside
from app.gui.widgets.labels import paragraph

Json = dict[str, Any]
LAST_MODEL = "pool/last_model"
UNFORECAST = "unforecast_"  # so begin the codes of reasons against a forecast
SETTLE_MS = 150  # several clicks make one question


@dataclass(frozen=True, slots=True)
class Expected:
    """An answer of the planner: it fits, or it says why it does not."""

    model: str = ""
    fits: bool = False
    problem: str = ""
    machines: tuple[str, ...] = ()  # names of those that would take part
    tok_s: float | None = None  # None: not measured yet
    ttft_s: float | None = None  # to the first word, after so many tokens of a prompt:
    prompt_tokens: int = 0
    advice: tuple[str, ...] = ()
    room_bytes: int = 0  # of a model, on this machine
    alone: bool = False
    never: str = ""  # why no speed of this model can be forecast, measured or not


class Outlook(QObject):
    """Asks the planner again whenever something that it rests on may be another."""

    changed = Signal()

    def __init__(self, services: AppContext, parent: QObject) -> None:
        super().__init__(parent)
        self._services = services
        self._calls: list[Call] = []
        self._asked: object = None  # of what the calls under way are
        self._again = False  # something changed since
        self._shelf: str = ""  # the built-in model, until one was loaded
        self._seen: object = None
        self.without: frozenset[str] = frozenset()
        self.now = Expected()  # with every machine
        self.then: Expected | None = None  # without those left out
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(SETTLE_MS)
        self._soon.timeout.connect(self._ask)
        services.pool.changed.connect(self.look)

    @property
    def model(self) -> str:
        """What is loaded, else what was, else the built-in model."""
        loaded = self._services.pool.loaded
        if loaded:
            return str(loaded.get("model") or "")
        return self._services.preferences.text(LAST_MODEL) or self._shelf

    def leave_out(self, machine: str, out: bool) -> None:
        """See what changes without `machine`, or take it back in."""
        self.without = self.without | {machine} if out else self.without - {machine}
        self.then = None
        self._seen = None
        self.changed.emit()
        self.look()

    def take_all_back(self) -> None:
        self.without, self.then = frozenset(), None
        self.changed.emit()

    def look(self) -> None:
        """Ask again if the machines, what they lend, or the model changed."""
        pool = self._services.pool
        loaded = pool.loaded or {}
        if loaded.get("state") == "ready" and loaded.get("model") != self._kept():
            self._services.preferences.keep(LAST_MODEL, loaded["model"])
        gone = self.without - {one["id"] for one in pool.machines}
        if gone:
            self.without -= gone
        rests_on = (
            self.model,
            loaded.get("state"),
            self.without,
            tuple((one["id"], one["online"], one["lent_bytes"]) for one in pool.machines),
            tuple((key, link.get("measured_at")) for key, link in self._links()),
        )
        if pool.is_there and rests_on != self._seen:
            self._seen = rests_on
            if not self._soon.isActive():  # news without a pause would put it off for ever
                self._soon.start()

    def forget(self) -> None:
        """Ask anew at the next look."""
        self._seen = None
        self.look()

    def stop(self) -> None:
        """Hear of no answer any more."""
        for call in self._calls:
            call.cancel()
        self._calls.clear()

    def _kept(self) -> str:
        return self._services.preferences.text(LAST_MODEL)

    def _links(self) -> list[tuple[str, Json]]:
        return sorted((self._services.pool.snapshot.get("links") or {}).items())

    def _ask(self) -> None:
        """A question under way is left to end, unless a person wants to know something else.

        What is lent may change faster than the planner answers: it would never answer then.
        """
        asked = (self.model, self.without)
        if asked == self._asked and any(call.running for call in self._calls):
            self._again = True
            return
        self.stop()
        self._asked, self._again = asked, False
        if not self.model:
            self._keep(self._services.client.get("/models", self._shelf_known, self._shelf_unknown))
            return
        self._plan(frozenset())
        if self.without:
            self._plan(self.without)

    def _shelf_known(self, answer: Json) -> None:
        for one in answer.get("models") or ():
            if one.get("builtin"):
                self._shelf = str(one["name"])
        self._again = self._again or bool(self.model)
        self._go_on()

    def _shelf_unknown(self, _: AppError) -> None:
        """The window's bar says why the node does not answer."""
        self._go_on()

    def _go_on(self) -> None:
        """Ask again if something changed meanwhile."""
        if self._again and not any(call.running for call in self._calls):
            self._ask()

    def _plan(self, without: frozenset[str]) -> None:
        model = self.model
        body = {"model": model, "measure": False, "without": sorted(without)}
        self._keep(
            self._services.client.post(
                "/plan",
                body,
                lambda answer: self._take(without, read(answer)),
                lambda error: self._refused(without, model, error),
            )
        )

    def _take(self, without: frozenset[str], expected: Expected) -> None:
        if not without:
            self.now = expected
        elif without == self.without:
            self.then = expected
        self.changed.emit()
        self._go_on()

    def _refused(self, without: frozenset[str], model: str, error: AppError) -> None:
        if isinstance(error, Unreachable):
            self._seen = None  # the next news of the pool asks again
        if error.reason.code == "model_unknown" and model == self._kept():
            self._services.preferences.forget(LAST_MODEL)  # it was deleted from the shelf
            self.forget()
        else:
            self._take(without, Expected(model=model, problem=said(error)))

    def _keep(self, call: Call | None) -> None:
        if call is not None:
            self._calls = [one for one in self._calls if one.running]
            self._calls.append(call)


def read(plan: Json) -> Expected:
    """What a plan says."""
    forecast, first = plan.get("forecast") or {}, plan.get("first_token") or {}
    known = (plan.get("from") or {}).get("machines") or [{}]
    return Expected(
        model=str(plan.get("model")),
        fits=True,
        machines=tuple(dict.fromkeys(stage["machine"] for stage in plan.get("stages") or ())),
        tok_s=forecast.get("decode_tok_s"),
        ttft_s=first.get("ttft_s"),
        prompt_tokens=int(first.get("prompt_tokens") or 0),
        advice=tuple(here(one["sentence"]) for one in plan.get("advice") or ()),
        room_bytes=int(known[0].get("lends_bytes") or 0),
        alone=len(known) == 1,
        never=never(plan),
    )


def never(plan: Json) -> str:
    """Why no speed of a plan's model can be forecast; "" where one can be, once it is measured."""
    for one in plan.get("why") or ():
        if str(one.get("code")).startswith(UNFORECAST):
            return here(str(one["sentence"]))
    return ""


class WhatIf(QFrame):
    """Hidden while nobody is left out."""

    def __init__(self, load: Callable[[], object], take_back: Callable[[], object]) -> None:
        super().__init__()
        set_role(self, "notice")
        self.setAccessibleName(self.tr("What would change"))
        self.words = paragraph()
        self.load = button(self.tr("Load it this way"), load)
        self.back = button(self.tr("Take all back in"), take_back)
        box = Beside(self.words, self.load, self.back, gap=sizes.S)
        box.setContentsMargins(sizes.M, sizes.S, sizes.S, sizes.S)
        self.setLayout(box)
        self.hide()

    def show_change(self, machines: Sequence[MachineFacts], now: Expected, then: Expected | None) -> None:
        """`then` is None while the planner thinks."""
        out = any(one.left_out for one in machines)
        self.setVisible(out)
        if not out:
            return
        told = self._told(machines, now, then)
        if told != self.words.text():
            self.words.setText(told)
            announce(self, told)
        self.load.setEnabled(then is not None and then.fits)

    def _told(self, machines: Sequence[MachineFacts], now: Expected, then: Expected | None) -> str:
        names = ", ".join(one.name for one in machines if one.left_out)
        if then is None:
            return self.tr("Without {names}: planning…").format(names=names)
        name = model_name(then.model)
        if not then.fits:
            text = self.tr("Without {names}, {model} does not fit. {why}")
            return text.format(names=names, model=name, why=then.problem)
        where = self.tr("on %n machine(s)", "", len(then.machines))
        if then.tok_s is None:
            text = self.tr("Without {names}, {model} still fits, {where}. Its speed is not measured yet.")
            return text.format(names=names, model=name, where=where)
        fast = formats.speed(then.tok_s)
        before = "" if now.tok_s is None else formats.speed(now.tok_s)
        in_use = any(one.left_out and one.layers for one in machines)  # placed by hand
        if before and before != fast:
            text = self.tr("Without {names}, {model} would run at {then} instead of {now}, {where}.")
        elif before and not in_use:
            text = self.tr("Without {names} nothing changes: {model} would run at {then}, {where}.")
        else:
            text = self.tr("Without {names}, {model} would run at {then}, {where}.")
        return text.format(names=names, model=name, then=fast, now=before, where=where)
