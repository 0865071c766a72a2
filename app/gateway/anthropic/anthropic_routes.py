"""Anthropic's routes: messages, whole or as a stream, and how many tokens one is."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator
from contextlib import aclosing

from aiohttp import web

from app.gateway.access.auth import ASKER
from app.gateway.answering import Answering, Asker
from app.gateway.anthropic.anthropic_dialect import Answer, MessagesRequest, check_answerable
from app.gateway.api_request import ApiRequest
from app.gateway.streaming import EVENTS, event, read, send


class AnthropicRoutes:
    """Each a few lines over Answering."""

    def __init__(self, answering: Answering) -> None:
        self._answering = answering

    def routes(self) -> list[web.RouteDef]:
        return [web.post("/v1/messages", self.messages), web.post("/v1/messages/count_tokens", self.count)]

    async def messages(self, request: web.Request) -> web.StreamResponse:
        asked = read(request, MessagesRequest)
        check_answerable(asked)
        wish = asked.wish(chance=secrets.randbelow(1 << 31))
        model, origin = await self._answering.model(wish.model), request[ASKER].origin
        answer = Answer(f"msg_{secrets.token_hex(12)}", model, origin)
        if asked.stream:
            return await send(request, EVENTS, self._events(wish, request[ASKER], answer))
        async with aclosing(self._answering.answer(wish, request[ASKER])) as pieces:
            async for piece in pieces:
                answer.whole.add(piece)
        return web.json_response(answer.message())

    async def count(self, request: web.Request) -> web.Response:
        wish = read(request, MessagesRequest).wish(chance=0)
        await self._answering.model(wish.model)
        return web.json_response({"input_tokens": await self._answering.count(wish)})

    async def _events(self, wish: ApiRequest, asker: Asker, answer: Answer) -> AsyncGenerator[bytes, None]:
        begun = False
        async with aclosing(self._answering.answer(wish, asker)) as pieces:
            async for piece in pieces:
                told = [] if begun else answer.begin()
                begun = True
                for name, data in (*told, *answer.events(piece)):
                    yield event({"type": name} | data, name)
