"""The values of a call's arguments that a model wrote as plain text, as JSON, or as Python or Gemma literals. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from app.core.json_schema.partial_json import MAX_DEPTH, parse_json, value_at
from app.core.json_schema.schema_types import kinds_of, resolve_reference

KINDS = frozenset(("string", "integer", "number", "boolean", "null", "array", "object"))
MAX_STEPS = 8  # depth of nested references and choices
PYTHON = {"True": True, "False": False, "None": None}  # templates write these, and so do models


@dataclass(frozen=True, slots=True)
class AcceptedValues:
    """The values that a schema accepts: their kinds, and the texts of an enum. free: any other text is accepted too."""

    kinds: frozenset[str]
    texts: frozenset[str] = frozenset()
    free: bool = True


ANY, NOTHING = AcceptedValues(KINDS), AcceptedValues(frozenset(), free=False)


def accepted_values(schema: object, root: object) -> AcceptedValues:
    """Return the values that a schema accepts; `root` is the target of its references."""
    accepted = _accepted_values(schema, root, MAX_STEPS, set())
    return ANY if accepted == NOTHING else accepted


def _accepted_values(schema: object, root: object, steps: int, seen: set[str]) -> AcceptedValues:
    """Return the accepted values. seen: references that were already followed.

    The values of these are already counted, and references that choose among each other would be followed almost
    forever.
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
    """Return the value that a model means by this text. Text that matches no accepted value is returned unchanged."""
    if text in accepted.texts or (accepted.kinds == {"string"} and accepted.free):
        return text
    bare = text.strip()
    try:
        value = parse_json(bare)
    except ValueError:
        if bare not in PYTHON:
            return text
        value = PYTHON[bare]
    if isinstance(value, str):  # quoted although it should not be
        return value if value in accepted.texts else text
    return value if accepted.kinds.intersection(kinds_of(value)) else text


QUOTE = '<|"|>'  # Gemma's quote, around texts and some keys


WORDS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}


PLAIN = re.compile(r"[^,\]\[{}()\s\"'=:][^,\]\[{}()\n]*")


KEY = re.compile(r"[^\s:=,{}()\[\]\"'<>]+")


ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\n": ""}


CODE = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})")


class TextCut(Exception):
    """The text ends here."""


class Literals:
    """Reads a text, starting at `at`."""

    def __init__(self, text: str, at: int = 0) -> None:
        self.text, self.at = text, at

    def pairs(self, sign: str, end: str, into: dict[str, Any], depth: int = 0) -> None:
        """Read pairs of key, marker and value, separated by commas, and pass `end`. Raises TextCut, ValueError."""
        while not self.takes(end):
            if into:
                self.wants(",")
                if self.takes(end):
                    return
            key = self._key()
            self.wants(sign)
            into[key] = self.value(depth)

    def value(self, depth: int = 0) -> Any:
        """Return the next value. Raises TextCut, ValueError."""
        if depth > MAX_DEPTH:
            raise ValueError("it is nested too deeply")
        if self.takes(QUOTE):
            return self._until(QUOTE)
        if self.takes("{"):
            members: dict[str, Any] = {}
            self.pairs(":", "}", members, depth + 1)
            return members
        for begin, end in (("[", "]"), ("(", ")")):
            if self.takes(begin):
                return self._values(end, depth + 1)
        if self.stands() in "\"'":
            return self._quoted()
        return self._word()

    def takes(self, sign: str) -> bool:
        """Pass the marker if it comes next, after whitespace. Return whether it did. Raises TextCut if it may still
        come."""
        self._blanks()
        rest = self.text[self.at : self.at + len(sign)]
        if rest == sign:
            self.at += len(sign)
            return True
        if len(rest) < len(sign) and sign.startswith(rest):
            raise TextCut
        return False

    def wants(self, sign: str) -> None:
        """Pass the marker like `takes`. Raises ValueError if something else comes next."""
        if not self.takes(sign):
            raise ValueError(f"{sign} is missing")

    def stands(self) -> str:
        self._blanks()
        if self.at >= len(self.text):
            raise TextCut
        return self.text[self.at]

    def _blanks(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def _until(self, sign: str) -> str:
        end = self.text.find(sign, self.at)
        if end < 0:
            raise TextCut
        text, self.at = self.text[self.at : end], end + len(sign)
        return text

    def _key(self) -> str:
        if self.takes(QUOTE):
            return self._until(QUOTE)
        if self.stands() in "\"'":
            return self._quoted()
        if not (match := KEY.match(self.text, self.at)):
            raise ValueError("no name stands here")
        if match.end() == len(self.text):
            raise TextCut
        self.at = match.end()
        return match[0]

    def _values(self, end: str, depth: int) -> list[Any]:
        values: list[Any] = []
        while not self.takes(end):
            if values:
                self.wants(",")
                if self.takes(end):
                    break
            values.append(self.value(depth))
        return values

    def _quoted(self) -> str:
        sign = self.text[self.at]
        if self.text.startswith(sign * 3, self.at):
            sign *= 3
        self.at += len(sign)
        pieces: list[str] = []
        while True:
            if self.at >= len(self.text):
                raise TextCut
            if self.text.startswith(sign, self.at):
                self.at += len(sign)
                return "".join(pieces)
            if self.text[self.at] == "\\":
                pieces.append(self._escaped())
            else:
                ends = [at for mark in (sign, "\\") if (at := self.text.find(mark, self.at)) >= 0]
                end = min(ends, default=len(self.text))
                pieces.append(self.text[self.at : end])
                self.at = end

    def _escaped(self) -> str:
        if len(self.text) < self.at + 2:
            raise TextCut
        if code := CODE.match(self.text, self.at + 1):
            self.at = code.end()
            number = int(code[1] or code[2] or code[3], 16)
            return chr(number) if number < 0x110000 else "\ufffd"
        sign = self.text[self.at + 1]
        self.at += 2
        return ESCAPES.get(sign, sign)

    def _word(self) -> Any:
        if not (match := PLAIN.match(self.text, self.at)):
            raise ValueError("no value stands here")
        if match.end() == len(self.text):
            raise TextCut
        self.at = match.end()
        word = match[0].strip()
        if word in WORDS:
            return WORDS[word]
        try:
            value, end = value_at(word)
        except ValueError:
            return word
        return value if end == len(word) else word
