"""The conversion of a JSON schema to a GBNF grammar that restricts answers to JSON of that schema.

As in every engine of this kind, some constraints are not enforced: `uniqueItems`, the requirement that only one schema
of `oneOf` matches, and any `format` that `string_expression` does not know. If a schema names properties, no other
properties are generated. Likewise, no items beyond `prefixItems` are generated unless the schema describes them.
Schemas with other constraints that no grammar can guarantee are rejected, as are regular expressions except those of
known formats.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from app.core.errors import BadInput
from app.core.json_schema.schema_types import is_deeper, resolve_reference, restricted_to, values_of_type

MAX_INTEGER = 10**16 - 1  # the largest integer that an answer may contain
MAX_BOUND = 10**6  # limit for the bounds of fractions: up to here, floats represent nine decimal places exactly enough
BOUNDS = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")

_FRACTION = '("." [0-9]{1,9})?'
_ZEROS = '("." "0"{1,9})?'
_MORE = '"." [0-9]{0,8} [1-9]'  # a fraction that is not zero


def integers(schema: Mapping[str, Any]) -> str:
    """Return the expression for the integers within a schema's bounds.

    Raises ValueError with a description of the problem.
    """
    bounds = _bounds_of(schema)
    low = max(
        math.ceil(bounds.get("minimum", -MAX_INTEGER)),
        math.floor(bounds.get("exclusiveMinimum", -MAX_INTEGER - 1)) + 1,
        -MAX_INTEGER,
    )
    high = min(
        math.floor(bounds.get("maximum", MAX_INTEGER)),
        math.ceil(bounds.get("exclusiveMaximum", MAX_INTEGER + 1)) - 1,
        MAX_INTEGER,
    )
    if low > high:
        raise ValueError("no number is between its bounds")
    options = []
    if low < 0:
        options.append(f'"-" ({_naturals(max(1, -high), -low)})')
    if high >= 0:
        options.append(_naturals(max(0, low), high))
    return " | ".join(options)


def numbers(schema: Mapping[str, Any]) -> str:
    """Return the expression for the numbers within a schema's bounds, which must be integers.

    Raises ValueError with a description of the problem.
    """
    bounds = _bounds_of(schema)
    if any(bound != math.floor(bound) or abs(bound) > MAX_BOUND for bound in bounds.values()):
        raise ValueError(f"bounds of a number must be whole and at most {MAX_BOUND}")
    low, open_low = _stricter(bounds, "minimum", "exclusiveMinimum", max)
    high, open_high = _stricter(bounds, "maximum", "exclusiveMaximum", min)
    if low > high or (low == high and (open_low or open_high)):
        raise ValueError("no number is between its bounds")
    options = []
    if low < 0:
        least, is_open = (-high, open_high) if high <= 0 else (0, False)
        options.append(f'"-" ({_magnitudes(least, is_open, -low, open_low)})')
    if high > 0 or (high == 0 and not open_high):
        least, is_open = (low, open_low) if low >= 0 else (0, False)
        options.append(_magnitudes(least, is_open, high, open_high))
    return " | ".join(options)


def _bounds_of(schema: Mapping[str, Any]) -> dict[str, int | float]:
    bounds = {word: schema[word] for word in BOUNDS if schema.get(word) is not None}
    for word, bound in bounds.items():
        if type(bound) is not int and not (type(bound) is float and math.isfinite(bound)):
            raise ValueError(f"{word} must be a number")
    return bounds


def _stricter(bounds: Mapping[str, int | float], word: str, exclusive: str, pick: Any) -> tuple[int, bool]:
    """Return the stricter of the inclusive and the exclusive bound, and whether it is the exclusive one."""
    none = MAX_INTEGER if pick is min else -MAX_INTEGER
    closed, opened = int(bounds.get(word, none)), int(bounds.get(exclusive, none))
    if exclusive not in bounds:
        return closed, False
    bound = pick(closed, opened)
    return bound, bound == opened


def _magnitudes(low: int, open_low: bool, high: int, open_high: bool) -> str:
    """Return the expression for the numbers from low to high, both nonnegative integers."""
    if low == high:
        return f'"{low}" {_ZEROS}'
    options = []
    if open_low:
        options.append(f'"{low}" {_MORE}')
    if (first := low + open_low) < high:
        options.append(f"({_naturals(first, high - 1)}) {_FRACTION}")
    if not open_high:
        options.append(f'"{high}" {_ZEROS}')
    return " | ".join(options)


def _naturals(low: int, high: int) -> str:
    """Return the expression for the integers from low to high, both nonnegative."""
    if low == high:
        return f'"{low}"'
    options = []
    if low == 0:
        options, low = ['"0"'], 1
    first, last = str(low), str(high)
    if len(first) == len(last):
        return " | ".join([*options, _span(first, last)])
    options.append(_span(first, "9" * len(first)))
    if len(last) - len(first) > 1:
        options.append(f"[1-9] [0-9]{{{len(first)},{len(last) - 2}}}")
    options.append(_span("1" + "0" * (len(last) - 1), last))
    return " | ".join(options)


def _span(low: str, high: str) -> str:
    """Return the expression for the digit strings from `low` to `high`, which must have the same length."""
    if low == high:
        return f'"{low}"'
    rest = len(low) - 1
    if low[0] == high[0]:
        return f'"{low[0]}" {_span(low[1:], high[1:])}'
    whole_low, whole_high = low[1:] == "0" * rest, high[1:] == "9" * rest
    first, last = int(low[0]) + (not whole_low), int(high[0]) - (not whole_high)
    options = []
    if not whole_low:
        options.append(f'"{low[0]}" {_span(low[1:], "9" * rest)}')
    if first <= last:
        options.append(f"[{first}-{last}]" + (f" [0-9]{{{rest}}}" if rest else ""))
    if not whole_high:
        options.append(f'"{high[0]}" {_span("0" * rest, high[1:])}')
    return f"({' | '.join(options)})"


# The strings that satisfy a `format` of JSON Schema: valid dates, times, durations, UUIDs, addresses and names. Years
# are 1000 to 9999 and there are no leap seconds, so that every parser accepts them. The total length of a host name is
# limited, so a name with many parts has short ones.

_ODD_MONTHS = '("01" | "03" | "05" | "07" | "08" | "10" | "12") "-" ("0" [1-9] | [12] [0-9] | "3" [01])'
_EVEN_MONTHS = '("04" | "06" | "09" | "11") "-" ("0" [1-9] | [12] [0-9] | "30")'
_FEBRUARY = '"02-" ("0" [1-9] | "1" [0-9] | "2" [0-8])'
_BY_FOUR = '("0" [48] | [2468] [048] | [13579] [26])'  # two digits divisible by four, but not 00
_LEAP_YEAR = f'([1-9] [0-9] {_BY_FOUR} | ([2468] [048] | [13579] [26]) "00")'
DATE = f'([1-9] [0-9]{{3}} "-" ({_ODD_MONTHS} | {_EVEN_MONTHS} | {_FEBRUARY}) | {_LEAP_YEAR} "-02-29")'
HOUR, MINUTE = '([01] [0-9] | "2" [0-3])', "[0-5] [0-9]"
SECOND = f'":" {MINUTE} ("." [0-9]{{1,6}})?'
_TIME = f'{HOUR} ":" {MINUTE} {SECOND} ("Z" | [+-] {HOUR} ":" {MINUTE})'
_BYTE = '("25" [0-5] | "2" [0-4] [0-9] | "1" [0-9] [0-9] | [1-9]? [0-9])'
_LETTERS = "[0-9a-fA-F]{1,4}"
_LAST = f'({_LETTERS} ":" {_LETTERS} | {_BYTE} ("." {_BYTE}){{3}})'  # the last 32 bits
_IPV6 = " | ".join(
    [f'({_LETTERS} ":"){{6}} {_LAST}', f'"::" ({_LETTERS} ":"){{5}} {_LAST}']
    + [f'({_LETTERS} (":" {_LETTERS}){{0,{n}}})? "::" ({_LETTERS} ":"){{{4 - n}}} {_LAST}' for n in range(4)]
    + [
        f'({_LETTERS} (":" {_LETTERS}){{0,4}})? "::" {_LAST}',
        f'({_LETTERS} (":" {_LETTERS}){{0,5}})? "::" {_LETTERS}',
        f'({_LETTERS} (":" {_LETTERS}){{0,6}})? "::"',
    ]
)
_CLOCK = '[0-9]{1,9} ("H" ([0-9]{1,9} "M" ([0-9]{1,9} "S")?)? | "M" ([0-9]{1,9} "S")? | "S")'
_DAYS = '("Y" ([0-9]{1,9} "M" ([0-9]{1,9} "D")?)? | "M" ([0-9]{1,9} "D")? | "D")'
_DURATION = f'"P" ([0-9]{{1,9}} ("W" | {_DAYS} ("T" {_CLOCK})?) | "T" {_CLOCK})'
_LONG, SHORT = (f"[a-zA-Z0-9] ([-a-zA-Z0-9]{{0,{n}}} [a-zA-Z0-9])?" for n in (60, 28))
_ATOM = "[-a-zA-Z0-9_+]"
MAILBOX = f'({_ATOM}{{1,31}} ("." {_ATOM}{{1,31}})? | {_ATOM}{{1,15}} ("." {_ATOM}{{1,15}}){{2,3}})'
FORMATS: dict[object, tuple[str, int, int]] = {  # the grammar, and the minimum and maximum number of characters
    "date": (DATE, 10, 10),
    "time": (_TIME, 9, 21),
    "date-time": (f'{DATE} "T" {_TIME}', 20, 32),
    "uuid": ('[0-9a-f]{8} ("-" [0-9a-f]{4}){3} "-" [0-9a-f]{12}', 36, 36),
    "ipv4": (f'{_BYTE} ("." {_BYTE}){{3}}', 7, 15),
    "ipv6": (f"({_IPV6})", 2, 45),
    "duration": (_DURATION, 3, 62),
    "hostname": (f'({_LONG} ("." {_LONG}){{0,3}} | {SHORT} ("." {SHORT}){{4,7}})', 1, 251),
    "email": (f'{MAILBOX} "@" {SHORT} ("." {SHORT}){{1,5}}', 5, 249),
}
# without the form that ends in an IPv4 address
IPV6_ALONE = FORMATS["ipv6"][0].replace(_LAST, f'{_LETTERS} ":" {_LETTERS}')


Known = tuple[str, int, int]  # the grammar, and the minimum and maximum number of characters

_ON = (
    r"(?:(?:\d\d[2468][048]|\d\d[13579][26]|\d\d0[48]|[02468][048]00|[13579][26]00)-02-29|"
    r"\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|"
    r"(?:02)-(?:0[1-9]|1\d|2[0-8])))"
)
_TO_THE_MINUTE = r"(?:[01]\d|2[0-3]):[0-5]\d"
_AT = rf"{_TO_THE_MINUTE}(?::[0-5]\d(?:\.\d+)?)?"
_AT_A_SECOND = rf"{_TO_THE_MINUTE}:[0-5]\d(?:\.\d+)?"
_AWAY = r"([+-](?:[01]\d|2[0-3]):[0-5]\d)"
_UUID = "^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-%s[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}%s)$"
_NONE = "|00000000-0000-0000-0000-000000000000"
_ALL = "|ffffffff-ffff-ffff-ffff-ffffffffffff"
_BYTE_PATTERN = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9][0-9]|[0-9])"
_IPV6_PATTERN = (
    "^((H:){7}H|(H:){1,7}:|(H:){1,6}:H|(H:){1,5}(:H){1,2}|(H:){1,4}(:H){1,3}|(H:){1,3}(:H){1,4}|"
    "(H:){1,2}(:H){1,5}|H:((:H){1,6})|:((:H){1,7}|:))$"
)
_EMAIL = f'{MAILBOX} "@" ({SHORT} "."){{1,5}} [a-zA-Z]{{2,30}}', 6, 249


def _uuid(version: str) -> Known:
    begin = f'[0-9a-f]{{8}} "-" [0-9a-f]{{4}} "-" {version} [0-9a-f]{{3}}'
    return f'{begin} "-" [89ab] [0-9a-f]{{3}} "-" [0-9a-f]{{12}}', 36, 36


def _datetime_patterns() -> dict[str, Known]:
    """Return the date-time patterns of current and earlier zod versions, with and without time zones."""
    to_a_second = f'{DATE} "T" {HOUR} ":" {MINUTE} {SECOND}'
    somewhere = FORMATS["date-time"]
    here = f'{to_a_second} "Z"?', 19, 27
    return {
        f"^{_ON}T(?:{_AT}(?:Z))$": (f'{to_a_second} "Z"', 20, 27),
        f"^{_ON}T(?:{_AT_A_SECOND}(?:Z))$": (f'{to_a_second} "Z"', 20, 27),
        f"^{_ON}T(?:{_AT}(?:Z|{_AWAY}))$": somewhere,
        f"^{_ON}T(?:{_AT_A_SECOND}(?:Z|{_AWAY}))$": somewhere,
        f"^{_ON}T(?:{_AT}(?:Z|))$": here,
        f"^{_ON}T(?:{_AT_A_SECOND}(?:Z)|{_AT})$": here,
    }


PATTERNS: dict[str, Known] = {
    **_datetime_patterns(),
    f"^{_ON}$": FORMATS["date"],
    f"^{_AT}$": (f'{HOUR} ":" {MINUTE} ({SECOND})?', 5, 15),
    r"^P(?:(\d+W)|(?!.*W)(?=\d|T\d)(\d+Y)?(\d+M)?(\d+D)?"
    r"(T(?=\d)(\d+H)?(\d+M)?(\d+([.,]\d+)?S)?)?)$": FORMATS["duration"],
    _UUID % ("[1-8]", _NONE): _uuid("[1-8]"),
    _UUID % ("[1-8]", _NONE + _ALL): _uuid("[1-8]"),
    **{_UUID % (n, ""): _uuid(f'"{n}"') for n in "12345678"},
    "^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12})$": FORMATS["uuid"],
    f"^(?:{_BYTE_PATTERN}\\.){{3}}{_BYTE_PATTERN}$": FORMATS["ipv4"],
    _IPV6_PATTERN.replace("H", "[0-9a-fA-F]{1,4}"): (IPV6_ALONE, 2, 39),
    r"^(?=.{1,253}\.?$)[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
    r"(?:\.[a-zA-Z0-9](?:[-0-9a-zA-Z]{0,61}[0-9a-zA-Z])?)*\.?$": FORMATS["hostname"],
    r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$": _EMAIL,
    r"^(?:[A-Za-z0-9_'+\-]+\.)*[A-Za-z0-9_'+\-]*[A-Za-z0-9_+-]@(?:[A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$": _EMAIL,
}


def string_expression(schema: Mapping[str, Any], least: int, most: int | None) -> str:
    """Return the expression for strings that match a schema's pattern or, if it has none, its format.

    The result is empty if the constraint cannot be enforced: the pattern or format is unknown, or its strings may be
    shorter than `least` or longer than `most`.
    """
    known: Mapping[Any, Known] = PATTERNS if "pattern" in schema else FORMATS
    name = schema.get("pattern" if "pattern" in schema else "format")
    if not isinstance(name, str) or name not in known:
        return ""
    text, shortest, longest = known[name]
    return text if least <= shortest and (most is None or longest <= most) else ""


MAX_SCHEMA_BYTES = 64 << 10  # SAFETY.md 7 explains this limit and the next
MAX_DEPTH = 32
MAX_REPEAT = 2000  # llama.cpp refuses more
MAX_GRAMMAR_BYTES = 64 << 10
MAX_RULES = 4096  # with more rules, a grammar would be too long anyway
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
    """Return the grammar for one JSON value of this schema. Raises BadInput("schema_refused")."""
    rules = Rules()
    return rules.grammar(rules.add(schema))


def none_of(characters: Iterable[str]) -> str:
    """Return the character class that excludes these characters."""
    escaped = "".join(f"\\{character}" if character in "[]" else literal(character)[1:-1] for character in characters)
    return f"[^{escaped}]"


def _begun(text: str, end: str) -> int:
    """Return the length of the longest prefix of `end` that `text` ends with."""
    return next(n for n in range(len(end), -1, -1) if text.endswith(end[:n]))


def literal(text: str) -> str:
    """Return `text` as a GBNF literal."""
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
        self._size = 0  # size of the grammar so far

    def add(self, schema: object, root: object = None) -> str:
        """Add the rules for the values of a schema, and return the name of the top-level rule.

        root: the schema against which references are resolved; by default, the schema itself.
        """
        check_size(schema)
        self._root, self._refs = schema if root is None else root, {}
        waiting: list[tuple[str, str]] = []
        name = self._rule(self._expression(schema, "", waiting))
        while waiting:  # not recursive, because a chain of references may be long
            place, of = waiting.pop()
            self._put(of, self._expression(self._referred(place), place, waiting))
        return name

    def grammar(self, root: str) -> str:
        """Return the text of the grammar with this root expression. Raises BadInput if it is too large."""
        lines = [f"root ::= {root}", *(f"{name} ::= {rule}" for name, rule in self._rules.items())]
        text = "\n".join(lines) + "\n"
        if len(text.encode()) > MAX_GRAMMAR_BYTES:
            raise _no("", TOO_LARGE)
        return text

    def named(self, expression: str) -> str:
        """Add a rule for this expression, and return its name."""
        return self._rule(expression)

    def without(self, end: str) -> str:
        """Return the name of the rule for any text that does not contain `end`.

        A separate rule is needed for each prefix of `end` that the text may just have reached.
        """
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
        """Add a rule. Raises BadInput if the grammar is now too large.

        The size is checked for each rule because nested lists of types repeat all rules below them.
        """
        self._size += len(name) + len(expression)
        if self._size > MAX_GRAMMAR_BYTES:
            raise _no("", TOO_LARGE)
        self._rules[name] = expression

    def _expression(self, schema: object, at: str, waiting: list[tuple[str, str]]) -> str:
        if schema is True or schema == {}:
            return "value"
        if not isinstance(schema, Mapping):
            raise _no(at, "it is no schema")
        # every name satisfies this, and zod writes it for records
        if schema.get("propertyNames") == {"type": "string"}:
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
        """Return the expression for a schema with a composing keyword.

        kind: the type that the schema states next to the keyword, if any.
        """
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
        """Raise BadInput if the type stated next to a reference differs from the type of its target."""
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
            if least > 1:  # a grammar cannot prevent the same name from occurring twice
                raise _no(at, "minProperties above 1 needs properties that are named")
            of = self._rule(self._expression(more, f"{at}/additionalProperties", waiting))
            return f'"{{" space {_several(f"""string ":" space {of}""", least, most)} space "}}"'
        parts = []
        for name, property_schema in every.items():
            of = self._rule(self._expression(property_schema, f"{at}/properties/{name}", waiting))
            parts.append((self._rule(f'{_json(name)} ":" space {of}'), name in required))
        return f'"{{" space {self._listed(parts, least, most, at)} space "}}"'

    def _listed(self, parts: Sequence[tuple[str, bool]], least: int, most: int | None, at: str) -> str:
        """Return the expression for the properties in order, separated by commas.

        Optional properties may be omitted if at least `least` properties are written.
        """
        needed = sum(of for _, of in parts)
        if least > len(parts):
            raise _no(at, "minProperties is above the number of its named properties")
        if most is not None and most < needed:
            raise _no(at, "maxProperties is below the number of its required properties")
        if least <= needed:
            least = 0
        if most is None or most >= len(parts):
            most = len(parts)
            many = max(1, least)  # from here on, the number of properties no longer matters
        else:
            many = most
        if many * len(parts) > MAX_RULES:
            raise _no(at, TOO_LARGE)
        rest = [None if came < least else '""' for came in range(many + 1)]
        for place in reversed(range(len(parts))):
            rest = [self._from(parts[place], came, rest, many, most) for came in range(min(place, many) + 1)]
        return rest[0] or '""'

    def _from(self, part: tuple[str, bool], came: int, rest: Sequence[str | None], many: int, most: int) -> str | None:
        """Return the rule for this property and all later properties, after `came` properties have been written.

        Return None if the object cannot be completed. rest: the rules for the text after this property, indexed by the
        number of properties written.
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
    """Raise BadInput("schema_refused") for a schema that is too long or too deeply nested to process."""
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
    """Return the lower and the upper bound. A bound of null counts as absent. Raises BadInput."""
    least, most = schema.get(low), schema.get(high)
    for bound in (least, most):
        if bound is not None and (type(bound) is not int or not 0 <= bound <= MAX_REPEAT):
            raise _no(at, f"{low} and {high} must be numbers up to {MAX_REPEAT}")
    least = least or 0
    if most is not None and most < least:
        raise _no(at, f"{high} is below {low}")
    return least, most


def _among(values: Sequence[object], kind: object, at: str) -> str:
    """Return the expression for the values that have this type."""
    if not (matching := values_of_type(values, kind)):
        raise _no(at, "none of its values is of its type")
    return " | ".join(map(_json, matching))


def _beside(schema: object, kind: object, at: str) -> object:
    """Return a schema listed under a composing keyword, restricted to the type stated next to that keyword."""
    try:
        return restricted_to(schema, kind)
    except ValueError as error:
        raise _no(at, str(error)) from None


def _several(of: str, least: int, most: int | None) -> str:
    """Return the expression for `least` to `most` repetitions, separated by commas."""
    if most == 0:
        return '""'
    inner = f'{of} ("," space {of}){_times(max(0, least - 1), None if most is None else most - 1)}'
    return inner if least else f"({inner})?"


def _times(least: int, most: int | None) -> str:
    return f"{{{least},{'' if most is None else most}}}"


def _no(at: str, why: str) -> BadInput:
    return BadInput("schema_refused", where=at[:200] or "the schema", why=why)
