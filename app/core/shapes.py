"""One machine, a split, replicas: each shape that a model can have in a measured household, at its best. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.core.forecast import forecast, spread, whole_forecast
from app.core.ids import MachineId
from app.core.model import Model
from app.core.placement import Candidate, Forecast, PlannedStage, Shape, Workload
from app.core.replicas import holders
from app.core.room import stage
from app.core.search import INFINITE, Search
from backends.contract import Layers, Role


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

    def __init__(
        self, host: Candidate, lenders: Sequence[Candidate], model: Model, workload: Workload
    ) -> None:
        self.host, self.lenders, self.model, self.workload = host, tuple(lenders), model, workload
        self._by_id = {machine.id: machine for machine in (host, *lenders)}
        self.search = Search(host, lenders, model, workload) if model.boundaries else None

    def options(self) -> list[Option]:
        """The best of each shape that fits."""
        found = (self._alone(), self._split(INFINITE), self._replicas())
        return [option for option in found if option is not None]

    def below(self, request_s: float) -> Option | None:
        """The best shape of one pipeline, if its request_s is below this."""
        found = (self._alone(), self._split(request_s))
        options = [o for o in found if o is not None and o.forecast.request_s < request_s]
        return min(options, key=lambda option: option.forecast.request_s, default=None)

    def with_also(self, option: Option, machine: MachineId) -> Forecast | None:
        """The machines of an option and this one, at their best; None when no such split fits."""
        if self.search is None:
            return None
        found = self.search.best([self.search.set_of(option.machines | {machine})])
        return self._known(found.stages) if found else None

    def _alone(self) -> Option | None:
        whole = self._whole(self.host)
        if whole.total_bytes > self.host.lends_bytes:
            return None
        known = whole_forecast(self.host, self.model, self.workload, self.workload.users)
        return Option(Shape.ONE_MACHINE, (whole,), known)

    def _split(self, below_s: float) -> Option | None:
        if self.search is None:
            return None
        found = self.search.best(self.search.all_sets(), below_s)
        return Option(Shape.SPLIT, found.stages, self._known(found.stages)) if found else None

    def _replicas(self) -> Option | None:
        """The whole model on as many machines as it pays, each for some of the users; None for fewer than two."""
        found = holders(self.host, self.lenders, self.model, self.workload)
        if len(found) < 2 or self.workload.users < 2:
            return None
        users = spread(found, self.model, self.workload)
        served = [n > 0 or one is self.host for one, n in zip(found, users, strict=True)]
        stages = tuple(
            self._whole(one) for one, is_used in zip(found, served, strict=True) if is_used
        )
        if len(stages) < 2:
            return None
        return Option(Shape.REPLICAS, stages, self._known(stages))

    def _whole(self, machine: Candidate) -> PlannedStage:
        layers = Layers(0, self.model.n_layers)
        return stage(machine, Role.WHOLE, layers, self.model, self.workload)

    def _known(self, stages: tuple[PlannedStage, ...]) -> Forecast:
        known = forecast(stages, self._by_id, self.model, self.workload)
        assert known is not None
        return known
