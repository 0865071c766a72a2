"""Ollama's API: its requests become an ApiRequest, and pieces become its answers, one JSON object a line. No I/O."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from app.core.errors import BadInput
from app.core.tools.reasoning import Thinking
from app.gateway.api_request import (
    MAX_SEED,
    MOST_TOOLS,
    USUAL,
    ApiRequest,
    CallBegun,
    Called,
    CallText,
    Ended,
    Json,
    Origin,
    Piece,
    Said,
    Thought,
    Whole,
    limit_of,
    thought_with,
)
from app.gateway.dialects.openai_requests import (
    SAMPLING_FIELDS,
    Fraction,
    LastN,
    Name,
    Stops,
    ToolGiven,
    TopK,
    as_given,
    assistant,
    given,
    no_role,
    stops,
)
from backends.contract import Sampling

NANOSECONDS = 1e9
MOST_HEAT = 100  # a temperature; Ollama has no bound, and from here on each token is as likely as any other
Penalty = Annotated[float, Meta(ge=-2, le=2)] | None


class Options(msgspec.Struct, frozen=True):
    """The options that mean something here; the others are ignored, as by Ollama."""

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

    def sampling(self, chance: int) -> Sampling:
        values = given(
            USUAL,
            temperature=self.temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            min_p=self.min_p,
            repeat_penalty=self.repeat_penalty,
            repeat_last_n=self.repeat_last_n,
            presence_penalty=self.presence_penalty,
            frequency_penalty=self.frequency_penalty,
        )
        return replace(values, seed=(chance if self.seed is None else self.seed) % (MAX_SEED + 1))

    @property
    def max_tokens(self) -> int | None:
        return limit_of(self.num_predict)


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
    """The common fields of a chat and a generate request."""

    model: str = ""
    stream: bool | None = None
    options: Options | None = None
    format: str | Json | None = None
    keep_alive: str | float | None = None
    think: bool | Annotated[str, Meta(max_length=32)] | None = None

    @property
    def lets_go(self) -> bool:
        """Return whether the model is needed only for this answer."""
        return str(self.keep_alive).rstrip("hms") in ("0", "0.0")

    def common(self, chance: int) -> ApiRequest:
        options = self.options or Options()
        return ApiRequest(
            model=self.model,
            sampling=options.sampling(chance),
            max_tokens=options.max_tokens,
            stop=stops(options.stop),
            schema=_schema(self.format),
            thinking=_thinking(self.think),
            further=as_given(options, *SAMPLING_FIELDS),
        )


class OllamaChatRequest(OllamaRequest, frozen=True, kw_only=True):
    messages: Annotated[list[Message], Meta(max_length=4096)] = []
    tools: Annotated[list[ToolGiven], Meta(max_length=MOST_TOOLS)] | None = None

    def wish(self, chance: int) -> ApiRequest:
        """Return the request in the common vocabulary. Raises BadInput."""
        tools = tuple(tool.function.tool() for tool in self.tools or ())
        return replace(self.common(chance), messages=tuple(map(_message, self.messages)), tools=tools)


class OllamaGenerateRequest(OllamaRequest, frozen=True, kw_only=True):
    prompt: str = ""
    system: str | None = None
    suffix: str | None = None
    template: str | None = None
    raw: bool | None = None
    images: list[str] | None = None
    context: list[int] | None = None

    def wish(self, chance: int) -> ApiRequest:
        """Return the request in the common vocabulary. Raises BadInput."""
        for name in ("suffix", "template", "images", "context"):
            if getattr(self, name):
                raise BadInput("api_unsupported", what=name)
        if self.raw:
            return replace(self.common(chance), prompt=self.prompt)
        messages: list[Json] = [{"role": "system", "content": self.system}] if self.system else []
        messages.append({"role": "user", "content": self.prompt})
        return replace(self.common(chance), messages=tuple(messages))


def _thinking(think: bool | str | None) -> Thinking:
    """Return on, off, or the effort. As with Ollama, a model that cannot think is refused."""
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


def _message(message: Message) -> Json:
    if message.images:
        raise BadInput("api_content_unsupported", kind="images")
    text = message.content or ""
    match message.role:
        case "system" | "user":
            return {"role": message.role, "content": text}
        case "assistant" if message.tool_calls:
            calls = [("", call.function.name, call.function.arguments) for call in message.tool_calls]
            return thought_with(assistant(text, calls), message.thinking)
        case "assistant":
            return thought_with({"role": "assistant", "content": text}, message.thinking)
        case "tool":
            return {"role": "tool", "content": text, "name": message.tool_name or ""}
    raise no_role(message.role, "system, user, assistant and tool")


@dataclass(slots=True)
class Answer:
    """One answer while it comes."""

    model: str
    chat: bool
    origin: Origin = field(default_factory=Origin)
    whole: Whole = field(default_factory=Whole)

    def line(self, piece: Piece, now: float, took_s: float) -> Json:
        """Return the line of a stream for a piece."""
        self.whole.add(piece)
        match piece:
            case Said(text=text):
                return self._frame(text, [], now) | {"done": False}
            case CallBegun() | CallText():  # it is told of whole calls alone
                return self._frame("", [], now) | {"done": False}
            case Thought(text=text):
                return self._frame("", [], now, text) | {"done": False}
            case Called(half=str(half)):  # its clients look at no reason, and would make it
                return self._frame(half, [], now) | {"done": False}
            case Called():
                return self._frame("", [piece], now) | {"done": False}
            case Ended():
                return self._frame("", [], now) | self._end(took_s)

    def object(self, now: float, took_s: float) -> Json:
        """Return the whole answer."""
        whole = [call for call in self.whole.calls if call.half is None]
        text = self.whole.text + "".join(call.half or "" for call in self.whole.calls)
        return self._frame(text, whole, now, self.whole.thought) | self._end(took_s)

    def brought(self, now: float, reason: Literal["load", "unload"] = "load") -> Json:
        """Return the answer to a request without a prompt, which only loads or unloads."""
        return self._frame("", [], now) | {"done": True, "done_reason": reason}

    def _frame(self, text: str, calls: list[Called], now: float, thought: str = "") -> Json:
        moment = datetime.fromtimestamp(now, UTC).isoformat().replace("+00:00", "Z")
        frame: Json = {"model": self.model, "created_at": moment, **self.origin.fields()}
        if not self.chat:
            return frame | {"response": text} | ({"thinking": thought} if thought else {})
        message: Json = {"role": "assistant", "content": text}
        if thought:
            message["thinking"] = thought
        if calls:
            message["tool_calls"] = [{"function": {"name": call.name, "arguments": call.values}} for call in calls]
        return frame | {"message": message}

    def _end(self, took_s: float) -> Json:
        end = self.whole.ended
        read_s = max(0.0, end.ttft_s)
        wrote_s = (end.answer_tokens - 1) / end.decode_tok_s if end.decode_tok_s else 0.0
        return {
            "done": True,
            "done_reason": "length" if end.reason == "length" else "stop",
            "total_duration": round(took_s * NANOSECONDS),
            "load_duration": 0,
            "prompt_eval_count": end.prompt_tokens,
            "prompt_eval_duration": round(read_s * NANOSECONDS),
            "eval_count": end.answer_tokens,
            "eval_duration": round(wrote_s * NANOSECONDS),
        }
