"""The machines that failed under answers lately, or answer far slower than they did; they get no layers for now. Pure.

Longer contexts slow all machines alike, so each machine's slowdown is compared with that of the one that changed least.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from app.core.ids import MachineId
from app.core.planner.placement import Forecast, Part
from app.core.recovery import fault_table
from app.core.recovery.fault_table import Fault
from app.core.recovery.recovery import Loss

KEPT_S = 600.0  # how long a failure is remembered
MOST = 2  # within that: the second one leaves the machine out
MOST_MACHINES = 64  # with remembered failures, at most

# An owner may say no as often as he likes. All else counts, also where a machine says that the model is bad: that is
# believed, and ends an answer by its word alone. Twice, and the next answers are computed elsewhere.
_NOT_COUNTED = frozenset({Fault.OWNER, Fault.HOUSEHOLD, Fault.NEWS})


class RecentFailures:
    """The recent failures of one household's machines. clock: monotonic seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._at_s: dict[str, list[float]] = {}

    def note(self, loss: Loss) -> None:
        """A machine was lost under what it computed, or ended it."""
        if not loss.machine or loss.leaves or fault_table.classify(loss.why).fault in _NOT_COUNTED:
            return
        times = self._at_s.pop(loss.machine, [])
        self._at_s[loss.machine] = [*times, self._clock()][-MOST:]
        while len(self._at_s) > MOST_MACHINES:
            del self._at_s[next(iter(self._at_s))]

    def forgive(self, machines: Iterable[str]) -> None:
        """An answer ended their processes, and is over: that one failure of each does not count."""
        for machine in machines:
            if times := self._at_s.get(machine):
                times.pop()

    def forget(self) -> None:
        """Forget all failures when a person places a model: every machine gets another chance."""
        self._at_s.clear()

    def left_out(self) -> frozenset[str]:
        """Return the machines that failed so often that the next placement avoids them, where it can."""
        since_s = self._clock() - KEPT_S
        return frozenset(machine for machine, times in self._at_s.items() if len(times) >= MOST and times[0] > since_s)


SLOWER = 5.0  # times as long as at its best, beside the others (SAFETY.md 6)


LEAST_S = 0.005  # a step that is shorter than this: what else the computer does weighs as much


SLOW_FOR_S = 600.0  # nothing is placed there again before: a processor cools, a game ends


def best_steps(known: Mapping[MachineId, float], now: Mapping[MachineId, float]) -> dict[MachineId, float]:
    """The shortest step of each machine that computes now."""
    return {machine: min(step_s, known.get(machine, step_s)) for machine, step_s in now.items()}


def slow_machines(at_best: Mapping[MachineId, float], now: Mapping[MachineId, float]) -> dict[MachineId, float]:
    """Return how many times as long each slow machine takes for a step, relative to the one that changed least."""
    grown = {key: step_s / at_best[key] for key, step_s in now.items() if at_best.get(key)}
    if len(grown) < 2:
        return {}  # nothing to compare with
    least = max(1.0, min(grown.values()))
    times = {key: growth / least for key, growth in grown.items()}
    return {key: factor for key, factor in times.items() if factor >= SLOWER and now[key] >= LEAST_S}


def slowed_forecast(forecast: Forecast, machine: MachineId, times: float) -> Forecast:
    """Return the forecast of a placement with one machine that takes `times` as long."""
    busy_s = sum(share.busy_s for share in forecast.shares if share.machine == machine and share.part is Part.MACHINE)
    return replace(forecast, request_s=forecast.request_s + (times - 1) * busy_s)
