"""The OpenAPI 3.1 document of all routes, generated from the types of their requests and answers."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import msgspec

from app import __version__
from app.gateway import answer_types
from app.gateway.access.auth import HEALTH
from app.gateway.dialects import anthropic_routes, embedding_routes, ollama_routes, openai_requests, responses_routes
from app.gateway.dialects.embedding_routes import RERANK
from app.gateway.error_responses import ApiDialect, api_of

Json = dict[str, Any]
REFUSALS = {
    "400": "The request cannot be used",
    "401": "The key is missing or wrong",
    "403": "The request came from a web page",
    "404": "There is no such model, or it is not loaded",
    "408": "The body arrived too slowly",
    "413": "The body is larger than 8 MiB",
    "415": "The body is not JSON, or has an encoding other than gzip and zstd",
    "421": "The Host is not one of our names",
    "429": "Too many requests; see Retry-After",
    "503": "The pool cannot answer now",
}
Schemas = dict[Any, Json]
TEMPLATE = "#/components/schemas/{name}"


class Post(NamedTuple):
    """A POST route: its summary and the types of its body and answer.

    `piece` is the type of its stream events, if it can stream.
    """

    about: str
    asked: type
    answer: Any
    piece: Any = None


POSTS = {
    "/v1/chat/completions": Post(
        "Answer a chat", openai_requests.ChatRequest, answer_types.ChatCompletion, answer_types.ChatChunk
    ),
    "/v1/completions": Post(
        "Continue a text", openai_requests.CompletionRequest, answer_types.TextCompletion, answer_types.TextChunk
    ),
    "/v1/responses": Post(
        "Answer a chat (Responses API)",
        responses_routes.ResponsesRequest,
        answer_types.Response,
        answer_types.ResponseEvent,
    ),
    "/v1/responses/input_tokens": Post(
        "Count the input tokens of a response", responses_routes.ResponsesRequest, answer_types.ResponseTokens
    ),
    "/v1/messages": Post(
        "Answer a chat (Anthropic)",
        anthropic_routes.MessagesRequest,
        answer_types.AnthropicMessage,
        answer_types.MessageEvent,
    ),
    "/v1/messages/count_tokens": Post(
        "Count the tokens of a chat", anthropic_routes.MessagesRequest, answer_types.TokenCount
    ),
    "/v1/embeddings": Post("Embed texts", embedding_routes.EmbeddingsRequest, answer_types.Vectors),
    **{
        path: Post("Rank texts by their relevance to a query", embedding_routes.RerankRequest, answer_types.Ranked)
        for path in RERANK
    },
    "/api/embed": Post("Embed texts (Ollama)", embedding_routes.OllamaEmbedRequest, answer_types.OllamaVectors),
    "/api/embeddings": Post(
        "Embed one text (Ollama's older route)", embedding_routes.OllamaEmbeddingsRequest, answer_types.OllamaVector
    ),
    "/api/show": Post("Describe a model (Ollama)", ollama_routes.ShowRequest, answer_types.ModelDescription),
    "/api/chat": Post(
        "Answer a chat (Ollama)", ollama_routes.OllamaChatRequest, answer_types.OllamaChat, answer_types.OllamaChat
    ),
    "/api/generate": Post(
        "Answer a prompt (Ollama)",
        ollama_routes.OllamaGenerateRequest,
        answer_types.OllamaText,
        answer_types.OllamaText,
    ),
}
GETS: dict[str, tuple[str, type]] = {  # path: summary and type, which is str for plain text
    "/v1/models": ("List the models", answer_types.Models),
    "/v1/models/{name}": ("Describe a model", answer_types.Model),
    "/": ("Report that the server is running (Ollama)", str),
    "/api/tags": ("List the models (Ollama)", answer_types.Tags),
    "/api/ps": ("List the loaded models (Ollama)", answer_types.LoadedModels),
    "/api/version": ("Return the version of Ollama's API", answer_types.Version),
    "/health": (
        "Report whether requests are answered (llama.cpp); needs no key on this computer",
        answer_types.Healthy,
    ),
    "/v1/health": ("Alias of /health", answer_types.Healthy),
    "/props": ("Describe the model that answers (llama.cpp)", answer_types.Props),
    "/metrics": ("Metrics for Prometheus", str),
    "/openapi.json": ("This description", dict),
}
ERRORS = {
    ApiDialect.OPENAI: answer_types.Error,
    ApiDialect.ANTHROPIC: answer_types.MessageError,
    ApiDialect.OLLAMA: answer_types.OllamaError,
}


@cache
def description() -> bytes:
    """Return the OpenAPI document as JSON."""
    kinds = [*(kind for _, kind in GETS.values()), *ERRORS.values(), answer_types.Loading]
    kinds += [kind for post in POSTS.values() for kind in post[1:] if kind is not None]
    schemas, components = msgspec.json.schema_components(kinds, ref_template=TEMPLATE)
    known = dict(zip(kinds, schemas, strict=True))
    paths: Json = {path: {"get": _get(path, known)} for path in GETS}
    paths |= {path: {"post": _post(path, known)} for path in POSTS}
    keys = {
        "bearer": {"type": "http", "scheme": "bearer"},
        "header": {"type": "apiKey", "in": "header", "name": "X-Api-Key"},
    }
    document = msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {"title": "Poolhouse", "version": __version__, "summary": "The Chat API of a household's pool."},
            "security": [{"bearer": []}, {"header": []}],
            "paths": paths,
            "components": {"schemas": components, "securitySchemes": keys},
        }
    )
    return document.replace(f"{__package__}.".encode(), b"")


def _get(path: str, known: Schemas) -> Json:
    about, kind = GETS[path]
    media = "text/plain" if kind is str else "application/json"
    operation: Json = {
        "summary": about,
        "operationId": _id("get", path),
        "responses": _responses(path, {media: {"schema": known[kind]}}, known),
    }
    if "{name}" in path:
        operation["parameters"] = [{"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}]
    return operation


def _post(path: str, known: Schemas) -> Json:
    about, body, answer, piece = POSTS[path]
    answers: Json = {"application/json": {"schema": known[answer]}}
    if piece is not None:
        media = "application/x-ndjson" if api_of(path) is ApiDialect.OLLAMA else "text/event-stream"
        error = known[ERRORS[api_of(path)]]  # ends a stream that fails
        answers[media] = {"schema": {"anyOf": [known[piece], error]}}
    return {
        "summary": about,
        "operationId": _id("post", path),
        "requestBody": {"required": True, "content": {"application/json": {"schema": known[body]}}},
        "responses": _responses(path, answers, known),
    }


def _responses(path: str, content: Json, known: Schemas) -> Json:
    refused = {"content": {"application/json": {"schema": known[ERRORS[api_of(path)]]}}}
    responses: Json = {"200": {"description": "The answer", "content": content}} | {
        status: {"description": about} | refused for status, about in REFUSALS.items()
    }
    if path in HEALTH:
        schema = {"schema": known[answer_types.Loading]}
        responses["503"] = {"description": "A model is being loaded", "content": {"application/json": schema}}
    return responses


def _id(method: str, path: str) -> str:
    parts = path.strip("/").split("/")
    return "_".join([method, *(part.strip("{}").replace(".", "_") for part in parts if part)])
