"""The loader of models, and a view of its progress on each machine."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QCoreApplication, QObject, Signal
from PySide6.QtWidgets import QLabel, QWidget

from app.api.plans import LoadedModel, Progress
from app.api.responses import LoadResponse, ProgressLine
from app.core.errors import AppError
from app.gui.api.node_client import Calls
from app.gui.api.node_state import NodeState
from app.gui.look import formats, sizes
from app.gui.look.sentences import model_name
from app.gui.models.details.plan_loader import Setup
from app.gui.widgets.buttons import button
from app.gui.widgets.flow import Beside
from app.gui.widgets.labels import ElidedLabel, label, paragraph
from app.gui.widgets.layouts import clear_layout, column, layout_widget, row
from app.gui.widgets.progress import Progress as ProgressBar

translate = QCoreApplication.translate
MIN_CHARACTERS = 12  # minimum number of visible characters of a name
LOAD, UNLOAD = "load", "unload"


class ModelLoader(QObject):
    """Loads models one at a time, and also tracks loads that were requested elsewhere."""

    changed = Signal()
    loaded = Signal(object)  # LoadedModel
    failed = Signal(object)  # AppError

    def __init__(self, pool: NodeState, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pool, self._calls = pool, Calls()
        self._model = ""
        self._progress: dict[str, Progress] = {}
        self._seen: object = None
        pool.changed.connect(self._pool_changed)
        pool.link_changed.connect(self._pool_changed)  # without a node, nothing is being loaded

    @property
    def model(self) -> str:
        """The name of the model that is being loaded, or an empty string."""
        if self._calls.running(LOAD):
            return self._model
        return self._loading.model if self._loading is not None else ""

    @property
    def is_ours(self) -> bool:
        """Return whether this window requested the current load. If so, closing the window cancels it."""
        return self._calls.running(LOAD)

    @property
    def _loading(self) -> LoadedModel | None:
        """The model that the node is loading, regardless of who requested it."""
        loading = (model for model in self._pool.now.models if model.state == "loading")
        return next((model for model in loading if not model.stopping), None)

    @property
    def steps(self) -> list[Progress]:
        """The latest progress report of each machine."""
        steps = self._loading.progress if self._loading is not None else {}
        if self._calls.running(LOAD):
            steps = {**self._progress, **steps}
        return [step for step in steps.values() if step.machine] or list(steps.values())

    def start(self, setup: Setup, *, anyway: bool = False, beside: bool = False) -> None:
        """Load a model, either replacing the current one or, if `beside` is set, alongside it.

        The node unloads the current model only after it has determined that the new one fits.
        """
        self._model, self._progress = setup.item.name, {}
        flags = {"anyway": anyway, "beside": beside}
        body = setup.load_body() | {name: True for name, is_set in flags.items() if is_set}
        call = self._pool.client.call(
            "POST", "/load", body, self._done, self._refused, self._stepped, answer=LoadResponse, each=ProgressLine
        )
        self._calls.keep(LOAD, call)
        self.changed.emit()

    def cancel(self) -> None:
        """Cancel the current load."""
        if self._calls.running(LOAD):
            self._calls.end(LOAD)
            self.changed.emit()
        else:
            self.unload(self.model)

    def unload(self, model: str) -> None:
        """Unload a model and free its memory on all machines."""
        body = {"model": model} if model else None
        call = self._pool.client.post("/unload", body, self._unloaded, self._not_unloaded)
        self._calls.keep(UNLOAD, call)

    def end(self) -> None:
        self._calls.end_all()

    def _stepped(self, line: ProgressLine) -> None:
        self._progress[line.progress.machine or ""] = line.progress
        self.changed.emit()

    def _done(self, answer: LoadResponse) -> None:
        self._calls.done(LOAD)
        self.changed.emit()
        self.loaded.emit(answer.loaded)

    def _refused(self, error: AppError) -> None:
        self._calls.done(LOAD)
        self.changed.emit()
        self.failed.emit(error)

    def _unloaded(self, _: object) -> None:
        self._calls.done(UNLOAD)
        self.changed.emit()

    def _not_unloaded(self, error: AppError) -> None:
        self._calls.done(UNLOAD)
        self.failed.emit(error)

    def _pool_changed(self) -> None:
        """Emit `changed` if the loaded models or the progress of a load have changed."""
        snapshot = self._pool.now
        embeds = snapshot.embeds
        seen = (
            [
                (model.model, model.state, model.stopping, model.progress, model.last_answer)
                for model in snapshot.models
            ],
            (embeds.model, embeds.state) if embeds is not None else None,
        )
        if seen != self._seen:
            self._seen = seen
            self.changed.emit()


class LoadSteps(QWidget):
    """The progress of a load, with a line for each machine and a Cancel button."""

    def __init__(self, cancel: Callable[[], object]) -> None:
        super().__init__()
        self._lines: dict[str, tuple[QLabel, ProgressBar]] = {}
        self.title = label("", "section")
        self.total = paragraph("", "muted")
        self._rows = column(gap=sizes.M)
        self.cancel = button(self.tr("Cancel"), cancel)
        self.setLayout(column(self.title, self.total, self._rows, row(self.cancel, None), gap=sizes.M))

    def show_steps(self, name: str, steps: list[Progress]) -> None:
        """Show the latest progress of each machine that is loading a part of the model."""
        machines = [step.machine or "" for step in steps]
        if machines != list(self._lines):
            self._make(machines)
        for machine, step in zip(machines, steps, strict=True):
            words, bar = self._lines[machine]
            words.setText(step_words(step))
            bar.tell(step.done / step.total if step.total > 1 or is_finished(step) else None)
        self.title.setText(self._headline(name, steps))
        copying = all_copies(steps)
        self.total.setVisible(copying is not None)
        if copying is not None:
            words_for_all = self.tr("All machines: {amounts}")
            self.total.setText(words_for_all.format(amounts=", ".join(_amounts(copying))))

    def _headline(self, name: str, steps: list[Progress]) -> str:
        model = model_name(name)
        if steps and all(step.step == "loading" and is_finished(step) for step in steps):
            return self.tr("Verifying {model} with a known answer").format(model=model)
        return self.tr("Loading {model}").format(model=model)

    def _make(self, machines: list[str]) -> None:
        clear_layout(self._rows)
        self._lines = {}
        for machine in machines:
            words, bar = label("", "muted"), ProgressBar()
            bar.setAccessibleName(machine or self.tr("Progress"))
            head = layout_widget(Beside(ElidedLabel(machine or self.tr("This file")), words, least=MIN_CHARACTERS))
            self._rows.addLayout(column(head, bar, gap=sizes.XS))
            self._lines[machine] = (words, bar)


def step_words(step: Progress) -> str:
    """Describe the current step of a machine."""
    if is_finished(step) and step.step == "loading":
        return translate("Models", "Loaded")
    words = {
        "hashing": translate("Models", "Checking the file"),
        "testing_card": translate("Models", "Testing the graphics card"),
        "measuring": translate("Models", "Measuring"),
        "cutting": translate("Models", "Preparing its layers"),
        "sending": translate("Models", "Copying its layers"),
        "loading": translate("Models", "Loading its layers"),
    }.get(step.step, translate("Models", "Working"))
    return ", ".join([words, *_amounts(step)]) if step.unit == "bytes" and step.total else words


def _amounts(step: Progress) -> list[str]:
    """Return texts for the amount completed and, for a network transfer, the speed and the remaining time."""
    words = translate("Models", "{done} of {total}")
    amounts = [words.format(done=formats.size(step.done), total=formats.size(step.total))]
    if step.bytes_per_s is not None:
        amounts.append(f"{formats.size(step.bytes_per_s)}/s")
    if step.seconds_left is not None:
        amounts.append(translate("Models", "{time} left").format(time=formats.seconds(step.seconds_left)))
    return amounts


def all_copies(steps: list[Progress]) -> Progress | None:
    """Combine the progress of all network transfers. Return None if fewer than two machines receive layers."""
    copies = [step for step in steps if step.step == "sending"]
    if len(copies) < 2:
        return None
    speeds = [step.bytes_per_s for step in copies if step.bytes_per_s is not None]
    lefts = [step.seconds_left for step in copies if step.seconds_left is not None]
    return Progress(
        step="sending",
        machine=None,
        done=sum(step.done for step in copies),
        total=sum(step.total for step in copies),
        unit="bytes",
        bytes_per_s=sum(speeds) if speeds else None,
        seconds_left=max(lefts, default=None),
    )


def is_finished(step: Progress) -> bool:
    return bool(step.total) and step.done == step.total
