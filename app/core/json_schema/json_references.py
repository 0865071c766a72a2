"""References of a JSON schema that were meant from a part of it. Pure.

Programs put a schema that has its own `$defs` inside another one, as a tool's property or as its result, and leave the
references in it as they were: `#/$defs/Item` then points to nothing from the root. MCP servers often do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.core.json_schema.json_kinds import referred

VALUES = frozenset({"const", "default", "enum", "example", "examples"})  # data: a `$ref` there is no reference
NAMED = frozenset({"properties", "$defs", "definitions"})  # schemas by names, which are no keywords
Around = tuple[tuple[str, Any], ...]  # schemas and where they are, from the root to the innermost one


def localised(schema: Any) -> Any:
    """The same schema, with each reference that points to nothing from the root pointing into the innermost schema
    around it that has its target. What is found nowhere stays. It must not be deep: see `check_size`."""
    return _schema(schema, "#", ())


def _schema(one: Any, at: str, around: Around) -> Any:
    if isinstance(one, list):
        return [_schema(inner, f"{at}/{n}", around) for n, inner in enumerate(one)]
    if not isinstance(one, Mapping):
        return one
    around = (*around, (at, one))
    made: dict[str, Any] = {}
    for name, inner in one.items():
        place = f"{at}/{_step(name)}"
        if name in VALUES:
            made[name] = inner
        elif name == "$ref":
            made[name] = _found(inner, around)
        elif name in NAMED and isinstance(inner, Mapping):
            made[name] = {of: _schema(of_it, f"{place}/{_step(of)}", around) for of, of_it in inner.items()}
        else:
            made[name] = _schema(inner, place, around)
    return made


def _found(place: Any, around: Around) -> Any:
    if not isinstance(place, str) or not place.startswith("#/"):
        return place
    _, root = around[0]
    if referred(place, root) is None:
        for at, schema in reversed(around):
            if referred(place, schema) is not None:
                return at + place.removeprefix("#")
    return place


def _step(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
