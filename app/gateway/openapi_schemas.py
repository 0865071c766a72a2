"""Answers of OpenAI's APIs: chat and text completions, responses, models and embeddings, and its errors. No I/O."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

Status = Literal["in_progress", "completed", "incomplete"]
Reason = Literal["stop", "length", "tool_calls"]


class Exact(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """An object with these fields and no others."""


class Poolhouse(Exact):
    """The upstream that answered in place of the pool."""

    upstream: str


class Told(Exact):
    """An answer that names its source if that is not the pool."""

    poolhouse: Poolhouse | UnsetType = UNSET


class OutputText(Exact, tag_field="type", tag="output_text"):
    text: str
    annotations: list[Any]
    logprobs: list[Any]


class OutputMessage(Exact, tag_field="type", tag="message"):
    id: str
    status: Status
    role: Literal["assistant"]
    content: list[OutputText]


class ReasoningText(Exact, tag_field="type", tag="reasoning_text"):
    text: str


class ReasoningItem(Exact, tag_field="type", tag="reasoning"):
    """The model's thinking."""

    id: str
    status: Status
    summary: list[Any]
    content: list[ReasoningText]


class FunctionCall(Exact, tag_field="type", tag="function_call"):
    id: str
    status: Status
    call_id: str
    name: str
    arguments: str
    namespace: str | UnsetType = UNSET


class InputDetails(Exact):
    cached_tokens: int
    cache_write_tokens: int


class OutputDetails(Exact):
    reasoning_tokens: int


class ResponseUsage(Exact):
    input_tokens: int
    input_tokens_details: InputDetails
    output_tokens: int
    output_tokens_details: OutputDetails
    total_tokens: int


class Incomplete(Exact):
    reason: Literal["max_output_tokens"]


class ResponseTool(Exact, tag_field="type", tag="function"):
    name: str
    description: str | None
    parameters: dict[str, Any] | None
    strict: bool


class ResponseNamespace(Exact, tag_field="type", tag="namespace"):
    name: str
    description: str
    tools: list[ResponseTool]


class Response(Told, kw_only=True):
    id: str
    object: Literal["response"]
    created_at: int
    status: Status
    error: None
    incomplete_details: Incomplete | None
    model: str
    output: list[OutputMessage | ReasoningItem | FunctionCall]
    usage: ResponseUsage | None
    previous_response_id: None
    store: bool
    instructions: str | None
    max_output_tokens: int | None
    temperature: float | None
    top_p: float | None
    parallel_tool_calls: bool
    tool_choice: str | dict[str, Any]
    tools: list[ResponseTool | ResponseNamespace]
    metadata: dict[str, str]


class ResponseTokens(Exact):
    object: Literal["response.input_tokens"]
    input_tokens: int


class _Numbered(Exact):
    sequence_number: int


class ResponseCreated(_Numbered, tag_field="type", tag="response.created"):
    response: Response


class ResponseInProgress(_Numbered, tag_field="type", tag="response.in_progress"):
    response: Response


class ResponseCompleted(_Numbered, tag_field="type", tag="response.completed"):
    response: Response


class ResponseIncomplete(_Numbered, tag_field="type", tag="response.incomplete"):
    response: Response


class OutputItemAdded(_Numbered, tag_field="type", tag="response.output_item.added"):
    output_index: int
    item: OutputMessage | ReasoningItem | FunctionCall


class OutputItemDone(_Numbered, tag_field="type", tag="response.output_item.done"):
    output_index: int
    item: OutputMessage | ReasoningItem | FunctionCall


class _InItem(_Numbered):
    item_id: str
    output_index: int


class ContentPartAdded(_InItem, tag_field="type", tag="response.content_part.added"):
    content_index: int
    part: OutputText


class ContentPartDone(_InItem, tag_field="type", tag="response.content_part.done"):
    content_index: int
    part: OutputText


class OutputTextDelta(_InItem, tag_field="type", tag="response.output_text.delta"):
    content_index: int
    delta: str
    logprobs: list[Any]


class OutputTextDone(_InItem, tag_field="type", tag="response.output_text.done"):
    content_index: int
    text: str
    logprobs: list[Any]


class ReasoningTextDelta(_InItem, tag_field="type", tag="response.reasoning_text.delta"):
    content_index: int
    delta: str


class ReasoningTextDone(_InItem, tag_field="type", tag="response.reasoning_text.done"):
    content_index: int
    text: str


class ArgumentsDelta(_InItem, tag_field="type", tag="response.function_call_arguments.delta"):
    delta: str


class ArgumentsDone(_InItem, tag_field="type", tag="response.function_call_arguments.done"):
    name: str
    arguments: str


class ResponseFailed(_Numbered, tag_field="type", tag="error"):
    code: str
    message: str
    param: str | None


ResponseEvent = (
    ResponseCreated | ResponseInProgress | ResponseCompleted | ResponseIncomplete | OutputItemAdded | OutputItemDone
    | ReasoningTextDelta | ReasoningTextDone | ContentPartAdded | ContentPartDone | OutputTextDelta | OutputTextDone
    | ArgumentsDelta | ArgumentsDone | ResponseFailed
)  # fmt: skip


class Cause(Exact):
    message: str
    type: str
    param: str | None
    code: str | None


class Error(Exact):
    """An error in OpenAI's shape."""

    error: Cause


class Model(Exact):
    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class Models(Exact):
    object: Literal["list"]
    data: list[Model]


class CachedTokens(Exact):
    cached_tokens: int


class ThoughtTokens(Exact):
    reasoning_tokens: int


class Usage(Exact):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: CachedTokens
    completion_tokens_details: ThoughtTokens | UnsetType = UNSET


class CalledFunction(Exact):
    name: str
    arguments: str


class Call(Exact):
    id: str
    type: Literal["function"]
    function: CalledFunction


class FunctionDelta(Exact):
    arguments: str
    name: str | UnsetType = UNSET


class CallDelta(Exact):
    """A part of a call: the first names it, later ones bring pieces of its arguments."""

    index: int
    function: FunctionDelta
    id: str | UnsetType = UNSET
    type: Literal["function"] | UnsetType = UNSET


class Token(Exact):
    token: str
    logprob: float
    bytes: list[int]


class ChosenToken(Token):
    top_logprobs: list[Token]


class ChatLogprobs(Exact):
    content: list[ChosenToken]
    refusal: None


class ChatMessage(Exact):
    role: Literal["assistant"]
    content: str | None
    reasoning_content: str | UnsetType = UNSET
    tool_calls: list[Call] | UnsetType = UNSET


class ChatChoice(Exact):
    index: int
    message: ChatMessage
    logprobs: ChatLogprobs | None
    finish_reason: Reason


class ChatCompletion(Told, kw_only=True):
    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[ChatChoice]
    usage: Usage


class ChatDelta(Exact):
    role: Literal["assistant"] | UnsetType = UNSET
    content: str | UnsetType = UNSET
    reasoning_content: str | UnsetType = UNSET
    tool_calls: list[CallDelta] | UnsetType = UNSET


class ChatChunkChoice(Exact):
    index: int
    delta: ChatDelta
    logprobs: ChatLogprobs | None
    finish_reason: Reason | None


class ChatChunk(Told, kw_only=True):
    """One event of a stream; `[DONE]` comes after the last."""

    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    choices: list[ChatChunkChoice]
    usage: Usage | UnsetType | None = UNSET


class TextLogprobs(Exact):
    tokens: list[str]
    token_logprobs: list[float]
    top_logprobs: list[dict[str, float]]
    text_offset: list[int]


class TextChoice(Exact):
    index: int
    text: str
    logprobs: TextLogprobs | None
    finish_reason: Literal["stop", "length"]


class TextCompletion(Told, kw_only=True):
    id: str
    object: Literal["text_completion"]
    created: int
    model: str
    choices: list[TextChoice]
    usage: Usage


class TextChunkChoice(Exact):
    index: int
    text: str
    logprobs: TextLogprobs | None
    finish_reason: Literal["stop", "length"] | None


class TextChunk(Told, kw_only=True):
    """One event of a stream; `[DONE]` comes after the last."""

    id: str
    object: Literal["text_completion"]
    created: int
    model: str
    choices: list[TextChunkChoice]
    usage: Usage | UnsetType | None = UNSET


class VectorUsage(Exact):
    prompt_tokens: int
    total_tokens: int


class Vector(Exact):
    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class Vectors(Exact):
    object: Literal["list"]
    model: str
    data: list[Vector]
    usage: VectorUsage
