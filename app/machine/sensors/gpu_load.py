"""How busy other programs keep the graphics card, where NVIDIA's own tool is there to tell."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Sequence

Run = Callable[[Sequence[str]], str | None]

TOOL = "nvidia-smi"
FORM = "--format=csv,noheader,nounits"
BUSY = (TOOL, "--query-gpu=utilization.gpu", FORM)
APPS = (TOOL, "--query-compute-apps=pid", FORM)


def percent_of_others(run: Run, own_pids: Collection[int]) -> float | None:
    """How busy the busiest card is. None without the tool, and while a worker of ours computes on
    a card: the tool does not tell whose share is whose."""
    if shutil.which(TOOL) is None:
        return None
    percent = busiest(run(BUSY) or "")
    if percent and any(pid in own_pids for pid in pids(run(APPS) or "")):
        return None
    return percent


def busiest(text: str) -> float | None:
    """From one line a card: `37`, or `[N/A]` where it is not told."""
    found = [float(line) for line in map(str.strip, text.splitlines()) if line.isdecimal()]
    return max(found, default=None)


def pids(text: str) -> tuple[int, ...]:
    """From one line a process: `4242`."""
    return tuple(int(line) for line in map(str.strip, text.splitlines()) if line.isdecimal())
