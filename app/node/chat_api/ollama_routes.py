"""Ollama's routes, so that its clients find a friend: tags, version, chat, generate."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from datetime import UTC, datetime

import msgspec
from aiohttp import web

from app import __version__
from app.node.chat_api.answering import Answering, Asker
from app.node.chat_api.gate import ASKER
from app.node.chat_api.ollama_shapes import Answer, ChatAsked, GenerateAsked
from app.node.chat_api.sending import NDJSON, read, send
from app.node.chat_api.wish import Json, Wish

Listed = Callable[[], Awaitable[list[Json]]]


class OllamaRoutes:
    """Each a few lines over Answering."""

    def __init__(self, answering: Answering, listed: Listed) -> None:
        self._answering, self._listed = answering, listed
        self._since = datetime.now(UTC).isoformat().replace("+00:00", "Z")

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/api/version", self.version),
            web.get("/api/tags", self.tags),
            web.post("/api/chat", self.chat),
            web.post("/api/generate", self.generate),
        ]

    async def version(self, request: web.Request) -> web.Response:
        return web.json_response({"version": __version__})

    async def tags(self, request: web.Request) -> web.Response:
        models = await self._listed()
        here = {model["name"] for model in models}
        models += [{"name": name} for name in self._answering.elsewhere() if name not in here]
        return web.json_response({"models": [self._told(model) for model in models]})

    async def chat(self, request: web.Request) -> web.StreamResponse:
        asked = read(request, ChatAsked)
        return await self._answer(
            request, asked.wish(secrets.randbelow(1 << 31)), asked.stream, chat=True
        )

    async def generate(self, request: web.Request) -> web.StreamResponse:
        asked = read(request, GenerateAsked)
        wish = asked.wish(secrets.randbelow(1 << 31))
        return await self._answer(request, wish, asked.stream, chat=False)

    async def _answer(
        self, request: web.Request, wish: Wish, stream: bool | None, *, chat: bool
    ) -> web.StreamResponse:
        begun = time.monotonic()
        answer = Answer(await self._answering.model(wish.model), chat, request[ASKER].origin)
        if stream is not False:
            return await send(request, NDJSON, self._lines(wish, request[ASKER], answer, begun))
        async with aclosing(self._answering.answer(wish, request[ASKER])) as pieces:
            async for piece in pieces:
                answer.whole.add(piece)
        return web.json_response(answer.object(time.time(), time.monotonic() - begun))

    async def _lines(
        self, wish: Wish, asker: Asker, answer: Answer, begun: float
    ) -> AsyncGenerator[bytes, None]:
        async with aclosing(self._answering.answer(wish, asker)) as pieces:
            async for piece in pieces:
                line = answer.line(piece, time.time(), time.monotonic() - begun)
                yield msgspec.json.encode(line) + b"\n"

    def _told(self, model: Json) -> Json:
        return {
            "name": model["name"],
            "model": model["name"],
            "modified_at": self._since,
            "size": model.get("file_bytes") or 0,
            "digest": model.get("id") or "",
            "details": {
                "format": "gguf", "family": model.get("architecture") or "",
                "quantization_level": model.get("quantisation") or "",
            },
        }  # fmt: skip
