"""Ollama's routes, so that its clients find a friend: that it runs, tags, show, ps, version, chat, generate."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractContextManager, aclosing
from datetime import UTC, datetime

import msgspec
from aiohttp import web

from app.gateway.access.auth import ASKER
from app.gateway.answering import Answering, Asker
from app.gateway.api_request import ApiRequest, Json
from app.gateway.keep_alive import LettingGo
from app.gateway.model_cards import ModelCards, iso, modified_at
from app.gateway.ollama.ollama_dialect import Answer, OllamaChatRequest, OllamaGenerateRequest
from app.gateway.ollama.ollama_models import ShowRequest, listed, running, shown
from app.gateway.streaming import NDJSON, read, send

Listed = Callable[[], Awaitable[list[Json]]]
# Whose API these routes speak: programs ask for one that is new enough (Copilot in VS Code: 0.6.4), not for ours.
OLLAMA_VERSION = "0.12.0"
RUNS = "Ollama is running"  # word for word: programs look for it


class OllamaRoutes:
    """Each a few lines over Answering."""

    def __init__(self, answering: Answering, listed: Listed, going: LettingGo, cards: ModelCards) -> None:
        self._answering, self._listed, self._going = answering, listed, going
        self._cards = cards
        self._since = iso(datetime.now(UTC))

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/", self.alive),
            web.get("/api/version", self.version),
            web.get("/api/tags", self.tags),
            web.get("/api/ps", self.loaded),
            web.post("/api/show", self.show),
            web.post("/api/chat", self.chat),
            web.post("/api/generate", self.generate),
        ]

    async def alive(self, request: web.Request) -> web.Response:
        """Ollama's command line asks this first, by HEAD."""
        return web.Response(text=RUNS)

    async def version(self, request: web.Request) -> web.Response:
        return web.json_response({"version": OLLAMA_VERSION})

    async def tags(self, request: web.Request) -> web.Response:
        models = [listed(model, await modified_at(model, self._since)) for model in (await self._known()).values()]
        return web.json_response({"models": models})

    async def loaded(self, request: web.Request) -> web.Response:
        known = await self._known()
        contexts = {name: one.context for name, one in self._answering.ready().items()}
        if not contexts:  # of a guest, what its hosts have loaded
            contexts = {name: one["context"] for name, one in known.items() if one.get("context")}
        models = [running(known[name], contexts[name]) for name in contexts if name in known]
        return web.json_response({"models": models})

    async def show(self, request: web.Request) -> web.Response:
        name, known = read(request, ShowRequest).wanted(), await self._known()
        if name not in known:
            name = await self._answering.model(name)  # raises what says which there are
        there = self._answering.ready().get(name)
        model = known.get(name, {"name": name})
        card = await self._cards.of(model)
        context = there.context if there else model.get("context") or None
        told = msgspec.json.encode(shown(model, card, self._since, context))  # NaN of a file is null
        return web.Response(body=told, content_type="application/json")

    async def chat(self, request: web.Request) -> web.StreamResponse:
        asked = read(request, OllamaChatRequest)
        if not asked.messages:
            return await self._brought(request, asked, chat=True)
        return await self._answer(request, asked, chat=True)

    async def generate(self, request: web.Request) -> web.StreamResponse:
        asked = read(request, OllamaGenerateRequest)
        if not asked.prompt:
            return await self._brought(request, asked, chat=False)
        return await self._answer(request, asked, chat=False)

    async def _answer(
        self, request: web.Request, asked: OllamaChatRequest | OllamaGenerateRequest, *, chat: bool
    ) -> web.StreamResponse:
        begun, wish = time.monotonic(), asked.wish(secrets.randbelow(1 << 31))
        answer = Answer(await self._answering.model(wish.model), chat, request[ASKER].origin)
        keeping = self._going.keeping(answer.model, lets_go=asked.lets_go)
        if asked.stream is not False:
            lines = self._lines(wish, request[ASKER], answer, begun, keeping)
            return await send(request, NDJSON, lines)
        with keeping:
            async with aclosing(self._answering.answer(wish, request[ASKER])) as pieces:
                async for piece in pieces:
                    answer.whole.add(piece)
        return web.json_response(answer.object(time.time(), time.monotonic() - begun))

    async def _brought(
        self, request: web.Request, asked: OllamaChatRequest | OllamaGenerateRequest, *, chat: bool
    ) -> web.Response:
        """Who asks nothing wants the model loaded, or gone."""
        model = await self._answering.model(asked.model)
        if asked.lets_go:
            self._going.at_once(model)
            return web.json_response(Answer(model, chat).brought(time.time(), "unload"))
        await self._answering.bring(asked.model, request[ASKER])
        return web.json_response(Answer(model, chat).brought(time.time()))

    async def _known(self) -> dict[str, Json]:
        """Of the shelf, and those that upstreams answer for."""
        elsewhere = {name: {"name": name} for name in self._answering.elsewhere()}
        here: dict[str, Json] = {model["name"]: model for model in await self._listed()}
        return here | {name: told for name, told in elsewhere.items() if name not in here}

    async def _lines(
        self, wish: ApiRequest, asker: Asker, answer: Answer, begun: float, keeping: AbstractContextManager[None]
    ) -> AsyncGenerator[bytes, None]:
        with keeping:
            async with aclosing(self._answering.answer(wish, asker)) as pieces:
                async for piece in pieces:
                    line = answer.line(piece, time.time(), time.monotonic() - begun)
                    yield msgspec.json.encode(line) + b"\n"
