"""The time until the window appears, with and without a running node, and its memory and CPU use (Linux, Xvfb)."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import psutil

from bench import report
from bench.children import Place
from bench.job import Bench, say
from bench.pool_side import Node
from testbed.desktop import can_be_used, desktop, end

TITLE = "The window"
STARTS = 5
WARM_BAR_S, COLD_BAR_S, MEMORY_BAR_BYTES = 2.0, 4.0, 150_000_000
LATE_S, SETTLE_S, REST_S, LOOK_S = 20.0, 3.0, 10.0, 0.02
SEARCH = ("search", "--onlyvisible", "--name", "Poolhouse")
REST_BAR = 0.01  # of a core while nothing happens


def window(bench: Bench) -> None:
    """Start the window several times, with and without a running node."""
    if reason := can_be_used():
        bench.cannot("window", TITLE, reason)
        return
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        environment = desktop(stack, folder)
        with bench.family() as family:
            Node(family, "den", folder / "warm", Place(), ("--bind", "127.0.0.1", "--lend", "1GiB", "--limit", "1GiB"))
            warm = [_started(folder / "warm", environment) for _ in range(STARTS)]
        cold = [_started(folder / f"cold-{n}", environment) for n in range(STARTS)]
    rows = [
        _row("window there, node running", [run[0] for run in warm], WARM_BAR_S, "s"),
        _row("window there, node started with it", [run[0] for run in cold], COLD_BAR_S, "s"),
        _row("memory", [run[1] / 1e6 for run in warm + cold], MEMORY_BAR_BYTES / 1e6, "MB"),
        _row("at rest, % of a core", [100 * run[2] for run in warm], 100 * REST_BAR, "%"),
        _row("minimized, % of a core", [100 * run[3] for run in warm], 100 * REST_BAR, "%"),
    ]
    head = ["", "median", "lowest–highest", "bar", "holds"]
    data = {"warm": warm, "cold": cold}
    bench.add("window", data, f"## {TITLE}, {STARTS} starts each\n\n{report.table(head, rows)}")


def _row(name: str, values: list[float], most: float, unit: str) -> list[str]:
    middle = statistics.median(values)
    spread = f"{min(values):.2f}–{max(values):.2f} {unit}"
    return [name, f"{middle:.2f} {unit}", spread, f"{most:g} {unit}", "yes" if middle < most else "NO"]


def _started(home: Path, environment: dict[str, str]) -> tuple[float, float, float, float]:
    """Return the seconds until the window appears, its resident memory shortly afterwards, and its CPU use.

    The CPU use is given as fractions of a core, while the idle window is visible and while it is hidden.
    """
    say(f"window: {home.name}")
    began = time.monotonic()
    program = subprocess.Popen(
        [sys.executable, "-m", "app", "--home", str(home)], env=environment,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        while not _is_shown(environment):
            if time.monotonic() - began > LATE_S:
                raise RuntimeError("no window came")
            time.sleep(LOOK_S)
        shown_s = time.monotonic() - began
        time.sleep(SETTLE_S)
        process = psutil.Process(program.pid)
        rest = _share(process)
        held = float(process.memory_info().rss)
        _xdotool(environment, *SEARCH, "windowminimize", "%@")
        time.sleep(SETTLE_S)
        if _is_shown(environment):
            raise RuntimeError("the window cannot be minimized")
        return shown_s, held, rest, _share(process)
    finally:
        end(program)


def _share(process: psutil.Process) -> float:
    """Return the fraction of a core that the window uses while nothing happens."""
    before = sum(process.cpu_times()[:2])
    time.sleep(REST_S)
    return (sum(process.cpu_times()[:2]) - before) / REST_S


def _is_shown(environment: dict[str, str]) -> bool:
    return bool(_xdotool(environment, *SEARCH).strip())


def _xdotool(environment: dict[str, str], *words: str) -> bytes:
    return subprocess.run(["xdotool", *words], capture_output=True, check=False, env=environment).stdout
