"""Which tool, and which form of an answer, is asked for: what OpenAI's two APIs say alike but for where. No I/O."""

from __future__ import annotations

from collections.abc import Callable

from app.core.errors import BadInput
from app.gateway.api_request import Json

FREE = ("none", "auto")


def tool_choice(given: str | Json | None, function_of: Callable[[Json], object]) -> str:
    """auto, none, "" for any tool, or the name of one. Raises BadInput."""
    match given:
        case None | "auto":
            return "auto"
        case "none":
            return "none"
        case "required":
            return ""
        case dict() as chosen if chosen.get("type") == "function":
            match function_of(chosen):
                case {"name": str(name)} if name:
                    return name
    raise BadInput("bad_request", why="tool_choice is auto, none, required or names a function", field="tool_choice")


def schema_asked(given: Json | None, schema_of: Callable[[Json], object], name: str, field: str) -> object:
    """The JSON schema of an answer; None: any text. `name`: what it is called there. Raises BadInput."""
    match given:
        case None | {"type": "text"}:
            return None
        case {"type": "json_object", "schema": dict(schema)}:  # llama.cpp's, as is the next without its own object
            return schema
        case {"type": "json_object"}:
            return {"type": "object"}
        case {"type": "json_schema"}:
            match schema_of(given) or given:
                case {"schema": dict(schema)}:
                    return schema
    why = f"{name} is text, json_object, or json_schema with its schema"
    raise BadInput("bad_request", why=why, field=field)
