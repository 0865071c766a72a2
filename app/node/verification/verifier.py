"""The verifier: while the model is idle, it computes samples of lenders' work again and compares them."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from app.core.errors import AppError, DoesNotFit
from app.core.ids import MachineId
from app.core.planner.placement import Plan, PlannedStage
from app.core.verification import (
    Finding,
    distance_of,
    distances,
    final_finding,
    finding_of,
    honest_limit,
    noise_of,
    rows_of,
)
from app.inference.pipeline.step import Step
from app.inference.stages.verification_samples import Sample, Samples
from app.node.placement.stages import StageSet
from app.node.verification.quarantine import Quarantine
from app.node.verification.recompute import Again, Recompute
from backends.contract import Number, Segment

log = logging.getLogger(__name__)

MOST_TRIES = 8  # for one sample, longer and longer apart: where somebody always asks, it would begin for ever


@dataclass(frozen=True, slots=True)
class Check:
    """A sample, and this machine's result for it."""

    plan: Plan
    sample: Sample
    again: Again

    def of(self, payload: bytes, machine: MachineId, name: str = "") -> Finding:
        """Return the finding about a machine that returned these rows. Run it in a thread: many values take a while."""
        run, again, chooses = self.sample.run, self.again, self.again.chooses
        with_flash, other = (rows_of(way, run.width, Number.F32) for way in (again.one, again.other))
        rows = rows_of(payload, run.width, run.number)
        nearer = map(min, *(distances(rows, way) for way in (with_flash, other)))
        distance = distance_of(list(nearer), chooses=chooses)
        noise = noise_of(distances(with_flash, other), chooses=chooses)
        most = honest_limit(noise, run.number, same_kind=self._same_kind(machine))
        said = finding_of(distance, noise, most)
        log.info("a sample of %s: %s, %.2g of at most %.2g apart", name, said, distance, most)
        return said

    def _same_kind(self, machine: MachineId) -> bool:
        """Return whether the machine reports the same engine and processor as this one."""
        known = {candidate.id: (candidate.engine, candidate.device) for candidate in self.plan.machines}
        return bool(known.get(machine)) and known.get(machine) == known.get(self.plan.host)


class Verifier:
    """Verifies the lenders of one pipeline until it is closed."""

    def __init__(self, samples: Samples, stage_set: StageSet, computing: Recompute, quarantine: Quarantine) -> None:
        self.quarantine = quarantine
        self._samples, self._placing, self._computing = samples, stage_set, computing

    @property
    def is_due(self) -> bool:
        """Return whether a sample waits to be computed again."""
        return self._samples.oldest is not None

    async def look(self, plan: Plan) -> None:
        """Check the oldest sample. Cancelled, it leaves nothing behind, and the sample waits for another try.

        Raises StageLost when stages are needed meanwhile.
        """
        sample, is_settled = self._samples.oldest, False
        if sample is None:
            return
        try:
            is_settled = await self._is_settled(plan, sample)
        finally:
            if is_settled or self._tried_enough(sample):
                self._samples.forget(sample)

    def _tried_enough(self, sample: Sample) -> bool:
        """Return whether the sample is given up: every try was interrupted by a request, or by a need for memory or
        disk."""
        n_tries = self._samples.put_off(sample)
        if n_tries < MOST_TRIES:
            return False
        stage = self._placing.stage_of(sample.run)
        name = stage.name if stage else "a machine that left"
        log.info("a sample of %s is forgotten: none of %d tries came to an end", name, n_tries)
        return True

    async def _is_settled(self, plan: Plan, sample: Sample) -> bool:
        """Return whether another try with this sample would find nothing more."""
        stage = self._placing.stage_of(sample.run)
        if stage is None or stage.machine in self.quarantine:
            return True
        try:
            again = await self._computing.rows(stage, sample)
        except AppError as error:
            log.info("a sample of %s is not computed again: %s", stage.name, error.reason)
            return not isinstance(error, DoesNotFit) and error.reason.code != "pipeline_closed"
        return await self._is_said(Check(plan, sample, again), stage)

    async def _is_said(self, check: Check, stage: PlannedStage) -> bool:
        """Return whether it could be decided who is right; not when a third machine fails to answer."""
        machine, name, answered = stage.machine, stage.name, check.sample.answered
        lender, third = await asyncio.to_thread(check.of, answered, machine, name), None
        if lender is Finding.DIFFERS:
            try:
                third = await self._third(check, stage)
            except AppError as error:
                if error.reason.code == "pipeline_closed":
                    raise
                log.info("who is right about a sample of %s stays open: %s", name, error.reason)
                return False
        match final_finding(lender, third):
            case Finding.DIFFERS:
                await self.quarantine.differs(machine, name)
            case Finding.UNCLEAR if lender is Finding.DIFFERS:
                self.quarantine.unclear(name)
        return True

    async def _third(self, check: Check, stage: PlannedStage) -> Finding | None:
        """Return a third machine's finding on the same rows, if a trusted one has these layers. Raises AppError."""
        sample = check.sample
        step = Step.of([Segment(0, sample.n_rows, 0)], (), sample.given)
        answer = await self._placing.computed_elsewhere(stage, step)
        if answer is None or answer[0].machine in self.quarantine:
            return None
        other, payload = answer
        return await asyncio.to_thread(check.of, payload, other.machine, other.name)
