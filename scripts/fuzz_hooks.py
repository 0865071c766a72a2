"""Schemathesis hooks for streams, in an environment of its own: each of their pieces is held against the
description."""

from __future__ import annotations

import json
from typing import Any

import schemathesis


def events(_context: Any, response: Any) -> list[Any]:
    """The JSON of each event; it holds them against the description one by one."""
    lines = response.content.splitlines()
    data = [line.removeprefix(b"data:").strip() for line in lines if line.startswith(b"data:")]
    return [json.loads(line) for line in data if line != b"[DONE]"]


def lines(_context: Any, response: Any) -> list[Any]:
    return [json.loads(line) for line in response.content.splitlines()]


schemathesis.deserializer("text/event-stream")(events)
schemathesis.deserializer("application/x-ndjson")(lines)
