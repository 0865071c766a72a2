"""The rounds of the comparison: each side is tuned, then all sides are measured in rotation (A B C, A B C, …)."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bench.figures import Figures, Timeline, alone, steady, together
from bench.options import Options
from bench.sides import Answered, Setting, Side

WARM_TOKENS = 16
TUNING_TOKENS = 16
TRIES = 2  # per setting; the better one counts
LOWEST_ID = 300  # above the byte and control tokens of the benchmark's vocabulary
Say = Callable[[str], None]
Score = Callable[[Timeline], float]  # lower is better


@dataclass(frozen=True, slots=True)
class Tuned:
    """The best settings of a side, for one stream and for several, and all settings that were tried.

    Of two scores, the lower one is better.
    """

    alone: Setting
    many: Setting
    tried: list[tuple[Setting, float]] = field(default_factory=list)


@dataclass(slots=True)
class Measured:
    """The answers of one side in all rounds."""

    alone: list[Answered] = field(default_factory=list)
    many: list[Answered] = field(default_factory=list)

    def figures(self) -> list[Figures]:
        """Return the figures of each round, with those for one stream and for several in one mapping."""
        first = [alone(answered.line) for answered in self.alone]
        second = [together(answered.line) for answered in self.many] or [{}] * len(first)
        return [a | b for a, b in zip(first, second, strict=True)]


class Questions:
    """A source of random prompts, which differ in each round but are the same for all sides."""

    def __init__(self, seed: int, n_vocab: int) -> None:
        self.seed = seed
        self.ids = range(min(LOWEST_ID, n_vocab // 2), n_vocab)

    def prompts(self, label: str, n_streams: int, length: int) -> list[list[int]]:
        chance = random.Random(f"{self.seed}/{label}")
        return [chance.choices(self.ids, k=length) for _ in range(n_streams)]


def tune(side: Side, options: Options, questions: Questions, say: Say) -> Tuned:
    """Find the best settings of a side.

    For one stream, the lowest TTFT times decode time wins; for several, the highest number of tokens per second.
    """
    tried: list[tuple[Setting, float]] = []

    def best(choices: list[Setting], sizes: tuple[int, int], score: Score) -> Setting:
        if len(choices) == 1:
            return choices[0]
        scores = [math.inf] * len(choices)
        for n in range(-1, TRIES):  # the first is a warm-up
            for i, setting in enumerate(choices[:1] if n < 0 else choices):
                side.use(setting)
                prompts = questions.prompts(f"tune {n} {i}", *sizes)
                value = score(side.ask(prompts, TUNING_TOKENS).line)
                scores[i] = min(scores[i], value) if n >= 0 else math.inf
                say(f"{side.name}: {setting} scores {value:.4f}")
        tried.extend(zip(choices, scores, strict=True))
        return choices[scores.index(min(scores))]

    single = best(side.settings(), (1, options.prompt), product)
    several = [single | more for more in side.many_settings()]
    if not options.streams:
        return Tuned(single, several[0], tried)
    return Tuned(single, best(several, (options.streams, options.many_prompt), pace), tried)


def product(line: Timeline) -> float:
    """Return the time to first token in seconds times the time per further token in milliseconds."""
    figures = alone(line)
    return (figures["ttft_s"] or 0.0) * (figures["decode_ms"] or 1.0)


def pace(line: Timeline) -> float:
    """Return the seconds per token while all streams are decoding."""
    return 1 / (steady(line) or 1e-9)


def side_by_side(
    sides: Sequence[Side], tuned: dict[str, Tuned], options: Options, questions: Questions, say: Say
) -> dict[str, Measured]:
    """Warm up each side once, then run all rounds with one stream and with several."""
    measured = {side.name: Measured() for side in sides}
    for side in sides:
        side.use(tuned[side.name].alone)
        side.ask(questions.prompts("warm", 1, options.prompt), WARM_TOKENS)
    for n in range(options.runs):
        prompts = questions.prompts(f"round {n}", 1, options.prompt)
        for side in sides:
            side.use(tuned[side.name].alone)
            answered = side.ask(prompts, options.output)
            measured[side.name].alone.append(answered)
            say(f"round {n + 1} {side.name}: {line_of(alone(answered.line))}")
        if not options.streams:
            continue
        several = questions.prompts(f"round {n} many", options.streams, options.many_prompt)
        for side in sides:
            side.use(tuned[side.name].many)
            answered = side.ask(several, options.many_output)
            measured[side.name].many.append(answered)
            say(f"round {n + 1} {side.name}, {options.streams}: {line_of(together(answered.line))}")
    return measured


def line_of(figures: Figures) -> str:
    return ", ".join(f"{k} {v:.3f}" if v is not None else f"{k} none" for k, v in figures.items())
