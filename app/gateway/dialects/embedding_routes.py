"""The routes for embeddings (one of OpenAI's, two of Ollama's) and for reranking (named as in llama.cpp)."""

from __future__ import annotations

import base64
import time
from array import array
from collections.abc import Callable, Sequence
from typing import Annotated, Literal, cast

import msgspec
from aiohttp import web
from msgspec import UNSET, Meta

from app.core.errors import BadInput
from app.gateway import answer_types as types
from app.gateway.access.auth import CALLER
from app.gateway.access.token_budget import TokenBudget
from app.gateway.fair_queue import FairQueue
from app.gateway.metrics import Metrics
from app.gateway.streaming import json_response, read
from app.inference.worker.embedder import Text, Vector
from app.node.models.embeddings import Embedded, Embeddings, Ranked

MOST_TEXTS = 2048  # per request, as OpenAI documents it
MOST_CHARS = 1 << 20
NANOSECONDS = 1e9

InputText = Annotated[str, Meta(max_length=MOST_CHARS)]
Ids = Annotated[list[Annotated[int, Meta(ge=0, le=1 << 30)]], Meta(min_length=1, max_length=1 << 16)]
Size = Annotated[int, Meta(ge=1, le=1 << 16)] | None

RERANK = ("/v1/rerank", "/v1/reranking", "/rerank", "/reranking")


class EmbeddingsRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to OpenAI's /v1/embeddings."""

    input: InputText | Annotated[list[str | int | list[int]], Meta(min_length=1, max_length=1 << 16)]
    model: str = ""
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: Size = None
    user: Annotated[str, Meta(max_length=1000)] | None = None

    def texts(self) -> tuple[Text, ...]:
        """Return the texts. Raises BadInput."""
        return texts_of(self.input)


class OllamaEmbedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to Ollama's /api/embed."""

    input: InputText | Annotated[list[InputText], Meta(max_length=MOST_TEXTS)] = ""
    model: str = ""
    truncate: bool | None = None
    dimensions: Size = None

    def texts(self) -> tuple[Text, ...]:
        """Return the texts, or none if `input` is a single empty text, as Ollama does. Raises BadInput.

        An empty text in a list is refused, because skipping it would shift the other vectors.
        """
        return texts_of(self.input) if self.input else ()


class OllamaEmbeddingsRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to Ollama's older /api/embeddings."""

    prompt: InputText = ""
    model: str = ""


def texts_of(texts: str | Sequence[str | int | list[int]]) -> tuple[Text, ...]:
    """Return the texts of an input, each as a string or as token IDs. Raises BadInput."""
    kinds = set(map(type, texts))  # fast even for a million token IDs
    if isinstance(texts, str):
        parsed: list[Text] = [texts]
    elif kinds == {int}:
        parsed = [cast("tuple[int, ...]", tuple(texts))]
    elif int in kinds:
        raise _invalid("input is texts, or token ids, and not both")
    else:
        parsed = [item if isinstance(item, str) else tuple(cast("list[int]", item)) for item in texts]
    if len(parsed) > MOST_TEXTS:
        raise _invalid(f"input has more than {MOST_TEXTS} texts")
    for text in parsed:
        if not text:
            raise _invalid("a text of input is empty")
        if len(text) > MOST_CHARS:
            raise _invalid(f"a text of input has more than {MOST_CHARS} characters")
        if not isinstance(text, str) and not 0 <= min(text) <= max(text) < 1 << 30:
            raise _invalid("a token id of input is out of bounds")
    return tuple(parsed)


def openai_list(made: Embedded, encoding: str | None) -> types.Vectors:
    data = [
        types.Vector(object="embedding", index=index, embedding=_encoded(vector, encoding))
        for index, vector in enumerate(made.vectors)
    ]
    usage = types.VectorUsage(prompt_tokens=made.n_tokens, total_tokens=made.n_tokens)
    return types.Vectors(object="list", model=made.model, data=data, usage=usage)


def ollama_list(made: Embedded, took_s: float) -> types.OllamaVectors:
    return types.OllamaVectors(
        model=made.model,
        embeddings=[list(vector.values) for vector in made.vectors],
        total_duration=int(took_s * NANOSECONDS),
        load_duration=0,
        prompt_eval_count=made.n_tokens,
    )


def _encoded(vector: Vector, encoding: str | None) -> list[float] | str:
    if encoding == "base64":
        return base64.b64encode(array("f", vector.values).tobytes()).decode()
    return list(vector.values)


def _invalid(why: str) -> BadInput:
    return BadInput("bad_request", why=why, field="input")


class Document(msgspec.Struct, frozen=True):
    text: InputText


class RerankRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request in Jina's format, or in the format of TEI (Text Embeddings Inference) if it has `texts`."""

    query: Annotated[str, Meta(min_length=1, max_length=MOST_CHARS)]
    documents: Annotated[list[InputText | Document], Meta(max_length=MOST_TEXTS)] = []
    texts: Annotated[list[InputText], Meta(max_length=MOST_TEXTS)] | None = None
    model: str = ""
    top_n: Annotated[int, Meta(ge=0, le=1 << 31)] | None = None
    return_documents: bool | None = None
    return_text: bool | None = None

    def all_texts(self) -> list[str]:
        """Return the texts to score. Raises BadInput."""
        texts = self.documents if self.texts is None else self.texts
        if not texts:
            name = "documents" if self.texts is None else "texts"
            raise BadInput("bad_request", why=f"{name} is empty", field=name)
        return [text if isinstance(text, str) else text.text for text in texts]

    def answer(self, made: Ranked) -> types.Ranked:
        """Return the results, best first. Texts with equal scores stay in their original order."""
        texts = self.all_texts()
        ranked = sorted(enumerate(made.scores), key=lambda pair: -pair[1].value)[: self.top_n]
        if self.texts is not None:
            return [
                types.RankedTexts(index=index, score=rank.value, text=texts[index] if self.return_text else UNSET)
                for index, rank in ranked
            ]
        results = [
            types.RankedDocument(
                index=index,
                relevance_score=rank.value,
                document=types.RankedText(text=texts[index]) if self.return_documents else UNSET,
            )
            for index, rank in ranked
        ]
        usage = types.RankUsage(prompt_tokens=made.n_tokens, total_tokens=made.n_tokens)
        return types.RankedDocuments(model=made.model, object="list", usage=usage, results=results)


class EmbeddingRoutes:
    """The routes for embeddings and reranking. Programs take turns, as they do for answers."""

    def __init__(self, embeddings: Embeddings, budget: TokenBudget, metrics: Metrics) -> None:
        self._embeddings, self._budget, self._metrics = embeddings, budget, metrics
        self._queue = FairQueue(lambda _: 1)

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/v1/embeddings", self.openai),
            web.post("/api/embed", self.ollama),
            web.post("/api/embeddings", self.ollama_one),
            *(web.post(path, self.rerank) for path in RERANK),
        ]

    async def openai(self, request: web.Request) -> web.Response:
        body = read(request, EmbeddingsRequest)
        made = await self._embed(request, body.model, body.texts(), body.dimensions, cut=False)
        return json_response(openai_list(made, body.encoding_format))

    async def ollama(self, request: web.Request) -> web.Response:
        begun, body = time.monotonic(), read(request, OllamaEmbedRequest)
        cut = body.truncate is not False
        made = await self._embed(request, body.model, body.texts(), body.dimensions, cut=cut)
        return json_response(ollama_list(made, time.monotonic() - begun))

    async def ollama_one(self, request: web.Request) -> web.Response:
        body = read(request, OllamaEmbeddingsRequest)
        texts = (body.prompt,) if body.prompt else ()
        made = await self._embed(request, body.model, texts, None, cut=True)
        return json_response(types.OllamaVector(embedding=[*made.vectors[0].values] if texts else []))

    async def rerank(self, request: web.Request) -> web.Response:
        body = read(request, RerankRequest)
        texts = body.all_texts()
        key = request[CALLER].key
        self._budget.check(key)
        embeddings = self._embeddings
        entry = await embeddings.reranker(body.model)
        async with self._queue.turn(key):
            self._budget.check(key)
            made = await embeddings.rank(entry, body.query, texts, self._spender(key))
        return json_response(body.answer(made))

    async def _embed(
        self, request: web.Request, model: str, texts: Sequence[Text], size: int | None, *, cut: bool
    ) -> Embedded:
        key = request[CALLER].key
        self._budget.check(key)
        embeddings = self._embeddings
        entry = await embeddings.model(model)
        async with self._queue.turn(key):
            self._budget.check(key)
            return await embeddings.embed(entry, texts, size, cut=cut, read=self._spender(key))

    def _spender(self, key: str) -> Callable[[int], None]:
        """Return a callback that counts the tokens computed for this key."""

        def read(n_tokens: int) -> None:
            self._budget.spend(key, n_tokens)
            self._metrics.tokens.labels(kind="vectors").inc(n_tokens)

        return read
