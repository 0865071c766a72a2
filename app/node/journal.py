"""The journal of the latest answers, with their figures, and the latest events. It never contains any text."""

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
from app.node.journal_events import BROKEN_OFF, GOES_ON, goes_on_after, kind_of, news, recovered

log = logging.getLogger(__name__)

MOST_KEPT = 200  # answers, and as many events
MOST_FILE_BYTES = 4 << 20
LOOK_SECONDS = 0.25  # between two looks at what changed
SAVE_SECONDS = 10.0  # between two writings of the file
HOUR_SECONDS = 3600
CLOCK_SECONDS = 60.0  # a longer gap between two looks was sleep, and nothing was lent in it

Amount = Annotated[float, Meta(ge=0)]


class StageDid(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The work of one stage for an answer."""

    machine: str
    first: int
    last: int
    busy_s: Amount
    wait_s: Amount
    bytes_out: int
    bytes_in: int
    steps: int


class Answered(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One answer, however it ended."""

    number: int
    at: float  # Unix time of its end
    seconds: Amount  # from the question to the end
    model: str
    end: str  # stop, length, full (the context), stopped by its asker, or failed
    tokens: int
    alone: bool = False  # it had the pool to itself
    request: str = ""  # the id of a program's request, as its answer's header tells it
    whose: Requester | None = None  # older lines have none
    prompt_tokens: int | None = None  # the rest is known of answers that came to their end
    reused_tokens: int = 0
    queued_s: Amount = 0.0
    ttft_s: Amount | None = None
    decode_tok_s: Amount | None = None
    forecast_ttft_s: Amount | None = None
    forecast_tok_s: Amount | None = None
    stages: list[StageDid] = []


class Happened(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One event: a reason and its facts."""

    number: int
    at: float
    code: str
    facts: dict[str, Fact]


class Lent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The total work of this machine for others."""

    since: float = 0.0  # Unix time
    seconds: Amount = 0.0  # in which others had layers here
    rows: int = 0  # token positions computed for them
    bytes_in: int = 0
    bytes_out: int = 0
    watt_hours: Amount = 0.0  # that this machine drew in those seconds, where its system tells


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    number: int = 0
    answers: list[Answered] = []
    events: list[Happened] = []
    lent: Lent = Lent()


class UnderWay:
    """An answer in progress."""

    def __init__(self, number: int, model: str, request: str, requester: Requester) -> None:
        self.number, self.model, self.request, self.whose = number, model, request, requester
        self.began = time.monotonic()
        self.first: float | None = None
        self.tokens = 0
        self.ended: Answer | None = None
        self.alone = False
        self.told: set[str] = set()  # machines whose loss others that it broke off have told

    def came(self, n_tokens: int) -> None:
        """Count new tokens."""
        self.tokens += n_tokens
        if self.first is None and n_tokens:
            self.first = time.monotonic()

    def done(self, answer: Answer, alone: bool) -> None:
        """Record the last line, as the client receives it."""
        self.ended, self.alone = answer, alone

    def describe(self) -> computer.AnswerInProgress:
        now = time.monotonic()
        writes_s = now - self.first if self.first is not None else 0.0
        return computer.AnswerInProgress(
            self.number,
            self.model,
            self.request,
            self.whose,
            round(now - self.began, 3),
            self.tokens,
            (self.tokens - 1) / writes_s if self.tokens > 1 and writes_s > 0 else None,
        )


class Journal:
    """The journal, kept in one small file. An unreadable file is set aside, and the first entry says so.

    `grown` is called for each new event. Clients learn of the end of answers anyway.
    """

    def __init__(
        self,
        file: Path,
        snapshot: Callable[[], Snapshot],
        grown: Callable[[], None] = lambda: None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._file, self._snapshot, self._grown, self._now = file, snapshot, grown, now
        lost: list[Path] = []
        read = _load(file, lost.append)
        numbers = [entry.number for entry in read.answers] + [entry.number for entry in read.events]
        self._number = max([read.number, *numbers])
        self._answers, self._events = deque(read.answers, MOST_KEPT), deque(read.events, MOST_KEPT)
        self._lent = read.lent if read.lent.since else Lent(since=now())
        self._under_way: dict[int, UnderWay] = {}
        self._seen = Snapshot()
        self._stood_still: dict[str, float] = {}  # models by name, since when
        self._passed: Callable[[], RelayedWork] | None = None
        self._counted, self._counted_at = RelayedWork(), 0.0
        self._changed = asyncio.Event()
        self._dirty = False
        for aside in lost:
            self.note(Reason("log_node_journal_lost", {"path": str(aside)}))

    @property
    def number(self) -> int:
        """The number of the newest entry. It is part of the snapshot, so that clients know when to read the journal."""
        return self._number

    def read(self, since: int = 0) -> computer.Journal:
        """Return the entries after number `since`, the answers in progress, and the total of what was lent."""
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
        self._events.append(Happened(self._next(), self._stamp(), reason.code, dict(reason.facts)))
        self._grown()

    @contextmanager
    def answering(self, model: str, request: str = "", requester: Requester = OWNER) -> Iterator[UnderWay]:
        """Record the answer made inside the block, however it ends."""
        answer = UnderWay(self._next(), model, request, requester)
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
            for reason in recovered(answer.model, answer.ended.recovered if answer.ended else ()):
                self._note_loss(answer, reason)

    def changed(self) -> None:
        """Note that the snapshot may have changed."""
        self._changed.set()

    def _note_loss(self, answer: UnderWay, reason: Reason) -> None:
        """Record the loss of a machine during answers. Every interrupted answer reports it, but only the first to end
        is recorded."""
        machine = str(reason.facts["machine"])
        if machine in answer.told:
            return
        for other in self._under_way.values():
            if other.model == answer.model:
                other.told.add(machine)
        self.note(reason)

    async def run(self, passed: Callable[[], RelayedWork]) -> None:
        """Follow the snapshot until canceled. `passed` returns the work for others since the start."""
        self._seen, self._passed = self._snapshot(), passed
        self.note(Reason("log_node_started", {"version": self._seen.node.version}))
        self._counted, self._counted_at = passed(), time.monotonic()
        saved = time.monotonic()
        try:
            while True:
                await self._some_time()
                self._count()
                self._look()
                if self._dirty and time.monotonic() - saved >= SAVE_SECONDS:
                    saved = time.monotonic()
                    await run_to_completion(partial(self._save, self._content()))  # before the last one
        finally:
            self._count()
            self._save(self._content())

    async def _some_time(self) -> None:
        try:
            async with asyncio.timeout(SAVE_SECONDS):
                await self._changed.wait()
        except TimeoutError:
            return
        await asyncio.sleep(LOOK_SECONDS)
        self._changed.clear()

    def _look(self) -> None:
        now = self._snapshot()
        for reason in news(self._seen, now):
            self.note(self._timed(reason))
        self._seen = now

    def _timed(self, reason: Reason) -> Reason:
        """Return the reason, with the length of the interruption if a model answers again."""
        model = str(reason.facts.get("model"))
        if reason.code == BROKEN_OFF:
            self._stood_still[model] = time.monotonic()
        elif reason.code == GOES_ON and (since := self._stood_still.pop(model, None)) is not None:
            return goes_on_after(model, time.monotonic() - since)
        return reason

    def _count(self) -> None:
        """Add the work for others since the last count."""
        if self._passed is None:
            return
        seconds, self._counted_at = time.monotonic() - self._counted_at, time.monotonic()
        before, now = self._counted, self._passed()
        self._counted = now
        lent_s = seconds if self._seen.node.lending.used_by and seconds < CLOCK_SECONDS else 0.0
        if not lent_s and now == before:
            return
        self._dirty = True
        self._lent = Lent(
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

    def _answered(self, answer: UnderWay, end: str) -> Answered:
        seconds = time.monotonic() - answer.began
        number = self._next()  # of its end: whoever asks for what is new gets it
        if answer.ended is None:
            return Answered(
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
        forecast = summary.predicted
        return Answered(
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
            stages=[StageDid(**structs.asdict(stage)) for stage in summary.stages],
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
            log.warning("the journal cannot be kept: %s", error)


E = TypeVar("E", Answered, Happened)


def _after(entries: Iterable[E], since: int) -> list[E]:
    return [entry for entry in entries if entry.number > since]


def _entry(event: Happened) -> computer.EventEntry:
    """Return an event with its kind and sentence."""
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
        log.warning("the journal in %s is put aside: no sentence for %r", aside, error)
        lost(aside)
        return _File()
    return read
