"""A host's API for members: the Chat API over a member's pinned link, which replaces the key (SAFETY.md 4)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import replace

from aiohttp import web

from app.api import requests
from app.api.responses import AnsweredBy, WaitingPlace
from app.core.errors import AppError, BadInput
from app.core.ids import MachineId
from app.core.scheduler.requester import Requester, member_requester
from app.gateway.access.auth import CALLER, Handler
from app.gateway.access.token_budget import TokenBudget
from app.gateway.answer_service import AnswerService, Caller
from app.gateway.model_cards import ListModels
from app.gateway.streaming import read
from app.inference.pipeline.completion import Delta, GenerationRequest
from app.network.peer.listener import MEMBER
from app.node.control.answer_conversion import AnswerPart, answer_lines, generation_request
from app.node.control.guard import COMPRESSED, FOREIGN_ORIGIN
from app.node.control.json_bodies import stream
from app.node.models.model_manager import ModelManager
from app.node.models.tool_answers import ToolCallReader, uses_tools
from app.node.placement.placement import Placement

FOR_MEMBERS = {
    "api_model_not_loaded": "guest_model_not_loaded",
    "api_model_stays": "guest_model_stays",
    "embedding_model_missing": "guest_embedding_missing",
    "reranker_missing": "guest_reranker_missing",
    "upstream_spent": "guest_upstream_spent",
    "upstream_short": "guest_upstream_spent",
    "upstream_uncounted": "guest_upstream_spent",
    "upstream_off": "guest_upstream_off",
}

PLACE_SECONDS = 0.5  # between checks of a waiting request's place
LOOK_SECONDS = 0.25  # between checks that a member still has access
FACTS = ("name", "id", "architecture", "quantization", "file_bytes", "embeds", "writes",
         "ranks", "n_parameters", "vision")  # fmt: skip


@contextmanager
def naming_host(host: Callable[[], str]) -> Iterator[None]:
    """Add the host's name to errors that are raised in the block, because only the host's owner can fix them.

    host: returns the host's name.
    """
    try:
        yield
    except AppError as error:
        if code := FOR_MEMBERS.get(error.reason.code):
            raise type(error)(code, **error.reason.facts | {"host": host()}) from None
        raise


def name_host_in_errors(host: Callable[[], str]) -> Callable[..., Awaitable[web.StreamResponse]]:
    """Return the middleware that adds the host's name to errors (see `naming_host`)."""

    @web.middleware
    async def named(request: web.Request, handler: Handler) -> web.StreamResponse:
        with naming_host(host):
            return await handler(request)

    return named


class MemberAuthenticator:
    """The identity check for members. The listener has already verified their identity.

    `may` returns whether this machine answers the member's requests.
    """

    def __init__(self, may: Callable[[MachineId], bool]) -> None:
        self._may = may

    def address_error(self, request: web.Request) -> tuple[int, str] | None:
        """Return the status and text for rejecting a request, or None.

        Requests with an Origin are refused: a browser does not have a member's certificate, so such a request comes
        from a web page and not from the member. Compressed bodies are refused, because the member's node has already
        decompressed the bodies of its programs, and the listener for members does not limit the decompressed size.
        """
        if "Origin" in request.headers:
            return 403, FOREIGN_ORIGIN
        if "Content-Encoding" in request.headers:
            return 415, COMPRESSED
        if not self._may(request[MEMBER].id):
            return 403, "This machine does not answer questions of other machines. Ask another host."
        return None

    def caller_name(self, request: web.Request) -> str | None:
        """Return a name for the member. It contains a space, so it cannot be the name of a key."""
        return f"member {request[MEMBER].id[:16]}"

    def requester(self, request: web.Request, key: str) -> Requester:
        return member_requester(request[MEMBER].name, request[MEMBER].roles)

    def accepts_form_type(self, request: web.Request) -> bool:
        """Return False, because a member's node declares the type of every body that it forwards."""
        return False


def while_allowed(may: Callable[[MachineId], bool]) -> Callable[..., Awaitable[web.StreamResponse]]:
    """Return the middleware that ends an answer when its member disconnects or may no longer ask this host."""

    @web.middleware
    async def ends(request: web.Request, handler: Handler) -> web.StreamResponse:
        member, transport = request[MEMBER].id, request.transport
        async with asyncio.TaskGroup() as group:
            work = group.create_task(_answered(handler(request)), name="answer a member")
            while not (await asyncio.wait({work}, timeout=LOOK_SECONDS))[0]:
                if not may(member) or transport is None or transport.is_closing():
                    work.cancel()
                    break
        if work.cancelled():
            if transport is not None:
                transport.abort()
            return web.Response(status=403)  # never sent, since the connection is closed
        return work.result()

    return ends


async def _answered(answer: Awaitable[web.StreamResponse]) -> web.StreamResponse:
    return await answer


class MemberRoutes:
    """The routes for a member's own window and command line. The member's programs use the routes of the Chat API."""

    def __init__(
        self,
        answering: AnswerService,
        budget: TokenBudget,
        hosting: ModelManager,
        list_models: ListModels,
        host: Callable[[], str],
    ) -> None:
        self._answering, self._budget, self._host = answering, budget, host
        self._hosting, self._list_models = hosting, list_models

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/models", self.models), web.post("/ask", self.ask)]

    async def models(self, request: web.Request) -> web.Response:
        """List the models, without the paths of their files."""
        listed = [{fact: model[fact] for fact in FACTS} for model in await self._list_models()]
        ready = self._answering.ready_models()
        for model in listed:
            model["context"] = ready[model["name"]].context if model["name"] in ready else 0
        loaded = self._hosting.loaded
        first, beside = loaded.first, [placement.entry.name for placement in loaded.except_for(loaded.first)]
        name = first.entry.name if first else None
        return web.json_response({"models": listed, "loaded": name, "beside": beside})

    async def ask(self, request: web.Request) -> web.StreamResponse:
        order = read(request, requests.Ask)
        return await stream(request, answer_lines(self._answer(order, request[CALLER])))

    async def _answer(self, order: requests.Ask, caller: Caller) -> AsyncGenerator[AnswerPart, None]:
        """Answer a chat. The member takes turns with all programs and may use the same models."""
        with naming_host(self._host):
            answering = self._answering
            self._budget.check(caller.key)
            talk = f"{caller.key} {order.conversation}" if order.conversation else None
            question = generation_request(order)
            reader = ToolCallReader(order) if uses_tools(order) else None
            async with answering.line(caller.key, order.model or "") as turn:
                sent = None
                while not await turn.wait(PLACE_SECONDS):
                    if (place := answering.queue.place(turn)) is not None and place != sent:
                        sent = place
                        yield WaitingPlace(*place)
                model = await answering.assigned_model(turn, order.model or "")
                self._budget.check(caller.key)
                if words := self._hosting.notice(order.model, model):
                    yield AnsweredBy(model, words)

                async def ask(running: Placement) -> GenerationRequest:
                    if running.entry.name != model:  # another model was loaded in the meantime
                        raise BadInput("api_model_not_loaded", name=model, loaded=running.entry.name)
                    return replace(
                        question if reader is None else await reader.request(running),
                        conversation=talk,
                        request=caller.request_id,
                        requester=caller.requester,
                        read=self._budget.spender(caller.key),
                    )

                answer = self._hosting.answer(model, ask, may_load=answering.needs_load(model))
                async with aclosing(answer) as parts:
                    async for part in parts:
                        if isinstance(part, Delta):
                            self._budget.spend(caller.key, len(part.token_ids))
                        for read_part in (part,) if reader is None else reader.read(part):
                            yield read_part
