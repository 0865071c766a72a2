"""OpenAI's routes for responses, whole or as events, and how many tokens one reads."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial

from aiohttp import web

from app.core.errors import AppError
from app.gateway.access.auth import ASKER, HOME
from app.gateway.answering import Answering, Asker
from app.gateway.api_request import Json, Wish
from app.gateway.refusals import Api, explained
from app.gateway.responses.responses_answers import Response
from app.gateway.responses.responses_requests import Asked
from app.gateway.responses.responses_tools import each
from app.gateway.streaming import EVENTS, event, read, send


class ResponsesRoutes:
    """A few lines over Answering."""

    def __init__(self, answering: Answering) -> None:
        self._answering = answering

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/v1/responses", self.responses),
            web.post("/v1/responses/input_tokens", self.count),
        ]

    async def responses(self, request: web.Request) -> web.StreamResponse:
        asked = read(request, Asked)
        wish = asked.wish(chance=secrets.randbelow(1 << 31))
        model = await self._answering.model(wish.model)
        answer = Response(
            f"resp_{secrets.token_hex(12)}", model, int(time.time()), _again(asked),
            request[ASKER].origin, meant=each(asked.own_tools)[1] if wish.tools else {},
        )  # fmt: skip
        if asked.stream:
            events = self._events(wish, request[ASKER], answer)
            return await send(request, EVENTS, events, in_words=partial(_failed, request, answer))
        async with aclosing(self._answering.answer(wish, request[ASKER])) as pieces:
            async for piece in pieces:
                answer.events(piece)
        return web.json_response(answer.object())

    async def count(self, request: web.Request) -> web.Response:
        wish = read(request, Asked).wish(chance=0)
        await self._answering.model(wish.model)
        n_tokens = await self._answering.count(wish)
        return web.json_response({"object": "response.input_tokens", "input_tokens": n_tokens})

    async def _events(
        self, wish: Wish, asker: Asker, answer: Response
    ) -> AsyncGenerator[bytes, None]:
        begun = False
        async with aclosing(self._answering.answer(wish, asker)) as pieces:
            async for piece in pieces:
                told = [] if begun else answer.begin()
                begun = True
                for name, data in (*told, *answer.events(piece)):
                    yield event(data, name)


def _failed(request: web.Request, answer: Response, error: AppError) -> bytes:
    why = explained(Api.OPENAI, error, request[ASKER].request, request[HOME])["error"]
    name, data = answer.failed(why)
    return event(data, name)


def _again(asked: Asked) -> Json:
    """What a response tells again of its request."""
    return {
        "instructions": asked.instructions,
        "max_output_tokens": asked.max_output_tokens,
        "temperature": asked.temperature,
        "top_p": asked.top_p,
        "parallel_tool_calls": asked.parallel_tool_calls is not False,
        "tool_choice": asked.tool_choice or "auto",
        "tools": [tool.told() for tool in asked.own_tools],
        "metadata": asked.metadata or {},
    }  # fmt: skip
