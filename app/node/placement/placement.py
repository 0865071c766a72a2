"""The lifecycle of a placement (loading, ready, recovering, lost, ended), run by one task."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from msgspec import structs

from app.api import plans, requests
from app.api.plans import Progress
from app.catalog.gguf.gguf_file import read_header
from app.catalog.gguf.projector_reader import projector_facts
from app.catalog.shelf import Entry
from app.core.errors import AppError, BadInput, DoesNotFit, Reason, StageLost
from app.core.ids import MachineId
from app.core.model import Projector
from app.core.planner.placement import Plan, PlannedStage
from app.core.planner.topologies import forecast_of
from app.core.reasons import said, sentence
from app.core.recovery import fault_table
from app.core.recovery.fault_table import Fault
from app.core.recovery.placement_lifecycle import (
    CauseFound,
    Closed,
    Ended,
    Event,
    Loading,
    Lost,
    NoticeReceived,
    Opened,
    PipelinesLost,
    Ready,
    Recovering,
    State,
    step,
)
from app.core.recovery.recovery import Loss, Notice
from app.core.scheduler.schedule import QueuedRequest
from app.inference.pipeline.completion import Completer
from app.inference.pipeline.pictures import Vision
from app.inference.pipeline.replica_set import Replica, ReplicaSet
from app.inference.pipeline.speed_measurement import StageFigures
from app.inference.worker.drafter import Drafter
from app.inference.worker.tokenizer import TextWorker
from app.inference.worker.vision import VisionWorker, unusable
from app.node.cancellation import run_until
from app.node.control.json_bodies import Report
from app.node.placement.drafts import AUTO, NONE, can_draft, draft_bytes, draft_candidates
from app.node.placement.failover import Replan, describe_move, describe_notice
from app.node.placement.placement_state import IdleTracker, PlacementState
from app.node.placement.replica_supervisor import PipelineOpener, ReplicaSupervisor
from app.node.placement.stages import MemoryClaims, PlacementServices
from app.node.planning.forecast_history import Outcome
from app.node.planning.planning import Sizes
from app.node.snapshot import describe_forecast, describe_replicas, describe_stage, explain
from backends.contract import Layers

log = logging.getLogger(__name__)


T = TypeVar("T")
# Within this time after the end of a placement, its lenders have freed its memory and reported it.
NEWS_SECONDS = 10.0
VISION_ALLOWANCE = 2  # factor by which a projector may exceed its estimated memory


class Placement:
    """A model that is placed on one or more machines. It exists from the start of loading until its memory is freed."""

    def __init__(
        self,
        entry: Entry,
        order: requests.LoadModel,
        plan: Plan,
        described: plans.Plan,
        sizes: Sizes,
        idle: IdleTracker,
        changed: Callable[[], None],
    ) -> None:
        self.state = PlacementState(entry, order, plan, described, idle, changed)
        self._sizes = sizes
        self.claims = MemoryClaims(self.state)
        self.completer: Completer | None = None
        self.outcome: Outcome | None = None  # outcome of the last answer that did not overlap with another
        self.ended = asyncio.Event()
        self.loaded_by_request = False  # loaded for a request, and not to restore a lost placement
        self._supervisor: ReplicaSupervisor | None = None
        self._leaving: set[MachineId] = set()  # machines whose layers others are taking over
        self._outcome: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._stop = asyncio.Event()
        self.failed: Loss | None = None  # the loss that kept the placement from becoming ready
        self.life: State = Loading()
        # machines that want their memory back as soon as no answer needs it
        self._wanted_back: dict[MachineId, StageLost] = {}
        self._progress: dict[str, Progress] = {}
        self._seconds, self._fetched_bytes = 0.0, 0
        self._vision: Vision | AppError | None = None  # or why it cannot look at pictures, although it has a projector

    @property
    def entry(self) -> Entry:
        """The model's shelf entry."""
        return self.state.entry

    @property
    def order(self) -> requests.LoadModel:
        """The request that loaded the model."""
        return self.state.order

    @property
    def _replicas(self) -> ReplicaSet | None:
        """The open pipelines, or None until the placement is ready. A model on a single machine or split over several
        machines has one pipeline."""
        return self.state.pipelines if self._supervisor is not None else None

    @property
    def plan(self) -> Plan:
        """The stages, their machines, and the facts that the plan is based on."""
        return self.state.plan

    @property
    def is_ready(self) -> bool:
        serves = self._replicas is None or self._replicas.lost is None
        return serves and isinstance(self.life, Ready | Recovering) and not self._stop.is_set()

    async def ready(self) -> None:
        """Wait until the placement can answer. If it fails to load, raise the error."""
        await asyncio.shield(self._outcome)

    @property
    def was_reclaimed(self) -> bool:
        """Return whether the placement was lost because an owner wanted the memory of a machine back."""
        why = self.life.why if isinstance(self.life, Ended) else None
        return why is not None and fault_table.classify(why).fault is Fault.OWNER

    def stop(self) -> None:
        """Make `run` end. `ended` is set once all memory has been freed."""
        self._stop.set()

    def uses(self, machine: MachineId) -> bool:
        """Return whether this machine holds or will hold layers of the model."""
        return any(stage.machine == machine for stage in self.plan.stages)

    def give_up(self, why: StageLost, machine: MachineId | None = None) -> None:
        """Treat a machine as lost. `why` is known before the network notices the loss, or is more precise."""
        match self.life:
            case Loading():
                self._fail(why)
                self.stop()
            case Ready() | Recovering() if self.state.pipelines.lost is None:
                self.state.pipelines.break_off(self._loss(machine, why))
            case _:
                self._step(CauseFound(why.reason, time.monotonic()))

    def _step(self, event: Event) -> None:
        self.life = step(self.life, event)

    def _loss(self, machine: MachineId | None, why: StageLost) -> Loss:
        names = {stage.machine: stage.name for stage in self.plan.stages}
        name = names.get(machine, "") if machine else ""
        return Loss(machine or "", name, why.reason, time.monotonic(), is_gone=True)

    def household_changed(self) -> None:
        """Note that the household has changed, so layers that did not fit before may fit now."""
        self.state.household_changed()

    @property
    def last_request_s(self) -> float:
        """The time of the last request for any model of the host (monotonic clock). During a request, this is the
        current time."""
        return self.state.last_request_s

    async def leave(self, machine: MachineId, why: StageLost) -> None:
        """Vacate a machine that wants its memory back. It keeps computing while other machines load its layers.

        Running answers then switch over between two tokens."""
        if self._replicas is None or self._supervisor is None or machine in self._leaving:
            return
        self._leaving.add(machine)
        # if no other machine can take the layers, they stay until the owner's time limit
        with suppress(AppError):
            failover = self._supervisor.only
            if failover is not None:  # otherwise the other replicas already serve
                say = partial(self._replicas.announce_leaving, self._loss(machine, why).name)
                await failover.hand_over(frozenset({machine}), say)
            if self.is_ready and self.uses(machine):  # also if the last answer has ended meanwhile
                self.state.is_moving = failover is not None
                await self._replicas.leave(replace(self._loss(machine, why), leaves=True))
        self._leaving.discard(machine)
        self._give_up_unused()

    def give_up_when_unused(self, machine: MachineId, why: StageLost | None) -> None:
        """Give up the placement once no answer needs it, because this machine wants its memory back and `leave`
        may fail. If `why` is None, the machine no longer wants its memory back.
        """
        if self.state.is_replicated:
            return  # its replica leaves at once, and the others continue
        self._wanted_back.pop(machine, None)
        if why is not None:
            self._wanted_back[machine] = why
        if not self.is_ready:
            self._give_up_unused()

    def _give_up_unused(self) -> None:
        """Give up the placement if no answer needs it and a machine still wants its memory back."""
        back = [machine for machine in self._wanted_back if self.uses(machine) and machine not in self._leaving]
        if back and not (self.n_requests or self.state.is_moving):
            self.give_up(self._wanted_back[back[0]])

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Count a request while the block runs. Requests that need to replace this model wait until the block ends."""
        try:
            with self.state.in_use():
                yield
        finally:
            if not self.n_requests:
                self._give_up_unused()

    @property
    def n_requests(self) -> int:
        """The number of requests in progress."""
        return self.state.n_requests

    def released_bytes(self) -> dict[MachineId, int]:
        """Return how many bytes each machine frees when the placement ends, not counting bytes that it already reports
        as free."""
        if isinstance(self.life, Ended) and time.monotonic() - self.life.at_s > NEWS_SECONDS:
            return {}
        return self.claims.released(self._present(), over=self.ended.is_set())

    def local_bytes(self, me: MachineId) -> tuple[int, int]:
        """Return how many bytes of this machine the placement uses or will use, and how many of these are not
        allocated yet."""
        return (0, 0) if self.ended.is_set() else self.claims.local_bytes(me)

    def _present(self) -> list[PlannedStage]:
        """Return the plan's stages, except those of lost replicas."""
        supervisor = self._supervisor if self.state.is_replicated else None
        return [stage for stage in self.plan.stages if not (supervisor and supervisor.is_lost(stage.machine))]

    def layers(self) -> dict[MachineId, tuple[Layers, ...]]:
        """Return the layers of this model on each machine. The result is empty until the placement is ready."""
        held: dict[MachineId, tuple[Layers, ...]] = {}
        for stage in self._present() if self.is_ready else ():
            held[stage.machine] = (*held.get(stage.machine, ()), stage.layers)
        return held

    @property
    def slots(self) -> int:
        """The number of answers that can be generated at the same time."""
        return self._sizes.slots * max(1, self._replicas.n_serving if self._replicas else 1)

    @property
    def context(self) -> int:
        """The maximum number of tokens of one answer, including its prompt."""
        return self._sizes.context

    def figures(self) -> tuple[StageFigures, ...]:
        """Return how much each stage has computed and transferred since it was loaded."""
        return self._replicas.figures() if self._replicas else ()

    @property
    def n_answering(self) -> int:
        """The number of answers that occupy a slot."""
        return self._replicas.n_running if self._replicas else 0

    def waiting_requests(self) -> tuple[QueuedRequest, ...]:
        """Return the requests waiting for a slot."""
        return self._replicas.line() if self._replicas and self.is_ready else ()

    @property
    def notice(self) -> Notice | None:
        """The latest notice of the recovery in progress, or None."""
        return self.life.notice if isinstance(self.life, Recovering) and self.is_ready else None

    def describe(self) -> plans.LoadedModel:
        """Return the API's description of the loaded model, with the machine names at the time of placement."""
        recovery = self.notice
        notice = recovery or (self._replicas.leaves if self._replicas and self.is_ready else None)
        draft = self.state.draft_reason
        since = [*self.claims.card_reasons(), *([draft] if draft else [])]  # learnt while the stages were opened
        present, known = self._present(), self.state.described.forecast
        if len(present) < len(self.plan.stages):
            still = forecast_of(self.plan, present, self.entry.model)
            known = describe_forecast(still) if still else None
        plan = structs.replace(
            self.state.described,
            forecast=known,
            number=self._sizes.number.name.lower(),
            stages=[describe_stage(stage, self.claims.card_of(stage)) for stage in self.plan.stages],
            reasons=[*self.state.described.reasons, *map(said, since)],
            why=[*self.state.described.why, *map(explain, since)],
        )
        reason = recovery.reason if recovery else self._lost_because()
        tools, thinks = self._template_abilities()
        blind = self._vision.reason if isinstance(self._vision, AppError) else None
        return plans.LoadedModel(
            **structs.asdict(plan),
            holders=list(dict.fromkeys(stage.machine for stage in present)),
            state=self._state_word(),
            stopping=self._stop.is_set() and not self.ended.is_set(),
            reason=sentence(reason),
            reason_facts=reason,
            recovery=describe_notice(notice) if notice else None,
            ahead=[describe_stage(stage) for stage in self.claims.standby()],
            progress=dict(self._progress),
            shape_ordered=self.order.shape,
            draft_ordered=self.order.draft,
            loaded_seconds=round(self._seconds, 3),
            fetched_bytes=self._fetched_bytes,
            last_answer=plans.AnswerOutcome(**structs.asdict(self.outcome)) if self.outcome else None,
            replicas=describe_replicas(self.replicas, self.plan),
            tools=tools,
            thinks=thinks,
            vision=self.sees,
            picture_tokens=self.picture_tokens,
            blind_reason=sentence(blind),
            blind_reason_facts=blind,
            answering=self.n_answering,
            moved=describe_move(self.state.moved) if self.state.moved else None,
            stays=self.state.stays,
        )

    @property
    def sees(self) -> bool:
        """Return whether the model can currently process pictures."""
        return isinstance(self._vision, Vision)

    @property
    def picture_tokens(self) -> int:
        """Return the maximum number of tokens that a picture uses, or 0 if it is unknown or the model cannot
        process pictures.
        """
        return self._vision.picture_tokens if isinstance(self._vision, Vision) else 0

    def _state_word(self) -> str:
        match self.life:
            case Recovering() if self.is_ready:
                return "recovering"
            case Ready() | Recovering():
                return "ready"
            case _:
                return "lost" if self._lost_because() else "loading"

    def _lost_because(self) -> Reason | None:
        return self.life.why if isinstance(self.life, Lost | Ended) else None

    def _template_abilities(self) -> tuple[bool | None, bool | None]:
        """Return whether the chat template supports tool calls and whether it supports thinking. Both are None if
        there is no template or it has not been read yet."""
        known = self.completer.vocabulary if self.completer else None
        if known is None or not known.has_template:
            return None, None
        return known.calls is not None, not known.reasoning.is_habit

    @property
    def replicas(self) -> Sequence[Replica]:
        """The replicas in plan order, or () for a model on a single machine or split over several."""
        return self._replicas.held if self._replicas and self.state.is_replicated else ()

    async def run(self, sources: PlacementServices, report: Report, replan: Replan) -> None:
        """Open the pipelines, verify them, serve until stopped or lost, and close them. Never raises."""

        def tell(progress: Progress) -> None:
            self._progress[str(progress.machine)] = progress
            self.state.changed()
            report(progress)

        try:
            async with AsyncExitStack() as stack:
                replicas, stage_sets = self.state.pipelines, self.claims.stage_sets
                opener = PipelineOpener(self.state, sources, self._sizes, tell, stage_sets)
                supervisor = ReplicaSupervisor(self.state, opener, replan, self._replicas_changed)
                group = await stack.enter_async_context(asyncio.TaskGroup())
                stack.callback(supervisor.end)
                stack.callback(self.claims.end)
                try:
                    start = time.monotonic()
                    text = await self._unless_stopped(self._opened(supervisor, group, stack, sources))
                    self._seconds = time.monotonic() - start
                    self._fetched_bytes = opener.fetched_bytes
                    self._begin(text, replicas, supervisor)
                    replicas.on_news = self._replicas_changed
                    self.state.changed()
                    await self._until_over(replicas)
                except AppError as error:  # caught here because the group would wrap it
                    self.failed = opener.failed
                    self._fail(error)
        except Exception:  # an unexpected error must not end the node
            log.exception("the placement of %s failed", self.entry.name)
            self._fail(StageLost("bug"))
        finally:
            self._fail(StageLost("load_stopped", model=self.entry.name))
            self.completer = None
            self._step(Closed(time.monotonic()))
            self.ended.set()
            self.state.changed()

    def _begin(self, text: TextWorker, replicas: ReplicaSet, supervisor: ReplicaSupervisor) -> None:
        """Start answering requests."""
        self.claims.is_loaded = True
        self._supervisor, self.completer = supervisor, Completer(text, replicas, self.entry.name, self._vision)
        self._progress.clear()
        self._step(Opened())
        self._step(NoticeReceived(replicas.news))
        self._outcome.set_result(None)

    async def _opened(
        self, supervisor: ReplicaSupervisor, group: asyncio.TaskGroup, stack: AsyncExitStack, sources: PlacementServices
    ) -> TextWorker:
        text = await TextWorker.open(self.entry.path)
        await stack.enter_async_context(text)
        await self._open_draft(sources, stack)
        await supervisor.begin(group)
        if self.entry.model.projector is not None:
            self._vision = await self._opened_vision(self.entry.model.projector, stack)
        return text

    async def _open_draft(self, sources: PlacementServices, stack: AsyncExitStack) -> None:
        """Load a draft model, if the user wants one.

        Raises AppError if the model that the user chose cannot be used.
        """
        state, sizes = self.state, self._sizes
        if (state.order.draft or NONE) == NONE:
            return
        if sizes.exact or not can_draft(self.entry.model):
            state.draft_reason = Reason("plan_draft_exact" if sizes.exact else "plan_draft_recurrent")
            return
        state.draft_reason = Reason("plan_draft_none")
        for entry in draft_candidates(sources.shelf, self.entry, state.order.draft or NONE):
            needed = draft_bytes(entry.model, sizes.context, sizes.slots)
            spare = sources.planner_inputs.spare_memory.speculative_bytes()
            try:
                if needed > spare:
                    raise DoesNotFit("draft_no_room", name=entry.name, needed_bytes=needed, free_bytes=spare)
                drafter = await Drafter.open(
                    Path(entry.path),
                    Path(self.entry.path),
                    n_vocab=self.entry.model.n_vocab,
                    context=sizes.context,
                    slots=sizes.slots,
                    threads=sizes.threads,
                    limit_bytes=needed,
                )
            except AppError as error:
                if state.order.draft != AUTO:
                    raise
                log.info("%s does not write ahead for %s: %s", entry.name, self.entry.name, error.reason)
                state.draft_reason = Reason("plan_draft_refused", {"name": entry.name, "why": error.reason})
                continue
            stack.push_async_callback(drafter.close)
            state.drafter, self.claims.draft_bytes = drafter, needed
            state.draft_reason = Reason("plan_draft", {"name": entry.name, "needed_bytes": needed})
            log.info("%s writes ahead for %s, in %d bytes", entry.name, self.entry.name, needed)
            return

    async def _opened_vision(self, projector: Projector, stack: AsyncExitStack) -> Vision | AppError:
        """Load the model's projector. If this fails, return the error instead of raising it.

        The model can still answer text without a projector. Questions with pictures raise the error.
        """
        name = self.entry.name
        if projector.reason is not None:
            return BadInput(projector.reason.code, **projector.reason.facts)
        try:
            # llama.cpp does not notice that a file has lost its end
            facts = projector_facts(await asyncio.to_thread(read_header, Path(projector.path)))
            limit_bytes = projector.memory_bytes * VISION_ALLOWANCE
            threads = self._sizes.threads.most
            worker = await VisionWorker.open(
                self.entry.path, projector.path, threads, limit_bytes, projector.most_rows, name
            )
        except AppError as error:
            log.warning("%s cannot look at pictures: %s", name, error.reason)
            return unusable(name, error)
        stack.push_async_callback(worker.close)
        return Vision(worker, self._sizes.step_rows, self._sizes.context, facts.picture_tokens)

    def _replicas_changed(self) -> None:
        self._progress.clear()
        if self._replicas is not None:
            self._step(NoticeReceived(self._replicas.news))
            if self._replicas.news is None:
                self.state.is_moving = False
        self.state.changed()

    async def _unless_stopped(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of `work`. Raises StageLost as soon as the load is stopped."""
        return await run_until(self._stop, work, StageLost("load_stopped", model=self.entry.name))

    async def _until_over(self, replicas: ReplicaSet) -> None:
        async with asyncio.TaskGroup() as group:
            stopped = group.create_task(self._stop.wait(), name="stop a placement")
            lost = group.create_task(replicas.wait_lost(), name="wait for the loss of a placement")
            await asyncio.wait({stopped, lost}, return_when=asyncio.FIRST_COMPLETED)
            if lost.done() and not stopped.done():
                self._step(PipelinesLost(lost.result().reason))
                why = self._lost_because()
                log.warning("the placement of %s is lost: %s", self.entry.name, why)
                self.state.changed()
            for task in (stopped, lost):
                task.cancel()

    def _fail(self, error: AppError) -> None:
        if not self._outcome.done():
            self._outcome.set_exception(error)
            self._outcome.exception()  # marks the exception as retrieved, because nothing may be waiting for it
