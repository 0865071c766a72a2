"""The best placement of each topology in a measured household: one machine, a split, or replicas.

The host always takes part in replicas, because only the host has the vocabulary, which answers with a grammar need. The
host's replica is a split if the whole model does not fit on it, or if machines that are too small for the whole model
would otherwise be idle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from app.core.errors import DoesNotFit, Reason
from app.core.ids import MachineId
from app.core.model import Model
from app.core.planner.forecast import forecast, users_per_pipeline, whole_forecast
from app.core.planner.memory_plan import plan_by_memory
from app.core.planner.placement import (
    ONE_PIPELINE,
    Candidate,
    Forecast,
    Plan,
    PlannedStage,
    Topology,
    Workload,
    pipelines,
)
from app.core.planner.split_search import INFINITE, SplitSearch
from app.core.planner.stage_memory import planned_stage
from backends.contract import Layers, Role

Stages = tuple[PlannedStage, ...]


@dataclass(frozen=True, slots=True)
class TopologyOption:
    """A topology and its best placement."""

    topology: Topology
    stages: tuple[PlannedStage, ...]
    forecast: Forecast

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(stage.name for stage in self.stages))

    @property
    def machines(self) -> frozenset[MachineId]:
        return frozenset(stage.machine for stage in self.stages)

    def layers(self, machine: MachineId) -> int:
        """Return how many layers are on this machine."""
        return sum(len(stage.layers) for stage in self.stages if stage.machine == machine)

    def held_bytes(self, machine: MachineId) -> int:
        """Return how many bytes this machine holds."""
        return sum(stage.total_bytes for stage in self.stages if stage.machine == machine)


class TopologySearch:
    """The search for the best topology for one model and workload. The host and all lenders must have been measured."""

    def __init__(self, host: Candidate, lenders: Sequence[Candidate], model: Model, workload: Workload) -> None:
        self.host, self.lenders, self.model, self.workload = host, tuple(lenders), model, workload
        self._by_id = {machine.id: machine for machine in (host, *lenders)}
        self.search = SplitSearch(host, lenders, model, workload) if model.cuts.boundaries else None

    def options(self) -> list[TopologyOption]:
        """Return the best placement of each topology that fits."""
        best_of_each = (self._alone(), self._split(INFINITE), self._replicas())
        return [option for option in best_of_each if option is not None]

    def below(self, request_s: float, topologies: frozenset[Topology] = ONE_PIPELINE) -> TopologyOption | None:
        """Return the best option of these topologies whose request takes less than `request_s`, or None.

        Replicas are not considered.
        """
        candidates = (
            self._alone() if Topology.ONE_MACHINE in topologies else None,
            self._split(request_s) if Topology.SPLIT in topologies else None,
        )
        options = [o for o in candidates if o is not None and o.forecast.request_s < request_s]
        return min(options, key=lambda option: option.forecast.request_s, default=None)

    def with_also(self, option: TopologyOption, machine: MachineId) -> Forecast | None:
        """Return the best forecast for a split over the machines of an option plus this one.

        Return None if no split fits.
        """
        if self.search is None:
            return None
        split = self.search.best([self.search.set_of(option.machines | {machine})])
        return self._known(split.stages) if split else None

    def _alone(self) -> TopologyOption | None:
        alone = self._whole(self.host)
        if alone.total_bytes > self.host.lends_bytes:
            return None
        known = whole_forecast(self.host, self.model, self.workload, self.workload.users)
        return TopologyOption(Topology.ONE_MACHINE, (alone,), known)

    def _split(self, below_s: float) -> TopologyOption | None:
        if self.search is None:
            return None
        split = self.search.best(self.search.all_sets(), below_s)
        return TopologyOption(Topology.SPLIT, split.stages, self._known(split.stages)) if split else None

    def _replicas(self) -> TopologyOption | None:
        """Return the best set of replicas, or None if fewer than two are worthwhile.

        Each replica serves some of the users. Lenders hold the whole model, as does the host unless it leads a split.
        """
        if self.workload.users < 2:
            return None
        wholes = whole_stages(self.lenders, self.model, self.workload)
        quickest = sorted(wholes, key=lambda stage: (self._request_s(stage), stage.name, stage.machine))
        candidates = [self._several(stages) for stages in mixed_replicas(self._split_without, quickest)]
        if (alone := self._alone()) is not None:
            candidates.insert(0, self._several((*alone.stages, *wholes)))
        options = [option for option in candidates if option is not None]
        return min(options, key=lambda option: option.forecast.request_s, default=None)

    def _several(self, stages: Stages) -> TopologyOption | None:
        """Return these pipelines as one option, without pipelines on lenders that would serve no users."""
        parts = pipelines(stages)
        users = users_per_pipeline(parts, self._by_id, self.model, self.workload)
        first, *replicas = zip(parts, users, strict=True)
        used = (*first[0], *(stage for part, n in replicas if n for stage in part))
        if len(pipelines(used)) < 2:
            return None
        return TopologyOption(Topology.REPLICAS, used, self._known(used))

    def _split_without(self, reserved: frozenset[MachineId]) -> Stages:
        """Return the best split that uses none of these machines, rated as if it served all users."""
        if self.search is None:
            return ()
        left = set(self.search.set_of(reserved))
        sets = [chosen for chosen in self.search.all_sets() if not left & set(chosen)]
        split = self.search.best(sets)
        return split.stages if split else ()

    def _request_s(self, stage: PlannedStage) -> float:
        machine = self._by_id[stage.machine]
        return whole_forecast(machine, self.model, self.workload, self.workload.users).request_s

    def _whole(self, machine: Candidate) -> PlannedStage:
        return whole(machine, self.model, self.workload, is_host=True)

    def _known(self, stages: tuple[PlannedStage, ...]) -> Forecast:
        known = forecast(stages, self._by_id, self.model, self.workload)
        assert known is not None
        return known


def whole(machine: Candidate, model: Model, workload: Workload, *, is_host: bool) -> PlannedStage:
    """Return a stage with the whole model on this machine."""
    return planned_stage(machine, Role.WHOLE, Layers(0, model.n_layers), model, workload, is_host=is_host)


def whole_stages(lenders: Sequence[Candidate], model: Model, workload: Workload) -> list[PlannedStage]:
    """Return a stage with the whole model for each lender on which it fits."""
    if not model.cuts.boundaries:  # there is no file for lenders if the family cannot be cut
        return []
    candidates = [(whole(lender, model, workload, is_host=False), lender.lends_bytes) for lender in lenders]
    return [stage for stage, lends_bytes in candidates if stage.total_bytes <= lends_bytes]


def replicas_by_memory(host: Candidate, lenders: Sequence[Candidate], model: Model, workload: Workload) -> Plan:
    """Return replicas planned by memory alone, with the whole model on each lender on which it fits.

    If necessary, the host splits the model with the other lenders, and also with the smallest lenders that could hold
    the whole model. Raises DoesNotFit.
    """
    wholes = whole_stages(lenders, model, workload)
    lends = {lender.id: lender.lends_bytes for lender in lenders}
    largest = sorted(wholes, key=lambda stage: (-lends[stage.machine], stage.name, stage.machine))
    for n_whole in range(len(largest), 0, -1):
        kept = {stage.machine for stage in largest[:n_whole]}
        remaining = [lender for lender in lenders if lender.id not in kept]
        try:
            first = plan_by_memory(host, remaining, model, workload)
        except DoesNotFit:
            continue
        kept_whole = [stage for stage in wholes if stage.machine in kept]
        return _together(first.stages, kept_whole, (host, *lenders), model, workload)
    raise DoesNotFit("replicas_need_two", model=model.name, machine=host.name)


def with_whole_replicas(first: Plan, lenders: Sequence[Candidate], model: Model) -> Plan:
    """Return a forced plan, with the whole model added on every other lender on which it fits. Raises DoesNotFit."""
    used = {stage.machine for stage in first.stages}
    unused = [lender for lender in lenders if lender.id not in used]
    wholes = whole_stages(unused, model, first.workload)
    if not wholes:
        raise DoesNotFit("replicas_need_two", model=model.name, machine=first.stages[0].name)
    together = _together(first.stages, wholes, first.machines, model, first.workload)
    return replace(together, machines=first.machines)


def mixed_replicas(
    split_without: Callable[[frozenset[MachineId]], Stages], wholes: Iterable[PlannedStage]
) -> Iterable[Stages]:
    """Yield a split plus the whole model on the first of these machines, then on the first two, and so on.

    split_without: returns the host's best split without these machines, or () if there is none.
    """
    kept: Stages = ()
    for whole_stage in wholes:
        kept = (*kept, whole_stage)
        if first := split_without(frozenset(stage.machine for stage in kept)):
            yield (*first, *kept)


def with_replaced_pipeline(plan: Plan, place: int, part: Plan, model: Model) -> Plan:
    """Return the placement with other stages for one of its pipelines.

    The new stages may be on machines that were not used before.
    """
    parts = list(pipelines(plan.stages))
    parts[place] = part.stages
    stages = tuple(stage for stages in parts for stage in stages)
    machines = {machine.id: machine for machine in (*plan.machines, *part.machines)}
    known = forecast(stages, machines, model, plan.workload)
    return replace(plan, stages=stages, forecast=known, machines=tuple(machines.values()))


def forecast_of(plan: Plan, present: Sequence[PlannedStage], model: Model) -> Forecast | None:
    """Forecast the stages that are present. Return None if there are none or if any was not measured."""
    machines = {machine.id: machine for machine in plan.machines}
    return forecast(present, machines, model, plan.workload) if present else None


def replicas_reason(stages: Stages, whole: str, mixed: str, **facts: str | int | float) -> Reason:
    """Return the reason that states the number of replicas.

    Its code is `whole` if all replicas hold the whole model, otherwise `mixed`.
    """
    first, *replicas = pipelines(stages)
    split = len({stage.machine for stage in first})
    if split == 1:
        return Reason(whole, {"machines": len(replicas) + 1, **facts})
    return Reason(mixed, {"machines": split, "others": len(replicas), **facts})


def _together(
    first: Stages, wholes: Sequence[PlannedStage], machines: tuple[Candidate, ...], model: Model, workload: Workload
) -> Plan:
    stages = (*first, *wholes)
    known = forecast(stages, {machine.id: machine for machine in machines}, model, workload)
    why = replicas_reason(stages, "plan_replicas_chosen", "plan_replicas_chosen_mixed")
    return Plan(stages, workload, (why,), known)
