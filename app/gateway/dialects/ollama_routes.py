"""Ollama's API: its routes, its requests, its answers with one JSON object per line, and `keep_alive`."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, aclosing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import msgspec
from aiohttp import web
from msgspec import UNSET, Meta

from app.core.errors import BadInput, Busy
from app.core.tools.reasoning import Thinking
from app.gateway import answer_types as types
from app.gateway.access.auth import CALLER
from app.gateway.answer_service import AnswerService, Caller
from app.gateway.api_request import (
    DEFAULT_SAMPLING,
    MAX_SEED,
    MOST_TOOLS,
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
    token_limit,
    with_thought,
)
from app.gateway.dialects.openai_requests import (
    SAMPLING_FIELDS,
    ChatTool,
    Fraction,
    LastN,
    Name,
    Stops,
    TopK,
    assistant_message,
    given_fields,
    stop_strings,
    unknown_role,
    with_values,
)
from app.gateway.dialects.picture_parts import add_base64
from app.gateway.model_cards import ListModels, ModelCard, ModelCards, iso, modified_at
from app.gateway.streaming import NDJSON, json_response, read, send
from app.inference.pipeline.pictures import Pictures
from app.node.models.model_manager import ModelManager
from app.node.placement.placement import Placement
from backends.contract import Sampling

log = logging.getLogger(__name__)
DEFAULT_OPTIONS = {
    name: getattr(DEFAULT_SAMPLING, name)
    for name in ("temperature", "top_k", "top_p", "min_p", "repeat_penalty", "repeat_last_n")
}

# The version of Ollama's API that is reported. Programs require a recent one (Copilot in VS Code: 0.6.4), not ours.
OLLAMA_VERSION = "0.12.0"
RUNS = "Ollama is running"  # verbatim: programs look for it
NANOSECONDS = 1e9
MOST_HEAT = 100  # Ollama has no limit, but from this temperature on all tokens are about equally likely.
Penalty = Annotated[float, Meta(ge=-2, le=2)] | None


class Options(msgspec.Struct, frozen=True):
    """The supported options. Unknown options are ignored, as in Ollama."""

    temperature: Annotated[float, Meta(ge=0, le=MOST_HEAT)] | None = None
    top_k: TopK = None
    top_p: Fraction = None
    min_p: Fraction = None
    repeat_penalty: Annotated[float, Meta(ge=0.01, le=10)] | None = None
    repeat_last_n: LastN = None
    presence_penalty: Penalty = None
    frequency_penalty: Penalty = None
    seed: Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)] | None = None
    num_predict: Annotated[int, Meta(ge=-2, le=1 << 31)] | None = None
    stop: Stops = None

    def sampling(self, seed: int) -> Sampling:
        values = with_values(
            DEFAULT_SAMPLING,
            temperature=self.temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            min_p=self.min_p,
            repeat_penalty=self.repeat_penalty,
            repeat_last_n=self.repeat_last_n,
            presence_penalty=self.presence_penalty,
            frequency_penalty=self.frequency_penalty,
        )
        return replace(values, seed=(seed if self.seed is None else self.seed) % (MAX_SEED + 1))

    @property
    def max_tokens(self) -> int | None:
        return token_limit(self.num_predict)


class CalledFunction(msgspec.Struct, frozen=True):
    name: Name
    arguments: Json = {}


class ToolCall(msgspec.Struct, frozen=True):
    function: CalledFunction


class Message(msgspec.Struct, frozen=True):
    role: str
    content: str | None = None
    images: list[str] | None = None
    tool_calls: list[ToolCall] | None = None
    tool_name: str | None = None
    thinking: str | None = None


class OllamaRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that chat and generate requests have in common."""

    model: str = ""
    stream: bool | None = None
    options: Options | None = None
    format: str | Json | None = None
    keep_alive: str | float | None = None
    think: bool | Annotated[str, Meta(max_length=32)] | None = None

    @property
    def unload_after(self) -> bool:
        """Return whether the request asks to unload the model after this answer."""
        return str(self.keep_alive).rstrip("hms") in ("0", "0.0")

    def base_request(self, seed: int) -> ApiRequest:
        options = self.options or Options()
        return ApiRequest(
            model=self.model,
            sampling=options.sampling(seed),
            max_tokens=options.max_tokens,
            stop=stop_strings(options.stop),
            schema=_schema(self.format),
            thinking=_thinking(self.think),
            extra_fields=given_fields(options, *SAMPLING_FIELDS),
        )


class OllamaChatRequest(OllamaRequest, frozen=True, kw_only=True):
    messages: Annotated[list[Message], Meta(max_length=4096)] = []
    tools: Annotated[list[ChatTool], Meta(max_length=MOST_TOOLS)] | None = None

    def to_api_request(self, seed: int) -> ApiRequest:
        """Convert the request to an ApiRequest. Raises BadInput."""
        tools = tuple(tool.function.tool() for tool in self.tools or ())
        pictures = Pictures()
        messages = tuple(_message(message, pictures) for message in self.messages)
        return replace(self.base_request(seed), messages=messages, tools=tools, pictures=pictures.files)


class OllamaGenerateRequest(OllamaRequest, frozen=True, kw_only=True):
    prompt: str = ""
    system: str | None = None
    suffix: str | None = None
    template: str | None = None
    raw: bool | None = None
    images: list[str] | None = None
    context: list[int] | None = None

    def to_api_request(self, seed: int) -> ApiRequest:
        """Convert the request to an ApiRequest. Raises BadInput."""
        for name in ("suffix", "template", "context", *(["images"] if self.raw else [])):
            if getattr(self, name):
                raise BadInput("api_unsupported", what=name)
        if self.raw:
            return replace(self.base_request(seed), prompt=self.prompt)
        messages: list[Json] = [{"role": "system", "content": self.system}] if self.system else []
        pictures = Pictures()
        messages.append({"role": "user", "content": _with_pictures(self.images, self.prompt, pictures)})
        return replace(self.base_request(seed), messages=tuple(messages), pictures=pictures.files)


def _thinking(think: bool | str | None) -> Thinking:
    """Return the requested thinking or effort. As in Ollama, a model that cannot think rejects it."""
    if isinstance(think, str) and think:
        return Thinking(think != "none", "" if think == "none" else think, must=True)
    return Thinking(think if isinstance(think, bool) else None, must=True)


def _schema(schema: str | Json | None) -> object:
    match schema:
        case None | "":
            return None
        case "json":
            return {"type": "object"}
        case dict():
            return schema
    raise BadInput("bad_request", why="format is json or a JSON schema", field="format")


def _with_pictures(images: list[str] | None, text: str, pictures: Pictures) -> str:
    return "".join(add_base64(image, pictures) for image in images or ()) + text


def _message(message: Message, pictures: Pictures) -> Json:
    if message.images and message.role != "user":
        raise BadInput("picture_role", role=message.role)
    text = _with_pictures(message.images, message.content or "", pictures)
    match message.role:
        case "system" | "user":
            return {"role": message.role, "content": text}
        case "assistant" if message.tool_calls:
            calls = [("", call.function.name, call.function.arguments) for call in message.tool_calls]
            return with_thought(assistant_message(text, calls), message.thinking)
        case "assistant":
            return with_thought({"role": "assistant", "content": text}, message.thinking)
        case "tool":
            return {"role": "tool", "content": text, "name": message.tool_name or ""}
    raise unknown_role(message.role, "system, user, assistant and tool")


OllamaLine = types.OllamaChat | types.OllamaText


@dataclass(slots=True)
class Answer:
    """One answer in progress, in Ollama's format."""

    model: str
    chat: bool
    origin: Origin = field(default_factory=Origin)
    collected: CollectedAnswer = field(default_factory=CollectedAnswer)

    def line(self, piece: Piece, now: float, took_s: float) -> OllamaLine:
        """Return the line to stream for a piece."""
        self.collected.add(piece)
        match piece:
            case TextPiece(text=text):
                return self._line(now, text)
            case CallStart() | CallArguments():  # only complete calls are sent
                return self._line(now)
            case ThoughtPiece(text=text):
                return self._line(now, thought=text)
            case CallDone(half=str(half)):  # clients ignore the finish reason and would execute the call
                return self._line(now, half)
            case CallDone():
                return self._line(now, calls=[piece])
            case AnswerEnd():
                return self._ended(self._line(now), took_s)

    def object(self, now: float, took_s: float) -> OllamaLine:
        """Return the complete answer."""
        whole = [call for call in self.collected.calls if call.half is None]
        text = self.collected.text + "".join(call.half or "" for call in self.collected.calls)
        return self._ended(self._line(now, text, whole, self.collected.thought), took_s)

    def load_result(self, now: float, reason: Literal["load", "unload"] = "load") -> OllamaLine:
        """Return the answer to a request without a prompt, which only loads or unloads the model."""
        line = self._line(now)
        line.done, line.done_reason = True, reason
        return line

    def _line(self, now: float, text: str = "", calls: Sequence[CallDone] = (), thought: str = "") -> OllamaLine:
        moment = datetime.fromtimestamp(now, UTC).isoformat().replace("+00:00", "Z")
        if not self.chat:
            return types.OllamaText(
                model=self.model, created_at=moment, poolhouse=self.origin.named, response=text,
                thinking=thought or UNSET, done=False,
            )  # fmt: skip
        made = [
            types.OllamaCall(function=types.OllamaFunction(name=call.name, arguments=call.values)) for call in calls
        ]
        message = types.OllamaMessage(
            role="assistant", content=text, thinking=thought or UNSET, tool_calls=made or UNSET
        )
        return types.OllamaChat(
            model=self.model, created_at=moment, poolhouse=self.origin.named, message=message, done=False
        )

    def _ended(self, line: OllamaLine, took_s: float) -> OllamaLine:
        """Add the statistics to the last line."""
        end = self.collected.ended
        read_s = max(0.0, end.ttft_s)
        wrote_s = (end.answer_tokens - 1) / end.decode_tok_s if end.decode_tok_s else 0.0
        line.done, line.done_reason = True, "length" if end.reason == "length" else "stop"
        line.total_duration = round(took_s * NANOSECONDS)
        line.load_duration = 0
        line.prompt_eval_count, line.prompt_eval_duration = end.prompt_tokens, round(read_s * NANOSECONDS)
        line.eval_count, line.eval_duration = end.answer_tokens, round(wrote_s * NANOSECONDS)
        return line


class ShowRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for the description of a model. Older clients name the model in the field `name`."""

    model: str = ""
    name: str = ""

    def model_name(self) -> str:
        """Return the model's name. Raises BadInput."""
        if not (name := (self.model or self.name).removesuffix(":latest")):
            raise BadInput("bad_request", why="model is missing", field="model")
        return name


def shelf_entry(model: Json, modified: str) -> types.OllamaModel:
    """Return the list entry of a downloaded model, or of an upstream's model, for which only the name is known."""
    return types.OllamaModel(
        name=model["name"],
        model=model["name"],
        modified_at=modified,
        size=model.get("file_bytes") or 0,
        digest=_digest(model),
        details=_details(model),
    )


def loaded_entry(model: Json, context: int) -> types.OllamaLoaded:
    """Return the list entry of a loaded model.

    It has no expiry time, because idle models are not unloaded.
    """
    return types.OllamaLoaded(
        name=model["name"],
        model=model["name"],
        size=model.get("file_bytes") or 0,
        digest=_digest(model),
        details=_details(model),
        context_length=context,
    )


def model_description(model: Json, card: ModelCard | None, since: str, context: int | None) -> types.ModelDescription:
    """Return the description of a model and its capabilities.

    context: its context size, or None if it is not loaded.
    """
    family = model.get("architecture") or ""
    can: dict[types.Capability, Any] = {
        "completion": model.get("writes", True),
        "tools": card is not None and card.has_tools,
        "thinking": card is not None and card.thinks,
        "embedding": model.get("embeds"),
        "vision": model.get("vision"),
    }
    facts = {"context_length": "context_length", "embedding_length": "width", "block_count": "n_layers"}
    about = {f"{family}.{name}": model[of] for name, of in facts.items() if of in model}
    if count := model.get("n_parameters"):
        about["general.parameter_count"] = count
    entries = dict(card.card.entries) if card is not None else {}
    return types.ModelDescription(
        modified_at=card.modified if card is not None else since,
        license=model.get("license") or "",
        modelfile=f"FROM {model['name']}\n",
        parameters=_parameters(context),
        template=card.card.template if card is not None else "",
        details=_details(model),
        model_info={"general.architecture": family, **entries, **about},
        capabilities=[name for name, is_so in can.items() if is_so],
    )


def _parameters(context: int | None) -> str:
    """Return the default parameters, one per line, in Ollama's format."""
    usual = DEFAULT_OPTIONS if context is None else {"num_ctx": context, **DEFAULT_OPTIONS}
    return "\n".join(f"{name:<30} {value:g}" for name, value in usual.items())


def parameter_size(count: int) -> str:
    """Return a parameter count in Ollama's format, such as 134.52M, 8.0B or 70B."""
    if not count:
        return ""
    for least, letter, digits in ((10**9, "B", 1), (10**6, "M", 2), (10**3, "K", 0)):
        if count >= least:
            whole, rest = divmod(count, least)
            return f"{whole}{letter}" if not rest else f"{count / least:.{digits}f}{letter}"
    return str(count)


def _digest(model: Json) -> str:
    """Return the model's digest, or a hash of its name if it is an upstream's model, whose digest is unknown.

    Ollama's command line truncates the digest to twelve characters, and fails if it is shorter.
    """
    return str(model.get("id") or hashlib.sha256(model["name"].encode()).hexdigest())


def _details(model: Json) -> types.ModelDetails:
    family = model.get("architecture") or ""
    return types.ModelDetails(
        parent_model="",
        format="gguf",
        family=family,
        families=[family] if family else [],
        parameter_size=parameter_size(model.get("n_parameters") or 0),
        quantization_level=model.get("quantization") or "",
    )


class ModelUnloader:
    """Unloads models for `keep_alive: 0`, unless other requests are using them.

    A program may always unload a model that its own request loaded. It may unload other models only if it may load
    models.
    """

    def __init__(self, hosting: ModelManager, may_load: Callable[[], bool], answering: AnswerService) -> None:
        self._hosting, self._may_load, self._answering = hosting, may_load, answering

    def loaded_models(self) -> frozenset[Placement]:
        """Return the models that are currently loaded."""
        return frozenset(self._hosting.loaded)

    @contextmanager
    def unloading_after(self, model: str, *, unload_after: bool) -> Iterator[None]:
        """Unload the model after the block if `unload_after` is set, even if the client disconnects early.

        If the request fails, nothing is unloaded, because the request has not loaded a model that could answer.
        """
        before = self.loaded_models()
        try:
            yield
        except (GeneratorExit, asyncio.CancelledError):
            if unload_after:
                self.unload_unused(model, before)
            raise
        if unload_after:
            self.unload_unused(model, before)

    def unload_unused(self, model: str, before: frozenset[Placement]) -> None:
        """Unload the model unless it is in use.

        `before` contains the models that were loaded when the request arrived. Since then, the owner may have loaded
        this model, or the owner's own model may have been lost and recovered.
        """
        running = self._hosting.loaded.named(model)
        if running is None:
            return
        brought = running.loaded_by_request and running not in before
        if not (brought or self._may_load()):
            return
        if not self._is_in_use(running):
            self._unload(running)

    def unload_now(self, model: str) -> None:
        """Unload the model on request.

        Raises BadInput if the program may not do this, and Busy if other requests are using the model.
        """
        running = self._hosting.loaded.named(model)
        if running is None or not running.is_ready:  # it may already be unloading
            return
        if not self._may_load():
            raise BadInput("api_model_stays", name=model)
        if self._is_in_use(running):
            raise Busy("api_model_asked", name=model)
        self._unload(running)

    def _is_in_use(self, running: Placement) -> bool:
        return running.n_requests > 0 or self._answering.queue.has_waiting(running.entry.name)

    def _unload(self, running: Placement) -> None:
        log.info("%s is unloaded, as a program asked", running.entry.name)
        self._hosting.give_back(running)


class OllamaRoutes:
    """The routes of Ollama's API."""

    def __init__(
        self, answering: AnswerService, list_models: ListModels, unloader: ModelUnloader, cards: ModelCards
    ) -> None:
        self._answering, self._list_models, self._unloader = answering, list_models, unloader
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
        """Report that the server is running. Ollama's command line checks this first, with a HEAD request."""
        return web.Response(text=RUNS)

    async def version(self, request: web.Request) -> web.Response:
        return json_response(types.Version(version=OLLAMA_VERSION))

    async def tags(self, request: web.Request) -> web.Response:
        models = [shelf_entry(model, await modified_at(model, self._since)) for model in (await self._known()).values()]
        return json_response(types.Tags(models=models))

    async def loaded(self, request: web.Request) -> web.Response:
        known = await self._known()
        contexts = {name: placement.context for name, placement in self._answering.ready_models().items()}
        if not contexts:  # on a guest, the models that its hosts have loaded
            contexts = {name: model["context"] for name, model in known.items() if model.get("context")}
        models = [loaded_entry(known[name], contexts[name]) for name in contexts if name in known]
        return json_response(types.LoadedModels(models=models))

    async def show(self, request: web.Request) -> web.Response:
        name, known = read(request, ShowRequest).model_name(), await self._known()
        if name not in known:
            name = await self._answering.resolve(name)  # raises an error that names the existing models
        there = self._answering.ready_models().get(name)
        model = known.get(name, {"name": name})
        card = await self._cards.card(model)
        context = there.context if there else model.get("context") or None
        return json_response(model_description(model, card, self._since, context))

    async def chat(self, request: web.Request) -> web.StreamResponse:
        body = read(request, OllamaChatRequest)
        if not body.messages:
            return await self._load_or_unload(request, body, chat=True)
        return await self._answer(request, body, chat=True)

    async def generate(self, request: web.Request) -> web.StreamResponse:
        body = read(request, OllamaGenerateRequest)
        if not body.prompt:
            return await self._load_or_unload(request, body, chat=False)
        return await self._answer(request, body, chat=False)

    async def _answer(
        self, request: web.Request, body: OllamaChatRequest | OllamaGenerateRequest, *, chat: bool
    ) -> web.StreamResponse:
        begun, api_request = time.monotonic(), body.to_api_request(secrets.randbelow(1 << 31))
        answer = Answer(await self._answering.resolve(api_request.model), chat, request[CALLER].origin)
        unloading_after = self._unloader.unloading_after(answer.model, unload_after=body.unload_after)
        if body.stream is not False:
            lines = self._lines(api_request, request[CALLER], answer, begun, unloading_after)
            return await send(request, NDJSON, lines)
        with unloading_after:
            async with aclosing(self._answering.answer(api_request, request[CALLER])) as pieces:
                async for piece in pieces:
                    answer.collected.add(piece)
        return json_response(answer.object(time.time(), time.monotonic() - begun))

    async def _load_or_unload(
        self, request: web.Request, body: OllamaChatRequest | OllamaGenerateRequest, *, chat: bool
    ) -> web.Response:
        """Handle a request without a prompt, which means that the model should be loaded or unloaded."""
        model = await self._answering.resolve(body.model)
        if body.unload_after:
            self._unloader.unload_now(model)
            return json_response(Answer(model, chat).load_result(time.time(), "unload"))
        await self._answering.load(body.model, request[CALLER])
        return json_response(Answer(model, chat).load_result(time.time()))

    async def _known(self) -> dict[str, Json]:
        """Return the downloaded models and the models that upstreams offer, by name."""
        elsewhere = {name: {"name": name} for name in self._answering.upstream_models()}
        here: dict[str, Json] = {model["name"]: model for model in await self._list_models()}
        return here | {name: model for name, model in elsewhere.items() if name not in here}

    async def _lines(
        self,
        api_request: ApiRequest,
        caller: Caller,
        answer: Answer,
        begun: float,
        unloading_after: AbstractContextManager[None],
    ) -> AsyncGenerator[bytes, None]:
        with unloading_after:
            async with aclosing(self._answering.answer(api_request, caller)) as pieces:
                async for piece in pieces:
                    line = answer.line(piece, time.time(), time.monotonic() - begun)
                    yield msgspec.json.encode(line) + b"\n"
