"""Remembers how fast each machine of a placement was at its best, and which one is far slower now."""

from __future__ import annotations

from collections.abc import Mapping

from app.core.ids import MachineId
from app.core.recovery.slow_machines import SLOW_FOR_S, best, degraded


class Slowness:
    """Of one placement. Begins anew when its layers are placed anew; who was slow is remembered."""

    def __init__(self) -> None:
        self._best: dict[MachineId, float] = {}
        self._placed_s: float | None = None
        self._slow: dict[MachineId, tuple[float, float]] = {}  # since when, and how many times

    def look(self, steps: Mapping[MachineId, float], placed_s: float, now_s: float) -> None:
        """steps: seconds of one token on each machine, as it is known now."""
        if placed_s != self._placed_s:
            self._placed_s, self._best = placed_s, {}
        self._best = best(self._best, steps)
        found = degraded(self._best, steps)
        for machine, times in found.items():
            self._slow[machine] = now_s, times
        self._slow = {
            machine: (since, times)
            for machine, (since, times) in self._slow.items()
            if machine in found or (now_s - since < SLOW_FOR_S and machine not in steps)
        }

    @property
    def slow(self) -> dict[MachineId, float]:
        """How many times as long each takes; nothing is placed there meanwhile."""
        return {machine: times for machine, (_, times) in self._slow.items()}
