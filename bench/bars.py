"""The limits that the measured ratios must meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.figures import Figures, Summary, ratios


@dataclass(frozen=True, slots=True)
class Bar:
    """A limit on the ratio of a figure to that of another side.

    aim: the value that would be good. speed: whether the figure is a time, to be inverted so that more is better.
    """

    words: str
    figure: str
    other: str
    limit: float
    aim: float | None
    at_least: bool
    speed: bool = False

    def holds(self, value: float) -> bool:
        return value >= self.limit if self.at_least else value <= self.limit


BARS = (
    Bar("decode speed, one stream", "decode_ms", "whole", 0.95, 0.99, True, speed=True),
    Bar("time to first token", "ttft_s", "whole", 0.63, 0.55, False),
    Bar("time to first token", "ttft_s", "rpc", 1.0, None, False),
    Bar("decode speed, one stream", "decode_ms", "rpc", 1.0, None, True, speed=True),
    Bar("several streams, all decoding", "steady_tok_s", "whole", 1.8, 1.95, True),
    Bar("several streams, all decoding", "steady_tok_s", "rpc", 2.3, None, True),
    Bar("several streams, prompts included", "total_tok_s", "whole", 1.8, 1.95, True),
    Bar("several streams, prompts included", "total_tok_s", "rpc", 2.3, None, True),
)
REPLICAS = (
    Bar("requests at once, prompts included", "total_tok_s", "one node", 1.95, None, True),
    Bar("requests at once, all decoding", "steady_tok_s", "one node", 1.95, None, True),
)
STEADY = (
    Bar("decode speed, one stream", "decode_ms", "bare", 0.99, None, True, speed=True),
    Bar("several streams, all decoding", "steady_tok_s", "bare", 0.99, None, True),
)
THREE = (Bar("time to first token, three machines", "ttft_s", "whole", 0.5, None, False),)


@dataclass(frozen=True, slots=True)
class Result:
    """A bar with the measured ratio, and whether its median meets the limit."""

    bar: Bar
    ratio: Summary
    holds: bool


def compare(bars: Sequence[Bar], rounds: Mapping[str, Sequence[Figures]], ours: str = "pool") -> list[Result]:
    """Compare two sides round by round for each bar. Bars for sides that were not measured are skipped."""
    results = []
    for bar in bars:
        if ours not in rounds or bar.other not in rounds:
            continue
        mine = [figures.get(bar.figure) for figures in rounds[ours]]
        theirs = [figures.get(bar.figure) for figures in rounds[bar.other]]
        ratio = ratios(theirs, mine) if bar.speed else ratios(mine, theirs)
        if ratio:
            results.append(Result(bar, ratio, bar.holds(ratio.median)))
    return results
