"""Supervision of a placement's pipelines: opens them, and reopens a replica when its machine comes back."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Any

from app.core.errors import AppError, StageLost, Unreachable
from app.core.ids import MachineId
from app.core.planner.placement import Plan
from app.core.recovery import fault_table
from app.core.recovery.fault_table import Fault, Retry
from app.core.recovery.recovery import Loss
from app.inference.pipeline.kept_prompts import ModelPrompts
from app.inference.pipeline.pipeline import Pipeline
from app.inference.pipeline.recovery_loop import loss_from_error
from app.inference.pipeline.replica_set import Replica
from app.inference.pipeline.result_checks import KnownAnswer, Samples, check_known_answer, fits_whole_prompt
from app.inference.pipeline.scheduler import PipelineConfig
from app.node.control.json_bodies import Report
from app.node.placement.failover import Failover, Option, Replan
from app.node.placement.placement_state import PlacementState
from app.node.placement.stages import PlacementServices, StageSet
from app.node.placement.standby import StandbyManager
from app.node.planning.planning import Sizes
from app.node.verification.verifier import SampleRecomputer, Verifier

log = logging.getLogger(__name__)

Json = dict[str, Any]
LEAST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 2.0, 60.0  # pauses before a lost pipeline is opened again


class PipelineOpener:
    """Opens the pipelines of one placement. Each pipeline's stage set stays in `stage_sets` until the stack given to
    `open` closes."""

    def __init__(
        self,
        state: PlacementState,
        sources: PlacementServices,
        sizes: Sizes,
        report: Report,
        stage_sets: list[StageSet],
    ) -> None:
        self._state, self._sources, self._sizes, self._report = state, sources, sizes, report
        self._entry, self._stage_sets = state.entry, stage_sets
        self._known = KnownAnswer(state.entry.proof) if state.entry.proof else None
        self.fetched_bytes = 0  # weights that crossed the network
        self.failed: Loss | None = None  # the loss that made the last `open` fail

    async def open(self, place: int, stack: AsyncExitStack, replan: Replan) -> tuple[Pipeline, Failover]:
        """Open the pipeline with index `place` in the placement, and create its failover. Raises AppError."""
        began, sources, plan = time.monotonic(), self._sources, self._state.part(place)
        stage_set = StageSet(self._entry, sources, self._sizes, stack, self._report)
        self._stage_sets.append(stage_set)
        stack.callback(self._stage_sets.remove, stage_set)
        failover = Failover(stage_set, replan, self._state, place, sources.planner_inputs.failures)
        try:
            pipeline = await self._open_verified(plan, stack, stage_set, failover)
        except AppError:
            self.failed = failover.last_failed
            raise
        loaded_bytes = sum(stage.weight_bytes for stage in plan.stages)
        failover.bytes_per_second = loaded_bytes / max(time.monotonic() - began, 0.1)
        self.fetched_bytes += stage_set.fetched_bytes
        return pipeline, failover

    async def _open_verified(
        self, plan: Plan, stack: AsyncExitStack, stage_set: StageSet, failover: Failover
    ) -> Pipeline:
        """Open the stages and verify the pipeline. If this fails, count a failure for the machine that caused it."""
        sources, sizes, model = self._sources, self._sizes, self._entry.model
        try:
            clients = await stage_set.open(plan)
        except AppError as error:
            failover.failed(loss_from_error(error, failover))
            raise
        shape = PipelineConfig(
            sizes.slots,
            sizes.kv_cells,
            sizes.context,
            model.n_vocab,
            sizes.batch_rows,
            recurrent=model.cuts.later.recurrent,
            keep=sizes.keep,
            trained=model.context_length,
            checks=not sizes.exact,
        )
        samples = Samples(random.SystemRandom().random)  # lenders must not be able to predict the samples
        again = SampleRecomputer(self._entry, sources.shelf, sources.stages, sizes, sources.planner_inputs.spare_memory)
        prompts = ModelPrompts(sources.prompts, model.id) if sources.prompts is not None else None
        failover.verifier = Verifier(samples, stage_set, again, sources.planner_inputs.quarantine)
        pipeline = await stack.enter_async_context(Pipeline(clients, shape, failover, samples, prompts))
        await self._prove(plan, pipeline, shape)
        if self._state.drafter is not None:
            pipeline.use_draft(self._state.drafter)
        return pipeline

    async def _prove(self, plan: Plan, pipeline: Pipeline, shape: PipelineConfig) -> None:
        """Check that the pipeline reproduces the model's known answer, which this machine generated by running the
        model alone. Without a known answer, nothing is checked.
        """
        here = {stage.machine for stage in plan.stages} == {plan.host}
        known = None if here else self._known
        pipeline.is_trial = True
        proof = await check_known_answer(pipeline.generate, shape, self._entry.name, known)
        pipeline.is_trial = False
        if here and fits_whole_prompt(shape):
            self._known = proof
            await asyncio.to_thread(self._sources.shelf.save_known_answer, self._entry, proof.steps)


def _machines(part: Plan) -> frozenset[MachineId]:
    return frozenset(stage.machine for stage in part.stages)


class ReplicaSupervisor:
    """Runs one task per pipeline of a placement. Canceling a task closes its pipeline.

    changed: called whenever a replica opens or is lost.
    """

    def __init__(
        self, state: PlacementState, opener: PipelineOpener, replan: Replan, changed: Callable[[], None]
    ) -> None:
        self._state, self._opener = state, opener
        self._replan, self._changed = replan, changed
        self._lost: set[int] = set()
        self._splits = {
            place for place in range(state.n_parts) if len(_machines(state.part(place))) > 1 and state.is_replicated
        }
        self._failover: Failover | None = None  # failover of the only pipeline
        self._tasks: list[asyncio.Task[None]] = []

    async def begin(self, group: asyncio.TaskGroup) -> None:
        """Open all pipelines. This machine's pipeline comes first, because its answers are the reference for the
        others. Raises AppError."""
        loop = asyncio.get_running_loop()
        state = self._state
        opened: list[asyncio.Future[None]] = [loop.create_future() for _ in range(state.n_parts)]
        for place in range(state.n_parts):
            first = state.part(place).stages[0]
            name = f"run the replica of {first.name}" if state.is_replicated else "run the pipeline"
            self._tasks.append(group.create_task(self._run_pipeline(place, opened[place]), name=name))
            if place == 0:
                await opened[0]
        for future in opened:
            await future

    def end(self) -> None:
        """Close all pipelines."""
        for task in self._tasks:
            task.cancel()

    @property
    def only(self) -> Failover | None:
        """The failover of the only pipeline, or None if there are several, because they take over each other's
        answers.
        """
        return self._failover

    def is_lost(self, machine: MachineId) -> bool:
        """Return whether this machine's replica is lost and its memory is free."""
        return any(machine in _machines(self._state.part(place)) for place in self._lost)

    async def _run_pipeline(self, place: int, opened: asyncio.Future[None]) -> None:
        pause_s = LEAST_PAUSE_SECONDS
        while not self._state.pipelines.check_all_lost():
            try:
                async with AsyncExitStack() as stack:
                    await self._place(place, again=place in self._lost)
                    replan = self._replan_of(place)
                    pipeline, failover = await self._opener.open(place, stack, replan)
                    part = self._state.part(place)
                    first = part.stages[0]
                    here = first.machine == part.host
                    replica = Replica(first.name, pipeline, _machines(part), here)
                    self._state.pipelines.put(place, replica)
                    self._failover = None if self._state.is_replicated else failover
                    self._lost.discard(place)
                    pause_s = LEAST_PAUSE_SECONDS
                    if not opened.done():
                        opened.set_result(None)
                    self._changed()
                    why = await self._until_lost(place, pipeline, failover)
                    log.warning("the replica of %s is lost: %s", first.name, why.reason)
                    if self._state.pipelines.check_all_lost():
                        return
            except AppError as error:
                if not opened.done():
                    opened.set_exception(error)
                    opened.exception()  # marks the exception as retrieved, because its waiter may be gone
                    return
                log.info("a replica could not be opened: %s", error.reason)
                fault_entry = fault_table.classify(error.reason)
                if fault_entry.retry is Retry.NEVER and fault_entry.fault in (Fault.MODEL, Fault.ENGINE):
                    self._lost.add(place)  # another try would fail in the same way
                    self._state.pipelines.check_all_lost()
                    self._changed()
                    return
            self._lost.add(place)
            self._changed()
            await self._pause(place, pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_SECONDS)

    async def _until_lost(self, place: int, pipeline: Pipeline, failover: Failover) -> StageLost:
        """Wait until the pipeline is lost, and return the reason. In the meantime, do standby work, unless the
        pipeline is a replica on a single machine, which cannot move.
        """
        if self._state.is_replicated and place not in self._splits:
            return await pipeline.wait_lost()
        ahead = StandbyManager(self._state, place, pipeline, failover)
        async with asyncio.TaskGroup() as group:
            looking = group.create_task(ahead.run(), name="standby work")
            try:
                return await pipeline.wait_lost()
            finally:
                looking.cancel()

    async def _pause(self, place: int, seconds: float) -> None:
        """Wait before the next try. If other machines are involved, also wait for a change in the household. This
        second wait is short for a split, because the split may not need the lost machine.
        """
        self._state.news.clear()
        is_split = place in self._splits
        await asyncio.sleep(LEAST_PAUSE_SECONDS if is_split else seconds)
        part = self._state.part(place)
        if is_split or _machines(part) != {part.host}:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds if is_split else LONGEST_PAUSE_SECONDS):
                    await self._state.news.wait()

    async def _place(self, place: int, *, again: bool) -> None:
        """Choose new machines for a split that was lost. Other replicas stay on their machines. Raises AppError."""
        if again and place in self._splits:
            [(part, described), *_] = await self._elsewhere(place, frozenset())
            self._state.place(place, part, described)

    async def _elsewhere(self, place: int, without: frozenset[MachineId], like: Plan | None = None) -> Sequence[Option]:
        """Return the plans for a split that avoid the machines of all other pipelines. Raises AppError."""
        state = self._state
        other_parts = [state.part(other) for other in range(state.n_parts) if other != place]
        return await self._replan(without.union(*map(_machines, other_parts)), like or state.part(place))

    def _replan_of(self, place: int) -> Replan:
        """Return the replan function for this pipeline."""
        if not self._state.is_replicated:
            return self._replan
        if place in self._splits:
            return partial(self._elsewhere, place)
        part = self._state.part(place)

        async def same(without: frozenset[MachineId], like: Plan | None = None) -> list[Option]:
            """Return the current plan, so that dead workers are restarted. Raises Unreachable if a machine of the
            plan is lost.
            """
            for stage in part.stages:
                if stage.machine in without:
                    raise Unreachable("peer_offline", name=stage.name)
            return [(part, self._state.described)]

        return same
