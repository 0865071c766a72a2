"""A line of the log: an object of JSON for programs, and a sentence for people. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

Facts = Mapping[str, str | int | float | bool | None]


def about(request: str, **facts: str | int | float | bool | None) -> dict[str, Any]:
    """For `extra=` of a logging call: which request a line is about, and its figures. Never a text of a chat."""
    return {"request": request, "facts": facts}


def readable(line: str) -> str:
    """A line of the log as people read it; what is no such line stays as it is."""
    try:
        told = json.loads(line)
    except (ValueError, RecursionError):
        return line
    if not isinstance(told, dict) or not {"time", "level", "logger", "message"} <= told.keys():
        return line
    moment = str(told["time"]).replace("T", " ").removesuffix("Z")
    text = f"{moment} {told['level']} {told['logger']}: {told['message']}"
    return text + (f"\n{told['error']}" if "error" in told else "")
