"""The scheduler of a pipeline, which queues requests, assigns slots to sequences, and forms micro-batches."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import struct
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite

from app.core.errors import AppError, BadInput, Busy
from app.core.log_redaction import log_extra
from app.core.recovery import fault_table
from app.core.recovery.recovery import Loss, Notice, ended_in_step, may_recover, too_often_reason
from app.core.scheduler.schedule import (
    Admission,
    Batch,
    IdleSlot,
    Limits,
    QueuedRequest,
    UsualDuration,
    admit,
    has_spare_machine,
    next_batch,
    queue_place,
    queued_requests,
    reusable_positions,
)
from app.core.speculation.draft import DraftText
from app.core.speculation.overlap import SpeculationGain
from app.core.speculation.trip_costs import TripCosts
from app.inference.pipeline.kept_prompts import LEAST_GAIN, KeptPrompt, ModelPrompts
from app.inference.pipeline.sequence import UNREAD_S, Request, SequenceState, check_request
from app.inference.pipeline.speculative_tokens import NOTHING, Guess, Proposal, Source
from app.inference.pipeline.speed_measurement import StageFigures
from app.inference.stages.stage_client import SlotOrder, StageClient, Step
from app.inference.worker.drafter import READ_AT_ONCE, Drafter
from backends.contract import DEFAULT_CHECKPOINTS, MOST_GUESSES, NOT_SAMPLED, CheckpointRule, Segment, SlotCheckpoints
from backends.frames import Frame

MAX_WAITING = 64
DRAFT_DEPTH = 4  # how many tokens a draft model writes for the first trips
READ_AHEAD = 32  # the draft model reads a prompt once so many of its tokens are new to it
SHOWN_BYTES = 8 << 20  # of a picture in one order, which base64 makes a third longer
IDLE_S = 0.5  # without work, before a prompt is kept on disk
FREE_S, FREE_LOOK_S = 5.0, 0.005  # wait until the operations of a slot have reached all stages
log = logging.getLogger(__name__)
LIKELY = struct.Struct("<if")  # token id and the natural log of its probability


@dataclass(frozen=True, slots=True)
class MicroBatchPart:
    """The part of a micro-batch that belongs to one sequence."""

    sequence: SequenceState
    segment: Segment
    due: bool  # whether a token is sampled after this segment
    guesses: tuple[int, ...] = ()  # the guessed tokens at its end, each of which is checked

    @property
    def known_end(self) -> int:
        """Return the position after the last known token of the part. The guessed positions follow."""
        return self.segment.end - len(self.guesses)


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """A micro-batch on its way through the stages, and the sequences in it."""

    step: Step
    parts: tuple[MicroBatchPart, ...]
    guess: Guess | None = None  # if not even its first token is known yet

    @classmethod
    def of(cls, parts: Sequence[MicroBatchPart], *, sees_all: bool = False) -> MicroBatch:
        """Return a micro-batch of positions with known tokens, each followed by its guessed positions."""
        ids = array("i")
        for part in parts:
            ids += part.sequence.tokens[part.segment.pos : part.known_end] + array("i", part.guesses)
        return cls(_step(parts, struct.pack(f"<{len(ids)}i", *ids), sees_all=sees_all), tuple(parts))

    @classmethod
    def guessed(cls, sequence: SequenceState, guess: Guess) -> MicroBatch:
        """Return a micro-batch of guessed positions."""
        tokens = guess.tokens
        part = MicroBatchPart(sequence, Segment(sequence.slot, len(tokens), guess.pos), True, tokens[1:])
        return cls(_step((part,), struct.pack(f"<{len(tokens)}i", *tokens)), (part,), guess)

    def following(self) -> MicroBatch:
        """Return a micro-batch with the next position of each sequence, for the tokens that this micro-batch will
        sample.
        """
        parts = tuple(
            MicroBatchPart(part.sequence, Segment(part.segment.slot, 1, part.segment.end), True) for part in self.parts
        )
        return MicroBatch(_step(parts, b""), parts)

    @property
    def continues(self) -> bool:
        """Return whether all sequences of the micro-batch are still running."""
        return not any(part.sequence.leaving for part in self.parts)


def _step(parts: Sequence[MicroBatchPart], ids: bytes, *, sees_all: bool = False) -> Step:
    return Step.of(
        [part.segment for part in parts],
        [part.segment for part in parts if part.due],
        ids,
        sees_all=sees_all,
        cuts=any(part.segment.pos < part.sequence.computed_to for part in parts),
        guesses=[part.guesses for part in parts],
    )


@dataclass(frozen=True, slots=True)
class PipelineConfig:
    """The sizes and limits with which a pipeline was opened."""

    slots: int
    kv_cells: int  # positions of all slots together
    context: int  # maximum positions per slot
    n_vocab: int
    chunk_rows: int = 64  # maximum rows of a micro-batch; the stages accept at least this many
    max_waiting: int = MAX_WAITING
    # A slot can only be cut back to positions whose state was kept, as `keep` determines (backends/contract.py).
    recurrent: bool = False
    keep: CheckpointRule = DEFAULT_CHECKPOINTS
    trained: int | None = None  # positions that the model was trained for, if known
    # Whether guesses are checked several at a time. The last digits of a row depend on how many are computed with it,
    # so this is off where all numbers must be the same whatever is guessed.
    checks: bool = True


class Scheduler:
    """The scheduler of one pipeline. It carries out the decisions of app/core/scheduler/schedule.py.

    It must be used from a single event loop, so its state changes only between awaits.
    """

    def __init__(
        self,
        shape: PipelineConfig,
        limits: Limits,
        figures: Callable[[], tuple[StageFigures, ...]],
        prompts: ModelPrompts | None = None,
    ) -> None:
        self._shape, self._limits, self._figures = shape, limits, figures
        self.place = 0  # index of this pipeline among those of the model
        self._waiting: list[SequenceState] = []
        self._running: dict[int, SequenceState] = {}  # by slot
        self._idle = {slot: IdleSlot(slot, 0) for slot in range(limits.slots)}
        self._to_empty: deque[SequenceState] = deque()  # sequences that have left but still occupy their slots
        self._lanes: deque[asyncio.Future[None]] = deque()  # lanes that wait for work
        self._door = asyncio.Event()  # set when a request arrives or leaves, or a slot must be emptied
        self._number = 0  # number of the latest micro-batch
        self._under_way = 0  # micro-batches in flight
        self._order: SlotOrder | None = None  # the order of slot operations on the current stages
        self.usual = UsualDuration()  # the usual duration of requests
        self._held = False  # whether no new work may enter
        self._gain = SpeculationGain()  # the measured gain of guessing for a single answer
        # the measured costs of trips, by the number of running answers, of those in the trip, and the source of guesses
        self._costs: dict[tuple[int, int, Source], TripCosts] = {}
        self._drafter: Drafter | None = None  # a small model that writes ahead, if there is one
        self._drafts = asyncio.Event()  # set when it may have something to write
        self._quiet = asyncio.Event()  # set when nothing is in flight during a hold
        # slot being set up on the last run; remains set if the run is lost meanwhile
        self._starting_slot: int | None = None
        self._starting = asyncio.Lock()  # held while a sequence is set up
        self._to_restore: asyncio.Queue[tuple[SequenceState, KeptPrompt]] = asyncio.Queue()
        self._prompts = prompts  # those that are kept on disk
        self._to_keep: dict[int, tuple[IdleSlot, str]] = {}  # idle slots that may be worth it, and for whom
        self._unkept = asyncio.Event()  # set when there are any
        self._copied_cells = 0  # of the slot that is being copied
        self._laid_out = frozenset[int]()  # slots in which all runs know of pictures in two dimensions

    @property
    def n_running(self) -> int:
        return len(self._running)

    @property
    def n_waiting(self) -> int:
        return len(self._waiting)

    def line(self) -> tuple[QueuedRequest, ...]:
        """Return the waiting requests, in order."""
        now, ids = time.monotonic(), [waiting.conversation for waiting in self._waiting]
        elapsed = [now - running.timing.begun_at for running in self._running.values()]
        return queued_requests(ids, elapsed, self.usual, self._limits.slots)

    # Requests

    def submit(self, request: Request) -> SequenceState:
        """Queue a request. Raises BadInput if it cannot be answered, or Busy if too many requests are waiting."""
        room = min(self._limits.context, self._limits.kv_cells)
        check_request(request, room, self._shape.n_vocab, self._shape.trained)
        if len(self._waiting) >= self._shape.max_waiting:
            seconds = self.usual.wait(len(self._waiting) + 1, self._limits.slots)
            raise Busy("queue_full", waiting=len(self._waiting), seconds=seconds)
        sequence = SequenceState(request, min(len(request.ids) + request.max_tokens, room), self)
        self._waiting.insert(queue_place(self._waiting, request.has_priority), sequence)
        self._door.set()
        return sequence

    def leave(self, sequence: SequenceState) -> None:
        """Stop computing a sequence whose client has left or has read its end."""
        sequence.leaving = sequence.unread.is_closed = True
        if sequence in self._waiting:
            self._waiting.remove(sequence)
            self._door.set()  # the next request in the queue may need less room
        elif not sequence.under_way:
            self._release(sequence)

    def fail(self, error: AppError) -> None:
        """End every request with this error."""
        for sequence in (*self._waiting, *self._running.values()):
            sequence.end(error)

    # Interruptions

    def end_slots(self, slots: frozenset[int], error: AppError) -> None:
        """End the answers in these slots with this error, or all answers if `slots` is empty."""
        for sequence in self._running.values():
            if sequence.slot in slots or not slots:
                sequence.end(error)

    def attribute_loss(self, loss: Loss) -> tuple[Loss, SequenceState | None]:
        """Return the loss and the answer that caused it.

        The loss is marked as shared if several answers took part in the failed step. The answer is None unless it has
        caused so many losses that it must end.
        """
        if not ended_in_step(loss):
            return loss, None
        took_part = [s for s in self._running.values() if s.slot in loss.slots and not s.is_closed]
        for sequence in took_part:
            sequence.interruption.record_death(loss, sequence.request.sampling.is_special)
        if len(took_part) != 1:
            return replace(loss, is_shared=len(took_part) > 1), None
        is_cause = took_part[0].interruption.is_cause(loss)
        return loss, took_part[0] if is_cause else None

    def end_cause(self, sequence: SequenceState, why: AppError) -> None:
        """End this answer, and clear the suspicion that other answers caused its losses."""
        sequence.end(why)
        before = len(sequence.interruption.deaths) - 1
        for other in self._running.values():
            if other is not sequence:
                other.interruption.absolve(before)

    def loss_of(self, slots: frozenset[int]) -> Loss | None:
        """Return the loss after which an answer in these slots has received no token yet, or None.

        If `slots` is empty, all answers are considered.
        """
        losses = [s.interruption.loss for s in self._running.values() if not slots or s.slot in slots]
        return next((loss for loss in losses if loss is not None), None)

    @property
    def has_waiting_clients(self) -> bool:
        """Return whether any client is waiting for tokens."""
        return bool(self._waiting) or any(not s.is_closed for s in self._running.values())

    def tell(self, notice: Notice) -> None:
        """Send a notice to all waiting clients."""
        for sequence in (*self._waiting, *self._running.values()):
            if not sequence.is_closed:
                sequence.put(notice)

    @property
    def names(self) -> list[str]:
        """Return the ids of the requests that have a slot. Requests from the window have no id."""
        return [s.request.name for s in self._running.values() if s.request.name]

    @property
    def is_recovery_exhausted(self) -> bool:
        """Return whether any answer has been recovered as often as allowed."""
        return any(not s.is_closed and not may_recover(s.interruption.times) for s in self._running.values())

    def interrupt(self, loss: Loss, *, alone: bool = False) -> None:
        """Reset all sequences after the loss of the stages and their KV caches.

        Sequences that were interrupted too often are ended. alone: whether this machine will compute the whole model.
        """
        for sequence in (*self._waiting, *self._running.values()):
            if not sequence.timing.begun_at:  # it has not begun, so nothing of it is lost
                sequence.interruption.loss = sequence.interruption.loss or loss
            elif not sequence.is_closed and not sequence.interruption.record_loss(loss, alone=alone):
                sequence.end(fault_table.loss_error(too_often_reason(loss)))
        self._waiting = [sequence for sequence in self._waiting if not sequence.is_closed]
        self._running = {s.slot: s for s in self._running.values() if not s.leaving}
        for sequence in self._running.values():
            sequence.rewind(alone=len(self._running) == 1)
        free = set(range(self._limits.slots)) - set(self._running)
        self._idle = {slot: IdleSlot(slot, 0) for slot in free}
        self._to_empty.clear()
        self._lanes.clear()
        self._under_way, self._held = 0, False
        self._quiet.set()

    @property
    def interrupted(self) -> list[SequenceState]:
        """Return the sequences that have a slot and have received no token since a stage was lost."""
        return [s for s in self._running.values() if s.interruption.loss and not s.is_closed]

    def hand_over(self, loss: Loss, take: Callable[[SequenceState], bool]) -> None:
        """Offer all sequences to other pipelines, because this pipeline has lost its stages."""
        mine = (*self._running.values(), *self._waiting)
        for sequence in sorted(mine, key=lambda waiting: waiting.timing.asked_at, reverse=True):
            if sequence.is_closed or not may_recover(sequence.interruption.times):
                continue
            slot, has_begun = sequence.slot, sequence in self._running.values()
            sequence.rewind()
            if not take(sequence):
                continue
            if has_begun:
                sequence.interruption.record_loss(loss)
                del self._running[slot]
            else:
                self._waiting.remove(sequence)

    def adopt(self, sequence: SequenceState) -> None:
        """Take over a sequence from another pipeline.

        It is placed at the front of the queue and continues after its last token.
        """
        sequence.owner = self
        self._waiting.insert(0, sequence)
        self._door.set()

    def rows_ahead(self, request: Request) -> tuple[int, int]:
        """Return how many rows will be computed before a new request, and how many of its rows are in the KV cache."""
        ahead = sum(max(0, s.known - s.entered) for s in (*self._running.values(), *self._waiting))
        return ahead, reusable_positions(request, list(self._idle.values()))

    def resume(self, limits: Limits) -> None:
        """Continue with new stages. `attend` then restarts the running sequences on them."""
        self._starting_slot, self._laid_out = None, frozenset()
        self._limits, before = limits, self._figures()
        self._gain, self._costs = SpeculationGain(), {}
        for sequence in self._running.values():
            sequence.timing.stages_before, sequence.since = before, self._number
        self._door.set()

    async def hold(self, seconds: float) -> None:
        """Start no more micro-batches, and wait up to `seconds` until none is in flight.

        Every sequence is then between two tokens.
        """
        self._held = True
        self._quiet.clear()
        if self._under_way:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._quiet.wait()

    def end_unread(self, now: float) -> None:
        """End the sequences whose clients have stopped reading."""
        for sequence in list(self._running.values()):
            if sequence.unread.full_s(now) > UNREAD_S:
                sequence.end(Busy("reader_slow", seconds=int(UNREAD_S)))
                if not sequence.under_way:
                    self._release(sequence)

    # Micro-batches

    async def next_batch(self) -> MicroBatch:
        """Wait for the next micro-batch and return it."""
        while (micro_batch := self._choose() or self._guess()) is None:
            lane = asyncio.get_running_loop().create_future()
            self._lanes.append(lane)
            await lane
        return micro_batch

    def deliver(self, micro_batch: MicroBatch, step: Step, *, followed: bool = False) -> None:
        """Process a micro-batch that has returned with its sampled tokens."""
        now = time.monotonic()
        for part, ids in _sampled(micro_batch, step):
            self._take(part, ids, now, followed, len(micro_batch.parts))
        if all(part.due for part in micro_batch.parts):
            ahead = micro_batch.parts[0].sequence.guesses
            if ahead.trip_s is not None:
                self._learn(len(micro_batch.parts), ahead.trip_source, ahead.trip_rows, ahead.trip_s)
        self.drop(micro_batch)

    def _take(self, part: MicroBatchPart, ids: Sequence[int], now: float, followed: bool, n_parts: int) -> None:
        """Process the tokens sampled for a part: one, and one more for each correct guess."""
        sequence, before = part.sequence, part.sequence.timing.last_at
        n_known, n_right = sequence.known, _n_right(part, ids)
        right_end = part.known_end + n_right
        sequence.guesses.count_right(sequence.guesses.checked.source, n_right)
        for token in ids[: 1 + n_right]:
            sequence.sampled(token, now, self._figures)
        sequence.likely.clear()
        if right_end < part.segment.end or sequence.leaving:
            sequence.entered = min(sequence.entered, right_end, sequence.known)
        if sequence.leaving:
            sequence.guesses.drop()
        elif sequence.request.guesses and (self._limits.machines > 1 or self._checks):
            ahead, n_new = sequence.guesses, sequence.known - n_known
            costs_of = partial(self._costs_of, n_parts)
            gain = ahead.judge(sequence.tokens, n_new, now - before, followed, self._gain, costs_of)
            self._drafts.set()
            self._gain = gain if len(self._running) == 1 else self._gain
            if ahead.is_wrong:
                sequence.entered = min(sequence.entered, right_end)
        sequence.under_way -= sequence.guesses.take_dropped()

    def drop(self, micro_batch: MicroBatch) -> None:
        """Record that a micro-batch has returned or was abandoned."""
        self._under_way -= 1
        if not self._under_way and self._order is not None and self._order.is_behind:
            self._door.set()
        # if its guess was wrong, its sequence has already continued without it
        if micro_batch.guess is None or not micro_batch.guess.is_wrong:
            for part in micro_batch.parts:
                self._came_back(part.sequence)
        self.wake()

    def are_tokens(self, micro_batch: MicroBatch, step: Step) -> bool:
        """Return whether the tokens from another machine are valid: all in the vocabulary, and none after a wrong
        guess.
        """
        for part, ids in _sampled(micro_batch, step):
            n_tokens = 1 + _n_right(part, ids)
            if not all(0 <= token < self._shape.n_vocab for token in ids[:n_tokens]):
                return False
            if any(token != NOT_SAMPLED for token in ids[n_tokens:]):
                return False
        return True

    def store_logprobs(self, frame: Frame) -> None:
        """Store the log probabilities of the next token and its alternatives, which arrive before the token itself.

        An invalid frame is dropped.
        """
        likely = tuple(LIKELY.iter_unpack(frame.payload))
        if not all(0 <= token < self._shape.n_vocab and isfinite(log) for token, log in likely):
            return
        for segment in frame.segments:
            sequence = self._running.get(segment.slot)
            if sequence and sequence.known <= segment.end <= sequence.known + MOST_GUESSES:
                sequence.likely[segment.end] = likely

    def following(self, micro_batch: MicroBatch) -> MicroBatch | None:
        """Return the next micro-batch if only its tokens are still unknown, and count it as in flight. Otherwise,
        return None.

        All running answers must be in this micro-batch and must continue after it.
        """
        parts = micro_batch.parts
        if self._shape.recurrent:  # superfluous recurrent state cannot be taken back
            return None
        if self._held or len(parts) != len(self._running):
            return None
        if not all(p.due and p.sequence.continues and not p.sequence.guesses.in_flight for p in parts):
            return None
        costs_of = partial(self._costs_of, len(parts))
        if self._checks and all(p.sequence.guesses.expects_check(p.sequence.tokens, costs_of) for p in parts):
            return None
        return self._entered(micro_batch.following())

    def abandon(self, following: MicroBatch) -> None:
        """Abandon a micro-batch that only the first run has computed. That run discards it with the next step of
        each slot.
        """
        for part in following.parts:
            part.sequence.entered = min(part.sequence.entered, part.segment.pos)
        self.drop(following)

    def wake(self) -> None:
        """Let one waiting lane look for work."""
        if self._held and not self._under_way:
            self._quiet.set()
        while self._lanes:
            lane = self._lanes.popleft()
            if not lane.done():
                lane.set_result(None)
                return

    def _choose(self) -> MicroBatch | None:
        rows = [s for s in self._running.values() if s.begun and not s.leaving and not s.unread.is_full]
        if self._drafter is not None:
            rows = [s for s in rows if not self._awaits_draft(s)]
        if not rows or self._held:
            return None
        batch = next_batch(rows, self._limits, self._under_way, self._number + 1)
        if batch is not None and batch.more:
            self.wake()
        return self._carry(batch) if batch is not None else None

    def _guess(self) -> MicroBatch | None:
        """Return a micro-batch with a guessed token if a machine would otherwise be idle."""
        running = self._running.values()
        if self._held or self._shape.recurrent or not has_spare_machine(running, self._limits, self._under_way):
            return None
        for sequence in sorted(running, key=lambda s: len(s.guesses.pending)):
            if not sequence.guessable:
                continue
            ahead, costs_of = sequence.guesses, partial(self._costs_of, 1)
            most = min(sequence.most_guesses(len(ahead.in_flight)), MOST_GUESSES, self._limits.chunk_rows)
            if guess := ahead.next(sequence.tokens, self._gain, costs_of, most, checks=self._checks):
                self.wake()
                return self._entered(MicroBatch.guessed(sequence, guess))
        return None

    @property
    def _checks(self) -> bool:
        """Return whether several guesses may be checked in one step. This requires that the runs can forget wrong
        guesses.
        """
        return self._shape.checks and not self._shape.recurrent

    def _costs_of(self, n_answers: int, source: Source = Source.LOOKUP) -> TripCosts:
        """Return the measured costs of a step with this many of the running answers, for guesses from `source`.

        The costs of steps without guesses are the same for all sources.
        """
        n_running = len(self._running)
        plain = self._costs.get((n_running, n_answers, Source.LOOKUP), TripCosts())
        if source is Source.LOOKUP:
            return plain
        known = self._costs.get((n_running, n_answers, source), TripCosts(first_depth=DRAFT_DEPTH))
        return replace(known, plain_s=plain.plain_s, n_plain=plain.n_plain)

    def _learn(self, n_answers: int, source: Source, rows: int, seconds: float) -> None:
        """Record the duration of a step. A step without guesses counts for all sources."""
        for each in Source if rows <= 1 else (source,):
            key = len(self._running), n_answers, each
            self._costs[key] = self._costs_of(n_answers, each).after(rows, seconds)

    def _to_check(self, batch: Batch) -> list[Proposal]:
        """Return the guesses to check after each segment of a batch. Every segment gets the same number of
        guesses.

        Otherwise, the step would be computed in several passes. Steps with prompts check no guesses.
        """
        sequences = [self._running[segment.slot] for segment in batch.segments]
        none = [NOTHING] * len(sequences)
        if not self._checks or not all(
            segment.n_tokens == 1 and segment.end == sequence.known >= sequence.due_from
            for segment, sequence in zip(batch.segments, sequences, strict=True)
        ):
            return none
        n = len(sequences)
        most = min(MOST_GUESSES // n, self._limits.chunk_rows // n - 1)
        proposed = [s.guesses.proposals(s.tokens, min(most, s.most_guesses())) for s in sequences]
        overlaps = self._limits.machines > 1 and len(self._running) == 1
        overlap = self._gain.speedup if overlaps else _no_overlap
        best, best_speedup = none, 1.0
        for source in Source:
            runs = [run for some in proposed for run in some if run.source is source]
            if len(runs) < n:
                continue
            costs, chances = self._costs_of(n, source), [run.chances for run in runs]
            depth = costs.depth(chances, most, overlap)
            if (depth and (speedup := costs.speedup(chances, depth, overlap)) > best_speedup) or best is none:
                best, best_speedup = [run.first(depth) for run in runs], speedup if depth else 1.0
        if best[0]:
            for sequence, run in zip(sequences, best, strict=True):
                sequence.guesses.check(run)
        return best

    def _carry(self, batch: Batch) -> MicroBatch:
        parts = []
        for segment, run in zip(batch.segments, self._to_check(batch), strict=True):
            sequence = self._running[segment.slot]
            sequence.kept, due = sequence.kept.after(segment), segment.end >= sequence.due_from
            longer = replace(segment, n_tokens=segment.n_tokens + len(run)) if run else segment
            parts.append(MicroBatchPart(sequence, longer, due, run.tokens))
        return self._entered(MicroBatch.of(parts, sees_all=batch.sees_all))

    def _entered(self, micro_batch: MicroBatch) -> MicroBatch:
        """Record that a micro-batch is in flight, and return it."""
        self._number += 1
        self._under_way += 1
        for part in micro_batch.parts:
            part.sequence.entered = part.sequence.computed_to = part.segment.end
            part.sequence.since = self._number
            part.sequence.under_way += 1
        return micro_batch

    def _came_back(self, sequence: SequenceState) -> None:
        sequence.under_way -= 1
        if sequence.leaving and not sequence.under_way:
            self._release(sequence)

    # Drafts

    def use_draft(self, drafter: Drafter) -> None:
        """Use a draft model to guess the tokens of the answers from now on."""
        self._drafter = drafter

    async def write_drafts(self) -> None:
        """Let the draft model guess the next tokens of the running answers. Runs forever."""
        while True:
            await self._drafts.wait()
            self._drafts.clear()
            drafter = self._drafter
            try:
                while drafter is not None and (sequence := self._next_draft(drafter)) is not None:
                    await self._write_draft(sequence, drafter)
                    self.wake()
            except AppError as error:  # it never ends an answer
                log.warning("answers go on without their draft model: %s", error)
                self._drafter = None
                for running in self._running.values():
                    running.guesses.draft = None
                self.wake()

    def _wanted_draft(self, sequence: SequenceState) -> int:
        """Return how many more tokens the draft model should guess for a sequence."""
        draft = sequence.guesses.draft
        if draft is None or not sequence.begun or sequence.leaving:
            return 0
        n_ahead = len(sequence.guesses.in_flight)
        n_next = sequence.guesses.wanted_draft(partial(self._costs_of, self._group_size))
        most = sequence.most_guesses()
        return max(0, min(n_next and n_ahead + n_next + 1, most) - len(draft.written))

    @property
    def _group_size(self) -> int:
        """Return how many running answers are computed together in one step."""
        return -(-len(self._running) // self._limits.machines)

    def _awaits_draft(self, sequence: SequenceState) -> bool:
        """Return whether the next step of a sequence should wait until the draft model has guessed its tokens."""
        draft = sequence.guesses.draft
        if draft is None or draft.written or sequence.known - sequence.entered != 1:
            return False
        if sequence.known < sequence.due_from or not self._wanted_draft(sequence):
            return False
        n, usual = self._group_size, draft.usual_chances(MOST_GUESSES)
        drafted = self._costs_of(n, Source.DRAFT)
        expected = drafted.speedup([usual], drafted.depth([usual], MOST_GUESSES))
        costs = self._costs_of(n)
        runs = sequence.guesses.proposals(sequence.tokens, sequence.most_guesses())
        if any(costs.speedup([run.chances], costs.depth([run.chances], len(run))) >= expected for run in runs):
            return False  # earlier text tells more
        self._drafts.set()
        return True

    def _next_draft(self, drafter: Drafter) -> SequenceState | None:
        """Return the next sequence for the draft model, or None.

        This is the sequence that has the fewest guessed tokens or, if none needs more, one whose prompt the draft model
        has not read. A sequence with a long unread text comes last, because nothing can be guessed for it soon.
        """
        waiting = [sequence for sequence in self._running.values() if self._wanted_draft(sequence)]
        if waiting:
            return min(waiting, key=partial(_draft_rank, drafter))
        unread = (s for s in self._running.values() if s.guesses.draft is not None and not s.leaving and s.begun)
        return next((s for s in unread if drafter.n_unread(s.slot, s.tokens) > READ_AHEAD), None)

    async def _write_draft(self, sequence: SequenceState, drafter: Drafter) -> None:
        draft, n_more = sequence.guesses.draft, self._wanted_draft(sequence)
        assert draft is not None
        turns, base = draft.n_turns, sequence.tokens + array("i", [token.token for token in draft.written])
        new = await drafter.write(sequence.slot, base, n_more)
        late = sequence.tokens[len(base) :].tolist()  # known by now
        if draft.n_turns == turns and [token.token for token in new[: len(late)]] == late[: len(new)]:
            draft.written += new[len(late) :]

    # Slots

    async def attend(self, stages: Sequence[StageClient], order: SlotOrder) -> None:
        """Assign slots to waiting sequences, and empty the slots of sequences that have left. Runs forever."""
        self._order = order
        while not self._to_restore.empty():  # after a rebuild, all answers are computed again
            self._to_restore.get_nowait()
        for sequence in list(self._running.values()):
            await self._start(sequence, stages)
        while True:
            await self._door.wait()
            self._door.clear()
            while self._to_empty:
                slot = self._to_empty.popleft().slot
                await order.forget(slot, 0)
                self._idle[slot] = IdleSlot(slot, 0)
            while admission := self._admission():
                await self._begin(admission, order, stages)
            if order.is_behind and not self._under_way:
                await order.settle()

    @property
    def starting_slots(self) -> frozenset[int]:
        """Return the slot whose sequence is being set up on the last run, or an empty set."""
        return frozenset() if self._starting_slot is None else frozenset((self._starting_slot,))

    def _admission(self) -> Admission | None:
        promised = sum(s.cells for s in self._running.values()) + sum(s.cells for s in self._to_empty)
        return admit(self._waiting, list(self._idle.values()), promised + self._copied_cells, self._limits)

    async def _begin(self, admission: Admission, order: SlotOrder, stages: Sequence[StageClient]) -> None:
        sequence = self._waiting.pop(admission.index)
        for earlier in self._waiting[: admission.index]:
            earlier.overtaken += 1
        idle = self._idle.pop(admission.slot)
        empty = SlotCheckpoints(rule=self._shape.keep)
        keep = sequence.reusable(admission.keep)
        held, sequence.kept = idle.n_cells, (idle.kept or empty).cut_back(keep)
        sequence.slot, sequence.entered, sequence.reused = admission.slot, keep, keep
        sequence.computed_to = keep
        sequence.since, sequence.timing.stages_before = self._number, self._figures()
        sequence.timing.begun_at = sequence.timing.begun_at or time.monotonic()
        sequence.under_way = 1  # keeps its slot from being released during the following awaits
        self._running[sequence.slot] = sequence
        name, slot = sequence.request.name, sequence.slot
        log.info("%s has slot %d", name or "an answer", slot, extra=log_extra(name, slot=slot))
        for slot in admission.evicted:
            self._idle[slot] = IdleSlot(slot, 0)
            await order.forget(slot, 0)
        if (kept := await self._kept_on_disk(sequence, keep, stages)) is not None:
            self._to_restore.put_nowait((sequence, kept))
            return
        if held > keep:
            await order.forget(sequence.slot, keep)
        await self._start(sequence, stages)

    # Prompts on disk

    async def restore_prompts(self, stages: Sequence[StageClient], order: SlotOrder) -> None:
        """Restore kept prompts for admitted sequences, one after the other. Runs forever.

        This may take most of a minute, and other sequences are admitted meanwhile.
        """
        while True:
            sequence, kept = await self._to_restore.get()
            began, keep = time.monotonic(), 0
            if not sequence.leaving:
                keep = await self._restore(sequence, kept, order, stages)
            sequence.timing.restored_s = time.monotonic() - began
            sequence.entered = sequence.reused = sequence.computed_to = keep
            await self._start(sequence, stages)

    async def _kept_on_disk(
        self, sequence: SequenceState, keep: int, stages: Sequence[StageClient]
    ) -> KeptPrompt | None:
        """Return a kept prompt that saves more than the `keep` positions already in the slot, or None."""
        request = sequence.request
        if self._prompts is None or not request.kept_for or request.pictures or sequence.answer_tokens:
            return None
        if any(stage.keeper is None for stage in stages):
            return None
        rows, recurrent = self._limits.chunk_rows, self._shape.recurrent
        kept = await self._prompts.find(request.kept_for, request.ids, rows, recurrent=recurrent)
        is_better = kept is not None and kept.usable >= keep + LEAST_GAIN
        return kept if is_better and kept is not None and kept.positions <= sequence.cells else None

    async def _restore(
        self, sequence: SequenceState, kept: KeptPrompt, order: SlotOrder, stages: Sequence[StageClient]
    ) -> int:
        """Restore a kept prompt in a slot of all stages. Return how many positions can be used, or 0 if a stage
        failed.
        """
        slot, empty = sequence.slot, SlotCheckpoints(rule=self._shape.keep)
        await order.forget(slot, 0)
        sequence.kept = empty
        if not await self._is_free(slot, order, stages):
            return 0
        restored = await asyncio.gather(*(stage.keeper.restore(slot, kept.key) for stage in stages if stage.keeper))
        usable = kept.usable if all(positions == kept.positions for positions in restored) else 0
        if not usable:
            log.info("a kept prompt of %d positions could not be restored: %s", kept.positions, restored)
            if self._prompts is not None:
                await self._prompts.remove(kept.key)
        if usable < kept.positions:
            await order.forget(slot, usable)
        sequence.kept = replace(empty, end=usable)
        return usable

    async def keep_prompts(self, stages: Sequence[StageClient], order: SlotOrder) -> None:
        """Save long prompts of idle slots to disk while nothing else needs to be computed. Runs forever."""
        if self._prompts is None:
            return
        while True:
            await self._unkept.wait()
            await asyncio.sleep(IDLE_S)
            if self._running or self._waiting or self._held:
                continue
            slot, (idle, scope) = self._to_keep.popitem()
            if not self._to_keep:
                self._unkept.clear()
            if self._idle.get(slot) is idle:
                await self._keep(idle, scope, self._prompts, stages, order)

    async def _keep(
        self, idle: IdleSlot, scope: str, prompts: ModelPrompts, stages: Sequence[StageClient], order: SlotOrder
    ) -> None:
        """Save the prompt of an idle slot to disk. The slot is not assigned to a request until the stages have
        copied it.
        """
        key = await prompts.new_key(scope, idle.ids)
        if key is None or self._idle.get(idle.slot) is not idle:
            return
        del self._idle[idle.slot]
        self._copied_cells, kept = idle.n_cells, False
        try:
            if idle.n_beyond:
                await order.forget(idle.slot, len(idle.ids))
                idle = replace(idle, n_beyond=0)
            if await self._is_free(idle.slot, order, stages):
                kept = await _all_keep(idle, key, stages)
        finally:
            self._copied_cells = 0
            if idle.slot not in self._running:
                self._idle.setdefault(idle.slot, idle)
            self._door.set()
        if kept:
            log.info("%d positions of slot %d are kept on disk", len(idle.ids), idle.slot)
            await prompts.add(scope, idle.ids)

    async def _is_free(self, slot: int, order: SlotOrder, stages: Sequence[StageClient]) -> bool:
        """Wait until no stage has work left for a slot. Return False if this takes too long."""
        ends = time.monotonic() + FREE_S
        while time.monotonic() < ends:
            if not self._under_way:  # an abandoned step never reaches the later runs
                await order.settle()
            if await order.catch_up() and not any(stage.is_using(slot) for stage in stages):
                return True
            await asyncio.sleep(FREE_LOOK_S)
        return False

    # Slots at their beginning and end

    async def _start(self, sequence: SequenceState, stages: Sequence[StageClient]) -> None:
        """Set up a sequence: its pictures on the first run, and its sampling on the last. Then allow its positions
        to be scheduled.
        """
        async with self._starting:
            await self._set_up(sequence, stages)

    async def _set_up(self, sequence: SequenceState, stages: Sequence[StageClient]) -> None:
        sequence.under_way, self._starting_slot = 1, sequence.slot
        try:
            await self._show(sequence, stages[0])
            arguments, grids = sequence.begin_arguments(), sequence.grids
            if grids or sequence.slot in self._laid_out:  # or the slot had others before
                for stage in stages[:-1]:
                    await stage.begin(*arguments, grids=grids)
            self._laid_out = self._laid_out | {sequence.slot} if grids else self._laid_out - {sequence.slot}
            await stages[-1].begin(*arguments, grids=grids)
        except BadInput as error:  # for example, a grammar that does not compile
            sequence.end(error)
        self._starting_slot = None
        sequence.under_way, sequence.begun = 0, True
        if self._drafter is not None and self._checks and sequence.most_guesses() and not sequence.request.pictures:
            sequence.guesses.draft = DraftText()
            self._drafts.set()
        if sequence.leaving:
            self._release(sequence)
        self.wake()

    async def _show(self, sequence: SequenceState, first: StageClient) -> None:
        """Send the picture rows that have not been computed yet to the first run. Raises BadInput."""
        begins = True
        for picture in sequence.request.pictures:
            if picture.end <= sequence.entered:
                continue
            n_bytes = len(picture.rows) // picture.n_rows
            for row in range(0, picture.n_rows, n_rows := max(1, SHOWN_BYTES // n_bytes)):
                part = picture.rows[row * n_bytes : (row + n_rows) * n_bytes]
                await first.show(sequence.slot, picture.first - row, part, begins=begins)
                begins = False

    def _release(self, sequence: SequenceState) -> None:
        """Free the slot of a sequence. Its KV cache is preserved if a later turn of the conversation may reuse it."""
        if self._running.get(sequence.slot) is not sequence:
            return
        del self._running[sequence.slot]
        if sequence.request.is_usual:
            self.usual.record(time.monotonic() - sequence.timing.begun_at)
        if sequence.conversation is None:
            self._to_empty.append(sequence)
        else:
            held = sequence.tokens[: sequence.entered]
            kept = sequence.kept if self._shape.recurrent else None
            n_beyond = max(0, sequence.computed_to - len(held))
            idle = IdleSlot(sequence.slot, self._number, sequence.conversation, held, kept, n_beyond)
            self._idle[sequence.slot] = idle
            request = sequence.request
            if self._prompts is not None and request.kept_for and not request.pictures:
                self._to_keep[sequence.slot] = idle, request.kept_for
                self._unkept.set()
        self._door.set()


def _draft_rank(drafter: Drafter, sequence: SequenceState) -> tuple[int, int]:
    """Return the rank of a sequence that waits for the draft model. The lowest comes first."""
    draft = sequence.guesses.draft
    n_orders = drafter.n_unread(sequence.slot, sequence.tokens) // READ_AT_ONCE
    return n_orders, len(draft.written) if draft else 0


async def _all_keep(idle: IdleSlot, key: bytes, stages: Sequence[StageClient]) -> bool:
    """Let all stages copy a slot, one after another. Return whether all did; stop at the first that refuses.

    Other machines come first, so that this machine does not write its copy in vain if one of them refuses.
    """
    for stage in sorted(stages, key=lambda each: not each.is_remote):
        if stage.keeper is None or not await stage.keeper.keep(idle.slot, len(idle.ids), key):
            return False
    return True


def _no_overlap(_chance: float) -> float:
    return 1.0


def _sampled(micro_batch: MicroBatch, step: Step) -> Iterator[tuple[MicroBatchPart, tuple[int, ...]]]:
    """Yield each part of a micro-batch for which tokens were sampled, with the tokens: one for each row to be
    sampled.
    """
    ids, first = struct.unpack(f"<{len(step.rows) // 4}i", step.rows), 0
    for part in micro_batch.parts:
        if part.due:
            last = first + 1 + len(part.guesses)
            yield part, ids[first:last]
            first = last


def _n_right(part: MicroBatchPart, ids: Sequence[int]) -> int:
    """Return how many of a part's guesses match the sampled tokens."""
    pairs = zip(part.guesses, ids, strict=False)
    return next((n for n, (guess, token) in enumerate(pairs) if guess != token), len(part.guesses))
