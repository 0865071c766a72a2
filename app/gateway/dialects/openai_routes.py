"""The routes of OpenAI's API (models, chat and text completions) and of llama.cpp's server (health and props)."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aiohttp import web
from msgspec import UNSET, UnsetType

from app import __version__
from app.core.errors import BadInput
from app.gateway import answer_types as types
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
from app.gateway.streaming import EVENTS, event, json_response, read, send

if TYPE_CHECKING:
    from app.node.models.model_manager import ModelManager


LOADING = "Loading model"  # verbatim from llama.cpp's server: programs wait while they see it
REASONS: dict[str, types.Reason] = {"stop": "stop", "length": "length", "calls": "tool_calls"}
# A text completion has no tools, so only an upstream that sends calls unasked ends it with them. They are left out.
TEXT_REASONS: dict[str, types.TextReason] = {"stop": "stop", "length": "length", "calls": "stop"}
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
            cause = types.LoadingCause(code=503, message=LOADING, type="unavailable_error")
            return json_response(types.Loading(error=cause), status=503)
        return json_response(types.Healthy(status="ok"))

    async def props(self, request: web.Request) -> web.Response:
        """Describe the model given as `?model=NAME` or, by default, the model that would answer. Raises BadInput."""
        name = await self._answering.resolve(request.query.get("model", ""))
        running = self._answering.ready_models().get(name)
        if running is None:
            raise BadInput("nothing_loaded")
        known = {model["name"]: model for model in await self._list_models()}
        details = await self._cards.card(known.get(name, {"name": name}))
        card = details.card if details else None
        usual = DEFAULT_SAMPLING
        params = types.UsualParams(
            temperature=usual.temperature, top_k=usual.top_k, top_p=usual.top_p, min_p=usual.min_p,
            repeat_penalty=usual.repeat_penalty, repeat_last_n=usual.repeat_last_n,
            presence_penalty=usual.presence_penalty, frequency_penalty=usual.frequency_penalty,
            max_tokens=-1, n_predict=-1,
        )  # fmt: skip
        props = types.Props(
            default_generation_settings=types.UsualSettings(params=params, n_ctx=running.context),
            total_slots=running.slots,
            model_alias=name,
            model_path=f"{name}.gguf",
            model_ftype=running.entry.model.quantization,
            modalities=types.Modalities(vision=False, video=False, audio=False),
            endpoint_slots=False,
            endpoint_props=False,
            endpoint_metrics=True,
            chat_template=card.template if card else "",
            bos_token=card.bos if card else "",
            eos_token=card.eos if card else "",
            build_info=f"poolhouse-{__version__}",
            is_sleeping=False,
        )
        return json_response(props)


@dataclass(slots=True)
class Answers:
    """The answers in progress to one request."""

    id: str
    model: str
    created: int
    chat: bool
    origin: Origin = field(default_factory=Origin)
    wants_usage: bool = False  # whether the last chunk of a stream contains the usage, and all others a null
    wholes: dict[int, CollectedAnswer] = field(default_factory=dict)

    def add(self, piece: Piece) -> None:
        self.wholes.setdefault(piece.index, CollectedAnswer()).add(piece)

    def whole(self) -> types.ChatCompletion | types.TextCompletion:
        """Return the complete response with all answers."""
        wholes = [(index, self.wholes[index]) for index in sorted(self.wholes)]
        if self.chat:
            return types.ChatCompletion(
                id=self.id, object="chat.completion", created=self.created, model=self.model,
                poolhouse=self.origin.named, choices=[_chat_choice(*each) for each in wholes], usage=self.usage(),
            )  # fmt: skip
        return types.TextCompletion(
            id=self.id, object="text_completion", created=self.created, model=self.model,
            poolhouse=self.origin.named, choices=[_text_choice(*each) for each in wholes], usage=self.usage(),
        )  # fmt: skip

    def chunks(self, piece: Piece) -> list[types.ChatChunk] | list[types.TextChunk]:
        """Return the chunks for a piece. The first chunk of each answer contains the role."""
        begins = piece.index not in self.wholes
        before = self.wholes.setdefault(piece.index, CollectedAnswer()).n_said
        self.add(piece)
        usage = None if self.wants_usage else UNSET
        if not self.chat:
            return [self._text_chunk([_text_part(piece, before)], usage)]
        choices = [_chat_part(piece.index, types.ChatDelta(role="assistant", content=""))] if begins else []
        if (part := _part(piece)) is not None:
            choices.append(part)
        return [self._chat_chunk([choice], usage) for choice in choices]

    def last_chunk(self) -> types.ChatChunk | types.TextChunk:
        """Return the final chunk, which contains the usage."""
        return self._chat_chunk([], self.usage()) if self.chat else self._text_chunk([], self.usage())

    def usage(self) -> types.Usage:
        ends = [whole.ended for whole in self.wholes.values()]
        prompt = max(end.prompt_tokens for end in ends)
        answer = sum(end.answer_tokens for end in ends)
        thought = sum(end.thought_tokens for end in ends)
        return types.Usage(
            prompt_tokens=prompt,
            completion_tokens=answer,
            total_tokens=prompt + answer,
            prompt_tokens_details=types.CachedTokens(cached_tokens=max(end.reused_tokens for end in ends)),
            completion_tokens_details=types.ThoughtTokens(reasoning_tokens=thought) if thought else UNSET,
        )

    def _chat_chunk(
        self, choices: list[types.ChatChunkChoice], usage: types.Usage | UnsetType | None
    ) -> types.ChatChunk:
        return types.ChatChunk(
            id=self.id, object="chat.completion.chunk", created=self.created, model=self.model,
            poolhouse=self.origin.named, choices=choices, usage=usage,
        )  # fmt: skip

    def _text_chunk(
        self, choices: list[types.TextChunkChoice], usage: types.Usage | UnsetType | None
    ) -> types.TextChunk:
        return types.TextChunk(
            id=self.id, object="text_completion", created=self.created, model=self.model,
            poolhouse=self.origin.named, choices=choices, usage=usage,
        )  # fmt: skip


def _chat_choice(index: int, whole: CollectedAnswer) -> types.ChatChoice:
    message = types.ChatMessage(
        role="assistant",
        content=whole.text or (None if whole.calls else ""),
        reasoning_content=whole.thought or UNSET,
        tool_calls=[_call(call) for call in whole.calls] or UNSET,
    )
    reason = REASONS[whole.ended.reason]
    return types.ChatChoice(index=index, message=message, logprobs=_chat_likely(whole.likely), finish_reason=reason)


def _text_choice(index: int, whole: CollectedAnswer) -> types.TextChoice:
    reason, likely = TEXT_REASONS[whole.ended.reason], _text_likely(whole.likely, 0)
    return types.TextChoice(index=index, text=whole.text, logprobs=likely, finish_reason=reason)


def _text_part(piece: Piece, offset: int) -> types.TextChunkChoice:
    said = piece if isinstance(piece, TextPiece) else None
    return types.TextChunkChoice(
        index=piece.index,
        text=said.text if said else "",
        logprobs=_text_likely(said.likely, offset) if said else None,
        finish_reason=TEXT_REASONS[piece.reason] if isinstance(piece, AnswerEnd) else None,
    )


def _part(piece: Piece) -> types.ChatChunkChoice | None:
    """Return the choice of the chunk for a piece, or None if the piece has no chunk."""
    match piece:
        case TextPiece(text=text):
            return _chat_part(piece.index, types.ChatDelta(content=text), _chat_likely(piece.likely))
        case CallStart():
            begun = types.FunctionDelta(name=piece.name, arguments="")
            call = types.CallDelta(index=piece.number, id=piece.id, type="function", function=begun)
            return _chat_part(piece.index, types.ChatDelta(tool_calls=[call]))
        case CallArguments(text=text):
            more = types.CallDelta(index=piece.number, function=types.FunctionDelta(arguments=text))
            return _chat_part(piece.index, types.ChatDelta(tool_calls=[more]))
        case ThoughtPiece(text=text):
            return _chat_part(piece.index, types.ChatDelta(reasoning_content=text)) if text else None
        case CallDone(was_begun=False):
            whole = types.FunctionDelta(name=piece.name, arguments=piece.arguments)
            call = types.CallDelta(index=piece.number, id=piece.id, type="function", function=whole)
            return _chat_part(piece.index, types.ChatDelta(tool_calls=[call]))
        case CallDone():
            return None
        case AnswerEnd(reason=reason):
            return _chat_part(piece.index, types.ChatDelta(), reason=REASONS[reason])


def _chat_part(
    index: int, delta: types.ChatDelta, likely: types.ChatLogprobs | None = None, reason: types.Reason | None = None
) -> types.ChatChunkChoice:
    return types.ChatChunkChoice(index=index, delta=delta, logprobs=likely, finish_reason=reason)


def _call(call: CallDone) -> types.Call:
    function = types.CalledFunction(name=call.name, arguments=call.arguments)
    return types.Call(id=call.id, type="function", function=function)


def _chat_likely(tokens: Sequence[TokenLogprobs]) -> types.ChatLogprobs | None:
    if not tokens:
        return None
    content = [
        types.ChosenToken(**_token(*chosen), top_logprobs=[types.Token(**_token(*candidate)) for candidate in best])
        for chosen, *best in tokens
    ]
    return types.ChatLogprobs(content=content, refusal=None)


def _token(piece: bytes, log: float) -> Json:
    return {"token": piece.decode("utf-8", "replace"), "logprob": log, "bytes": list(piece)}


def _text_likely(tokens: Sequence[TokenLogprobs], offset: int) -> types.TextLogprobs | None:
    if not tokens:
        return None
    texts = [chosen[0].decode("utf-8", "replace") for chosen, *_ in tokens]
    return types.TextLogprobs(
        tokens=texts,
        token_logprobs=[chosen[1] for chosen, *_ in tokens],
        top_logprobs=[_by_text(best) for _, *best in tokens],
        text_offset=[offset + sum(map(len, texts[:place])) for place in range(len(texts))],
    )


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
        models = [self._model(model["name"]) for model in await self._list_models()]
        here = {model.id for model in models}
        models += [self._upstream_model(name) for name in self._answering.upstream_models() if name not in here]
        return json_response(types.Models(object="list", data=models))

    async def model(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        known = {model["name"] for model in await self._list_models()}
        if name not in known:
            name = await self._answering.resolve(name)  # raises an error that names the existing models
        return json_response(self._model(name) if name in known else self._upstream_model(name))

    async def chat(self, request: web.Request) -> web.StreamResponse:
        body = read(request, ChatRequest)
        api_request = body.to_api_request(seed=secrets.randbelow(1 << 31))
        answers = await self._begun(api_request, request[CALLER], "chatcmpl", chat=True, usage=body.wants_usage)
        return await self._answer(request, api_request, answers, bool(body.stream))

    async def text(self, request: web.Request) -> web.StreamResponse:
        body = read(request, CompletionRequest)
        api_request = body.to_api_request(seed=secrets.randbelow(1 << 31))
        answers = await self._begun(api_request, request[CALLER], "cmpl", chat=False, usage=body.wants_usage)
        return await self._answer(request, api_request, answers, bool(body.stream))

    async def _begun(self, api_request: ApiRequest, caller: Caller, kind: str, *, chat: bool, usage: bool) -> Answers:
        model = await self._answering.resolve(api_request.model)
        name = f"{kind}-{secrets.token_hex(12)}"
        return Answers(name, model, int(time.time()), chat, caller.origin, usage)

    async def _answer(
        self, request: web.Request, api_request: ApiRequest, answers: Answers, stream: bool
    ) -> web.StreamResponse:
        if stream:
            return await send(request, EVENTS, self._events(api_request, request[CALLER], answers))
        async with aclosing(self._answering.answer(api_request, request[CALLER])) as pieces:
            async for piece in pieces:
                answers.add(piece)
        return json_response(answers.whole())

    async def _events(self, api_request: ApiRequest, caller: Caller, answers: Answers) -> AsyncGenerator[bytes, None]:
        async with aclosing(self._answering.answer(api_request, caller)) as pieces:
            async for piece in pieces:
                for chunk in answers.chunks(piece):
                    yield event(chunk)
        if answers.wants_usage:
            yield event(answers.last_chunk())
        yield DONE

    def _model(self, name: str) -> types.Model:
        return types.Model(id=name, object="model", created=self._since, owned_by="poolhouse")

    def _upstream_model(self, name: str) -> types.Model:
        return types.Model(id=name, object="model", created=self._since, owned_by="upstream")
