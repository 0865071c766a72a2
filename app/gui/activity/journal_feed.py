"""Follows the node's journal: asks for what is new whenever the snapshot says that there is more."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from app.core.errors import AppError, Reason
from app.core.scheduler.requester import OWNER, Requester
from app.gui.api.node_client import Call
from app.gui.api.node_state import NodeState
from app.gui.look.sentences import model_name, said

Json = dict[str, Any]
MOST_KEPT = 200  # as the node keeps
WATCH_MS = 500  # between two looks at answers that are being made, while somebody watches
SLOW_MS = 15_000  # and at what is lent


@dataclass(frozen=True, slots=True)
class StageDid:
    """What one stage did for an answer. Layers `first` to `last`, the last one excluded."""

    machine: str
    first: int
    last: int
    busy_s: float
    wait_s: float
    bytes_out: float
    bytes_in: float
    steps: float


@dataclass(frozen=True, slots=True)
class MachineDid:
    """All stages of one machine together."""

    machine: str
    layers: tuple[tuple[int, int], ...]
    busy_s: float
    wait_s: float
    n_bytes: float  # both ways


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer that has ended."""

    number: int
    at: float  # Unix time of its end
    seconds: float
    model: str
    end: str  # stop, length, stopped or failed
    tokens: int
    alone: bool
    prompt_tokens: int | None
    reused_tokens: int
    queued_s: float
    ttft_s: float | None
    decode_tok_s: float | None
    forecast_ttft_s: float | None
    forecast_tok_s: float | None
    stages: tuple[StageDid, ...]
    request: str = ""  # of a program
    whose: Requester | None = None  # not written down of older ones

    @property
    def decode_s(self) -> float:
        """From the first token to the last."""
        if self.ttft_s is None:
            return 0.0
        return (self.tokens - 1) / self.decode_tok_s if self.decode_tok_s else 0.0

    @property
    def computed_s(self) -> float:
        """From its slot to its last token: what its machines shared in."""
        return max(0.0, (self.ttft_s or 0.0) - self.queued_s) + self.decode_s

    @property
    def is_compared(self) -> bool:
        """Whether its forecast says something: it had the pool to itself and was not too short."""
        known = (self.ttft_s, self.decode_tok_s, self.forecast_ttft_s, self.forecast_tok_s)
        return self.alone and self.tokens >= 8 and all(known)

    @property
    def faster(self) -> tuple[float, float]:
        """First token and speed against their forecast, as shares: 0.1 is a tenth faster than said."""
        first = (self.forecast_ttft_s or 0.0) / (self.ttft_s or 1.0) - 1
        return first, (self.decode_tok_s or 0.0) / (self.forecast_tok_s or 1.0) - 1

    @property
    def errors(self) -> tuple[float, float]:
        """How far the forecast was off, as shares of what was measured; as the node counts it."""
        first = abs((self.forecast_ttft_s or 0.0) / (self.ttft_s or 1.0) - 1)
        return first, abs((self.forecast_tok_s or 0.0) / (self.decode_tok_s or 1.0) - 1)

    def machines(self) -> list[MachineDid]:
        return together(self.stages)


@dataclass(frozen=True, slots=True)
class Happened:
    """One event of the log."""

    number: int
    at: float
    kind: str  # machine, model, lending, node
    sentence: str


@dataclass(frozen=True, slots=True)
class Running:
    """An answer that is being made."""

    number: int
    model: str
    seconds: float
    tokens: int
    tok_s: float | None
    request: str = ""
    whose: Requester = OWNER


@dataclass(frozen=True, slots=True)
class Lent:
    """What this machine did for others since `since` (Unix time)."""

    since: float = 0.0
    seconds: float = 0.0
    rows: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    watt_hours: float = 0.0


def answer_of(told: Json) -> Answer:
    stages = tuple(StageDid(**stage) for stage in told["stages"])
    whose = Requester(**told["whose"]) if told.get("whose") else None
    return Answer(**{**told, "stages": stages, "whose": whose})


def running_of(told: Json) -> Running:
    return Running(**{**told, "whose": Requester(**told["whose"])})


def happened_of(told: Json) -> Happened:
    facts = dict(told["facts"])
    if "model" in facts:
        facts["model"] = model_name(str(facts["model"]))
    sentence = said(Reason(told["code"], facts))
    return Happened(told["number"], told["at"], told["kind"], sentence)


def together(stages: Sequence[StageDid]) -> list[MachineDid]:
    """The stages of each machine added up, in the order in which a token meets them."""
    order = dict.fromkeys(stage.machine for stage in stages)
    found = []
    for machine in order:
        own = [stage for stage in stages if stage.machine == machine]
        found.append(
            MachineDid(
                machine,
                tuple((stage.first, stage.last) for stage in own),
                sum(stage.busy_s for stage in own),
                sum(stage.wait_s for stage in own),
                sum(stage.bytes_in + stage.bytes_out for stage in own),
            )
        )
    return found


class Feed(QObject):
    """The journal as far as it is known; newest entries last."""

    changed = Signal()  # entries are new
    running_changed = Signal()  # `running` or `lent` is another

    def __init__(self, pool: NodeState, parent: QObject) -> None:
        super().__init__(parent)
        self._pool = pool
        self.answers: deque[Answer] = deque(maxlen=MOST_KEPT)
        self.events: deque[Happened] = deque(maxlen=MOST_KEPT)
        self.running: list[Running] = []
        self.lent = Lent()
        self._known = 0
        self._watched = False
        self._call: Call | None = None
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._ask)
        pool.changed.connect(self._look)
        self._look()

    def watch(self, watched: bool) -> None:
        """Somebody looks at it, or no more."""
        self._watched = watched
        self._look()
        if watched:
            self._ask()

    def stop(self) -> None:
        """The page goes."""
        self._timer.stop()
        if self._call is not None:
            self._call.cancel()
            self._call = None

    def _look(self) -> None:
        last = (self._pool.snapshot.get("journal") or {}).get("last", 0)
        if last < self._known:  # the node began a new journal
            self._known = 0
            self.answers.clear()
            self.events.clear()
        if last > self._known:
            self._ask()
        answers = self._pool.snapshot.get("answers") or {}
        if not self._watched:
            self._timer.stop()
            return
        busy = answers.get("running") or answers.get("waiting")
        pace = WATCH_MS if busy else SLOW_MS
        if not self._timer.isActive() or self._timer.interval() != pace:
            self._timer.start(pace)

    def _ask(self) -> None:
        if self._call is not None and self._call.running:
            return  # its answer leads to the next look
        path = f"/journal?since={self._known}"
        self._call = self._pool.client.get(path, self._take, self._failed)

    def _take(self, told: Json) -> None:
        self._call = None
        new = bool(told["answers"] or told["events"])
        self.answers.extend(map(answer_of, told["answers"]))
        self.events.extend(map(happened_of, told["events"]))
        self._known = told["last"]
        running, lent = [running_of(one) for one in told["now"]], Lent(**told["lent"])
        other = (running, lent) != (self.running, self.lent)
        self.running, self.lent = running, lent
        if new:
            self.changed.emit()
        if other:
            self.running_changed.emit()
        self._look()

    def _failed(self, error: AppError) -> None:
        """The node went away: the bar over the page says so, and the next snapshot asks again."""
        self._call = None
