"""The forecast of a placement that is in use, made anew when more is known of its machines."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable
from dataclasses import replace

from app.core.planner.placement import Candidate
from app.core.planner.topologies import forecast_of
from app.node.placement.placement import Placement
from app.node.planning.planner_inputs import PlannerInputs
from app.node.planning.planning import BATCH_ROWS
from app.node.snapshot import forecast_json

log = logging.getLogger(__name__)

REST_S = 3.0  # nobody asked for so long: a measurement is in nobody's way
MOST_TRIES = 200


def refresh_forecast(running: Placement, machines: Iterable[Candidate]) -> None:
    """Its forecast from these speeds and links; where one was not measured, it stays as it is."""
    seen = {one.id: one for one in machines}
    found = replace(running.plan, machines=tuple(_as_seen(one, seen.get(one.id)) for one in running.plan.machines))
    if (known := forecast_of(found, found.stages, running.entry.model)) is not None:
        running.state.plan = replace(found, forecast=known)
        running.state.described = {**running.state.described, "forecast": forecast_json(known)}


def _as_seen(machine: Candidate, now: Candidate | None) -> Candidate:
    if now is None:
        return machine
    return replace(machine, speed=now.speed, link=now.link, factor=now.factor, way_factor=now.way_factor)


async def measure_again(running: Placement, outlook: PlannerInputs) -> bool:
    """Measure what was doubted as soon as nobody asks, and reckon; whether all of it could be measured."""
    used = {stage.machine for stage in running.plan.stages}
    for _ in range(MOST_TRIES):
        await asyncio.sleep(REST_S)
        if time.monotonic() - running.asked_s < REST_S:
            continue
        speeds = await outlook.speeds(running.entry, BATCH_ROWS, lambda _: None)
        if all(speeds.get(machine) for machine in used):
            host, lenders = outlook.machines({}, speeds)
            refresh_forecast(running, (host, *lenders))
            log.info("%s: what its forecast was made from was measured again", running.entry.name)
            return True
    return False
