"""The values of a tool call's arguments, which models write as plain text, JSON, or Python or Gemma literals."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from app.core.json_schema.partial_json import MAX_DEPTH, parse_json, value_at
from app.core.json_schema.schema_types import kinds_of, resolve_reference

JSON_TYPES = frozenset(("string", "integer", "number", "boolean", "null", "array", "object"))
MAX_STEPS = 8  # maximum depth of nested references and alternatives
PYTHON_CONSTANTS = {"True": True, "False": False, "None": None}  # templates write these literals, and so do models


@dataclass(frozen=True, slots=True)
class AcceptedValues:
    """The values that a schema accepts: their types, and the strings of an enum.

    free: whether any other string is accepted as well.
    """

    kinds: frozenset[str]
    texts: frozenset[str] = frozenset()
    free: bool = True


ANY, NOTHING = AcceptedValues(JSON_TYPES), AcceptedValues(frozenset(), free=False)


def accepted_values(schema: object, root: object) -> AcceptedValues:
    """Return the values that a schema accepts. References are resolved within `root`."""
    accepted = _accepted_values(schema, root, MAX_STEPS, set())
    return ANY if accepted == NOTHING else accepted


def _accepted_values(schema: object, root: object, steps: int, seen: set[str]) -> AcceptedValues:
    """Return the values that a schema accepts.

    seen: the references that were already followed and whose values are already included. Without it, schemas that
    refer to each other would be followed almost forever.
    """
    if not isinstance(schema, Mapping) or steps == 0:
        return ANY
    if "$ref" in schema:
        if (place := str(schema["$ref"])) in seen:
            return NOTHING
        seen.add(place)
        return _accepted_values(resolve_reference(schema["$ref"], root), root, steps - 1, seen)
    options = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if isinstance(options, list):
        kinds = frozenset(kind for option in options for kind in kinds_of(option))
        return AcceptedValues(kinds, frozenset(option for option in options if isinstance(option, str)), free=False)
    for word in ("anyOf", "oneOf", "allOf"):
        if isinstance(several := schema.get(word), list):
            return _either([_accepted_values(choice, root, steps - 1, seen) for choice in several])
    kind = schema.get("type", "object" if "properties" in schema else None)
    if kind is None:
        return ANY
    kinds = frozenset(
        type_name for type_name in (kind if isinstance(kind, list) else [kind]) if isinstance(type_name, str)
    )
    return AcceptedValues(kinds, free="string" in kinds)


def _either(several: Iterable[AcceptedValues]) -> AcceptedValues:
    several = list(several)
    return AcceptedValues(
        frozenset[str]().union(*(accepted.kinds for accepted in several)),
        frozenset[str]().union(*(accepted.texts for accepted in several)),
        any(accepted.free for accepted in several),
    )


def parse_argument(text: str, accepted: AcceptedValues) -> Any:
    """Return the value that this text stands for, or the text itself if that value is not accepted."""
    if text in accepted.texts or (accepted.kinds == {"string"} and accepted.free):
        return text
    bare = text.strip()
    try:
        value = parse_json(bare)
    except ValueError:
        if bare not in PYTHON_CONSTANTS:
            return text
        value = PYTHON_CONSTANTS[bare]
    if isinstance(value, str):  # the model quoted a value that should not be quoted
        return value if value in accepted.texts else text
    return value if accepted.kinds.intersection(kinds_of(value)) else text


GEMMA_QUOTE = '<|"|>'  # Gemma's quote, which encloses strings and some keys


CONSTANTS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}


PLAIN_VALUE = re.compile(r"[^,\]\[{}()\s\"'=:][^,\]\[{}()\n]*")


PLAIN_KEY = re.compile(r"[^\s:=,{}()\[\]\"'<>]+")


ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\n": ""}


CHARACTER_CODE = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})")


class TextEnded(Exception):
    """An unexpected end of the text within a value."""


class Literals:
    """A parser of Python and Gemma literals in a text. `at` is the position of the next character."""

    def __init__(self, text: str, at: int = 0) -> None:
        self.text, self.at = text, at

    def pairs(self, marker: str, end: str, into: dict[str, Any], depth: int = 0) -> None:
        """Parse comma-separated pairs of key, `marker` and value up to `end`, and add them to `into`.

        Raises TextEnded or ValueError.
        """
        while not self.accept(end):
            if into:
                self.expect(",")
                if self.accept(end):
                    return
            key = self._key()
            self.expect(marker)
            into[key] = self.value(depth)

    def value(self, depth: int = 0) -> Any:
        """Parse and return the next value. Raises TextEnded or ValueError."""
        if depth > MAX_DEPTH:
            raise ValueError("it is nested too deeply")
        if self.accept(GEMMA_QUOTE):
            return self._until(GEMMA_QUOTE)
        if self.accept("{"):
            members: dict[str, Any] = {}
            self.pairs(":", "}", members, depth + 1)
            return members
        for begin, end in (("[", "]"), ("(", ")")):
            if self.accept(begin):
                return self._values(end, depth + 1)
        if self.peek() in "\"'":
            return self._quoted()
        return self._word()

    def accept(self, marker: str) -> bool:
        """Consume the marker if it comes next, after any whitespace. Return whether it did.

        Raises TextEnded if the text ends before this is certain.
        """
        self._blanks()
        rest = self.text[self.at : self.at + len(marker)]
        if rest == marker:
            self.at += len(marker)
            return True
        if len(rest) < len(marker) and marker.startswith(rest):
            raise TextEnded
        return False

    def expect(self, marker: str) -> None:
        """Consume the marker like `accept`, or raise ValueError if something else comes next."""
        if not self.accept(marker):
            raise ValueError(f"{marker} is missing")

    def peek(self) -> str:
        self._blanks()
        if self.at >= len(self.text):
            raise TextEnded
        return self.text[self.at]

    def _blanks(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def _until(self, marker: str) -> str:
        end = self.text.find(marker, self.at)
        if end < 0:
            raise TextEnded
        text, self.at = self.text[self.at : end], end + len(marker)
        return text

    def _key(self) -> str:
        if self.accept(GEMMA_QUOTE):
            return self._until(GEMMA_QUOTE)
        if self.peek() in "\"'":
            return self._quoted()
        if not (match := PLAIN_KEY.match(self.text, self.at)):
            raise ValueError("no name stands here")
        if match.end() == len(self.text):
            raise TextEnded
        self.at = match.end()
        return match[0]

    def _values(self, end: str, depth: int) -> list[Any]:
        values: list[Any] = []
        while not self.accept(end):
            if values:
                self.expect(",")
                if self.accept(end):
                    break
            values.append(self.value(depth))
        return values

    def _quoted(self) -> str:
        quote = self.text[self.at]
        if self.text.startswith(quote * 3, self.at):
            quote *= 3
        self.at += len(quote)
        pieces: list[str] = []
        while True:
            if self.at >= len(self.text):
                raise TextEnded
            if self.text.startswith(quote, self.at):
                self.at += len(quote)
                return "".join(pieces)
            if self.text[self.at] == "\\":
                pieces.append(self._escaped())
            else:
                ends = [at for mark in (quote, "\\") if (at := self.text.find(mark, self.at)) >= 0]
                end = min(ends, default=len(self.text))
                pieces.append(self.text[self.at : end])
                self.at = end

    def _escaped(self) -> str:
        if len(self.text) < self.at + 2:
            raise TextEnded
        if code := CHARACTER_CODE.match(self.text, self.at + 1):
            self.at = code.end()
            number = int(code[1] or code[2] or code[3], 16)
            return chr(number) if number < 0x110000 else "\ufffd"
        character = self.text[self.at + 1]
        self.at += 2
        return ESCAPES.get(character, character)

    def _word(self) -> Any:
        if not (match := PLAIN_VALUE.match(self.text, self.at)):
            raise ValueError("no value stands here")
        if match.end() == len(self.text):
            raise TextEnded
        self.at = match.end()
        word = match[0].strip()
        if word in CONSTANTS:
            return CONSTANTS[word]
        try:
            value, end = value_at(word)
        except ValueError:
            return word
        return value if end == len(word) else word
