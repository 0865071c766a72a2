"""Where each machine stands while a model is loaded: checking, copying, loading, a known answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QLabel, QWidget

from app.gui.look import formats
from app.gui.look import theme as sizes
from app.gui.look.sentences import model_name
from app.gui.widgets.buttons import button
from app.gui.widgets.flow import Beside
from app.gui.widgets.labels import Elided, label, paragraph
from app.gui.widgets.layouts import clear, column, held, row
from app.gui.widgets.progress import Progress

Json = dict[str, Any]
translate = QCoreApplication.translate
NAME = 12  # characters of a name that are shown at least


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
