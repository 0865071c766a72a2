"""The thread counts that nodes choose compared with fixed ones: alone, beside other work, and with three nodes."""

from __future__ import annotations

import contextlib
import os
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.machine.hardware.devices import other_programs_share
from bench import report
from bench.children import Children, Place
from bench.figures import Summary, summary
from bench.job import Bench, say
from bench.pool_side import Node, pair
from bench.quota import NoQuota, quotas
from bench.rounds import Questions

TITLE = "Threads, chosen and fixed"
OWN = 0  # the node chooses
BUSY = [sys.executable, "-c", "while True: pass"]
MANY = 8  # cores that one machine claims to have
MANY_QUOTA = 2.0  # cores of processor time in its control group's quota
PERIOD_US = 100_000  # of that quota, as in containers
WARM = 2  # answers before the first that counts
HOPELESS = 0.5  # of the best speed: slower fixed counts are dropped
DISTURBED = 0.1  # share of the processor used by other programs before a round
PROMPT, ASKED = 32, 128

Json = dict[str, Any]


@dataclass(slots=True)
class Case:
    """A situation, and the tokens per second for each thread count in each round."""

    words: str
    bar: float  # minimum ratio of the node's choice to the best fixed count
    speeds: dict[int, list[float]] = field(default_factory=dict)
    hopeless: dict[int, float] = field(default_factory=dict)  # dropped choices and their speeds
    disturbed: int = 0  # rounds before which other programs were computing

    def ratios(self) -> list[float]:
        """Return the ratio, in each round, to the fixed thread count that is best over all rounds."""
        best = self.speeds[self.best]
        return [own / other for own, other in zip(self.speeds[OWN], best, strict=True)]

    @property
    def best(self) -> int:
        fixed = {n: statistics.median(speeds) for n, speeds in self.speeds.items() if n != OWN}
        return max(fixed, key=lambda n: fixed[n])

    def row(self) -> list[str]:
        ratio = summary(self.ratios())
        fixed = "; ".join(
            [f"{n}: {_with_spread(summary(self.speeds[n]))}" for n in self.speeds if n != OWN]
            + [f"{n}: {speed:.1f}, once" for n, speed in self.hopeless.items()]
        )
        return [
            self.words,
            fixed,
            _with_spread(summary(self.speeds[OWN])),
            f"{ratio.median:.2f} ({ratio.low:.2f}–{ratio.high:.2f}, {ratio.n_runs})",
            f"{self.bar:.2f}",
            "yes" if ratio.median >= self.bar else "NO",
            str(self.disturbed),
        ]


def threads(bench: Bench) -> None:
    """Measure one situation after another, with all thread counts in alternation."""
    cases: list[Case] = []
    for measure in (_household, _alone, _beside, _many_cores):
        try:
            cases.append(measure(bench))
        except NoQuota as reason:
            say(f"threads: {measure.__name__} is not measurable: {reason}")
            continue
        say(f"threads: {' | '.join(cases[-1].row())}")
    head = ["situation", "fixed threads, tok/s", "chosen, tok/s", "chosen to best", "bar", "holds", "disturbed"]
    note = (
        f"Answers of {ASKED} tokens by turns, {bench.options.runs} rounds (median; lowest–highest, rounds) on "
        f"{os.cpu_count()} cores. Disturbed: rounds before which other programs used more than {DISTURBED:.0%} of the "
        "processor.\n"
    )  # fmt: skip
    table = report.table(head, [case.row() for case in cases])
    bench.add("threads", {"cases": cases}, f"## {TITLE}\n\n{note}\n{table}")


def _household(bench: Bench) -> Case:
    """Measure three nodes on these cores with an even split, compared with `--threads 1`."""
    n_layers = bench.model.n_layers
    share = n_layers // 4
    split = [share, share, n_layers - 3 * share, share]
    case = Case(f"three nodes on this computer, layers {'+'.join(map(str, split))}, f32", 0.875)
    with bench.family() as family:
        choices = {n: _nodes(bench, family, f"three-{n}", n, split=split, number="f32") for n in (1, OWN)}
        _rounds(bench, case, choices)
    return case


def _alone(bench: Bench) -> Case:
    case = Case("alone", 0.97)
    with bench.family() as family:
        every = len(bench.options.cores)
        choices = {n: _nodes(bench, family, f"alone-{n}", n) for n in (*range(1, every + 1), OWN)}
        _rounds(bench, case, choices)
    return case


def _beside(bench: Bench) -> Case:
    case = Case("beside one busy process", 0.8)
    with bench.family() as family:
        every = len(bench.options.cores)
        choices = {n: _nodes(bench, family, f"beside-{n}", n) for n in (*range(1, every + 1), OWN)}
        with busy_process(family):
            _rounds(bench, case, choices)
    return case


def _many_cores(bench: Bench) -> Case:
    case = Case(f"{MANY} cores, a quota of {MANY_QUOTA:.0f}, beside one busy process", 0.8)
    program = [sys.executable, "-m", "bench.parts.many_cores", str(MANY)]
    with quotas([MANY_QUOTA], PERIOD_US) as (group,), bench.family() as family:
        choices = {
            n: _nodes(bench, family, f"many-{n}", n, place=Place(cgroup=group), program=program)
            for n in (1, 2, 4, MANY, OWN)
        }
        with busy_process(family):
            _rounds(bench, case, choices)
    return case


@contextlib.contextmanager
def busy_process(family: Children, cores: Sequence[int] = ()) -> Iterator[None]:
    """Run a process that keeps a core busy during the block. `cores` limits it to some of them."""
    child = family.start("busy", BUSY, Place(tuple(cores)))
    try:
        yield
    finally:
        child.end()


@dataclass(frozen=True, slots=True)
class Loaded:
    """A node that has loaded the model, whole or split across its household."""

    host: Node
    model: str

    def ask(self, prompt: Sequence[int], n_out: int) -> float:
        order = {
            "model": self.model, "prompt_ids": list(prompt), "max_tokens": n_out, "ignore_end": True,
            "guesses": False, "sampling": {"temperature": 0},
        }  # fmt: skip
        return float(self.host.control.finish("/ask", order)["decode_tok_s"])


def _nodes(
    bench: Bench, family: Children, name: str, n_threads: int, *, split: Sequence[int] = (),
    number: str = "f16", place: Place = Place(), program: Sequence[str] | None = None,  # noqa: B008  frozen
) -> Loaded:  # fmt: skip
    homes: Path = bench.homes / name
    made = [
        Node(family, f"{name}-{machine}", homes / machine, place,
             ["--lend", bench.options.lend, "--limit", bench.options.lend], program=program, threads=n_threads)
        for machine in ("host", *(f"lender-{n}" for n in range(len(split) - 2)))
    ]  # fmt: skip
    host = made[0]
    for lender in made[1:]:
        pair(host, lender)
    body = {"path": str(bench.options.model), "name": None}
    model = host.control.finish("/models", body)["model"]["name"]
    order: Json = {"model": model, "number": number, "context": 512, "measure": False}
    order |= {"split": list(split)} if split else {"shape": "one"}
    host.control.finish("/load", order)
    return Loaded(host, model)


def _rounds(bench: Bench, case: Case, choices: dict[int, Loaded]) -> None:
    """Measure the thread counts in an order that alternates between rounds. Drop fixed ones that are far behind."""
    questions = Questions(bench.options.seed, bench.model.n_vocab)
    order = list(choices.items())
    for n in range(-WARM, bench.options.runs):
        [prompt] = questions.prompts(f"threads {n}", 1, PROMPT)
        if n >= 0 and other_programs_share() > DISTURBED + _expected(case):
            case.disturbed += 1
        speeds = {}
        for threads, loaded in order if n % 2 == 0 else order[::-1]:
            speeds[threads] = loaded.ask(prompt, ASKED)
        if n >= 0:
            for threads, speed in speeds.items():
                case.speeds.setdefault(threads, []).append(speed)
        else:
            least = HOPELESS * max(speeds.values())
            case.hopeless |= {k: v for k, v in speeds.items() if k != OWN and v < least}
            order = [(k, loaded) for k, loaded in order if k not in case.hopeless]
    case.speeds = {n: case.speeds[n] for n in sorted(case.speeds)}


def _expected(case: Case) -> float:
    """Return the fraction of the processor that the busy process of the benchmark uses."""
    return 1 / (os.cpu_count() or 1) if "busy" in case.words else 0.0


def _with_spread(summary: Summary) -> str:
    return f"{summary.median:.1f} ({summary.low:.1f}–{summary.high:.1f})"
