"""Anthropic's Messages API: its requests, its complete and streamed answers, and token counting."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

import msgspec
from aiohttp import web
from msgspec import Meta

from app.core.errors import BadInput
from app.core.tools.reasoning import Thinking
from app.gateway import answer_types as types
from app.gateway.access.auth import CALLER
from app.gateway.answer_service import AnswerService, Caller
from app.gateway.api_request import (
    DEFAULT_SAMPLING,
    MAX_SEED,
    MOST_STOPS,
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
    Count,
    Fraction,
    Name,
    Stop,
    TopK,
    assistant_message,
    given_fields,
    with_values,
)
from app.gateway.dialects.picture_parts import content_text
from app.gateway.streaming import EVENTS, event, json_response, read, send
from app.inference.pipeline.pictures import Pictures

REASONS: dict[str, types.StopReason] = {"stop": "end_turn", "length": "max_tokens", "calls": "tool_use"}
NO_USAGE = types.MessageUsage(input_tokens=0, output_tokens=0, cache_read_input_tokens=0, cache_creation_input_tokens=0)


TEXT = ("text",)


class Message(msgspec.Struct, frozen=True):
    role: str
    content: str | list[Json]


class MessagesTool(msgspec.Struct, frozen=True):
    name: Name
    description: Annotated[str, Meta(max_length=1 << 16)] | None = None
    input_schema: Json | None = None
    type: str | None = None
    strict: bool | None = None


class Choice(msgspec.Struct, frozen=True):
    type: str = "auto"
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


class Metadata(msgspec.Struct, frozen=True):
    user_id: Annotated[str, Meta(max_length=1000)] | None = None


class ThinkingOption(msgspec.Struct, frozen=True):
    type: Literal["enabled", "disabled", "adaptive"] = "enabled"
    budget_tokens: Annotated[int, Meta(ge=0, le=1 << 31)] | None = None

    def thinking(self, effort: str) -> Thinking:
        """Return the requested thinking. It is accepted for every model, because many programs always request it."""
        return Thinking(self.type != "disabled", effort, self.budget_tokens)


class Format(msgspec.Struct, frozen=True):
    schema: Json
    type: Literal["json_schema"] = "json_schema"


class OutputConfig(msgspec.Struct, frozen=True):
    format: Format | None = None
    effort: Annotated[str, Meta(max_length=32)] | None = None


class MessagesRequest(msgspec.Struct, frozen=True, kw_only=True):
    messages: Annotated[list[Message], Meta(min_length=1, max_length=4096)]
    model: str = ""
    max_tokens: Count = None  # required for an answer, but not to count tokens
    system: str | list[Json] | None = None
    stop_sequences: Annotated[list[Stop], Meta(max_length=MOST_STOPS)] | None = None
    stream: bool | None = None
    temperature: Fraction = None
    top_p: Fraction = None
    top_k: TopK = None
    tools: Annotated[list[MessagesTool], Meta(max_length=MOST_TOOLS)] | None = None
    tool_choice: Choice | None = None
    metadata: Metadata | None = None
    output_config: OutputConfig | None = None
    thinking: ThinkingOption | None = None

    def to_api_request(self, seed: int) -> ApiRequest:
        """Convert the request to an ApiRequest. Raises BadInput."""
        messages: list[Json] = []
        pictures = Pictures()
        if system := content_text(self.system, TEXT, "system", Pictures()):
            messages.append({"role": "system", "content": system})
        for message in self.messages:
            messages += _messages(message, pictures)
        choice = self.tool_choice or Choice()
        must = {"auto": None, "none": None, "any": "", "tool": choice.name}
        if choice.type not in must or (choice.type == "tool" and not choice.name):
            raise BadInput(
                "bad_request", why="tool_choice is auto, any, none, or tool with its name", field="tool_choice"
            )
        tools = tuple(map(_tool, self.tools or ()))
        sampling = with_values(DEFAULT_SAMPLING, temperature=self.temperature, top_p=self.top_p, top_k=self.top_k)
        return ApiRequest(
            model=self.model,
            messages=tuple(messages),
            pictures=pictures.files,
            sampling=replace(sampling, seed=seed % (MAX_SEED + 1)),
            max_tokens=token_limit(self.max_tokens),
            stop=tuple(filter(None, self.stop_sequences or ())),
            schema=self.output_config.format.schema if self.output_config and self.output_config.format else None,
            tools=() if choice.type == "none" else tools,
            must_call=must[choice.type],
            calls_in_pieces=bool(self.stream),
            parallel_calls=False if choice.disable_parallel_tool_use else None,
            thinking=self._thinking(),
            user=(self.metadata and self.metadata.user_id) or "",
            extra_fields=given_fields(self, "temperature", "top_p", "top_k"),
        )

    def _thinking(self) -> Thinking:
        effort = (self.output_config and self.output_config.effort) or ""
        return self.thinking.thinking(effort) if self.thinking else Thinking(effort=effort)


def _tool(tool: MessagesTool) -> Tool:
    if tool.type not in (None, "custom"):
        raise BadInput("api_unsupported", what=f"the tool {str(tool.type)[:40]}")
    return Tool(tool.name, tool.description or "", tool.input_schema or {}, tool.strict)


def _messages(message: Message, pictures: Pictures) -> list[Json]:
    """Convert the message to the form that chat templates expect.

    A message with tool results becomes several messages.
    """
    if message.role == "system":  # newer clients also send system messages in the middle of a chat
        return [{"role": "system", "content": content_text(message.content, TEXT, "system", pictures)}]
    if message.role not in ("user", "assistant"):
        why = "a role is user, assistant or system"
        raise BadInput("bad_request", why=why, field="messages")
    if isinstance(message.content, str):
        return [{"role": message.role, "content": message.content}]
    blocks = [block for block in message.content if block.get("type") not in ("thinking", "redacted_thinking")]
    if message.role == "assistant":
        thoughts = [block.get("thinking") for block in message.content]
        thought = "\n\n".join(part for part in thoughts if isinstance(part, str))
        calls = [block for block in blocks if block.get("type") == "tool_use"]
        text = content_text([block for block in blocks if block.get("type") != "tool_use"], TEXT, "assistant", pictures)
        if not calls:
            return [with_thought({"role": "assistant", "content": text}, thought)]
        return [with_thought(assistant_message(text, [_tool_use_parts(call) for call in calls]), thought)]
    messages: list[Json] = []
    for block in blocks:
        if block.get("type") == "tool_result":
            content, of = content_text(block.get("content"), TEXT, "tool", pictures), str(block.get("tool_use_id", ""))
            messages.append({"role": "tool", "content": content, "tool_call_id": of})
    texts = [block for block in blocks if block.get("type") != "tool_result"]
    if not texts and messages:
        return messages
    return [*messages, {"role": "user", "content": content_text(texts, TEXT, "user", pictures)}]


def _tool_use_parts(block: Json) -> tuple[str, str, object]:
    if not block.get("name"):
        raise BadInput("bad_request", why="a tool_use has no name", field="messages")
    return str(block.get("id", "")), str(block.get("name", "")), block.get("input") or {}


@dataclass(slots=True)
class Answer:
    """One answer in progress, in Anthropic's format."""

    id: str
    model: str
    origin: Origin = field(default_factory=Origin)
    collected: CollectedAnswer = field(default_factory=CollectedAnswer)
    n_blocks: int = 0
    open: Literal["", "text", "thinking"] = ""  # the block in progress

    def message(self) -> types.AnthropicMessage:
        """Return the complete message."""
        thought, text = self.collected.thought, self.collected.text
        content: list[types.ContentBlock] = []
        if thought:
            content.append(types.ThinkingBlock(thinking=thought, signature=_signature(thought)))
        if text:
            content.append(types.TextBlock(text=text))
        content += [types.ToolUseBlock(id=call.id, name=call.name, input=call.values) for call in self.collected.calls]
        end = self._end()
        return self._message(content, end.stop_reason, end.stop_sequence, _usage(self.collected.ended))

    def begin(self) -> list[types.MessageEvent]:
        """Return the first events.

        They report a usage of 0, because the number of input tokens is known only at the end.
        """
        return [types.MessageStart(message=self._message([], None, None, NO_USAGE))]

    def events(self, piece: Piece) -> list[types.MessageEvent]:
        """Return the events for a piece."""
        self.collected.add(piece)
        match piece:
            case TextPiece(text=text):
                return self._extend_block("text", types.TextDelta(text=text))
            case CallStart(id=name):
                return [*self._closed(), self._tool_use(name, piece.name)]
            case CallArguments(text=text):
                return [self._delta(types.InputJsonDelta(partial_json=text))]
            case CallDone(was_begun=True):
                return [types.ContentBlockStop(index=self.n_blocks - 1)]
            case ThoughtPiece(text=text):
                return self._extend_block("thinking", types.ThinkingDelta(thinking=text)) if text else []
            case CallDone():
                return [
                    *self._closed(),
                    self._tool_use(piece.id, piece.name),
                    self._delta(types.InputJsonDelta(partial_json=piece.arguments)),
                    types.ContentBlockStop(index=self.n_blocks - 1),
                ]
            case AnswerEnd():
                end = types.MessageDelta(delta=self._end(), usage=_usage(piece))
                return [*self._closed(), end, types.MessageStop()]

    def _message(
        self,
        content: list[types.ContentBlock],
        reason: types.StopReason | None,
        stop: str | None,
        usage: types.MessageUsage,
    ) -> types.AnthropicMessage:
        return types.AnthropicMessage(
            id=self.id, type="message", role="assistant", model=self.model, content=content,
            poolhouse=self.origin.named, stop_reason=reason, stop_sequence=stop, usage=usage,
        )  # fmt: skip

    def _end(self) -> types.MessageEnd:
        end = self.collected.ended
        if end.stop is not None and end.reason == "stop":
            return types.MessageEnd(stop_reason="stop_sequence", stop_sequence=end.stop)
        return types.MessageEnd(stop_reason=REASONS[end.reason], stop_sequence=None)

    def _extend_block(
        self, kind: Literal["text", "thinking"], delta: types.TextDelta | types.ThinkingDelta
    ) -> list[types.MessageEvent]:
        """Return the events that extend the open block, or start a new one if its kind is different."""
        events = [] if self.open == kind else self._closed()
        if self.open != kind:
            self.open = kind
            is_text = kind == "text"
            events.append(
                self._block(types.TextBlock(text="") if is_text else types.ThinkingBlock(thinking="", signature=""))
            )
        return [*events, self._delta(delta)]

    def _closed(self) -> list[types.MessageEvent]:
        was, self.open = self.open, ""
        events: list[types.MessageEvent] = []
        if was == "thinking":
            events.append(self._delta(types.SignatureDelta(signature=_signature(self.collected.thought))))
        return [*events, types.ContentBlockStop(index=self.n_blocks - 1)] if was else []

    def _tool_use(self, call_id: str, name: str) -> types.MessageEvent:
        return self._block(types.ToolUseBlock(id=call_id, name=name, input={}))

    def _delta(self, delta: types.BlockDelta) -> types.MessageEvent:
        return types.ContentBlockDelta(index=self.n_blocks - 1, delta=delta)

    def _block(self, block: types.ContentBlock) -> types.MessageEvent:
        self.n_blocks += 1
        return types.ContentBlockStart(index=self.n_blocks - 1, content_block=block)


def _signature(thought: str) -> str:
    """Return a signature that clients store with the thought and send back. It is never verified."""
    return hashlib.sha256(thought.encode()).hexdigest()


def _usage(end: AnswerEnd) -> types.MessageUsage:
    return types.MessageUsage(
        input_tokens=end.prompt_tokens - end.reused_tokens,
        output_tokens=end.answer_tokens,
        cache_read_input_tokens=end.reused_tokens,
        cache_creation_input_tokens=0,
    )


def require_max_tokens(body: MessagesRequest) -> None:
    """Raise BadInput unless the request sets `max_tokens`, which answers require."""
    if body.max_tokens is None:
        raise BadInput("bad_request", why="max_tokens is missing", field="max_tokens")


class AnthropicRoutes:
    """The routes of Anthropic's API."""

    def __init__(self, answering: AnswerService) -> None:
        self._answering = answering

    def routes(self) -> list[web.RouteDef]:
        return [web.post("/v1/messages", self.messages), web.post("/v1/messages/count_tokens", self.count)]

    async def messages(self, request: web.Request) -> web.StreamResponse:
        body = read(request, MessagesRequest)
        require_max_tokens(body)
        api_request = body.to_api_request(seed=secrets.randbelow(1 << 31))
        model, origin = await self._answering.resolve(api_request.model), request[CALLER].origin
        answer = Answer(f"msg_{secrets.token_hex(12)}", model, origin)
        if body.stream:
            return await send(request, EVENTS, self._events(api_request, request[CALLER], answer))
        async with aclosing(self._answering.answer(api_request, request[CALLER])) as pieces:
            async for piece in pieces:
                answer.collected.add(piece)
        return json_response(answer.message())

    async def count(self, request: web.Request) -> web.Response:
        api_request = read(request, MessagesRequest).to_api_request(seed=0)
        await self._answering.resolve(api_request.model)
        return json_response(types.TokenCount(input_tokens=await self._answering.count_prompt_tokens(api_request)))

    async def _events(self, api_request: ApiRequest, caller: Caller, answer: Answer) -> AsyncGenerator[bytes, None]:
        begun = False
        async with aclosing(self._answering.answer(api_request, caller)) as pieces:
            async for piece in pieces:
                events = [] if begun else answer.begin()
                begun = True
                for each in (*events, *answer.events(piece)):
                    yield event(each)
