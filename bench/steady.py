"""What readiness for faults costs while nothing fails: nodes as they are against nodes without it, by turns."""

from __future__ import annotations

import sys
from typing import Any

from bench import report
from bench.bars import STEADY, compare
from bench.children import Place
from bench.figures import Figures, alone, together
from bench.job import Bench, say
from bench.pool import PoolSide
from bench.rounds import WARM_TOKENS, Questions, told
from bench.sides import Answered

TITLE = "Ready for faults, and not"
READY, BARE = "pool", "bare"
BARE_NODE = (sys.executable, "-m", "bench.bare")


class BareSide(PoolSide):
    """A household of nodes that would not survive a fault."""

    name = BARE
    program = BARE_NODE


def steady(bench: Bench) -> None:
    """Both households stay loaded with the same split, and only one is asked at a time."""
    options, places = bench.options, [Place(cpus=(core,)) for core in bench.options.cores]
    homes, asked = bench.homes / "steady", Questions(options.seed, bench.model.n_vocab)
    with bench.family() as family:
        sides = [
            kind(family, options, places, homes / kind.name, bench.model.n_layers)
            for kind in (PoolSide, BareSide)
        ]
        for side in sides:
            side.use(side.settings()[0])
            side.ask(asked.prompts("warm", 1, options.prompt), WARM_TOKENS)
        rounds = [_round(sides, asked, bench, n) for n in range(options.runs)]
    figures = {side.name: [_figures(one[side.name]) for one in rounds] for side in sides}
    same = all(a.ids == b.ids for one in rounds for a, b in zip(*one.values(), strict=True))
    results = compare(STEADY, figures)
    about = (
        f"{len(places)} machines of a core each, one answer and {options.streams} at once; {options.runs} rounds by "
        "turns, never both at work. Bare: no heartbeats, no deadlines, no second channel, nothing ahead, no watch over "
        f"owner or worker (bench/bare.py). Every answer the same: {'yes' if same else 'NO'}.\n"
    )
    text = f"## {TITLE}\n\n{about}\n{report.figures_table(figures)}\n{report.bars_table(results)}"
    bench.add("steady", {"rounds": figures, "bars": results, "same": same}, text)


def _round(
    sides: list[PoolSide], asked: Questions, bench: Bench, n: int
) -> dict[str, list[Answered]]:
    """The same questions to each, whichever was last the other time first; in the order of `sides`."""
    options, found = bench.options, dict[str, list[Answered]]()
    one = asked.prompts(f"steady {n}", 1, options.prompt)
    many = asked.prompts(f"steady {n} many", options.streams, options.many_prompt)
    for side in sides if n % 2 == 0 else sides[::-1]:
        found[side.name] = [side.ask(one, options.output)]
        if many:
            found[side.name].append(side.ask(many, options.many_output))
        say(f"steady, round {n + 1} {side.name}: {told(_figures(found[side.name]))}")
    return {side.name: found[side.name] for side in sides}


def _figures(answered: list[Answered]) -> Figures:
    first, *more = answered
    figures: dict[str, Any] = dict(alone(first.line))
    for one in more:
        figures |= together(one.line)
    return figures
