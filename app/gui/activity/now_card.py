"""The card for work in progress, which lists answers, model loading, transfers and layers lent to other machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QFrame, QVBoxLayout, QWidget

from app.api.computer import AnswerInProgress
from app.api.downloads import Download
from app.api.plans import LoadedModel, Progress
from app.api.snapshot import Snapshot
from app.core.scheduler.requester import OWNER, Requester
from app.gui.api.node_state import GONE, NodeState
from app.gui.look import formats, sizes
from app.gui.look.drawing import icon
from app.gui.look.sentences import model_name
from app.gui.look.theme import Theme
from app.gui.models.importing import ImportQueue
from app.gui.models.transfers import of_download, of_import
from app.gui.widgets.flow import Beside
from app.gui.widgets.labels import ElidedLabel, label
from app.gui.widgets.layouts import card, clear_layout, column, layout_widget, row
from app.gui.widgets.progress import Progress as ProgressBar

ACTIVE_STATES = ("waiting", "starting", "running", "checking")  # states of a download


@dataclass(frozen=True, slots=True)
class Job:
    """An item of work in progress, with a description, figures and, if known, the completed fraction."""

    icon: str
    what: str
    figures: str
    share: float | None = None


class NowCard(QFrame):
    """A card with a line for each job, or a sentence saying that nothing is running."""

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
        """Replace the displayed jobs if they have changed."""
        if jobs == self._jobs:
            return
        self._jobs = jobs
        clear_layout(self._lines)
        if not jobs:
            self._lines.addWidget(label(self.tr("Nothing is running now."), "muted"))
        for job in jobs:
            self._lines.addLayout(self._line(job))

    def _line(self, job: Job) -> QVBoxLayout:
        theme, picture = self._theme, label()
        side = theme.px(sizes.TITLE)
        picture.setPixmap(icon(job.icon, theme.colors.accent).pixmap(side, side))
        words = layout_widget(Beside(ElidedLabel(job.what), label(job.figures, "muted")))
        top = row(picture, words, gap=sizes.S)
        top.setStretch(1, 1)
        lines: list[QWidget] = []
        if job.share is not None:
            bar = ProgressBar(job.what)
            bar.tell(job.share)
            lines.append(bar)
        box = column(*lines, gap=sizes.XS)
        box.insertLayout(0, top)
        return box

    def _repaint(self) -> None:
        jobs, self._jobs = self._jobs, None
        self.show_jobs(jobs or [])


def jobs_of(pool: NodeState, running: Sequence[AnswerInProgress], importing: ImportQueue) -> list[Job]:
    """Return all work in progress, or an empty list while the node is unavailable."""
    if pool.link in GONE:
        return []
    snapshot = pool.now
    jobs = [*map(_answer, running), *_waiting(snapshot, running)]
    for loaded in snapshot.models:
        jobs += _load(loaded)
    jobs += [_download(download) for download in snapshot.downloads.values() if download.state in ACTIVE_STATES]
    if importing.paths:
        transfer = of_import(importing, "")
        words = _tr("Importing {name}").format(name=transfer.name)
        jobs.append(Job("download", words, transfer.words, transfer.share))
    return [*jobs, *_giving(snapshot), *_lending(snapshot)]


def _answer(running: AnswerInProgress) -> Job:
    requester = running.whose or OWNER
    if running.tokens:
        speed = [formats.speed(running.tok_s)] if running.tok_s else []
        figures = [*speed, _tr("{tokens} tokens").format(tokens=formats.number(running.tokens))]
        words = _writing(requester)
    else:
        figures, words = [formats.seconds(running.seconds)], _reading(requester)
    sentence = words.format(model=model_name(running.model), name=requester.name)
    return Job("chat", sentence, ", ".join(figures))


def _waiting(snapshot: Snapshot, running: Sequence[AnswerInProgress]) -> list[Job]:
    """Return a line with the number of queued questions, or nothing if `running` already includes them."""
    waiting = snapshot.answers.waiting
    if waiting <= sum(not answer.tokens for answer in running):
        return []
    return [Job("pause", QCoreApplication.translate("Now", "%n question(s) waiting", "", waiting), "")]


def _reading(requester: Requester) -> str:
    """Return the text that describes an answer before its first token."""
    match requester:
        case Requester(kind="owner"):
            return _tr("{model} is reading your question")
        case Requester(kind="program", name=""):
            return _tr("{model} is reading a question from a program without a key")
        case Requester(kind="program"):
            return _tr("{model} is reading a question from the program {name}")
        case Requester(kind="phone"):
            return _tr("{model} is reading a question from the phone {name}")
        case Requester(kind="guest"):
            return _tr("{model} is reading a question from the guest {name}")
        case _:
            return _tr("{model} is reading a question from {name}")


def _writing(requester: Requester) -> str:
    """Return the text that describes an answer after its first token."""
    match requester:
        case Requester(kind="owner"):
            return _tr("{model} is writing your answer")
        case Requester(kind="program", name=""):
            return _tr("{model} is answering a program without a key")
        case Requester(kind="program"):
            return _tr("{model} is answering the program {name}")
        case Requester(kind="phone"):
            return _tr("{model} is answering the phone {name}")
        case Requester(kind="guest"):
            return _tr("{model} is answering the guest {name}")
        case _:
            return _tr("{model} is answering {name}")


def _load(loaded: LoadedModel) -> list[Job]:
    """Return a line for each machine that is receiving or loading layers, including replacements for a lost machine."""
    if loaded.state not in ("loading", "recovering"):
        return []
    model = model_name(loaded.model)
    if not loaded.progress:
        words = _tr("Loading {model}") if loaded.state == "loading" else _tr("Rebuilding {model}")
        return [Job("models", words.format(model=model), "")]
    return [_step(model, step) for step in loaded.progress.values()]


def _step(model: str, step: Progress) -> Job:
    words = {
        "sending": _tr("Sending layers of {model} to {machine}"),
        "loading": _tr("{machine} is loading its layers of {model}"),
    }.get(step.step, _tr("{machine} is preparing its layers of {model}"))
    figures = _amounts(step.done, step.total) if step.unit == "bytes" else ""
    share = step.done / step.total if step.total else None
    return Job("models", words.format(model=model, machine=step.machine or ""), figures, share)


def _download(download: Download) -> Job:
    transfer = of_download(download)
    words = _tr("Copying {model}") if download.machine else _tr("Downloading {model}")
    return Job("download", words.format(model=transfer.name), transfer.words, transfer.share)


def _giving(snapshot: Snapshot) -> list[Job]:
    """Return a line about the model that another household machine is copying from this one, if any."""
    giving = snapshot.giving
    if giving is None:
        return []
    sentence = _tr("Sending {model} to {machine}").format(model=model_name(giving.model), machine=giving.machine)
    share = giving.done_bytes / giving.total_bytes if giving.total_bytes else None
    return [Job("download", sentence, _amounts(giving.done_bytes, giving.total_bytes), share)]


def _lending(snapshot: Snapshot) -> list[Job]:
    """Return a line for each machine that has layers on this one."""
    lending = snapshot.node.lending
    text = _tr("This machine has layers loaded for {name}")
    if lending.state == "working" and len(lending.used_by) == 1:  # with several users, it is unknown who asked
        text = _tr("This machine is working on an answer for {name}")
    used = formats.size(lending.used_bytes or 0)
    return [Job("computer", text.format(name=name), used) for name in lending.used_by]


def _amounts(done_bytes: int, total_bytes: int) -> str:
    return _tr("{done} of {total}").format(done=formats.size(done_bytes), total=formats.size(total_bytes))


def _tr(text: str) -> str:
    return QCoreApplication.translate("Now", text)
