"""The cost of changing a placement, and the decision whether a better placement is worth that cost.

Layers that do not move need neither a transfer nor loading. After the loss of a machine there are therefore two
candidates: the best placement on the remaining machines, and the old placement with only the lost runs moved. The one
that finishes a running request first is chosen. If no machine was lost, layers move only for a clearly better
placement, and only while nobody is waiting for an answer.

A machine that has become much slower is also a reason to change. Longer contexts slow down all machines alike, so each
machine's slowdown is compared with that of the machine that changed least.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice, permutations

from app.core.errors import DoesNotFit, Reason
from app.core.ids import MachineId
from app.core.model import Model
from app.core.planner.placement import Candidate, Forecast, Part, Plan, PlannedStage, Topology
from app.core.planner.plan import plan

MOST_TRIES = 24  # the limit on assignments of the lost runs to idle machines: all orders of four machines
# a better placement must take less than this fraction of the current request time, which prevents oscillation
MARGIN = 0.85
QUIET_S = 10.0  # the time without a request before layers move only to gain speed
# the fraction of a spare machine's lent memory that may be filled; the rest is kept for its own requests
AHEAD_SHARE = 0.5
SETTLED_S = 60.0  # the minimum time after layers were placed, such as by a recovery, so that brief changes are ignored
MOVED_S = 300.0  # the minimum time between two such moves


def plans_keeping_runs(before: Plan, now: Plan, model: Model) -> tuple[Plan, ...]:
    """Return plans on the machines of `now` that keep every run on its machine unless that machine is gone.

    The runs of lost machines move to machines that hold nothing. There may be no such plan.
    """
    if before.topology is Topology.REPLICAS or not now.machines:
        return ()
    host, *lenders_there = now.machines
    there = {machine.id: machine for machine in lenders_there}
    holders = [stage.machine for stage in before.stages[1:-1]]
    spare = [machine for machine in lenders_there if machine.id not in holders]
    n_gone = sum(holder not in there for holder in holders)
    split = [len(stage.layers) for stage in before.stages]
    plans: list[Plan] = []
    for takers in islice(permutations(spare, n_gone), MOST_TRIES):
        lenders = _with_takers(holders, there, takers)
        try:
            same = plan(host, lenders, model, now.workload, split)
        except DoesNotFit:
            continue
        if same.stages != now.stages:
            why = (Reason("plan_kept"),)
            plans.append(replace(same, reasons=why, machines=now.machines))
    return tuple(plans)


def move_duration_s(
    plan: Plan, moving: Iterable[PlannedStage], sent: Collection[PlannedStage], load_bytes_per_s: float
) -> float:
    """Return how long it takes until each machine has received and loaded the layers that the plan adds to it.

    moving: the stages to load. sent: the stages among them whose layers are already on their machine's disk. The
    machines work in parallel.
    """
    links = {machine.id: machine.link for machine in plan.machines}
    loads: dict[MachineId, float] = {}
    for stage in moving:
        link = links.get(stage.machine)
        seconds = stage.weight_bytes / load_bytes_per_s
        if link is not None and stage not in sent:
            seconds += stage.weight_bytes / max(1.0, link.out_bytes_per_s)
        loads[stage.machine] = loads.get(stage.machine, 0.0) + seconds
    return max(loads.values(), default=0.0)


def soonest_plan(plans: Sequence[Plan], moving_seconds: Sequence[float]) -> int:
    """Return the index of the plan that finishes a waiting request first.

    If several are equally fast, the first one wins because it is the planner's own choice.
    """
    known = all(plan.forecast is not None for plan in plans)

    def ends_s(n: int) -> float:
        forecast = plans[n].forecast
        return moving_seconds[n] + (forecast.request_s if known and forecast else 0.0)

    return min(range(len(plans)), key=ends_s)


def is_clearly_better(now: Forecast | None, then: Forecast | None) -> bool:
    """Return whether requests would be shorter by the required margin. Unmeasured placements are never better."""
    return now is not None and then is not None and then.request_s < MARGIN * now.request_s


def may_move(now_s: float, last_asked_s: float, last_placed_s: float, last_moved_s: float = -math.inf) -> bool:
    """Return whether layers may be moved for the sake of speed alone.

    They may not be moved during an answer, soon after one, soon after they were placed, or within MOVED_S of the last
    such move.
    """
    settled = now_s - last_placed_s >= SETTLED_S and now_s - last_moved_s >= MOVED_S
    return settled and now_s - last_asked_s >= QUIET_S


def may_load_ahead(needs_bytes: int, lends_bytes: int) -> bool:
    """Return whether a spare machine may load layers that may never be needed.

    Otherwise, they stay on its disk.
    """
    return needs_bytes <= AHEAD_SHARE * lends_bytes


# the slowdown from its best step time, relative to the other machines, at which a machine is slow (SAFETY.md 6)
SLOWER = 5.0
LEAST_S = 0.005  # for shorter steps, other work on the computer matters as much
SLOW_FOR_S = 600.0  # the time before layers may be placed there again: a processor cools down, or a game ends


def best_steps(known: Mapping[MachineId, float], now: Mapping[MachineId, float]) -> dict[MachineId, float]:
    """Return the shortest step time so far of each machine that is computing now."""
    return {machine: min(step_s, known.get(machine, step_s)) for machine, step_s in now.items()}


def slow_machines(at_best: Mapping[MachineId, float], now: Mapping[MachineId, float]) -> dict[MachineId, float]:
    """Return how much each slow machine has slowed down, relative to the machine that changed least."""
    grown = {key: step_s / at_best[key] for key, step_s in now.items() if at_best.get(key)}
    if len(grown) < 2:
        return {}  # there is nothing to compare with
    least = max(1.0, min(grown.values()))
    times = {key: growth / least for key, growth in grown.items()}
    return {key: factor for key, factor in times.items() if factor >= SLOWER and now[key] >= LEAST_S}


def slowed_forecast(forecast: Forecast, machine: MachineId, times: float) -> Forecast:
    """Return the forecast of a placement in which one machine takes `times` times as long as predicted."""
    busy_s = sum(share.busy_s for share in forecast.shares if share.machine == machine and share.part is Part.MACHINE)
    return replace(forecast, request_s=forecast.request_s + (times - 1) * busy_s)


def _with_takers(
    holders: Sequence[MachineId], there: dict[MachineId, Candidate], takers: Iterable[Candidate]
) -> list[Candidate]:
    taking = iter(takers)
    return [there[holder] if holder in there else next(taking) for holder in holders]
