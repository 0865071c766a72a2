"""Comparison of each answer with its forecast. The result is reported with the answer and corrects later forecasts."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass, replace

from msgspec import structs

from app.api.responses import Answer
from app.core.errors import Reason, StageLost
from app.core.planner.forecast_range import TOO_BUSY_LOAD
from app.core.planner.placement import Candidate, Plan
from app.core.planner.speed_estimates import is_too_small
from app.core.planner.topologies import forecast_of
from app.core.recovery.recovery import Notice
from app.inference.pipeline.completion import Completer, Delta, GenerationRequest, Summary
from app.machine.hardware.devices import other_programs_share
from app.node.cancellation import run_until
from app.node.control.answer_conversion import describe_answer
from app.node.placement.placement import Placement
from app.node.planning.forecast_history import Outcome
from app.node.planning.planner_inputs import PlannerInputs
from app.node.planning.planning import speed_conditions
from app.node.snapshot import describe_forecast, first_token

log = logging.getLogger(__name__)

REST_S = 3.0  # time without requests before a measurement, so that it disturbs no answer
MOST_TRIES = 200
Part = Delta | Notice | Summary


def refresh_forecast(running: Placement, machines: Iterable[Candidate]) -> None:
    """Recompute a placement's forecast from the current speeds and links of its machines. If one of them is
    unmeasured, keep the old forecast."""
    seen = {machine.id: machine for machine in machines}
    plan = replace(
        running.plan, machines=tuple(_as_seen(machine, seen.get(machine.id)) for machine in running.plan.machines)
    )
    if (known := forecast_of(plan, plan.stages, running.entry.model)) is not None:
        running.state.plan = replace(plan, forecast=known)
        running.state.described = structs.replace(
            running.state.described,
            forecast=describe_forecast(known),
            first_token=first_token(running.state.plan, running.entry.model),
        )


def _as_seen(machine: Candidate, now: Candidate | None) -> Candidate:
    if now is None:
        return machine
    return replace(machine, speed=now.speed, link=now.link, factor=now.factor, link_factor=now.link_factor)


async def remeasure(running: Placement, planner_inputs: PlannerInputs) -> bool:
    """Repeat the doubtful measurements once the model is idle, and refresh the forecast. Return whether this succeeded
    for all machines."""
    used = {stage.machine for stage in running.plan.stages}
    for _ in range(MOST_TRIES):
        await asyncio.sleep(REST_S)
        if time.monotonic() - running.last_request_s < REST_S:
            continue
        speeds = await planner_inputs.speeds(running.entry, speed_conditions(running.order), lambda _: None)
        if all(speeds.get(machine) for machine in used):
            host, lenders = planner_inputs.machines({}, speeds, running.entry.model.family)
            refresh_forecast(running, (host, *lenders))
            log.info("the measurements behind the forecast of %s were repeated", running.entry.name)
            return True
    return False


@dataclass(slots=True, eq=False)
class AnswerSpan:
    """An answer in progress."""

    alone: bool  # whether no other answer has overlapped so far


class ConcurrentAnswers:
    """The answers in progress. Only an answer that never overlaps with another can be compared with its forecast."""

    def __init__(self) -> None:
        self._spans: list[AnswerSpan] = []

    @property
    def is_any(self) -> bool:
        """Return whether an answer is in progress."""
        return bool(self._spans)

    @contextmanager
    def count(self) -> Iterator[AnswerSpan]:
        """Count an answer while the block runs."""
        span = AnswerSpan(alone=not self._spans)
        for other in self._spans:
            other.alone = False
        self._spans.append(span)
        try:
            yield span
        finally:
            self._spans.remove(span)


async def counted_answer(
    completer: Completer, question: GenerationRequest, on_interrupted: Callable[[Answer], None]
) -> AsyncGenerator[Part, None]:
    """Yield the parts of an answer unchanged. If the answer is interrupted, call `on_interrupted` with its token
    counts."""
    n_read, ids, is_whole = 0, list[int](), False

    def read(n_tokens: int) -> None:
        nonlocal n_read
        n_read = n_tokens
        if question.read is not None:
            question.read(n_tokens)

    try:
        async with aclosing(completer.answer(replace(question, read=read))) as parts:
            async for part in parts:
                if isinstance(part, Delta):
                    ids += part.token_ids
                is_whole = isinstance(part, Summary)
                yield part
    finally:
        if not is_whole:
            on_interrupted(Answer(prompt_tokens=n_read, token_ids=ids))


class Outcomes:
    """Compares all answers of this host with their forecasts. `group` must outlive the answers."""

    def __init__(self, planner_inputs: PlannerInputs, group: asyncio.TaskGroup, changed: Callable[[], None]) -> None:
        self._planner_inputs, self._group, self._changed = planner_inputs, group, changed
        self.concurrent = ConcurrentAnswers()

    def finish(self, summary: Summary, running: Placement, alone: bool) -> Answer:
        """Return the final line of an answer. Its outcome is recorded only if no other answer was in progress at the
        same time."""
        model, chosen = running.entry.model, running.plan.parts[summary.place]
        computed = summary.prompt_tokens - summary.reused_tokens
        forecasts = self._planner_inputs.forecasts
        expected = forecasts.expected(chosen, model, computed, len(summary.token_ids))
        guesses = self._planner_inputs.guesses
        if alone and not summary.recoveries and guesses is not None and guesses.learn(chosen, model.name, summary):
            self._group.create_task(asyncio.to_thread(guesses.save, guesses.content()), name="record guesses")
        if alone and not summary.recoveries and (outcome := forecasts.learn(chosen, model, summary)):
            running.outcome = outcome
            refresh_forecast(running, forecasts.with_corrections(running.plan).machines)
            self._group.create_task(self._noted(running, chosen, outcome), name="record the outcome of a forecast")
        elif alone and summary.recoveries:
            running.outcome = forecasts.interrupted(chosen, model, summary) or running.outcome
        names = {stage.machine: stage.name for stage in chosen.stages}
        doubted = [name for machine, name in names.items() if machine in self._planner_inputs.quarantine]
        why = [Reason("answer_doubted", {"machine": name}) for name in doubted]
        too_busy = expected is not None and expected.other_load > TOO_BUSY_LOAD
        too_small = is_too_small(model.n_parameters) or too_busy
        return describe_answer(summary, running.entry.name, chosen.stages, expected, why, too_small=too_small)

    async def _noted(self, running: Placement, chosen: Plan, outcome: Outcome) -> None:
        """Save the outcome, and whether the computer was quiet. If the forecast was far off, repeat the measurements
        behind it."""
        forecasts = self._planner_inputs.forecasts
        other_load = await asyncio.to_thread(other_programs_share)
        if not self.concurrent.is_any:  # otherwise, this machine's own worker would count as another program
            outcome = forecasts.note_load(outcome, other_load)
            if running.outcome is not None and running.outcome.at == outcome.at:
                running.outcome = outcome
                self._changed()
        await asyncio.to_thread(forecasts.save, forecasts.content())
        used = {stage.machine for stage in chosen.stages}
        if outcome.is_far_off and await self._planner_inputs.doubt(
            running.entry, speed_conditions(running.order), used
        ):
            await asyncio.to_thread(forecasts.save, forecasts.content())
            with suppress(StageLost):
                over = StageLost("load_stopped", model=running.entry.name)
                await run_until(running.ended, remeasure(running, self._planner_inputs), over)
            self._changed()
