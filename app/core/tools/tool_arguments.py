"""What a call's argument is that a model wrote as plain text, by the schema of its tool. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from app.core.json_schema.json_kinds import kinds_of, referred
from app.core.json_schema.partial_json import value_of_json

KINDS = frozenset(("string", "integer", "number", "boolean", "null", "array", "object"))
MAX_STEPS = 8  # of references and choices within each other
PYTHON = {"True": True, "False": False, "None": None}  # templates write these, and so do models


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a schema takes: kinds of values, and these texts (an enum's). free: any other text too."""

    kinds: frozenset[str]
    texts: frozenset[str] = frozenset()
    free: bool = True


ANY, NOTHING = Wanted(KINDS), Wanted(frozenset(), free=False)


def wanted(schema: object, root: object) -> Wanted:
    """What values a schema takes; `root` is where its references point."""
    found = _wanted(schema, root, MAX_STEPS, set())
    return ANY if found == NOTHING else found


def _wanted(schema: object, root: object, steps: int, seen: set[str]) -> Wanted:
    """seen: references that were followed. What they take counts already, and those that choose among each other would
    be followed nearly for ever."""
    if not isinstance(schema, Mapping) or steps == 0:
        return ANY
    if "$ref" in schema:
        if (place := str(schema["$ref"])) in seen:
            return NOTHING
        seen.add(place)
        return _wanted(referred(schema["$ref"], root), root, steps - 1, seen)
    given = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if isinstance(given, list):
        kinds = frozenset(kind for one in given for kind in kinds_of(one))
        return Wanted(kinds, frozenset(one for one in given if isinstance(one, str)), free=False)
    for word in ("anyOf", "oneOf", "allOf"):
        if isinstance(several := schema.get(word), list):
            return _either([_wanted(one, root, steps - 1, seen) for one in several])
    kind = schema.get("type", "object" if "properties" in schema else None)
    if kind is None:
        return ANY
    kinds = frozenset(one for one in (kind if isinstance(kind, list) else [kind]) if isinstance(one, str))
    return Wanted(kinds, free="string" in kinds)


def _either(several: Iterable[Wanted]) -> Wanted:
    several = list(several)
    return Wanted(
        frozenset[str]().union(*(one.kinds for one in several)),
        frozenset[str]().union(*(one.texts for one in several)),
        any(one.free for one in several),
    )


def value_of(text: str, what: Wanted) -> Any:
    """The value that a model means by this text. What fits nothing stays the text it is."""
    if text in what.texts or (what.kinds == {"string"} and what.free):
        return text
    bare = text.strip()
    try:
        value = value_of_json(bare)
    except ValueError:
        if bare not in PYTHON:
            return text
        value = PYTHON[bare]
    if isinstance(value, str):  # quoted, where no quotes belong
        return value if value in what.texts else text
    return value if what.kinds.intersection(kinds_of(value)) else text
