"""The finder of tool calls in a model's output, by the format that its chat template shows. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from app.core.json_schema.partial_json import certain_part, value_at
from app.core.tools.argument_values import Literals, TextCut, parse_argument
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
    BETWEEN,
    ObjectPeek,
    accepted_for,
    head_tool,
    json_calls,
    name_and_arguments,
    parser_for,
    python_calls,
)
from backends.contract import CallFormat, Payload


def begun_calls(form: CallFormat, text: str, tools: Tools) -> list[Call]:
    """Return the calls of a text that begins with a call marker and was cut off: complete ones, then the incomplete
    one.

    The incomplete one is omitted if it is not clear which tool it calls.
    """
    signs = markers_of(form)
    try:
        match form.payload:
            case Payload.OBJECTS:
                return _json(form, text, tools)
            case Payload.NAMED | Payload.HARMONY:
                return _named(form, signs, text, tools)
            case Payload.TAGGED:
                return _tagged(signs, text, tools)
            case Payload.GEMMA:
                head, sign, rest = text.partition(signs.last)[2].partition("{")
                arguments: dict[str, Any] = {}
                with suppress(TextCut):
                    Literals(rest).pairs(":", "}", arguments)
                return [_half(head.strip().removeprefix("call:") if sign else None, arguments, text, tools)]
            case Payload.PYTHON:
                calls, half = python_calls(text.partition(signs.last)[2], tools)
                return [] if calls is None or half is None else [*calls, _half(half[0], half[1], text, tools)]
            case Payload.NESTED:
                name, sign, _ = text.rpartition(signs.inner)[2].partition(signs.behind_name)
                return [_half(name if sign else None, {}, text, tools)]
    except ValueError:
        return []


def _half(name: object, arguments: object, text: str, tools: Tools) -> Call:
    """Return a call with incomplete arguments, like the model's, so that no reader takes them for complete.

    Raises ValueError.
    """
    if not isinstance(name, str) or name not in tools or not isinstance(arguments, dict):
        raise ValueError("no tool is called")
    return Call(name, make_call(name, arguments).arguments[:-1], text)


def _json(form: CallFormat, text: str, tools: Tools) -> list[Call]:
    """Read {"name": …, "arguments": {…, or several of them, after a marker or a bracket. Raises ValueError."""
    calls, at = list[Call](), max(0, text.find("{"))
    while True:
        while at < len(text) and text[at] in BETWEEN:
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
    if not isinstance(name, str) or name not in tools:  # an answer in JSON has names of its own
        raise ValueError("no tool is called")
    if arguments is None:
        arguments = {}
    return [*calls, _half(name, arguments, text[at:] if calls else text, tools)]


def _named(form: CallFormat, signs: Markers, text: str, tools: Tools) -> list[Call]:
    """Read [TOOL_CALLS]name[ARGS]{… Raises ValueError."""
    begin = signs.last or next((sign for sign in signs.begins if text.startswith(sign)), "")
    rest = text.partition(begin)[2]
    if rest.lstrip().startswith(("{", "[")) and not signs.outer:
        return _json(form, rest, tools)
    head, sign, arguments = rest.partition(signs.arguments)
    name = head_tool(form, signs, head, tools) if sign else None
    return [_half(name, certain_part(arguments), text, tools)]


def _tagged(signs: Markers, text: str, tools: Tools) -> list[Call]:
    """Read <function=name><parameter=key>value</parameter>… Raises ValueError."""
    rest = text.partition(signs.last)[2]
    name = next((n for n in sorted(tools, key=len, reverse=True) if rest.lstrip().startswith(n)), "")
    rest = rest.lstrip()[len(name) :]
    if not name or not (rest.startswith(signs.behind_name) if signs.behind_name else "<" in rest):
        raise ValueError("no tool is called")
    values: dict[str, Any] = {}
    for part in rest.split(signs.key)[1:]:
        tokens = signs.keyed[0][0] if signs.keyed else (">",)
        key, _, value = part.partition(tokens[0])
        for separators, kinds in signs.keyed:
            left = value
            for token in separators[1:]:
                left = left.lstrip()
                if not left.startswith(token):
                    break
                left = left.removeprefix(token)
            else:
                whole, is_whole, _ = left.rpartition(signs.value_end)
                if is_whole:
                    bare = whole.removeprefix(signs.wrap[0]).removesuffix(signs.wrap[1])
                    accepted = accepted_for(tools[name], key.strip())
                    is_text = kinds == frozenset({"string"})
                    values[key.strip()] = bare if is_text else parse_argument(bare, accepted)
                break
    return [_half(name, values, text, tools)]


NEWER_MISTRAL = CallFormat(Payload.NAMED, lead=MISTRAL, named="[ARGS]")


class CallFinder:
    """A parser that separates a model's output into text and calls. A call of an unknown tool stays text.

    in_pieces: once a call's name has arrived, the certain part of its arguments is reported as it arrives: a
    CallStarted, then pieces, then the Call. If it turns out not to be a call, it is reported as one that was cut
    off.
    """

    def __init__(self, form: CallFormat, tools: Tools, *, in_pieces: bool = False) -> None:
        self._format, self._tools, self._in_pieces = form, tools, in_pieces
        self._reader = parser_for(form)
        signs = self._of_format = markers_of(form)
        self._signs = signs.begins
        if signs.is_spoken:  # models sometimes omit the marker before it
            self._signs += tuple(f"{signs.last}{name}{signs.behind_name}" for name in tools)
        for name in tools if signs.address else ():
            head = f"{signs.address}{name}{signs.outer[0]}"
            self._signs += head, f"{signs.joined}{head}"
        self._held = ""  # not reported yet: it may be part of a call, or whitespace before one
        # the beginning of the answer, until it is clear what it begins with
        self._first: str | None = "" if form.prompt_marker else None
        self._inside = False
        self._cursor = Cursor("")
        self._reading: ParserSteps[ReadResult] | None = None  # set while a call may be in progress
        self._begun = False  # whether anything but whitespace has arrived
        self._peek: ObjectPeek | None = None
        self._name: str | None = None  # the name of the call being reported in pieces
        self._pieces: list[str] = []
        self._n_reported = 0  # calls in the held text that were already reported

    def push(self, text: str) -> tuple[str, list[CallEvent]]:
        """Return the text that can be shown now, and the events of calls."""
        if self._first is not None:
            text = self._opening(text)
        self._held += text
        if self._reader is not None:
            return self._marked(at_end=False)
        return self._to_the_end(), self._looked()

    def flush(self, *, is_cut: bool = False) -> tuple[str, list[CallEvent]]:
        """Return the rest when the answer ends. is_cut: the answer ended because of its length, maybe in a call."""
        text, news = "", list[CallEvent]()
        self._held += self._opening("", at_end=True) if self._first is not None else ""
        has_begun = is_cut and (self._inside or self._reading is not None)
        tail = self._held[len(self._held) - self._ending() :] if has_begun else ""
        self._held = held = self._held.removesuffix(tail)  # half a marker is not part of a call
        if self._reader is not None:
            text, news = self._marked(at_end=True, is_cut=is_cut)
        elif self._inside:
            news = self._rest_of_the_answer()
        rest, self._held = self._held, ""
        if has_begun and not any(isinstance(event, Call) for event in news):
            calls = begun_calls(self._format, held, self._tools)
            text, rest = ("", "") if calls else (text, rest + tail)
            news += self._finished(calls)
        if self._name is not None:  # it was reported in pieces and never ended
            news.append(self._broken(held))
            text, rest = "", ""
        return text + rest, news

    def _opening(self, text: str, *, at_end: bool = False) -> str:
        """Return the beginning of an answer whose first marker was written, at least in part, by the prompt."""
        first, marker = (self._first or "") + text, self._format.answer_marker
        if marker.startswith(first) and len(first) < len(marker) and not at_end:
            self._first = first
            return ""
        self._first = None
        if not first:
            return ""
        return first.removeprefix(marker) if marker and first.startswith(marker) else self._format.prompt_marker + first

    def _marked(self, *, at_end: bool, is_cut: bool = False) -> tuple[str, list[CallEvent]]:
        plain, news = "", list[CallEvent]()
        assert self._reader is not None
        while True:
            if self._reading is not None:
                before = self._held
                marked = self._read_on(self._reading, news, at_end=at_end)
                if marked is None:
                    return plain, news
                self._reading = self._peek = None
                self._held = marked.rest
                if self._name is None or marked.calls:
                    plain += marked.plain if not self._n_reported else ""
                    news += self._finished(marked.calls)
                elif is_cut and at_end:
                    return plain, news
                else:
                    news.append(self._broken(before[: self._cursor.at]))
                    self._held = before[self._cursor.at :]
                self._n_reported = 0
            start = self._start()
            if start < 0:
                return plain + self._sure(), news
            text = self._held[:start].rstrip()
            plain, self._held = plain + text, self._held[len(text) :]
            self._cursor = Cursor(self._held)
            self._reading = self._reader(self._cursor, self._tools)
            if self._format.payload is Payload.OBJECTS:
                at = self._held.find(self._of_format.opening) + len(self._of_format.opening)
                self._peek = ObjectPeek(at, self._tools, self._format)

    def _read_on(self, reading: ParserSteps[ReadResult], news: list[CallEvent], *, at_end: bool) -> ReadResult | None:
        """Continue the reading. Return its result, or None while it waits for more text."""
        cursor = self._cursor
        cursor.text, cursor.at_end, marked = self._held, at_end, None
        try:
            next(reading)
        except StopIteration as read:
            marked = read.value
        news += self._looked()
        if self._in_pieces:
            news += self._reported(cursor.news)
        cursor.news = []
        return marked

    def _looked(self) -> list[CallEvent]:
        """Return the events of the calls being written."""
        if self._peek is None or not self._in_pieces:
            return []
        return self._reported(self._peek.look(self._held))

    def _reported(self, news: Sequence[CallEvent]) -> list[CallEvent]:
        for event in news:
            match event:
                case CallStarted(name):
                    self._name, self._pieces = name, []
                case ArgumentPiece(text):
                    self._pieces.append(text)
                case Call():
                    self._name = None
                    self._n_reported += 1
        return list(news)

    def _finished(self, calls: Sequence[Call]) -> list[CallEvent]:
        """Return the calls not yet reported. The call reported in pieces becomes the sum of its pieces."""
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
        """Return the text before calls that take up the rest of the answer, as Mistral's and Llama's do."""
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
        self._peek = ObjectPeek(len(self._sign_held()), self._tools, self._format)
        return plain

    def _sign_held(self) -> str:
        return next((sign for sign in self._signs if self._held.startswith(sign)), "")

    def _rest_of_the_answer(self) -> list[CallEvent]:
        text = self._held.strip().removeprefix(self._sign_held())
        calls = json_calls(text, self._tools, self._format)
        # perhaps written in the form of the family's newer models
        if not calls and self._sign_held() == MISTRAL and not self._n_reported:
            finder = CallFinder(NEWER_MISTRAL, self._tools)
            (plain, some), (rest, more) = finder.push(self._held), finder.flush()
            calls = [] if (plain + rest).strip() else [c for c in (*some, *more) if isinstance(c, Call)]
        if calls:
            self._held = ""
            return self._finished(calls)
        if self._n_reported and self._peek is not None:  # other text follows the calls
            self._held = self._held[self._peek.at :]
        return []

    def _start(self) -> int:
        """Return the place of the first marker, or -1 if there is none."""
        return min((at for sign in self._signs if (at := self._held.find(sign)) >= 0), default=-1)

    def _sure(self) -> str:
        """Return all text except whitespace at the end and a possible beginning of a marker."""
        kept = marker_start_length(self._held, self._signs)
        sure = self._held[: len(self._held) - kept].rstrip()
        self._held = self._held[len(sure) :]
        self._begun = self._begun or bool(sure)
        return sure

    def _ending(self) -> int:
        """Return how many characters at the end of the text may begin a marker that ends something."""
        signs = self._of_format
        after = (tokens[0] for tokens, _ in signs.keyed)
        return marker_start_length(self._held, (*signs.ends, *signs.closes, signs.closing, signs.value_end, *after))
