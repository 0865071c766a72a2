"""JSON schema -> GBNF, so that an answer can only be JSON of that schema. Pure.

Not enforced, as in every engine of this kind: `uniqueItems`, that only one of `oneOf` fits, and each `format` except
those of json_constraints.py. Properties beyond those that a schema names are never written, nor items beyond its
`prefixItems`, unless it describes them. A constraint that no grammar can guarantee is refused, and so are regular
expressions except those of json_constraints.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from app.core.errors import BadInput
from app.core.json_schema.json_constraints import BOUNDS, integers, numbers, string_expression
from app.core.json_schema.schema_types import is_deeper, resolve_reference, restricted_to, values_of_type

MAX_SCHEMA_BYTES = 64 << 10  # this and the next: SAFETY.md 7
MAX_DEPTH = 32
MAX_REPEAT = 2000  # llama.cpp refuses more
MAX_GRAMMAR_BYTES = 64 << 10
MAX_RULES = 4096  # more of them would be longer
TOO_LARGE = "it makes a grammar of more than 64 KiB"

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
    "patternProperties", "not", "if", "dependentSchemas", "dependentRequired", "contains",
    "propertyNames", "multipleOf", "$dynamicRef", "$recursiveRef", "dependencies", "unevaluatedProperties",
    "unevaluatedItems",
)  # fmt: skip
_OF_A_TYPE = (*BOUNDS, "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "pattern")
_SILENT = frozenset(
    ("title", "description", "default", "examples", "example", "$defs", "definitions", "$schema", "$id",
     "$comment", "discriminator", "deprecated", "readOnly", "writeOnly")
)  # fmt: skip


def json_grammar(schema: object) -> str:
    """The grammar of one JSON value of this schema. Raises BadInput("schema_refused")."""
    rules = Rules()
    return rules.grammar(rules.add(schema))


def none_of(characters: Iterable[str]) -> str:
    """Return a class of any character but these."""
    escaped = "".join(f"\\{character}" if character in "[]" else literal(character)[1:-1] for character in characters)
    return f"[^{escaped}]"


def _begun(text: str, end: str) -> int:
    """Return how many characters of the beginning of `end` stand at the end of `text`."""
    return next(n for n in range(len(end), -1, -1) if text.endswith(end[:n]))


def literal(text: str) -> str:
    """A text as GBNF writes it."""
    for sign, written in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        text = text.replace(sign, written)
    return f'"{text}"'


class Rules:
    """The rules of a grammar, collected from one or more schemas."""

    def __init__(self) -> None:
        self._rules: dict[str, str] = dict(_PLAIN)
        self._refs: dict[str, str] = {}
        self._formats: dict[str, str] = {}
        self._root: Any = None
        self._without: dict[str, str] = {}
        self._size = 0  # of what was written so far

    def add(self, schema: object, root: object = None) -> str:
        """The name of the rule for values of a schema, whose references are within it, or within `root`."""
        check_size(schema)
        self._root, self._refs = schema if root is None else root, {}
        waiting: list[tuple[str, str]] = []
        name = self._rule(self._expression(schema, "", waiting))
        while waiting:  # not by recursion: a chain of references may be long
            place, of = waiting.pop()
            self._put(of, self._expression(self._referred(place), place, waiting))
        return name

    def grammar(self, root: str) -> str:
        """The text, with what an answer is as a whole. Raises BadInput for one that is too large."""
        lines = [f"root ::= {root}", *(f"{name} ::= {rule}" for name, rule in self._rules.items())]
        text = "\n".join(lines) + "\n"
        if len(text.encode()) > MAX_GRAMMAR_BYTES:
            raise _no("", TOO_LARGE)
        return text

    def named(self, expression: str) -> str:
        """The name of a rule of one's own."""
        return self._rule(expression)

    def without(self, end: str) -> str:
        """The name of the rule for any text in which `end` does not stand: a rule for each number of its characters
        that stand before."""
        if end not in self._without:
            names = [f"r{len(self._rules) + n}" for n in range(len(end))]
            self._without[end] = names[0]
            for n, name in enumerate(names):
                then = {character: _begun(end[:n] + character, end) for character in dict.fromkeys(end)}
                near = {character: size for character, size in then.items() if size}
                options = [f"{literal(character)} {names[size]}" for character, size in near.items() if size < len(end)]
                self._put(name, f"({' | '.join([*options, f'{none_of(near)} {names[0]}'])})?")
        return self._without[end]

    def _rule(self, expression: str) -> str:
        name = f"r{len(self._rules)}"
        self._put(name, expression)
        return name

    def _put(self, name: str, expression: str) -> None:
        """Raises BadInput as soon as it is too large: a list of types within a list of types writes all below it again
        for each, and would never end."""
        self._size += len(name) + len(expression)
        if self._size > MAX_GRAMMAR_BYTES:
            raise _no("", TOO_LARGE)
        self._rules[name] = expression

    def _expression(self, schema: object, at: str, waiting: list[tuple[str, str]]) -> str:
        if schema is True or schema == {}:
            return "value"
        if not isinstance(schema, Mapping):
            raise _no(at, "it is no schema")
        if schema.get("propertyNames") == {"type": "string"}:  # as all are; zod says it of records
            schema = {word: entry for word, entry in schema.items() if word != "propertyNames"}
        if keyword := next((word for word in _REFUSED if word in schema), None):
            raise _no(at, f"{keyword} is not supported")
        telling = set(schema) - _SILENT
        for word in ("$ref", "const", "enum", "anyOf", "oneOf", "allOf"):
            if word in schema:
                if not telling <= {word, "type"}:
                    raise _no(at, f"{word} stands beside {', '.join(sorted(telling - {word}))}")
                return self._composed(word, schema[word], schema.get("type"), at, waiting)
        return self._typed(schema, at, waiting)

    def _composed(self, word: str, operand: Any, kind: Any, at: str, waiting: list[tuple[str, str]]) -> str:
        """Return the expression of a schema with a composing keyword. `kind`: the type that stands beside it, if any;
        both hold."""
        match word, operand:
            case "$ref", str(place):
                rule = self._reference(place, at, waiting)
                self._check_kind(place, kind, at)
                return rule
            case "const", _:
                return _among([operand], kind, at)
            case "enum", [_, *_]:
                return _among(operand, kind, at)
            case (("anyOf" | "oneOf"), [_, *_]):
                options = [
                    self._expression(_beside(choice, kind, at), f"{at}/{word}/{n}", waiting)
                    for n, choice in enumerate(operand)
                ]
                return " | ".join(self._rule(option) for option in options)
            case "allOf", [only]:
                return self._expression(_beside(only, kind, at), f"{at}/allOf/0", waiting)
        raise _no(at, f"this {word} is not supported")

    def _check_kind(self, place: str, kind: Any, at: str) -> None:
        """Raises BadInput for a type beside a reference to what may be of another."""
        target = self._referred(place) if kind is not None else None
        if kind is not None and not (isinstance(target, Mapping) and target.get("type") == kind):
            raise _no(at, "type stands beside a $ref to what has another, or none")

    def _reference(self, place: str, at: str, waiting: list[tuple[str, str]]) -> str:
        if place not in self._refs:
            if not (place == "#" or place.startswith("#/")):
                raise _no(at, "$ref points out of the schema")
            self._refs[place] = self._rule("")
            waiting.append((place, self._refs[place]))
        return self._refs[place]

    def _referred(self, place: str) -> object:
        if (target := resolve_reference(place, self._root)) is None:
            raise _no(place, "$ref points to nothing")
        return target

    def _typed(self, schema: Mapping[str, Any], at: str, waiting: list[tuple[str, str]]) -> str:
        kind = schema.get("type")
        if isinstance(kind, list) and kind:
            options = [self._typed({**schema, "type": type_name}, at, waiting) for type_name in kind]
            return " | ".join(self._rule(option) for option in options)
        if kind == "object" or (kind is None and _any_of(schema, "properties", "additionalProperties", "required")):
            return self._object(schema, at, waiting)
        if kind == "array" or (kind is None and _any_of(schema, "items", "prefixItems")):
            return self._array(schema, at, waiting)
        if kind == "string" and _any_of(schema, "minLength", "maxLength", "format", "pattern"):
            return self._string(schema, at)
        if kind in ("integer", "number") and _any_of(schema, *BOUNDS):
            try:
                return integers(schema) if kind == "integer" else numbers(schema)
            except ValueError as error:
                raise _no(at, str(error)) from None
        if kind is None:
            if keyword := next((word for word in _OF_A_TYPE if word in schema), None):
                raise _no(at, f"{keyword} stands without a type")
            return "value"
        if isinstance(kind, str) and kind in ("string", "integer", "number", "boolean", "null"):
            return kind
        raise _no(at, f"there is no type {kind!r}")

    def _string(self, schema: Mapping[str, Any], at: str) -> str:
        least, most = _bounds(schema, "minLength", "maxLength", at)
        text = string_expression(schema, least, most)
        if "pattern" in schema and not text:
            raise _no(at, "pattern is not supported")
        if text:
            if text not in self._formats:
                self._formats[text] = self._rule(text)
            return f'"\\"" {self._formats[text]} "\\""'
        return f'"\\"" char{_times(least, most)} "\\""'

    def _object(self, schema: Mapping[str, Any], at: str, waiting: list[tuple[str, str]]) -> str:
        properties, required = schema.get("properties", {}), schema.get("required", [])
        more = schema.get("additionalProperties", True)
        least, most = _bounds(schema, "minProperties", "maxProperties", at)
        if not isinstance(properties, Mapping) or not isinstance(required, list):
            raise _no(at, "its properties are no list of schemas")
        if not all(isinstance(name, str) for name in required):
            raise _no(at, "required holds what is no name")
        every = {**properties, **{name: more for name in required if name not in properties}}
        if every and any(property_schema is False for property_schema in every.values()):
            raise _no(at, "a required property is forbidden")
        if not every and more is not False:
            if least > 1:  # one name may come twice
                raise _no(at, "minProperties above 1 needs properties that are named")
            of = self._rule(self._expression(more, f"{at}/additionalProperties", waiting))
            return f'"{{" space {_several(f"""string ":" space {of}""", least, most)} space "}}"'
        parts = []
        for name, property_schema in every.items():
            of = self._rule(self._expression(property_schema, f"{at}/properties/{name}", waiting))
            parts.append((self._rule(f'{_json(name)} ":" space {of}'), name in required))
        return f'"{{" space {self._listed(parts, least, most, at)} space "}}"'

    def _listed(self, parts: Sequence[tuple[str, bool]], least: int, most: int | None, at: str) -> str:
        """Return the properties in their order, with commas between; optional ones may be missing while enough are
        left."""
        needed = sum(of for _, of in parts)
        if least > len(parts):
            raise _no(at, "minProperties is above the number of its named properties")
        if most is not None and most < needed:
            raise _no(at, "maxProperties is below the number of its required properties")
        if least <= needed:
            least = 0
        if most is None or most >= len(parts):
            most = len(parts)
            many = max(1, least)  # it is all one how many more have come
        else:
            many = most
        if many * len(parts) > MAX_RULES:
            raise _no(at, TOO_LARGE)
        rest = [None if came < least else '""' for came in range(many + 1)]
        for place in reversed(range(len(parts))):
            rest = [self._from(parts[place], came, rest, many, most) for came in range(min(place, many) + 1)]
        return rest[0] or '""'

    def _from(self, part: tuple[str, bool], came: int, rest: Sequence[str | None], many: int, most: int) -> str | None:
        """Return the rule for this property and those after it, once `came` have been written; None where nothing is
        allowed.

        rest: for each number of properties written, the rule of what may follow this one.
        """
        name, needed = part
        later = rest[min(came + 1, many)] if came < most else None
        comma = '"," space ' if came else ""
        options = [] if later is None else [f"{comma}{name} {later}"]
        if not needed and (skipped := rest[came]) is not None:
            options.append(skipped)
        return self._rule(" | ".join(options)) if options else None

    def _array(self, schema: Mapping[str, Any], at: str, waiting: list[tuple[str, str]]) -> str:
        least, most = _bounds(schema, "minItems", "maxItems", at)
        if (fixed := schema.get("prefixItems")) is None:
            of = self._rule(self._expression(schema.get("items", True), f"{at}/items", waiting))
            return f'"[" space {_several(of, least, most)} space "]"'
        if not isinstance(fixed, list) or not fixed:
            raise _no(at, "its prefixItems are no list of schemas")
        fixed, items = fixed[:most], schema.get("items")
        names = [self._rule(self._expression(s, f"{at}/{n}", waiting)) for n, s in enumerate(fixed)]
        inner, more = ' "," space '.join(names), max(0, least - len(fixed))
        if more and items is False:
            raise _no(at, "minItems asks for more than its prefixItems, and items forbids them")
        if (more or items) and (most is None or len(fixed) < most):
            of = self._rule(self._expression(True if items is None else items, f"{at}/items", waiting))
            inner += f' ("," space {of}){_times(more, most and most - len(fixed))}'
        return f'"[" space {inner} space "]"'


def check_size(schema: object) -> None:
    """Raises BadInput("schema_refused") for JSON that is too long or too deep to be worked on."""
    try:
        size = len(json.dumps(schema, ensure_ascii=False).encode())
    except (TypeError, ValueError, RecursionError):
        raise _no("", "it is no JSON") from None
    if size > MAX_SCHEMA_BYTES:
        raise _no("", "it is longer than 64 KiB")
    if is_deeper(schema, MAX_DEPTH):
        raise _no("", f"its parts lie within each other more than {MAX_DEPTH} levels deep")


def _any_of(schema: Mapping[str, Any], *words: str) -> bool:
    return any(word in schema for word in words)


def _json(value: object) -> str:
    return literal(json.dumps(value, ensure_ascii=False, separators=(", ", ": ")))


def _bounds(schema: Mapping[str, Any], low: str, high: str, at: str) -> tuple[int, int | None]:
    """Return the lower and the upper bound; a bound that is null counts as absent. Raises BadInput."""
    least, most = schema.get(low), schema.get(high)
    for bound in (least, most):
        if bound is not None and (type(bound) is not int or not 0 <= bound <= MAX_REPEAT):
            raise _no(at, f"{low} and {high} must be numbers up to {MAX_REPEAT}")
    least = least or 0
    if most is not None and most < least:
        raise _no(at, f"{high} is below {low}")
    return least, most


def _among(values: Sequence[object], kind: object, at: str) -> str:
    """Return one of the values that are of the type."""
    if not (matching := values_of_type(values, kind)):
        raise _no(at, "none of its values is of its type")
    return " | ".join(map(_json, matching))


def _beside(schema: object, kind: object, at: str) -> object:
    """Return one of several choices, restricted to the type that stands beside them."""
    try:
        return restricted_to(schema, kind)
    except ValueError as error:
        raise _no(at, str(error)) from None


def _several(of: str, least: int, most: int | None) -> str:
    """Return `least` to `most` repetitions with commas between them."""
    if most == 0:
        return '""'
    inner = f'{of} ("," space {of}){_times(max(0, least - 1), None if most is None else most - 1)}'
    return inner if least else f"({inner})?"


def _times(least: int, most: int | None) -> str:
    return f"{{{least},{'' if most is None else most}}}"


def _no(at: str, why: str) -> BadInput:
    return BadInput("schema_refused", where=at[:200] or "the schema", why=why)
