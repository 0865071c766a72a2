"""How much of the processor other programs use now."""

from __future__ import annotations

import time

import psutil

WATCHED_S = 0.3


def others_share() -> float:
    """0 to 1, of all cores, without this process; blocks for a moment."""
    me = psutil.Process()
    before_s, began_s = _used_s(me), time.monotonic()
    every = psutil.cpu_percent(WATCHED_S) / 100
    n_cores = psutil.cpu_count() or 1
    own = (_used_s(me) - before_s) / ((time.monotonic() - began_s) * n_cores)
    return min(1.0, max(0.0, every - own))


def _used_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system
