"""Brings a model up on the machines, and knows where each of them stands with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QCoreApplication, QObject, Signal
from PySide6.QtWidgets import QLabel, QWidget

from app.core.errors import AppError
from app.gui.api.node_state import NodeState
from app.gui.look import formats
from app.gui.look import theme as sizes
from app.gui.look.sentences import model_name
from app.gui.models.details.plan_loader import Setup
from app.gui.models.node_calls import Calls
from app.gui.widgets.buttons import button
from app.gui.widgets.flow import Beside
from app.gui.widgets.labels import Elided, label, paragraph
from app.gui.widgets.layouts import clear, column, held, row
from app.gui.widgets.progress import Progress

Json = dict[str, Any]
translate = QCoreApplication.translate
NAME = 12  # characters of a name that are shown at least
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


class LoadSteps(QWidget):
    """A line for each machine, and Cancel."""

    def __init__(self, cancel: Callable[[], object]) -> None:
        super().__init__()
        self._lines: dict[str, tuple[QLabel, Progress]] = {}
        self.title = label("", "section")
        self.total = paragraph("", "muted")
        self._rows = column(gap=sizes.M)
        self.cancel = button(self.tr("Cancel"), cancel)
        box = column(self.title, self.total, self._rows, row(self.cancel, None), gap=sizes.M)
        self.setLayout(box)

    def show_steps(self, model: str, steps: list[Json]) -> None:
        """The newest step of each machine."""
        names = [str(step.get("machine") or "") for step in steps]
        if names != list(self._lines):
            self._make(names)
        for name, step in zip(names, steps, strict=True):
            words, bar = self._lines[name]
            words.setText(step_words(step))
            done, total = float(step.get("done") or 0), float(step.get("total") or 0)
            bar.tell(done / total if total > 1 or is_over(step) else None)
        self.title.setText(self._headline(model, steps))
        whole = together(steps)
        self.total.setVisible(whole is not None)
        if whole is not None:
            every = self.tr("All machines: {amounts}")
            amounts = ", ".join(_amounts(whole, whole["done"], whole["total"]))
            self.total.setText(every.format(amounts=amounts))

    def _headline(self, name: str, steps: list[Json]) -> str:
        model = model_name(name)
        loaded = [step.get("step") == "loading" and is_over(step) for step in steps]
        if loaded and all(loaded):
            return self.tr("Checking {model} with a known answer").format(model=model)
        return self.tr("Loading {model}").format(model=model)

    def _make(self, names: list[str]) -> None:
        clear(self._rows)
        self._lines = {}
        for name in names:
            words, bar = label("", "muted"), Progress()
            bar.setAccessibleName(name or self.tr("Progress"))
            head = held(Beside(Elided(name or self.tr("This file")), words, least=NAME))
            self._rows.addLayout(column(head, bar, gap=sizes.XS))
            self._lines[name] = (words, bar)


def step_words(step: Json) -> str:
    """What a machine does now."""
    words = {
        "hashing": translate("Models", "Checking the file"),
        "measuring": translate("Models", "Measuring"),
        "cutting": translate("Models", "Preparing its layers"),
        "sending": translate("Models", "Copying its layers"),
        "loading": translate("Models", "Loading its layers"),
    }
    said = words.get(str(step.get("step")), translate("Models", "Working"))
    if is_over(step) and step.get("step") == "loading":
        return translate("Models", "Loaded")
    done, total = step.get("done") or 0, step.get("total") or 0
    if step.get("unit") == "bytes" and total:
        return ", ".join([said, *_amounts(step, done, total)])
    return said


def _amounts(step: Json, done: float, total: float) -> list[str]:
    """How much, and while it goes over the network how fast and how long still."""
    words = translate("Models", "{done} of {total}")
    found = [words.format(done=formats.size(done), total=formats.size(total))]
    if step.get("bytes_per_s") is not None:
        found.append(f"{formats.size(step['bytes_per_s'])}/s")
    if step.get("seconds_left") is not None:
        left = translate("Models", "{time} left")
        found.append(left.format(time=formats.seconds(step["seconds_left"])))
    return found


def together(steps: list[Json]) -> Json | None:
    """All copies over the network as one step; None where fewer than two machines get layers."""
    copies = [step for step in steps if step.get("step") == "sending"]
    if len(copies) < 2:
        return None
    speeds = [step["bytes_per_s"] for step in copies if step.get("bytes_per_s") is not None]
    lefts = [step["seconds_left"] for step in copies if step.get("seconds_left") is not None]
    return {
        "step": "sending",
        "unit": "bytes",
        "done": sum(step["done"] for step in copies),
        "total": sum(step["total"] for step in copies),
        "bytes_per_s": sum(speeds) if speeds else None,
        "seconds_left": max(lefts) if lefts else None,
    }


def is_over(step: Json) -> bool:
    return bool(step.get("total")) and step.get("done") == step.get("total")
