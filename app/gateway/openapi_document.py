"""The OpenAPI 3.1 document of all routes, made from the types that decode the requests. No I/O."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from app import __version__
from app.gateway import openapi_schemas
from app.gateway.access.auth import HEALTH
from app.gateway.dialects import anthropic_routes, embedding_routes, ollama_routes, openai_requests, responses_routes
from app.gateway.dialects.embedding_routes import RERANK
from app.gateway.openapi_schemas import Exact, Told
from app.gateway.refusals import Api, api_of

# Answers of Ollama's API, and its errors. No I/O.

StopReason = Literal["end_turn", "max_tokens", "stop_sequence", "tool_use"]
Json = dict[str, Any]
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


class OllamaError(Exact):
    """An error in Ollama's shape."""

    error: str


class Version(Exact):
    version: str


class ModelDetails(Exact):
    parent_model: str
    format: str
    family: str
    families: list[str]
    parameter_size: str
    quantization_level: str


class OllamaModel(Exact):
    name: str
    model: str
    modified_at: str
    size: int
    digest: str
    details: ModelDetails


class Tags(Exact):
    models: list[OllamaModel]


class OllamaLoaded(Exact):
    name: str
    model: str
    size: int
    digest: str
    details: ModelDetails
    context_length: int


class LoadedModels(Exact):
    models: list[OllamaLoaded]


class Shown(Exact):
    modified_at: str
    license: str
    modelfile: str
    parameters: str
    template: str
    details: ModelDetails
    model_info: dict[str, Any]
    capabilities: list[Literal["completion", "tools", "thinking", "embedding"]]


class OllamaFunction(Exact):
    name: str
    arguments: dict[str, Any]


class OllamaCall(Exact):
    function: OllamaFunction


class OllamaMessage(Exact):
    role: Literal["assistant"]
    content: str
    thinking: str | UnsetType = UNSET
    tool_calls: list[OllamaCall] | UnsetType = UNSET


class _Line(Told, kw_only=True):
    """A line with the figures, which end a stream and are part of a whole answer."""

    model: str
    created_at: str
    done: bool
    done_reason: Literal["stop", "length", "load", "unload"] | UnsetType = UNSET
    total_duration: int | UnsetType = UNSET
    load_duration: int | UnsetType = UNSET
    prompt_eval_count: int | UnsetType = UNSET
    prompt_eval_duration: int | UnsetType = UNSET
    eval_count: int | UnsetType = UNSET
    eval_duration: int | UnsetType = UNSET


class OllamaChat(_Line, kw_only=True):
    message: OllamaMessage


class OllamaText(_Line, kw_only=True):
    response: str
    thinking: str | UnsetType = UNSET


class OllamaVectors(Exact):
    model: str
    embeddings: list[list[float]]
    total_duration: int
    load_duration: int
    prompt_eval_count: int


class OllamaVector(Exact):
    embedding: list[float]


# Answers of Anthropic's Messages API, and its errors. No I/O.


class MessageCause(Exact):
    type: str
    message: str


class MessageError(Exact, tag_field="type", tag="error"):
    """An error in Anthropic's shape."""

    error: MessageCause
    request_id: str


class TokenCount(Exact):
    input_tokens: int


class TextBlock(Exact, tag_field="type", tag="text"):
    text: str


class ThinkingBlock(Exact, tag_field="type", tag="thinking"):
    thinking: str
    signature: str


class ToolUseBlock(Exact, tag_field="type", tag="tool_use"):
    id: str
    name: str
    input: dict[str, Any]


class MessageUsage(Exact):
    input_tokens: int
    output_tokens: int
    cache_read_input_tokens: int
    cache_creation_input_tokens: int


class AnthropicMessage(Told, kw_only=True):
    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    model: str
    content: list[TextBlock | ThinkingBlock | ToolUseBlock]
    stop_reason: StopReason | None
    stop_sequence: str | None
    usage: MessageUsage


class MessageStart(Exact, tag_field="type", tag="message_start"):
    message: AnthropicMessage


class ContentBlockStart(Exact, tag_field="type", tag="content_block_start"):
    index: int
    content_block: TextBlock | ThinkingBlock | ToolUseBlock


class TextDelta(Exact, tag_field="type", tag="text_delta"):
    text: str


class ThinkingDelta(Exact, tag_field="type", tag="thinking_delta"):
    thinking: str


class SignatureDelta(Exact, tag_field="type", tag="signature_delta"):
    signature: str


class InputJsonDelta(Exact, tag_field="type", tag="input_json_delta"):
    partial_json: str


class ContentBlockDelta(Exact, tag_field="type", tag="content_block_delta"):
    index: int
    delta: TextDelta | ThinkingDelta | SignatureDelta | InputJsonDelta


class ContentBlockStop(Exact, tag_field="type", tag="content_block_stop"):
    index: int


class MessageEnd(Exact):
    stop_reason: StopReason
    stop_sequence: str | None


class MessageDelta(Exact, tag_field="type", tag="message_delta"):
    delta: MessageEnd
    usage: MessageUsage


class MessageStop(Exact, tag_field="type", tag="message_stop"):
    pass


class Ping(Exact, tag_field="type", tag="ping"):
    """An event that keeps a silent stream alive."""


MessageEvent = (
    MessageStart
    | ContentBlockStart
    | ContentBlockDelta
    | ContentBlockStop
    | MessageDelta
    | MessageStop
    | Ping
    | MessageError
)


# Answers of the routes that llama.cpp's server has and OpenAI's API has not. No I/O.


class Healthy(Exact):
    status: Literal["ok"]


class LoadingCause(Exact):
    code: Literal[503]
    message: str
    type: Literal["unavailable_error"]


class Loading(Exact):
    """The state while the first model is loaded."""

    error: LoadingCause


class UsualParams(Exact):
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    repeat_penalty: float
    repeat_last_n: int
    presence_penalty: float
    frequency_penalty: float
    max_tokens: int
    n_predict: int


class UsualSettings(Exact):
    params: UsualParams
    n_ctx: int


class Modalities(Exact):
    vision: bool
    video: bool
    audio: bool


class Props(Exact):
    default_generation_settings: UsualSettings
    total_slots: int
    model_alias: str
    model_path: str
    model_ftype: str
    modalities: Modalities
    endpoint_slots: bool
    endpoint_props: bool
    endpoint_metrics: bool
    chat_template: str
    bos_token: str
    eos_token: str
    build_info: str
    is_sleeping: bool


class RankedText(Exact):
    text: str


class RankedDocument(Exact):
    index: int
    relevance_score: float
    document: RankedText | UnsetType = UNSET


class RankUsage(Exact):
    prompt_tokens: int
    total_tokens: int


class RankedDocuments(Exact):
    """The answer to a request with `documents`."""

    model: str
    object: Literal["list"]
    usage: RankUsage
    results: list[RankedDocument]


class RankedTexts(Exact):
    """One entry of the answer to a request with `texts`."""

    index: int
    score: float
    text: str | UnsetType = UNSET


Ranked = RankedDocuments | list[RankedTexts]  # by how it was asked


class Post(NamedTuple):
    """A POST route: its summary, the types of its body and answer, and that of a piece of its stream, if it has any."""

    about: str
    asked: type
    answer: Any
    piece: Any = None


POSTS = {
    "/v1/chat/completions": Post(
        "An answer in a chat", openai_requests.ChatRequest, openapi_schemas.ChatCompletion, openapi_schemas.ChatChunk
    ),
    "/v1/completions": Post(
        "A text that goes on",
        openai_requests.CompletionRequest,
        openapi_schemas.TextCompletion,
        openapi_schemas.TextChunk,
    ),
    "/v1/responses": Post(
        "An answer in a chat, as responses",
        responses_routes.ResponsesRequest,
        openapi_schemas.Response,
        openapi_schemas.ResponseEvent,
    ),
    "/v1/responses/input_tokens": Post(
        "How many tokens a response reads", responses_routes.ResponsesRequest, openapi_schemas.ResponseTokens
    ),
    "/v1/messages": Post(
        "An answer in a chat, as Anthropic's", anthropic_routes.MessagesRequest, AnthropicMessage, MessageEvent
    ),
    "/v1/messages/count_tokens": Post("How many tokens a chat is", anthropic_routes.MessagesRequest, TokenCount),
    "/v1/embeddings": Post("Vectors of texts", embedding_routes.EmbeddingsRequest, openapi_schemas.Vectors),
    **{path: Post("How well texts answer a query", embedding_routes.RerankRequest, Ranked) for path in RERANK},
    "/api/embed": Post("Vectors of texts, as Ollama's", embedding_routes.OllamaEmbedRequest, OllamaVectors),
    "/api/embeddings": Post(
        "The vector of a text, as Ollama's older one", embedding_routes.OllamaEmbeddingsRequest, OllamaVector
    ),
    "/api/show": Post("One model, as Ollama's", ollama_routes.ShowRequest, Shown),
    "/api/chat": Post("An answer in a chat, as Ollama's", ollama_routes.OllamaChatRequest, OllamaChat, OllamaChat),
    "/api/generate": Post(
        "An answer to a prompt, as Ollama's", ollama_routes.OllamaGenerateRequest, OllamaText, OllamaText
    ),
}
GETS: dict[str, tuple[str, type]] = {  # path: what it is, and its kind; text where it is no JSON
    "/v1/models": ("The models of the shelf", openapi_schemas.Models),
    "/v1/models/{name}": ("One model", openapi_schemas.Model),
    "/": ("That it runs, as Ollama's", str),
    "/api/tags": ("The models of the shelf, as Ollama's", Tags),
    "/api/ps": ("The models that are loaded, as Ollama's", LoadedModels),
    "/api/version": ("The version of Ollama's API", Version),
    "/health": ("Whether it answers, as llama.cpp's; no key is needed on this computer", Healthy),
    "/v1/health": ("The same", Healthy),
    "/props": ("The model that answers, as llama.cpp's", Props),
    "/metrics": ("Figures for Prometheus", str),
    "/openapi.json": ("This description", dict),
}
ERRORS = {Api.OPENAI: openapi_schemas.Error, Api.ANTHROPIC: MessageError, Api.OLLAMA: OllamaError}


@cache
def description() -> bytes:
    """Return the document as JSON."""
    kinds = [*(kind for _, kind in GETS.values()), *ERRORS.values(), Loading]
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
        media = "application/x-ndjson" if api_of(path) is Api.OLLAMA else "text/event-stream"
        error = known[ERRORS[api_of(path)]]  # of a stream that cannot go on
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
        schema = {"schema": known[Loading]}
        responses["503"] = {"description": "A model is loaded", "content": {"application/json": schema}}
    return responses


def _id(method: str, path: str) -> str:
    parts = path.strip("/").split("/")
    return "_".join([method, *(part.strip("{}").replace(".", "_") for part in parts if part)])
