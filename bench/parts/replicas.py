"""Two one-core machines that each hold the whole model, compared with one machine under the same requests."""

from __future__ import annotations

from typing import Any

from bench import report
from bench.bars import REPLICAS, compare
from bench.children import ChildFailed, Place
from bench.figures import Figures, agreement, together
from bench.job import Bench, say
from bench.options import Options
from bench.pool_side import PoolSide
from bench.rounds import WARM_TOKENS, Questions, line_of
from bench.sides import Answered, Setting

TITLE = "Replicas: the model whole on two machines"
ONE = "one node"  # ours with defaults; the tuned engine alone is `whole` in the other parts
REQUESTS = 8  # at once

Json = dict[str, Any]


class WholeModelSide(PoolSide):
    """One or more machines, each with the whole model."""

    def __init__(self, *arguments: Any, name: str) -> None:
        super().__init__(*arguments)
        self.name = name

    def settings(self) -> list[Setting]:
        n = len(self.nodes)
        return [{"shape": "replicas" if n > 1 else "one", "users": REQUESTS // n}]

    def use(self, setting: Setting) -> None:
        """Load the model, once, with a slot for each request that a machine receives. Raises ChildFailed."""
        order = setting | {"model": self.model, "context": longest(self.options), "measure": False}
        self.loaded = self.host.control.finish("/load", order)["loaded"]
        machines = {stage["machine"] for stage in self.loaded["stages"]}
        if len(machines) != len(self.nodes):
            raise ChildFailed(f"{self.name} holds the model on {len(machines)} machines")


def longest(options: Options) -> int:
    return options.many_prompt + options.many_output


def replicas(bench: Bench) -> None:
    """Keep both households loaded, and measure them in alternation."""
    options, places = bench.options, [Place(cpus=(core,)) for core in bench.options.cores]
    homes, questions = bench.homes / "replicas", Questions(options.seed, bench.model.n_vocab)
    with bench.family() as family:
        sides = [
            WholeModelSide(family, options, some, homes / name, bench.model.n_layers, name=name)
            for name, some in (("pool", places), (ONE, places[:1]))
        ]
        for side in sides:
            side.use(side.settings()[0])
            side.ask(questions.prompts("warm", REQUESTS, options.many_prompt), WARM_TOKENS)
        rounds = [_round(sides, questions, options, n) for n in range(options.runs)]
    figures: dict[str, list[Figures]] = {
        side.name: [together(answers[side.name].line) for answers in rounds] for side in sides
    }
    same = [_same(answers["pool"], answers[ONE]) for answers in rounds]
    results = compare(REPLICAS, figures)
    data = {"rounds": figures, "bars": results, "same": same, "machines": len(places)}
    bench.add("replicas", data, _text(options, figures, report.bars_table(results), same))


def _round(sides: list[WholeModelSide], questions: Questions, options: Options, n: int) -> dict[str, Answered]:
    """Send both households the same requests, in an order that alternates between rounds."""
    prompts, answers = questions.prompts(f"replicas {n}", REQUESTS, options.many_prompt), {}
    for side in sides if n % 2 == 0 else sides[::-1]:
        answers[side.name] = side.ask(prompts, options.many_output)
        say(f"replicas, round {n + 1} {side.name}: {line_of(together(answers[side.name].line))}")
    return answers


def _same(ours: Answered, theirs: Answered) -> float:
    """Return the fraction of tokens that precede the first difference in each pair of answers."""
    pairs = list(zip(ours.ids, theirs.ids, strict=True))
    return sum(agreement(a, b) for a, b in pairs) / sum(len(a) for a, _ in pairs)


def _text(options: Options, figures: dict[str, list[Figures]], bars: str, same: list[float]) -> str:
    about = (
        f"{REQUESTS} requests at once, each {options.many_prompt} tokens of prompt and "
        f"{options.many_output} of answer, to two machines of a core each and to one node of Poolhouse, by turns. "
        f"Tokens the same before answers part: {min(same):.0%} in the worst round.\n"
    )
    return f"## {TITLE}\n\n{about}\n{report.figures_table(figures)}\n{bars}"
