"""The map of the household: its frame rate and CPU cost while visible and hidden (Linux, Xvfb)."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from bench import report
from bench.children import ChildFailed
from bench.job import Bench, say
from testbed.desktop import can_be_used, desktop

TITLE = "The map"
MACHINES, WATCH_S, LONGEST_S = 8, 20.0, 240.0
FRAMES_BAR, CORE_BAR = (29.0, 0.1)  # a 33 ms timer, allowing for frames that coincide now and then
LAST_WORDS = 2_000  # characters of the other process's output
MOVES = "an answer runs"


def cluster_map(bench: Bench) -> None:
    """Measure the real Pool page with a household of eight machines and an answer running on all links."""
    if reason := can_be_used():
        bench.cannot("map", TITLE, reason)
        return
    say(f"map: {MACHINES} machines, four times {WATCH_S:.0f} s")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        data = measured(MACHINES, WATCH_S, desktop(stack, folder))
    rows = [_row(name, *figures) for name, figures in data.items()]
    head = ["", "pictures a second", "of a core", "bar", "holds"]
    bench.add("map", data, f"## {TITLE}, {MACHINES} machines\n\n{report.table(head, rows)}")


def measured(n_machines: int, seconds: float, environment: Mapping[str, str]) -> dict[str, tuple[float, float]]:
    """Return the frames per second and the fraction of a core used, for each state of the window."""
    finished = subprocess.run(
        [sys.executable, "-m", "bench.parts.map_window", str(n_machines), str(seconds)],
        capture_output=True, text=True, timeout=LONGEST_S, check=False, env=environment,
    )  # fmt: skip
    if finished.returncode:
        raise ChildFailed(finished.stderr[-LAST_WORDS:])
    data: dict[str, tuple[float, float]] = json.loads(finished.stdout)
    return data


def _row(name: str, frames: float, core: float) -> list[str]:
    if name == MOVES:
        bar, holds = f"30, {CORE_BAR:.0%}", frames >= FRAMES_BAR and core < CORE_BAR
    else:
        bar, holds = f"still, {CORE_BAR:.0%}", frames < FRAMES_BAR / 10 and core < CORE_BAR
    return [name, f"{frames:.1f}", f"{core:.1%}", bar, "yes" if holds else "NO"]
