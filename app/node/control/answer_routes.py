"""Control API routes that generate answers, including detached ones, and count tokens."""

from __future__ import annotations

from contextlib import aclosing

import msgspec
from aiohttp import web

from app.api import requests
from app.api.responses import AnsweredBy, AnswerKeys, EmptyResponse, TokenCount
from app.core.errors import BadInput
from app.core.reasons import said
from app.gateway.upstreams.server_answers import NotePrompt, ServerAnswers
from app.gateway.upstreams.upstreams import Upstreams
from app.node.control.answer_conversion import answer_lines
from app.node.control.json_bodies import answer, body, stream
from app.node.models.detached_answers import DetachedAnswers, Parts
from app.node.models.household_models import HouseholdModels
from app.node.models.model_manager import ModelManager


class AnswerRoutes:
    """Routes for answers. POST to a key starts an answer and streams it, GET replays it, and DELETE stops it."""

    def __init__(
        self, models: ModelManager, household_models: HouseholdModels, upstreams: Upstreams, kept: DetachedAnswers
    ) -> None:
        self._models, self._household_models = models, household_models
        self._servers = ServerAnswers(upstreams, self._parts, self._has_model)
        self._kept = kept

    def routes(self) -> list[web.RouteDef]:
        key = "/answers/{key}"
        return [
            web.post("/ask", self.ask),
            web.get("/answers", self.known),
            web.post(key, self.begin),
            web.get(key, self.follow),
            web.delete(key, self.stop),
            web.post("/tokens", self.tokens),
        ]

    async def ask(self, request: web.Request) -> web.StreamResponse:
        return await stream(request, answer_lines(self._answer(await body(request, requests.Ask))))

    async def known(self, request: web.Request) -> web.Response:
        return answer(AnswerKeys(self._kept.keys))

    async def begin(self, request: web.Request) -> web.StreamResponse:
        key, order = _key(request), await body(request, requests.Ask)
        await self._kept.begin(key, self._answer(order))
        return await stream(request, answer_lines(self._kept.follow(key)))

    async def follow(self, request: web.Request) -> web.StreamResponse:
        return await stream(request, answer_lines(self._kept.follow(_key(request))))

    async def stop(self, request: web.Request) -> web.Response:
        await self._kept.stop(_key(request))
        return answer(EmptyResponse())

    async def tokens(self, request: web.Request) -> web.Response:
        order = await body(request, requests.CountTokens)
        running = self._models.loaded.named(order.model)
        if running is None or running.completer is None:
            raise BadInput("nothing_loaded")
        return answer(TokenCount(await running.completer.count(order.text)))

    def _answer(self, order: requests.Ask) -> Parts:
        return self._servers.answer(order)

    async def _has_model(self, name: str) -> bool:
        """Return whether this machine has this model, loaded or as a file."""
        return self._models.loaded.named(name) is not None or await self._household_models.has_file(name)

    async def _parts(self, order: requests.Ask, on_prompt: NotePrompt) -> Parts:
        """Yield the parts of an answer from this machine, or from the host that has the model loaded."""
        there = await self._household_models.destination(order.model or "")
        if notice := self._household_models.replacement_notice(there):
            yield AnsweredBy(there.model, said(notice), notice)
        if there.host is None:
            work = self._models.ask(msgspec.structs.replace(order, model=there.model or None), on_prompt)
        else:
            work = self._household_models.ask(order, there)
        async with aclosing(work) as parts:
            async for part in parts:
                yield part


def _key(request: web.Request) -> str:
    return request.match_info["key"]
