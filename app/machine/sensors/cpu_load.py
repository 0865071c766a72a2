"""The processor load of other programs."""

from __future__ import annotations

import time

import psutil

WATCHED_S = 0.3


class OtherProgramsLoad:
    """The cores that other programs keep busy between two looks: not this process, and not its child `pid`."""

    def __init__(self, pid: int) -> None:
        """Raises psutil.Error when the child is gone."""
        self._ours = (psutil.Process(), psutil.Process(pid))
        self._busy_s, self._at_s = self._now()

    def look(self) -> float:
        """Return the average since the last look. Raises psutil.Error when the child is gone."""
        busy_s, at_s = self._now()
        spent_s, passed_s = busy_s - self._busy_s, at_s - self._at_s
        self._busy_s, self._at_s = busy_s, at_s
        return max(0.0, spent_s / passed_s) if passed_s > 0 else 0.0

    def _now(self) -> tuple[float, float]:
        """Return the seconds that others have computed so far, and when."""
        every = psutil.cpu_times()
        # those of guests are counted among the user's, too
        busy_s = every.user + every.system + sum(getattr(every, k, 0.0) for k in ("nice", "irq", "softirq"))
        return busy_s - sum(map(_used_s, self._ours)), time.monotonic()


def other_programs_share() -> float:
    """Return the share of all cores that other programs use, 0 to 1; blocks for a moment."""
    me = psutil.Process()
    before_s, began_s = _used_s(me), time.monotonic()
    every = psutil.cpu_percent(WATCHED_S) / 100
    n_cores = psutil.cpu_count() or 1
    own = (_used_s(me) - before_s) / ((time.monotonic() - began_s) * n_cores)
    return min(1.0, max(0.0, every - own))


def _used_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system
