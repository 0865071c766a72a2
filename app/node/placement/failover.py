"""Failover: moves a pipeline to other machines after a loss, through the hooks of
app/inference/pipeline/recovery_loop.py."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Protocol

from app.api import plans
from app.core.errors import AppError, DoesNotFit, Reason, Refused, Unreachable
from app.core.ids import MachineId
from app.core.planner.placement import Plan, PlannedStage
from app.core.planner.placement_change import move_duration_s, soonest_plan
from app.core.reasons import said, sentence
from app.core.recovery import recovery
from app.core.recovery.recovery import Loss, Notice, RecentFailures
from app.inference.stages.stage_client import StageClient
from app.node.placement.placement_state import Move, PlacementState
from app.node.placement.stages import StageSet
from app.node.verification.verifier import Verifier
from backends.contract import Layers

log = logging.getLogger(__name__)

Option = tuple[Plan, plans.Plan]  # a plan and its description


class Replan(Protocol):
    """Returns possible plans that avoid these machines. Raises AppError.

    The planner's choice comes first. The other plans keep the current runs, or the runs of the plan `like`.
    """

    def __call__(self, without: frozenset[MachineId], like: Plan | None = None, /) -> Awaitable[Sequence[Option]]: ...


LEAST_PAUSE_SECONDS = 0.5  # pause between two attempts to plan while nothing fits
# longest such pause, because memory freed by this machine itself is not reported as a change
LONGEST_PAUSE_SECONDS = 5.0
MOST_LOOKS = 4  # attempts to find a placement on this machine alone
USUAL_BYTES_PER_SECOND = 200e6  # assumed speed of a disk until layers have been loaded


class Failover:
    """The failover of one pipeline, whose index in the placement is `place`."""

    def __init__(
        self,
        stage_set: StageSet,
        replan: Replan,
        state: PlacementState,
        place: int,
        failures: RecentFailures | None = None,
    ) -> None:
        """Create the failover.

        replan: returns the possible plans without the given machines.
        failures: counts failures by machine and is shared by all models of a host.
        """
        self.stage_set, self._replan, self._state, self._place = stage_set, replan, state, place
        self.failures = failures or RecentFailures(time.monotonic)
        self._chosen: Option | None = None
        self._intended: Option | None = None  # the placement to use at the next replan
        self._is_recorded = False  # whether the move to the intended or chosen plan has already been recorded
        self.verifier: Verifier | None = None  # checks the lenders' results
        self.last_failed: Loss | None = None
        self.bytes_per_second = USUAL_BYTES_PER_SECOND  # speed at which layers were last loaded

    def is_needed(self) -> bool:
        """Return whether a lost pipeline must recover.

        The only pipeline must recover if it has requests or is moving. If there are several, the others take over the
        requests of the lost one, so it must recover only if a move is pending.
        """
        if self._state.is_replicated:
            return self.intends
        return self._state.n_requests > 0 or self._state.is_moving

    async def plan(self, without: frozenset[str]) -> recovery.Planned:
        self._state.news.clear()
        async with self.stage_set.reservation.choosing:
            try:
                chosen, _ = self._chosen = await self._choose(frozenset(map(MachineId, without)))
            except BaseException:
                self.stage_set.claimed = None  # nothing fits, so other models may use the memory
                raise
            self.stage_set.claimed = chosen
        names = dict.fromkeys(stage.name for stage in self.stage_set.stages_to_load(chosen))
        replay_s = chosen.forecast.ttft_s if chosen.forecast else 0.0
        return recovery.Planned(tuple(names), self._moving_s(chosen), replay_s)

    async def _choose(self, away: frozenset[MachineId]) -> Option:
        intended, self._intended = self._intended, None
        if intended is not None and not any(stage.machine in away for stage in intended[0].stages):
            return intended
        if self._is_recorded and intended is not None:
            self._state.forget_move(self._place)  # it does not take place
        self._is_recorded = False
        return await self._soonest(away)

    def failed(self, loss: Loss) -> None:
        self.last_failed = loss
        self.failures.note(loss)

    def forgive(self, machines: Sequence[str]) -> None:
        self.failures.forgive(machines)

    def left_out(self) -> frozenset[MachineId]:
        """Return the machines that failed repeatedly within the last few minutes."""
        return frozenset(map(MachineId, self.failures.left_out()))

    async def can_host_alone(self) -> bool:
        excluded = frozenset[MachineId]()
        for _ in range(MOST_LOOKS):
            try:
                options = await self._replan(excluded)
            except AppError as error:
                log.info("this machine cannot run the model alone: %s", error.reason)
                return False
            plan, _ = options[0]
            used = {machine.id for machine in plan.machines} | {stage.machine for stage in plan.stages}
            if not (more := used - {plan.host} - excluded):
                self.intend(options[0])
                return True
            excluded |= more
        return False

    async def options(self, without: frozenset[MachineId]) -> Sequence[Option]:
        """Return the possible plans without these machines, the planner's choice first. Machines that failed
        repeatedly are also avoided if possible."""
        failed = self.left_out() - without
        if failed:
            try:
                return await self._replan(without | failed)
            except AppError as error:
                log.info("no plan avoids the machines that failed: %s", error.reason)
        return await self._replan(without)

    async def like(self, before: Plan) -> Option | None:
        """Return a plan that places the layers as the earlier plan did, or None if there is no longer such a plan.

        Raises AppError.
        """
        options = await self._replan(frozenset(), before)
        return next((option for option in options if _runs(option[0]) == _runs(before)), None)

    async def soonest(self, without: frozenset[MachineId]) -> Option:
        """Return the plan that can be ready first, out of those that avoid these machines."""
        return self._first(await self.options(without))

    async def _soonest(self, without: frozenset[MachineId]) -> Option:
        """Return the plan that can be ready first. Unlike `soonest`, also consider plans that avoid the machines
        whose stages are lost.
        """
        options = list(await self.options(without))
        if lost := self.stage_set.lost() - without:
            with suppress(AppError):
                options += await self.options(without | lost)
        return self._first(options)

    def _first(self, options: Sequence[Option]) -> Option:
        plans = [plan for plan, _ in options]
        return options[soonest_plan(plans, [self._moving_s(plan) for plan in plans])]

    async def hand_over(self, without: frozenset[MachineId], say: Callable[[Sequence[str], float], None]) -> None:
        """Prepare a plan that avoids these machines, and use it at the next replan. Until then, the machines keep
        computing while others load their layers. Raises AppError if there is no such plan.

        say: receives the names of the machines that must load layers, and the expected time in seconds.
        """
        option = await self.soonest(without)
        if taking := self.missing(option[0]):
            say(list(dict.fromkeys(stage.name for stage in taking)), self._moving_s(option[0]))
        try:
            await self.prepare(option[0])
        except AppError as error:
            log.info("no other machine could load the layers in advance: %s", error.reason)
        else:
            self.intend(option)

    @property
    def intends(self) -> bool:
        """Return whether a move to another plan is pending."""
        return self._intended is not None

    def intend(self, option: Option, *, is_recorded: bool = False) -> None:
        """Use this plan at the next replan, unless one of its machines has been lost before that.

        is_recorded: whether the placement's state already describes the move.
        """
        self._intended, self._is_recorded = option, is_recorded

    def missing(self, plan: Plan) -> list[PlannedStage]:
        """Return the stages of this plan that other machines would have to load."""
        here = plan.stages[0].machine
        return [stage for stage in self.stage_set.stages_to_load(plan) if stage.machine != here]

    async def prepare(self, plan: Plan, only: PlannedStage | None = None, *, load: bool = True) -> None:
        """Make other machines store the missing layers of this plan on disk and, if `load` is set, load them into
        memory.

        only: the only stage to prepare, or None for all. Raises AppError.
        """
        for stage in [only] if only else self.missing(plan):
            if load or not self.stage_set.was_sent(stage):
                await self.stage_set.prepare(stage, load=load)

    def _moving_s(self, plan: Plan) -> float:
        moving = self.stage_set.stages_to_load(plan)
        sent = [stage for stage in moving if self.stage_set.was_sent(stage)]
        return move_duration_s(plan, moving, sent, self.bytes_per_second)

    async def build(self) -> list[StageClient]:
        assert self._chosen is not None
        plan, described = self._chosen
        if plan is not (before := self._state.part(self._place)):  # otherwise only a worker is restarted
            if not self._is_recorded and (gone := _left(before, plan)):
                why = Reason("layers_moved", {"machine": gone})
                self._state.record_move(self._place, why, time.monotonic(), for_speed=False)
            self._state.place(self._place, plan, described)
        return await self.stage_set.open(plan)

    async def changed(self) -> None:
        await asyncio.sleep(LEAST_PAUSE_SECONDS)
        with suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_PAUSE_SECONDS):
                await self._state.news.wait()

    def blames(self, error: AppError) -> tuple[str, str, bool]:
        stage = self.stage_set.failed
        if stage is None:
            return "", "", False
        is_gone = isinstance(error, Unreachable | Refused | DoesNotFit)
        return "" if self.stage_set.is_here(stage) else stage.machine, stage.name, is_gone

    def misfit(self, loss: Loss, error: DoesNotFit) -> recovery.PlanFailed:
        return recovery.PlanFailed(recovery.shortage_reason(loss, error.reason))


def _runs(plan: Plan) -> list[tuple[MachineId, Layers]]:
    return [(stage.machine, stage.layers) for stage in plan.stages]


def _left(before: Plan, after: Plan) -> str:
    """Return the names of the machines that lose all of their layers, or "" if there are none."""
    held = {stage.machine for stage in after.stages}
    return " and ".join(dict.fromkeys(stage.name for stage in before.stages if stage.machine not in held))


def describe_notice(notice: Notice) -> plans.Notice:
    """Return the API's form of a notice, for streams and the snapshot."""
    reason = notice.reason
    return plans.Notice(notice.state, notice.machine, reason.code, said(reason), reason, notice.seconds)


def describe_move(move: Move) -> plans.Move:
    """Return the API's form of a move."""
    return plans.Move(
        text=said(move.why),
        text_facts=move.why,
        at=move.at,
        undoable=move.is_for_speed and not move.is_undone,
        undoing=move.is_undone,
        problem=sentence(move.problem),
        problem_facts=move.problem,
    )
