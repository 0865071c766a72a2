"""Metrics for Prometheus in text format 0.0.4: counters of requests and answers, and gauges of the current state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, Metric, disable_created_metrics, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from app.api.responses import Answer
from app.gateway.fair_queue import FairQueue
from app.node.models.model_manager import ModelManager
from backends.contract import Layers

BEFORE_S = (0.0005, 0.001, 0.0015, 0.002, 0.0025, 0.003, 0.004, 0.005, 0.0075, 0.01, 0.025, 0.1, 1)
FIRST_S = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
BETWEEN_S = (0.005, 0.01, 0.02, 0.035, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1, 2.5)
TOK_S = (1, 2, 5, 10, 20, 40, 80, 160, 320)

disable_created_metrics()  # type: ignore[no-untyped-call]  # when each series began: twice the lines, for no reader


class Metrics:
    """The counters and histograms since the node started."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.requests = self._counter("requests", "Requests answered.", "path", "status")
        self.tokens = self._counter("tokens", "Tokens read and written.", "kind")
        self.guesses = self._counter("guessed_tokens", "Speculative tokens computed.", "outcome")
        self.recoveries = self._counter("recoveries", "Answers recovered after a loss.")
        self.before = self._histogram(
            "request_to_driver_seconds", "From a request's arrival to the pipeline, without the queue.", BEFORE_S
        )
        self.first = self._histogram("time_to_first_token_seconds", "From a request to its first token.", FIRST_S)
        self.between = self._histogram("time_between_tokens_seconds", "From one token to the next.", BETWEEN_S)
        self.rate = self._histogram(
            "decode_tokens_per_second", "Decoding speed of each answer after its first token.", TOK_S
        )

    def count(self, done: Answer) -> None:
        """Count a finished answer and its statistics, regardless of who requested it."""
        self.tokens.labels(kind="prompt").inc(done.prompt_tokens - done.reused_tokens)
        self.tokens.labels(kind="reused").inc(done.reused_tokens)
        self.tokens.labels(kind="answer").inc(len(done.token_ids))
        self.guesses.labels(outcome="right").inc(done.guessed_right)
        self.guesses.labels(outcome="wrong").inc(done.guessed - done.guessed_right)
        self.recoveries.inc(done.recoveries)
        if done.decode_tok_s:
            self.rate.observe(done.decode_tok_s)

    def page(self, now: Iterable[Metric] = ()) -> bytes:
        """Return the metrics page. `now` contains the current measurements."""
        return generate_latest(_Page(self._registry, now))

    def _counter(self, name: str, about: str, *labels: str) -> Counter:
        return Counter(f"poolhouse_{name}", about, labels, registry=self._registry)

    def _histogram(self, name: str, about: str, bounds: tuple[float, ...]) -> Histogram:
        return Histogram(f"poolhouse_{name}", about, buckets=bounds, registry=self._registry)


class _Page(Collector):
    """The counters since the node started, followed by the current measurements."""

    def __init__(self, counted: CollectorRegistry, now: Iterable[Metric]) -> None:
        self._counted, self._now = counted, now

    def collect(self) -> Iterator[Metric]:
        yield from self._counted.collect()
        yield from self._now


def gauges(hosting: ModelManager, queue: FairQueue) -> Iterator[Metric]:
    """Yield the current state of the queue and of the loaded models."""
    yield GaugeMetricFamily("poolhouse_queue_waiting", "Requests waiting for a turn.", queue.n_waiting)
    yield GaugeMetricFamily("poolhouse_queue_running", "Answers in progress for programs.", queue.n_running)
    yield GaugeMetricFamily("poolhouse_answers_running", "All answers in progress.", hosting.answers().running)
    loaded = GaugeMetricFamily("poolhouse_model_loaded", "1 for each loaded model.", labels=["model"])
    embeddings = hosting.embeddings
    yield _labeled(loaded, (((holder.entry.name,), 1) for holder in (*hosting.loaded, embeddings.held) if holder))
    yield GaugeMetricFamily(
        "poolhouse_vectors_memory_bytes", "Memory used by the embedding model on this machine.", embeddings.uses()[0]
    )
    yield from _replica_gauges(hosting)
    yield from _stage_counters(hosting)


def _labeled(family: GaugeMetricFamily | CounterMetricFamily, lines: Iterable[tuple[tuple[str, ...], float]]) -> Metric:
    for labels, value in lines:
        family.add_metric(labels, value)
    return family


def _replica_gauges(hosting: ModelManager) -> Iterator[Metric]:
    """Yield the current state of each replica, for models that have several."""
    known = [
        ((running.entry.name, replica.name), replica.pipeline)
        for running in hosting.loaded
        for replica in running.replicas
    ]
    up = GaugeMetricFamily("poolhouse_replica_up", "1 if the replica serves requests.", labels=["model", "machine"])
    yield _labeled(up, ((labels, float(pipeline.lost is None)) for labels, pipeline in known))
    answers = GaugeMetricFamily(
        "poolhouse_replica_answers",
        "Answers of each replica, in progress or waiting for a slot.",
        labels=["model", "machine", "state"],
    )
    for labels, pipeline in known:
        answers.add_metric((*labels, "running"), pipeline.n_running)
        answers.add_metric((*labels, "waiting"), pipeline.n_waiting)
    yield answers


def _layer_range(layers: Layers) -> str:
    """Return the layers as an inclusive range counted from one, as in `poolhouse status`."""
    first, last = layers.first + 1, layers.last
    return f"{first}-{last}" if last > first else str(first)


def _stage_counters(hosting: ModelManager) -> Iterator[Metric]:
    """Yield the compute time, wait time and traffic of each stage since its model was loaded."""
    known = [
        ((running.entry.name, stage.name, _layer_range(stage.layers)), figures)
        for running in hosting.loaded
        for stage, figures in zip(running.plan.stages, running.figures(), strict=False)
    ]
    names = ["model", "machine", "layers"]
    busy = CounterMetricFamily("poolhouse_stage_busy_seconds", "Compute time by stage.", labels=names)
    yield _labeled(busy, ((labels, stage.busy_s) for labels, stage in known))
    waited = CounterMetricFamily("poolhouse_stage_wait_seconds", "Time waiting for a turn, by stage.", labels=names)
    yield _labeled(waited, ((labels, stage.wait_s) for labels, stage in known))
    steps = CounterMetricFamily("poolhouse_stage_steps", "Steps by stage.", labels=names)
    yield _labeled(steps, ((labels, stage.steps) for labels, stage in known))
    moved = CounterMetricFamily("poolhouse_link_bytes", "Bytes to and from each stage.", labels=[*names, "direction"])
    for labels, meter in known:
        moved.add_metric((*labels, "out"), meter.bytes_out)
        moved.add_metric((*labels, "in"), meter.bytes_in)
    yield moved
