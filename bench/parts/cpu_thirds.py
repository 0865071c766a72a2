"""Three machines on two cores, each limited by a CPU quota to a third of their time."""

from __future__ import annotations

from dataclasses import replace

from bench import report
from bench.bars import THREE, compare
from bench.children import Place
from bench.job import Bench, say
from bench.pool_side import PoolSide
from bench.quota import NoQuota, quotas
from bench.rounds import Questions, side_by_side, tune
from bench.sides import EngineSide, Side

TITLE = "Three machines, each with a third of the cores' time"
OUTPUT = 32  # mainly the time to the first token is measured; a few more tokens show the pace


def three(bench: Bench) -> None:
    """Measure one of these machines alone, then all three together."""
    options = replace(bench.options, streams=0, splits=tuple(s for s in bench.options.splits if len(s) == 4))
    options = replace(options, output=min(options.output, OUTPUT))
    try:
        with quotas([options.quota] * 4) as groups, bench.family() as family:
            places = [Place(cpus=options.cores, cgroup=group) for group in groups]
            homes = bench.homes / "three"
            sides: list[Side] = [
                EngineSide("whole", family, options, places[0]),
                PoolSide(family, options, places[1:], homes, bench.model.n_layers),
            ]
            questions = Questions(options.seed, bench.model.n_vocab)
            tuned = {side.name: tune(side, options, questions, say) for side in sides}
            measured = side_by_side(sides, tuned, options, questions, say)
    except NoQuota as reason:
        bench.cannot("three", TITLE, str(reason))
        return
    results = compare(THREE, {name: measurement.figures() for name, measurement in measured.items()})
    text = report.sides_markdown(f"{TITLE} ({options.quota:.3f} cores)", measured, tuned, results)
    bench.add("three", {"measured": measured, "tuned": tuned, "bars": results}, text)
