"""The card that shows this computer's hardware and its measured speed."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtWidgets import QFrame, QGridLayout, QWidget

from app.core.errors import AppError
from app.gui.api.node_client import Call, Json
from app.gui.app.app_context import AppContext
from app.gui.look import formats
from app.gui.look import theme as sizes
from app.gui.look.sentences import fact_here, here, model_name
from app.gui.look.theme import set_role
from app.gui.widgets.buttons import button
from app.gui.widgets.flow import Beside
from app.gui.widgets.labels import label, paragraph
from app.gui.widgets.layouts import clear, column, line
from app.gui.widgets.notice import Remark
from app.gui.widgets.progress import Progress

ENGINES = {"llamacpp": "llama.cpp", "pytorch": "PyTorch", "apple": "MLX"}
TELLING = ("AVX512", "AVX2", "AVX", "SVE", "NEON")  # of a processor's features, the best one


def hardware_lines(machine: Json) -> list[tuple[str, str]]:
    """Name and text of each fact, in a person's order."""
    tr = QCoreApplication.translate
    memory, disk = machine.get("memory") or {}, machine.get("disk") or {}
    amounts = tr("Hardware", "{free} free of {total}")
    found = [
        (tr("Hardware", "System"), str(machine.get("system") or "")),
        (tr("Hardware", "Processor"), _processor(machine)),
        (tr("Hardware", "Temperature"), _heat(machine.get("hottest_c"))),
        (tr("Hardware", "Memory"), amounts.format(**_amounts(memory))),
        (tr("Hardware", "Graphics"), _graphics(machine)),
        (tr("Hardware", "Engine"), "\n".join(map(_engine, machine.get("engines") or []))),
        (tr("Hardware", "Disk of the models"), amounts.format(**_amounts(disk))),
        (tr("Hardware", "Models are kept in"), str(disk.get("folder") or "")),
    ]
    return [(name, text) for name, text in found if text]


def speed_words(answer: Json, ident: str) -> str | None:
    """From `POST /speeds`: what the measured layers make. None: not measured."""
    speed = (answer.get("speeds") or {}).get(ident)
    layers, rows = int(answer.get("n_layers") or 0), int(answer.get("batch_rows") or 0)
    if not speed or not layers or not rows:
        return None
    token_s = speed["step_s"] + layers * speed["layer_s"] + speed["head_s"]
    prefill_s = speed["step_s"] + layers * speed["chunk_s"]
    text = QCoreApplication.translate(
        "Hardware", "{model}: {layer} a layer. Alone about {rate}, prompts about {prefill}."
    )
    return text.format(
        model=model_name(str(answer.get("model"))),
        layer=formats.seconds(speed["layer_s"]),
        rate=formats.speed(1 / token_s),
        prefill=formats.speed(rows / prefill_s),
    )


def _heat(hottest_c: float | None) -> str:
    """Of the processor; nothing where the system does not tell."""
    return "" if hottest_c is None else f"{formats.number(hottest_c)} °C"


def _amounts(amounts: Json) -> dict[str, str]:
    return {
        "free": formats.size(amounts.get("free_bytes") or 0),
        "total": formats.size(amounts.get("total_bytes") or 0),
    }


def _processor(machine: Json) -> str:
    cores, threads = (int(machine.get("cores") or 0), int(machine.get("threads_now") or machine.get("threads") or 0))
    text = QCoreApplication.translate("Hardware", "{name}, %n core(s), of which {threads} compute", "", cores)
    if cores == threads:
        text = QCoreApplication.translate("Hardware", "{name}, %n core(s)", "", cores)
    return text.format(name=machine.get("processor"), threads=threads)


def unused_graphics(machine: Json) -> str:
    """That a card is there but not used, and what helps; empty where there is none."""
    unused = machine.get("unused_graphics") or {}
    return " ".join(filter(None, (here(str(unused.get(one) or "")) for one in ("reason", "cure"))))


def _graphics(machine: Json) -> str:
    """What engines find; every one computes on the processor only, and that is said."""
    found = {
        f"{device.get('description') or device.get('name')} "
        f"({formats.size(device.get('total_bytes') or 0)}, {device.get('api')})"
        for engine in machine.get("engines") or []
        for device in engine.get("devices") or []
        if device.get("kind") != "cpu"
    }
    cards, unused = ", ".join(sorted(found)), unused_graphics(machine)
    if unused:
        return f"{cards}\n{unused}".strip()
    if not found:
        return QCoreApplication.translate("Hardware", "None that is used: this version computes with the processor")
    text = QCoreApplication.translate(
        "Hardware", "{cards}. Not used yet: this version computes with the processor, which is slower."
    )
    return text.format(cards=cards)


def _engine(engine: Json) -> str:
    name = ENGINES.get(str(engine.get("name")), str(engine.get("name")))
    if engine.get("missing"):
        text = QCoreApplication.translate("Hardware", "{name} cannot be used: {why}.")
        return text.format(name=name, why=fact_here("why", str(engine["missing"])))
    best = [one for one in TELLING if one in (engine.get("features") or [])][:1]
    return " ".join([name, str(engine.get("version") or ""), *(f"({one})" for one in best)])


class HardwareCard(QFrame):
    """Asked when the page is shown; nothing of it changes by itself but free amounts."""

    def __init__(self, services: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_role(self, "card")
        self._client, self._pool = services.client, services.pool
        self._asked: Call | None = None
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
        said = QWidget()
        said.setLayout(column(self.speed, self.progress, gap=0))
        measured = Beside(said, self.cancel, self.measure)
        title = label(self.tr("This machine has"), "section")
        box = column(title, self._waiting, self._grid, line(), measured, gap=sizes.M)
        box.setContentsMargins(sizes.L, sizes.L, sizes.L, sizes.L)
        self.setLayout(box)
        self._show_measuring(False)
        services.pool.link_changed.connect(self._tell_waiting)
        self._tell_waiting()

    @property
    def is_asked(self) -> bool:
        """Whether somebody waits for this machine to be measured."""
        return not self.cancel.isHidden()

    def look(self) -> None:
        """Ask what is there, and whether the speed is known already."""
        if self._asked is None and self._pool.is_there:
            self._asked = self._client.get("/machine", self._tell, self._fail)
            self._tell_waiting()

    def _tell_waiting(self) -> None:
        """Nobody is asked while no node is there."""
        there = self._pool.is_there
        asking = self.tr("Asking the engines what they find…")
        absent = self.tr("Shown as soon as the background service runs.")
        self._waiting.say(asking if there else absent, "muted")
        self.measure.setEnabled(there)

    def _tell(self, machine: Json) -> None:
        self._asked = None
        self._waiting.hide()
        clear(self._grid)
        for at, (name, text) in enumerate(hardware_lines(machine)):
            self._grid.addWidget(label(name, "muted"), at, 0, Qt.AlignmentFlag.AlignTop)
            self._grid.addWidget(paragraph(text), at, 1)
        if self._measuring is None:
            self._ask_speed(known_only=True)

    def _fail(self, error: AppError) -> None:
        self._asked = None
        self._waiting.fail(error)

    # its speed

    def _measure(self) -> None:
        self._show_measuring(True)
        self._ask_speed(known_only=False)

    def _ask_speed(self, *, known_only: bool) -> None:
        model = (self._pool.loaded or {}).get("model") or "guide"
        body = {"model": model, "only_here": True, "known_only": known_only}
        self._measuring = self._client.call(
            "POST", "/speeds", body, self._measured, self._not_measured, self._progressed
        )

    def _progressed(self, told: Json) -> None:
        step = told.get("progress") or {}
        if step.get("total"):
            self.progress.tell(int(step.get("done") or 0) / int(step["total"]))

    def _measured(self, answer: Json) -> None:
        asked_aloud = self.cancel.isVisible()
        self._measuring = None
        self._show_measuring(False)
        found = speed_words(answer, str(self._pool.node.get("id")))
        if found is not None:
            self.speed.say(found, "")
        elif asked_aloud:
            why = (answer.get("reasons") or {}).get(str(self._pool.node.get("id")))
            later = self.tr("It could not be measured now. Try again when no answer runs.")
            self.speed.say(here(str(why)) if why else later, "")
        else:
            self.speed.say(self.tr("Its speed is not measured yet."), "muted")

    def _not_measured(self, error: AppError) -> None:
        asked_aloud = self.cancel.isVisible()
        self._measuring = None
        self._show_measuring(False)
        if asked_aloud:
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
