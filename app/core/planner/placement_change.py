"""The cost of changing a placement, and whether a better one is worth it. Pure.

Layers that stay where they are need no transfer and no loading. So when a machine is lost, there are two
candidates: the best placement on the remaining machines, and the old one with only the lost runs moved. The one
that finishes a running request first is chosen. If nothing is lost, only a clearly better placement is worth moving
to, and only while nobody is waiting for an answer.

A machine that has become far slower is also a reason to change. Longer contexts slow all machines alike, so each
machine's slowdown is compared with that of the machine that changed least.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice, permutations

from app.core.errors import DoesNotFit, Reason
from app.core.ids import MachineId
from app.core.model import Model
from app.core.planner.placement import Candidate, Forecast, Part, Plan, PlannedStage, Topology
from app.core.planner.plan import plan

MOST_TRIES = 24  # ways to assign the lost runs to idle machines: four machines in every order
MARGIN = 0.85  # a better placement must take less than this share of the current request time (hysteresis)
QUIET_S = 10.0  # time without any request before layers are moved only for speed
AHEAD_SHARE = 0.5  # share of a spare machine's lent memory to fill; the rest is kept for its own requests
SETTLED_S = 60.0  # time between two such moves, and after a recovery, so that brief changes are ignored


def kept_runs(before: Plan, now: Plan, model: Model) -> tuple[Plan, ...]:
    """Return plans on the machines of `now` that leave every run where it was if its machine is still there.

    The runs of missing machines go to machines that hold nothing. There may be no such plan.
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


def moving_s(
    plan: Plan, moving: Iterable[PlannedStage], sent: Collection[PlannedStage], load_bytes_per_s: float
) -> float:
    """Return the time until all stages of a plan can compute. Each machine receives its missing layers and loads them.

    sent: those of `moving` whose layers are already on their machine's disk. The machines work in parallel.
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


def soonest(plans: Sequence[Plan], moving_seconds: Sequence[float]) -> int:
    """Return the index of the plan that finishes a waiting request first.

    If several are equal, the first wins, since that is the planner's own choice.
    """
    known = all(plan.forecast is not None for plan in plans)

    def ends_s(n: int) -> float:
        forecast = plans[n].forecast
        return moving_seconds[n] + (forecast.request_s if known and forecast else 0.0)

    return min(range(len(plans)), key=ends_s)


def is_clearly_better(now: Forecast | None, then: Forecast | None) -> bool:
    """Return whether requests would be shorter by a margin. An unmeasured placement is no reason to move."""
    return now is not None and then is not None and then.request_s < MARGIN * now.request_s


def may_move(now_s: float, last_asked_s: float, last_placed_s: float) -> bool:
    """Return whether layers may be moved only for speed.

    They may not during an answer or soon after one, nor soon after they were placed.
    """
    return now_s - last_asked_s >= QUIET_S and now_s - last_placed_s >= SETTLED_S


def may_load_ahead(needs_bytes: int, lends_bytes: int) -> bool:
    """Return whether a spare machine's memory may be filled with layers that may never be needed.

    Otherwise only its disk is used.
    """
    return needs_bytes <= AHEAD_SHARE * lends_bytes


SLOWER = 5.0  # slowdown against its best step time, relative to the other machines (SAFETY.md 6)
LEAST_S = 0.005  # in shorter steps, the computer's other work matters as much
SLOW_FOR_S = 600.0  # time before anything is placed there again: a processor cools down, a game ends


def best_steps(known: Mapping[MachineId, float], now: Mapping[MachineId, float]) -> dict[MachineId, float]:
    """Return the shortest step so far of each machine that is computing now."""
    return {machine: min(step_s, known.get(machine, step_s)) for machine, step_s in now.items()}


def slow_machines(at_best: Mapping[MachineId, float], now: Mapping[MachineId, float]) -> dict[MachineId, float]:
    """Return the slowdown of each slow machine relative to the machine that changed least."""
    grown = {key: step_s / at_best[key] for key, step_s in now.items() if at_best.get(key)}
    if len(grown) < 2:
        return {}  # there is nothing to compare with
    least = max(1.0, min(grown.values()))
    times = {key: growth / least for key, growth in grown.items()}
    return {key: factor for key, factor in times.items() if factor >= SLOWER and now[key] >= LEAST_S}


def slowed_forecast(forecast: Forecast, machine: MachineId, times: float) -> Forecast:
    """Return the forecast of a placement in which one machine takes `times` as long as forecast."""
    busy_s = sum(share.busy_s for share in forecast.shares if share.machine == machine and share.part is Part.MACHINE)
    return replace(forecast, request_s=forecast.request_s + (times - 1) * busy_s)


def _with_takers(
    holders: Sequence[MachineId], there: dict[MachineId, Candidate], takers: Iterable[Candidate]
) -> list[Candidate]:
    taking = iter(takers)
    return [there[holder] if holder in there else next(taking) for holder in holders]
