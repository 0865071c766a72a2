"""The network traffic and CPU time of ten paired idle nodes, each on its own simulated computer."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench import report
from bench.job import Bench, say
from testbed.computers import Computer, started
from testbed.namespaces import Lan, NoNamespaces, lan

TITLE = "Ten nodes at rest"
NODES = 10
SETTLE_S = 100.0  # until each pair has measured its link once
MOST_BYTES_PER_S, MOST_CPU_SHARE = 2000.0, 0.01
LATE_S = 10.0


@dataclass(frozen=True, slots=True)
class Rest:
    """The figures of one node over the measured time."""

    bytes_per_s: float
    cpu_share: float  # of one core


def ten(bench: Bench) -> None:
    """Pair the nodes, wait until they have settled, then measure."""
    seconds = bench.options.idle_seconds
    try:
        with ExitStack() as stack:
            network = stack.enter_context(lan(NODES))
            computers = [Computer(network, n, bench.homes / f"ten-{n}") for n in range(NODES)]
            for computer in computers:
                stack.callback(computer.end)
            _paired(computers)
            say(f"ten: {NODES} nodes paired; they settle for {SETTLE_S:.0f} s")
            time.sleep(SETTLE_S)
            watched_nodes = watched(network, computers, seconds)
    except NoNamespaces as reason:
        bench.cannot("ten", TITLE, str(reason))
        return
    sent, spent = (
        [watched_node.bytes_per_s for watched_node in watched_nodes],
        [watched_node.cpu_share for watched_node in watched_nodes],
    )
    rows = [
        ["sent", f"{min(sent) / 1e3:.2f}–{max(sent) / 1e3:.2f} kB/s", "2 kB/s",
         "yes" if max(sent) < MOST_BYTES_PER_S else "NO"],
        ["computed", f"{100 * min(spent):.2f}–{100 * max(spent):.2f} % of a core", "1 %",
         "yes" if max(spent) < MOST_CPU_SHARE else "NO"],
    ]  # fmt: skip
    table = report.table(["each node", "lowest–highest", "bar", "holds"], rows)
    bench.add("ten", {"sent": sent, "spent": spent}, f"## {TITLE}, over {seconds:.0f} s\n\n{table}")


def _paired(computers: list[Computer]) -> None:
    for computer in computers:
        Path(computer.root).mkdir(parents=True, exist_ok=True)
    started(computers)
    first, *lenders = computers
    for other in lenders:
        window = first.ask("POST", "/pairing", {"role": "use_and_lend"})
        order = {"address": window["address"], "code": window["code"]}
        joined = other.ask("POST", "/pairing/join", order)
        if "machine" not in joined:
            raise RuntimeError(f"a node could not join: {joined}")
        late = time.monotonic() + LATE_S
        while first.ask("GET", "/status")["pairing"] is not None and time.monotonic() < late:
            time.sleep(0.1)


def watched(network: Lan, computers: list[Computer], seconds: float) -> list[Rest]:
    """Return the bytes sent and the CPU time used by each node within `seconds`."""
    nodes = [psutil.Process(c.process.pid) for c in computers if c.process is not None]
    began = time.monotonic()
    before = [(network.sent_bytes(n), _cpu_s(node)) for n, node in enumerate(nodes)]
    say(f"ten: watching for {seconds:.0f} s")
    time.sleep(seconds)
    took = time.monotonic() - began
    return [
        Rest((network.sent_bytes(n) - sent) / took, (_cpu_s(node) - spent) / took)
        for n, (node, (sent, spent)) in enumerate(zip(nodes, before, strict=True))
    ]


def _cpu_s(node: psutil.Process) -> float:
    return sum(node.cpu_times()[:2])
