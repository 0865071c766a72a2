"""The type that a JSON schema names beside its values, or beside a choice of schemas: both hold. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_KINDS: dict[str, tuple[type, ...]] = {
    "object": (Mapping,), "array": (list,), "string": (str,), "integer": (int,), "number": (int, float),
    "boolean": (bool,), "null": (type(None),),
}  # fmt: skip


def fitting(values: Sequence[object], kind: object) -> list[object]:
    """Those of the type, or of one of the types; None: any."""
    if kind is None:
        return list(values)
    return [one for one in values if any(_is_a(one, name) for name in _list(kind))]


def kept_to(schema: object, kind: object) -> object:
    """A schema that holds beside a type. Raises ValueError where it is of another."""
    if kind is None or not (schema is True or isinstance(schema, Mapping)):
        return schema
    given: Mapping[str, Any] = schema if isinstance(schema, Mapping) else {}
    kinds = _list(kind)
    both = [
        one
        for one in _list(given.get("type", kind))
        if one in kinds or (one == "integer" and "number" in kinds)
    ]
    if not both:
        raise ValueError("type stands beside a choice of another type")
    return {**given, "type": both[0] if len(both) == 1 else both}


def _is_a(value: object, kind: object) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(kind, str) and isinstance(value, _KINDS.get(kind, ()))


def _list(kind: object) -> Sequence[object]:
    return kind if isinstance(kind, list) else [kind]
