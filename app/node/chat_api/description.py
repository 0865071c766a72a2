"""All routes as OpenAPI describes them (3.1), made from the shapes that read the requests. No I/O."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from app import __version__
from app.node.chat_api import (
    anthropic_shapes,
    embedding_shapes,
    ollama_shapes,
    openai_shapes,
    responses_shapes,
)

Json = dict[str, Any]

POSTS: dict[str, tuple[str, type, bool]] = {  # path: what it does, its body, whether it can stream
    "/v1/chat/completions": ("An answer in a chat", openai_shapes.ChatAsked, True),
    "/v1/completions": ("A text that goes on", openai_shapes.TextAsked, True),
    "/v1/responses": ("An answer in a chat, as responses", responses_shapes.Asked, True),
    "/v1/messages": ("An answer in a chat, as Anthropic's", anthropic_shapes.Asked, True),
    "/v1/messages/count_tokens": ("How many tokens a chat is", anthropic_shapes.Asked, False),
    "/v1/embeddings": ("Vectors of texts", embedding_shapes.Asked, False),
    "/api/embed": ("Vectors of texts, as Ollama's", embedding_shapes.OllamaAsked, False),
    "/api/embeddings": (
        "The vector of a text, as Ollama's older one",
        embedding_shapes.OllamaOneAsked,
        False,
    ),
    "/api/chat": ("An answer in a chat, as Ollama's", ollama_shapes.ChatAsked, True),
    "/api/generate": ("An answer to a prompt, as Ollama's", ollama_shapes.GenerateAsked, True),
}
GETS = {
    "/v1/models": "The models of the shelf",
    "/v1/models/{name}": "One model",
    "/api/tags": "The models of the shelf, as Ollama's",
    "/api/version": "The version",
    "/metrics": "Figures for Prometheus",
    "/openapi.json": "This description",
}
REFUSALS = {
    "400": "The request cannot be used", "401": "The key is missing or wrong", "403": "A web page asked",
    "404": "There is no such model, or it is not loaded", "408": "The body came too slowly",
    "413": "The body is larger than 8 MiB", "415": "The body is no JSON, or is compressed",
    "421": "Asked by another name than our own", "429": "Too much waits; see Retry-After",
    "503": "The pool cannot answer now",
}  # fmt: skip
TEMPLATE = "#/components/schemas/{name}"


@cache
def description() -> bytes:
    """The document, as JSON."""
    bodies = [body for _, body, _ in POSTS.values()]
    schemas, components = msgspec.json.schema_components(bodies, ref_template=TEMPLATE)
    known = dict(zip(bodies, schemas, strict=True))
    paths: Json = {path: {"get": _get(path, about)} for path, about in GETS.items()}
    for path, (about, body, streams) in POSTS.items():
        paths[path] = {"post": _post(path, about, known[body], streams)}
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


def _get(path: str, about: str) -> Json:
    kind = "text/plain" if path == "/metrics" else "application/json"
    told: Json = {
        "summary": about,
        "operationId": _id("get", path),
        "responses": _responses({kind: {}}),
    }
    if "{name}" in path:
        told["parameters"] = [
            {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
        ]
    return told


def _post(path: str, about: str, schema: Json, streams: bool) -> Json:
    answers: Json = {"application/json": {"schema": {"type": "object"}}}
    if streams:
        answers["application/x-ndjson" if path.startswith("/api/") else "text/event-stream"] = {}
    return {
        "summary": about,
        "operationId": _id("post", path),
        "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
        "responses": _responses(answers),
    }


def _responses(content: Json) -> Json:
    refused = {"content": {"application/json": {"schema": {"type": "object"}}}}
    return {"200": {"description": "The answer", "content": content}} | {
        status: {"description": about} | refused for status, about in REFUSALS.items()
    }


def _id(method: str, path: str) -> str:
    return "_".join(
        [method, *(part.strip("{}").replace(".", "_") for part in path.strip("/").split("/"))]
    )
