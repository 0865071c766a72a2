"""The parsing of JSON written by models: whole values, the certain part of a truncated text, and growing objects."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

from app.core.json_schema.schema_types import is_deeper

MAX_DEPTH = 64  # the maximum nesting of values that will be written as JSON again, since other parsers have limits too
# An incomplete string or word, or nothing, at the end of a text.
_HALF = re.compile(r'(?:"(?:[^"\\]|\\.)*\\?|t(?:r|ru)?|f(?:a|al|als)?|n(?:u|ul)?|)', re.DOTALL)
_NUMBER = re.compile(r"[-+0-9.eE]*")
_BLANKS = re.compile(r"[ \t\r\n]*")
MOST_VALUES = 20_000  # the limit for incremental parsing, which takes a twentieth of a second for this many


def value_at(text: str, at: int = 0) -> tuple[Any, int]:
    """Return the value that begins at `at`, and the position after it.

    Raises ValueError if there is no value, if it is nested too deeply, or if it contains a number that is out of range
    or not allowed in JSON.
    """
    try:
        value, end = _DECODER.raw_decode(text, at)
    except RecursionError:
        raise _too_deep() from None
    if is_deeper(value, MAX_DEPTH):
        raise _too_deep()
    return value, end


def parse_json(text: str) -> Any:
    """Return the value of a JSON text. Raises ValueError like `value_at`, or if anything follows the value."""
    text = text.strip()
    value, end = value_at(text)
    if end < len(text):
        raise ValueError("something stands behind it")
    return value


def certain_part(text: str) -> Any:
    """Return the list or object at the beginning of a truncated text, without its incomplete parts.

    Incomplete parts are unfinished strings, numbers that may continue, and names without values. Raises ValueError if
    the text does not begin with a list or an object.
    """
    reader = _Reader(text)
    if not reader.next_is("{["):
        raise ValueError("no list and no object begins here")
    value = reader.value(0)
    if not reader.is_cut and not reader.at_end():
        raise ValueError("something stands behind it")
    return value


def to_json(value: object) -> str:
    """Return a value as JSON text that can be encoded in UTF-8.

    Lone surrogates, which JSON can contain as escapes, become U+FFFD.
    """
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


class _CutError(Exception):
    """An unexpected end of the text within a value."""


class _Reader:
    def __init__(self, text: str) -> None:
        self._text, self._at, self.is_cut = text, 0, False
        self._n_left = MOST_VALUES

    def value(self, depth: int) -> Any:
        """Return the next value. A list or an object may be incomplete. Raises ValueError, _CutError."""
        if depth > MAX_DEPTH:
            raise _too_deep()
        self._n_left -= 1
        if self._n_left < 0:
            raise ValueError("it has too many values")
        if self._accept("{"):
            return self._object(depth + 1)
        if self._accept("["):
            return self._list(depth + 1)
        begin = self._at
        if (number := _NUMBER.match(self._text, begin)) and number.end() == len(self._text):
            raise _CutError  # for example, 12 may become 123
        try:
            value, self._at = _DECODER.raw_decode(self._text, begin)
        except ValueError:
            if _HALF.fullmatch(self._text, begin):
                raise _CutError from None
            raise
        return value

    def _object(self, depth: int) -> dict[str, Any]:
        members: dict[str, Any] = {}
        try:
            while not self._accept("}"):
                if members:
                    self._expect(",")
                name = self.value(depth)
                if not isinstance(name, str):
                    raise ValueError("a name is no string")
                self._expect(":")
                members[name] = self.value(depth)
                if self.is_cut:
                    break
        except _CutError:
            self.is_cut = True
        return members

    def _list(self, depth: int) -> list[Any]:
        items: list[Any] = []
        try:
            while not self._accept("]"):
                if items:
                    self._expect(",")
                items.append(self.value(depth))
                if self.is_cut:
                    break
        except _CutError:
            self.is_cut = True
        return items

    def at_end(self) -> bool:
        if blanks := _BLANKS.match(self._text, self._at):
            self._at = blanks.end()
        return self._at == len(self._text)

    def next_is(self, characters: str) -> bool:
        return not self.at_end() and self._text[self._at] in characters

    def _accept(self, character: str) -> bool:
        if self.at_end():
            raise _CutError
        if self._text[self._at] != character:
            return False
        self._at += 1
        return True

    def _expect(self, character: str) -> None:
        if not self._accept(character):
            raise ValueError(f"{character} is missing")


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        _no_number(text)  # for example, 1e400
    return number


def _too_deep() -> ValueError:
    return ValueError("it is nested too deeply")


_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_no_number)


_SCAN_BLANKS = re.compile(r"[ \t\r\n]*")


_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')


_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})')


_BEGUN_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?")


_WORD = re.compile(r"[-+0-9.eEa-z]+")


_WHOLE_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")


_BEGUN_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*|)(?:\.[0-9]*)?(?:[eE][-+]?[0-9]*)?")


CONSTANTS = ("true", "false", "null")


VALUE, FIRST_VALUE, KEY, FIRST_KEY, COLON, AFTER_VALUE = range(6)  # what the scanner expects next


class JsonScan:
    """An incremental scanner for one JSON object in a growing text, which reads each character only once.

    at: the end of the text that certainly belongs to the object; initially, the beginning of the object.
    """

    def __init__(self, at: int) -> None:
        self.at = at
        self.is_complete = False
        self._open = ""  # the open brackets, outermost first
        self._next = VALUE
        self._in_text = False

    def read(self, text: str) -> None:
        """Scan the text up to the last certain position. Raises ValueError if it is not a JSON object."""
        while not self.is_complete:
            if self._in_text:
                if not self._text(text):
                    return
                continue
            if (blanks := _SCAN_BLANKS.match(text, self.at)) and self._open:
                self.at = blanks.end()
            if self.at >= len(text) or not self._token(text):
                return

    def _text(self, text: str) -> bool:
        """Continue within a string. Return whether the string has ended."""
        while True:
            if plain := _PLAIN.match(text, self.at):
                self.at = plain.end()
            if self.at >= len(text):
                return False
            if text[self.at] == '"':
                self.at += 1
                self._in_text = False
                self._next = COLON if self._next in (KEY, FIRST_KEY) else AFTER_VALUE
                return True
            if escape := _ESCAPE.match(text, self.at):
                self.at = escape.end()
            elif _BEGUN_ESCAPE.fullmatch(text, self.at):
                return False
            else:
                raise ValueError("a text holds what none may")

    def _token(self, text: str) -> bool:
        """Read the next token. Return False if it is incomplete."""
        character = text[self.at]
        match character, self._next:
            case "{" | "[", _ if self._next in (VALUE, FIRST_VALUE) and (self._open or character == "{"):
                if len(self._open) >= MAX_DEPTH:
                    raise ValueError("it is nested too deeply")
                self._open += character
                self._next = FIRST_KEY if character == "{" else FIRST_VALUE
            case '"', _ if self._next not in (COLON, AFTER_VALUE) and self._open:
                self._in_text = True
            case ":", _ if self._next == COLON:
                self._next = VALUE
            case ",", _ if self._next == AFTER_VALUE:
                self._next = KEY if self._open[-1] == "{" else VALUE
            case "}", _ if self._next in (FIRST_KEY, AFTER_VALUE) and self._open[-1:] == "{":
                self._close()
            case "]", _ if self._next in (FIRST_VALUE, AFTER_VALUE) and self._open[-1:] == "[":
                self._close()
            case _:
                return self._word(text)
        self.at += 1
        return True

    def _close(self) -> None:
        self._open = self._open[:-1]
        self._next, self.is_complete = AFTER_VALUE, not self._open

    def _word(self, text: str) -> bool:
        if self._next not in (VALUE, FIRST_VALUE) or not self._open:
            raise ValueError("no value may stand here")
        match = _WORD.match(text, self.at)
        word = match[0] if match else ""
        if match and match.end() == len(text):
            if not (_BEGUN_NUMBER.fullmatch(word) or any(literal.startswith(word) for literal in CONSTANTS)):
                raise ValueError("it is no value")
            return False
        if not (_WHOLE_NUMBER.fullmatch(word) and math.isfinite(float(word))) and word not in CONSTANTS:
            raise ValueError("it is no value")
        self.at += len(word)
        self._next = AFTER_VALUE
        return True
