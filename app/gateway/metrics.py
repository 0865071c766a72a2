"""Metrics for Prometheus: requests of programs, and all answers, the owner's own too (text format 0.0.4). No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, Metric, disable_created_metrics, generate_latest
from prometheus_client.registry import Collector

BEFORE_S = (0.0005, 0.001, 0.0015, 0.002, 0.0025, 0.003, 0.004, 0.005, 0.0075, 0.01, 0.025, 0.1, 1)
FIRST_S = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
BETWEEN_S = (0.005, 0.01, 0.02, 0.035, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1, 2.5)
TOK_S = (1, 2, 5, 10, 20, 40, 80, 160, 320)

disable_created_metrics()  # type: ignore[no-untyped-call]  # when each series began: twice the lines, for no reader


class Figures:
    """All counters."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.requests = self._counter("requests", "Requests answered.", "path", "status")
        self.tokens = self._counter("tokens", "Tokens read and written.", "kind")
        self.guesses = self._counter("guessed_tokens", "Tokens computed before they were known.", "outcome")
        self.recoveries = self._counter("recoveries", "Answers continued after a loss.")
        self.before = self._histogram(
            "request_to_driver_seconds", "From a request's arrival to the pipeline, without the queue.", BEFORE_S
        )
        self.first = self._histogram("time_to_first_token_seconds", "From a request to its first token.", FIRST_S)
        self.between = self._histogram("time_between_tokens_seconds", "From one token to the next.", BETWEEN_S)
        self.rate = self._histogram("decode_tokens_per_second", "Of each answer, after its first token.", TOK_S)

    def count(self, done: Mapping[str, Any]) -> None:
        """Count an answer to anyone, by its last line."""
        self.tokens.labels(kind="prompt").inc(done["prompt_tokens"] - done["reused_tokens"])
        self.tokens.labels(kind="reused").inc(done["reused_tokens"])
        self.tokens.labels(kind="answer").inc(len(done["token_ids"]))
        self.guesses.labels(outcome="right").inc(done["guessed_right"])
        self.guesses.labels(outcome="wrong").inc(done["guessed"] - done["guessed_right"])
        self.recoveries.inc(done["recoveries"])
        if done["decode_tok_s"]:
            self.rate.observe(done["decode_tok_s"])

    def page(self, now: Iterable[Metric] = ()) -> bytes:
        """Return the page. `now`: what is measured at this moment."""
        return generate_latest(_Page(self._registry, now))

    def _counter(self, name: str, about: str, *labels: str) -> Counter:
        return Counter(f"poolhouse_{name}", about, labels, registry=self._registry)

    def _histogram(self, name: str, about: str, bounds: tuple[float, ...]) -> Histogram:
        return Histogram(f"poolhouse_{name}", about, buckets=bounds, registry=self._registry)


class _Page(Collector):
    """The counters since the node began, then the present measurements."""

    def __init__(self, counted: CollectorRegistry, now: Iterable[Metric]) -> None:
        self._counted, self._now = counted, now

    def collect(self) -> Iterator[Metric]:
        yield from self._counted.collect()
        yield from self._now
