"""A feed of the node's journal entries, and functions that compute values from an entry."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QObject, QTimer, Signal

from app.api.computer import AnswerEntry, AnswerInProgress, EventEntry, Journal, LentTotal
from app.core.bench import StageWork
from app.core.errors import AppError, Reason
from app.gui.api.node_client import Call
from app.gui.api.node_state import NodeState
from app.gui.look.sentences import model_name, said

MOST_KEPT = 200  # same limit as in the node
WATCH_MS = 500  # polling interval while answers are in progress and the page is visible
SLOW_MS = 15_000  # polling interval otherwise, because the lending totals may still change
LEAST_TOKENS = 8  # minimum length of an answer that is compared with its forecast


@dataclass(frozen=True, slots=True)
class MachineWork:
    """The work that one machine did for an answer, summed over all its stages."""

    machine: str
    layers: tuple[tuple[int, int], ...]  # (first, last + 1)
    busy_s: float
    wait_s: float
    n_bytes: float  # both directions


def by_machine(stages: Sequence[StageWork]) -> list[MachineWork]:
    """Group the work of the stages by machine, in pipeline order."""
    return [
        MachineWork(
            machine,
            tuple((stage.first, stage.last) for stage in own),
            sum(stage.busy_s for stage in own),
            sum(stage.wait_s for stage in own),
            sum(stage.bytes_in + stage.bytes_out for stage in own),
        )
        for machine in dict.fromkeys(stage.machine for stage in stages)
        if (own := [stage for stage in stages if stage.machine == machine])
    ]


def decode_seconds(answer: AnswerEntry) -> float:
    """Return the time between the first and the last token."""
    if answer.ttft_s is None or not answer.decode_tok_s:
        return 0.0
    return (answer.tokens - 1) / answer.decode_tok_s


def computed_seconds(answer: AnswerEntry) -> float:
    """Return the time from the end of queueing to the last token, which is divided among the machines."""
    return max(0.0, (answer.ttft_s or 0.0) - answer.queued_s) + decode_seconds(answer)


def is_comparable(answer: AnswerEntry) -> bool:
    """Return whether an answer ran alone and was long enough to be compared with its forecast."""
    known = (answer.ttft_s, answer.decode_tok_s, answer.forecast_ttft_s, answer.forecast_tok_s)
    return answer.alone and answer.tokens >= LEAST_TOKENS and all(known)


def relative_speedups(answer: AnswerEntry) -> tuple[float, float]:
    """Return how much faster than forecast the first token and the decode speed were (0.1 means 10 % faster)."""
    first = (answer.forecast_ttft_s or 0.0) / (answer.ttft_s or 1.0) - 1
    return first, (answer.decode_tok_s or 0.0) / (answer.forecast_tok_s or 1.0) - 1


def forecast_errors(answer: AnswerEntry) -> tuple[float, float]:
    """Return the relative errors of the forecasts for the first token and the decode speed, as defined by the node."""
    first = abs((answer.forecast_ttft_s or 0.0) / (answer.ttft_s or 1.0) - 1)
    return first, abs((answer.forecast_tok_s or 0.0) / (answer.decode_tok_s or 1.0) - 1)


def event_sentence(event: EventEntry) -> str:
    """Return a sentence about an event in the window's language."""
    facts = dict(event.facts)
    if "model" in facts:
        facts["model"] = model_name(str(facts["model"]))
    return said(Reason(event.code, facts))


class JournalFeed(QObject):
    """The journal entries received so far, newest last.

    New entries are requested when a snapshot reports them. While a page is visible, work in progress is polled.
    """

    changed = Signal()  # new entries have arrived
    running_changed = Signal()  # `running` or `lent` has changed

    def __init__(self, pool: NodeState, parent: QObject) -> None:
        super().__init__(parent)
        self._pool = pool
        self.answers: deque[AnswerEntry] = deque(maxlen=MOST_KEPT)
        self.events: deque[EventEntry] = deque(maxlen=MOST_KEPT)
        self.running: list[AnswerInProgress] = []
        self.lent = LentTotal()
        self._last_number = 0
        self._watched = False
        self._call: Call | None = None
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._ask)
        pool.changed.connect(self._look)
        self._look()

    def watch(self, watched: bool) -> None:
        """Start or stop polling when the page becomes visible or hidden."""
        self._watched = watched
        self._look()
        if watched:
            self._ask()

    def stop(self) -> None:
        """Cancel the pending request and stop polling, because the page is being closed."""
        self._timer.stop()
        if self._call is not None:
            self._call.cancel()
            self._call = None

    def _look(self) -> None:
        snapshot = self._pool.now
        if snapshot.journal.last < self._last_number:  # the node started a new journal
            self._last_number = 0
            self.answers.clear()
            self.events.clear()
        if snapshot.journal.last > self._last_number:
            self._ask()
        if not self._watched:
            self._timer.stop()
            return
        interval = WATCH_MS if snapshot.answers.running or snapshot.answers.waiting else SLOW_MS
        if not self._timer.isActive() or self._timer.interval() != interval:
            self._timer.start(interval)

    def _ask(self) -> None:
        if self._call is not None and self._call.running:
            return  # its answer triggers the next request
        path = f"/journal?since={self._last_number}"
        self._call = self._pool.client.get(path, self._take, self._failed, answer=Journal)

    def _take(self, journal: Journal) -> None:
        self._call = None
        self.answers.extend(journal.answers)
        self.events.extend(journal.events)
        self._last_number = journal.last
        has_changed = (journal.now, journal.lent) != (self.running, self.lent)
        self.running, self.lent = journal.now, journal.lent
        if journal.answers or journal.events:
            self.changed.emit()
        if has_changed:
            self.running_changed.emit()
        self._look()

    def _failed(self, _: AppError) -> None:
        """Ignore the error. The window already reports a missing node, and the next snapshot triggers a new request."""
        self._call = None
