"""The routes of OpenAI's API (models, chat and text completions) and of llama.cpp's server (health and props)."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec
from aiohttp import web

from app import __version__
from app.core.errors import BadInput
from app.gateway.access.auth import CALLER, HEALTH
from app.gateway.answer_service import AnswerService, Caller
from app.gateway.api_request import (
    DEFAULT_SAMPLING,
    AnswerEnd,
    ApiRequest,
    CallArguments,
    CallDone,
    CallStart,
    CollectedAnswer,
    Json,
    Origin,
    Piece,
    TextPiece,
    ThoughtPiece,
    TokenLogprobs,
)
from app.gateway.dialects.openai_requests import ChatRequest, CompletionRequest
from app.gateway.model_cards import ListModels, ModelCards
from app.gateway.streaming import EVENTS, event, read, send

if TYPE_CHECKING:
    from app.node.models.model_manager import ModelManager


LOADING = "Loading model"  # verbatim from llama.cpp's server: programs wait while they see it
SAMPLING = ("temperature", "top_k", "top_p", "min_p", "repeat_penalty", "repeat_last_n", "presence_penalty",
            "frequency_penalty")  # fmt: skip

REASONS = {"stop": "stop", "length": "length", "calls": "tool_calls"}
DONE = b"data: [DONE]\n\n"


class ServerRoutes:
    """The routes of llama.cpp's server. Their answers contain no prompts and no local paths."""

    def __init__(
        self, answering: AnswerService, hosting: ModelManager, list_models: ListModels, cards: ModelCards
    ) -> None:
        self._answering, self._hosting, self._list_models = answering, hosting, list_models
        self._cards = cards

    def routes(self) -> list[web.RouteDef]:
        return [*(web.get(path, self.health) for path in HEALTH), web.get("/props", self.props)]

    async def health(self, request: web.Request) -> web.Response:
        """Report whether the server is ready for requests.

        It is ready even if no model is loaded, because a request loads its model.
        """
        if self._hosting.loading and not self._answering.ready_models():
            error = {"code": 503, "message": LOADING, "type": "unavailable_error"}
            return web.json_response({"error": error}, status=503)
        return web.json_response({"status": "ok"})

    async def props(self, request: web.Request) -> web.Response:
        """Describe the model given as `?model=NAME` or, by default, the model that would answer. Raises BadInput."""
        name = await self._answering.resolve(request.query.get("model", ""))
        running = self._answering.ready_models().get(name)
        if running is None:
            raise BadInput("nothing_loaded")
        known = {model["name"]: model for model in await self._list_models()}
        details = await self._cards.card(known.get(name, {"name": name}))
        card = details.card if details else None
        params: Json = {field: getattr(DEFAULT_SAMPLING, field) for field in SAMPLING}
        props: Json = {
            "default_generation_settings": {
                "params": params | {"max_tokens": -1, "n_predict": -1},
                "n_ctx": running.context,
            },
            "total_slots": running.slots,
            "model_alias": name,
            "model_path": f"{name}.gguf",
            "model_ftype": running.entry.model.quantization,
            "modalities": {"vision": False, "video": False, "audio": False},
            "endpoint_slots": False,
            "endpoint_props": False,
            "endpoint_metrics": True,
            "chat_template": card.template if card else "",
            "bos_token": card.bos if card else "",
            "eos_token": card.eos if card else "",
            "build_info": f"poolhouse-{__version__}",
            "is_sleeping": False,
        }
        return web.Response(body=msgspec.json.encode(props), content_type="application/json")


@dataclass(slots=True)
class Answers:
    """The answers in progress to one request."""

    id: str
    model: str
    created: int
    chat: bool
    origin: Origin = field(default_factory=Origin)
    wholes: dict[int, CollectedAnswer] = field(default_factory=dict)

    def add(self, piece: Piece) -> None:
        self.wholes.setdefault(piece.index, CollectedAnswer()).add(piece)

    def whole(self) -> Json:
        """Return the complete response with all answers."""
        choices = [self._choice(index, self.wholes[index]) for index in sorted(self.wholes)]
        kind = "chat.completion" if self.chat else "text_completion"
        return self._frame(kind, choices) | {"usage": self.usage()}

    def chunks(self, piece: Piece) -> list[Json]:
        """Return the chunks for a piece. The first chunk of each answer contains the role."""
        begins = piece.index not in self.wholes
        before = self.wholes.setdefault(piece.index, CollectedAnswer()).n_said
        self.add(piece)
        if not self.chat:
            return [self._frame("text_completion", [self._text_part(piece, before)])]
        deltas: list[tuple[Json, Json | None, str | None]] = (
            [({"role": "assistant", "content": ""}, None, None)] if begins else []
        )
        match piece:
            case TextPiece(text=text):
                deltas.append(({"content": text}, _chat_likely(piece.likely), None))
            case CallStart(number=number, id=name):
                begun = {"name": piece.name, "arguments": ""}
                call = {"index": number, "id": name, "type": "function", "function": begun}
                deltas.append(({"tool_calls": [call]}, None, None))
            case CallArguments(number=number, text=text):
                more = {"index": number, "function": {"arguments": text}}
                deltas.append(({"tool_calls": [more]}, None, None))
            case ThoughtPiece(text=text):
                if text:
                    deltas.append(({"reasoning_content": text}, None, None))
            case CallDone(number=number) if not piece.was_begun:
                deltas.append(({"tool_calls": [{"index": number, **_call(piece)}]}, None, None))
            case AnswerEnd(reason=reason):
                deltas.append(({}, None, REASONS[reason]))
        return [
            self._frame(
                "chat.completion.chunk",
                [{"index": piece.index, "delta": delta, "logprobs": likely, "finish_reason": reason}],
            )
            for delta, likely, reason in deltas
        ]

    def last_chunk(self) -> Json:
        """Return the final chunk, which contains the usage."""
        kind = "chat.completion.chunk" if self.chat else "text_completion"
        return self._frame(kind, []) | {"usage": self.usage()}

    def usage(self) -> Json:
        ends = [whole.ended for whole in self.wholes.values()]
        prompt = max(end.prompt_tokens for end in ends)
        answer = sum(end.answer_tokens for end in ends)
        thought = sum(end.thought_tokens for end in ends)
        reused = max(end.reused_tokens for end in ends)
        return {
            "prompt_tokens": prompt,
            "completion_tokens": answer,
            "total_tokens": prompt + answer,
            "prompt_tokens_details": {"cached_tokens": reused},
            **({"completion_tokens_details": {"reasoning_tokens": thought}} if thought else {}),
        }

    def _frame(self, kind: str, choices: list[Json]) -> Json:
        return {
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "choices": choices,
            **self.origin.fields(),
        }

    def _choice(self, index: int, whole: CollectedAnswer) -> Json:
        reason = REASONS[whole.ended.reason]
        if not self.chat:
            likely = _text_likely(whole.likely, 0)
            return {"index": index, "text": whole.text, "logprobs": likely, "finish_reason": reason}
        message: Json = {"role": "assistant", "content": whole.text or (None if whole.calls else "")}
        if whole.thought:
            message["reasoning_content"] = whole.thought
        if whole.calls:
            message["tool_calls"] = [_call(call) for call in whole.calls]
        return {"index": index, "message": message, "logprobs": _chat_likely(whole.likely), "finish_reason": reason}

    def _text_part(self, piece: Piece, offset: int) -> Json:
        said = piece if isinstance(piece, TextPiece) else None
        return {
            "index": piece.index,
            "text": said.text if said else "",
            "logprobs": _text_likely(said.likely, offset) if said else None,
            "finish_reason": REASONS[piece.reason] if isinstance(piece, AnswerEnd) else None,
        }


def _call(call: CallDone) -> Json:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _chat_likely(tokens: Sequence[TokenLogprobs]) -> Json | None:
    if not tokens:
        return None
    content = [
        _token(*chosen) | {"top_logprobs": [_token(*candidate) for candidate in best]} for chosen, *best in tokens
    ]
    return {"content": content, "refusal": None}


def _token(piece: bytes, log: float) -> Json:
    return {"token": piece.decode("utf-8", "replace"), "logprob": log, "bytes": list(piece)}


def _text_likely(tokens: Sequence[TokenLogprobs], offset: int) -> Json | None:
    if not tokens:
        return None
    texts = [chosen[0].decode("utf-8", "replace") for chosen, *_ in tokens]
    offsets = [offset + sum(map(len, texts[:place])) for place in range(len(texts))]
    return {
        "tokens": texts,
        "token_logprobs": [chosen[1] for chosen, *_ in tokens],
        "top_logprobs": [_by_text(best) for _, *best in tokens],
        "text_offset": offsets,
    }


def _by_text(likely: Iterable[tuple[bytes, float]]) -> dict[str, float]:
    by_text: dict[str, float] = {}
    for piece, log in likely:
        by_text.setdefault(piece.decode("utf-8", "replace"), log)
    return by_text


class OpenAiRoutes:
    """The routes of OpenAI's chat and text completions."""

    def __init__(self, answering: AnswerService, list_models: ListModels) -> None:
        self._answering, self._list_models = answering, list_models
        self._since = int(time.time())

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/v1/models", self.models),
            web.get("/v1/models/{name:.+}", self.model),  # an upstream's name may contain slashes
            web.post("/v1/chat/completions", self.chat),
            web.post("/v1/completions", self.text),
        ]

    async def models(self, request: web.Request) -> web.Response:
        models = [self._model_card(model) for model in await self._list_models()]
        here = {model["id"] for model in models}
        models += [
            self._model_card({"name": name}) | {"owned_by": "upstream"}
            for name in self._answering.upstream_models()
            if name not in here
        ]
        return web.json_response({"object": "list", "data": models})

    async def model(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        known = {model["name"]: model for model in await self._list_models()}
        if name not in known:
            name = await self._answering.resolve(name)  # raises an error that names the existing models
            if name not in known:
                entry = self._model_card({"name": name}) | {"owned_by": "upstream"}
                return web.json_response(entry)
        return web.json_response(self._model_card(known[name]))

    async def chat(self, request: web.Request) -> web.StreamResponse:
        body = read(request, ChatRequest)
        api_request = body.to_api_request(seed=secrets.randbelow(1 << 31))
        answers = await self._begun(api_request, request[CALLER], "chatcmpl", chat=True)
        return await self._answer(request, api_request, answers, bool(body.stream), body.wants_usage)

    async def text(self, request: web.Request) -> web.StreamResponse:
        body = read(request, CompletionRequest)
        api_request = body.to_api_request(seed=secrets.randbelow(1 << 31))
        answers = await self._begun(api_request, request[CALLER], "cmpl", chat=False)
        return await self._answer(request, api_request, answers, bool(body.stream), body.wants_usage)

    async def _begun(self, api_request: ApiRequest, caller: Caller, kind: str, *, chat: bool) -> Answers:
        model = await self._answering.resolve(api_request.model)
        name = f"{kind}-{secrets.token_hex(12)}"
        return Answers(name, model, int(time.time()), chat, caller.origin)

    async def _answer(
        self, request: web.Request, api_request: ApiRequest, answers: Answers, stream: bool, usage: bool
    ) -> web.StreamResponse:
        if stream:
            return await send(request, EVENTS, self._events(api_request, request[CALLER], answers, usage))
        async with aclosing(self._answering.answer(api_request, request[CALLER])) as pieces:
            async for piece in pieces:
                answers.add(piece)
        return web.json_response(answers.whole())

    async def _events(
        self, api_request: ApiRequest, caller: Caller, answers: Answers, usage: bool
    ) -> AsyncGenerator[bytes, None]:
        async with aclosing(self._answering.answer(api_request, caller)) as pieces:
            async for piece in pieces:
                for chunk in answers.chunks(piece):
                    yield event(chunk | {"usage": None} if usage else chunk)
        if usage:
            yield event(answers.last_chunk())
        yield DONE

    def _model_card(self, model: Json) -> Json:
        return {"id": model["name"], "object": "model", "created": self._since, "owned_by": "poolhouse"}
