"""All routes as OpenAPI describes them (3.1), made from the shapes that read the requests. No I/O."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import msgspec

from app import __version__
from app.gateway.access.auth import HEALTH
from app.gateway.anthropic import anthropic_dialect
from app.gateway.embeddings import embedding_dialects, rerank_dialects
from app.gateway.embeddings.embedding_routes import RERANK
from app.gateway.ollama import ollama_dialect, ollama_models
from app.gateway.openai import openai_requests
from app.gateway.openapi import (
    anthropic_answers,
    ollama_answers,
    openai_schemas,
    responses_schemas,
    server_schemas,
)
from app.gateway.refusals import Api, api_of
from app.gateway.responses import responses_requests

Json = dict[str, Any]


class Post(NamedTuple):
    """What a route does, what it is asked with, what it answers, and what a piece of its stream is, if it has any."""

    about: str
    asked: type
    answer: Any
    piece: Any = None


POSTS = {
    "/v1/chat/completions": Post(
        "An answer in a chat",
        openai_requests.ChatAsked,
        openai_schemas.ChatCompletion,
        openai_schemas.ChatChunk,
    ),
    "/v1/completions": Post(
        "A text that goes on",
        openai_requests.TextAsked,
        openai_schemas.TextCompletion,
        openai_schemas.TextChunk,
    ),
    "/v1/responses": Post(
        "An answer in a chat, as responses",
        responses_requests.Asked,
        responses_schemas.Response,
        responses_schemas.ResponseEvent,
    ),
    "/v1/responses/input_tokens": Post(
        "How many tokens a response reads",
        responses_requests.Asked,
        responses_schemas.ResponseTokens,
    ),
    "/v1/messages": Post(
        "An answer in a chat, as Anthropic's",
        anthropic_dialect.Asked,
        anthropic_answers.AnthropicMessage,
        anthropic_answers.MessageEvent,
    ),
    "/v1/messages/count_tokens": Post(
        "How many tokens a chat is", anthropic_dialect.Asked, anthropic_answers.TokenCount
    ),
    "/v1/embeddings": Post("Vectors of texts", embedding_dialects.Asked, openai_schemas.Vectors),
    **{
        path: Post(
            "How well texts answer a query",
            rerank_dialects.Asked,
            server_schemas.Ranked,
        )
        for path in RERANK
    },
    "/api/embed": Post(
        "Vectors of texts, as Ollama's",
        embedding_dialects.OllamaAsked,
        ollama_answers.OllamaVectors,
    ),
    "/api/embeddings": Post(
        "The vector of a text, as Ollama's older one",
        embedding_dialects.OllamaOneAsked,
        ollama_answers.OllamaVector,
    ),
    "/api/show": Post("One model, as Ollama's", ollama_models.Asked, ollama_answers.Shown),
    "/api/chat": Post(
        "An answer in a chat, as Ollama's",
        ollama_dialect.ChatAsked,
        ollama_answers.OllamaChat,
        ollama_answers.OllamaChat,
    ),
    "/api/generate": Post(
        "An answer to a prompt, as Ollama's",
        ollama_dialect.GenerateAsked,
        ollama_answers.OllamaText,
        ollama_answers.OllamaText,
    ),
}
GETS: dict[str, tuple[str, type]] = {  # path: what it is, and its kind; text where it is no JSON
    "/v1/models": ("The models of the shelf", openai_schemas.Models),
    "/v1/models/{name}": ("One model", openai_schemas.Model),
    "/": ("That it runs, as Ollama's", str),
    "/api/tags": ("The models of the shelf, as Ollama's", ollama_answers.Tags),
    "/api/ps": ("The models that are loaded, as Ollama's", ollama_answers.LoadedModels),
    "/api/version": ("The version of Ollama's API", ollama_answers.Version),
    "/health": (
        "Whether it answers, as llama.cpp's; no key is needed on this computer",
        server_schemas.Healthy,
    ),
    "/v1/health": ("The same", server_schemas.Healthy),
    "/props": ("The model that answers, as llama.cpp's", server_schemas.Props),
    "/metrics": ("Figures for Prometheus", str),
    "/openapi.json": ("This description", dict),
}
ERRORS = {
    Api.OPENAI: openai_schemas.Error,
    Api.ANTHROPIC: anthropic_answers.MessageError,
    Api.OLLAMA: ollama_answers.OllamaError,
}
REFUSALS = {
    "400": "The request cannot be used",
    "401": "The key is missing or wrong",
    "403": "A web page asked",
    "404": "There is no such model, or it is not loaded",
    "408": "The body came too slowly",
    "413": "The body is larger than 8 MiB",
    "415": "The body is no JSON, or has an encoding other than gzip and zstd",
    "421": "Asked by another name than our own",
    "429": "Too much waits; see Retry-After",
    "503": "The pool cannot answer now",
}
Schemas = dict[Any, Json]
TEMPLATE = "#/components/schemas/{name}"


@cache
def description() -> bytes:
    """The document, as JSON."""
    kinds = [*(kind for _, kind in GETS.values()), *ERRORS.values(), server_schemas.Loading]
    kinds += [kind for one in POSTS.values() for kind in one[1:] if kind is not None]
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
            "info": {
                "title": "Poolhouse",
                "version": __version__,
                "summary": "The Chat API of a household's pool.",
            },
            "security": [{"bearer": []}, {"header": []}],
            "paths": paths,
            "components": {"schemas": components, "securitySchemes": keys},
        }
    )
    return document.replace(f"{__package__}.".encode(), b"")


def _get(path: str, known: Schemas) -> Json:
    about, kind = GETS[path]
    media = "text/plain" if kind is str else "application/json"
    told: Json = {
        "summary": about,
        "operationId": _id("get", path),
        "responses": _responses(path, {media: {"schema": known[kind]}}, known),
    }
    if "{name}" in path:
        told["parameters"] = [
            {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
        ]
    return told


def _post(path: str, known: Schemas) -> Json:
    about, asked, answer, piece = POSTS[path]
    answers: Json = {"application/json": {"schema": known[answer]}}
    if piece is not None:
        media = "application/x-ndjson" if api_of(path) is Api.OLLAMA else "text/event-stream"
        error = known[ERRORS[api_of(path)]]  # of a stream that cannot go on
        answers[media] = {"schema": {"anyOf": [known[piece], error]}}
    return {
        "summary": about,
        "operationId": _id("post", path),
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": known[asked]}},
        },
        "responses": _responses(path, answers, known),
    }


def _responses(path: str, content: Json, known: Schemas) -> Json:
    refused = {"content": {"application/json": {"schema": known[ERRORS[api_of(path)]]}}}
    told: Json = {"200": {"description": "The answer", "content": content}} | {
        status: {"description": about} | refused for status, about in REFUSALS.items()
    }
    if path in HEALTH:
        schema = {"schema": known[server_schemas.Loading]}
        told["503"] = {"description": "A model is loaded", "content": {"application/json": schema}}
    return told


def _id(method: str, path: str) -> str:
    parts = path.strip("/").split("/")
    return "_".join([method, *(part.strip("{}").replace(".", "_") for part in parts if part)])
