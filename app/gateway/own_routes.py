"""Routes of our own: metrics for Prometheus, and the OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from aiohttp import web
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, Metric
from prometheus_client.metrics_core import CounterMetricFamily as Counter
from prometheus_client.metrics_core import GaugeMetricFamily as Gauge

from app.gateway.answering import Answering
from app.gateway.metrics import Figures
from app.node.models.model_manager import ModelManager
from backends.contract import Layers


class OwnRoutes:
    """The routes that belong to no other product's API."""

    def __init__(self, hosting: ModelManager, answering: Answering, figures: Figures) -> None:
        self._hosting, self._answering, self._figures = hosting, answering, figures

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/metrics", self.metrics), web.get("/openapi.json", self.openapi)]

    async def openapi(self, request: web.Request) -> web.Response:
        from app.gateway.openapi_document import description  # a hundred classes that few ask for

        return web.Response(body=description(), content_type="application/json")

    async def metrics(self, request: web.Request) -> web.Response:
        hosting, queue = self._hosting, self._answering.queue
        answers, vectors = hosting.answers(), hosting.embeddings
        now = [
            Gauge("poolhouse_queue_waiting", "Answers that wait for a turn.", queue.n_waiting),
            Gauge("poolhouse_queue_running", "Answers of programs that are made.", queue.n_running),
            Gauge("poolhouse_answers_running", "All answers that are made.", answers["running"]),
            _labelled(
                Gauge("poolhouse_model_loaded", "1 for each model that is loaded.", labels=["model"]),
                (((holder.entry.name,), 1) for holder in (*hosting.loaded, vectors.held) if holder),
            ),
            Gauge(
                "poolhouse_vectors_memory_bytes", "What the embedding model takes of this machine.", vectors.uses()[0]
            ),
            *_replicas(hosting),
            *_stages(hosting),
        ]
        page = self._figures.page(now)
        return web.Response(body=page, headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})


def _labelled(family: Gauge | Counter, lines: Iterable[tuple[tuple[str, ...], float]]) -> Metric:
    for labels, value in lines:
        family.add_metric(labels, value)
    return family


def _replicas(hosting: ModelManager) -> Iterator[Metric]:
    """Yield the present state of each replica of the models that have several."""
    known = [
        ((running.entry.name, replica.name), replica.pipeline)
        for running in hosting.loaded
        for replica in running.replicas
    ]
    up = Gauge("poolhouse_replica_up", "Of replicas: 1 for one that serves.", labels=["model", "machine"])
    yield _labelled(up, ((labels, float(pipeline.lost is None)) for labels, pipeline in known))
    answers = Gauge(
        "poolhouse_replica_answers",
        "Answers of each replica that are made, or wait there for a slot.",
        labels=["model", "machine", "state"],
    )
    for labels, pipeline in known:
        answers.add_metric((*labels, "running"), pipeline.n_running)
        answers.add_metric((*labels, "waiting"), pipeline.n_waiting)
    yield answers


def _in_words(layers: Layers) -> str:
    """Return the layers counted from one, the last included, as `poolhouse status` shows them."""
    first, last = layers.first + 1, layers.last
    return f"{first}-{last}" if last > first else str(first)


def _stages(hosting: ModelManager) -> Iterator[Metric]:
    """Yield, since the model was loaded, each machine's compute and wait time, and the bytes to and from it."""
    known = [
        ((running.entry.name, stage.name, _in_words(stage.layers)), figures)
        for running in hosting.loaded
        for stage, figures in zip(running.plan.stages, running.figures(), strict=False)
    ]
    names = ["model", "machine", "layers"]
    busy = Counter("poolhouse_stage_busy_seconds", "Computing, by stage.", labels=names)
    yield _labelled(busy, ((labels, stage.busy_s) for labels, stage in known))
    waited = Counter("poolhouse_stage_wait_seconds", "Waiting for a turn, by stage.", labels=names)
    yield _labelled(waited, ((labels, stage.wait_s) for labels, stage in known))
    steps = Counter("poolhouse_stage_steps", "Steps, by stage.", labels=names)
    yield _labelled(steps, ((labels, stage.steps) for labels, stage in known))
    moved = Counter("poolhouse_link_bytes", "To and from each stage.", labels=[*names, "direction"])
    for labels, meter in known:
        moved.add_metric((*labels, "out"), meter.bytes_out)
        moved.add_metric((*labels, "in"), meter.bytes_in)
    yield moved
