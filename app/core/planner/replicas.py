"""A model more than once: the host's pipeline, and the whole of it on other machines at the same time. Pure.

The host is always part of one: it alone has the vocabulary, for answers of a given form. Where all of the model has
no room on it, or machines would idle that are too small for all of it, its pipeline is a split.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from app.core.errors import DoesNotFit, Reason
from app.core.ids import MachineId
from app.core.model import Model
from app.core.planner.forecast import forecast
from app.core.planner.memory_only_plan import plan_by_memory
from app.core.planner.placement import Candidate, Forecast, Plan, PlannedStage, Workload, pipelines
from app.core.planner.stage_memory import stage
from backends.contract import Layers, Role

Stages = tuple[PlannedStage, ...]


def whole(machine: Candidate, model: Model, workload: Workload) -> PlannedStage:
    """All of the model on this machine."""
    return stage(machine, Role.WHOLE, Layers(0, model.n_layers), model, workload)


def whole_on(lenders: Sequence[Candidate], model: Model, workload: Workload) -> list[PlannedStage]:
    """All of it, on each lender that has room for that."""
    if not model.boundaries:  # a family that cannot be cut has no file for lenders
        return []
    found = [(whole(one, model, workload), one.lends_bytes) for one in lenders]
    return [stage for stage, lends_bytes in found if stage.total_bytes <= lends_bytes]


def replicas_by_memory(host: Candidate, lenders: Sequence[Candidate], model: Model, workload: Workload) -> Plan:
    """Whole on each lender where it fits; the host splits it with the others, or with the least of those,
    if it must. Raises DoesNotFit."""
    wholes = whole_on(lenders, model, workload)
    lends = {one.id: one.lends_bytes for one in lenders}
    largest = sorted(wholes, key=lambda one: (-lends[one.machine], one.name, one.machine))
    for n_whole in range(len(largest), 0, -1):
        kept = {one.machine for one in largest[:n_whole]}
        others = [one for one in lenders if one.id not in kept]
        try:
            first = plan_by_memory(host, others, model, workload)
        except DoesNotFit:
            continue
        kept_whole = [one for one in wholes if one.machine in kept]
        return _together(first.stages, kept_whole, (host, *lenders), model, workload)
    raise DoesNotFit("replicas_need_two", model=model.name, machine=host.name)


def also_whole(first: Plan, lenders: Sequence[Candidate], model: Model) -> Plan:
    """What was given for the host's pipeline, and the whole model wherever else it fits. Raises DoesNotFit."""
    used = {one.machine for one in first.stages}
    others = [one for one in lenders if one.id not in used]
    wholes = whole_on(others, model, first.workload)
    if not wholes:
        raise DoesNotFit("replicas_need_two", model=model.name, machine=first.stages[0].name)
    together = _together(first.stages, wholes, first.machines, model, first.workload)
    return replace(together, machines=first.machines)


def mixtures(
    split_without: Callable[[frozenset[MachineId]], Stages], wholes: Iterable[PlannedStage]
) -> Iterable[Stages]:
    """A split beside the whole model on the first one, the first two and so on of these machines.

    split_without: the host's best split that leaves these machines to others; empty when there is none.
    """
    kept: Stages = ()
    for one in wholes:
        kept = (*kept, one)
        if first := split_without(frozenset(stage.machine for stage in kept)):
            yield (*first, *kept)


def with_part(plan: Plan, place: int, part: Plan, model: Model) -> Plan:
    """The same placement with other stages for one of its pipelines, maybe on machines that it did not know."""
    parts = list(pipelines(plan.stages))
    parts[place] = part.stages
    stages = tuple(stage for stages in parts for stage in stages)
    machines = {one.id: one for one in (*plan.machines, *part.machines)}
    known = forecast(stages, machines, model, plan.workload)
    return replace(plan, stages=stages, forecast=known, machines=tuple(machines.values()))


def forecast_of(plan: Plan, present: Sequence[PlannedStage], model: Model) -> Forecast | None:
    """How those of its stages do that are there; None where none is, or one was not measured."""
    machines = {one.id: one for one in plan.machines}
    return forecast(present, machines, model, plan.workload) if present else None


def several_reason(stages: Stages, whole: str, mixed: str, **facts: str | int | float) -> Reason:
    """How many there are, by one of two codes: all whole, or a split among them."""
    first, *others = pipelines(stages)
    split = len({stage.machine for stage in first})
    if split == 1:
        return Reason(whole, {"machines": len(others) + 1, **facts})
    return Reason(mixed, {"machines": split, "others": len(others), **facts})


def _together(
    first: Stages, wholes: Sequence[PlannedStage], machines: tuple[Candidate, ...], model: Model, workload: Workload
) -> Plan:
    stages = (*first, *wholes)
    known = forecast(stages, {one.id: one for one in machines}, model, workload)
    why = several_reason(stages, "plan_replicas_chosen", "plan_replicas_chosen_mixed")
    return Plan(stages, workload, (why,), known)
