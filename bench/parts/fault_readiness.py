"""The cost of fault tolerance when nothing fails, measured by comparing ordinary nodes with stripped-down ones."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench import report
from bench.bars import STEADY, compare
from bench.children import Place
from bench.figures import Figures, alone, together
from bench.job import Bench, say
from bench.pool_side import PoolSide
from bench.rounds import WARM_TOKENS, Questions, line_of
from bench.sides import Answered

TITLE = "Ready for faults, and not"
BARE_NODE = (sys.executable, "-m", "bench.parts.node_without_readiness")


class BareSide(PoolSide):
    """A household of nodes without any fault tolerance."""

    name = "bare"
    program = BARE_NODE


SIDES = (PoolSide, BareSide)


def steady(bench: Bench) -> None:
    """Load both households with the same split and measure them in alternation.

    Both are restarted in each round. Where a process happens to lie in memory and caches makes it a few percent
    faster or slower for its lifetime, which is more than the cost to be measured.
    """
    options, places = bench.options, [Place(cpus=(core,)) for core in bench.options.cores]
    questions = Questions(options.seed, bench.model.n_vocab)
    rounds = [_round(places, questions, bench, n) for n in range(options.runs)]
    figures = {side.name: [_figures(answers[side.name]) for answers in rounds] for side in SIDES}
    same = all(a.ids == b.ids for answers in rounds for a, b in zip(*answers.values(), strict=True))
    results = compare(STEADY, figures)
    about = (
        f"{len(places)} machines of a core each, one answer and {options.streams} at once; {options.runs} rounds, each "
        "with nodes of its own, by turns and never both at work. Bare: no heartbeats, no deadlines, no second channel, "
        "nothing ahead, no watch over "
        f"owner or worker (bench/parts/node_without_readiness.py). Every answer the same: {'yes' if same else 'NO'}.\n"
    )
    text = f"## {TITLE}\n\n{about}\n{report.figures_table(figures)}\n{report.bars_table(results)}"
    bench.add("steady", {"rounds": figures, "bars": results, "same": same}, text)


def _round(places: list[Place], questions: Questions, bench: Bench, n: int) -> dict[str, list[Answered]]:
    """Ask both households the same questions, in an order that alternates between rounds. Return their answers."""
    options, answers = bench.options, dict[str, list[Answered]]()
    single = questions.prompts(f"steady {n}", 1, options.prompt)
    many = questions.prompts(f"steady {n} many", options.streams, options.many_prompt)
    bench.homes.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=bench.homes) as homes, bench.family() as family:
        sides = [
            kind(family, options, places, Path(homes) / kind.name, bench.model.n_layers)
            for kind in (SIDES if n % 2 == 0 else SIDES[::-1])
        ]
        for side in sides:
            side.use(side.settings()[0])
            side.ask(questions.prompts("warm", 1, options.prompt), WARM_TOKENS)
        for side in sides:
            answers[side.name] = [side.ask(single, options.output)]
            if many:
                answers[side.name].append(side.ask(many, options.many_output))
            say(f"steady, round {n + 1} {side.name}: {line_of(_figures(answers[side.name]))}")
    return {side.name: answers[side.name] for side in SIDES}


def _figures(answered: list[Answered]) -> Figures:
    first, *more = answered
    figures: dict[str, Any] = dict(alone(first.line))
    for answer in more:
        figures |= together(answer.line)
    return figures
