"""Holds a real answer against the kinds that the served description names for its route."""

from __future__ import annotations

from typing import Any

import msgspec

from app.gateway.error_responses import ApiDialect, api_of
from app.gateway.openapi_document import ERRORS, GETS, POSTS


def check(path: str, status: int, body: bytes) -> None:
    """Raises msgspec.ValidationError for an answer that is not as described: what it lacks, or has too much."""
    error = ERRORS[api_of(path)]
    if status != 200:
        msgspec.json.decode(body, type=error)
        return
    if path in GETS:
        kind = GETS[path][1]
        _ = body.decode() if kind is str else msgspec.json.decode(body, type=kind)
        return
    post = POSTS[path]
    pieces = pieces_of(path, body)
    if pieces is None:
        msgspec.json.decode(body, type=post.answer)
        return
    for piece in pieces:
        kind = error if b'"error":' in piece[:12] else post.piece
        msgspec.json.decode(piece, type=kind)


def pieces_of(path: str, body: bytes) -> list[bytes] | None:
    """Return the pieces of a stream, or None if it is not a stream."""
    if body.startswith((b"data:", b"event:")):
        data = [line[5:].strip() for line in body.splitlines() if line.startswith(b"data:")]
        return [data for data in data if data != b"[DONE]"]
    lines = body.splitlines()
    return lines if api_of(path) is ApiDialect.OLLAMA and len(lines) > 1 else None


def is_exact(kind: Any) -> bool:
    """Return whether a type names all the fields that an object may have."""
    return bool(getattr(kind, "__struct_config__", None)) and kind.__struct_config__.forbid_unknown_fields
