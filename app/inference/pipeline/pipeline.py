"""The pipeline: lanes that carry micro-batches through the stages of a placement. Requests in, tokens out."""

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
    BESIDE,
    Loss,
    Notice,
    beside_loss,
    ends_process_reason,
    is_final,
    may_be_model,
    reconnected_notice,
    reconnecting_notice,
)
from app.core.scheduler.routing import COLD_STEPS, ReplicaState, pace_of
from app.core.scheduler.schedule import Limits, QueuedRequest
from app.inference.pipeline.recovery_loop import Rebuilder, recovered
from app.inference.pipeline.result_checks import Samples
from app.inference.pipeline.scheduler import MicroBatch, PipelineConfig, Scheduler
from app.inference.pipeline.sequence import Finish, Request, Token, heard, replayed_s
from app.inference.pipeline.sequence import Sequence as Asking
from app.inference.pipeline.speculative_tokens import go_ahead
from app.inference.pipeline.speed_measurement import StageFigures
from app.inference.stages.stage_client import PriorityLock, SlotOrder, StageClient, Step
from app.inference.worker.worker_errors import slots_of
from backends.contract import keeps_apart

log = logging.getLogger(__name__)

WATCH_S = 0.25  # how often deadlines are checked
STOOD_STILL_S = 1.0  # a check this late means that this machine slept, not the others
HOLD_S = 2.0  # time for steps in flight to finish before stages are changed on purpose


def _share_turns(stages: Sequence[StageClient]) -> None:
    """Make runs on one machine take turns, with earlier runs first."""
    turns: dict[str, PriorityLock] = {}
    for rank, stage in enumerate(stages):
        if sum(other.machine == stage.machine for other in stages) > 1:
            stage.share(turns.setdefault(stage.machine, PriorityLock()), rank)


class Pipeline:
    """The stages of one placement in order: the host's first run, the lenders, the host's last run; or a whole model.

    Enter it with `async with`, then `generate` any number of answers concurrently. When a stage is lost,
    `rebuilder` places the model again and every answer continues from where it was. Without a rebuilder, or if
    recovery fails, all answers end with StageLost, and later requests are refused with the same error. The workers
    of the stages belong to the caller that created them.
    """

    def __init__(
        self,
        stages: Sequence[StageClient],
        shape: PipelineConfig,
        rebuilder: Rebuilder | None = None,
        samples: Samples | None = None,
    ) -> None:
        self._stages, self._shape, self._rebuilder = tuple(stages), shape, rebuilder
        self._samples = samples  # samples of the lenders' results, for verification
        self._work = Scheduler(shape, self._limits(), self.figures)
        self._heir: Callable[[Asking, Loss], bool] = lambda *_: False
        self._group = asyncio.TaskGroup()
        self._rounds: asyncio.Task[None] | None = None
        self._over = asyncio.Event()
        self._broken: asyncio.Future[Loss] | None = None  # set to the reason when the current round must end
        self.lost: StageLost | None = None  # why the pipeline ended, if it has
        # while a test request of our own runs: a loss that the model itself causes then is not recovered
        self.is_tried = False
        self.news: Notice | None = None  # during a recovery, the latest notice sent to all readers
        self._replays = False  # whether interrupted answers are being replayed
        self._doubted: dict[str, None] = {}  # machines that do not respond, in the order in which this was reported
        self.on_news: Callable[[], None] = lambda: None
        self.on_mended: Callable[[], None] = lambda: None  # called when other stages have taken over

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        self._rounds = self._group.create_task(self._walled("rounds", self._go_round), name="rounds")
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
        """Yield tokens, then one Finish. Closing the generator at any time cancels: use contextlib.aclosing.

        Notices in between report that a stage was lost and how it is being replaced. Raises BadInput, Busy or
        StageLost; tokens yielded before that remain valid.
        """
        return heard(partial(self.submit, request))

    def submit(self, request: Request) -> Asking:
        """Submit a request like `generate`, for a caller that reads it with sequence.heard. Raises immediately."""
        if self.lost is not None:
            raise self.lost
        asking = self._work.submit(request)
        if self.news is not None:
            asking.put(self.news)
        return asking

    def join(self, place: int, heir: Callable[[Asking, Loss], bool]) -> None:
        """Make this one of several pipelines of the same model. `heir` takes over sequences of a lost pipeline if it
        can."""
        self._work.place, self._heir = place, heir

    def adopt(self, asking: Asking) -> None:
        """Continue a sequence that another pipeline of the same model began."""
        self._work.adopt(asking)
        if self.news is not None:
            asking.put(self.news)

    async def wait_lost(self) -> StageLost:
        """Wait until the pipeline has ended, and return the reason."""
        await self._over.wait()
        assert self.lost is not None
        return self.lost

    def standing(self, request: Request) -> ReplicaState:
        """Return the load and speed of this pipeline as seen by a new request, for routing."""
        work, (ahead, held) = self._work, self._work.standing(request)
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
        """Return the requests waiting for a slot, in order."""
        return self._work.line()

    def figures(self) -> tuple[StageFigures, ...]:
        """Return the figures of each stage since the pipeline started."""
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
        """End the current round with this loss. Return False if these stages are already lost."""
        if self._broken is None or self._broken.done():
            return False
        self._broken.set_result(loss)
        return True

    def tell(self, notice: Notice) -> None:
        """Send a notice to all waiting readers while the stages still work."""
        self._work.tell(notice)

    async def leave(self, loss: Loss) -> None:
        """End the current round like `break_off`, but on purpose and between two tokens."""
        present = self._broken
        if present is None or present.done():
            return  # these stages are already gone, so a hold would affect the next ones
        await self._work.hold(HOLD_S)
        if not present.done():
            present.set_result(loss)

    async def _go_round(self) -> None:
        """Run one round for each set of stages, until a lost set cannot be replaced."""
        while self.lost is None:
            loss = await self._round()
            why, begins_anew = fault_table.loss_error(loss.why), False
            if self.is_tried and may_be_model(loss):
                if self._rebuilder is not None:
                    self._rebuilder.failed(loss)
                self._end(why)
                return
            loss, cause = self._work.judged(loss)
            if cause is not None:
                self._end_cause(cause, loss)
                loss = beside_loss(loss)
            elif is_final(loss, self._work.loss_of(loss.slots)):
                log.warning("slots %s end: %s", sorted(loss.slots) or "all", loss.why)
                self._work.end_slots(loss.slots, why)
                if self._rebuilder is not None:
                    self._rebuilder.failed(loss)
                begins_anew = loss.why.code in RUN_STAYS
                loss = beside_loss(loss)
            self._work.hand_over(loss, partial(self._inherited, loss))
            rebuilder = self._rebuilder
            if self._over.is_set() or rebuilder is None:
                self._end(why)
                return
            if not (begins_anew or self._needs_rebuild(rebuilder)):
                self._end(why)
                return
            await self._recover(loss, rebuilder, why if begins_anew else None)

    def _end_cause(self, cause: Asking, loss: Loss) -> None:
        """End only this answer: processes died each time they computed it, and no machine is at fault."""
        log.warning("slot %d ended a process again and is over: %s", cause.slot, loss.why)
        self._work.end_cause(cause, fault_table.loss_error(ends_process_reason(loss)))
        if self._rebuilder is not None:
            self._rebuilder.forgive(cause.interruption.deaths[:-1])

    def _inherited(self, loss: Loss, asking: Asking) -> bool:
        return not self._over.is_set() and self._heir(asking, loss)

    def _needs_rebuild(self, rebuilder: Rebuilder) -> bool:
        """Return whether a request is waiting for tokens, or soon will be."""
        return self._work.wanted or rebuilder.wanted()

    async def _round(self) -> Loss:
        """Serve with the current stages until one of them is lost."""
        self._broken = asyncio.get_running_loop().create_future()
        _share_turns(self._stages)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._walled(name, duty), name=name) for name, duty in self._duties()]
            try:
                return await self._broken
            finally:
                for task in tasks:
                    task.cancel()

    def _duties(self) -> list[tuple[str, Callable[[], Awaitable[None]]]]:
        duties: list[tuple[str, Callable[[], Awaitable[None]]]] = []
        for stage in self._stages:
            stage.on_lost = partial(self._lose, stage)
            stage.on_doubt = self._doubt
            stage.on_likely = self._work.heard_likely
            duties.append((f"listen to {stage.name}", stage.listen))
        duties += [(f"lane {n}", self._lane) for n in range(self._limits().micro_batches)]
        order = SlotOrder(self._stages)
        duties.append(("slots", lambda: self._work.attend(self._stages, order)))
        duties.append(("deadlines", self._watch))
        return duties

    async def _recover(self, loss: Loss, rebuilder: Rebuilder, ended: StageLost | None) -> None:
        """Replace the stages, and replay on them the text and random draws of every answer so far.

        ended: the error with which answers have just ended although all layers are intact. In that case, nothing is
        restarted unless a request is waiting.
        """
        log.warning("%s is lost; under way: %s. %s", loss.name, self._work.names, loss.why)
        self._doubted.clear()
        alone = self._work.is_tired and loss.why.code != BESIDE and await rebuilder.alone()
        self._work.interrupt(loss, alone=alone)
        if ended is None and not self._needs_rebuild(rebuilder):  # the answers were recovered too often
            self._end(fault_table.loss_error(loss.why))
            return
        for stage in self._stages:
            stage.fail(StageLost("pipeline_closed"))
            self._group.create_task(stage.close(), name=f"close {stage.name}")
        try:
            replay_s = replayed_s(self._work.interrupted, [stage.pace for stage in self._stages])
            self._stages = tuple(
                await recovered(loss, rebuilder, self._say, replay_s=replay_s, waits=not self.is_tried)
            )
        except StageLost as error:
            self._work.hand_over(loss, partial(self._inherited, loss))
            self._end(error)
            return
        self._work.go_on(self._limits())
        log.info("%d answers go on without what was lost", self._work.n_running)
        self.on_mended()
        self._replays = True
        self._settle_replayed()

    def _say(self, notice: Notice) -> None:
        """Send the notice to all waiting readers."""
        self.news = notice
        self._work.tell(notice)
        self.on_news()

    def _doubt(self, name: str, seconds: float | None) -> None:
        """Report that a stage is silent and its connection is being repaired or, with `seconds`, that it is back."""
        if seconds is None:
            self._doubted[name] = None
            self._say(reconnecting_notice(name))
            return
        self._doubted.pop(name, None)
        self._say(reconnected_notice(name, seconds))
        if self._doubted:  # the pipeline still waits for another machine
            self._say(reconnecting_notice(next(iter(self._doubted))))
        elif not self._replays:
            self._settled()

    def _settle_replayed(self) -> None:
        """Report that the pipeline is healthy again once the interrupted answers continue."""
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
        if stage.is_elsewhere:  # it can know nothing about other answers
            slots = (slots & worked_on) or worked_on
        if reason.code == "stage_input_odd":
            stage, reason = self._who_sent_odd(stage, reason)
        if stage.is_elsewhere:
            reason = _as_its_word(reason, stage.machine)
        is_gone = fault_table.classify(reason).retry is Retry.ELSEWHERE
        self.break_off(Loss(stage.key, stage.machine, reason, now, stage.silent_s, is_gone, slots=slots))

    def _who_sent_odd(self, stage: StageClient, reason: Reason) -> tuple[StageClient, Reason]:
        """Return the stage to blame for unusable input that a stage reported, and the reason."""
        if stage.is_elsewhere and stage.was_given_sound_rows():
            return stage, Reason("stage_garbled", {"machine": stage.machine, "cause": Reason("good_numbers_refused")})
        if (sender := self._before(stage)) is not None:
            return sender, Reason("stage_sent_odd", {"machine": sender.machine})
        return stage, reason

    def _before(self, stage: StageClient) -> StageClient | None:
        """Return the stage on another machine that computed this stage's input, or None if this machine did."""
        place = self._stages.index(stage) if stage in self._stages else 0
        before = self._stages[place - 1] if place else None
        return before if before is not None and before.is_elsewhere else None

    def _working_on(self, stage: StageClient) -> frozenset[int]:
        """Return the slots of the step being computed there. Only one run of a machine computes at a time."""
        runs = [other for other in self._stages if other.machine == stage.machine]
        computing = _computing([run for run in runs if run.lost is None])
        slots = stage.working_on or frozenset().union(*(run.working_on for run in computing))
        samples = stage.machine == self._stages[-1].machine
        return slots or (self._work.beginning if samples else frozenset())

    def _limits(self) -> Limits:
        shape, machines = self._shape, len({stage.machine for stage in self._stages})
        sizes = (shape.slots, shape.kv_cells, shape.context)
        apart = shape.recurrent or keeps_apart(*sizes)  # see backends/llamacpp/stage.py
        return Limits(*sizes, machines, shape.chunk_rows, apart)

    async def _lane(self) -> None:
        """Carry one micro-batch after another through the stages."""
        while True:
            carried = await self._work.next_batch()
            arrived = await self._arrived(carried)
            if arrived is None:
                self._work.drop(carried)
                continue
            step = arrived
            while (following := self._following(carried)) is not None:
                last, first = self._stages[-1], self._stages[0]
                sampled, after = await last.forward_into(step, first, following.step)
                self._work.deliver(carried, sampled, followed=True)
                self._settle_replayed()
                if not following.goes_on:
                    await self._work.take_back(following, first)
                    break
                carried, step = following, await self._through(self._stages[1:-1], after)
            else:
                self._work.deliver(carried, await self._sampled(step))
                self._settle_replayed()
                await self._work.take_back_guesses(carried, self._stages)

    async def _sampled(self, step: Step) -> Step:
        """Return the tokens sampled by the last run. Raises StageLost if another machine returned invalid ones."""
        last = self._stages[-1]
        tokens = await last.forward(step)
        if last.is_elsewhere and not self._work.are_tokens(tokens):
            why = StageLost("stage_garbled", machine=last.machine, cause=Reason("token_invalid"))
            last.give_up(why)
            raise why
        return tokens

    async def _arrived(self, carried: MicroBatch) -> Step | None:
        """Return a micro-batch as input for the last run, or None if it was computed for a wrong guess."""
        stages = self._stages[:-1]
        if carried.guess is not None:
            return await go_ahead(carried.guess, carried.step, stages)
        return await self._through(stages, carried.step)

    def _following(self, carried: MicroBatch) -> MicroBatch | None:
        """Return the next micro-batch for the first run, if one worker can compute it right after this one on the last
        run."""
        return self._work.following(carried) if len(self._stages) > 1 else None

    async def _through(self, stages: Sequence[StageClient], step: Step) -> Step:
        for stage in stages:
            after = await stage.forward(step)
            if step.prefill and self._samples is not None:
                self._samples.look(stage.run, step, after)
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
                    stage.stood_still(now)
            for stage in _computing(self._stages):
                stage.check(now)
            self._work.end_unread(now)
            self._settle_replayed()  # needed here in case no reader is left

    async def _walled(self, name: str, duty: Callable[[], Awaitable[None]]) -> None:
        """Run a task so that an error ends the pipeline but not the node."""
        try:
            await duty()
        except StageLost as error:
            if not any(stage.lost for stage in self._stages):  # otherwise that stage has already reported its loss
                self.break_off(Loss("", "", error.reason, time.monotonic()))
        except Exception:
            log.exception("a bug in %s", name)
            self._end(StageLost("pipeline_fault"))

    def end(self, why: StageLost) -> None:
        """End all answers with this error, and refuse later ones."""
        self._end(why)

    def _end(self, error: StageLost) -> None:
        if self.lost is not None:
            return
        self.lost = error
        self._work.fail(error)
        self.break_off(Loss("", "", error.reason, time.monotonic()))
        self._over.set()


def _as_its_word(reason: Reason, machine: str) -> Reason:
    """Return the reason as that machine's own claim, so that it does not count against other machines."""
    fault = fault_table.classify(reason)
    if fault.retry is not Retry.NEVER or fault.fault not in OF_ONE_MACHINE:
        return reason
    return Reason("lender_said", {"machine": machine, "what": reason})


def _computing(stages: Sequence[StageClient]) -> list[StageClient]:
    """Return, for each busy machine, the stage whose turn it is."""
    oldest: dict[str, StageClient] = {}
    for stage in stages:
        other = oldest.get(stage.machine)
        since, before = stage.waits_since, other.waits_since if other else None
        if since is not None and (before is None or since < before):
            oldest[stage.machine] = stage
    return list(oldest.values())
