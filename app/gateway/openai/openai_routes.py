"""OpenAI's routes: models, chat completions, text completions."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from aiohttp import web

from app.gateway.access.auth import ASKER
from app.gateway.answering import Answering, Asker
from app.gateway.api_request import Json, Wish
from app.gateway.openai.openai_answers import Answers
from app.gateway.openai.openai_requests import ChatAsked, TextAsked
from app.gateway.streaming import EVENTS, event, read, send

DONE = b"data: [DONE]\n\n"
Listed = Callable[[], Awaitable[list[Json]]]


class OpenAiRoutes:
    """Each a few lines over Answering."""

    def __init__(self, answering: Answering, listed: Listed) -> None:
        self._answering, self._listed = answering, listed
        self._since = int(time.time())

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/v1/models", self.models),
            web.get("/v1/models/{name:.+}", self.model),  # it may have slashes, as an upstream's
            web.post("/v1/chat/completions", self.chat),
            web.post("/v1/completions", self.text),
        ]

    async def models(self, request: web.Request) -> web.Response:
        models = [self._told(model) for model in await self._listed()]
        here = {model["id"] for model in models}
        models += [
            self._told({"name": name}) | {"owned_by": "upstream"}
            for name in self._answering.elsewhere()
            if name not in here
        ]
        return web.json_response({"object": "list", "data": models})

    async def model(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        known = {model["name"]: model for model in await self._listed()}
        if name not in known:
            name = await self._answering.model(name)  # raises what says which there are
            if name not in known:
                told = self._told({"name": name}) | {"owned_by": "upstream"}
                return web.json_response(told)
        return web.json_response(self._told(known[name]))

    async def chat(self, request: web.Request) -> web.StreamResponse:
        asked = read(request, ChatAsked)
        wish = asked.wish(chance=secrets.randbelow(1 << 31))
        answers = await self._begun(wish, request[ASKER], "chatcmpl", chat=True)
        return await self._answer(request, wish, answers, bool(asked.stream), asked.wants_usage)

    async def text(self, request: web.Request) -> web.StreamResponse:
        asked = read(request, TextAsked)
        wish = asked.wish(chance=secrets.randbelow(1 << 31))
        answers = await self._begun(wish, request[ASKER], "cmpl", chat=False)
        return await self._answer(request, wish, answers, bool(asked.stream), asked.wants_usage)

    async def _begun(self, wish: Wish, asker: Asker, kind: str, *, chat: bool) -> Answers:
        model = await self._answering.model(wish.model)
        name = f"{kind}-{secrets.token_hex(12)}"
        return Answers(name, model, int(time.time()), chat, asker.origin)

    async def _answer(
        self, request: web.Request, wish: Wish, answers: Answers, stream: bool, usage: bool
    ) -> web.StreamResponse:
        if stream:
            return await send(request, EVENTS, self._events(wish, request[ASKER], answers, usage))
        async with aclosing(self._answering.answer(wish, request[ASKER])) as pieces:
            async for piece in pieces:
                answers.add(piece)
        return web.json_response(answers.whole())

    async def _events(
        self, wish: Wish, asker: Asker, answers: Answers, usage: bool
    ) -> AsyncGenerator[bytes, None]:
        async with aclosing(self._answering.answer(wish, asker)) as pieces:
            async for piece in pieces:
                for chunk in answers.chunks(piece):
                    yield event(chunk | {"usage": None} if usage else chunk)
        if usage:
            yield event(answers.last_chunk())
        yield DONE

    def _told(self, model: Json) -> Json:
        return {
            "id": model["name"],
            "object": "model",
            "created": self._since,
            "owned_by": "poolhouse",
        }
