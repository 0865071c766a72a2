"""The events of a tool call in a model's output, and a cursor over the output while it grows.

A parser receives the output from the first marker on. It pauses whenever more text might change the result, and
continues there when more text arrives. A long call is therefore not parsed from its beginning for each token.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from app.core.json_schema.partial_json import to_json

MOST_ENDS = 32  # the maximum number of end markers within the arguments of one call
COMPLETE_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)  # a complete JSON string
Tools = Mapping[str, Any]  # maps each name to the schema of its arguments
T = TypeVar("T")
ParserSteps = Generator[None, None, T]  # yields whenever it needs more text


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call. `arguments` is the text of a JSON object.

    half: the model's own text if the call was cut off, otherwise "". The arguments of such a call are incomplete.
    """

    name: str
    arguments: str
    half: str = ""


@dataclass(frozen=True, slots=True)
class CallStarted:
    """An event reporting that a call has begun. Its arguments follow in pieces."""

    name: str


@dataclass(frozen=True, slots=True)
class ArgumentPiece:
    """The next piece of the arguments of the call in progress."""

    text: str


CallEvent = Call | CallStarted | ArgumentPiece


class ReadResult(NamedTuple):
    """The result of parsing a text: plain text, calls, and the text that was not parsed."""

    plain: str
    calls: list[Call]
    rest: str


class CutShort(Exception):
    """An answer that ended before it was clear whether it contains a call."""


class NotACall(Exception):
    """Text that turned out not to be a call."""


class Cursor:
    """A position in a text that grows while it is being parsed. `at_end` is True once the text is complete."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.at_end = text, 0, False
        self.events = list[CallStarted | ArgumentPiece]()  # events of the current call that have not been reported yet

    def start_call(self, name: str) -> None:
        """Report that a call of this tool has definitely begun."""
        self.events.append(CallStarted(name))

    def add_piece(self, text: str) -> None:
        """Report the next piece of the call's arguments, as JSON text."""
        if text:
            self.events.append(ArgumentPiece(text))

    def wait(self) -> ParserSteps[None]:
        """Wait for more text. Raises CutShort if none will come."""
        if self.at_end:
            raise CutShort
        yield

    def skip_blanks(self) -> ParserSteps[None]:
        """Skip all whitespace, including any that has not arrived yet."""
        while True:
            while self.at < len(self.text) and self.text[self.at].isspace():
                self.at += 1
            if self.at < len(self.text) or self.at_end:
                return
            yield

    def accept(self, marker: str) -> ParserSteps[bool]:
        """Consume the marker if it comes next. Return whether it did. Raises CutShort."""
        while True:
            if self.text.startswith(marker, self.at):
                self.at += len(marker)
                return True
            if len(self.text) - self.at >= len(marker) or not marker.startswith(self.text[self.at :]):
                return False
            yield from self.wait()

    def read_until(self, marker: str) -> ParserSteps[str]:
        """Return the text before the next occurrence of the marker, and consume both. Raises CutShort."""
        seen = self.at
        while (end := self.text.find(marker, seen)) < 0:
            seen = max(self.at, len(self.text) - len(marker) + 1)
            yield from self.wait()
        text, self.at = self.text[self.at : end], end + len(marker)
        return text

    def accept_any(self, markers: Sequence[str]) -> ParserSteps[str]:
        """Consume and return the first of these markers that comes next, or return "" if none does. Raises CutShort."""
        for marker in markers:
            if marker and (yield from self.accept(marker)):
                return marker
        return ""

    def value(
        self, end: str, then: Sequence[str], report: Callable[[int], None] | None = None, *, is_json: bool = False
    ) -> ParserSteps[str]:
        """Return the text up to `end`, like `read_until`. Raises CutShort.

        then: the markers that may follow `end`. If anything else follows, `end` is part of the value. report: receives
        the position up to which the text is certainly part of the value. is_json: whether an `end` within quotes is
        also part of the value.
        """
        start, first, ends = self.at, 0, 0
        while True:
            try:
                if report is None:
                    yield from self.read_until(end)
                else:
                    yield from self._reported_until(end, report)
                behind = self.at
                yield from self.skip_blanks()
                follows = bool((yield from self.accept_any(then)))
            except CutShort:
                if not first:
                    raise
                behind, follows = first, True  # the quotes are never closed, so they do not quote anything
            if follows:
                text = self.text[start : behind - len(end)]
                ends += 1
                if behind == first or ends > MOST_ENDS or not (is_json and ends_in_text(text)):
                    self.at = behind
                    return text
                first = first or behind
            self.at = behind

    def _reported_until(self, end: str, report: Callable[[int], None]) -> ParserSteps[None]:
        seen = self.at
        while (place := self.text.find(end, seen)) < 0:
            seen = max(self.at, len(self.text) - len(end) + 1)
            report(seen)
            yield from self.wait()
        report(place)
        self.at = place + len(end)


Parser = Callable[[Cursor, Tools], ParserSteps[ReadResult]]


def ends_in_text(json_text: str) -> bool:
    """Return whether the text ends within a JSON string."""
    return '"' in COMPLETE_STRING.sub("", json_text)


def complete_calls(events: Iterable[CallEvent]) -> list[Call]:
    """Return the complete calls among these events."""
    return [event for event in events if isinstance(event, Call)]


def make_call(name: str, arguments: object) -> Call:
    return Call(name, to_json(arguments))
