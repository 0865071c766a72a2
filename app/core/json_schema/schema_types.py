"""The types of JSON values, and the types and references in JSON schemas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote


def values_of_type(values: Sequence[object], kind: object) -> list[object]:
    """Return the values that have this type or one of these types. None matches every value."""
    if kind is None:
        return list(values)
    kinds = _list(kind)
    return [value for value in values if any(of in kinds for of in kinds_of(value))]


def restricted_to(schema: object, kind: object) -> object:
    """Return a schema restricted to a type. Raises ValueError if the schema specifies a different type."""
    if kind is None or not (schema is True or isinstance(schema, Mapping)):
        return schema
    keywords: Mapping[str, Any] = schema if isinstance(schema, Mapping) else {}
    kinds = _list(kind)
    both = [
        type_name
        for type_name in _list(keywords.get("type", kind))
        if type_name in kinds or (type_name == "integer" and "number" in kinds)
    ]
    if not both:
        raise ValueError("type stands beside a choice of another type")
    return {**keywords, "type": both[0] if len(both) == 1 else both}


def kinds_of(value: object) -> tuple[str, ...]:
    """Return the types of a JSON value. An integer is also a number."""
    match value:
        case None:
            return ("null",)
        case bool():
            return ("boolean",)
        case int():
            return ("integer", "number")
        case float():
            return ("integer", "number") if value.is_integer() else ("number",)
        case str():
            return ("string",)
        case list():
            return ("array",)
    return ("object",)


def resolve_reference(place: object, root: object) -> object:
    """Return the target of a `$ref` within `root`, or None if it has no target."""
    if not isinstance(place, str) or not (place == "#" or place.startswith("#/")):
        return None
    target = root
    for step in place.split("/")[1:]:
        target = _inner(target, step)
    return target


def _inner(of: object, step: str) -> object:
    """Return the target of one step of a reference.

    Some programs percent-encode the step as in a URL (`%3C` for `<`).
    """
    if isinstance(of, list):
        return of[int(step)] if step.isascii() and step.isdecimal() and int(step) < len(of) else None
    if not isinstance(of, Mapping):
        return None
    for name in (step, unquote(step)):
        if (target := of.get(name.replace("~1", "/").replace("~0", "~"))) is not None:
            return target
    return None


def is_deeper(value: object, most: int) -> bool:
    """Return whether lists and objects are nested more than `most` levels deep. Does not recurse."""
    level: Iterable[object] = [value]
    for _ in range(most + 1):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return False
    return True


def _inside(container: object) -> list[object]:
    values = container.values() if isinstance(container, Mapping) else container if isinstance(container, list) else ()
    return [value for value in values if isinstance(value, Mapping | list)]


def _list(kind: object) -> Sequence[object]:
    return kind if isinstance(kind, list) else [kind]


# keywords whose values are data, in which a `$ref` is not a reference
DATA_KEYWORDS = frozenset({"const", "default", "enum", "example", "examples"})


# keywords that map names to schemas, so the keys of their values are not keywords
NAME_MAP_KEYWORDS = frozenset({"properties", "$defs", "definitions"})


EnclosingSchemas = tuple[tuple[str, Any], ...]  # the enclosing schemas with their locations, from the root inward


def localize_references(schema: Any) -> Any:
    """Return the schema with references rewritten so that they resolve from the root.

    A reference that has no target from the root is resolved from the innermost enclosing schema in which it has one.
    References without any target are unchanged. The schema must have passed `check_size`, which limits its depth.
    """
    return _schema(schema, "#", ())


def _schema(part: Any, at: str, around: EnclosingSchemas) -> Any:
    if isinstance(part, list):
        return [_schema(inner, f"{at}/{n}", around) for n, inner in enumerate(part)]
    if not isinstance(part, Mapping):
        return part
    around = (*around, (at, part))
    made: dict[str, Any] = {}
    for name, inner in part.items():
        place = f"{at}/{_step(name)}"
        if name in DATA_KEYWORDS:
            made[name] = inner
        elif name == "$ref":
            made[name] = _referenced(inner, around)
        elif name in NAME_MAP_KEYWORDS and isinstance(inner, Mapping):
            made[name] = {of: _schema(of_it, f"{place}/{_step(of)}", around) for of, of_it in inner.items()}
        else:
            made[name] = _schema(inner, place, around)
    return made


def _referenced(place: Any, around: EnclosingSchemas) -> Any:
    if not isinstance(place, str) or not place.startswith("#/"):
        return place
    _, root = around[0]
    if resolve_reference(place, root) is None:
        for at, schema in reversed(around):
            if resolve_reference(place, schema) is not None:
                return at + place.removeprefix("#")
    return place


def _step(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
