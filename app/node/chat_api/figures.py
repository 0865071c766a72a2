"""What Prometheus reads: requests of programs, and all answers, the owner's own too (text format 0.0.4). No I/O."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

BEFORE_S = (0.0005, 0.001, 0.0015, 0.002, 0.0025, 0.003, 0.004, 0.005, 0.0075, 0.01, 0.025, 0.1, 1)
FIRST_S = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
BETWEEN_S = (0.005, 0.01, 0.02, 0.035, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1, 2.5)
TOK_S = (1, 2, 5, 10, 20, 40, 80, 160, 320)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = Mapping[str, str]
Lines = Iterable[tuple[Labels, float]]


class Counter:
    """Only grows, one number for each set of labels."""

    def __init__(self) -> None:
        self._counts: dict[tuple[tuple[str, str], ...], float] = {}

    def add(self, amount: float = 1, **labels: str) -> None:
        key = tuple(labels.items())
        self._counts[key] = self._counts.get(key, 0) + amount

    def lines(self) -> Lines:
        return [(dict(labels), count) for labels, count in self._counts.items()]


class Histogram:
    """How often a measure lay below each bound."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def add(self, measure: float) -> None:
        self._counts[bisect_left(self._bounds, measure)] += 1
        self._sum += measure

    def text(self, name: str, about: str) -> str:
        lines = [f"# HELP {name} {about}", f"# TYPE {name} histogram"]
        total = 0
        for bound, count in zip((*self._bounds, "+Inf"), self._counts, strict=True):
            total += count
            lines.append(f'{name}_bucket{{le="{bound}"}} {total}')
        return "\n".join([*lines, f"{name}_sum {self._sum:.6f}", f"{name}_count {total}", ""])


class Figures:
    """All of them."""

    def __init__(self) -> None:
        self.requests = Counter()  # path, status
        self.tokens = Counter()  # kind
        self.guesses = Counter()  # outcome
        self.recoveries = Counter()
        self.before = Histogram(BEFORE_S)
        self.first = Histogram(FIRST_S)
        self.between = Histogram(BETWEEN_S)
        self.rate = Histogram(TOK_S)

    def count(self, done: Mapping[str, Any]) -> None:
        """An answer was made, whoever asked: its last line."""
        self.tokens.add(done["prompt_tokens"] - done["reused_tokens"], kind="prompt")
        self.tokens.add(done["reused_tokens"], kind="reused")
        self.tokens.add(len(done["token_ids"]), kind="answer")
        self.guesses.add(done["guessed_right"], outcome="right")
        self.guesses.add(done["guessed"] - done["guessed_right"], outcome="wrong")
        self.recoveries.add(done["recoveries"])
        if done["decode_tok_s"]:
            self.rate.add(done["decode_tok_s"])

    def text(self, gauges: Mapping[str, tuple[str, str, Lines]]) -> str:
        """The page. `gauges`: what is measured at this moment, by name: type, about, lines."""
        parts = [
            series("poolhouse_requests_total", "counter", "Requests answered.", self.requests.lines()),
            series("poolhouse_tokens_total", "counter", "Tokens read and written.", self.tokens.lines()),
            series("poolhouse_guessed_tokens_total", "counter", "Tokens computed before they were known.",
                   self.guesses.lines()),
            series("poolhouse_recoveries_total", "counter", "Answers continued after a loss.",
                   self.recoveries.lines()),
            self.before.text("poolhouse_request_to_driver_seconds",
                             "From a request's arrival to the pipeline, without the queue."),
            self.first.text("poolhouse_time_to_first_token_seconds", "From a request to its first token."),
            self.between.text("poolhouse_time_between_tokens_seconds", "From one token to the next."),
            self.rate.text("poolhouse_decode_tokens_per_second", "Of each answer, after its first token."),
            *(series(name, *facts) for name, facts in gauges.items()),
        ]  # fmt: skip
        return "".join(parts)


def series(name: str, kind: str, about: str, lines: Lines) -> str:
    """One measure with its lines. A double has no more than fifteen digits that are sure."""
    head = f"# HELP {name} {about}\n# TYPE {name} {kind}\n"
    return head + "".join(f"{name}{_labels(labels)} {value:.15g}\n" for labels, value in lines)


def _labels(labels: Labels) -> str:
    inner = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{inner}}}" if inner else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
