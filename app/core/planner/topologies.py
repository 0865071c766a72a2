"""One machine, a split, replicas: each shape that a model can have in a measured household, at its best. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.core.ids import MachineId
from app.core.model import Model
from app.core.planner.forecast import forecast, spread, whole_forecast
from app.core.planner.placement import ONE_PIPELINE, Candidate, Forecast, PlannedStage, Shape, Workload, pipelines
from app.core.planner.replicas import Stages, mixtures, whole, whole_on
from app.core.planner.split_search import INFINITE, Search


@dataclass(frozen=True, slots=True)
class Option:
    """A shape at its best."""

    shape: Shape
    stages: tuple[PlannedStage, ...]
    forecast: Forecast

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(stage.name for stage in self.stages))

    @property
    def machines(self) -> frozenset[MachineId]:
        return frozenset(stage.machine for stage in self.stages)

    def layers(self, machine: MachineId) -> int:
        """How many layers this machine holds."""
        return sum(len(stage.layers) for stage in self.stages if stage.machine == machine)

    def held_bytes(self, machine: MachineId) -> int:
        """What this machine holds."""
        return sum(stage.total_bytes for stage in self.stages if stage.machine == machine)


class Household:
    """A host and lenders for one model and workload. All of them were measured."""

    def __init__(self, host: Candidate, lenders: Sequence[Candidate], model: Model, workload: Workload) -> None:
        self.host, self.lenders, self.model, self.workload = host, tuple(lenders), model, workload
        self._by_id = {machine.id: machine for machine in (host, *lenders)}
        self.search = Search(host, lenders, model, workload) if model.boundaries else None

    def options(self) -> list[Option]:
        """The best of each shape that fits."""
        found = (self._alone(), self._split(INFINITE), self._replicas())
        return [option for option in found if option is not None]

    def below(self, request_s: float, shapes: frozenset[Shape] = ONE_PIPELINE) -> Option | None:
        """The best of these shapes that is one pipeline, if its request_s is below this."""
        found = (
            self._alone() if Shape.ONE_MACHINE in shapes else None,
            self._split(request_s) if Shape.SPLIT in shapes else None,
        )
        options = [o for o in found if o is not None and o.forecast.request_s < request_s]
        return min(options, key=lambda option: option.forecast.request_s, default=None)

    def with_also(self, option: Option, machine: MachineId) -> Forecast | None:
        """The machines of an option and this one, at their best; None when no such split fits."""
        if self.search is None:
            return None
        found = self.search.best([self.search.set_of(option.machines | {machine})])
        return self._known(found.stages) if found else None

    def _alone(self) -> Option | None:
        alone = self._whole(self.host)
        if alone.total_bytes > self.host.lends_bytes:
            return None
        known = whole_forecast(self.host, self.model, self.workload, self.workload.users)
        return Option(Shape.ONE_MACHINE, (alone,), known)

    def _split(self, below_s: float) -> Option | None:
        if self.search is None:
            return None
        found = self.search.best(self.search.all_sets(), below_s)
        return Option(Shape.SPLIT, found.stages, self._known(found.stages)) if found else None

    def _replicas(self) -> Option | None:
        """The model as often as it pays, each for some of the users: whole on lenders, and on the host or in a
        split of its; None for fewer than two."""
        if self.workload.users < 2:
            return None
        wholes = whole_on(self.lenders, self.model, self.workload)
        quickest = sorted(wholes, key=lambda one: (self._request_s(one), one.name, one.machine))
        found = [self._several(stages) for stages in mixtures(self._split_without, quickest)]
        if (alone := self._alone()) is not None:
            found.insert(0, self._several((*alone.stages, *wholes)))
        options = [option for option in found if option is not None]
        return min(options, key=lambda option: option.forecast.request_s, default=None)

    def _several(self, stages: Stages) -> Option | None:
        """These pipelines, but those on lenders that would serve nobody."""
        parts = pipelines(stages)
        users = spread(parts, self._by_id, self.model, self.workload)
        first, *others = zip(parts, users, strict=True)
        used = (*first[0], *(one for part, n in others if n for one in part))
        if len(pipelines(used)) < 2:
            return None
        return Option(Shape.REPLICAS, used, self._known(used))

    def _split_without(self, others: frozenset[MachineId]) -> Stages:
        """Of the splits that leave these machines out, the one that is best if it serves everybody."""
        if self.search is None:
            return ()
        left = set(self.search.set_of(others))
        sets = [chosen for chosen in self.search.all_sets() if not left & set(chosen)]
        found = self.search.best(sets)
        return found.stages if found else ()

    def _request_s(self, stage: PlannedStage) -> float:
        machine = self._by_id[stage.machine]
        return whole_forecast(machine, self.model, self.workload, self.workload.users).request_s

    def _whole(self, machine: Candidate) -> PlannedStage:
        return whole(machine, self.model, self.workload)

    def _known(self, stages: tuple[PlannedStage, ...]) -> Forecast:
        known = forecast(stages, self._by_id, self.model, self.workload)
        assert known is not None
        return known
