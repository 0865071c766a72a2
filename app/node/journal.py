"""The journal of recent answers and events, without any chat text."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta, structs

from app.api import computer
from app.api.responses import Answer
from app.api.snapshot import Snapshot
from app.catalog.transfers.file_transfer import run_to_completion
from app.core.errors import AppError, Fact, Reason
from app.core.reasons import said
from app.core.scheduler.requester import OWNER, Requester
from app.decoding import convert
from app.inference.stages.stage_host import RelayedWork
from app.machine.json_state import put_aside, read_json_or_default
from app.machine.paths import write_atomically
from app.node.journal_events import (
    ANSWERS_AGAIN,
    INTERRUPTED,
    answers_again_after,
    events_between,
    kind_of,
    recovery_events,
)

log = logging.getLogger(__name__)

MOST_KEPT = 200  # answers, and as many events
MOST_FILE_BYTES = 4 << 20
LOOK_SECONDS = 0.25  # between two comparisons of the snapshot
SAVE_SECONDS = 10.0  # between two writes of the file
HOUR_SECONDS = 3600
CLOCK_SECONDS = 60.0  # in a longer gap between two counts the computer slept and lent nothing

Amount = Annotated[float, Meta(ge=0)]


class SavedStage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The work that one stage did for one answer."""

    machine: str
    first: int
    last: int
    busy_s: Amount
    wait_s: Amount
    bytes_out: int
    bytes_in: int
    steps: int


class SavedAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A finished answer: completed, stopped or failed."""

    number: int
    at: float  # Unix time of the end
    seconds: Amount  # from the request to the end
    model: str
    end: str  # stop, length, full (context exhausted), stopped (by the client) or failed
    tokens: int
    alone: bool = False  # no other answer was in progress
    request: str = ""  # the request ID that a program found in the response headers
    whose: Requester | None = None  # None in entries of earlier versions
    prompt_tokens: int | None = None  # the fields from here on are set only for completed answers
    reused_tokens: int = 0
    queued_s: Amount = 0.0
    ttft_s: Amount | None = None
    decode_tok_s: Amount | None = None
    forecast_ttft_s: Amount | None = None
    forecast_tok_s: Amount | None = None
    stages: list[SavedStage] = []


class SavedEvent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One event: a reason and its facts."""

    number: int
    at: float
    code: str
    facts: dict[str, Fact]


class SavedTotals(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The total work that this machine has done for other hosts."""

    since: float = 0.0  # Unix time
    seconds: Amount = 0.0  # time during which other hosts had layers here
    rows: int = 0  # token positions computed for other hosts
    bytes_in: int = 0
    bytes_out: int = 0
    watt_hours: Amount = 0.0  # energy drawn in this time, if the system reports its power


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    number: int = 0
    answers: list[SavedAnswer] = []
    events: list[SavedEvent] = []
    lent: SavedTotals = SavedTotals()


class RunningAnswer:
    """An answer in progress."""

    def __init__(self, number: int, model: str, request: str, requester: Requester) -> None:
        self.number, self.model, self.request, self.whose = number, model, request, requester
        self.started_s = time.monotonic()
        self.first: float | None = None
        self.tokens = 0
        self.ended: Answer | None = None
        self.alone = False
        self.reported_losses: set[str] = set()  # machines whose loss another interrupted answer has already reported

    def add_tokens(self, n_tokens: int) -> None:
        """Count new tokens."""
        self.tokens += n_tokens
        if self.first is None and n_tokens:
            self.first = time.monotonic()

    def done(self, answer: Answer, alone: bool) -> None:
        """Record the final line of the answer, as the client receives it."""
        self.ended, self.alone = answer, alone

    def describe(self) -> computer.AnswerInProgress:
        now = time.monotonic()
        writes_s = now - self.first if self.first is not None else 0.0
        return computer.AnswerInProgress(
            self.number,
            self.model,
            self.request,
            self.whose,
            round(now - self.started_s, 3),
            self.tokens,
            (self.tokens - 1) / writes_s if self.tokens > 1 and writes_s > 0 else None,
        )


class Journal:
    """The journal, saved in one small file. An unreadable file is set aside, and an entry reports that.

    on_event: called after each new event. It is not called for finished answers, because clients see their end anyway.
    """

    def __init__(
        self,
        file: Path,
        snapshot: Callable[[], Snapshot],
        on_event: Callable[[], None] = lambda: None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._file, self._snapshot, self._on_event, self._now = file, snapshot, on_event, now
        lost: list[Path] = []
        read = _load(file, lost.append)
        numbers = [entry.number for entry in read.answers] + [entry.number for entry in read.events]
        self._number = max([read.number, *numbers])
        self._answers, self._events = deque(read.answers, MOST_KEPT), deque(read.events, MOST_KEPT)
        self._lent = read.lent if read.lent.since else SavedTotals(since=now())
        self._under_way: dict[int, RunningAnswer] = {}
        self._seen = Snapshot()
        self._interrupted_at: dict[str, float] = {}  # monotonic time of each interruption, by model name
        self._passed: Callable[[], RelayedWork] | None = None
        self._counted, self._counted_at = RelayedWork(), 0.0
        self._changed = asyncio.Event()
        self._dirty = False
        for aside in lost:
            self.note(Reason("log_node_journal_lost", {"path": str(aside)}))

    @property
    def number(self) -> int:
        """The number of the newest entry. The snapshot includes it to tell clients when to read the journal."""
        return self._number

    def read(self, since: int = 0) -> computer.Journal:
        """Return the entries after number `since`, the answers in progress, and the total work for other hosts."""
        self._count()
        return computer.Journal(
            self._number,
            [convert(msgspec.to_builtins(answer), computer.AnswerEntry) for answer in _after(self._answers, since)],
            [_entry(event) for event in _after(self._events, since)],
            [answer.describe() for answer in self._under_way.values()],
            computer.LentTotal(**msgspec.structs.asdict(self._lent)),
        )

    def note(self, reason: Reason) -> None:
        """Add an event."""
        self._events.append(SavedEvent(self._next(), self._stamp(), reason.code, dict(reason.facts)))
        self._on_event()

    @contextmanager
    def answering(self, model: str, request: str = "", requester: Requester = OWNER) -> Iterator[RunningAnswer]:
        """Record the answer that is generated in the block, no matter how it ends."""
        answer = RunningAnswer(self._next(), model, request, requester)
        self._under_way[answer.number] = answer
        end = "stopped"
        try:
            yield answer
        except AppError:
            end = "failed"
            raise
        finally:
            del self._under_way[answer.number]
            self._answers.append(self._answered(answer, end))
            for reason in recovery_events(answer.model, answer.ended.recovered if answer.ended else ()):
                self._note_loss(answer, reason)

    def changed(self) -> None:
        """Note that the snapshot may have changed."""
        self._changed.set()

    def _note_loss(self, answer: RunningAnswer, reason: Reason) -> None:
        """Record the loss of a machine only once, although every interrupted answer reports it."""
        machine = str(reason.facts["machine"])
        if machine in answer.reported_losses:
            return
        for other in self._under_way.values():
            if other.model == answer.model:
                other.reported_losses.add(machine)
        self.note(reason)

    async def run(self, passed: Callable[[], RelayedWork]) -> None:
        """Compare successive snapshots and record the events between them, until canceled. `passed` returns the total
        work for other hosts since the start."""
        self._seen, self._passed = self._snapshot(), passed
        self.note(Reason("log_node_started", {"version": self._seen.node.version}))
        self._counted, self._counted_at = passed(), time.monotonic()
        saved = time.monotonic()
        try:
            while True:
                await self._wait_for_change()
                self._count()
                self._record_changes()
                if self._dirty and time.monotonic() - saved >= SAVE_SECONDS:
                    saved = time.monotonic()
                    await run_to_completion(partial(self._save, self._content()))  # must end before the final save
        finally:
            self._count()
            self._save(self._content())

    async def _wait_for_change(self) -> None:
        try:
            async with asyncio.timeout(SAVE_SECONDS):
                await self._changed.wait()
        except TimeoutError:
            return
        await asyncio.sleep(LOOK_SECONDS)
        self._changed.clear()

    def _record_changes(self) -> None:
        now = self._snapshot()
        for reason in events_between(self._seen, now):
            self.note(self._timed(reason))
        self._seen = now

    def _timed(self, reason: Reason) -> Reason:
        """Return the reason. If it reports that a model is answering again, add the duration of the interruption."""
        model = str(reason.facts.get("model"))
        if reason.code == INTERRUPTED:
            self._interrupted_at[model] = time.monotonic()
        elif reason.code == ANSWERS_AGAIN and (since := self._interrupted_at.pop(model, None)) is not None:
            return answers_again_after(model, time.monotonic() - since)
        return reason

    def _count(self) -> None:
        """Add the work done for other hosts since the last call to the totals."""
        if self._passed is None:
            return
        seconds, self._counted_at = time.monotonic() - self._counted_at, time.monotonic()
        before, now = self._counted, self._passed()
        self._counted = now
        lent_s = seconds if self._seen.node.lending.used_by and seconds < CLOCK_SECONDS else 0.0
        if not lent_s and now == before:
            return
        self._dirty = True
        self._lent = SavedTotals(
            since=self._lent.since,
            seconds=self._lent.seconds + lent_s,
            rows=self._lent.rows + now.rows - before.rows,
            bytes_in=self._lent.bytes_in + now.bytes_in - before.bytes_in,
            bytes_out=self._lent.bytes_out + now.bytes_out - before.bytes_out,
            watt_hours=self._lent.watt_hours + lent_s * self._watts() / HOUR_SECONDS,
        )

    def _watts(self) -> float:
        """Return the power that this machine draws in watts, or 0 if its system does not report it."""
        me = self._seen.machines.get(self._seen.node.id)
        return float(me.watts or 0.0) if me else 0.0

    def _answered(self, answer: RunningAnswer, end: str) -> SavedAnswer:
        seconds = time.monotonic() - answer.started_s
        number = self._next()  # a new number, so that clients that read new entries receive this answer
        if answer.ended is None:
            return SavedAnswer(
                number=number,
                at=self._stamp(),
                seconds=seconds,
                model=answer.model,
                end=end,
                tokens=answer.tokens,
                request=answer.request,
                whose=answer.whose,
            )
        summary = answer.ended
        forecast = None if summary.predicted and summary.predicted.too_small else summary.predicted
        return SavedAnswer(
            number=number,
            at=self._stamp(),
            seconds=seconds,
            model=answer.model,
            end="full" if summary.cut_by == "context" else summary.finish_reason or "",
            tokens=len(summary.token_ids),
            alone=answer.alone,
            request=answer.request,
            whose=answer.whose,
            prompt_tokens=summary.prompt_tokens,
            reused_tokens=summary.reused_tokens,
            queued_s=summary.queued_s,
            ttft_s=summary.ttft_s,
            decode_tok_s=summary.decode_tok_s,
            forecast_ttft_s=forecast.ttft_s if forecast else None,
            forecast_tok_s=forecast.decode_tok_s if forecast else None,
            stages=[SavedStage(**structs.asdict(stage)) for stage in summary.stages],
        )

    def _next(self) -> int:
        self._number += 1
        self._dirty = True
        return self._number

    def _stamp(self) -> float:
        return round(self._now(), 3)

    def _content(self) -> bytes:
        self._dirty = False
        return msgspec.json.encode(_File(self._number, list(self._answers), list(self._events), self._lent))

    def _save(self, content: bytes) -> None:
        try:
            write_atomically(self._file, content)
        except OSError as error:
            log.warning("the journal could not be saved: %s", error)


E = TypeVar("E", SavedAnswer, SavedEvent)


def _after(entries: Iterable[E], since: int) -> list[E]:
    return [entry for entry in entries if entry.number > since]


def _entry(event: SavedEvent) -> computer.EventEntry:
    """Return the API form of an event, with its kind and sentence."""
    sentence = said(Reason(event.code, event.facts))
    return computer.EventEntry(event.number, event.at, event.code, event.facts, kind_of(event.code), sentence)


def _load(file: Path, lost: Callable[[Path], None]) -> _File:
    """Return the saved journal. A damaged file is set aside, and `lost` is called with its new path."""
    read = read_json_or_default(file, _File, "the journal", MOST_FILE_BYTES, lost)
    try:
        for event in read.events:
            _entry(event)
    except (KeyError, IndexError, ValueError) as error:
        aside = put_aside(file)
        log.warning("the journal was moved to %s, because one of its events has no sentence: %r", aside, error)
        lost(aside)
        return _File()
    return read
