"""The outcome of each answer compared with its forecast: reported at its end, and used to correct later forecasts."""

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
from app.core.planner.placement import Candidate, Plan
from app.core.planner.topologies import forecast_of
from app.core.recovery.recovery import Notice
from app.inference.pipeline.completion import Completer, Delta, GenerationRequest, Summary
from app.node.cancellation import run_until
from app.node.control.asking import describe_answer
from app.node.placement.placement import Placement
from app.node.planning.forecast_history import Outcome
from app.node.planning.planner_inputs import PlannerInputs
from app.node.planning.planning import BATCH_ROWS
from app.node.snapshot import describe_forecast

log = logging.getLogger(__name__)

REST_S = 3.0  # without requests, so that a measurement disturbs nobody
MOST_TRIES = 200
Part = Delta | Notice | Summary


def refresh_forecast(running: Placement, machines: Iterable[Candidate]) -> None:
    """Recompute the placement's forecast from the machines' current speeds and links. It stays if one is unmeasured."""
    seen = {machine.id: machine for machine in machines}
    plan = replace(
        running.plan, machines=tuple(_as_seen(machine, seen.get(machine.id)) for machine in running.plan.machines)
    )
    if (known := forecast_of(plan, plan.stages, running.entry.model)) is not None:
        running.state.plan = replace(plan, forecast=known)
        running.state.described = structs.replace(running.state.described, forecast=describe_forecast(known))


def _as_seen(machine: Candidate, now: Candidate | None) -> Candidate:
    if now is None:
        return machine
    return replace(machine, speed=now.speed, link=now.link, factor=now.factor, link_factor=now.link_factor)


async def remeasure(running: Placement, planner_inputs: PlannerInputs) -> bool:
    """Measure the doubtful speeds again as soon as the model is idle, and refresh the forecast. Return whether all
    were measured."""
    used = {stage.machine for stage in running.plan.stages}
    for _ in range(MOST_TRIES):
        await asyncio.sleep(REST_S)
        if time.monotonic() - running.last_request_s < REST_S:
            continue
        speeds = await planner_inputs.speeds(running.entry, BATCH_ROWS, lambda _: None)
        if all(speeds.get(machine) for machine in used):
            host, lenders = planner_inputs.machines({}, speeds)
            refresh_forecast(running, (host, *lenders))
            log.info("%s: what its forecast was made from was measured again", running.entry.name)
            return True
    return False


@dataclass(slots=True, eq=False)
class AnswerSpan:
    """An answer under way."""

    alone: bool  # so far


class ConcurrentAnswers:
    """The answers under way. Only an answer that had the pool to itself can be compared with its forecast."""

    def __init__(self) -> None:
        self._guests: list[AnswerSpan] = []

    @contextmanager
    def count(self) -> Iterator[AnswerSpan]:
        """Count an answer while the block runs."""
        guest = AnswerSpan(alone=not self._guests)
        for other in self._guests:
            other.alone = False
        self._guests.append(guest)
        try:
            yield guest
        finally:
            self._guests.remove(guest)


async def counted_answer(
    completer: Completer, question: GenerationRequest, left: Callable[[Answer], None]
) -> AsyncGenerator[Part, None]:
    """Yield the answer unchanged. If it is cut off, `left` receives an answer with only its token counts."""
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
            left(Answer(prompt_tokens=n_read, token_ids=ids))


class Outcomes:
    """The outcomes of all answers of this host. `group` outlives the answers; `concurrent` are those under way."""

    def __init__(self, planner_inputs: PlannerInputs, group: asyncio.TaskGroup, changed: Callable[[], None]) -> None:
        self._outlook, self._group, self._changed = planner_inputs, group, changed
        self.concurrent = ConcurrentAnswers()

    def ended(self, summary: Summary, running: Placement, alone: bool) -> Answer:
        """Return the end of an answer. Its outcome is kept if it had the pool to itself."""
        model, chosen = running.entry.model, running.plan.parts[summary.place]
        computed = summary.prompt_tokens - summary.reused_tokens
        forecasts = self._outlook.forecasts
        expected = forecasts.expected(chosen, model, computed, len(summary.token_ids))
        if alone and not summary.recoveries and (outcome := forecasts.learn(chosen, model, summary)):
            running.outcome = outcome
            refresh_forecast(running, forecasts.with_corrections(running.plan).machines)
            self._group.create_task(self._noted(running, chosen, outcome), name="note what came of a forecast")
        elif alone and summary.recoveries:
            running.outcome = forecasts.interrupted(chosen, model, summary) or running.outcome
        names = {stage.machine: stage.name for stage in chosen.stages}
        doubted = [name for machine, name in names.items() if machine in self._outlook.quarantine]
        why = [Reason("answer_doubted", {"machine": name}) for name in doubted]
        return describe_answer(summary, running.entry.name, chosen.stages, expected, why)

    async def _noted(self, running: Placement, chosen: Plan, outcome: Outcome) -> None:
        """Save the outcome, and doubt the measurements behind the forecast if it was far off."""
        forecasts = self._outlook.forecasts
        await asyncio.to_thread(forecasts.save, forecasts.content())
        used = {stage.machine for stage in chosen.stages}
        if outcome.is_far_off and await self._outlook.doubt(running.entry, BATCH_ROWS, used):
            await asyncio.to_thread(forecasts.save, forecasts.content())
            with suppress(StageLost):
                over = StageLost("load_stopped", model=running.entry.name)
                await run_until(running.ended, remeasure(running, self._outlook), over)
            self._changed()
