"""Answers of OpenAI's chat and text completions, models and embeddings, and its errors. No I/O."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from app.gateway.openapi.schema_parts import Exact, Told

Reason = Literal["stop", "length", "tool_calls"]


class Cause(Exact):
    message: str
    type: str
    param: str | None
    code: str | None


class Error(Exact):
    """Of OpenAI's kind."""

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
    """The first one of a call names it; those behind it bring pieces of its arguments."""

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
