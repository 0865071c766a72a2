"""Routes of our own: figures for Prometheus, and the description of all routes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

from app.node.chat_api.answering import Answering
from app.node.chat_api.figures import CONTENT_TYPE, Figures, Lines
from backends.contract import Layers

if TYPE_CHECKING:
    from app.node.hosting import Hosting
    from app.node.node import Node


class OwnRoutes:
    """What belongs to no API of others."""

    def __init__(self, node: Node, answering: Answering, figures: Figures) -> None:
        self._node, self._answering, self._figures = node, answering, figures

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/metrics", self.metrics), web.get("/openapi.json", self.openapi)]

    async def openapi(self, request: web.Request) -> web.Response:
        from app.node.chat_api.description import description  # a hundred classes that few ask for

        return web.Response(body=description(), content_type="application/json")

    async def metrics(self, request: web.Request) -> web.Response:
        hosting, queue = self._node.hosting, self._answering.queue
        answers, vectors = hosting.answers(), hosting.embeddings
        gauges: dict[str, tuple[str, str, Lines]] = {
            "poolhouse_queue_waiting": (
                "gauge",
                "Answers that wait for a turn.",
                [({}, queue.n_waiting)],
            ),
            "poolhouse_queue_running": (
                "gauge",
                "Answers of programs that are made.",
                [({}, queue.n_running)],
            ),
            "poolhouse_answers_running": (
                "gauge",
                "All answers that are made.",
                [({}, answers["running"])],
            ),
            "poolhouse_model_loaded": (
                "gauge",
                "1 for each model that is loaded.",
                [({"model": one.entry.name}, 1) for one in (*hosting.loaded, vectors.held) if one],
            ),
            "poolhouse_vectors_memory_bytes": (
                "gauge",
                "What the embedding model takes of this machine.",
                [({}, vectors.uses()[0])],
            ),
            **_replicas(hosting),
            **_stages(hosting),
        }
        text = self._figures.text(gauges)
        return web.Response(body=text.encode(), headers={"Content-Type": CONTENT_TYPE})


def _replicas(hosting: Hosting) -> dict[str, tuple[str, str, Lines]]:
    """Of a model that stands on several machines, how each of them does now."""
    known = [
        ({"model": running.entry.name, "machine": one.name}, one.pipeline)
        for running in hosting.loaded
        for one in running.replicas
    ]
    about = "Of replicas: 1 for one that serves."
    return {
        "poolhouse_replica_up": (
            "gauge", about, [(labels, float(one.lost is None)) for labels, one in known],
        ),
        "poolhouse_replica_answers": (
            "gauge",
            "Answers of each replica that are made, or wait there for a slot.",
            [
                (labels | {"state": state}, getattr(one, f"n_{state}"))
                for labels, one in known
                for state in ("running", "waiting")
            ],
        ),
    }  # fmt: skip


def _in_words(layers: Layers) -> str:
    """Counted from one, the last one included, as `poolhouse status` has them."""
    first, last = layers.first + 1, layers.last
    return f"{first}-{last}" if last > first else str(first)


def _stages(hosting: Hosting) -> dict[str, tuple[str, str, Lines]]:
    """Since the model was loaded: each machine's compute and wait, and the bytes to it and from it."""
    pairs = [
        (running.entry.name, stage, figures)
        for running in hosting.loaded
        for stage, figures in zip(running.plan.stages, running.figures(), strict=False)
    ]

    def lines(*fields: str) -> Lines:
        return [
            ({"model": model, "machine": stage.name, "layers": _in_words(stage.layers)}
             | ({"direction": field.removeprefix("bytes_")} if len(fields) > 1 else {}),
             getattr(figures, field))
            for model, stage, figures in pairs for field in fields
        ]  # fmt: skip

    return {
        "poolhouse_stage_busy_seconds_total": ("counter", "Computing, by stage.", lines("busy_s")),
        "poolhouse_stage_wait_seconds_total": (
            "counter",
            "Waiting for a turn, by stage.",
            lines("wait_s"),
        ),
        "poolhouse_stage_steps_total": ("counter", "Steps, by stage.", lines("steps")),
        "poolhouse_link_bytes_total": (
            "counter",
            "To and from each stage.",
            lines("bytes_out", "bytes_in"),
        ),
    }
