"""Parsing of OpenAI's chat and text completion requests into an ApiRequest. This module does no I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from app.core.errors import BadInput
from app.core.tools.reasoning import Thinking
from app.gateway.api_request import (
    DEFAULT_SAMPLING,
    MAX_SEED,
    MOST_ANSWERS,
    MOST_BIASES,
    MOST_CALLS,
    MOST_CUT,
    MOST_STOP_CHARS,
    MOST_STOPS,
    MOST_TOOLS,
    ApiRequest,
    Json,
    Tool,
    parse_arguments,
    parse_object,
    token_limit,
    with_thought,
)
from app.gateway.dialects.picture_parts import content_text
from app.inference.pipeline.pictures import Pictures
from backends.contract import MAX_TOP_LOGPROBS, Sampling

FREE = ("none", "auto")

Stop = Annotated[str, Meta(max_length=MOST_STOP_CHARS)]
Stops = Stop | Annotated[list[Stop], Meta(max_length=MOST_STOPS)] | None
Name = Annotated[str, Meta(min_length=1, max_length=100)]
Fraction = Annotated[float, Meta(ge=0, le=1)] | None
Penalty = Annotated[float, Meta(ge=-2, le=2)] | None
Temperature = Annotated[float, Meta(ge=0, le=2)] | None  # OpenAI's range
Count = Annotated[int, Meta(ge=-1, le=1 << 31)] | None  # number of tokens; see `token_limit`
TopK = Annotated[int, Meta(ge=-1, le=1 << 20)] | None
LastN = Annotated[int, Meta(ge=-1, le=1 << 20)] | None
SAMPLING_FIELDS = (  # the last four are llama.cpp's, not OpenAI's
    "temperature",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "seed",
    "top_k",
    "min_p",
    "repeat_penalty",
    "repeat_last_n",
)
UPSTREAM_FIELDS = (  # passed unchanged to upstreams, which may support them; the pool ignores most of them
    "reasoning_effort", "chat_template_kwargs", "reasoning_budget_tokens", "thinking_budget_tokens",
    "verbosity", "service_tier", "prompt_cache_key", "safety_identifier", "store",
    "metadata", "modalities", "prediction", "web_search_options",
)  # fmt: skip
USUAL_COMPLETION = 16  # default limit of a text completion, as OpenAI documents it


def tool_choice(choice: str | Json | None, function_of: Callable[[Json], object]) -> str:
    """Return "auto", "none", "" to require any tool, or the name of a required tool. Raises BadInput.

    function_of: returns the function that the choice names, in the dialect's format.
    """
    match choice:
        case None | "auto":
            return "auto"
        case "none":
            return "none"
        case "required":
            return ""
        case dict() as chosen if chosen.get("type") == "function":
            match function_of(chosen):
                case {"name": str(name)} if name:
                    return name
    raise BadInput("bad_request", why="tool_choice is auto, none, required or names a function", field="tool_choice")


def answer_schema(response_format: Json | None, schema_of: Callable[[Json], object], name: str, field: str) -> object:
    """Return the JSON schema that the answer must follow, or None if any text is allowed. Raises BadInput.

    `name` is the full name of the field in the called API, for the error message, and `field` is its top-level
    field.
    """
    match response_format:
        case None | {"type": "text"}:
            return None
        # llama.cpp's format, as is a json_schema without its own object
        case {"type": "json_object", "schema": dict(schema)}:
            return schema
        case {"type": "json_object"}:
            return {"type": "object"}
        case {"type": "json_schema"}:
            match schema_of(response_format) or response_format:
                case {"schema": dict(schema)}:
                    return schema
    why = f"{name} is text, json_object, or json_schema with its schema"
    raise BadInput("bad_request", why=why, field=field)


class StreamOptions(msgspec.Struct, frozen=True):
    include_usage: bool | None = None


class Function(msgspec.Struct, frozen=True):
    name: Name
    description: Annotated[str, Meta(max_length=1 << 16)] | None = None
    parameters: Json | None = None
    strict: bool | None = None

    def tool(self) -> Tool:
        return Tool(self.name, self.description or "", self.parameters or {}, self.strict)


class ChatTool(msgspec.Struct, frozen=True):
    function: Function
    type: str = "function"


class CalledFunction(msgspec.Struct, frozen=True):
    name: Name
    arguments: str = "{}"


class ToolCall(msgspec.Struct, frozen=True):
    function: CalledFunction
    id: str = ""


class ChatMessage(msgspec.Struct, frozen=True):
    role: str
    content: str | list[Any] | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None
    name: str | None = None
    reasoning_content: str | None = None
    reasoning: Any = None  # the name of the same field in some servers and programs

    @property
    def thought(self) -> str | None:
        """Return the thought in an earlier message of the model, or "" if there is none."""
        return self.reasoning_content or (self.reasoning if isinstance(self.reasoning, str) else "")


class ForeignForms(msgspec.Struct, frozen=True, kw_only=True):
    """Fields of llama.cpp and vLLM that constrain the format of an answer.

    They are refused, because ignoring them would produce an answer in the wrong format.
    """

    grammar: Any = None
    json_schema: Any = None
    guided_json: Any = None
    guided_regex: Any = None
    guided_choice: Any = None
    guided_grammar: Any = None
    structured_outputs: Any = None


FORMS = ForeignForms.__struct_fields__


class OpenAiRequest(ForeignForms, frozen=True, kw_only=True):
    """The fields that chat and text completions have in common."""

    model: str = ""
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: Annotated[int, Meta(ge=1, le=MOST_ANSWERS)] | None = None
    stop: Stops = None
    seed: Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)] | None = None
    logit_bias: Annotated[dict[str, float], Meta(max_length=MOST_BIASES)] | None = None
    presence_penalty: Penalty = None
    frequency_penalty: Penalty = None
    temperature: Temperature = None
    top_p: Fraction = None
    top_k: TopK = None
    min_p: Fraction = None
    repeat_penalty: Annotated[float, Meta(ge=0.01, le=10)] | None = None
    repeat_last_n: LastN = None
    max_tokens: Count = None
    user: Annotated[str, Meta(max_length=1000)] | None = None

    @property
    def wants_usage(self) -> bool:
        return bool(self.stream_options and self.stream_options.include_usage)

    def check(self, *unsupported: str) -> None:
        """Raise BadInput if an unsupported field or one of ForeignForms is set."""
        for name in (*unsupported, *FORMS):
            if getattr(self, name):
                raise BadInput("api_unsupported", what=name, field=name)

    def sampling(self, seed: int, likely: int | None) -> Sampling:
        return replace(
            with_values(
                DEFAULT_SAMPLING,
                temperature=self.temperature,
                top_p=self.top_p,
                top_k=self.top_k,
                min_p=self.min_p,
                repeat_penalty=self.repeat_penalty,
                repeat_last_n=self.repeat_last_n,
                presence_penalty=self.presence_penalty,
                frequency_penalty=self.frequency_penalty,
            ),
            seed=(seed if self.seed is None else self.seed) % (MAX_SEED + 1),
            logit_bias=_biases(self.logit_bias or {}),
            likely=likely,
        )


class HostedChatFields(OpenAiRequest, frozen=True, kw_only=True):
    """Fields that only OpenAI's own service supports. They are passed on to upstreams and otherwise ignored."""

    verbosity: Any = None
    service_tier: Any = None
    prompt_cache_key: Any = None
    safety_identifier: Any = None
    store: Any = None
    metadata: Any = None
    modalities: Any = None
    prediction: Any = None
    web_search_options: Any = None


class ChatRequest(HostedChatFields, frozen=True, kw_only=True):
    messages: Annotated[list[ChatMessage], Meta(min_length=1, max_length=4096)]
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=MAX_TOP_LOGPROBS)] | None = None
    max_completion_tokens: Count = None
    response_format: Json | None = None
    tools: Annotated[list[ChatTool], Meta(max_length=MOST_TOOLS)] | None = None
    tool_choice: str | Json | None = None
    parallel_tool_calls: bool | None = None
    functions: Any = None
    audio: Any = None
    reasoning_effort: str | None = None
    chat_template_kwargs: Json | None = None  # llama.cpp's and vLLM's, as are the next two
    reasoning_budget_tokens: int | None = None
    thinking_budget_tokens: int | None = None

    def to_api_request(self, seed: int) -> ApiRequest:
        """Convert the request to an ApiRequest. Raises BadInput."""
        self.check("functions", "audio")
        tools = tuple(tool.function.tool() for tool in self.tools or ())
        choice = tool_choice(self.tool_choice, lambda named: named.get("function"))
        likely, pictures = (self.top_logprobs or 0) if self.logprobs else None, Pictures()
        return ApiRequest(
            model=self.model,
            messages=complete_calls([_message(message, pictures) for message in self.messages]),
            pictures=pictures.files,
            sampling=self.sampling(seed, likely),
            max_tokens=token_limit(self.max_completion_tokens, self.max_tokens),
            stop=stop_strings(self.stop),
            n=self.n or 1,
            schema=answer_schema(
                self.response_format,
                lambda response_format: response_format.get("json_schema"),
                "response_format",
                "response_format",
            ),
            tools=() if choice == "none" else tools,
            must_call=choice if choice not in FREE else None,
            calls_in_pieces=bool(self.stream),
            parallel_calls=self.parallel_tool_calls,
            thinking=self._thinking(),
            template_options=template_kwargs(self.chat_template_kwargs),
            user=self.user or "",
            extra_fields=given_fields(
                self, *SAMPLING_FIELDS, "max_completion_tokens", "response_format", *UPSTREAM_FIELDS
            ),
        )

    def _thinking(self) -> Thinking:
        most = self.reasoning_budget_tokens
        most = self.thinking_budget_tokens if most is None else most
        switch = (self.chat_template_kwargs or {}).get("enable_thinking")
        on = switch if isinstance(switch, bool) else None
        return thinking_option(on, self.reasoning_effort, most)


def thinking_option(on: bool | None, effort: str | None, most_tokens: int | None) -> Thinking:
    """Return the requested thinking.

    Turning thinking off is refused if the model always thinks. A model that never thinks ignores the effort.
    """
    on = False if effort == "none" else on
    most = None if most_tokens is None or most_tokens < 0 else most_tokens
    return Thinking(on, "" if effort in (None, "none") else effort[:32], most, must=on is False)


def template_kwargs(options: Json | None) -> Json:
    """Return the variables for the chat template, without `enable_thinking`.

    Thinking is passed separately, because templates use different names for the switch.
    """
    return {name: value for name, value in (options or {}).items() if name != "enable_thinking"}


class CompletionRequest(OpenAiRequest, frozen=True, kw_only=True):
    prompt: str | Annotated[list[int | str | list[int]], Meta(min_length=1, max_length=1 << 20)]
    logprobs: Annotated[int, Meta(ge=0, le=MAX_TOP_LOGPROBS)] | None = None
    echo: bool | None = None
    suffix: str | None = None
    best_of: int | None = None

    def to_api_request(self, seed: int) -> ApiRequest:
        """Convert the request to an ApiRequest. Raises BadInput."""
        self.check("echo", "suffix", *(["best_of"] if (self.best_of or 1) > (self.n or 1) else []))
        return ApiRequest(
            model=self.model,
            prompt=_prompt(self.prompt),
            sampling=self.sampling(seed, self.logprobs),
            max_tokens=token_limit(self.max_tokens, USUAL_COMPLETION),
            stop=stop_strings(self.stop),
            n=self.n or 1,
            user=self.user or "",
            extra_fields=given_fields(self, *SAMPLING_FIELDS),
        )


def _prompt(prompt: str | list[int | str | list[int]]) -> str | tuple[int, ...]:
    """Return the prompt as text or as token IDs. Raises BadInput if there are several prompts."""
    match prompt:
        case str():
            return prompt
        case [(str() | list()) as only]:
            return _prompt(only)
        case _ if all(isinstance(token, int) for token in prompt):
            return tuple(prompt)  # type: ignore[arg-type]
    raise BadInput("api_one_prompt", field="prompt")


def given_fields(body: object, *names: str) -> Json:
    """Return the named fields that are set."""
    return {name: value for name in names if (value := getattr(body, name)) is not None}


def with_values(usual: Sampling, **values: float | None) -> Sampling:
    """Return the default sampling with the given values. A top_k of -1 or 0 means all tokens."""
    changes: dict[str, Any] = {name: value for name, value in values.items() if value is not None}
    if "top_k" in changes:
        changes["top_k"] = max(0, changes["top_k"])
    return replace(usual, **changes)


def stop_strings(stop: Stops) -> tuple[str, ...]:
    return tuple(filter(None, [stop] if isinstance(stop, str) else stop or ()))


def _biases(logit_bias: dict[str, float]) -> tuple[tuple[int, float], ...]:
    biases = []
    for token, bias in logit_bias.items():
        if not (token.isascii() and token.isdecimal() and len(token) < 10 and -100 <= bias <= 100):
            raise BadInput("bad_request", why="logit_bias gives token ids a bias from -100 to 100", field="logit_bias")
        biases.append((int(token), float(bias)))
    return tuple(biases)


def _message(message: ChatMessage, pictures: Pictures) -> Json:
    """Convert the message to the form that chat templates expect. Raises BadInput."""
    if message.role == "user" and message.content is None:  # its content may be in another field
        raise BadInput("bad_request", why="a message of the user has no content", field="messages")
    text = content_text(message.content, ("text", "refusal"), message.role, pictures)
    named = {"name": message.name} if message.name else {}
    match message.role:
        case "system" | "developer":
            return {"role": "system", "content": text, **named}
        case "assistant" if message.tool_calls:
            calls = [(c.id, c.function.name, c.function.arguments) for c in message.tool_calls]
            return with_thought(assistant_message(text, calls) | named, message.thought)
        case "assistant":
            return with_thought({"role": "assistant", "content": text, **named}, message.thought)
        case "user":
            return {"role": message.role, "content": text, **named}
        case "tool":
            answers = message.tool_call_id or ""
            return {"role": "tool", "content": text, "tool_call_id": answers, **named}
    raise unknown_role(message.role, "system, developer, user, assistant and tool")


def unknown_role(name: str, there: str) -> BadInput:
    why = f"there is no role {name[:40]}, but {there}"
    return BadInput("bad_request", why=why, field="messages")


def assistant_message(text: str, calls: Sequence[tuple[str, str, object]]) -> Json:
    """Return an assistant message with calls, each given as an ID, a name, and arguments as an object or JSON text.

    Truncated arguments remain text; `complete_calls` handles them. Raises BadInput.
    """
    check_calls(calls)
    written = []
    for name_of_call, name, arguments in calls:
        whole = parse_object(arguments) if isinstance(arguments, str) else None
        values = arguments if whole is None else whole
        if not isinstance(values, dict | str):
            raise _no_object()
        function = {"name": name, "arguments": values}
        written.append({"id": name_of_call, "type": "function", "function": function})
    return {"role": "assistant", "content": text, "tool_calls": written}


def complete_calls(messages: Sequence[Json]) -> tuple[Json, ...]:
    """Return the messages with truncated arguments reduced to their complete part. Raises BadInput.

    Only a few truncated calls are accepted, because parsing them is slow.
    """
    functions = [call["function"] for message in messages for call in message.get("tool_calls", ())]
    cut = [function for function in functions if isinstance(function["arguments"], str)]
    for number, function in enumerate(cut):
        function["arguments"] = parse_arguments(function["arguments"]) if number < MOST_CUT else None
        if function["arguments"] is None:
            raise _no_object()
    return tuple(messages)


def _no_object() -> BadInput:
    why = "a call's arguments are no JSON object"
    return BadInput("bad_request", why=why, field="messages")


def check_calls(calls: Sequence[object]) -> None:
    """Raise BadInput if a message has too many calls, since every result is compared with all of them."""
    if len(calls) > MOST_CALLS:
        why = f"a message has more than {MOST_CALLS} calls"
        raise BadInput("bad_request", why=why, field="messages")
