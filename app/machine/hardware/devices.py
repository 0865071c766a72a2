"""Main memory and processor of this computer, and the speed at which it copies memory."""

from __future__ import annotations

import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path

import psutil


@dataclass(frozen=True, slots=True)
class Memory:
    """Main memory, in bytes; `free_bytes` is what programs can still take without swapping."""

    total_bytes: int
    free_bytes: int


def memory() -> Memory:
    now = psutil.virtual_memory()
    return Memory(now.total, now.available)


def usable_cores() -> int:
    """Return the cores that this process may run on: a pinned or limited process counts only its own."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return psutil.cpu_count(logical=False) or os.cpu_count() or 1


def processor_name() -> str:
    """The processor as its maker calls it, or the architecture where the system does not tell."""
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
    """The median of a few copies of some megabytes. Blocks for some milliseconds."""
    source, measured = bytearray(TRIAL_BYTES), []
    for _ in range(TRIALS):
        began = time.perf_counter()
        bytes(source)
        measured.append((time.perf_counter() - began) / TRIAL_BYTES)
    return sorted(measured)[TRIALS // 2]
