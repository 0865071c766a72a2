"""The conversion of a tool's answer to a text of limited length for the model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

import mcp_types as types

from app.api.tools import CallResult
from app.core.errors import BadInput
from app.core.json_schema.json_grammar import check_size

MAX_RESULT_CHARACTERS = 100_000  # the chat shortens it further if the context is smaller
MAX_DESCRIPTION_CHARACTERS = 4_000
MAX_SCHEMA_BYTES = 32 << 10


def result_of(answer: types.CallToolResult, seconds: float) -> CallResult:
    """Return a tool's answer as text. Pictures and sounds are counted and left out."""
    texts: list[str] = []
    n_pictures = 0
    for block in answer.content:
        match block:
            case types.TextContent():
                texts.append(block.text)
            case types.EmbeddedResource(resource=types.TextResourceContents() as resource):
                texts.append(resource.text)
            case types.ResourceLink():
                texts.append(f"{block.name}: {block.uri}")
            case _:
                n_pictures += 1
    text = "\n".join(filter(None, texts))
    if not text and answer.structured_content is not None:
        text = json.dumps(answer.structured_content, ensure_ascii=False, indent=1)
    kept = storable(text[:MAX_RESULT_CHARACTERS])
    return CallResult(
        text=kept,
        is_error=bool(answer.is_error),
        n_pictures=n_pictures,
        n_left_out=max(0, len(text) - MAX_RESULT_CHARACTERS),
        seconds=seconds,
    )


def storable(text: str) -> str:
    """Return text without lone surrogates, which UTF-8 cannot encode, and without NUL."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")


def description_of(tool: types.Tool) -> str:
    """Return a tool's own description, limited in length."""
    return storable((tool.description or tool.title or "")[:MAX_DESCRIPTION_CHARACTERS])


def schema_of(tool: types.Tool) -> dict[str, Any] | None:
    """Return the schema of a tool's arguments, or None if it is too large or too deep to send with a question."""
    schema = tool.input_schema
    try:
        check_size(schema)
    except BadInput:
        return None
    return schema if len(json.dumps(schema)) <= MAX_SCHEMA_BYTES else None


def fingerprint(parts: Iterable[object]) -> str:
    """Return a text that identifies a tool as it was shown: its server, its name, its description and its schema."""
    written = json.dumps(list(parts), sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(written.encode()).hexdigest()[:24]
