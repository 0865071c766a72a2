"""Ollama's routes, for its clients: alive, tags, show, ps, version, chat, generate."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractContextManager, aclosing
from datetime import UTC, datetime

import msgspec
from aiohttp import web

from app.core.errors import BadInput
from app.gateway.access.auth import ASKER
from app.gateway.answering import Answering, Asker
from app.gateway.api_request import USUAL, ApiRequest, Json
from app.gateway.dialects.ollama_dialect import Answer, OllamaChatRequest, OllamaGenerateRequest
from app.gateway.keep_alive import LettingGo
from app.gateway.model_cards import ModelCard, ModelCards, iso, modified_at
from app.gateway.streaming import NDJSON, read, send

USUAL_OPTIONS = {
    name: getattr(USUAL, name) for name in ("temperature", "top_k", "top_p", "min_p", "repeat_penalty", "repeat_last_n")
}

Listed = Callable[[], Awaitable[list[Json]]]
# Whose API these routes speak: programs ask for one that is new enough (Copilot in VS Code: 0.6.4), not for ours.
OLLAMA_VERSION = "0.12.0"
RUNS = "Ollama is running"  # word for word: programs look for it


class ShowRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The model to describe; older clients call it `name`."""

    model: str = ""
    name: str = ""

    def wanted(self) -> str:
        """Return the model's name. Raises BadInput."""
        if not (name := (self.model or self.name).removesuffix(":latest")):
            raise BadInput("bad_request", why="model is missing", field="model")
        return name


def listed(model: Json, modified: str) -> Json:
    """Return the entry of a model of the shelf, or of an upstream's, of which only the name is known."""
    return {
        "name": model["name"],
        "model": model["name"],
        "modified_at": modified,
        "size": model.get("file_bytes") or 0,
        "digest": _digest(model),
        "details": _details(model),
    }


def running(model: Json, context: int) -> Json:
    """Return the entry of a loaded model. It has no end: the program that loaded it decides."""
    return {
        "name": model["name"],
        "model": model["name"],
        "size": model.get("file_bytes") or 0,
        "digest": _digest(model),
        "details": _details(model),
        "context_length": context,
    }


def shown(model: Json, card: ModelCard | None, since: str, context: int | None) -> Json:
    """Return the description of a model and its abilities. `context`: of a conversation, if it is loaded."""
    family = model.get("architecture") or ""
    can = {
        "completion": model.get("writes", True),
        "tools": card is not None and card.has_tools,
        "thinking": card is not None and card.thinks,
        "embedding": model.get("embeds"),
    }
    facts = {"context_length": "context_length", "embedding_length": "width", "block_count": "n_layers"}
    about = {f"{family}.{name}": model[of] for name, of in facts.items() if of in model}
    if count := model.get("n_parameters"):
        about["general.parameter_count"] = count
    entries = dict(card.card.entries) if card is not None else {}
    return {
        "modified_at": card.modified if card is not None else since,
        "license": model.get("licence") or "",
        "modelfile": f"FROM {model['name']}\n",
        "parameters": _parameters(context),
        "template": card.card.template if card is not None else "",
        "details": _details(model),
        "model_info": {"general.architecture": family, **entries, **about},
        "capabilities": [name for name, is_so in can.items() if is_so],
    }


def _parameters(context: int | None) -> str:
    """Return the default parameters, one a line, as Ollama writes them."""
    usual = USUAL_OPTIONS if context is None else {"num_ctx": context, **USUAL_OPTIONS}
    return "\n".join(f"{name:<30} {value:g}" for name, value in usual.items())


def parameter_size(count: int) -> str:
    """Return a number of weights as Ollama writes it: 134.52M, 8.0B, 70B."""
    if not count:
        return ""
    for least, letter, digits in ((10**9, "B", 1), (10**6, "M", 2), (10**3, "K", 0)):
        if count >= least:
            whole, rest = divmod(count, least)
            return f"{whole}{letter}" if not rest else f"{count / least:.{digits}f}{letter}"
    return str(count)


def _digest(model: Json) -> str:
    """Return a digest. Of an upstream's model only the name is known.

    Ollama's command line cuts the digest to twelve letters, and breaks where there are fewer.
    """
    return str(model.get("id") or hashlib.sha256(model["name"].encode()).hexdigest())


def _details(model: Json) -> Json:
    return {
        "parent_model": "",
        "format": "gguf",
        "family": (family := model.get("architecture") or ""),
        "families": [family] if family else [],
        "parameter_size": parameter_size(model.get("n_parameters") or 0),
        "quantization_level": model.get("quantisation") or "",
    }


class OllamaRoutes:
    """The routes, each a few lines over Answering."""

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
        """Answer that Ollama is running; its command line asks this first, by HEAD."""
        return web.Response(text=RUNS)

    async def version(self, request: web.Request) -> web.Response:
        return web.json_response({"version": OLLAMA_VERSION})

    async def tags(self, request: web.Request) -> web.Response:
        models = [listed(model, await modified_at(model, self._since)) for model in (await self._known()).values()]
        return web.json_response({"models": models})

    async def loaded(self, request: web.Request) -> web.Response:
        known = await self._known()
        contexts = {name: placement.context for name, placement in self._answering.ready().items()}
        if not contexts:  # of a guest, what its hosts have loaded
            contexts = {name: model["context"] for name, model in known.items() if model.get("context")}
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
        encoded = msgspec.json.encode(shown(model, card, self._since, context))  # NaN of a file is null
        return web.Response(body=encoded, content_type="application/json")

    async def chat(self, request: web.Request) -> web.StreamResponse:
        body = read(request, OllamaChatRequest)
        if not body.messages:
            return await self._brought(request, body, chat=True)
        return await self._answer(request, body, chat=True)

    async def generate(self, request: web.Request) -> web.StreamResponse:
        body = read(request, OllamaGenerateRequest)
        if not body.prompt:
            return await self._brought(request, body, chat=False)
        return await self._answer(request, body, chat=False)

    async def _answer(
        self, request: web.Request, body: OllamaChatRequest | OllamaGenerateRequest, *, chat: bool
    ) -> web.StreamResponse:
        begun, wish = time.monotonic(), body.wish(secrets.randbelow(1 << 31))
        answer = Answer(await self._answering.model(wish.model), chat, request[ASKER].origin)
        keeping = self._going.keeping(answer.model, lets_go=body.lets_go)
        if body.stream is not False:
            lines = self._lines(wish, request[ASKER], answer, begun, keeping)
            return await send(request, NDJSON, lines)
        with keeping:
            async with aclosing(self._answering.answer(wish, request[ASKER])) as pieces:
                async for piece in pieces:
                    answer.whole.add(piece)
        return web.json_response(answer.object(time.time(), time.monotonic() - begun))

    async def _brought(
        self, request: web.Request, body: OllamaChatRequest | OllamaGenerateRequest, *, chat: bool
    ) -> web.Response:
        """Load or unload the model: a request without a prompt asks for that."""
        model = await self._answering.model(body.model)
        if body.lets_go:
            self._going.at_once(model)
            return web.json_response(Answer(model, chat).brought(time.time(), "unload"))
        await self._answering.bring(body.model, request[ASKER])
        return web.json_response(Answer(model, chat).brought(time.time()))

    async def _known(self) -> dict[str, Json]:
        """Return the models of the shelf, and those that upstreams answer for."""
        elsewhere = {name: {"name": name} for name in self._answering.elsewhere()}
        here: dict[str, Json] = {model["name"]: model for model in await self._listed()}
        return here | {name: model for name, model in elsewhere.items() if name not in here}

    async def _lines(
        self, wish: ApiRequest, asker: Asker, answer: Answer, begun: float, keeping: AbstractContextManager[None]
    ) -> AsyncGenerator[bytes, None]:
        with keeping:
            async with aclosing(self._answering.answer(wish, asker)) as pieces:
                async for piece in pieces:
                    line = answer.line(piece, time.time(), time.monotonic() - begun)
                    yield msgspec.json.encode(line) + b"\n"
