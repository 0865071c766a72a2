"""The figures of a report, computed from the arrival times of tokens."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Figures = dict[str, float | None]


@dataclass(frozen=True, slots=True)
class Timeline:
    """The arrival times of the tokens of each stream, in seconds since all streams were submitted."""

    times: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        if not self.times or not all(self.times):
            raise ValueError("a stream without tokens has no figures")

    @property
    def first_seconds(self) -> tuple[float, ...]:
        return tuple(stream[0] for stream in self.times)

    @property
    def n_tokens(self) -> int:
        return sum(len(stream) for stream in self.times)


@dataclass(frozen=True, slots=True)
class Summary:
    """Statistics of a figure over several runs."""

    mean: float
    median: float
    low: float
    high: float
    stdev: float
    n_runs: int

    @property
    def spread(self) -> float:
        """The range of the values as a fraction of their mean."""
        return (self.high - self.low) / self.mean if self.mean else 0.0


def summary(values: Sequence[float]) -> Summary:
    """Summarize the values. Raises ValueError if there are none."""
    if not values:
        raise ValueError("nothing was measured")
    stdev = statistics.stdev(values) if len(values) > 1 else 0.0
    middle = statistics.median(values)
    return Summary(statistics.fmean(values), middle, min(values), max(values), stdev, len(values))


def percentile(values: Sequence[float], share: float) -> float:
    """Return the nearest-rank percentile: the smallest value that at least `share` of all values do not exceed.

    share: between 0 and 1.
    """
    if not values or not 0.0 <= share <= 1.0:
        raise ValueError("a percentile needs values and a share from 0 to 1")
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def alone(line: Timeline) -> Figures:
    """Return the figures of a single stream: the time to first token, and the time per further token."""
    (times,) = line.times
    steps = len(times) - 1
    return {"ttft_s": times[0], "decode_ms": 1000 * (times[-1] - times[0]) / steps if steps else None}


def together(line: Timeline) -> Figures:
    """Return the figures of several streams: tokens per second overall, and while all streams were decoding."""
    end = max(stream[-1] for stream in line.times)
    return {
        "total_tok_s": line.n_tokens / end,
        "steady_tok_s": steady(line),
        "ttft_p99_s": percentile(line.first_seconds, 0.99),
    }


def steady(line: Timeline) -> float | None:
    """Return the tokens per second while all streams were decoding: after the last first token, up to the first end.

    Returns None if the streams never decoded at the same time.
    """
    start = max(line.first_seconds)
    end = min(stream[-1] for stream in line.times)
    if end <= start:
        return None
    return sum(start < t <= end for stream in line.times for t in stream) / (end - start)


def ratios(upper: Sequence[float | None], lower: Sequence[float | None]) -> Summary | None:
    """Summarize the ratios of two sides, round by round. Rounds without a value for both sides are skipped."""
    pairs = [u / low for u, low in zip(upper, lower, strict=True) if u is not None and low]
    return summary(pairs) if pairs else None


def summaries(rounds: Sequence[Mapping[str, float | None]]) -> dict[str, Summary]:
    """Summarize each figure over all rounds that contain it."""
    names = dict.fromkeys(name for figures in rounds for name in figures)
    values = {name: [f[name] for f in rounds if f.get(name) is not None] for name in names}
    return {name: summary([v for v in vs if v is not None]) for name, vs in values.items() if vs}


def agreement(ours: Sequence[int], theirs: Sequence[int]) -> int:
    """Return the length of the common prefix of two answers in tokens."""
    for n, (a, b) in enumerate(zip(ours, theirs, strict=False)):
        if a != b:
            return n
    return min(len(ours), len(theirs))
