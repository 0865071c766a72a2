"""Opens one pipeline of a placement: its stages, and the proof that they compute what the model says."""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import AsyncExitStack

from app.catalog.shelf import Entry
from app.core.errors import AppError
from app.core.planner.placement import Plan
from app.core.recovery.recovery import Loss
from app.inference.pipeline.known_answer import Proof, is_asked_whole, prove
from app.inference.pipeline.pipeline import Pipeline
from app.inference.pipeline.recovering import loss_of
from app.inference.pipeline.scheduler import PipelineConfig
from app.inference.stages.verification_samples import Samples
from app.node.control.ndjson import Progress
from app.node.placement.failover import Failover, Replan
from app.node.placement.placement_state import PlacementState
from app.node.placement.stages import Sources, StageSet
from app.node.planning.sizes import Sizes
from app.node.verification.recompute import Recompute
from app.node.verification.verifier import Verifier


class PipelineOpener:
    """For one placement. What it opens is closed with the stack that it is given, and is in `placings` until then."""

    def __init__(
        self,
        entry: Entry,
        sources: Sources,
        sizes: Sizes,
        tell: Progress,
        state: PlacementState,
        placings: list[StageSet],
    ) -> None:
        self._state, self._placings = state, placings
        self._entry, self._sources, self._sizes, self._tell = entry, sources, sizes, tell
        self._known = Proof(entry.proof) if entry.proof else None
        self.fetched_bytes = 0  # weights that crossed the network
        self.failed: Loss | None = None  # what the last `open` that failed was about

    async def open(self, place: int, stack: AsyncExitStack, replan: Replan) -> tuple[Pipeline, Failover]:
        """Open the pipeline that is at `place` in the placement, with its failover. Raises AppError."""
        began, given, plan = time.monotonic(), self._sources, self._state.part(place)
        placing = StageSet(self._entry, given, self._sizes, stack, self._tell)
        self._placings.append(placing)
        stack.callback(self._placings.remove, placing)
        rebuilder = Failover(placing, replan, self._state, place, given.outlook.failures)
        try:
            pipeline = await self._opened(plan, stack, placing, rebuilder)
        except AppError:
            self.failed = rebuilder.last_failed
            raise
        loaded_bytes = sum(stage.weight_bytes for stage in plan.stages)
        rebuilder.bytes_per_second = loaded_bytes / max(time.monotonic() - began, 0.1)
        self.fetched_bytes += placing.fetched_bytes
        return pipeline, rebuilder

    async def _opened(self, plan: Plan, stack: AsyncExitStack, placing: StageSet, rebuilder: Failover) -> Pipeline:
        """Open the stages and prove them. Who failed is noted."""
        given, sizes, model = self._sources, self._sizes, self._entry.model
        try:
            clients = await placing.open(plan)
        except AppError as error:
            rebuilder.failed(loss_of(error, rebuilder))
            raise
        shape = PipelineConfig(
            sizes.slots,
            sizes.kv_cells,
            sizes.context,
            model.n_vocab,
            sizes.batch_rows,
            recurrent=model.later.recurrent,
            keep=sizes.keep,
            trained=model.context_length,
        )
        samples = Samples(random.SystemRandom().random)  # which ones: nobody can know ahead
        again = Recompute(self._entry, given.shelf, given.stages, sizes, given.outlook.checks)
        rebuilder.checks = Verifier(samples, placing, again, given.outlook.doubts)
        pipeline = await stack.enter_async_context(Pipeline(clients, shape, rebuilder, samples))
        await self._prove(plan, pipeline, shape)
        return pipeline

    async def _prove(self, plan: Plan, pipeline: Pipeline, shape: PipelineConfig) -> None:
        """Ready only after a known answer; what it is, is known once the model ran on this machine alone."""
        here = {stage.machine for stage in plan.stages} == {plan.host}
        known = None if here else self._known
        pipeline.is_tried = True
        found = await prove(pipeline, shape, self._entry.name, known)
        pipeline.is_tried = False
        if here and is_asked_whole(shape):
            self._known = found
            await asyncio.to_thread(self._sources.shelf.keep_proof, self._entry, found.steps)
