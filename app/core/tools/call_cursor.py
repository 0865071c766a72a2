"""The events of a tool call in a model's output, and a cursor through the output as it grows. Pure.

A parser receives the output from the first marker on. It waits wherever more text may still decide, and continues
there when more arrives, so a long call is not read again from its beginning for each token.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from app.core.json_schema.partial_json import to_json

MOST_ENDS = 32  # maximum end markers within the arguments of one call
WHOLE_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)  # a complete JSON string
Tools = Mapping[str, Any]  # maps each name to the schema of its arguments
T = TypeVar("T")
ParserSteps = Generator[None, None, T]  # yields whenever it needs more text


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call. `arguments` is a JSON object as text.

    half: the model's own text of a call that was cut off. Its arguments are then only the beginning of an object.
    """

    name: str
    arguments: str
    half: str = ""


@dataclass(frozen=True, slots=True)
class CallStarted:
    """The beginning of a call whose arguments follow in pieces."""

    name: str


@dataclass(frozen=True, slots=True)
class ArgumentPiece:
    """The next piece of the arguments of the call in progress."""

    text: str


CallEvent = Call | CallStarted | ArgumentPiece


class ReadResult(NamedTuple):
    """The result of reading a text: plain text, calls, and the rest after them."""

    plain: str
    calls: list[Call]
    rest: str


class CutShort(Exception):
    """The answer ends before it is clear what this is."""


class NotACall(Exception):
    """The text is not a call."""


class Cursor:
    """A place in a text that grows while it is read. `at_end`: no more text will come."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.at_end = text, 0, False
        self.news = list[CallStarted | ArgumentPiece]()  # events of the call being read that have not been reported yet

    def begins(self, name: str) -> None:
        """Report that this is certainly a call of this tool."""
        self.news.append(CallStarted(name))

    def goes_on(self, text: str) -> None:
        """Report the next piece of the call's arguments, as JSON text."""
        if text:
            self.news.append(ArgumentPiece(text))

    def more(self) -> ParserSteps[None]:
        """Wait for more text. Raises CutShort if none comes."""
        if self.at_end:
            raise CutShort
        yield

    def blanks(self) -> ParserSteps[None]:
        """Pass all whitespace, including what has not arrived yet."""
        while True:
            while self.at < len(self.text) and self.text[self.at].isspace():
                self.at += 1
            if self.at < len(self.text) or self.at_end:
                return
            yield

    def takes(self, sign: str) -> ParserSteps[bool]:
        """Pass the marker if it comes next. Return whether it did. Raises CutShort."""
        while True:
            if self.text.startswith(sign, self.at):
                self.at += len(sign)
                return True
            if len(self.text) - self.at >= len(sign) or not sign.startswith(self.text[self.at :]):
                return False
            yield from self.more()

    def until(self, sign: str) -> ParserSteps[str]:
        """Return the text before the next marker, and pass both. Raises CutShort."""
        seen = self.at
        while (end := self.text.find(sign, seen)) < 0:
            seen = max(self.at, len(self.text) - len(sign) + 1)
            yield from self.more()
        text, self.at = self.text[self.at : end], end + len(sign)
        return text

    def one_of(self, signs: Sequence[str]) -> ParserSteps[str]:
        """Pass and return the first of these markers that comes next, or return "" if none does. Raises CutShort."""
        for sign in signs:
            if sign and (yield from self.takes(sign)):
                return sign
        return ""

    def value(
        self, end: str, then: Sequence[str], tell: Callable[[int], None] | None = None, *, is_json: bool = False
    ) -> ParserSteps[str]:
        """Return the text up to `end`, like `until`. An `end` that is not followed by one of `then` belongs to the
        value. Raises CutShort.

        tell: called with the place up to which the text is certain to belong to the value. is_json: an `end` within
        quotes belongs to the value too.
        """
        start, first, ends = self.at, 0, 0
        while True:
            try:
                if tell is None:
                    yield from self.until(end)
                else:
                    yield from self._reported_until(end, tell)
                behind = self.at
                yield from self.blanks()
                follows = bool((yield from self.one_of(then)))
            except CutShort:
                if not first:
                    raise
                behind, follows = first, True  # its quotes never close, so they are not quotes
            if follows:
                text = self.text[start : behind - len(end)]
                ends += 1
                if behind == first or ends > MOST_ENDS or not (is_json and ends_in_text(text)):
                    self.at = behind
                    return text
                first = first or behind
            self.at = behind

    def _reported_until(self, end: str, tell: Callable[[int], None]) -> ParserSteps[None]:
        seen = self.at
        while (place := self.text.find(end, seen)) < 0:
            seen = max(self.at, len(self.text) - len(end) + 1)
            tell(seen)
            yield from self.more()
        tell(place)
        self.at = place + len(end)


Parser = Callable[[Cursor, Tools], ParserSteps[ReadResult]]


def ends_in_text(json_text: str) -> bool:
    """Return whether a JSON string has begun and not ended at the end of the text."""
    return '"' in WHOLE_TEXT.sub("", json_text)


def complete_calls(news: Iterable[CallEvent]) -> list[Call]:
    """Return the complete calls."""
    return [event for event in news if isinstance(event, Call)]


def make_call(name: str, arguments: object) -> Call:
    return Call(name, to_json(arguments))
