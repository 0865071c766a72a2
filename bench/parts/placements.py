"""Forecasts compared with measurements for many households, each planned from its own measurements."""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.children import Children, Place
from bench.job import Bench, say
from bench.make_model import make
from bench.parts.transfer import join
from bench.pool_side import Node, pair
from bench.quota import NoQuota, quotas
from bench.rounds import Questions
from bench.shaped_link import NoLink
from testbed.fault_link import Faults, cable

TITLE = "Forecast against measured"
LAYERS = 8  # half of the benchmark's model, so that a quarter of a core finishes in time
OUTPUT = 48
ASKED = 3  # requests per placement; the median counts
DECODE_BAR, TTFT_BAR, WORST_BAR = 0.15, 0.20, 0.35
ROOM = "phforecast"  # the name given to our own namespace
MBIT, MS = 1e6, 1e-3


@dataclass(frozen=True, slots=True)
class Household:
    """Machines, given by their fraction of a core with the host first, and the links from the host to the others."""

    cores: tuple[float, ...]
    links: tuple[Faults | None, ...] = ()  # None for this computer's own loopback
    split: tuple[int, ...] | None = None  # None for the planner's choice

    @property
    def words(self) -> str:
        links = [_words(link) for link in self.links]
        shares = [f"{round(100 * share)} %" for share in self.cores]
        rest = [f"{share} by {link}" for share, link in zip(shares[1:], links, strict=True)]
        return ", ".join([shares[0], *rest])


def _words(link: Faults | None) -> str:
    if link is None:
        return "loopback"
    rate = f"{link.rate_bits_per_s / MBIT:.0f} Mbit/s" if link.rate_bits_per_s else "any rate"
    return f"{rate} + {link.delay_s / MS:.0f} ms"


def wire(mbit: float, delay_ms: float = 0.0) -> Faults:
    return Faults(delay_s=delay_ms * MS, rate_bits_per_s=mbit * MBIT)


HOUSEHOLDS = (
    Household((1.0,)),
    Household((0.5,)),
    Household((0.25,)),
    Household((0.8, 0.8), (None,), (1, 4, 3)),
    Household((0.8, 0.4), (None,), (1, 3, 4)),
    Household((0.5, 1.0), (None,), (1, 6, 1)),
    Household((0.8, 0.25), (None,), (1, 1, 6)),
    Household((0.8, 0.8), (wire(1000),), (1, 4, 3)),
    Household((0.8, 0.8), (wire(100),), (1, 4, 3)),
    Household((0.8, 0.8), (wire(50, 2),), (1, 4, 3)),
    Household((0.8, 0.8), (wire(0, 5),), (1, 4, 3)),
    Household((0.8, 0.6), (wire(100, 10),), (1, 3, 4)),
    Household((0.5, 0.5, 0.5), (None, None), (1, 3, 3, 1)),
    Household((0.8, 0.5, 0.5), (wire(100, 2), wire(0, 5)), (1, 3, 2, 2)),
)
SLOW = Household((0.8, 0.25), (wire(50, 10),))  # chosen so that the second machine does not help


@dataclass(frozen=True, slots=True)
class Compared:
    """The forecast for a placement, and the medians of its measurements."""

    household: str
    placement: str
    forecast_ttft_s: float
    ttft_s: float
    forecast_tok_s: float
    tok_s: float

    @property
    def errors(self) -> tuple[float, float]:
        """The relative errors of the forecasts for the first token and for decoding."""
        return self.forecast_ttft_s / self.ttft_s - 1, self.forecast_tok_s / self.tok_s - 1


def placements(bench: Bench) -> None:
    """Measure all households one after another, then one from which the planner leaves a machine out."""
    model = bench.options.model.with_name(f"forecast-{LAYERS}-layers.gguf")
    if not model.exists():
        make(model, LAYERS)
    comparisons: list[Compared] = []
    try:
        with _own_namespace():
            for number, household in enumerate(HOUSEHOLDS):
                with _built(bench, household, f"forecast-{number}") as host:
                    comparisons.append(_compared(bench, host, model, household, household.split))
                say(_line(comparisons[-1]))
            with _built(bench, SLOW, "forecast-slow") as host:
                chosen = _compared(bench, host, model, SLOW, None)
                forced = _compared(bench, host, model, SLOW, (1, 3, 4))
    except (NoLink, NoQuota) as reason:
        bench.cannot("placements", TITLE, str(reason))
        return
    data = {
        "placements": [asdict(comparison) for comparison in comparisons],
        "left_out": {"chosen": asdict(chosen), "forced": asdict(forced)},
    }
    bench.add("placements", data, markdown(comparisons, chosen, forced))


@contextlib.contextmanager
def _built(bench: Bench, household: Household, name: str) -> Iterator[Node]:
    """Start and pair the nodes of a household. Yield its host."""
    with ExitStack() as stack:
        groups = stack.enter_context(quotas(household.cores))
        family = stack.enter_context(bench.family())
        homes, flags = (bench.homes / name, ["--lend", bench.options.lend, "--limit", bench.options.lend])
        places = [
            Place((core,), group)
            for core, group in zip(pinned(household.cores, bench.options.cores), groups, strict=True)
        ]
        place = places[0]
        host = Node(family, f"{name}-host", homes / "host", place, flags)
        for number, link in enumerate(household.links, 1):
            _add(stack, family, host, places[number], link, number, homes)
        yield host


def pinned(shares: Sequence[float], cores: Sequence[int]) -> list[int]:
    """Assign each machine to a core that has room for its share, so that sharing is not left to chance.

    The largest shares are placed first. Raises NoQuota if they do not fit.
    """
    free = dict.fromkeys(cores, 1.0)
    pins = [0] * len(shares)
    for machine in sorted(range(len(shares)), key=lambda n: -shares[n]):
        core = max(free, key=lambda candidate: free[candidate])
        if free[core] + 1e-9 < shares[machine]:
            raise NoQuota(f"{len(cores)} cores have no room for machines of {tuple(shares)}")
        free[core] -= shares[machine]
        pins[machine] = core
    return pins


def _add(
    stack: ExitStack, family: Children, host: Node, place: Place, link: Faults | None, number: int,
    homes: Path,
) -> None:  # fmt: skip
    name = f"lender-{number}"
    flags = ["--lend", "4GiB", "--limit", "4GiB"]
    if link is None:
        pair(host, Node(family, name, homes / name, place, flags))
        return
    space, net = f"phf{os.getpid()}n{number}", f"10.98.{number}"
    stack.enter_context(_namespace(space))
    stack.enter_context(cable(ROOM, space, link, net))
    there = Place(place.cpus, place.cgroup, space)
    lender = Node(family, name, homes / name, there, flags, talks=False)
    join(host, lender, space, f"{net}.1")


def _compared(bench: Bench, host: Node, model: Path, household: Household, split: tuple[int, ...] | None) -> Compared:
    body = {"path": str(model), "name": None}
    name = host.control.finish("/models", body)["model"]["name"]
    request: dict[str, Any] = {"model": name, "context": 1024, "measure": True}
    loaded = host.control.finish("/load", request | ({"split": list(split)} if split else {}))
    questions = Questions(bench.options.seed, bench.model.n_vocab)
    answers = [_ask(host, questions.prompts(f"forecast {n}", 1, 512)[0]) for n in range(ASKED)]
    stages = loaded["loaded"]["stages"]
    return Compared(
        household.words,
        "+".join(str(stage["last"] - stage["first"]) for stage in stages),
        answers[0]["predicted"]["ttft_s"],
        statistics.median(answer["ttft_s"] for answer in answers),
        answers[0]["predicted"]["decode_tok_s"],
        statistics.median(answer["decode_tok_s"] for answer in answers),
    )


def _ask(host: Node, prompt: list[int]) -> dict[str, Any]:
    order = {
        "prompt_ids": prompt, "max_tokens": OUTPUT, "ignore_end": True,
        "guesses": False, "sampling": {"temperature": 0},
    }  # fmt: skip
    return host.control.finish("/ask", order)


@contextlib.contextmanager
def _namespace(name: str) -> Iterator[None]:
    _ip("netns", "add", name)
    try:
        _ip("-n", name, "link", "set", "lo", "up")
        yield
    finally:
        subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


@contextlib.contextmanager
def _own_namespace() -> Iterator[None]:
    """Give the current network namespace a name, which the simulated cables need."""
    _ip("netns", "attach", ROOM, str(os.getpid()))
    try:
        yield
    finally:
        subprocess.run(["ip", "netns", "del", ROOM], check=False, capture_output=True)


def _ip(*words: str) -> None:
    try:
        done = subprocess.run(["ip", *words], check=False, capture_output=True, text=True)
    except OSError as error:
        raise NoLink(f"ip (iproute2) cannot be run: {error}") from error
    if done.returncode:
        raise NoLink(f"ip {' '.join(words)}: {done.stderr.strip()}")


def markdown(comparisons: list[Compared], chosen: Compared, forced: Compared) -> str:
    """Return the table, the limits, and the case in which a machine is left out."""
    first = [abs(comparison.errors[0]) for comparison in comparisons]
    decode = [abs(comparison.errors[1]) for comparison in comparisons]
    rows = "\n".join(f"| {_line(comparison)} |" for comparison in comparisons)
    left_out = "agree" if (chosen.tok_s > forced.tok_s) == ("+" not in chosen.placement) else "differ"
    return f"""## {TITLE}

{len(comparisons)} households, a prompt of 512 tokens, {OUTPUT} out, {ASKED} times each (median).
Forecast from speeds and links measured just before, without any correction learned.

| machines | layers | first token, forecast | measured | off | tok/s, forecast | measured | off |
|---|---|---|---|---|---|---|---|
{rows}

First token: median {statistics.median(first):.0%} (bar {TTFT_BAR:.0%}), worst {max(first):.0%} (bar {WORST_BAR:.0%}).
Decoding: median {statistics.median(decode):.0%} (bar {DECODE_BAR:.0%}), worst {max(decode):.0%} (bar {WORST_BAR:.0%}).

Left out: {chosen.household}: the planner chose {chosen.placement}, which does {chosen.tok_s:.1f} tok/s
with the first token after {chosen.ttft_s:.1f} s; with both machines, {forced.placement}, it is {forced.tok_s:.1f} tok/s
and {forced.ttft_s:.1f} s.
Plan and measurement {left_out}.
"""


def _line(comparison: Compared) -> str:
    first, decode = comparison.errors
    return (
        f"{comparison.household} | {comparison.placement} | {comparison.forecast_ttft_s:.2f} s"
        f" | {comparison.ttft_s:.2f} s | {first:+.0%}"
        f" | {comparison.forecast_tok_s:.2f} | {comparison.tok_s:.2f} | {decode:+.0%}"
    )
