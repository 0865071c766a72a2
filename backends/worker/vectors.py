"""The embedding model or reranker of a worker: opened, asked for vectors or scores, closed."""

from __future__ import annotations

from backends import orders
from backends.contract import StageError
from backends.llamacpp.embedder import LlamaEmbedder
from backends.worker import process


class Vectors:
    """At most one model at a time."""

    def __init__(self) -> None:
        self._model: LlamaEmbedder | None = None
        self._context = 0

    def open(self, order: orders.OpenEmbedder) -> orders.EmbedderOpened:
        """Load a model in place of the one before. Raises StageError."""
        self.close()
        most = order.memory_limit_bytes
        if most:
            with process.may_grow_by(int(most * process.ROOM_TO_LOAD), mapped=False):
                self._model = LlamaEmbedder(order.path, order.context, order.threads)
        else:
            self._model = LlamaEmbedder(order.path, order.context, order.threads)
        self._context = order.context
        return orders.EmbedderOpened(
            request=order.request, width=self._model.width, memory_bytes=process.resident_bytes()
        )

    def embed(self, order: orders.Embed) -> orders.Embedded:
        """Raises StageError."""
        if self._model is None:
            raise StageError("no embedding model is loaded here")
        ids = list(order.ids) or self._model.tokenize(order.text)
        n_tokens = len(ids)
        if order.cut and n_tokens > self._context:
            # the last token, which many models want at the end of a text, stays
            ids, n_tokens = [*ids[: self._context - 1], ids[-1]], self._context
        vector = b"" if n_tokens > self._context else self._model.embed(ids).tobytes()
        return orders.Embedded(request=order.request, vector=vector, n_tokens=n_tokens)

    def rank(self, order: orders.Rank) -> orders.Ranked:
        """Raises StageError."""
        if self._model is None:
            raise StageError("no reranker is loaded here")
        ids = self._model.pair(order.query, order.text)
        n_tokens = len(ids)
        score = None if n_tokens > self._context else self._model.score(ids)
        return orders.Ranked(request=order.request, score=score, n_tokens=n_tokens)

    def close(self) -> None:
        """Give the memory back."""
        if self._model is not None:
            self._model.close()
        self._model = None
