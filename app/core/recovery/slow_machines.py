"""Which machine of a placement answers far slower than it did: hot, busy, or at a worse link. Pure.

Longer contexts slow all machines alike, so each is compared with the one that changed least.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from app.core.ids import MachineId
from app.core.planner.placement import Forecast, Part

SLOWER = 5.0  # times as long as at its best, beside the others (SAFETY.md 6)
LEAST_S = 0.005  # a step that is shorter than this: what else the computer does weighs as much
SLOW_FOR_S = 600.0  # nothing is placed there again before: a processor cools, a game ends


def best(known: Mapping[MachineId, float], now: Mapping[MachineId, float]) -> dict[MachineId, float]:
    """The shortest step of each machine that computes now."""
    return {machine: min(step_s, known.get(machine, step_s)) for machine, step_s in now.items()}


def degraded(at_best: Mapping[MachineId, float], now: Mapping[MachineId, float]) -> dict[MachineId, float]:
    """How many times as long each of these takes for a step, beside the one that changed least."""
    grown = {key: step_s / at_best[key] for key, step_s in now.items() if at_best.get(key)}
    if len(grown) < 2:
        return {}  # nothing to compare with
    least = max(1.0, min(grown.values()))
    times = {key: growth / least for key, growth in grown.items()}
    return {key: one for key, one in times.items() if one >= SLOWER and now[key] >= LEAST_S}


def slowed(forecast: Forecast, machine: MachineId, times: float) -> Forecast:
    """What was forecast of a placement, with one machine that takes so many times as long."""
    busy_s = sum(one.busy_s for one in forecast.shares if one.machine == machine and one.part is Part.MACHINE)
    return replace(forecast, request_s=forecast.request_s + (times - 1) * busy_s)
