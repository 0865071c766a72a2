"""What runs at this moment: answers, a model that is loading or copied, layers that others use here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QFrame, QVBoxLayout, QWidget

from app.core.scheduler.requester import Requester
from app.gui.activity.journal_feed import Running
from app.gui.api.node_state import GONE, NodeState
from app.gui.look import formats
from app.gui.look import theme as sizes
from app.gui.look.icons import icon
from app.gui.look.sentences import model_name
from app.gui.look.theme import Theme
from app.gui.models.importing import Importing
from app.gui.models.transfers import of_download, of_import
from app.gui.widgets.flow import Beside
from app.gui.widgets.labels import Elided, label
from app.gui.widgets.layouts import card, clear, column, held, row
from app.gui.widgets.progress import Progress

Json = dict[str, Any]
UNDER_WAY = ("waiting", "starting", "running", "checking")  # states of a download


@dataclass(frozen=True, slots=True)
class Job:
    """One line: what, its figures, and how far it is where that is known."""

    icon: str
    what: str
    figures: str
    share: float | None = None


class NowCard(QFrame):
    """A line for each thing under way; one sentence where nothing is."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._jobs: list[Job] | None = None
        self._lines: QVBoxLayout = column(gap=sizes.M)
        inner = card(label(self.tr("Now"), "section"))
        box = inner.layout()
        assert isinstance(box, QVBoxLayout)
        box.addLayout(self._lines)
        self.setLayout(column(inner))
        theme.changed.connect(self._repaint)

    @property
    def jobs(self) -> list[Job]:
        return self._jobs or []

    def show_jobs(self, jobs: list[Job]) -> None:
        """Nothing happens where they are the same."""
        if jobs == self._jobs:
            return
        self._jobs = jobs
        clear(self._lines)
        if not jobs:
            self._lines.addWidget(label(self.tr("Nothing runs just now."), "muted"))
        for job in jobs:
            self._lines.addLayout(self._line(job))

    def _line(self, job: Job) -> QVBoxLayout:
        theme, picture = self._theme, label()
        side = theme.px(sizes.TITLE)
        picture.setPixmap(icon(job.icon, theme.colours.accent).pixmap(side, side))
        told = held(Beside(Elided(job.what), label(job.figures, "muted")))
        top = row(picture, told, gap=sizes.S)
        top.setStretch(1, 1)
        lines: list[QWidget] = []
        if job.share is not None:
            bar = Progress(job.what)
            bar.tell(job.share)
            lines.append(bar)
        box = column(*lines, gap=sizes.XS)
        box.insertLayout(0, top)
        return box

    def _repaint(self) -> None:
        jobs, self._jobs = self._jobs, None
        self.show_jobs(jobs or [])


def jobs_of(pool: NodeState, running: list[Running], importing: Importing) -> list[Job]:
    """All that is under way, from the node's snapshot and its journal; nothing once the node has gone."""
    if pool.link in GONE:
        return []
    return [
        *_answers(pool, running),
        *_loads(pool),
        *_downloads(pool),
        *_import(importing),
        *_given(pool),
        *_lent(pool),
    ]


def _answers(pool: NodeState, running: list[Running]) -> list[Job]:
    jobs = []
    for one in running:
        figures = [_tr("{tokens} tokens").format(tokens=formats.number(one.tokens))]
        if one.tok_s:
            figures.insert(0, formats.speed(one.tok_s))
        if not one.tokens:
            figures = [formats.seconds(one.seconds)]
        words = _writing(one.whose) if one.tokens else _reading(one.whose)
        what = words.format(model=model_name(one.model), name=one.whose.name)
        jobs.append(Job("chat", what, ", ".join(figures)))
    waiting = (pool.snapshot.get("answers") or {}).get("waiting", 0)
    if waiting > sum(not one.tokens for one in running):
        text = QCoreApplication.translate("Now", "%n question(s) waiting", "", waiting)
        jobs.append(Job("pause", text, ""))
    return jobs


def _reading(requester: Requester) -> str:
    """What runs before the first token."""
    match requester:
        case Requester(kind="owner"):
            return _tr("{model} reads a question of yours")
        case Requester(kind="program", name=""):
            return _tr("{model} reads a question of a program without a key")
        case Requester(kind="program"):
            return _tr("{model} reads a question of the program {name}")
        case Requester(kind="guest"):
            return _tr("{model} reads a question of the guest {name}")
        case _:
            return _tr("{model} reads a question of {name}")


def _writing(requester: Requester) -> str:
    """What runs after the first token."""
    match requester:
        case Requester(kind="owner"):
            return _tr("{model} writes an answer for you")
        case Requester(kind="program", name=""):
            return _tr("{model} writes an answer for a program without a key")
        case Requester(kind="program"):
            return _tr("{model} writes an answer for the program {name}")
        case Requester(kind="guest"):
            return _tr("{model} writes an answer for the guest {name}")
        case _:
            return _tr("{model} writes an answer for {name}")


def _loads(pool: NodeState) -> list[Job]:
    """Models that are on their way."""
    return [job for model in pool.models for job in _load(model)]


def _load(loaded: Json) -> list[Job]:
    """A line for each machine that is getting its layers, at first or in place of a lost one."""
    if loaded.get("state") not in ("loading", "recovering"):
        return []
    model, steps = model_name(str(loaded.get("model"))), (loaded.get("progress") or {}).values()
    if not steps:
        words = _tr("Loading {model}") if loaded["state"] == "loading" else _tr("Rebuilding {model}")
        return [Job("models", words.format(model=model), "")]
    return [_step(model, step) for step in steps]


def _step(model: str, step: Json) -> Job:
    done, total = step.get("done") or 0, step.get("total") or 0
    machine = step.get("machine") or ""
    words = {
        "sending": _tr("Sending layers of {model} to {machine}"),
        "loading": _tr("{machine} loads its layers of {model}"),
    }.get(str(step.get("step")), _tr("{machine} prepares its layers of {model}"))
    figures = ""
    if step.get("unit") == "bytes":
        figures = _tr("{done} of {total}").format(done=formats.size(done), total=formats.size(total))
    share = done / total if total else None
    return Job("models", words.format(model=model, machine=machine), figures, share)


def _downloads(pool: NodeState) -> list[Job]:
    found = (pool.snapshot.get("downloads") or {}).values()
    return [_download(one) for one in found if one.get("state") in UNDER_WAY]


def _download(one: Json) -> Job:
    shown = of_download(one)
    words = _tr("Copying {model}") if one.get("machine") else _tr("Downloading {model}")
    what = words.format(model=shown.name)
    return Job("download", what, shown.words, shown.share)


def _given(pool: NodeState) -> list[Job]:
    """A model that another machine of the household copies from here."""
    one = pool.snapshot.get("giving")
    if not one:
        return []
    done, total = int(one["done_bytes"]), int(one["total_bytes"])
    words = _tr("Sending {model} to {machine}")
    what = words.format(model=model_name(str(one["model"])), machine=one["machine"])
    figures = _tr("{done} of {total}").format(done=formats.size(done), total=formats.size(total))
    return [Job("download", what, figures, done / total if total else None)]


def _import(importing: Importing) -> list[Job]:
    if not importing.paths:
        return []
    shown = of_import(importing, "")
    what = _tr("Taking in {name}").format(name=shown.name)
    return [Job("download", what, shown.words, shown.share)]


def _lent(pool: NodeState) -> list[Job]:
    lending = pool.node.get("lending") or {}
    used, names = formats.size(lending.get("used_bytes") or 0), lending.get("used_by") or []
    text = _tr("This machine holds layers for {name}")
    if lending.get("state") == "working" and len(names) == 1:  # with more it is not known for whom
        text = _tr("This machine computes for an answer of {name}")
    return [Job("computer", text.format(name=name), used) for name in names]


def _tr(text: str) -> str:
    return QCoreApplication.translate("Now", text)
