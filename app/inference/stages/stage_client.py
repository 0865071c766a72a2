"""The host's client for one run of layers, reached over the pipe of its own worker or a channel to a lender.

This is the app's hot path: every micro-batch passes through it once per stage. Rows therefore stay in wire format, and
the header of an answer is compared with the expected one as a whole.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from typing import Any, Protocol, TypeVar

from app.core.errors import AppError, StageLost
from app.core.scheduler.routing import Pace
from app.core.verification import are_usable
from app.inference.pipeline.speed_measurement import Deadlines, StageFigures, StageMeter
from app.inference.stages.slot_keeper import SlotKeeper
from app.inference.worker.worker_errors import decode_lost
from backends import worker_orders
from backends.contract import GREEDY, NumberFormat, PictureGrid, Role, Sampling, Segment
from backends.frames import (
    CHECKS,
    CUTS,
    HEADER,
    MAGIC,
    SEES_ALL,
    SEGMENT,
    VERSION,
    BadFrame,
    Frame,
    FrameKind,
    decode_frame,
    decode_header,
    guesses_to_wire,
)


@dataclass(frozen=True, slots=True)
class Run:
    """The parameters of a run that both ends agreed on when it was opened."""

    pipeline: bytes  # 16 random bytes, unique to this run
    role: Role
    width: int
    number: NumberFormat = NumberFormat.F16  # the format of hidden states on the wire
    epoch: int = 0

    @property
    def input_number(self) -> NumberFormat:
        return NumberFormat.IDS if self.role in (Role.FIRST, Role.WHOLE) else self.number

    @property
    def samples(self) -> bool:
        return self.role.has_head


@dataclass(frozen=True, slots=True)
class Step:
    """A micro-batch on its way from one stage to the next."""

    table: bytes  # the segments, encoded as in a frame
    due: bytes  # the segments for which the last run samples a token
    n_segments: int
    n_rows: int
    prefill: bool
    # token ids or hidden states; after the last run, the sampled tokens for `due`, and after each of them as many as
    # its segment has guesses (NOT_SAMPLED from the first wrong guess on)
    rows: bytes | memoryview
    number: int = 0  # position in the sequence of the pipeline's steps, assigned by the first run
    sees_all: bool = False  # every row attends to all rows of the step (backends/contract.py)
    cuts: bool = False  # runs forget what they computed beyond the beginning of a segment (backends/frames.py)
    guesses: bytes = b""  # for the last run, if the step checks any (backends/frames.py)
    n_guesses: int = 0

    @classmethod
    def of(
        cls,
        segments: Sequence[Segment],
        due: Sequence[Segment],
        ids: bytes,
        *,
        sees_all: bool = False,
        cuts: bool = False,
        guesses: Sequence[Sequence[int]] = (),
    ) -> Step:
        """Return a step.

        guesses: the guessed tokens at the end of each segment.
        """
        n_rows, n_guesses = sum(segment.n_tokens for segment in segments), sum(map(len, guesses))
        return cls(
            _table(segments),
            _table(due),
            len(segments),
            n_rows,
            n_rows - n_guesses > len(segments),
            ids,
            sees_all=sees_all,
            cuts=cuts,
            guesses=guesses_to_wire(guesses) if n_guesses else b"",
            n_guesses=n_guesses,
        )


def _table(segments: Sequence[Segment]) -> bytes:
    return b"".join([SEGMENT.pack(s.slot, s.n_tokens, s.pos) for s in segments])


T = TypeVar("T")
PATIENCE = 8  # Multiple of a step's time limit to wait while the other end reports that it is computing.
LIKELY_BYTES = 8  # a token id and its log probability
CREDIT = 2  # steps in flight to one stage (SAFETY.md 5)


@dataclass(slots=True)
class SlotOpLog:
    """A counter of the steps that were sent to the first run of a pipeline."""

    n_sent: int = 0  # number of the latest step sent to the first run


@dataclass(slots=True)
class SlotOpCursor:
    """The pending slot operations of one run. Each is due after the same step as on the first run.

    All runs of a pipeline receive the same operations in the same order, although steps reach the later runs later. If
    a FORGET overtook steps in flight, the order of KV cells in that run would differ from the order in the other runs.
    If several answers share cells, the last bits of the run's results would then depend on timing.
    """

    log: SlotOpLog = field(default_factory=SlotOpLog)
    is_first: bool = True
    send_lock: asyncio.Lock = field(default_factory=asyncio.Lock)  # keeps frames in order
    _reached: int = 0  # number of the latest step sent to this run
    _later: deque[tuple[int, int, int]] = field(default_factory=deque)

    def enter(self, number: int) -> int:
        """Return the number of the step that is being sent. The first run assigns the numbers."""
        if self.is_first:
            self.log.n_sent += 1
            return self.log.n_sent
        self._reached = number
        return number

    def defer(self, slot: int, keep: int) -> None:
        """Queue a FORGET that is being sent to the first run now."""
        self._later.append((self.log.n_sent, slot, keep))

    @property
    def is_behind(self) -> bool:
        return bool(self._later)

    def due(self, number: int | None = None) -> Iterator[tuple[int, int]]:
        """Remove and yield the operations before step `number` or, without a number, all that are due now."""
        while self._later and self._later[0][0] < (self._reached + 1 if number is None else number):
            _, slot, keep = self._later.popleft()
            yield slot, keep


async def forget(runs: Sequence[StageClient], slot: int, keep: int) -> bool:
    """Make all runs of a pipeline keep only the first `keep` positions of a slot, at the same point in the
    sequence of steps.

    Return whether some runs will do so later, because earlier steps have not been sent to them yet.
    """
    first, *followers = runs
    await first.forget(slot, keep, followers)
    return not all([await run.catch_up() for run in followers])


class SlotOrder:
    """The order of slot operations in one pipeline, which must be the same on all its runs."""

    def __init__(self, runs: Sequence[StageClient]) -> None:
        self._runs, self._log = runs, SlotOpLog()
        # Whether some run has not received all operations. It receives them before its next step at the latest.
        self.is_behind = False
        for place, run in enumerate(runs):
            run.follow(self._log, is_first=place == 0)

    async def forget(self, slot: int, keep: int) -> None:
        self.is_behind = await forget(self._runs, slot, keep) or self.is_behind

    async def catch_up(self) -> bool:
        """Send all deferred operations that are due now. Return whether none remain."""
        self.is_behind = not all([await run.catch_up() for run in self._runs])
        return not self.is_behind

    async def settle(self) -> None:
        """Send all deferred operations. No steps may be in flight."""
        self.is_behind, number = False, self._log.n_sent
        for run in self._runs:
            await run.catch_up(number + 1)


class PriorityLock:
    """A lock for the computing time of a machine that has both the first and the last run of a pipeline.

    The waiting task with the lowest rank acquires it first. In order of arrival, the last run would often compute one
    group of answers while a lender waits for the first run to compute another group.
    """

    def __init__(self) -> None:
        self._taken = False
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._number = 0

    async def acquire(self, rank: int) -> None:
        """Acquire the lock. Tasks of the same rank acquire it in order of arrival."""
        if not self._taken:
            self._taken = True
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._number += 1
        heappush(self._waiting, (rank, self._number, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release()
            raise

    def release(self) -> None:
        """Release the lock in the next iteration of the event loop.

        By then, the releasing task may have another step with a lower rank.
        """
        asyncio.get_running_loop().call_soon(self._give)

    def _give(self) -> None:
        while self._waiting:
            turn = heappop(self._waiting)[2]
            if not turn.done():
                turn.set_result(None)
                return
        self._taken = False


@dataclass(slots=True)
class InFlight:
    """A frame that was sent but not answered yet, with the expected header and length of its answer."""

    seq: int
    kind: FrameKind
    answer: asyncio.Future[bytes] | None
    expected: bytes  # the beginning of the correct answer
    n_answer: int  # the length of the correct answer
    table: bytes = b""  # the segments that the frame concerns
    frame: bytes = b""  # kept for resending over a new connection
    n_rows: int = 0
    prefill: bool = False
    n_guess_bytes: int = 0  # at the end of the frame, after the rows
    sent_at: float = field(default_factory=time.monotonic)


NOTHING = InFlight(1 << 62, FrameKind.STEP, None, b"", -1)  # stands for no frame in flight


class FrameChannel(Protocol):
    """A data connection to another machine. Its methods raise AppError or OSError after the connection has ended."""

    async def send(self, frame: bytes) -> None: ...
    async def deliver(self, to: Callable[[bytes], None]) -> None:
        """Pass each incoming frame to `to` until the connection ends or `to` raises."""
        ...

    async def close(self) -> None: ...


class Link(Protocol):
    """A connection that carries frames to a stage and back."""

    async def send(self, frame: bytes) -> None: ...

    async def listen(self, stage: StageClient) -> None:
        """Pass incoming frames to the stage until the link ends or the task is canceled."""
        ...

    def last_done_at(self) -> float:
        """Return when the process at the other end last finished any work, whether for this stage or for another."""
        ...

    def overdue(self, stage: StageClient, in_s: float) -> bool:
        """Handle an answer that is late or due within `in_s` seconds. If necessary, repair the connection by then.

        Return True if the other end reports that it is computing, which means that it is slow but not gone.
        """
        ...

    def stopped_s(self, now: float) -> float:
        """Return for how many seconds the system has kept the process at the other end stopped.

        Return 0 if this machine cannot tell.
        """
        ...

    def silence(self, machine: str, seconds: float) -> StageLost:
        """Return the error that reports a silence of this length."""
        ...

    def give_up(self, why: StageLost) -> None:
        """Break the link because the stage is no longer used."""
        ...

    @property
    def is_remote(self) -> bool:
        """Return whether another machine computes the stage.

        Its reports are trusted less than those of this machine's own worker.
        """
        ...

    async def begin(self, order: worker_orders.BeginSequence, stage: StageClient) -> None:
        """Begin a sequence on the run that samples its tokens."""
        ...

    async def show(self, order: worker_orders.ShowPicture) -> None:
        """Store rows of a picture on the first run. Raises BadInput if another machine computes that run."""
        ...

    async def close(self) -> None: ...


class StageClient:
    """A client for one run, which sends steps and matches answers to them. Only the pipeline's tasks may use it."""

    def __init__(
        self, run: Run, link: Link, name: str, *, deadlines: Deadlines | None = None, machine: str = "", key: str = ""
    ) -> None:
        self.run = run
        self.name = name
        self.machine = machine or name  # runs on the same machine share its computing time
        self.key = key  # the machine's id, if it has one
        self.lost: StageLost | None = None
        self.on_lost: Callable[[StageLost], None] | None = None
        self.on_silence: Callable[[str, float | None], None] | None = None  # see `report_silence`
        self.keeper: SlotKeeper | None = None  # keeps its slots on disk, if that is possible
        self.silent_s = 0.0  # how long an answer had been due when the stage was lost
        self.on_likely: Callable[[Frame], None] | None = None  # called only for the run that samples
        self._link = link
        self._deadlines = deadlines or Deadlines()
        self._meter = StageMeter(name)
        self._credit = asyncio.Semaphore(CREDIT)
        self._cursor = SlotOpCursor()
        self._turns: tuple[PriorityLock, int] | None = None  # the machine's lock and this run's rank
        self._sent: deque[InFlight] = deque()
        self._seq = 0
        self._repeated = 0  # all frames up to this number were sent at least twice
        self._ended_with = NOTHING  # the oldest unanswered frame when the stage was lost
        self._awake_at = 0.0  # when this machine last resumed after a suspension

    async def forward(self, step: Step, enters: Callable[[], None] | None = None) -> Step:
        """Compute a step on the run. Steps are computed in the order of these calls.

        enters: called just before the step is sent. If it raises, the step is not sent.

        Raises StageLost if the run is gone or returns an invalid answer.
        """
        data, number = await self._in_turn(self._compute(step, enters))
        return self._answered(step, data, number)

    async def forward_into(self, step: Step, first: StageClient, following: Step) -> tuple[Step, Step]:
        """Compute a step on this last run and, right after it in the same worker, the following step on the first run.

        The tokens sampled in the first of these steps are the input of the second. Return the answers to both. Raises
        the same errors as `forward`.
        """
        computing = self._compute_both(step, first, following)
        data, data_after, number = await self._in_turn(computing)
        return self._answered(step, data, 0), first._answered(following, data_after, number)

    async def _in_turn(self, computing: Coroutine[Any, Any, T]) -> T:
        try:
            if self._turns is None:
                async with self._credit:
                    return await computing
            lock, rank = self._turns
            asked_at = time.monotonic()
            await lock.acquire(rank)
            self._meter.wait_s += time.monotonic() - asked_at
            try:
                return await computing
            finally:
                lock.release()
        finally:
            computing.close()  # in case it was never awaited

    def _answered(self, step: Step, data: bytes, number: int) -> Step:
        start = HEADER.size + (len(step.due) if self.run.samples else len(step.table))
        rows = memoryview(data)[start:]
        return replace(step, rows=rows, number=number)

    def share(self, turns: PriorityLock, rank: int) -> None:
        """Take turns with the other runs on this machine, one step at a time."""
        self._turns = turns, rank

    def follow(self, log: SlotOpLog, *, is_first: bool) -> None:
        """Apply slot operations in the same order as the other runs of the pipeline."""
        self._cursor = SlotOpCursor(log, is_first)

    async def _compute(self, step: Step, enters: Callable[[], None] | None) -> tuple[bytes, int]:
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        async with self._cursor.send_lock:
            await self._forget_before(step.number)
            if enters is not None:
                enters()
            number = self._cursor.enter(step.number)
            frame = self._announce(FrameKind.STEP, step, step.rows, answer)
            self._sent[-1].frame = frame
            await self._put(frame)
        return await answer, number

    async def _compute_both(self, step: Step, first: StageClient, following: Step) -> tuple[bytes, bytes, int]:
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        after: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        async with self._cursor.send_lock:
            await self._forget_before(step.number)
            self._cursor.enter(step.number)
            number = first._cursor.enter(0)
            frame = self._announce(FrameKind.STEP, step, step.rows, answer)
            await self._put(first._announce(FrameKind.FOLLOW, following, frame, after))
        return await answer, await after, number

    async def _forget_before(self, number: int | None) -> None:
        for slot, keep in self._cursor.due(number):
            await self._forget(slot, keep)

    async def _put(self, frame: bytes) -> None:
        try:
            await self._link.send(frame)
        except (AppError, OSError) as error:
            raise self._fail_by(error) from None

    async def forget(self, slot: int, keep: int = 0, followers: Sequence[StageClient] = ()) -> None:
        """Keep only the first `keep` positions of a slot, after the steps sent so far and before later steps.

        followers: later runs of the pipeline, which do so at the same point.
        """
        async with self._cursor.send_lock:
            for run in followers:
                run.forget_later(slot, keep)
            await self._forget(slot, keep)

    def forget_later(self, slot: int, keep: int) -> None:
        """Queue a FORGET until all steps that precede it have been sent.

        `catch_up` or the next step then sends it.
        """
        self._cursor.defer(slot, keep)

    async def catch_up(self, number: int | None = None) -> bool:
        """Send the slot operations that are due now or, if given, before step `number`. Return whether none remain."""
        async with self._cursor.send_lock:
            await self._forget_before(number)
        return not self._cursor.is_behind

    async def _forget(self, slot: int, keep: int) -> None:
        seq = self._next_seq()
        table = SEGMENT.pack(slot, 0, keep)
        head = self._head(FrameKind.FORGET, seq, 1, NumberFormat.F32, 0)
        self._sent.append(InFlight(seq, FrameKind.FORGET, None, b"", 0, table, head + table))
        await self._put(head + table)

    async def begin(
        self,
        slot: int,
        due_from: int,
        sampling: Sampling,
        history: Sequence[int],
        drawn: int = 0,
        *,
        grids: Sequence[PictureGrid] = (),
    ) -> None:
        """Begin a sequence in a slot, before any later step (worker_orders.BeginSequence).

        Only the last run samples. The other runs need only the sequence's grids, if it has any.
        """
        if not self.run.samples:
            sampling, history, drawn = GREEDY, (), 0
        order = worker_orders.BeginSequence(
            request=0,
            pipeline=self.run.pipeline.hex(),
            slot=slot,
            due_from=due_from,
            sampling=sampling,
            history=tuple(history),
            drawn=drawn,
            grids=tuple(grids),
        )
        await self._link.begin(order, self)

    async def show(self, slot: int, first: int, rows: bytes, *, begins: bool) -> None:
        """Store rows of a picture for a sequence on this first run (worker_orders.ShowPicture).

        Raises BadInput if another computer computes this run, because pictures never leave this computer.
        """
        order = worker_orders.ShowPicture(
            request=0, pipeline=self.run.pipeline.hex(), slot=slot, first=first, rows=rows, begins=begins
        )
        await self._link.show(order)

    async def send_begin(self, order: worker_orders.BeginSequence) -> None:
        """Send a BEGIN frame and wait for its answer.

        If the frame is sent again after a reconnect, it takes effect only once.
        """
        seq, payload = self._next_seq(), worker_orders.encode(order)
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        head = self._head(FrameKind.BEGIN, seq, 1, NumberFormat.F32, len(payload))
        table = SEGMENT.pack(order.slot, 0, order.due_from)
        frame = b"".join((head, table, payload))
        self._sent.append(InFlight(seq, FrameKind.BEGIN, answer, b"", 0, table, frame))
        await self._put(frame)
        await answer

    async def listen(self) -> None:
        """Process incoming frames until the link ends.

        If it ends with an error, all calls waiting for the stage fail.
        """
        try:
            await self._link.listen(self)
        except (AppError, OSError) as error:
            self._fail_by(error)

    def received(self, data: bytes) -> bool:
        """Process a frame from the run. Return whether it answers the oldest unanswered frame."""
        sent = self._sent[0] if self._sent else NOTHING
        if len(data) == sent.n_answer and data.startswith(sent.expected):
            self._sent.popleft()
            self._measure(sent, len(data))
            if sent.answer is not None and not sent.answer.done():
                sent.answer.set_result(data)
            return True
        try:
            return self._received_other(data, sent)
        except BadFrame as error:
            self.give_up(StageLost("stage_garbled", machine=self.machine, cause=str(error)))
        return False

    @property
    def waits_since(self) -> float | None:
        """Return when the oldest unanswered frame was sent."""
        return self._sent[0].sent_at if self._sent else None

    @property
    def slots_in_progress(self) -> frozenset[int]:
        """Return the slots of the oldest unanswered frame.

        After a loss, return the slots of the frame that was oldest at that time.
        """
        return frozenset(slot for slot, _, _ in SEGMENT.iter_unpack(self._oldest.table))

    def is_using(self, slot: int) -> bool:
        """Return whether a frame for this slot is unanswered."""
        return any(used == slot for sent in self._sent for used, _, _ in SEGMENT.iter_unpack(sent.table))

    @property
    def _oldest(self) -> InFlight:
        if self.lost is not None:
            return self._ended_with
        return self._sent[0] if self._sent else NOTHING

    @property
    def is_remote(self) -> bool:
        """Return whether another machine computes the stage.

        Its reports are trusted less than those of this machine's own worker.
        """
        return self._link.is_remote

    def has_usable_input(self) -> bool:
        """Return whether the oldest unanswered step contains only usable numbers."""
        sent = self._oldest
        rows = sent.frame[HEADER.size + len(sent.table) : len(sent.frame) - sent.n_guess_bytes]
        return are_usable(rows, self.run.width, self.run.input_number)

    def check(self, now: float) -> None:
        """Give up on the stage if its oldest unanswered frame has taken too long.

        If a machine has several stages, check only the one with the earliest `waits_since`, because the others are
        waiting for it.
        """
        if not self._sent or self.lost:
            return
        sent = self._sent[0]
        waited = now - self._waits_from(sent)
        if self._link.stopped_s(now) > self._deadlines.still_s:
            self.give_up(self._link.silence(self.machine, round(waited, 1)))
            return
        limit = self._deadlines.of_step(self._meter, sent.n_rows, sent.prefill)
        early = waited <= limit - self._deadlines.ask_s
        if early or (self._link.overdue(self, limit - waited) and waited < PATIENCE * limit):
            return
        if waited > max(limit, self._deadlines.dead_s):
            self.give_up(self._link.silence(self.machine, round(waited, 1)))

    def stalled_s(self, now: float) -> float:
        """Return for how many seconds the oldest unanswered frame has been waiting for its answer."""
        return now - self._waits_from(self._sent[0]) if self._sent else 0.0

    def extend_deadlines(self, now: float) -> None:
        """Extend the deadlines after this machine was suspended or its node could not receive answers."""
        self._awake_at = now

    def report_silence(self, seconds: float | None = None) -> None:
        """Report that the stage is silent and being reconnected or, if `seconds` is given, that it responds again."""
        if self.on_silence is not None and self.lost is None:
            self.on_silence(self.machine, seconds)

    def unanswered(self) -> list[bytes]:
        """Return all frames in flight, oldest first, so that they can be sent again."""
        self._repeated = self._seq
        return [sent.frame for sent in self._sent]

    def _waits_from(self, sent: InFlight) -> float:
        return max(sent.sent_at, self._link.last_done_at(), self._awake_at)

    def give_up(self, why: StageLost) -> None:
        """Give up on the stage: fail it and break its link."""
        self.fail(why)
        self._link.give_up(why)

    def fail(self, error: StageLost) -> None:
        """Fail everything in flight, and all later calls, with this error."""
        if self.lost is not None:
            return
        self._ended_with = self._oldest
        self.lost = error
        self.silent_s = self.stalled_s(time.monotonic())
        sent, self._sent = self._sent, deque()
        for waiting in sent:
            if waiting.answer is not None and not waiting.answer.done():
                waiting.answer.set_exception(error)
                waiting.answer.exception()  # marks it as retrieved, since its waiter may have been canceled
        if self.on_lost is not None:
            self.on_lost(error)

    def figures(self) -> StageFigures:
        return self._meter.figures()

    @property
    def pace(self) -> Pace | None:
        return self._meter.pace

    async def close(self) -> None:
        """Stop using the run, without freeing its memory. The run's owner frees that."""
        self.fail(StageLost("pipeline_closed"))
        await self._link.close()

    def _announce(self, kind: FrameKind, step: Step, rows: bytes | memoryview, answer: asyncio.Future[bytes]) -> bytes:
        """Return the frame for a step, and record which answer is expected."""
        if self.lost is not None:
            raise self.lost
        run, seq = self.run, self._next_seq()
        guesses = step.guesses if run.samples else b""
        flags = SEES_ALL * step.sees_all | CUTS * step.cuts | CHECKS * bool(guesses)
        head = self._head(kind, seq, step.n_segments, run.input_number, len(rows) + len(guesses), flags)
        frame = b"".join((head, step.table, rows, guesses))
        if run.samples:
            n_due = len(step.due) // SEGMENT.size
            n_ids = 4 * (n_due + step.n_guesses)
            expected = self._head(FrameKind.SAMPLED, seq, n_due, NumberFormat.IDS, n_ids) + step.due
            n_answer = len(expected) + n_ids
        else:
            n_rows = step.n_rows * run.number.row_bytes(run.width)
            expected = self._head(FrameKind.OUTPUT, seq, step.n_segments, run.number, n_rows) + step.table
            n_answer = len(expected) + n_rows
        self._sent.append(
            InFlight(
                seq,
                FrameKind.STEP,
                answer,
                expected,
                n_answer,
                step.table,
                b"",
                step.n_rows,
                step.prefill,
                len(guesses),
            )
        )
        self._meter.bytes_out += len(frame)
        return frame

    def _head(
        self, kind: FrameKind, seq: int, n_segments: int, number: NumberFormat, n_payload: int, flags: int = 0
    ) -> bytes:
        run = self.run
        return HEADER.pack(MAGIC, VERSION, kind, run.pipeline, run.epoch, seq, n_segments, number, flags, n_payload)

    def _next_seq(self) -> int:
        if self.lost is not None:
            raise self.lost
        self._seq += 1
        return self._seq

    def _measure(self, sent: InFlight, n_bytes: int) -> None:
        now = time.monotonic()
        if sent.kind is FrameKind.STEP:
            self._meter.bytes_in += n_bytes
            began = max(sent.sent_at, self._link.last_done_at())
            self._meter.add(now - began, began - sent.sent_at, sent.n_rows, sent.prefill)

    def _received_other(self, data: bytes, sent: InFlight) -> bool:
        """Process a frame other than the expected answer. Return whether it completes the oldest unanswered frame."""
        head = decode_header(data)
        if head.pipeline != self.run.pipeline:
            raise BadFrame("an answer for another run")
        match head.kind:
            case (
                FrameKind.LOST
            ):  # the link stays up, because the process at the other end is alive and may serve other runs
                self.fail(decode_lost(decode_frame(data).payload, self.machine))
            case _ if head.epoch < self.run.epoch or head.kind is FrameKind.LOGITS:
                pass  # answers a frame of an earlier epoch, or was requested by a test that reads it from the worker
            case FrameKind.DONE if sent.kind in (FrameKind.FORGET, FrameKind.BEGIN) and head.seq == sent.seq:
                self._sent.popleft()
                if sent.answer is not None and not sent.answer.done():
                    sent.answer.set_result(data)
                return True
            case FrameKind.LIKELY if self.run.samples:
                likely = decode_frame(data)
                if len(likely.payload) % LIKELY_BYTES:
                    raise BadFrame("likely tokens that are no whole number of them")
                if self.on_likely is not None:
                    self.on_likely(likely)
            case FrameKind.STALE | FrameKind.NEED_FROM if sent.seq <= head.seq <= self._seq:
                self.give_up(StageLost("stage_out_of_step", machine=self.machine))
            case _ if head.seq < sent.seq or head.kind is FrameKind.STALE:
                pass  # late or repeated, or a STALE reply, in the lender's own epoch, to a frame of an earlier epoch
            case FrameKind.OUTPUT | FrameKind.SAMPLED | FrameKind.DONE if head.seq <= self._repeated:
                # answers a frame sent before a reconnect, whose earlier answers were lost; all will be repeated in
                # order
                pass
            case _:
                raise BadFrame(f"{head.kind.name} {head.seq} in answer to {sent.kind.name} {sent.seq}")
        return False

    def _fail_by(self, error: AppError | OSError) -> StageLost:
        if isinstance(error, StageLost):
            self.fail(error)
        else:
            self.fail(StageLost("stage_unreachable", machine=self.machine))
        assert self.lost is not None
        return self.lost
