"""This computer's processor and memory: their size, the load from other programs, and the memory copy speed."""

from __future__ import annotations

import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path

import psutil


@dataclass(frozen=True, slots=True)
class Memory:
    """The main memory, or the memory of a graphics card.

    free_bytes: the memory that programs can still use without swapping. most_bytes: the limit for all models together,
    or None for no limit.
    """

    total_bytes: int
    free_bytes: int
    most_bytes: int | None = None


def memory() -> Memory:
    usage = psutil.virtual_memory()
    return Memory(usage.total, usage.available)


def usable_cores() -> int:
    """Return how many cores this process may use, which may be fewer than the computer has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return psutil.cpu_count(logical=False) or os.cpu_count() or 1


def processor_name() -> str:
    """Return the processor's product name, or its architecture if the system does not report a name."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


TRIAL_BYTES = 16 << 20


TRIALS = 3


def memory_copy_s_per_byte() -> float:
    """Measure the seconds to copy one byte of memory as the median of three 16 MiB copies. Blocks for milliseconds."""
    source, measured = bytearray(TRIAL_BYTES), []
    for _ in range(TRIALS):
        began = time.perf_counter()
        bytes(source)
        measured.append((time.perf_counter() - began) / TRIAL_BYTES)
    return sorted(measured)[TRIALS // 2]


SAMPLE_S = 0.3


class OtherProgramsLoad:
    """A meter of the cores used by programs other than this process and its child `pid`."""

    def __init__(self, pid: int) -> None:
        """Take the first reading. Raises psutil.Error if the child has exited."""
        self._ours = (psutil.Process(), psutil.Process(pid))
        self._busy_s, self._at_s = self._now()

    def busy_cores(self) -> float:
        """Return the average number of busy cores since the last reading, or 0 if the system does not report it.

        Raises psutil.Error if the child has exited.
        """
        busy_s, at_s = self._now()
        spent_s, passed_s = busy_s - self._busy_s, at_s - self._at_s
        self._busy_s, self._at_s = busy_s, at_s
        return max(0.0, spent_s / passed_s) if passed_s > 0 else 0.0

    def _now(self) -> tuple[float, float]:
        """Return the total processor time of other programs and the current time, both in seconds."""
        try:
            times = psutil.cpu_times()
        except OSError:  # as in Wine, which does not report them
            return 0.0, time.monotonic()
        # the time of virtual machines is already included in the user time
        busy_s = times.user + times.system + sum(getattr(times, k, 0.0) for k in ("nice", "irq", "softirq"))
        return busy_s - sum(map(_used_s, self._ours)), time.monotonic()


def other_programs_share() -> float:
    """Return the share of all cores that other programs are using, from 0 to 1. Blocks for 0.3 s.

    It is 0 if the system does not report it.
    """
    me = psutil.Process()
    before_s, began_s = _used_s(me), time.monotonic()
    try:
        all_share = psutil.cpu_percent(SAMPLE_S) / 100
    except OSError:
        return 0.0
    n_cores = psutil.cpu_count() or 1
    own_share = (_used_s(me) - before_s) / ((time.monotonic() - began_s) * n_cores)
    return min(1.0, max(0.0, all_share - own_share))


def _used_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system
