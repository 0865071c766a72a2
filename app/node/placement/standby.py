"""Background work of an idle placement: loads standby layers, moves to better machines, replaces slow or faulty
machines, and checks samples."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from app.core.errors import AppError, DoesNotFit, Fact, Reason, StageLost
from app.core.ids import MachineId
from app.core.planner.placement import Plan
from app.core.planner.placement_change import (
    QUIET_S,
    SLOW_FOR_S,
    best_steps,
    is_clearly_better,
    may_load_ahead,
    may_move,
    slow_machines,
    slowed_forecast,
)
from app.core.recovery.recovery import Loss
from app.inference.pipeline.pipeline import Pipeline
from app.node.cancellation import run_until
from app.node.placement.failover import Failover, Option
from app.node.placement.placement_state import Move, PlacementState


class SlowMachines:
    """Detects machines of one placement that have become slow. Moving layers resets the baseline, but the machines
    already known to be slow are remembered.
    """

    def __init__(self) -> None:
        self._best: dict[MachineId, float] = {}
        self._placed_s: float | None = None
        self._slow: dict[MachineId, tuple[float, float]] = {}  # time of detection, slowdown factor

    def update(self, steps: Mapping[MachineId, float], placed_s: float, now_s: float) -> None:
        """Detect slow machines from each machine's current seconds per token."""
        if placed_s != self._placed_s:
            self._placed_s, self._best = placed_s, {}
        self._best = best_steps(self._best, steps)
        slow_now = slow_machines(self._best, steps)
        for machine, times in slow_now.items():
            self._slow[machine] = now_s, times
        self._slow = {
            machine: (since, times)
            for machine, (since, times) in self._slow.items()
            if machine in slow_now or (now_s - since < SLOW_FOR_S and machine not in steps)
        }

    @property
    def slow(self) -> dict[MachineId, float]:
        """The slowdown factor of each slow machine. No layers are placed on slow machines."""
        return {machine: times for machine, (_, times) in self._slow.items()}


log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
LEAST_BETWEEN_SECONDS = 15.0  # least time between two looks
LONGEST_BETWEEN_SECONDS = 240.0  # longest time between two looks, after repeated refusals


class StandbyManager:
    """The standby work of the pipeline with index `place`, which `run` repeats until canceled."""

    def __init__(
        self,
        state: PlacementState,
        place: int,
        pipeline: Pipeline,
        failover: Failover,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._placement, self._place, self._pipeline = state, place, pipeline
        self._failover, self._clock = failover, clock
        self._seen: tuple[int, bool, frozenset[MachineId]] | None = None  # state at the last look
        self._slow_machines = SlowMachines()
        self._looked_s, self._again_s = -LEAST_BETWEEN_SECONDS, math.inf
        self._pause_s = LEAST_BETWEEN_SECONDS

    async def run(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self.run_due_work()

    @property
    def _plan(self) -> Plan:
        return self._placement.part(self._place)

    def _steps_s(self) -> dict[MachineId, float]:
        """Return the seconds per token of each machine.

        If there are several pipelines, return an empty result. A slow pipeline then simply gets fewer requests.
        """
        if self._placement.is_replicated:
            return {}
        steps = self._pipeline.steps_s()
        return {MachineId(key or self._plan.host): step_s for key, step_s in steps.items()}

    def _move(self, option: Option) -> None:
        """Move to a better plan while idle. A request that arrives during the move waits until the move is complete."""
        placement, now = self._placement, self._plan
        why = _why_moved(now, option[0])
        if slow := [stage.name for stage in now.stages if stage.machine in placement.replaced]:
            why = Reason("recovery_slow", {"machine": slow[0]})
        if wrong := [stage.name for stage in now.stages if stage.machine in self._doubted()]:
            why = Reason("recovery_doubted", {"machine": wrong[0]})
        log.info("the pipeline of %s moves to a better placement", now.stages[0].name)
        placement.record_move(self._place, why, self._clock(), for_speed=not self._doubted())
        self._begin_move(option, why)

    def _begin_move(self, option: Option, why: Reason) -> None:
        placement = self._placement
        self._failover.intend(option, is_recorded=True)
        is_taken = self._pipeline.break_off(Loss("", "", why, time.monotonic()))
        placement.is_moving = is_taken and not placement.is_replicated

    async def run_due_work(self) -> None:
        """Run the standby work that is due."""
        placement = self._placement
        self._slow_machines.update(self._steps_s(), placement.placed_s, self._clock())
        moved = placement.moved
        if moved is not None and moved.is_undone and moved.place == self._place:
            await self._run_while_idle(self._undo(moved))
        elif self._is_look_due():
            self._looked_s = self._clock()
            self._schedule_next(await self._run_while_idle(self.improve()))
        elif self._checks_are_due():
            await self._run_while_idle(self.check())

    def _schedule_next(self, is_done: bool) -> None:
        """Schedule the next look for a better plan, if there is a reason to retry: a faulty machine still serves,
        a request interrupted the work, or the work was refused. Each refusal doubles the pause.
        """
        was_refused = not is_done and self._placement.last_request_s <= self._looked_s
        longer_s = min(2 * self._pause_s, LONGEST_BETWEEN_SECONDS)
        self._pause_s = longer_s if was_refused and not self._doubted() else LEAST_BETWEEN_SECONDS
        settled = is_done and not self._doubted()
        self._again_s = math.inf if settled else self._looked_s + self._pause_s

    async def _run_while_idle(self, work: Coroutine[Any, Any, None]) -> bool:
        """Run standby work until it is finished or a request arrives. Return whether it was finished."""
        try:
            await run_until(self._placement.busy, work, StageLost("pipeline_closed"))
        except AppError as error:
            log.info("standby work stopped: %s", error.reason)
        except Exception:  # after an unexpected error, the placement keeps serving without standby work
            log.exception("standby work failed")
        else:
            return True
        return False

    async def check(self) -> None:
        """Check the oldest sample of a lender's work, if there is one."""
        if self._failover.verifier is not None:
            await self._failover.verifier.check_oldest(self._plan)

    async def _undo(self, moved: Move) -> None:
        """Move the layers back to where they were before the last move."""
        placement = self._placement
        try:
            option = await self._failover.like(moved.before)
            if option is not None:
                await self._failover.prepare(option[0])
        except AppError as error:
            log.info("the move could not be undone: %s", error.reason)
            option = None
        if option is None:
            placement.refuse_undo(Reason("move_stays"))
            return
        placement.forget_move(self._place)
        self._begin_move(option, Reason("recovery_undone"))

    async def improve(self) -> None:
        """Look for a better plan, then prepare for the loss of each other machine."""
        try:
            if (right := await self._without_doubted()) is not None:
                await self._failover.prepare(right[0])
                if self._doubted():  # the machine may have been released in the meantime
                    self._move(right)
                    return
            if (better := await self._without_slow() or await self._better()) is not None:
                await self._failover.prepare(better[0])
                if self._may_move():
                    self._move(better)
                    return
        finally:
            self._placement.replace_slow(None)
        here = self._plan.stages[0].machine
        machines = {stage.machine for stage in self._plan.stages} - {here}
        failed: AppError | None = None
        # with several pipelines, the others continue the answers of a lost one
        for machine in () if self._placement.is_replicated else machines:
            try:
                await self._cover_loss(machine)
            except AppError as error:  # the loss of the other machines can still be covered
                failed = error
        if failed is not None:
            raise failed

    def _is_look_due(self) -> bool:
        """Return whether the host is idle and either something has changed since the last look or a retry is due."""
        now, placement = self._clock(), self._placement
        if now - placement.last_request_s < QUIET_S or now - self._looked_s < LEAST_BETWEEN_SECONDS:
            return False
        # a machine leaves this set after some minutes, which also counts as a change
        failed = self._failover.left_out()
        odd = frozenset(self._slow_machines.slow) | self._doubted() | failed
        seen = placement.n_changes, self._may_move(), odd
        is_new, self._seen = seen != self._seen, seen
        return is_new or now >= self._again_s

    def _checks_are_due(self) -> bool:
        checks, now = self._failover.verifier, self._clock()
        return checks is not None and checks.is_due and now - self._placement.last_request_s >= QUIET_S

    def _doubted(self) -> frozenset[MachineId]:
        """Return the pipeline's machines that are in quarantine."""
        checks, stages = self._failover.verifier, self._plan.stages
        return frozenset(stage.machine for stage in stages if checks and stage.machine in checks.quarantine)

    async def _without_doubted(self) -> Option | None:
        """Return a plan without the quarantined machines. Return None if the pipeline uses none, or if no such
        plan fits.
        """
        if not self._doubted():
            return None
        try:
            return await self._failover.soonest(frozenset())
        except DoesNotFit:
            return None  # the reason is shown with each answer

    def _may_move(self) -> bool:
        """Return whether layers may be moved for the sake of speed now."""
        placement, moved = self._placement, self._placement.moved
        last_moved_s = moved.at_s if moved is not None and moved.is_for_speed else -math.inf
        if placement.stays:
            return False
        return may_move(self._clock(), placement.last_request_s, placement.placed_s, last_moved_s)

    async def _better(self) -> Option | None:
        """Return the best possible plan if it is clearly better than the current one."""
        if not self._may_move() or self._doubted():
            return None
        now = self._plan
        away = frozenset(self._slow_machines.slow) - {stage.machine for stage in now.stages} - {now.host}
        best_steps, *alternatives = await self._failover.options(away)
        same = [plan for plan, _ in alternatives if plan.stages == now.stages]
        ordered = self._placement.order.split
        if best_steps[0].stages == now.stages or not same:
            return None
        if ordered is not None:
            as_ordered = _sizes(best_steps[0]) == ordered != _sizes(now)
            return best_steps if as_ordered else None
        return best_steps if is_clearly_better(same[0].forecast, best_steps[0].forecast) else None

    async def _without_slow(self) -> Option | None:
        """Return a plan without a machine that has become much slower, if that is clearly better than keeping the
        machine."""
        if not self._may_move():
            return None
        now, slow = self._plan, self._slow_machines.slow
        for machine in {stage.machine for stage in now.stages[1:-1]} & slow.keys() - {now.host}:
            try:
                option, *_ = await self._failover.options(frozenset(slow) - {now.host})
            except DoesNotFit:
                continue  # a slow machine is better than none
            if self._placement.order.split not in (None, _sizes(option[0])):
                continue  # the user chose how many layers each machine computes
            borne = now.forecast and slowed_forecast(now.forecast, machine, slow[machine])
            if is_clearly_better(borne, option[0].forecast):
                self._placement.replace_slow(machine)
                return option
        return None

    async def _cover_loss(self, machine: MachineId) -> None:
        """Prepare for the loss of this machine by storing its layers on the machines that would then need them."""
        plan = await self._soonest_without(machine)
        if plan is None:
            return
        lends = {candidate.id: candidate.lends_bytes for candidate in plan.machines}
        for stage in self._failover.missing(plan):
            load = may_load_ahead(stage.total_bytes, lends[stage.machine])
            await self._failover.prepare(plan, only=stage, load=load)

    async def _soonest_without(self, machine: MachineId) -> Plan | None:
        """Return the plan without this machine that can be ready first, or None if nothing fits. Slow machines are
        used only if necessary."""
        slow = frozenset({machine, *self._slow_machines.slow}) - {self._plan.host}
        for without in dict.fromkeys((slow, frozenset({machine}))):
            try:
                plan, _ = await self._failover.soonest(without)
            except DoesNotFit:
                continue
            return plan
        return None


def _sizes(plan: Plan) -> list[int]:
    return [len(stage.layers) for stage in plan.stages]


def _why_moved(before: Plan, after: Plan) -> Reason:
    """Return the reason to show to waiting requests while the pipeline moves."""
    held = {stage.machine for stage in before.stages}
    names = [stage.name for stage in after.stages if stage.machine not in held]
    facts: dict[str, Fact] = {"machine": " and ".join(dict.fromkeys(names))}
    return Reason("recovery_joining", facts) if names else Reason("recovery_better")
