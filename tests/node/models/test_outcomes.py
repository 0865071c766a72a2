"""The end of an answer says when a part of it came from a machine whose numbers were found wrong."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from app.core.errors import Reason
from app.core.planner.placement import Workload
from app.core.planner.plan import plan
from app.core.recovery.recovery import Recovered
from app.inference.pipeline.completion import Summary
from app.inference.pipeline.speed_measurement import StageMeter
from app.node.models.outcomes import Outcomes
from app.node.planning.forecast_history import ForecastHistory
from app.node.verification.quarantine import Quarantine
from testbed.households import MIB, link, machine, model, speed

DEN = machine("den", 1600, speed(0.002))
ATTIC = machine("attic", 1600, speed(0.002), link())


async def test_an_answer_by_a_doubted_machine_says_so(tmp_path: Path) -> None:
    chosen = plan(DEN, [ATTIC], model([100 * MIB] * 8), Workload(context=1024), [1, 6, 1])
    quarantine = Quarantine(tmp_path / "doubts.json")
    forecasts = SimpleNamespace(learn=lambda *_: None, anew=lambda plan: plan, expected=lambda *_: None)
    planner_inputs: Any = SimpleNamespace(quarantine=quarantine, forecasts=forecasts, guesses=None)
    entry = SimpleNamespace(model=model([100 * MIB] * 8), name="m")
    running: Any = SimpleNamespace(entry=entry, plan=chosen)
    figures = tuple(StageMeter(stage.name).figures() for stage in chosen.stages)
    summary = Summary("a", (5,), 30, 0, 0.0, 0.0, 0.1, 9.0, "stop", None, figures)
    async with asyncio.TaskGroup() as group:
        outcomes = Outcomes(planner_inputs, group, lambda: None)
        assert outcomes.finish(summary, running, alone=True).doubted == []
        await quarantine.add(ATTIC.id, "attic")
        (said,) = outcomes.finish(summary, running, alone=True).doubted
    assert said.startswith("attic computed part of this answer, and its numbers turned out to be wrong")


async def test_an_interrupted_answer_is_the_last_one_too_and_teaches_nothing(tmp_path: Path) -> None:
    made = model([100 * MIB] * 8)
    chosen = plan(DEN, [ATTIC], made, Workload(context=1024), [1, 6, 1])
    forecasts = ForecastHistory(tmp_path / "forecasts.json")
    planner_inputs: Any = SimpleNamespace(
        quarantine=Quarantine(tmp_path / "doubts.json"), forecasts=forecasts, guesses=None
    )
    entry = SimpleNamespace(model=made, name="m")
    running: Any = SimpleNamespace(entry=entry, plan=chosen, outcome=None)
    figures = tuple(StageMeter(stage.name).figures() for stage in chosen.stages)
    lost = Recovered("attic", Reason("stage_lost", {"machine": "attic"}), 0.1, 1.5)
    summary = Summary("a", (5,) * 20, 64, 0, 0.0, 0.0, 1.6, 9.0, "stop", None, figures)
    async with asyncio.TaskGroup() as group:
        outcomes = Outcomes(planner_inputs, group, lambda: None)
        outcomes.finish(replace(summary, recoveries=(lost,)), running, alone=True)
    assert (running.outcome.output_tokens, running.outcome.interruptions) == (20, 1)
    assert forecasts.snapshot().answers == 0
