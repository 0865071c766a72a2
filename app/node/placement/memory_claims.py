"""What one placement has of each machine's memory, and what it is about to take."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from app.core.ids import MachineId
from app.core.planner.plan import PlannedStage
from app.node.placement.placement_state import PlacementState
from app.node.placement.stages import Placing


class Holds:
    """Of one placement: the pipelines that are open of it."""

    def __init__(self, state: PlacementState) -> None:
        self._state = state
        self.placings: list[Placing] = []  # one for each pipeline that is open, or opens
        self.is_loaded = False  # all of it was open once

    def ahead(self) -> list[PlannedStage]:
        """What other machines hold in memory for a loss that may come."""
        if self._state.is_several:
            return []
        return [stage for one in self.placings for stage in one.ahead(self._state.plan)]

    async def give_up_ahead(self, machines: Collection[MachineId]) -> None:
        """Another model needs the memory that lies ahead there: it is back, and can be laid again later."""
        if any(stage.machine in machines for stage in self.ahead()):  # else it is not waited for
            for one in list(self.placings):
                await one.give_up_ahead(self._state.plan, machines)

    def here(self, me: MachineId) -> tuple[int, int]:
        """Bytes of this machine that it holds or is about to, and of these what is not taken from the
        free memory yet. What changes places counts once."""
        if not self.is_loaded:
            planned = bytes_on(me, self._state.plan.stages)
            return planned, planned
        own = comes = 0
        for one in self.placings:
            held = bytes_on(me, one.held())
            most = max(held, bytes_on(me, one.claimed.stages) if one.claimed else 0)
            own, comes = own + most, comes + most - held
        return own, comes

    def end(self) -> None:
        """What it held until now is known on: lenders give it back, and say so, a little later."""
        self.placings = list(self.placings)  # whoever opened them forgets them in the old one

    def released(self, present: Iterable[PlannedStage], *, over: bool) -> dict[MachineId, int]:
        """Bytes that each machine gives back, beside what it says is free. present: of the plan, what is not lost;
        over: it has ended."""
        if over or not self.is_loaded:
            return _sums((*present, *self.ahead()))
        host = self._state.plan.host
        held = _sums(one for placing in self.placings for one in placing.held())
        return {key: n for key, n in (held | {host: self.here(host)[0]}).items() if n}


def _sums(stages: Iterable[PlannedStage]) -> dict[MachineId, int]:
    found: dict[MachineId, int] = {}
    for stage in stages:
        found[stage.machine] = found.get(stage.machine, 0) + stage.total_bytes
    return found


def bytes_on(machine: MachineId, stages: Iterable[PlannedStage]) -> int:
    """What these take of that machine."""
    return sum(stage.total_bytes for stage in stages if stage.machine == machine)
