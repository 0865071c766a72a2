"""The duration of planning for random, fully measured households and models that may or may not fit."""

from __future__ import annotations

import time
from dataclasses import dataclass
from random import Random

from app.core.errors import DoesNotFit
from app.core.planner.placement import Candidate, Workload
from app.core.planner.plan import plan
from bench import report
from bench.figures import percentile
from bench.job import Bench, say
from testbed.households import MIB, machine, model, some_link, some_speed

TITLE = "The planner"
HOUSEHOLDS = 150  # of each kind
KINDS = ((8, 80, 0.05), (10, 126, 1.0))  # machines, layers, maximum seconds
FILL = (0.3, 0.6, 0.9, 1.3)  # share of the household's memory that the model needs; it does not fit above 1


@dataclass(frozen=True, slots=True)
class Thought:
    """The duration of a plan, and whether the model fit."""

    seconds: float
    fits: bool


def planner(bench: Bench) -> None:
    """Time many plans for each size of household."""
    rows, data = [], {}
    for n_machines, n_layers, most_s in KINDS:
        say(f"planner: {HOUSEHOLDS} households of {n_machines} machines, {n_layers} layers")
        chance = Random(bench.options.seed)
        plans = [thought(chance, n_machines, n_layers) for _ in range(HOUSEHOLDS)]
        for fits in (True, False):
            times = sorted(plan.seconds for plan in plans if plan.fits is fits)
            if not times:
                continue
            name = f"{n_machines} machines, {n_layers} layers, {'fits' if fits else 'does not fit'}"
            data[name] = times
            middle, worst = percentile(times, 0.5), times[-1]
            rows.append(
                [name, str(len(times)), f"{1000 * middle:.0f} ms", f"{1000 * worst:.0f} ms",
                 f"{1000 * most_s:.0f} ms", "yes" if worst < most_s else "NO"]
            )  # fmt: skip
    head = ["household", "plans", "median", "worst", "bar", "holds"]
    bench.add("planner", data, f"## {TITLE}\n\n{report.table(head, rows)}")


def thought(chance: Random, n_machines: int, n_layers: int) -> Thought:
    """Time a plan for a random household and a model that needs a random fraction of its memory."""
    lends = [chance.uniform(2_000, 24_000) for _ in range(n_machines)]
    host, *lenders = (
        machine(f"m{n}", mib, some_speed(chance), some_link(chance) if n else None) for n, mib in enumerate(lends)
    )
    share = chance.choice(FILL)
    layer_mib = share * sum(lends) / n_layers
    sizes = [int(layer_mib * chance.uniform(0.9, 1.1) * MIB)] * n_layers
    return timed(host, lenders, sizes, Workload(chance.choice([4096, 32768]), chance.choice([1, 4])))


def timed(host: Candidate, lenders: list[Candidate], sizes: list[int], work: Workload) -> Thought:
    made = model(sizes, width=4096)
    began = time.perf_counter()
    try:
        plan(host, lenders, made, work)
    except DoesNotFit:
        return Thought(time.perf_counter() - began, False)
    return Thought(time.perf_counter() - began, True)
