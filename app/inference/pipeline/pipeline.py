"""The pipeline, which sends micro-batches through the stages of a placement and recovers when a stage is lost."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from functools import partial
from types import TracebackType
from typing import Self

from app.core.errors import Reason, StageLost
from app.core.recovery import fault_table
from app.core.recovery.fault_table import OF_ONE_MACHINE, RUN_STAYS, Retry
from app.core.recovery.recovery import (
    BYSTANDER,
    Loss,
    Notice,
    bystander_loss,
    ends_process_reason,
    is_final,
    may_be_model,
    reconnected_notice,
    reconnecting_notice,
)
from app.core.scheduler.routing import COLD_STEPS, ReplicaState, pace_of
from app.core.scheduler.schedule import Limits, QueuedRequest
from app.inference.pipeline.kept_prompts import ModelPrompts
from app.inference.pipeline.recovery_loop import Rebuilder, recover
from app.inference.pipeline.result_checks import Samples
from app.inference.pipeline.scheduler import MicroBatch, PipelineConfig, Scheduler
from app.inference.pipeline.sequence import Finish, Request, SequenceState, Token, stream_items, total_replay_s
from app.inference.pipeline.speculative_tokens import compute_ahead
from app.inference.pipeline.speed_measurement import StageFigures
from app.inference.stages.stage_client import PriorityLock, SlotOrder, StageClient, Step
from app.inference.worker.drafter import Drafter
from app.inference.worker.worker_errors import slots_of
from backends.contract import can_separate_slots

log = logging.getLogger(__name__)

WATCH_S = 0.25  # how often deadlines are checked
STOOD_STILL_S = 1.0  # if a check is this late, this machine was suspended, rather than the others being silent
HOLD_S = 2.0  # time limit for steps in flight before stages are changed on purpose


def _share_turns(stages: Sequence[StageClient]) -> None:
    """Make runs on the same machine take turns. Earlier runs have lower ranks."""
    turns: dict[str, PriorityLock] = {}
    for rank, stage in enumerate(stages):
        if sum(other.machine == stage.machine for other in stages) > 1:
            stage.share(turns.setdefault(stage.machine, PriorityLock()), rank)


class Pipeline:
    """A pipeline of the stages of one placement.

    It consists of the host's first run, the lenders' runs, and the host's last run, or of a single stage with the whole
    model. Enter it with `async with`, then `generate` any number of answers concurrently. When a stage is lost,
    `rebuilder` places the model again and every answer continues from its last token. Without a rebuilder, or if
    recovery fails, all answers end with StageLost, and later requests are refused with the same error. The stages'
    workers belong to the caller that created them.
    """

    def __init__(
        self,
        stages: Sequence[StageClient],
        shape: PipelineConfig,
        rebuilder: Rebuilder | None = None,
        samples: Samples | None = None,
        prompts: ModelPrompts | None = None,
    ) -> None:
        self._stages, self._shape, self._rebuilder = tuple(stages), shape, rebuilder
        self._samples = samples  # for verifying results of lenders
        self._work = Scheduler(shape, self._limits(), self.figures, prompts)
        self._heir: Callable[[SequenceState, Loss], bool] = lambda *_: False
        self._group = asyncio.TaskGroup()
        self._rounds: asyncio.Task[None] | None = None
        self._over = asyncio.Event()
        self._broken: asyncio.Future[Loss] | None = None  # result: the loss that ends the current round
        self.lost: StageLost | None = None  # why the pipeline has ended
        # During a test request of our own, a loss that the model itself causes is not recovered.
        self.is_trial = False
        self.news: Notice | None = None  # the latest notice of a recovery in progress
        self._replays = False  # whether interrupted answers are being replayed
        self._silent: dict[str, None] = {}  # machines that do not respond, in the order of their reports
        self.on_news: Callable[[], None] = lambda: None
        self.on_recovered: Callable[[], None] = lambda: None  # called when new stages have taken over

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        self._rounds = self._group.create_task(self._guarded("rounds", self._run_rounds), name="rounds")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(StageLost("pipeline_closed"))
        if self._rounds is not None:
            self._rounds.cancel()
        for stage in self._stages:
            await stage.close()
        await self._group.__aexit__(None, None, None)

    def generate(self, request: Request) -> AsyncGenerator[Token | Notice | Finish, None]:
        """Yield tokens, then one Finish. Closing the generator cancels the request: use contextlib.aclosing.

        Notices may come in between. They report that a stage was lost and how it is being replaced. Raises BadInput,
        Busy or StageLost. Tokens yielded before an error remain valid.
        """
        return stream_items(partial(self.submit, request))

    def submit(self, request: Request) -> SequenceState:
        """Submit a request like `generate`, for a caller that reads its items with `stream_items`.

        Errors are raised immediately.
        """
        if self.lost is not None:
            raise self.lost
        sequence = self._work.submit(request)
        if self.news is not None:
            sequence.put(self.news)
        return sequence

    def use_draft(self, drafter: Drafter) -> None:
        """Use a draft model to guess the tokens of all answers that begin from now on."""
        self._work.use_draft(drafter)

    def join(self, place: int, heir: Callable[[SequenceState, Loss], bool]) -> None:
        """Make this pipeline one of several for the same model.

        heir: tries to take over a sequence if this pipeline is lost.
        """
        self._work.place, self._heir = place, heir

    def adopt(self, sequence: SequenceState) -> None:
        """Continue a sequence that another pipeline of the same model began."""
        self._work.adopt(sequence)
        if self.news is not None:
            sequence.put(self.news)

    async def wait_lost(self) -> StageLost:
        """Wait until the pipeline has ended, and return the reason."""
        await self._over.wait()
        assert self.lost is not None
        return self.lost

    def state_for(self, request: Request) -> ReplicaState:
        """Return the load and speed of this pipeline with regard to a new request, for routing."""
        work, (ahead, held) = self._work, self._work.rows_ahead(request)
        serves = self.lost is None and self.news is None
        return ReplicaState(
            pace_of([stage.pace for stage in self._stages]),
            serves,
            work.n_running,
            work.n_waiting,
            self._shape.slots,
            ahead,
            held,
            work.usual.seconds,
        )

    @property
    def n_running(self) -> int:
        return self._work.n_running

    @property
    def n_waiting(self) -> int:
        return self._work.n_waiting

    def line(self) -> tuple[QueuedRequest, ...]:
        """Return the waiting requests, in order."""
        return self._work.line()

    def figures(self) -> tuple[StageFigures, ...]:
        """Return the statistics of each stage since the pipeline started."""
        return tuple(stage.figures() for stage in self._stages)

    def steps_s(self) -> dict[str, float]:
        """Return the seconds per token of each machine whose speed is known, by machine id."""
        known = [(stage.key, stage.pace) for stage in self._stages]
        seconds: dict[str, float] = {}
        for key, pace in known:
            if pace is not None and pace.seen >= COLD_STEPS:
                seconds[key] = seconds.get(key, 0.0) + pace.step_s
        return seconds

    def break_off(self, loss: Loss) -> bool:
        """End the current round with this loss. Return False if the round has already ended."""
        if self._broken is None or self._broken.done():
            return False
        self._broken.set_result(loss)
        return True

    def tell(self, notice: Notice) -> None:
        """Send a notice to all waiting clients while the stages still work."""
        self._work.tell(notice)

    async def leave(self, loss: Loss) -> None:
        """End the current round deliberately, like `break_off`, but between two tokens."""
        present = self._broken
        if present is None or present.done():
            return  # a hold would affect the next stages, since these are already gone
        await self._work.hold(HOLD_S)
        if not present.done():
            present.set_result(loss)

    async def _run_rounds(self) -> None:
        """Serve one round with each set of stages, until a lost set cannot be replaced."""
        while self.lost is None:
            loss = await self._round()
            why, begins_anew = fault_table.loss_error(loss.why), False
            if self.is_trial and may_be_model(loss):
                if self._rebuilder is not None:
                    self._rebuilder.failed(loss)
                self._end(why)
                return
            loss, cause = self._work.attribute_loss(loss)
            if cause is not None:
                self._end_cause(cause, loss)
                loss = bystander_loss(loss)
            elif is_final(loss, self._work.loss_of(loss.slots)):
                log.warning("ending the answers in slots %s: %s", sorted(loss.slots) or "all", loss.why)
                self._work.end_slots(loss.slots, why)
                if self._rebuilder is not None:
                    self._rebuilder.failed(loss)
                begins_anew = loss.why.code in RUN_STAYS
                loss = bystander_loss(loss)
            self._work.hand_over(loss, partial(self._inherited, loss))
            rebuilder = self._rebuilder
            if self._over.is_set() or rebuilder is None:
                self._end(why)
                return
            if not (begins_anew or self._needs_rebuild(rebuilder)):
                self._end(why)
                return
            await self._recover(loss, rebuilder, why if begins_anew else None)

    def _end_cause(self, cause: SequenceState, loss: Loss) -> None:
        """End the answer that caused the loss, because processes died each time they computed it."""
        log.warning("ending the answer in slot %d, which has repeatedly ended a process: %s", cause.slot, loss.why)
        self._work.end_cause(cause, fault_table.loss_error(ends_process_reason(loss)))
        if self._rebuilder is not None:
            self._rebuilder.forgive(cause.interruption.deaths[:-1])

    def _inherited(self, loss: Loss, sequence: SequenceState) -> bool:
        return not self._over.is_set() and self._heir(sequence, loss)

    def _needs_rebuild(self, rebuilder: Rebuilder) -> bool:
        """Return whether requests are or soon will be waiting for this pipeline."""
        return self._work.has_waiting_clients or rebuilder.is_needed()

    async def _round(self) -> Loss:
        """Serve requests with the current stages until one of them is lost. Return the loss."""
        self._broken = asyncio.get_running_loop().create_future()
        _share_turns(self._stages)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._guarded(name, duty), name=name) for name, duty in self._duties()]
            try:
                return await self._broken
            finally:
                for task in tasks:
                    task.cancel()

    def _duties(self) -> list[tuple[str, Callable[[], Awaitable[None]]]]:
        duties: list[tuple[str, Callable[[], Awaitable[None]]]] = []
        for stage in self._stages:
            stage.on_lost = partial(self._lose, stage)
            stage.on_silence = self._report_silence
            stage.on_likely = self._work.store_logprobs
            duties.append((f"listen to {stage.name}", stage.listen))
        duties += [(f"lane {n}", self._lane) for n in range(self._limits().micro_batches)]
        order = SlotOrder(self._stages)
        duties.append(("slots", lambda: self._work.attend(self._stages, order)))
        duties.append(("deadlines", self._watch))
        duties.append(("drafts", self._work.write_drafts))
        duties.append(("restore prompts", lambda: self._work.restore_prompts(self._stages, order)))
        duties.append(("keep prompts", lambda: self._work.keep_prompts(self._stages, order)))
        return duties

    async def _recover(self, loss: Loss, rebuilder: Rebuilder, ended: StageLost | None) -> None:
        """Replace the stages, and replay each answer's text and random draws on the new stages.

        ended: the error with which some answers have just ended although no layers were lost, or None. If it is set,
            the stages are replaced only if other requests are waiting.
        """
        log.warning("%s is lost; requests in progress: %s. %s", loss.name, self._work.names, loss.why)
        self._silent.clear()
        alone = self._work.is_recovery_exhausted and loss.why.code != BYSTANDER and await rebuilder.can_host_alone()
        self._work.interrupt(loss, alone=alone)
        # all answers have ended, because they were recovered too often
        if ended is None and not self._needs_rebuild(rebuilder):
            self._end(fault_table.loss_error(loss.why))
            return
        for stage in self._stages:
            stage.fail(StageLost("pipeline_closed"))
            self._group.create_task(stage.close(), name=f"close {stage.name}")
        try:
            replay_s = total_replay_s(self._work.interrupted, [stage.pace for stage in self._stages])
            self._stages = tuple(
                await recover(loss, rebuilder, self._notify, replay_s=replay_s, waits=not self.is_trial)
            )
        except StageLost as error:
            self._work.hand_over(loss, partial(self._inherited, loss))
            self._end(error)
            return
        self._work.resume(self._limits())
        log.info("%d answers continue on the new stages", self._work.n_running)
        self.on_recovered()
        self._replays = True
        self._settle_replayed()

    def _notify(self, notice: Notice) -> None:
        """Send a notice to all waiting clients, and show it until the pipeline is healthy again."""
        self.news = notice
        self._work.tell(notice)
        self.on_news()

    def _report_silence(self, name: str, seconds: float | None) -> None:
        """Report that a machine is silent and being reconnected or, if `seconds` is given, that it responds again."""
        if seconds is None:
            self._silent[name] = None
            self._notify(reconnecting_notice(name))
            return
        self._silent.pop(name, None)
        self._notify(reconnected_notice(name, seconds))
        if self._silent:  # the pipeline still waits for another machine
            self._notify(reconnecting_notice(next(iter(self._silent))))
        elif not self._replays:
            self._settled()

    def _settle_replayed(self) -> None:
        """Once all interrupted answers have continued, report that the pipeline is healthy again."""
        if self._replays and not self._work.interrupted:
            self._replays = False
            self._settled()

    def _settled(self) -> None:
        if self.news is not None:
            self.news = None
            self.on_news()

    def _lose(self, stage: StageClient, why: StageLost) -> None:
        now, reason = time.monotonic(), why.reason
        worked_on = self._working_on(stage)
        slots = slots_of(reason) or worked_on
        if stage.is_remote:  # another machine cannot know about other answers
            slots = (slots & worked_on) or worked_on
        if reason.code == "stage_input_odd":
            stage, reason = self._who_sent_odd(stage, reason)
        if stage.is_remote:
            reason = _as_its_word(reason, stage.machine)
        is_gone = fault_table.classify(reason).retry is Retry.ELSEWHERE
        self.break_off(Loss(stage.key, stage.machine, reason, now, stage.silent_s, is_gone, slots=slots))

    def _who_sent_odd(self, stage: StageClient, reason: Reason) -> tuple[StageClient, Reason]:
        """Return the stage to blame for unusable input that this stage has reported, and the reason."""
        if stage.is_remote and stage.has_usable_input():
            return stage, Reason("stage_garbled", {"machine": stage.machine, "cause": Reason("good_numbers_refused")})
        if (sender := self._before(stage)) is not None:
            return sender, Reason("stage_sent_odd", {"machine": sender.machine})
        return stage, reason

    def _before(self, stage: StageClient) -> StageClient | None:
        """Return the stage on another machine that computed this stage's input, or None if this machine computed it."""
        place = self._stages.index(stage) if stage in self._stages else 0
        before = self._stages[place - 1] if place else None
        return before if before is not None and before.is_remote else None

    def _working_on(self, stage: StageClient) -> frozenset[int]:
        """Return the slots of the step that is being computed on the stage's machine.

        Only one run of a machine computes at a time.
        """
        runs = [other for other in self._stages if other.machine == stage.machine]
        computing = _computing([run for run in runs if run.lost is None])
        slots = stage.slots_in_progress or frozenset().union(*(run.slots_in_progress for run in computing))
        samples = stage.machine == self._stages[-1].machine
        return slots or (self._work.starting_slots if samples else frozenset())

    def _limits(self) -> Limits:
        shape, machines = self._shape, len({stage.machine for stage in self._stages})
        sizes = (shape.slots, shape.kv_cells, shape.context)
        apart = shape.recurrent or can_separate_slots(*sizes)  # see backends/llamacpp/stage.py
        return Limits(*sizes, machines, shape.chunk_rows, apart)

    async def _lane(self) -> None:
        """Send micro-batches through the stages, one after another."""
        while True:
            micro_batch = await self._work.next_batch()
            arrived = await self._arrived(micro_batch)
            if arrived is None:
                self._work.drop(micro_batch)
                continue
            step = arrived
            while (following := self._following(micro_batch)) is not None:
                last, first = self._stages[-1], self._stages[0]
                sampled, after = await last.forward_into(step, first, following.step)
                self._work.deliver(micro_batch, sampled, followed=True)
                self._settle_replayed()
                if not following.continues:
                    self._work.abandon(following)
                    break
                micro_batch, step = following, await self._through(self._stages[1:-1], after)
            else:
                self._work.deliver(micro_batch, await self._sampled(micro_batch, step))
                self._settle_replayed()

    async def _sampled(self, micro_batch: MicroBatch, step: Step) -> Step:
        """Return the tokens sampled by the last run. Raises StageLost if another machine returned invalid tokens."""
        last = self._stages[-1]
        tokens = await last.forward(step)
        if last.is_remote and not self._work.are_tokens(micro_batch, tokens):
            why = StageLost("stage_garbled", machine=last.machine, cause=Reason("token_invalid"))
            last.give_up(why)
            raise why
        return tokens

    async def _arrived(self, micro_batch: MicroBatch) -> Step | None:
        """Compute a micro-batch on all runs but the last. Return None if it was based on a wrong guess."""
        stages = self._stages[:-1]
        if micro_batch.guess is not None:
            return await compute_ahead(micro_batch.guess, micro_batch.step, stages)
        return await self._through(stages, micro_batch.step)

    def _following(self, micro_batch: MicroBatch) -> MicroBatch | None:
        """Return the next micro-batch if the first run can compute it right after the last run computes this one.

        Otherwise, return None.
        """
        return self._work.following(micro_batch) if len(self._stages) > 1 else None

    async def _through(self, stages: Sequence[StageClient], step: Step) -> Step:
        for stage in stages:
            after = await stage.forward(step)
            if step.prefill and not step.sees_all and self._samples is not None:
                self._samples.offer(stage.run, step, after)
            step = after
        return step

    async def _watch(self) -> None:
        now = time.monotonic()
        while True:
            before = now
            await asyncio.sleep(WATCH_S)
            now = time.monotonic()
            if now - before > WATCH_S + STOOD_STILL_S:
                for stage in self._stages:
                    stage.extend_deadlines(now)
            for stage in _computing(self._stages):
                stage.check(now)
            self._work.end_unread(now)
            self._settle_replayed()  # in case no client reads any more

    async def _guarded(self, name: str, duty: Callable[[], Awaitable[None]]) -> None:
        """Run a task so that an error in it ends the pipeline but not the node."""
        try:
            await duty()
        except StageLost as error:
            if not any(stage.lost for stage in self._stages):  # otherwise the stage has already reported its loss
                self.break_off(Loss("", "", error.reason, time.monotonic()))
        except Exception:
            log.exception("unexpected error in task %s", name)
            self._end(StageLost("pipeline_fault"))

    def end(self, why: StageLost) -> None:
        """End all answers with this error, and refuse later requests."""
        self._end(why)

    def _end(self, error: StageLost) -> None:
        if self.lost is not None:
            return
        self.lost = error
        self._work.fail(error)
        self.break_off(Loss("", "", error.reason, time.monotonic()))
        self._over.set()


def _as_its_word(reason: Reason, machine: str) -> Reason:
    """Return the reason as a claim of the machine that reported it.

    Such a reason does not count against other machines.
    """
    fault = fault_table.classify(reason)
    if fault.retry is not Retry.NEVER or fault.fault not in OF_ONE_MACHINE:
        return reason
    return Reason("lender_said", {"machine": machine, "what": reason})


def _computing(stages: Sequence[StageClient]) -> list[StageClient]:
    """Return the stage that is computing on each busy machine, which is the one with the oldest unanswered frame."""
    oldest: dict[str, StageClient] = {}
    for stage in stages:
        other = oldest.get(stage.machine)
        since, before = stage.waits_since, other.waits_since if other else None
        if since is not None and (before is None or since < before):
            oldest[stage.machine] = stage
    return list(oldest.values())
