"""Errors in the format that the clients of each API expect. This module does no I/O."""

from __future__ import annotations

from enum import Enum
from typing import Any

import msgspec

from app.core.errors import AppError, BadInput, Busy, Damaged, DoesNotFit, Refused, StageFailed, StageLost, Unreachable
from app.core.nearest_names import MODEL_UNKNOWN
from app.core.reasons import said
from app.machine.paths import with_home
from app.network.peer.listener import ANSWERS_PATH

Json = dict[str, Any]

NO_FAULT_OF_THE_CLIENT = frozenset(("last_load_failed",))  # retrying is useless, too
# A wrong or ambiguous model name is a 404, as in the APIs of OpenAI, Anthropic and Ollama.
NOT_FOUND = frozenset(
    {
        *MODEL_UNKNOWN,
        "model_ambiguous",
        "model_inexact",
        "api_model_not_loaded",
        "guest_model_not_loaded",
        "nothing_loaded",
        "phone_model_gone",
        "embedding_model_unknown",
        "embedding_model_missing",
        "reranker_missing",
        "guest_reranker_missing",
        "guest_embedding_missing",
        "upstream_off",
        "guest_upstream_off",
    }
)
TOO_LONG = frozenset(
    {"prompt_too_long", "prompt_beyond_model", "text_too_long"}
)  # programs look for this code, and then shorten the chat
STATUS: dict[type[AppError], int] = {
    BadInput: 400,
    Refused: 403,
    Busy: 429,
    DoesNotFit: 503,
    StageFailed: 422,
    StageLost: 503,
    Unreachable: 503,
    Damaged: 503,
}
_ANTHROPIC = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
}
_OPENAI_CODE = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded", 503: "unavailable"}


class ApiDialect(Enum):
    """The API that a route belongs to."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    OLLAMA = "ollama"


def api_of(path: str) -> ApiDialect:
    path = path.removeprefix(ANSWERS_PATH)
    if path == "/v1/messages" or path.startswith("/v1/messages/"):
        return ApiDialect.ANTHROPIC
    return ApiDialect.OLLAMA if path == "/" or path.startswith("/api/") else ApiDialect.OPENAI


def nested_too_deeply() -> BadInput:
    """Return the error for a body that is nested too deeply to be parsed or encoded."""
    return BadInput("bad_request", why="it is nested too deeply", field="")


def status_of(error: AppError) -> int:
    if error.reason.code in NOT_FOUND:
        return 404
    if error.reason.code in NO_FAULT_OF_THE_CLIENT:
        return 422
    return STATUS.get(type(error), 500)


def error_body(api: ApiDialect, error: AppError, request: str, home: str = "") -> Json:
    """Return the body of an error response. `home` is an option to add to the commands in the error's message."""
    code = "context_length_exceeded" if error.reason.code in TOO_LONG else None
    param = error.reason.facts.get("field")
    words = with_home(said(error), home)
    return format_error(api, status_of(error), words, request, code, str(param) if param else None)


def format_error(
    api: ApiDialect, status: int, message: str, request: str, code: str | None = None, param: str | None = None
) -> Json:
    match api:
        case ApiDialect.ANTHROPIC:
            kind = _ANTHROPIC.get(status, "invalid_request_error" if status < 500 else "api_error")
            return {"type": "error", "error": {"type": kind, "message": message}, "request_id": request}
        case ApiDialect.OLLAMA:
            return {"error": message}
        case ApiDialect.OPENAI:
            kind = "invalid_request_error" if status < 500 and status != 429 else "server_error"
            kind = "rate_limit_error" if status == 429 else kind
            code = code or _OPENAI_CODE.get(status)
            return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def stream_error(api: ApiDialect, error: AppError, request: str, home: str = "") -> bytes:
    """Return an error as the last event of a stream."""
    data = msgspec.json.encode(error_body(api, error, request, home))
    match api:
        case ApiDialect.ANTHROPIC:
            return b"event: error\ndata: " + data + b"\n\n"
        case ApiDialect.OLLAMA:
            return data + b"\n"
        case ApiDialect.OPENAI:
            return b"data: " + data + b"\n\n"
