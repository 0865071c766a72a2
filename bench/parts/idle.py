"""The CPU time and memory used by an idle node, alone and in a household."""

from __future__ import annotations

import contextlib
import time

import psutil

from bench import report
from bench.children import Place, cpu_seconds
from bench.job import Bench, say
from bench.pool_side import Node, pair

SETTLE_SECONDS = 10.0
TITLE = "An idle node"
MOST_CPU_SHARE = 0.01
MOST_BYTES = 150_000_000


def idle(bench: Bench) -> None:
    """Measure a node alone, then the same node paired with a second one."""
    seconds = bench.options.idle_seconds
    with bench.family() as family:
        first = Node(family, "idle-1", bench.homes / "idle-1", Place())
        figures = {"alone": watch(first, seconds)}
        second = Node(family, "idle-2", bench.homes / "idle-2", Place())
        pair(first, second)
        figures["paired"] = watch(first, seconds)
    rows = [
        [name, f"{100 * w['cpu_share']:.2f} %", f"{w['resident_bytes'] / 1e6:.0f} MB",
         f"{w['unique_bytes'] / 1e6:.0f} MB", f"{w['n_processes']:.0f}",
         "yes" if w["cpu_share"] < MOST_CPU_SHARE and w["resident_bytes"] < MOST_BYTES else "NO"]
        for name, w in figures.items()
    ]  # fmt: skip
    head = ["node", "of one core", "resident", "unique", "processes", "below 1 % and 150 MB"]
    bench.add("idle", figures, f"## {TITLE}, over {seconds:.0f} s\n\n{report.table(head, rows)}")


def watch(node: Node, seconds: float) -> dict[str, float]:
    """Return the fraction of a core and the memory used by a node and its children, once they have settled."""
    time.sleep(min(SETTLE_SECONDS, seconds))
    before, started = sum(cpu_seconds(node.child.family()).values()), time.monotonic()
    say(f"idle: watching {node.name} for {seconds:.0f} s")
    time.sleep(seconds)
    family = node.child.family()
    spent = sum(cpu_seconds(family).values()) - before
    memory = [sizes(process) for process in family]
    return {
        "cpu_share": spent / (time.monotonic() - started),
        "resident_bytes": sum(resident for resident, _ in memory),
        "unique_bytes": sum(unique for _, unique in memory),
        "n_processes": len(family),
    }


def sizes(process: psutil.Process) -> tuple[int, int]:
    """Return the resident memory of a process, and the part that it does not share with others, in bytes."""
    with contextlib.suppress(psutil.Error):
        full = process.memory_full_info()
        return full.rss, full.uss
    return 0, 0
