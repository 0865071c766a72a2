"""Holds an answer against what the official client of its API takes it for, every field by its own kind.

The clients themselves do not: OpenAI's and Anthropic's take whatever comes.
"""

from __future__ import annotations

import json
import re
from typing import Any

import anthropic.types
import ollama
import openai.types
import openai.types.chat
import openai.types.responses
import openai.types.shared
from pydantic import BaseModel, TypeAdapter

from app.gateway.error_responses import ApiDialect, api_of
from tests.gateway.described_answers import pieces_of

Kind = TypeAdapter[Any]


class Models(BaseModel):
    """Its client turns pages of them."""

    data: list[openai.types.Model]


WHOLE: dict[str, Kind] = {
    path: TypeAdapter(kind)
    for path, kind in {
        "/v1/models": Models,
        "/v1/chat/completions": openai.types.chat.ChatCompletion,
        "/v1/completions": openai.types.Completion,
        "/v1/embeddings": openai.types.CreateEmbeddingResponse,
        "/v1/responses": openai.types.responses.Response,
        "/v1/responses/input_tokens": openai.types.responses.InputTokenCountResponse,
        "/v1/messages": anthropic.types.Message,
        "/v1/messages/count_tokens": anthropic.types.MessageTokensCount,
        "/api/tags": ollama.ListResponse,
        "/api/ps": ollama.ProcessResponse,
        "/api/show": ollama.ShowResponse,
        "/api/chat": ollama.ChatResponse,
        "/api/generate": ollama.GenerateResponse,
    }.items()
}
PIECES: dict[str, Kind] = {
    path: TypeAdapter(kind)
    for path, kind in {
        "/v1/chat/completions": openai.types.chat.ChatCompletionChunk,
        "/v1/completions": openai.types.Completion,
        "/v1/responses": openai.types.responses.ResponseStreamEvent,
        "/v1/messages": anthropic.types.RawMessageStreamEvent,
        "/api/chat": ollama.ChatResponse,
        "/api/generate": ollama.GenerateResponse,
    }.items()
}
OPENAI_ERROR: Kind = TypeAdapter(openai.types.shared.ErrorObject)
BASE64 = re.compile(rb'"embedding": ?"')  # the client itself makes numbers of it
# Before its end a text has no reason: OpenAI's own server says null, which its client forgot.
NO_REASON = (b'"finish_reason":null', b'"finish_reason":"stop"')
ANTHROPIC_ERROR: Kind = TypeAdapter(anthropic.types.ErrorResponse)


def check_types(path: str, status: int, body: bytes) -> None:
    """Raises pydantic.ValidationError. Ollama's client has no kind for an error: it reads `error`, a text."""
    if status != 200:
        match api_of(path):
            case ApiDialect.OPENAI:
                OPENAI_ERROR.validate_python(json.loads(body)["error"], strict=True)
            case ApiDialect.ANTHROPIC:
                ANTHROPIC_ERROR.validate_json(body, strict=True)
        return
    pieces = pieces_of(path, body)
    if pieces is None and path in WHOLE and not BASE64.search(body):
        WHOLE[path].validate_json(body, strict=True)
    for piece in pieces or ():
        PIECES[path].validate_json(piece.replace(*NO_REASON), strict=True)
