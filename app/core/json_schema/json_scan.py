"""A JSON object that comes piece by piece: how far it is sure, and where it ends. Pure."""

from __future__ import annotations

import math
import re

from app.core.json_schema.partial_json import MAX_DEPTH

_BLANKS = re.compile(r"[ \t\r\n]*")
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})')
_BEGUN_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?")
_WORD = re.compile(r"[-+0-9.eEa-z]+")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_BEGUN_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*|)(?:\.[0-9]*)?(?:[eE][-+]?[0-9]*)?")
WORDS = ("true", "false", "null")
VALUE, FIRST_VALUE, KEY, FIRST_KEY, COLON, BEHIND = range(6)  # what may stand next


class JsonScan:
    """Reads a text from `at` on. All before `at` is the beginning of an object, and nothing is read twice."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.is_whole = False
        self._open = ""  # brackets that are not closed
        self._next = VALUE
        self._in_text = False

    def read(self, text: str) -> None:
        """As far as is sure. Raises ValueError where it goes on as no object does."""
        while not self.is_whole:
            if self._in_text:
                if not self._text(text):
                    return
                continue
            if (blanks := _BLANKS.match(text, self.at)) and self._open:
                self.at = blanks.end()
            if self.at >= len(text) or not self._token(text):
                return

    def _text(self, text: str) -> bool:
        """Whether its end has come."""
        while True:
            if plain := _PLAIN.match(text, self.at):
                self.at = plain.end()
            if self.at >= len(text):
                return False
            if text[self.at] == '"':
                self.at += 1
                self._in_text = False
                self._next = COLON if self._next in (KEY, FIRST_KEY) else BEHIND
                return True
            if escape := _ESCAPE.match(text, self.at):
                self.at = escape.end()
            elif _BEGUN_ESCAPE.fullmatch(text, self.at):
                return False
            else:
                raise ValueError("a text holds what none may")

    def _token(self, text: str) -> bool:
        """Whether the next one is whole."""
        sign = text[self.at]
        match sign, self._next:
            case "{" | "[", _ if self._next in (VALUE, FIRST_VALUE) and (self._open or sign == "{"):
                if len(self._open) >= MAX_DEPTH:
                    raise ValueError("it is nested too deeply")
                self._open += sign
                self._next = FIRST_KEY if sign == "{" else FIRST_VALUE
            case '"', _ if self._next not in (COLON, BEHIND) and self._open:
                self._in_text = True
            case ":", _ if self._next == COLON:
                self._next = VALUE
            case ",", _ if self._next == BEHIND:
                self._next = KEY if self._open[-1] == "{" else VALUE
            case "}", _ if self._next in (FIRST_KEY, BEHIND) and self._open[-1:] == "{":
                self._close()
            case "]", _ if self._next in (FIRST_VALUE, BEHIND) and self._open[-1:] == "[":
                self._close()
            case _:
                return self._word(text)
        self.at += 1
        return True

    def _close(self) -> None:
        self._open = self._open[:-1]
        self._next, self.is_whole = BEHIND, not self._open

    def _word(self, text: str) -> bool:
        if self._next not in (VALUE, FIRST_VALUE) or not self._open:
            raise ValueError("no value may stand here")
        found = _WORD.match(text, self.at)
        word = found[0] if found else ""
        if found and found.end() == len(text):
            if not (_BEGUN_NUMBER.fullmatch(word) or any(one.startswith(word) for one in WORDS)):
                raise ValueError("it is no value")
            return False
        if not (_NUMBER.fullmatch(word) and math.isfinite(float(word))) and word not in WORDS:
            raise ValueError("it is no value")
        self.at += len(word)
        self._next = BEHIND
        return True
