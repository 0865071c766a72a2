"""The routes that give vectors, OpenAI's and Ollama's two, and those that rerank texts, by llama.cpp's names."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import msgspec
from aiohttp import web

from app.gateway.access.auth import ASKER
from app.gateway.access.token_budget import Budget
from app.gateway.api_request import Json
from app.gateway.embeddings import rerank_dialects
from app.gateway.embeddings.embedding_dialects import (
    EmbeddingsRequest,
    OllamaEmbeddingsRequest,
    OllamaEmbedRequest,
    ollama_list,
    openai_list,
)
from app.gateway.fair_queue import FairQueue
from app.gateway.metrics import Figures
from app.gateway.streaming import read
from app.inference.worker.embedder import Text
from app.node.models.embeddings import Embedded, Embeddings

RERANK = ("/v1/rerank", "/v1/reranking", "/rerank", "/reranking")


class EmbeddingRoutes:
    """Programs take turns here as they do with answers."""

    def __init__(self, embeddings: Callable[[], Embeddings], budget: Budget, figures: Figures) -> None:
        self._embeddings, self._budget, self._figures = embeddings, budget, figures
        self._queue = FairQueue(lambda _: 1)

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/v1/embeddings", self.openai),
            web.post("/api/embed", self.ollama),
            web.post("/api/embeddings", self.ollama_one),
            *(web.post(path, self.rerank) for path in RERANK),
        ]

    async def openai(self, request: web.Request) -> web.Response:
        asked = read(request, EmbeddingsRequest)
        made = await self._made(request, asked.model, asked.texts(), asked.dimensions, cut=False)
        return _json(openai_list(made, asked.encoding_format))

    async def ollama(self, request: web.Request) -> web.Response:
        begun, asked = time.monotonic(), read(request, OllamaEmbedRequest)
        cut = asked.truncate is not False
        made = await self._made(request, asked.model, asked.texts(), asked.dimensions, cut=cut)
        return _json(ollama_list(made, time.monotonic() - begun))

    async def ollama_one(self, request: web.Request) -> web.Response:
        asked = read(request, OllamaEmbeddingsRequest)
        texts = (asked.prompt,) if asked.prompt else ()
        made = await self._made(request, asked.model, texts, None, cut=True)
        return _json({"embedding": [*made.vectors[0].values] if texts else []})

    async def rerank(self, request: web.Request) -> web.Response:
        asked = read(request, rerank_dialects.RerankRequest)
        texts = asked.all_texts()
        key = request[ASKER].key
        self._budget.check(key)
        embeddings = self._embeddings()
        entry = await embeddings.reranker(asked.model)
        async with self._queue.turn(key):
            self._budget.check(key)
            made = await embeddings.rank(entry, asked.query, texts, self._counted(key))
        return _json(asked.answer(made))

    async def _made(
        self, request: web.Request, model: str, texts: Sequence[Text], size: int | None, *, cut: bool
    ) -> Embedded:
        key = request[ASKER].key
        self._budget.check(key)
        embeddings = self._embeddings()
        entry = await embeddings.model(model)
        async with self._queue.turn(key):
            self._budget.check(key)
            return await embeddings.embed(entry, texts, size, cut=cut, read=self._counted(key))

    def _counted(self, key: str) -> Callable[[int], None]:
        """Hears how many tokens of this key's were read."""

        def read(n_tokens: int) -> None:
            self._budget.spend(key, n_tokens)
            self._figures.tokens.labels(kind="vectors").inc(n_tokens)

        return read


def _json(told: Json | list[Json]) -> web.Response:
    """Millions of numbers: Python's own writer would keep every stream of this node waiting for seconds."""
    return web.Response(body=msgspec.json.encode(told), content_type="application/json")
