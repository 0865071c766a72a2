"""An embedding model or a reranker in a worker on this machine, which converts texts to vectors or scores."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path

import msgspec

from app.catalog.gguf.gguf_file import part_paths
from app.core.errors import BadInput, Reason, StageLost
from app.inference.worker.worker import HERE, Worker
from app.machine.hardware.cores import Threads
from backends import worker_orders

LOAD_S = 600.0
EMBED_S = 120.0
VALUE_BYTES = 4

Text = str | tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Vector:
    """The embedding of a text, scaled to length one unless it is all zeros."""

    values: Sequence[float]
    n_tokens: int


@dataclass(frozen=True, slots=True)
class Score:
    """The relevance of a text to a query. Higher is better. Only scores from the same model are comparable."""

    value: float
    n_tokens: int  # tokens of the query and the text


class Embedder:
    """A loaded embedding model or reranker. It processes one text at a time."""

    def __init__(self, worker: Worker, width: int, context: int) -> None:
        self._worker, self.width, self.context = worker, width, context

    @classmethod
    async def open(cls, path: str, context: int, threads: int, limit_bytes: int) -> Embedder:
        """Load a model. It runs at low priority so that chat answers take precedence.

        Raises BadInput, DoesNotFit or StageLost.
        """
        reads = part_paths(Path(path))
        worker = await Worker.start(HERE, threads=Threads(threads), low_priority=True, reads=reads)
        order = worker_orders.OpenEmbedder(
            request=0, path=path, context=context, threads=threads, memory_limit_bytes=limit_bytes
        )
        try:
            opened = await worker.ask(order, worker_orders.EmbedderOpened, LOAD_S)
        except BaseException:
            await worker.close()
            raise
        return cls(worker, opened.width, context)

    @property
    def alive(self) -> bool:
        return self._worker.died is None

    async def embed(self, text: Text, size: int, *, cut: bool) -> Vector:
        """Return the embedding of a text, truncated to `size` values and scaled to length one.

        cut: whether to truncate a text that is too long instead of refusing it. Raises BadInput or StageLost.
        """
        order = worker_orders.Embed(request=0, cut=cut)
        if isinstance(text, str):
            order = msgspec.structs.replace(order, text=text)
        else:
            order = msgspec.structs.replace(order, ids=text)
        got = await self._worker.ask(order, worker_orders.Embedded, EMBED_S)
        if not got.vector:
            raise BadInput("embedding_too_long", tokens=got.n_tokens, most=self.context)
        if len(got.vector) != self.width * VALUE_BYTES:
            self._worker.kill(Reason("worker_garbled", {"worker": "embedder", "cause": Reason("vector")}))
            raise StageLost("worker_garbled", worker="embedder", cause=Reason("vector"))
        return Vector(normalized(array("f", got.vector)[:size]), got.n_tokens)

    async def rank(self, query: str, text: str) -> Score:
        """Return how relevant a text is to a query. Raises BadInput or StageLost."""
        order = worker_orders.Rank(request=0, query=query, text=text)
        got = await self._worker.ask(order, worker_orders.Ranked, EMBED_S)
        if got.score is None:
            raise BadInput("embedding_too_long", tokens=got.n_tokens, most=self.context)
        return Score(got.score, got.n_tokens)

    def kill(self) -> None:
        """Kill the worker, which releases its memory immediately."""
        self._worker.kill(Reason("worker_closed", {"worker": "embedder"}))

    async def close(self) -> None:
        await self._worker.close()


def normalized(values: Sequence[float]) -> Sequence[float]:
    """Return a vector scaled to length one. A zero vector is returned unchanged."""
    length = sqrt(sum(value * value for value in values))
    return array("f", (value / length for value in values)) if length else values
