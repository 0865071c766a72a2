"""Schemathesis hooks that validate each part of a stream against the API description. They run in its environment."""

from __future__ import annotations

import json
from typing import Any

import schemathesis


def events(_context: Any, response: Any) -> list[Any]:
    """Return the JSON of each event of a stream. Schemathesis validates each one."""
    lines = response.content.splitlines()
    data = [line.removeprefix(b"data:").strip() for line in lines if line.startswith(b"data:")]
    return [json.loads(line) for line in data if line != b"[DONE]"]


def lines(_context: Any, response: Any) -> list[Any]:
    return [json.loads(line) for line in response.content.splitlines()]


schemathesis.deserializer("text/event-stream")(events)
schemathesis.deserializer("application/x-ndjson")(lines)
