"""A breakdown of the time per token: compute, relay, TLS, Python, waiting, and imbalance."""

from __future__ import annotations

import contextlib
import re
import shutil
import signal
import statistics
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench import report
from bench.children import Place
from bench.job import Bench, say
from bench.pool_side import CLIENT, Node, PoolSide
from bench.rounds import Questions, tune
from bench.sides import Answered, EngineSide, Side

TITLE = "Where the time goes"
SHORT_PROMPT = 64
SAMPLES_PER_SECOND = 250
PROFILER_START_SECONDS = 2.0
PROFILER_END_SECONDS = 60.0

Spent = dict[str, float]  # seconds: `wall`, and the CPU time of each process by name
MOST_SPOTS = 15
# Waiting threads, which use no CPU time even if a sampler counts them.
WAITS = ("select (selectors", "_do_waitpid (asyncio", "_worker (concurrent", "wait (threading")
_LINE = re.compile(r":\d+\)$")  # `write (ssl.py:123)` -> the function without the line


def hot_spots(folded: str, most: int = MOST_SPOTS) -> list[tuple[str, float]]:
    """Return the topmost functions of the sampled stacks with their fractions of all samples, in descending order.

    Samples of functions that only wait are excluded.
    """
    counts: Counter[str] = Counter()
    for line in folded.splitlines():
        stack, _, number = line.rpartition(" ")
        top = _LINE.sub(")", stack.rsplit(";", 1)[-1])
        if stack and number.isdigit() and not any(wait in top for wait in WAITS):
            counts[top] += int(number)
    total = counts.total()
    return [(spot, count / total) for spot, count in counts.most_common(most)]


def profile(bench: Bench) -> None:
    """Measure the whole model and the pool again, process by process."""
    options = replace(bench.options, streams=0)
    places = [Place(cpus=(core,)) for core in options.cores]
    questions = Questions(options.seed, bench.model.n_vocab)
    with bench.family() as family:
        whole = EngineSide("whole", family, options, places[0])
        homes = bench.homes / "profile"
        pool = PoolSide(family, bench.options, places, homes, bench.model.n_layers)
        for side in (whole, pool):
            best = bench.tuned.get(side.name) or tune(side, options, questions, say)
            side.use(best.alone)
        kinds = {"decode": decode, "prefill": prefill, "together": together}
        if not bench.options.streams:
            del kinds["together"]
        profiled: dict[str, Any] = {
            kind: {side.name: middle([measure(side, bench, questions, n) for n in range(bench.options.runs)])
                   for side in ((whole, pool) if kind != "together" else (pool,))}
            for kind, measure in kinds.items()
        }  # fmt: skip
        profiled["hot_spots"] = sampled(pool, bench, questions)
    bench.add("profile", profiled, markdown(profiled))


def decode(side: Side, bench: Bench, questions: Questions, n: int) -> Spent:
    """Return the cost of decoding one token.

    It is the difference between a long and a one-token answer, divided by the number of further tokens.
    """
    n_out = bench.options.output
    short = side.ask(questions.prompts(f"profile short {n}", 1, SHORT_PROMPT), 1)
    long = side.ask(questions.prompts(f"profile long {n}", 1, SHORT_PROMPT), n_out)
    (times,) = long.line.times
    spent = {k: v - short.cpu_seconds.get(k, 0.0) for k, v in long.cpu_seconds.items()}
    return {k: v / (n_out - 1) for k, v in (spent | {"wall": times[-1] - times[0]}).items()}


def prefill(side: Side, bench: Bench, questions: Questions, n: int) -> Spent:
    answered = side.ask(questions.prompts(f"profile prefill {n}", 1, bench.options.prompt), 1)
    return answered.cpu_seconds | {"wall": answered.line.first_seconds[0]}


def together(side: Side, bench: Bench, questions: Questions, n: int) -> Spent:
    o = bench.options
    prompts = questions.prompts(f"profile many {n}", o.streams, o.many_prompt)
    answered: Answered = side.ask(prompts, o.many_output)
    wall = max(stream[-1] for stream in answered.line.times)
    return answered.cpu_seconds | {"wall": wall}


def middle(runs: Sequence[Spent]) -> Spent:
    """Return the median of each entry over all runs."""
    return {name: statistics.median(run.get(name, 0.0) for run in runs) for name in runs[0]}


def losses(whole: Spent, pool: Spent) -> list[tuple[str, float]]:
    """Split the time per token into the compute time of the whole model and each additional cost of the pool."""
    workers = sum(s for name, s in pool.items() if name.endswith("/worker"))
    base = sum(seconds for name, seconds in whole.items() if name != "wall")
    other_processes = {n: s for n, s in pool.items() if n != "wall" and not n.endswith("/worker")}
    client = other_processes.pop(CLIENT, 0.0)
    known = workers + client + sum(other_processes.values())
    return [
        ("the whole model's compute", base),
        ("more compute in the split workers (embedding, graph, pipe, sampling)", workers - base),
        *((f"{name}: driver, relay, frames, TLS, Python", s) for name, s in other_processes.items()),
        ("the benchmark, asking and listening", client),
        ("nobody computes: wake-ups, sockets, other machines' turn to start", pool["wall"] - known),
        ("all of it", pool["wall"]),
    ]


def busy(spent: Spent) -> dict[str, float]:
    """Return the CPU time of each machine and the time lost to imbalance and waiting, as fractions of wall time."""
    machines: dict[str, float] = {}
    for name, seconds in spent.items():
        if name not in ("wall", CLIENT):
            machine = name.split("/", 1)[0]
            machines[machine] = machines.get(machine, 0.0) + seconds
    wall, most = spent["wall"], max(machines.values())
    mean = sum(machines.values()) / len(machines)
    shares = {f"{machine} busy": seconds / wall for machine, seconds in machines.items()}
    lost = {"lost by imbalance": (most - mean) / wall, "lost while the busiest waits": 1 - most / wall}
    return shares | lost


def sampled(pool: PoolSide, bench: Bench, questions: Questions) -> dict[str, Any]:
    """Return the functions in which each node's Python spends its time while decoding, if py-spy is installed."""
    if not shutil.which("py-spy"):
        return {"not_measurable": "py-spy is not installed"}
    prompt = questions.prompts("profile sampled", 1, SHORT_PROMPT)
    logs = bench.options.out / "logs"
    with contextlib.ExitStack() as stack:
        raws = {node.name: stack.enter_context(watched(node, logs)) for node in pool.nodes}
        pool.ask(prompt, bench.options.output)
    return {n: hot_spots(raw.read_text() if raw.exists() else "") for n, raw in raws.items()}


@contextlib.contextmanager
def watched(node: Node, logs: Path) -> Iterator[Path]:
    """Sample the stacks of a node during the block. Yield the file with the samples."""
    raw = logs / f"{node.name}.stacks"
    command = [
        "py-spy", "record", "--pid", str(node.child.process.pid), "--format", "raw",
        "--rate", str(SAMPLES_PER_SECOND), "--output", str(raw), "--duration", "3600",
    ]  # fmt: skip
    watcher = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(PROFILER_START_SECONDS)
    try:
        yield raw
    finally:
        watcher.send_signal(signal.SIGINT)  # it then writes its file
        watcher.wait(PROFILER_END_SECONDS)


def markdown(profiled: dict[str, Any]) -> str:
    steps = losses(profiled["decode"]["whole"], profiled["decode"]["pool"])
    rows = [[words, f"{1000 * s:.2f}", f"{100 * s / steps[-1][1]:.1f} %"] for words, s in steps]
    parts = [f"## {TITLE}\n", "One decoded token of one stream, medians:\n"]
    parts.append(report.table(["part", "ms", "share"], rows))
    for kind in ("prefill", "together"):
        if kind in profiled:
            spent = profiled[kind]["pool"]
            shares = [[words, f"{100 * share:.1f} %"] for words, share in busy(spent).items()]
            parts.append(f"{kind}, {spent['wall']:.2f} s:\n")
            parts.append(report.table(["of the time", "share"], shares))
    for node, spots in profiled["hot_spots"].items():
        if isinstance(spots, list):
            lines = [[words, f"{100 * share:.1f} %"] for words, share in spots]
            parts.append(report.table([f"{node}: function", "of its samples"], lines))
    return "\n".join(parts)
