"""The detection of tool calls in a model's output, in the format of its chat template."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from app.core.json_schema.partial_json import certain_part, value_at
from app.core.tools.argument_values import Literals, TextEnded, parse_argument
from app.core.tools.call_cursor import (
    ArgumentPiece,
    Call,
    CallEvent,
    CallStarted,
    Cursor,
    ParserSteps,
    ReadResult,
    Tools,
    make_call,
)
from app.core.tools.call_markers import MISTRAL, Markers, marker_start_length, markers_of
from app.core.tools.call_parsers import (
    SEPARATORS,
    JsonCallScanner,
    accepted_for,
    json_calls,
    name_and_arguments,
    parser_for,
    python_calls,
    tool_in_header,
)
from backends.contract import CallFormat, CallSyntax


def truncated_calls(form: CallFormat, text: str, tools: Tools) -> list[Call]:
    """Return the calls in a text that begins with a call marker and was cut off.

    The complete calls come first, then the incomplete one. The latter is omitted if it is unclear which tool it calls.
    """
    markers = markers_of(form)
    try:
        match form.payload:
            case CallSyntax.OBJECTS:
                return _json(form, text, tools)
            case CallSyntax.NAMED | CallSyntax.HARMONY:
                return _named(form, markers, text, tools)
            case CallSyntax.TAGGED:
                return _tagged(markers, text, tools)
            case CallSyntax.GEMMA:
                head, marker, rest = text.partition(markers.last)[2].partition("{")
                arguments: dict[str, Any] = {}
                with suppress(TextEnded):
                    Literals(rest).pairs(":", "}", arguments)
                return [_half(head.strip().removeprefix("call:") if marker else None, arguments, text, tools)]
            case CallSyntax.PYTHON:
                calls, half = python_calls(text.partition(markers.last)[2], tools)
                return [] if calls is None or half is None else [*calls, _half(half[0], half[1], text, tools)]
            case CallSyntax.NESTED:
                name, marker, _ = text.rpartition(markers.inner)[2].partition(markers.behind_name)
                return [_half(name if marker else None, {}, text, tools)]
    except ValueError:
        return []


def _half(name: object, arguments: object, text: str, tools: Tools) -> Call:
    """Return a call with incomplete arguments. Raises ValueError.

    The closing brace is omitted, so the arguments cannot be mistaken for complete ones.
    """
    if not isinstance(name, str) or name not in tools or not isinstance(arguments, dict):
        raise ValueError("no tool is called")
    return Call(name, make_call(name, arguments).arguments[:-1], text)


def _json(form: CallFormat, text: str, tools: Tools) -> list[Call]:
    """Parse one or more objects like `{"name": …, "arguments": {…`, after a marker or a bracket. Raises ValueError."""
    calls, at = list[Call](), max(0, text.find("{"))
    while True:
        while at < len(text) and text[at] in SEPARATORS:
            at += 1
        try:
            _, end = value_at(text, at)
        except ValueError:
            break
        if not (whole := json_calls(text[at:end], tools, form)):
            raise ValueError("no tool is called")
        calls, at = calls + whole, end
    if at == len(text):
        return calls
    value = certain_part(text[at:])
    name, arguments = name_and_arguments(value, tools, form)
    if not isinstance(name, str) or name not in tools:  # it is an answer in JSON that has a name of its own
        raise ValueError("no tool is called")
    if arguments is None:
        arguments = {}
    return [*calls, _half(name, arguments, text[at:] if calls else text, tools)]


def _named(form: CallFormat, markers: Markers, text: str, tools: Tools) -> list[Call]:
    """Parse `[TOOL_CALLS]name[ARGS]{…`. Raises ValueError."""
    begin = markers.last or next((marker for marker in markers.begins if text.startswith(marker)), "")
    rest = text.partition(begin)[2]
    if rest.lstrip().startswith(("{", "[")) and not markers.outer:
        return _json(form, rest, tools)
    head, marker, arguments = rest.partition(markers.arguments)
    name = tool_in_header(form, markers, head, tools) if marker else None
    return [_half(name, certain_part(arguments), text, tools)]


def _tagged(markers: Markers, text: str, tools: Tools) -> list[Call]:
    """Parse `<function=name><parameter=key>value</parameter>…`. Raises ValueError."""
    rest = text.partition(markers.last)[2]
    name = next((n for n in sorted(tools, key=len, reverse=True) if rest.lstrip().startswith(n)), "")
    rest = rest.lstrip()[len(name) :]
    if not name or not (rest.startswith(markers.behind_name) if markers.behind_name else "<" in rest):
        raise ValueError("no tool is called")
    values: dict[str, Any] = {}
    for part in rest.split(markers.key)[1:]:
        tokens = markers.keyed[0][0] if markers.keyed else (">",)
        key, _, value = part.partition(tokens[0])
        for separators, kinds in markers.keyed:
            left = value
            for token in separators[1:]:
                left = left.lstrip()
                if not left.startswith(token):
                    break
                left = left.removeprefix(token)
            else:
                whole, is_whole, _ = left.rpartition(markers.value_end)
                if is_whole:
                    bare = whole.removeprefix(markers.wrap[0]).removesuffix(markers.wrap[1])
                    accepted = accepted_for(tools[name], key.strip())
                    is_text = kinds == frozenset({"string"})
                    values[key.strip()] = bare if is_text else parse_argument(bare, accepted)
                break
    return [_half(name, values, text, tools)]


NEWER_MISTRAL = CallFormat(CallSyntax.NAMED, lead=MISTRAL, named="[ARGS]")


class CallFinder:
    """A parser that separates a model's output into text and calls. A call of an unknown tool is treated as text.

    in_pieces: whether to report the arguments of a call as they arrive, once its name is known. The events are one
    CallStarted, any number of ArgumentPiece events, and finally the Call. If it turns out not to be a call, it is
    reported as one that was cut off.
    """

    def __init__(self, form: CallFormat, tools: Tools, *, in_pieces: bool = False) -> None:
        self._format, self._tools, self._in_pieces = form, tools, in_pieces
        self._reader = parser_for(form)
        markers = self._of_format = markers_of(form)
        self._markers = markers.begins
        if markers.is_spoken:  # models sometimes omit the marker that comes before `last`
            self._markers += tuple(f"{markers.last}{name}{markers.behind_name}" for name in tools)
        for name in tools if markers.address else ():
            head = f"{markers.address}{name}{markers.outer[0]}"
            self._markers += head, f"{markers.joined}{head}"
        self._held = ""  # text not reported yet, because it may belong to a call or be whitespace before one
        # the beginning of the answer while it may still be the answer marker; None afterwards
        self._first: str | None = "" if form.prompt_marker else None
        self._inside = False
        self._cursor = Cursor("")
        self._reading: ParserSteps[ReadResult] | None = None  # set while a call may be in progress
        self._begun = False  # whether anything but whitespace has arrived
        self._scanner: JsonCallScanner | None = None
        self._name: str | None = None  # the name of the call being reported in pieces
        self._pieces: list[str] = []
        self._n_reported = 0  # calls in the held text that were already reported

    def push(self, text: str) -> tuple[str, list[CallEvent]]:
        """Process more output. Return the text that can be shown now, and the events of calls."""
        if self._first is not None:
            text = self._opening(text)
        self._held += text
        if self._reader is not None:
            return self._marked(at_end=False)
        return self._to_the_end(), self._looked()

    def flush(self, *, is_cut: bool = False) -> tuple[str, list[CallEvent]]:
        """Return the remaining text and events when the answer ends.

        is_cut: whether the answer reached its maximum length, possibly within a call.
        """
        text, events = "", list[CallEvent]()
        self._held += self._opening("", at_end=True) if self._first is not None else ""
        has_begun = is_cut and (self._inside or self._reading is not None)
        tail = self._held[len(self._held) - self._ending() :] if has_begun else ""
        self._held = held = self._held.removesuffix(tail)  # an incomplete marker is not part of a call
        if self._reader is not None:
            text, events = self._marked(at_end=True, is_cut=is_cut)
        elif self._inside:
            events = self._rest_of_the_answer()
        rest, self._held = self._held, ""
        if has_begun and not any(isinstance(event, Call) for event in events):
            calls = truncated_calls(self._format, held, self._tools)
            text, rest = ("", "") if calls else (text, rest + tail)
            events += self._finished(calls)
        if self._name is not None:  # it was reported in pieces and never ended
            events.append(self._broken(held))
            text, rest = "", ""
        return text + rest, events

    def _opening(self, text: str, *, at_end: bool = False) -> str:
        """Return the beginning of an answer.

        If the prompt already contained part of its first marker, that part is restored.
        """
        first, marker = (self._first or "") + text, self._format.answer_marker
        if marker.startswith(first) and len(first) < len(marker) and not at_end:
            self._first = first
            return ""
        self._first = None
        if not first:
            return ""
        return first.removeprefix(marker) if marker and first.startswith(marker) else self._format.prompt_marker + first

    def _marked(self, *, at_end: bool, is_cut: bool = False) -> tuple[str, list[CallEvent]]:
        plain, events = "", list[CallEvent]()
        assert self._reader is not None
        while True:
            if self._reading is not None:
                before = self._held
                marked = self._read_on(self._reading, events, at_end=at_end)
                if marked is None:
                    return plain, events
                self._reading = self._scanner = None
                self._held = marked.rest
                if self._name is None or marked.calls:
                    plain += marked.plain if not self._n_reported else ""
                    events += self._finished(marked.calls)
                elif is_cut and at_end:
                    return plain, events
                else:
                    events.append(self._broken(before[: self._cursor.at]))
                    self._held = before[self._cursor.at :]
                self._n_reported = 0
            start = self._start()
            if start < 0:
                return plain + self._sure(), events
            text = self._held[:start].rstrip()
            plain, self._held = plain + text, self._held[len(text) :]
            self._cursor = Cursor(self._held)
            self._reading = self._reader(self._cursor, self._tools)
            if self._format.payload is CallSyntax.OBJECTS:
                at = self._held.find(self._of_format.opening) + len(self._of_format.opening)
                self._scanner = JsonCallScanner(at, self._tools, self._format)

    def _read_on(self, reading: ParserSteps[ReadResult], events: list[CallEvent], *, at_end: bool) -> ReadResult | None:
        """Continue parsing. Return the result, or None if the parser needs more text."""
        cursor = self._cursor
        cursor.text, cursor.at_end, marked = self._held, at_end, None
        try:
            next(reading)
        except StopIteration as read:
            marked = read.value
        events += self._looked()
        if self._in_pieces:
            events += self._reported(cursor.events)
        cursor.events = []
        return marked

    def _looked(self) -> list[CallEvent]:
        """Return the events of calls that are still being written."""
        if self._scanner is None or not self._in_pieces:
            return []
        return self._reported(self._scanner.scan(self._held))

    def _reported(self, events: Sequence[CallEvent]) -> list[CallEvent]:
        for event in events:
            match event:
                case CallStarted(name):
                    self._name, self._pieces = name, []
                case ArgumentPiece(text):
                    self._pieces.append(text)
                case Call():
                    self._name = None
                    self._n_reported += 1
        return list(events)

    def _finished(self, calls: Sequence[Call]) -> list[CallEvent]:
        """Return the calls that were not reported yet.

        The arguments of a call that was reported in pieces consist of these pieces.
        """
        left = list[CallEvent](calls[self._n_reported :])
        if self._name is not None and left and isinstance(first := left[0], Call):
            arguments = "".join(self._pieces)
            left[0] = Call(self._name, arguments, first.half)
            self._name = None
        return left

    def _broken(self, text: str) -> Call:
        assert self._name is not None
        call = Call(self._name, "".join(self._pieces), text or self._name)
        self._name = None
        return call

    def _to_the_end(self) -> str:
        """Return the text before calls that continue to the end of the answer, like the calls of Mistral and Llama."""
        if self._inside:
            return ""
        start = self._start()
        is_bare = not self._of_format.opening
        if is_bare and not self._begun and self._held.lstrip().startswith("{"):
            start = 0
        if start < 0:
            return self._sure()
        plain, self._held = self._held[:start].rstrip(), self._held[start:]
        self._inside = True
        self._scanner = JsonCallScanner(len(self._held_marker()), self._tools, self._format)
        return plain

    def _held_marker(self) -> str:
        return next((marker for marker in self._markers if self._held.startswith(marker)), "")

    def _rest_of_the_answer(self) -> list[CallEvent]:
        text = self._held.strip().removeprefix(self._held_marker())
        calls = json_calls(text, self._tools, self._format)
        # the model may have used the form of newer models of its family
        if not calls and self._held_marker() == MISTRAL and not self._n_reported:
            finder = CallFinder(NEWER_MISTRAL, self._tools)
            (plain, some), (rest, more) = finder.push(self._held), finder.flush()
            calls = [] if (plain + rest).strip() else [c for c in (*some, *more) if isinstance(c, Call)]
        if calls:
            self._held = ""
            return self._finished(calls)
        if self._n_reported and self._scanner is not None:  # other text follows the calls
            self._held = self._held[self._scanner.at :]
        return []

    def _start(self) -> int:
        """Return the position of the first marker, or -1 if there is none."""
        return min((at for marker in self._markers if (at := self._held.find(marker)) >= 0), default=-1)

    def _sure(self) -> str:
        """Return all text except trailing whitespace and anything that may be the beginning of a marker."""
        kept = marker_start_length(self._held, self._markers)
        sure = self._held[: len(self._held) - kept].rstrip()
        self._held = self._held[len(sure) :]
        self._begun = self._begun or bool(sure)
        return sure

    def _ending(self) -> int:
        """Return how many trailing characters may be the beginning of an end marker."""
        markers = self._of_format
        after = (tokens[0] for tokens, _ in markers.keyed)
        return marker_start_length(
            self._held, (*markers.ends, *markers.closes, markers.closing, markers.value_end, *after)
        )
