"""The card with the hardware of this computer and its measured speed."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtWidgets import QFrame, QGridLayout, QWidget

from app.api.computer import Computer, Disk, Engine, Memory
from app.api.models import Speeds
from app.api.responses import ProgressLine
from app.core.errors import AppError
from app.gui.api.node_client import Call
from app.gui.app.app_context import AppContext
from app.gui.look import formats, sizes
from app.gui.look.sentences import GUIDE, model_name, said
from app.gui.look.theme import set_role
from app.gui.widgets.buttons import button
from app.gui.widgets.flow import Beside
from app.gui.widgets.labels import label, paragraph
from app.gui.widgets.layouts import clear_layout, column, line
from app.gui.widgets.notice import Remark
from app.gui.widgets.progress import Progress

ENGINES = {"llamacpp": "llama.cpp", "pytorch": "PyTorch", "apple": "MLX"}
CPU_FEATURES = ("AVX512", "AVX2", "AVX", "SVE", "NEON")  # best first


def hardware_lines(computer: Computer) -> list[tuple[str, str]]:
    """Return the name and value of each hardware property that is known."""
    lines = [
        (_tr("System"), computer.system),
        (_tr("Processor"), _processor(computer)),
        (_tr("Temperature"), _temperature(computer.hottest_c)),
        (_tr("Memory"), _amounts(computer.memory)),
        (_tr("Graphics"), _graphics(computer)),
        (_tr("Engine"), "\n".join(map(_engine, computer.engines))),
        (_tr("Model disk"), _amounts(computer.disk)),
        (_tr("Models folder"), computer.disk.folder),
    ]
    return [(name, text) for name, text in lines if text]


def speed_words(answer: Speeds, machine: str) -> str | None:
    """Return a text about the model's speed on this machine alone, or None if its layers have not been measured."""
    speed = answer.speeds.get(machine)
    if not speed or not answer.n_layers or not answer.batch_rows:
        return None
    token_s = speed.step_s + answer.n_layers * speed.layer_s + speed.head_s
    prefill_s = speed.step_s + answer.n_layers * speed.chunk_s
    text = _tr(
        "This machine computes a layer of {model} in {layer}. Alone, it would write at about "
        "{rate} and read prompts at about {prefill}."
    )
    return text.format(
        model=model_name(answer.model),
        layer=formats.seconds(speed.layer_s),
        rate=formats.speed(1 / token_s),
        prefill=formats.speed(answer.batch_rows / prefill_s),
    )


def _temperature(hottest_c: float | None) -> str:
    """Return the processor temperature, or "" if the operating system does not report it."""
    return "" if hottest_c is None else f"{formats.number(hottest_c)} °C"


def _amounts(storage: Memory | Disk) -> str:
    text = _tr("{free} free of {total}")
    return text.format(free=formats.size(storage.free_bytes), total=formats.size(storage.total_bytes))


def _processor(computer: Computer) -> str:
    threads = computer.threads_now or computer.threads
    text = QCoreApplication.translate("Hardware", "{name}, %n core(s), {threads} used for models", "", computer.cores)
    if computer.cores == threads:
        text = QCoreApplication.translate("Hardware", "{name}, %n core(s)", "", computer.cores)
    return text.format(name=computer.processor, threads=threads)


def unused_graphics(computer: Computer) -> str:
    """Explain why a graphics card is not used and how to change that, or return "" if there is none."""
    unused = computer.unused_graphics
    return " ".join(said(reason) for reason in (unused.reason_facts, unused.cure_facts) if reason) if unused else ""


def _graphics(computer: Computer) -> str:
    """Return the graphics cards that run models, and the other cards with the reasons why they do not."""
    lines = []
    for card in [*([computer.card] if computer.card else []), *computer.more_cards]:
        text = _tr("{name} ({size}, {api}) runs the models")
        lines.append(text.format(name=card.label, size=formats.size(card.total_bytes), api=card.api))
    for other in computer.unused_cards:
        why = said(other.reason_facts) if other.reason_facts else ""
        lines.append(_tr("{name}: {why}").format(name=other.label, why=why))
    lines += [said(refused.reason_facts) for refused in computer.refused_families if refused.reason_facts]
    lines += filter(None, [unused_graphics(computer)])
    return "\n".join(lines) or _tr("No card in use; models run on the processor")


def _engine(engine: Engine) -> str:
    name = ENGINES.get(engine.name, engine.name)
    if engine.missing_facts:
        return _tr("{name} cannot be used: {why}.").format(name=name, why=said(engine.missing_facts))
    best = next((f"({feature})" for feature in CPU_FEATURES if feature in engine.features), "")
    return f"{name} {engine.version} {best}".rstrip()


class HardwareCard(QFrame):
    """The hardware card. It is refreshed only when the page is shown, because most values rarely change."""

    def __init__(self, services: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_role(self, "card")
        self._client, self._pool = services.client, services.pool
        self._look: Call | None = None
        self._measuring: Call | None = None
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(sizes.XL)
        self._grid.setVerticalSpacing(sizes.S)
        self._grid.setColumnStretch(1, 1)
        self._waiting = Remark(services.theme, services.go)
        self.speed = Remark(services.theme, services.go, self.tr("Not measured yet."), "")
        self.measure = button(self.tr("Measure speed"), self._measure)
        self.cancel = button(self.tr("Cancel"), self._cancel)
        self.progress = Progress(self.tr("Progress of the measurement"))
        left = QWidget()
        left.setLayout(column(self.speed, self.progress, gap=0))
        measured = Beside(left, self.cancel, self.measure)
        title = label(self.tr("Hardware of this machine"), "section")
        box = column(title, self._waiting, self._grid, line(), measured, gap=sizes.M)
        box.setContentsMargins(sizes.L, sizes.L, sizes.L, sizes.L)
        self.setLayout(box)
        self._show_measuring(False)
        services.pool.link_changed.connect(self._show_waiting)
        self._show_waiting()

    @property
    def is_measuring(self) -> bool:
        """Return whether the user is waiting for a measurement."""
        return not self.cancel.isHidden()

    def refresh(self) -> None:
        """Request the hardware and, if it was measured before, the speed."""
        if self._look is None and self._pool.is_there:
            self._look = self._client.get("/machine", self._show, self._fail, answer=Computer)
            self._show_waiting()

    def _show_waiting(self) -> None:
        there = self._pool.is_there
        asking = self.tr("Checking the hardware…")
        absent = self.tr("Details appear when the background service is running.")
        self._waiting.say(asking if there else absent, "muted")
        self.measure.setEnabled(there)

    def _show(self, computer: Computer) -> None:
        self._look = None
        self._waiting.hide()
        clear_layout(self._grid)
        for number, (name, text) in enumerate(hardware_lines(computer)):
            self._grid.addWidget(label(name, "muted"), number, 0, Qt.AlignmentFlag.AlignTop)
            self._grid.addWidget(paragraph(text), number, 1)
        if self._measuring is None:
            self._ask_speed(known_only=True)

    def _fail(self, error: AppError) -> None:
        self._look = None
        self._waiting.fail(error)

    def _measure(self) -> None:
        self._show_measuring(True)
        self._ask_speed(known_only=False)

    def _ask_speed(self, *, known_only: bool) -> None:
        loaded = self._pool.now.loaded
        body = {"model": loaded.model if loaded else GUIDE, "only_here": True, "known_only": known_only}
        self._measuring = self._client.call(
            "POST",
            "/speeds",
            body,
            self._measured,
            self._not_measured,
            self._progressed,
            answer=Speeds,
            each=ProgressLine,
        )

    def _progressed(self, line: ProgressLine) -> None:
        if line.progress.total:
            self.progress.tell(line.progress.done / line.progress.total)

    def _measured(self, answer: Speeds) -> None:
        person_waits = self.cancel.isVisible()
        self._measuring = None
        self._show_measuring(False)
        own_id = self._pool.now.node.id
        words = speed_words(answer, own_id)
        if words is not None:
            self.speed.say(words, "")
        elif person_waits:
            reason = answer.reasons_facts.get(own_id)
            later = self.tr("The speed couldn't be measured now. Try again when no answer is in progress.")
            self.speed.say(said(reason) or later, "")
        else:
            self.speed.say(self.tr("The model's speed hasn't been measured yet."), "muted")

    def _not_measured(self, error: AppError) -> None:
        person_waits = self.cancel.isVisible()
        self._measuring = None
        self._show_measuring(False)
        if person_waits:
            self.speed.fail(error)

    def _cancel(self) -> None:
        if self._measuring is not None:
            self._measuring.cancel()
            self._measuring = None
        self._show_measuring(False)

    def _show_measuring(self, on: bool) -> None:
        self.progress.tell(None)
        had_focus = self.measure.hasFocus() or self.cancel.hasFocus()
        self.progress.setVisible(on)
        self.cancel.setVisible(on)
        self.speed.setVisible(not on)
        self.measure.setVisible(not on)
        if had_focus:
            (self.cancel if on else self.measure).setFocus()


def _tr(text: str) -> str:
    return QCoreApplication.translate("Hardware", text)
