"""A line of the log: a JSON object for programs, and a sentence for people. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


class _Line(msgspec.Struct, frozen=True):
    """The words that people read."""

    time: str
    level: str
    logger: str
    message: str
    error: str | None = None


_DECODER = msgspec.json.Decoder(_Line)
Facts = Mapping[str, str | int | float | bool | None]


def log_extra(request: str, **facts: str | int | float | bool | None) -> dict[str, Any]:
    """Return the `extra=` of a logging call: the request that a line is about, and its figures. Never any text of a
    chat."""
    return {"request": request, "facts": facts}


def readable_line(line: str) -> str:
    """A line of the log as people read it; what is no such line stays as it is."""
    try:
        entry = _DECODER.decode(line)
    except (ValueError, RecursionError):  # every error of msgspec is a ValueError
        return line
    moment = entry.time.replace("T", " ").removesuffix("Z")
    text = f"{moment} {entry.level} {entry.logger}: {entry.message}"
    return text + ("" if entry.error is None else f"\n{entry.error}")
