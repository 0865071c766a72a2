"""OpenAI's Responses API, without stored responses: its routes, its requests, and its complete and streamed answers."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any

import msgspec
from aiohttp import web
from msgspec import UNSET, Meta, structs

from app.core.errors import AppError, BadInput
from app.gateway import answer_types as types
from app.gateway.access.auth import CALLER, HOME_OPTION
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
    Tool,
    token_limit,
    with_thought,
)
from app.gateway.dialects.openai_requests import (
    FREE,
    Count,
    Fraction,
    Name,
    Temperature,
    answer_schema,
    assistant_message,
    check_calls,
    complete_calls,
    given_fields,
    thinking_option,
    tool_choice,
    with_values,
)
from app.gateway.dialects.picture_parts import content_text
from app.gateway.error_responses import ApiDialect, error_body
from app.gateway.streaming import EVENTS, event, json_response, read, send
from app.inference.pipeline.pictures import Pictures

# Tools that OpenAI runs itself and that are not available here. The Codex CLI sends the first with every request.
HOSTED_TOOLS = frozenset({"web_search", "web_search_preview", "image_generation", "tool_search"})

Events = list[types.ResponseEvent]
OwnName = tuple[str, str]  # a tool's namespace, or "", and its name in it

TEXTS = ("input_text", "output_text", "text", "refusal")


class ResponsesTool(msgspec.Struct, frozen=True):
    type: str = "function"
    name: Name | None = None
    description: Annotated[str, Meta(max_length=1 << 16)] | None = None
    parameters: Json | None = None
    strict: bool | None = None
    tools: Annotated[list[ResponsesTool], Meta(max_length=MOST_TOOLS)] | None = None  # of a namespace

    def repeated(self) -> types.ResponseTool | types.ResponseNamespace:
        """Return the tool as repeated in a response."""
        if self.type != "namespace":
            return self._function()
        within = [tool._function() for tool in self.tools or ()]
        return types.ResponseNamespace(name=self.name or "", description=self.description or "", tools=within)

    def _function(self) -> types.ResponseTool:
        return types.ResponseTool(
            name=self.name or "", description=self.description, parameters=self.parameters, strict=bool(self.strict)
        )


def qualified_name(namespace: object, name: str) -> str:
    """Return the name under which the model sees a tool.

    Codex has a namespace for each MCP server, `mcp__NAME` or `mcp__NAME__`.
    """
    return f"{namespace.rstrip('_')}__{name}" if isinstance(namespace, str) and namespace else name


def flatten_tools(items: Sequence[ResponsesTool]) -> tuple[tuple[Tool, ...], Mapping[str, OwnName]]:
    """Return all functions with qualified names, and the original name of each. Raises BadInput."""
    tools: list[Tool] = []
    own_names: dict[str, OwnName] = {}
    for item in items:
        is_space = item.type == "namespace" and bool(item.name)
        for tool in (item.tools or ()) if is_space else (item,):
            own = (item.name or "" if is_space else "", tool.name or "")
            if tool.type != "function" or not tool.name:
                raise BadInput("api_unsupported", what=f"the tool {tool.type[:40]}", field="tools")
            name = qualified_name(*own)
            if own_names.setdefault(name, own) != own:
                raise BadInput("bad_request", why=f"two tools are called {name[:100]}", field="tools")
            description = tool.description or ""
            tools.append(Tool(name, description, tool.parameters or {}, tool.strict))
    if len(tools) > MOST_TOOLS:
        raise BadInput("bad_request", why=f"there are more than {MOST_TOOLS} tools", field="tools")
    return tuple(tools), own_names


class Text(msgspec.Struct, frozen=True):
    format: Json | None = None
    verbosity: Any = None


class Reasoning(msgspec.Struct, frozen=True):
    effort: str | None = None


class ResponsesRequest(msgspec.Struct, frozen=True, kw_only=True):
    input: str | Annotated[list[Json], Meta(min_length=1, max_length=4096)]
    model: str = ""
    instructions: str | None = None
    stream: bool | None = None
    temperature: Temperature = None
    top_p: Fraction = None
    max_output_tokens: Count = None
    text: Text | None = None
    tools: Annotated[list[ResponsesTool], Meta(max_length=MOST_TOOLS)] | None = None
    tool_choice: str | Json | None = None
    parallel_tool_calls: bool | None = None
    user: Annotated[str, Meta(max_length=1000)] | None = None
    metadata: Annotated[dict[str, str], Meta(max_length=16)] | None = None  # only repeated in the response
    reasoning: Reasoning | None = None
    service_tier: Any = None
    prompt_cache_key: Any = None
    safety_identifier: Any = None
    previous_response_id: str | None = None
    conversation: Any = None
    background: bool | None = None

    def to_api_request(self, seed: int) -> ApiRequest:
        """Convert the request to an ApiRequest. Raises BadInput."""
        for name in ("previous_response_id", "conversation", "background"):
            if getattr(self, name):
                raise BadInput("api_unsupported", what=name, field=name)
        choice = tool_choice(self.tool_choice, lambda named: named)
        form = self.text.format if self.text else None
        sampling = with_values(DEFAULT_SAMPLING, temperature=self.temperature, top_p=self.top_p)
        pictures = Pictures()
        return ApiRequest(
            model=self.model,
            messages=complete_calls(self._messages(pictures)),
            pictures=pictures.files,
            sampling=replace(sampling, seed=seed % (MAX_SEED + 1)),
            max_tokens=token_limit(self.max_output_tokens),
            schema=answer_schema(form, lambda response_format: response_format, "text.format", "text"),
            tools=() if choice == "none" else flatten_tools(self.own_tools)[0],
            must_call=choice if choice not in FREE else None,
            calls_in_pieces=bool(self.stream),
            parallel_calls=self.parallel_tool_calls,
            thinking=thinking_option(None, self.reasoning.effort if self.reasoning else None, None),
            user=self.user or "",
            extra_fields=self._extra_fields(),
        )

    @property
    def own_tools(self) -> list[ResponsesTool]:
        """Return the tools that the program itself provides."""
        return [tool for tool in self.tools or () if tool.type not in HOSTED_TOOLS]

    def _extra_fields(self) -> Json:
        """Return the remaining fields under their names in OpenAI's chat requests."""
        form = self.text.format if self.text else None
        if form and form.get("type") == "json_schema":
            rest = {name: value for name, value in form.items() if name != "type"}
            form = {"type": "json_schema", "json_schema": rest}
        fields = {
            "response_format": form,
            "verbosity": self.text and self.text.verbosity,
            "reasoning_effort": self.reasoning and self.reasoning.effort,
        }
        same = "temperature", "top_p", "service_tier", "prompt_cache_key", "safety_identifier"
        kept = given_fields(self, *same)
        return kept | {name: value for name, value in fields.items() if value is not None}

    def _messages(self, pictures: Pictures) -> tuple[Json, ...]:
        messages: list[Json] = []
        if self.instructions:
            messages.append({"role": "system", "content": self.instructions})
        if isinstance(self.input, str):
            return (*messages, {"role": "user", "content": self.input})
        thought = ""
        for item in self.input:
            if item.get("type") == "reasoning":
                thought = _thought(item)
            for message in map(partial(_with_thought, thought), _item(item, pictures)):
                thought = ""
                # A turn's text and calls form one message. Templates expect them together, and some refuse two in a
                # row.
                if messages and "tool_calls" in message and messages[-1]["role"] == "assistant":
                    calls = [*messages[-1].get("tool_calls", ()), *message["tool_calls"]]
                    check_calls(calls)
                    messages[-1] = message | messages[-1] | {"tool_calls": calls}
                else:
                    messages.append(message)
        if thought:  # the answer was cut within a thought and continues there
            messages.append(with_thought({"role": "assistant", "content": ""}, thought))
        return tuple(messages)


def _with_thought(thought: str, message: Json) -> Json:
    """Return the message with the preceding thought added, if it is the model's message."""
    return with_thought(message, thought) if message["role"] == "assistant" else message


def _thought(item: Json) -> str:
    """Return the text of a reasoning item. Encrypted reasoning is ignored."""
    parts = [*(item.get("content") or ()), *(item.get("summary") or ())]
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "\n\n".join(text for text in texts[:64] if isinstance(text, str))


def _item(item: Json, pictures: Pictures) -> list[Json]:
    """Convert an item of the input to messages for a chat template. Raises BadInput."""
    match item:
        case {"type": "function_call", "name": str(name), "arguments": str(arguments)}:
            name = qualified_name(item.get("namespace"), name)
            return [assistant_message("", [(str(item.get("call_id", "")), name, arguments)])]
        case {"type": "function_call_output"}:
            output = content_text(item.get("output"), TEXTS, "tool", pictures)
            return [{"role": "tool", "content": output, "tool_call_id": str(item.get("call_id", ""))}]
        case {"type": "reasoning"}:
            return []  # added to the next message
        case {"role": "system" | "developer"}:
            return [{"role": "system", "content": content_text(item.get("content"), TEXTS, "system", pictures)}]
        case {"role": "user" | "assistant" as role}:
            return [{"role": role, "content": content_text(item.get("content"), TEXTS, role, pictures)}]
    raise BadInput("api_content_unsupported", kind=str(item.get("type") or item.get("role"))[:40])


@dataclass(frozen=True, slots=True)
class RepeatedFields:
    """The fields of the request that a response repeats."""

    instructions: str | None = None
    max_output_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    parallel_tool_calls: bool = True
    tool_choice: str | Json = "auto"
    tools: Sequence[types.ResponseTool | types.ResponseNamespace] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, body: ResponsesRequest) -> RepeatedFields:
        """Return the fields of this request."""
        return cls(
            body.instructions,
            body.max_output_tokens,
            body.temperature,
            body.top_p,
            body.parallel_tool_calls is not False,
            body.tool_choice or "auto",
            [tool.repeated() for tool in body.own_tools],
            body.metadata or {},
        )


@dataclass(slots=True)
class Response:
    """One response in progress, in the format of the Responses API."""

    id: str
    model: str
    created: int
    repeated: RepeatedFields = field(default_factory=RepeatedFields)
    origin: Origin = field(default_factory=Origin)
    collected: CollectedAnswer = field(default_factory=CollectedAnswer)
    output: list[types.OutputItem] = field(default_factory=list)  # finished items
    own_names: Mapping[str, OwnName] = field(default_factory=dict)  # by the name that the model knows
    number: int = 0  # of the next event
    open: bool = False  # whether a message is in progress
    item: types.FunctionCall | None = None  # the call in progress
    thinks: bool = False  # whether a reasoning item is in progress

    def object(self) -> types.Response:
        """Return the complete response."""
        end = self.collected.ended
        is_cut = end.reason == "length"
        response = self._response(_status(is_cut))
        response.incomplete_details = types.Incomplete(reason="max_output_tokens") if is_cut else None
        response.usage = _usage(end)
        return response

    def begin(self) -> Events:
        started = self._response("in_progress")
        return [
            types.ResponseCreated(sequence_number=self._next(), response=started),
            types.ResponseInProgress(sequence_number=self._next(), response=started),
        ]

    def events(self, piece: Piece) -> Events:
        """Return the events for a piece, and collect the finished items."""
        self.collected.add(piece)
        match piece:
            case TextPiece(text=text):
                opened = self._opened()
                delta = types.OutputTextDelta(
                    sequence_number=self._next(),
                    item_id=self._item_id("msg"),
                    output_index=len(self.output),
                    content_index=0,
                    delta=text,
                    logprobs=[],
                )
                return [*opened, delta]
            case CallStart():
                return [*self._closed(), self._call_begun(piece.id, piece.name)]
            case CallArguments(text=text):
                return [self._arguments(text)]
            case CallDone(was_begun=True):
                return self._call_done(piece)
            case ThoughtPiece(text=text):
                return self._think(text) if text else []
            case CallDone():
                events = [*self._closed(), self._call_begun(piece.id, piece.name), self._arguments(piece.arguments)]
                return [*events, *self._call_done(piece)]
            case AnswerEnd():
                is_cut = piece.reason == "length"
                events = self._closed(is_cut=is_cut)
                last = types.ResponseIncomplete if is_cut else types.ResponseCompleted
                return [*events, last(sequence_number=self._next(), response=self.object())]

    def failed(self, why: Json) -> types.ResponseFailed:
        """Return the last event of a failed stream. `why` is the error in the format of OpenAI's other APIs."""
        return types.ResponseFailed(
            sequence_number=self._next(), code=why["code"] or why["type"], message=why["message"], param=why["param"]
        )

    def _next(self) -> int:
        """Return the number of the next event."""
        self.number += 1
        return self.number - 1

    def _item_id(self, kind: str) -> str:
        return f"{kind}_{self.id.removeprefix('resp_')}_{len(self.output)}"

    def _response(self, status: types.Status) -> types.Response:
        same = self.repeated
        return types.Response(
            id=self.id,
            object="response",
            created_at=self.created,
            status=status,
            error=None,
            incomplete_details=None,
            model=self.model,
            output=list(self.output),
            usage=None,
            previous_response_id=None,
            store=False,
            instructions=same.instructions,
            max_output_tokens=same.max_output_tokens,
            temperature=same.temperature,
            top_p=same.top_p,
            parallel_tool_calls=same.parallel_tool_calls,
            tool_choice=same.tool_choice,
            tools=list(same.tools),
            metadata=dict(same.metadata),
            poolhouse=self.origin.named,
        )

    def _added(self, item: types.OutputItem) -> types.ResponseEvent:
        return types.OutputItemAdded(sequence_number=self._next(), output_index=len(self.output), item=item)

    def _finished(self, item: types.OutputItem) -> types.ResponseEvent:
        """Return the event for a finished item, and collect the item."""
        self.output.append(item)
        return types.OutputItemDone(sequence_number=self._next(), output_index=len(self.output) - 1, item=item)

    def _think(self, text: str) -> Events:
        """Return the events that extend the current reasoning item, starting one if necessary."""
        events = [] if self.thinks else self._closed()
        if not self.thinks:
            self.thinks = True
            events.append(self._added(self._thought("in_progress", [])))
        delta = types.ReasoningTextDelta(
            sequence_number=self._next(),
            item_id=self._item_id("rs"),
            output_index=len(self.output),
            content_index=0,
            delta=text,
        )
        return [*events, delta]

    def _thought(self, status: types.Status, content: list[types.ReasoningText]) -> types.ReasoningItem:
        return types.ReasoningItem(id=self._item_id("rs"), status=status, summary=[], content=content)

    def _thought_over(self, *, is_cut: bool) -> Events:
        if not self.thinks:
            return []
        self.thinks = False
        text = self.collected.thought
        self.collected.thoughts.clear()
        done = types.ReasoningTextDone(
            sequence_number=self._next(),
            item_id=self._item_id("rs"),
            output_index=len(self.output),
            content_index=0,
            text=text,
        )
        return [done, self._finished(self._thought(_status(is_cut), [types.ReasoningText(text=text)]))]

    def _message(self, status: types.Status, content: list[types.OutputText]) -> types.OutputMessage:
        return types.OutputMessage(id=self._item_id("msg"), status=status, role="assistant", content=content)

    def _opened(self) -> Events:
        if self.open:
            return []
        over = self._thought_over(is_cut=False)
        self.open = True
        added = self._added(self._message("in_progress", []))
        part = types.ContentPartAdded(
            sequence_number=self._next(),
            item_id=self._item_id("msg"),
            output_index=len(self.output),
            content_index=0,
            part=_text(""),
        )
        return [*over, added, part]

    def _closed(self, *, is_cut: bool = False) -> Events:
        if not self.open:
            return self._thought_over(is_cut=is_cut)
        self.open = False
        text = self.collected.text
        self.collected.said.clear()
        said = types.OutputTextDone(
            sequence_number=self._next(),
            item_id=self._item_id("msg"),
            output_index=len(self.output),
            content_index=0,
            text=text,
            logprobs=[],
        )
        part = types.ContentPartDone(
            sequence_number=self._next(),
            item_id=self._item_id("msg"),
            output_index=len(self.output),
            content_index=0,
            part=_text(text),
        )
        return [said, part, self._finished(self._message(_status(is_cut), [_text(text)]))]

    def _call_begun(self, call_id: str, name: str) -> types.ResponseEvent:
        namespace, own = self.own_names.get(name, ("", name))
        self.item = types.FunctionCall(
            id=f"fc_{call_id}",
            status="in_progress",
            call_id=call_id,
            name=own,
            arguments="",
            namespace=namespace or UNSET,
        )
        return self._added(self.item)

    def _arguments(self, text: str) -> types.ResponseEvent:
        assert self.item is not None
        return types.ArgumentsDelta(
            sequence_number=self._next(), item_id=self.item.id, output_index=len(self.output), delta=text
        )

    def _call_done(self, call: CallDone) -> Events:
        assert self.item is not None
        item = structs.replace(self.item, status=_status(call.half is not None), arguments=call.arguments)
        done = types.ArgumentsDone(
            sequence_number=self._next(),
            item_id=item.id,
            output_index=len(self.output),
            name=item.name,
            arguments=call.arguments,
        )
        return [done, self._finished(item)]


def _status(is_cut: bool) -> types.Status:
    return "incomplete" if is_cut else "completed"


def _text(text: str) -> types.OutputText:
    return types.OutputText(text=text, annotations=[], logprobs=[])


def _usage(end: AnswerEnd) -> types.ResponseUsage:
    return types.ResponseUsage(
        input_tokens=end.prompt_tokens,
        input_tokens_details=types.InputDetails(cached_tokens=end.reused_tokens, cache_write_tokens=0),
        output_tokens=end.answer_tokens,
        output_tokens_details=types.OutputDetails(reasoning_tokens=end.thought_tokens),
        total_tokens=end.prompt_tokens + end.answer_tokens,
    )


class ResponsesRoutes:
    """The routes of the Responses API."""

    def __init__(self, answering: AnswerService) -> None:
        self._answering = answering

    def routes(self) -> list[web.RouteDef]:
        return [web.post("/v1/responses", self.responses), web.post("/v1/responses/input_tokens", self.count)]

    async def responses(self, request: web.Request) -> web.StreamResponse:
        body = read(request, ResponsesRequest)
        api_request = body.to_api_request(seed=secrets.randbelow(1 << 31))
        model = await self._answering.resolve(api_request.model)
        answer = Response(
            f"resp_{secrets.token_hex(12)}",
            model,
            int(time.time()),
            RepeatedFields.of(body),
            request[CALLER].origin,
            own_names=flatten_tools(body.own_tools)[1] if api_request.tools else {},
        )
        if body.stream:
            events = self._events(api_request, request[CALLER], answer)
            return await send(request, EVENTS, events, encode_error=partial(_failed, request, answer))
        async with aclosing(self._answering.answer(api_request, request[CALLER])) as pieces:
            async for piece in pieces:
                answer.events(piece)
        return json_response(answer.object())

    async def count(self, request: web.Request) -> web.Response:
        api_request = read(request, ResponsesRequest).to_api_request(seed=0)
        await self._answering.resolve(api_request.model)
        n_tokens = await self._answering.count_prompt_tokens(api_request)
        return json_response(types.ResponseTokens(object="response.input_tokens", input_tokens=n_tokens))

    async def _events(self, api_request: ApiRequest, caller: Caller, answer: Response) -> AsyncGenerator[bytes, None]:
        begun = False
        async with aclosing(self._answering.answer(api_request, caller)) as pieces:
            async for piece in pieces:
                events = [] if begun else answer.begin()
                begun = True
                for each in (*events, *answer.events(piece)):
                    yield event(each)


def _failed(request: web.Request, answer: Response, error: AppError) -> bytes:
    why = error_body(ApiDialect.OPENAI, error, request[CALLER].request_id, request[HOME_OPTION])["error"]
    return event(answer.failed(why))
