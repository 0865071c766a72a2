"""JSON schema -> GBNF, so that an answer can only be JSON of that shape. Pure.

Not enforced, as in every engine that works so: `uniqueItems`, `format`, and properties beyond those that a schema
names. What a grammar cannot promise at all is refused, and so are regular expressions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from app.core.errors import BadInput
from app.core.json_ranges import BOUNDS, integers, numbers

MAX_SCHEMA_BYTES = 64 << 10  # this and the next: SAFETY.md 7
MAX_DEPTH = 32
MAX_REPEAT = 2000  # llama.cpp refuses more
MAX_GRAMMAR_BYTES = 64 << 10

_PLAIN = {
    "space": '" "? | "\\n" [ \\t]{0,20}',
    "char": r'[^"\\\x7F\x00-\x1F] | [\\] (["\\bfnrt/] | "u" [0-9a-fA-F]{4})',
    "string": r'"\"" char* "\""',
    "integer": '"-"? ("0" | [1-9] [0-9]{0,15})',
    "number": 'integer ("." [0-9]{1,16})? ([eE] [-+]? [0-9]{1,3})?',
    "boolean": '"true" | "false"',
    "null": '"null"',
    "array": '"[" space (value ("," space value)*)? space "]"',
    "object": '"{" space (string ":" space value ("," space string ":" space value)*)? space "}"',
    "value": "object | array | string | number | boolean | null",
}
_REFUSED = (
    "pattern", "patternProperties", "not", "if", "dependentSchemas", "dependentRequired", "contains",
    "propertyNames", "multipleOf", "$dynamicRef", "unevaluatedProperties", "unevaluatedItems",
)  # fmt: skip
_SILENT = frozenset(
    ("title", "description", "default", "examples", "example", "$defs", "definitions", "$schema", "$id",
     "$comment", "discriminator", "deprecated", "readOnly", "writeOnly")
)  # fmt: skip


def json_grammar(schema: object) -> str:
    """The grammar of one JSON value of this schema. Raises BadInput("schema_refused")."""
    rules = Rules()
    return rules.grammar(rules.add(schema))


def literal(text: str) -> str:
    """A text as GBNF writes it."""
    for sign, written in (
        ("\\", "\\\\"),
        ('"', '\\"'),
        ("\n", "\\n"),
        ("\r", "\\r"),
        ("\t", "\\t"),
    ):
        text = text.replace(sign, written)
    return f'"{text}"'


class Rules:
    """Rules of a grammar, gathered from one or more schemas."""

    def __init__(self) -> None:
        self._rules: dict[str, str] = dict(_PLAIN)
        self._refs: dict[str, str] = {}
        self._root: Any = None

    def add(self, schema: object, root: object = None) -> str:
        """The name of the rule for values of a schema, whose references are within it, or within `root`."""
        check_size(schema)
        self._root, self._refs = schema if root is None else root, {}
        waiting: list[tuple[str, str]] = []
        name = self._rule(self._expression(schema, "", waiting))
        while waiting:  # not by recursion: a chain of references may be long
            place, of = waiting.pop()
            self._rules[of] = self._expression(self._referred(place), place, waiting)
        return name

    def grammar(self, root: str) -> str:
        """The text, with what an answer is as a whole. Raises BadInput for one that is too large."""
        lines = [f"root ::= {root}", *(f"{name} ::= {rule}" for name, rule in self._rules.items())]
        text = "\n".join(lines) + "\n"
        if len(text.encode()) > MAX_GRAMMAR_BYTES:
            raise _no("", "it makes a grammar of more than 64 KiB")
        return text

    def named(self, expression: str) -> str:
        """The name of a rule of one's own."""
        return self._rule(expression)

    def _rule(self, expression: str) -> str:
        name = f"r{len(self._rules)}"
        self._rules[name] = expression
        return name

    def _expression(self, schema: object, at: str, waiting: list[tuple[str, str]]) -> str:
        if schema is True or schema == {}:
            return "value"
        if not isinstance(schema, Mapping):
            raise _no(at, "it is no schema")
        if found := next((word for word in _REFUSED if word in schema), None):
            raise _no(at, f"{found} is not supported")
        telling = set(schema) - _SILENT
        for word in ("$ref", "const", "enum", "anyOf", "oneOf", "allOf"):
            if word in schema:
                if not telling <= {word, "type"}:
                    raise _no(at, f"{word} stands beside {', '.join(sorted(telling - {word}))}")
                return self._composed(word, schema[word], at, waiting)
        return self._typed(schema, at, waiting)

    def _composed(self, word: str, what: Any, at: str, waiting: list[tuple[str, str]]) -> str:
        match word, what:
            case "$ref", str(place):
                return self._reference(place, at, waiting)
            case "const", _:
                return _json(what)
            case "enum", [_, *_]:
                return " | ".join(map(_json, what))
            case (("anyOf" | "oneOf"), [_, *_]):
                options = [
                    self._expression(one, f"{at}/{word}/{n}", waiting) for n, one in enumerate(what)
                ]
                return " | ".join(self._rule(one) for one in options)
            case "allOf", [only]:
                return self._expression(only, f"{at}/allOf/0", waiting)
        raise _no(at, f"this {word} is not supported")

    def _reference(self, place: str, at: str, waiting: list[tuple[str, str]]) -> str:
        if place not in self._refs:
            if not (place == "#" or place.startswith("#/")):
                raise _no(at, "$ref points out of the schema")
            self._refs[place] = self._rule("")
            waiting.append((place, self._refs[place]))
        return self._refs[place]

    def _referred(self, place: str) -> object:
        found = self._root
        for step in place.split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, Mapping) and key in found:
                found = found[key]
            else:
                raise _no(place, "$ref points to nothing")
        return found

    def _typed(self, schema: Mapping[str, Any], at: str, waiting: list[tuple[str, str]]) -> str:
        kind = schema.get("type")
        if isinstance(kind, list) and kind:
            options = [self._typed({**schema, "type": one}, at, waiting) for one in kind]
            return " | ".join(self._rule(one) for one in options)
        if kind == "object" or (
            kind is None and _any_of(schema, "properties", "additionalProperties", "required")
        ):
            return self._object(schema, at, waiting)
        if kind == "array" or (kind is None and _any_of(schema, "items", "prefixItems")):
            return self._array(schema, at, waiting)
        if kind == "string" and _any_of(schema, "minLength", "maxLength"):
            return f'"\\"" char{_repeat(schema, "minLength", "maxLength", at)} "\\""'
        if kind in ("integer", "number") and _any_of(schema, *BOUNDS):
            try:
                return integers(schema) if kind == "integer" else numbers(schema)
            except ValueError as error:
                raise _no(at, str(error)) from None
        if kind is None:
            if found := next((word for word in BOUNDS if word in schema), None):
                raise _no(at, f"{found} stands without a type")
            return "value"
        if isinstance(kind, str) and kind in ("string", "integer", "number", "boolean", "null"):
            return kind
        raise _no(at, f"there is no type {kind!r}")

    def _object(self, schema: Mapping[str, Any], at: str, waiting: list[tuple[str, str]]) -> str:
        properties, required = schema.get("properties", {}), schema.get("required", [])
        more = schema.get("additionalProperties", True)
        if not isinstance(properties, Mapping) or not isinstance(required, list):
            raise _no(at, "its properties are no list of schemas")
        every = {**properties, **{name: more for name in required if name not in properties}}
        if every and any(one is False for one in every.values()):
            raise _no(at, "a required property is forbidden")
        if not every:
            if more is False:
                return '"{" space "}"'
            of = self._rule(self._expression(more, f"{at}/additionalProperties", waiting))
            return (
                f'"{{" space (string ":" space {of} ("," space string ":" space {of})*)? space "}}"'
            )
        parts = []
        for name, one in every.items():
            of = self._rule(self._expression(one, f"{at}/properties/{name}", waiting))
            parts.append((self._rule(f'{_json(name)} ":" space {of}'), name in required))
        return f'"{{" space {self._listed(parts)} space "}}"'

    def _listed(self, parts: Sequence[tuple[str, bool]]) -> str:
        """Properties in their order, with commas between; those not required may be missing."""
        later, first = "", '""'  # what may follow a property, and what may come when none has
        for name, needed in reversed(parts):
            follow = f"{name} {later}".strip()
            start = follow if needed else f"{follow} | {first}"
            rest = f'"," space {name}' if needed else f'("," space {name})?'
            first, later = self._rule(start), self._rule(f"{rest} {later}".strip())
        return first

    def _array(self, schema: Mapping[str, Any], at: str, waiting: list[tuple[str, str]]) -> str:
        if (fixed := schema.get("prefixItems")) is not None:
            if not isinstance(fixed, list) or not fixed:
                raise _no(at, "its prefixItems are no list of schemas")
            names = [
                self._rule(self._expression(s, f"{at}/{n}", waiting)) for n, s in enumerate(fixed)
            ]
            return '"[" space ' + ' "," space '.join(names) + ' space "]"'
        of = self._rule(self._expression(schema.get("items", True), f"{at}/items", waiting))
        least, most = _bounds(schema, "minItems", "maxItems", at)
        if most == 0:
            return '"[" space "]"'
        more = f'("," space {of}){_times(max(0, least - 1), None if most is None else most - 1)}'
        inner = f"{of} {more}"
        return f'"[" space {inner if least else f"({inner})?"} space "]"'


def check_size(schema: object) -> None:
    """Raises BadInput("schema_refused") for JSON that is too long or too deep to be worked on."""
    try:
        size = len(json.dumps(schema, ensure_ascii=False).encode())
    except (TypeError, ValueError, RecursionError):
        raise _no("", "it is no JSON") from None
    if size > MAX_SCHEMA_BYTES:
        raise _no("", "it is longer than 64 KiB")
    level: Iterable[object] = [schema]
    for _ in range(MAX_DEPTH + 1):
        level = [inner for one in level for inner in _inside(one)]
        if not level:
            return
    raise _no("", f"it is deeper than {MAX_DEPTH} levels")


def _inside(one: object) -> list[object]:
    values = one.values() if isinstance(one, Mapping) else one if isinstance(one, list) else ()
    return [value for value in values if isinstance(value, Mapping | list)]


def _any_of(schema: Mapping[str, Any], *words: str) -> bool:
    return any(word in schema for word in words)


def _json(value: object) -> str:
    return literal(json.dumps(value, ensure_ascii=False, separators=(", ", ": ")))


def _bounds(schema: Mapping[str, Any], low: str, high: str, at: str) -> tuple[int, int | None]:
    least, most = schema.get(low, 0), schema.get(high)
    for bound in (least, most):
        if bound is not None and (type(bound) is not int or not 0 <= bound <= MAX_REPEAT):
            raise _no(at, f"{low} and {high} must be numbers up to {MAX_REPEAT}")
    if most is not None and most < least:
        raise _no(at, f"{high} is below {low}")
    return least, most


def _repeat(schema: Mapping[str, Any], low: str, high: str, at: str) -> str:
    return _times(*_bounds(schema, low, high, at))


def _times(least: int, most: int | None) -> str:
    return f"{{{least},{'' if most is None else most}}}"


def _no(at: str, why: str) -> BadInput:
    return BadInput("schema_refused", where=at[:200] or "the schema", why=why)
