"""Parsers of tool calls, one for each syntax that models use."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from app.core.json_schema.partial_json import JsonScan, parse_json, to_json, value_at
from app.core.tools.argument_values import AcceptedValues, Literals, TextEnded, accepted_values, parse_argument
from app.core.tools.call_cursor import (
    MOST_ENDS,
    ArgumentPiece,
    Call,
    CallEvent,
    CallStarted,
    Cursor,
    CutShort,
    NotACall,
    Parser,
    ParserSteps,
    ReadResult,
    Tools,
    ends_in_text,
    make_call,
)
from app.core.tools.call_markers import KIMI, MISTRAL, MISTRAL_ID, SLOT, Markers, markers_of
from backends.contract import CALL_ID_PLACEHOLDER, CallFormat, CallSyntax

SEPARATORS = " \t\r\n;,"
ARGUMENTS_KEYS = ("arguments", "parameters")  # models of a family write either of these
NAME_KEYS = ("name", "tool_name")
MEMBER_START = re.compile(r'[\s,]*"((?:[^"\\]|\\.)*)"\s*:\s*(?=\S)')
JSON_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')


def json_calls(text: str, tools: Tools, form: CallFormat) -> list[Call]:
    """Return all calls in a text, or none if any part of the text is not a call."""
    try:
        values = _values(text.strip())
    except ValueError:
        return []
    calls = [_call(value, tools, form) for value in values]
    return [call for call in calls if call is not None] if None not in calls else []


def name_and_arguments(value: object, tools: Tools, form: CallFormat) -> tuple[object, object]:
    """Return the name and the arguments of a call that is written as an object. Either is None if missing."""
    if not isinstance(value, dict):
        return None, None
    inner = value.get("function")
    if isinstance(inner, dict) and "name" in inner:
        value = inner
    if not form.name_key:
        name = next(iter(value), None)
        return (name, value[name]) if len(value) == 1 and name in tools else (None, None)
    name = next((value[key] for key in (form.name_key, *NAME_KEYS) if key in value), None)
    keys = (form.arguments_key, *ARGUMENTS_KEYS)
    return name, next((value[key] for key in keys if key in value), None)


def _call(value: object, tools: Tools, form: CallFormat) -> Call | None:
    name, arguments = name_and_arguments(value, tools, form)
    if isinstance(arguments, str):  # some models put JSON text into JSON
        try:
            arguments = parse_json(arguments)
        except ValueError:
            return None
    if not isinstance(name, str) or name not in tools or not isinstance(arguments, dict):
        return None
    return make_call(name, arguments)


def _values(text: str) -> list[Any]:
    """Return the values in a list, or in a sequence separated by blanks, commas or semicolons.

    Raises ValueError for any other text.
    """
    values, at = list[Any](), 0
    while at < len(text):
        value, at = value_at(text, at)
        values.append(value)
        while at < len(text) and text[at] in SEPARATORS:
            at += 1
    return values[0] if len(values) == 1 and isinstance(values[0], list) else values


class JsonCallScanner:
    """An incremental parser that reports the certain parts of JSON calls as they arrive.

    It stops at anything unexpected. The parser for complete calls then decides.
    """

    def __init__(self, at: int, tools: Tools, form: CallFormat) -> None:
        self.at, self._tools, self._format = at, tools, form
        self._steps = self._all()
        self._text = ""
        self._events: list[CallEvent] = []
        self._is_over = False

    def scan(self, text: str) -> list[CallEvent]:
        """Return the new events in `text`, which is all output so far."""
        self._text, self._events = text, []
        if not self._is_over:
            try:
                next(self._steps)
            except StopIteration:
                self._is_over = True
        return self._events

    def _all(self) -> ParserSteps[None]:
        while True:
            while self.at < len(self._text) and self._text[self.at] in SEPARATORS + "[":
                self.at += 1
            if self.at >= len(self._text):
                yield
                continue
            if self._text[self.at] != "{" or not (yield from self._object()):
                return

    def _object(self) -> ParserSteps[bool]:
        """Parse one object. Return whether it is a call."""
        self.at += 1
        name, depth = "", 1
        arguments: str | None = None
        while True:
            while (member := MEMBER_START.match(self._text, self.at)) is None:
                end = self._text[self.at :].lstrip()
                if end.startswith("}") and arguments is not None:
                    self.at = self._text.index("}", self.at) + 1
                    depth -= 1
                    if not depth:
                        self._events.append(Call(name, arguments))
                        return True
                    continue
                if len(end) > 400 or (end and end[0] not in '",}'):
                    return False
                yield
            key = member[1]
            if not self._format.name_key and key in self._tools and not name:
                name = key
            elif key in (self._format.arguments_key, *ARGUMENTS_KEYS) and name and arguments is None:
                pass
            elif key == "function" and not name and self._text[member.end()] == "{":
                self.at, depth = member.end() + 1, depth + 1
                continue
            else:
                while (value := JSON_STRING.match(self._text, member.end())) is None:
                    if self._text[member.end()] != '"' or len(self._text) - member.end() > 400:
                        return False
                    yield
                if key in (self._format.name_key, *NAME_KEYS):
                    name = value[1]
                    if name not in self._tools:
                        return False
                self.at = value.end()
                continue
            if self._text[member.end()] != "{":
                return False
            arguments = yield from self._arguments(name, member.end())
            if arguments is None:
                return False

    def _arguments(self, name: str, at: int) -> ParserSteps[str | None]:
        """Parse the arguments. Return their text once they are complete, or None if they are not valid JSON."""
        scan, sent, begin = JsonScan(at), at, at
        self._events.append(CallStarted(name))
        while True:
            try:
                scan.read(self._text)
            except ValueError:
                self.at = scan.at
                return None
            if scan.at > sent:
                self._events.append(ArgumentPiece(self._text[sent : scan.at]))
                sent = self.at = scan.at
            if scan.is_complete:
                return self._text[begin:sent]
            yield


JSON_BEGINS = ("{", "[")  # the beginning of a call, or of a list of calls
MOST_AROUND_NAME = 96  # maximum characters around a name, such as an id, a number or a channel
CDATA, CDATA_END = "<![CDATA[", "]]>"
TEXT_ALONE = frozenset({"string"})


def parser_for(form: CallFormat) -> Parser | None:
    """Return the parser for calls of this format.

    Return None if calls, once they have begun, continue to the end of the answer.
    """
    markers = markers_of(form)
    match form.payload:
        case CallSyntax.OBJECTS:
            return _Objects(form, markers).read if markers.closing and markers.opening else None
        case CallSyntax.NAMED | CallSyntax.HARMONY:
            return _Named(form, markers).read
        case CallSyntax.TAGGED:
            return _Tagged(form, markers).read
        case CallSyntax.NESTED:
            return _Nested(form, markers).read
        case CallSyntax.PYTHON:
            return _Python(form, markers).read
        case CallSyntax.GEMMA:
            return _Gemma(form, markers).read


class _OfFormat:
    """The base class of all parsers, with a call format and its markers."""

    def __init__(self, form: CallFormat, markers: Markers) -> None:
        self._format, self._markers = form, markers


class _Objects(_OfFormat):
    """The parser for <tool_call>{"name": …, "arguments": {…}}</tool_call>, and for lists of such objects."""

    def read(self, cursor: Cursor, tools: Tools) -> ParserSteps[ReadResult]:
        opening, closing = self._markers.opening, self._markers.closing
        behind = cursor.at = cursor.text.find(opening) + len(opening)
        yield from cursor.skip_blanks()
        if cursor.text[cursor.at : cursor.at + 1] not in ("", *JSON_BEGINS):
            return ReadResult(cursor.text[:behind], [], cursor.text[behind:])  # the marker is only mentioned
        first = 0  # the end of the call, if the end marker was not in a string of its arguments
        for _ in range(MOST_ENDS):
            try:
                yield from cursor.read_until(closing)
            except CutShort:
                calls = json_calls(cursor.text[behind:], tools, self._format)
                if calls or not first:
                    return ReadResult("" if calls else cursor.text, calls, "")
                break
            whole, rest = cursor.text[: cursor.at], cursor.text[cursor.at :]
            for start in (whole.find(opening), whole.rfind(opening)):  # the model may have abandoned a first attempt
                inner = whole[start + len(opening) : -len(closing)]
                if calls := json_calls(inner, tools, self._format):
                    return ReadResult(whole[:start].rstrip(), calls, rest)
            first = first or cursor.at
            if not ends_in_text(whole[behind : -len(closing)]):
                break  # otherwise the end marker was in a string of its arguments
        return ReadResult(cursor.text[:first], [], cursor.text[first:])


class _Between(_OfFormat, ABC):
    """A parser for calls whose name is between markers."""

    def read(self, cursor: Cursor, tools: Tools) -> ParserSteps[ReadResult]:
        cursor.at = start = len(cursor.text) - len(cursor.text.lstrip())
        behind = start
        cursor.at += len(self._address(cursor.text[start:], tools))
        try:
            for marker in self._markers.outer:
                if (yield from cursor.accept(marker)):
                    behind = behind if behind > start else cursor.at
                    yield from cursor.skip_blanks()
            call = yield from self._call(cursor, tools)
        except (CutShort, NotACall):
            if behind == start:
                behind = start + max(
                    (len(s) for s in (self._markers.last, *self._markers.begins) if cursor.text.startswith(s, start)),
                    default=1,
                )
            return ReadResult(cursor.text[:behind], [], cursor.text[behind:])
        yield from self._close(cursor)
        return ReadResult("", [call], cursor.text[cursor.at :])

    @abstractmethod
    def _call(self, cursor: Cursor, tools: Tools) -> ParserSteps[Call]:
        """Parse the call at the cursor, up to the end of its arguments. Raises CutShort, NotACall."""

    def _address(self, text: str, tools: Tools) -> str:
        """Return the header of a message to a tool, or "" if the text does not begin with one."""
        markers = self._markers
        heads = [f"{joined}{markers.address}{name}" for name in tools for joined in (markers.joined, "")]
        return max((head for head in heads if markers.address and text.startswith(head)), key=len, default="")

    def _left(self) -> Sequence[str]:
        """Return the markers that may still follow a call."""
        return (*self._markers.ends, *self._markers.closes)

    def _close(self, cursor: Cursor) -> ParserSteps[None]:
        """Consume the end markers that the model has written after a call."""
        behind = cursor.at
        try:
            for marker in self._left():
                yield from cursor.skip_blanks()
                if (yield from cursor.accept(marker)):
                    behind = cursor.at
                    if marker in self._markers.closes[-1:] or marker in KIMI:
                        break
        except CutShort:  # the answer ends with its last call
            behind = len(cursor.text) if cursor.text[behind:].isspace() else behind
        cursor.at = behind


class _Named(_Between):
    """The parser for <|tool_call_begin|>functions.name:0<|tool_call_argument_begin|>{…}<|tool_call_end|> and others."""

    def read(self, cursor: Cursor, tools: Tools) -> ParserSteps[ReadResult]:
        start = len(cursor.text) - len(cursor.text.lstrip())
        marked = yield from super().read(cursor, tools)
        if self._format.payload is CallSyntax.NAMED and not marked.calls and not self._markers.outer:
            begin = start + len(self._markers.last)
            if cursor.text[begin:].lstrip().startswith(JSON_BEGINS):  # older models of the family write calls like this
                cursor.at = begin
                while not cursor.at_end:
                    yield
                if calls := json_calls(cursor.text[begin:], tools, self._format):
                    return ReadResult("", calls, "")
                size = len(marked.plain)
                return ReadResult(cursor.text[:size], [], cursor.text[size:])
        return marked

    def _call(self, cursor: Cursor, tools: Tools) -> ParserSteps[Call]:
        markers = self._markers
        if self._format.payload is CallSyntax.HARMONY:
            begin = next((s for s in markers.begins if cursor.text.startswith(s, cursor.at)), None)
            if begin is None:
                raise NotACall
            cursor.at += len(begin)
        elif not (yield from cursor.accept(markers.last)):
            raise NotACall
        head = yield from self._head(cursor, tools)
        if (name := tool_in_header(self._format, markers, head, tools)) is None:
            raise NotACall
        yield from cursor.skip_blanks()
        return (yield from _json(cursor, name))

    def _head(self, cursor: Cursor, tools: Tools) -> ParserSteps[str]:
        """Return the text before the marker of the arguments, and consume both."""
        marker = self._markers.arguments
        most = max(map(len, tools), default=0) + MOST_AROUND_NAME + len(self._markers.inner)
        mine = [marker, self._markers.behind_name, *SLOT.split(self._markers.inner)]
        if self._format.payload is CallSyntax.HARMONY:
            mine += ["<|channel|>", "<|constrain|>"]
        elif self._markers.last == MISTRAL:
            mine.append(MISTRAL_ID)
        while True:
            text = cursor.text[cursor.at : cursor.at + most + len(marker)]
            if (end := text.find(marker)) >= 0:
                cursor.at += end + len(marker)
                return text[:end]
            if len(text) >= most or _is_other(text, marker[0], mine):
                raise NotACall
            yield from cursor.wait()


def tool_in_header(form: CallFormat, markers: Markers, head: str, tools: Tools) -> str | None:
    """Return the tool named in the text before the arguments, or None. Some models omit parts around the name."""
    if form.payload is CallSyntax.HARMONY:
        words = head.strip().partition("<")[0].split(maxsplit=1)
        return words[0] if words and words[0] in tools else None
    head = head.strip()
    prefixes = [part.strip() for part in SLOT.split(markers.inner) if part.strip()]
    prefix = prefixes[-1] if prefixes else ""
    for before in (prefix, "<" + prefix.rpartition("<")[2] if "<" in prefix else ""):
        if before and before in head and before.startswith("<"):
            head = head.rpartition(before)[2]
    if markers.last == MISTRAL:
        head = head.partition(MISTRAL_ID)[0].strip()
    names = [head]
    slot = SLOT.search(form.named)
    if slot and markers.behind_name:
        name, marker, number = head.rpartition(markers.behind_name)
        if marker and (slot[0] == CALL_ID_PLACEHOLDER or number.strip().isdecimal()):
            names.insert(0, name.strip() if slot[0] == CALL_ID_PLACEHOLDER else name)
    for name in names:
        for bare in (name.removeprefix(prefix), name):
            if bare in tools:
                return bare
    return None


class _Tagged(_Between):
    """The parser for <tool_call><function=name><parameter=key>value</parameter></function></tool_call> and others."""

    def _call(self, cursor: Cursor, tools: Tools) -> ParserSteps[Call]:
        markers = self._markers
        if not (yield from cursor.accept(markers.last)):
            raise NotACall
        yield from cursor.skip_blanks()
        name = yield from self._name(cursor, tools)
        schema = tools[name]
        arguments: dict[str, Any] = {}
        while True:
            yield from cursor.skip_blanks()
            behind = cursor.at
            if markers.ends and (yield from cursor.accept(markers.ends[0])):
                if not arguments:
                    cursor.start_call(name)
                    cursor.add_piece("{")
                break
            if arguments and (yield from cursor.accept_any((*markers.ends[1:], *markers.closes))):
                cursor.at = behind  # the model omitted the end marker of its call
                break
            if not (yield from cursor.accept(markers.key)):
                raise NotACall
            key, kinds = yield from self._key(cursor)
            if not arguments:  # before the first key, the name may merely be mentioned
                cursor.start_call(name)
            cursor.add_piece(f"{', ' if arguments else '{'}{to_json(key)}: ")
            arguments[key] = yield from self._value(cursor, accepted_for(schema, key), kinds)
        cursor.add_piece("}")
        return make_call(name, arguments)

    def _left(self) -> Sequence[str]:
        return (*self._markers.ends[1:], *self._markers.closes)

    def _name(self, cursor: Cursor, tools: Tools) -> ParserSteps[str]:
        """Return a tool's name, and consume both the name and the marker after it. Raises CutShort, NotACall."""
        start, markers = cursor.at, self._markers
        for name in sorted(tools, key=len, reverse=True):
            cursor.at = start
            if not name or not (yield from cursor.accept(name)):
                continue
            if markers.behind_name:
                if (yield from cursor.accept(markers.behind_name)):
                    yield from self._number(cursor)
                    return name
                continue
            behind = cursor.at
            yield from cursor.skip_blanks()
            if (yield from cursor.accept_any((markers.key, *markers.ends))):
                cursor.at = behind
                return name
        raise NotACall

    def _number(self, cursor: Cursor) -> ParserSteps[None]:
        """Consume a number or an id after a name."""
        parts = SLOT.split(self._format.named)
        if len(parts) > 1:
            yield from cursor.read_until(parts[1].strip() or '"')

    def _key(self, cursor: Cursor) -> ParserSteps[tuple[str, frozenset[str]]]:
        """Return a key, and the types of its value as indicated by the marker after it. Raises CutShort, NotACall."""
        first = self._markers.keyed[0][0][0]
        key = (yield from cursor.read_until(first)).strip()
        behind = cursor.at
        for tokens, kinds in self._markers.keyed:
            cursor.at = behind
            if (yield from self._passes(cursor, tokens[1:])):
                return key, kinds
        raise NotACall

    def _passes(self, cursor: Cursor, tokens: Sequence[str]) -> ParserSteps[bool]:
        for token in tokens:
            yield from cursor.skip_blanks()
            if not (yield from cursor.accept(token)):
                return False
        return True

    def _value(self, cursor: Cursor, accepted: AcceptedValues, kinds: frozenset[str]) -> ParserSteps[Any]:
        markers = self._markers
        is_text = kinds == TEXT_ALONE or ("string" in kinds and accepted.kinds == TEXT_ALONE and accepted.free)
        then = (markers.key, *markers.ends, *markers.closes)
        if not is_text:
            text = self._bare(
                (yield from cursor.value(markers.value_end, then, is_json="string" not in accepted.kinds))
            )
            if "string" not in kinds and accepted.kinds == TEXT_ALONE:
                accepted = AcceptedValues(frozenset(kinds))
            value = parse_argument(text, accepted)
            cursor.add_piece(to_json(value))
            return value
        begin, wrap = cursor.at, markers.wrap
        sent = -1

        def report(end: int) -> None:
            nonlocal sent
            end -= len(wrap[1])
            if sent < 0:
                if end < begin + len(wrap[0]) + len(CDATA):
                    return
                if CDATA in cursor.text[begin:end].lstrip()[: len(CDATA)]:  # CDATA is reported only once it is complete
                    return
                sent = begin + (len(wrap[0]) if cursor.text.startswith(wrap[0], begin) else 0)
                cursor.add_piece('"')
            if end > sent:
                cursor.add_piece(_inside(cursor.text[sent:end]))
                sent = end

        whole = yield from cursor.value(markers.value_end, then, report)
        text = self._bare(whole)
        if sent < 0:
            cursor.add_piece(to_json(text))
        else:
            start = begin + len(whole) - len(whole.removeprefix(wrap[0]))
            cursor.add_piece(_inside(text[sent - start :]) + '"')
        return text

    def _bare(self, text: str) -> str:
        return without_cdata(text.removeprefix(self._markers.wrap[0]).removesuffix(self._markers.wrap[1]))


class _Nested(_OfFormat):
    """The parser for XML elements that may be nested in arguments. A marker precedes each tag."""

    def read(self, cursor: Cursor, tools: Tools) -> ParserSteps[ReadResult]:
        begin = cursor.at = cursor.text.find(self._markers.last) + len(self._markers.last)
        yield from cursor.skip_blanks()
        try:
            if not (yield from cursor.accept(self._markers.inner)):
                raise NotACall
            yield from cursor.read_until(self._markers.closes[0])
        except (CutShort, NotACall):
            return ReadResult(cursor.text[:begin], [], cursor.text[begin:])
        inner, rest = cursor.text[begin : cursor.at], cursor.text[cursor.at :]
        try:
            return ReadResult("", self.calls(inner.removesuffix(self._markers.closes[0]), tools), rest)
        except ValueError:
            return ReadResult(cursor.text[: cursor.at], [], rest)

    def calls(self, text: str, tools: Tools) -> list[Call]:
        """Return the calls in a text. Raises ValueError."""
        calls, markers = list[Call](), self._markers
        for part in text.split(markers.inner)[1:]:
            name, marker, rest = part.partition(markers.behind_name)
            body, end, _ = rest.partition(markers.ends[0])
            if not marker or not end or name not in tools:
                raise ValueError("no tool is called")
            calls.append(make_call(name, self._elements(body, tools[name], tools[name])))
        return calls

    def _elements(self, text: str, schema: Any, root: Any) -> Any:
        """Return the value of an element: an object of elements, a list of items, or a plain value."""
        key, end = self._markers.key, self._markers.value_end
        elements = list[tuple[str, str]]()
        left = text.strip()
        while left.startswith(key):
            tag, marker, rest = left.removeprefix(key).partition(">")
            close = f"{end}{tag}>"
            body, is_closed, left = rest.partition(close)
            # an element of the same name is nested in this one
            while is_closed and body.count(f"{key}{tag}>") > body.count(close):
                more, is_closed, left = left.partition(close)
                body += close + more
            if not marker or not is_closed:
                raise ValueError("an element has no end")
            elements.append((tag, body))
            left = left.strip()
        if elements and left:
            raise ValueError("something stands behind it")
        properties = schema.get("properties") if isinstance(schema, Mapping) else None
        if elements and all(tag == "item" for tag, _ in elements) and not (properties and "item" in properties):
            items = schema.get("items") if isinstance(schema, Mapping) else None
            return [self._elements(body, items, root) for _, body in elements]
        if elements or schema is root:
            of = properties if isinstance(properties, Mapping) else {}
            return {tag: self._elements(body, of.get(tag), root) for tag, body in elements}
        accepted = accepted_values(schema, root)
        if not text.strip() and accepted.kinds in ({"array"}, {"object"}):
            return [] if accepted.kinds == {"array"} else {}
        return parse_argument(text, accepted)


class _Python(_OfFormat):
    """The parser for <|tool_call_start|>[name(key='value'), …]<|tool_call_end|>."""

    def read(self, cursor: Cursor, tools: Tools) -> ParserSteps[ReadResult]:
        begin = cursor.at = cursor.text.find(self._markers.last) + len(self._markers.last)
        yield from cursor.skip_blanks()
        if cursor.text[cursor.at : cursor.at + 1] not in ("", "["):
            return ReadResult(cursor.text[:begin], [], cursor.text[begin:])
        closing = self._markers.closes[0]
        for _ in range(MOST_ENDS):
            try:
                yield from cursor.read_until(closing)
                inner, is_over = cursor.text[begin : cursor.at].removesuffix(closing), False
            except CutShort:  # the model may omit the end marker
                inner, cursor.at, is_over = cursor.text[begin:], len(cursor.text), True
            calls, half = python_calls(inner, tools)
            if half is None or is_over:
                break  # otherwise the end marker was in a string of its arguments
        if calls is None or half is not None:
            return ReadResult(cursor.text[:begin], [], cursor.text[begin:])
        return ReadResult("", calls, cursor.text[cursor.at :])


def python_calls(text: str, tools: Tools) -> tuple[list[Call] | None, tuple[str, dict[str, Any]] | None]:
    """Return the complete calls and, if a call was cut off, its name and arguments.

    The list of calls is None if the text contains anything else.
    """
    calls, literals = list[Call](), Literals(text)
    name, arguments = "", dict[str, Any]()
    try:
        literals.expect("[")
        while not literals.accept("]"):
            if calls:
                literals.expect(",")
            literals.peek()
            begin = literals.at
            end = text.find("(", begin)
            name, arguments = (text[begin:end] if end > 0 else text[begin:]).strip(), {}
            if end < 0:
                raise TextEnded
            if name not in tools:
                return None, None
            literals.at = end + 1
            literals.pairs("=", ")", arguments)
            calls.append(make_call(name, arguments))
            name = ""
    except TextEnded:
        return calls, (name, arguments)
    except ValueError:
        return None, None
    return calls, None


class _Gemma(_Between):
    """The parser for <|tool_call>call:name{key:<|"|>text<|"|>,other:1}<tool_call|>."""

    def _call(self, cursor: Cursor, tools: Tools) -> ParserSteps[Call]:
        if not (yield from cursor.accept(self._markers.last)):
            raise NotACall
        name = (yield from cursor.read_until("{")).strip().removeprefix("call:")
        if name not in tools:
            raise NotACall
        begin, end = cursor.at, self._markers.ends[0]
        while True:
            try:
                text = yield from cursor.read_until(end)
            except CutShort:
                text, cursor.at = cursor.text[begin:], len(cursor.text)
            text = cursor.text[begin : cursor.at].removesuffix(end)
            literals, arguments = Literals(text), dict[str, Any]()
            try:
                literals.pairs(":", "}", arguments)
            except TextEnded:  # the marker was in a string
                if cursor.at_end and end not in cursor.text[cursor.at :]:
                    raise CutShort from None
                continue
            except ValueError:
                raise NotACall from None
            cursor.at -= len(end) if cursor.text[begin : cursor.at].endswith(end) else 0
            return make_call(name, _fitting(arguments, tools[name]))


def _fitting(arguments: dict[str, Any], schema: object) -> dict[str, Any]:
    """Convert arguments that are written as text to the values they stand for, unless their schema accepts text."""
    fitted = dict[str, Any]()
    for key, value in arguments.items():
        accepted = accepted_for(schema, key)
        is_other = isinstance(value, str) and "string" not in accepted.kinds
        fitted[key] = parse_argument(value, accepted) if is_other else value
    return fitted


def _json(cursor: Cursor, name: str) -> ParserSteps[Call]:
    """Parse a call whose arguments are the object at the cursor. Raises CutShort, NotACall."""
    begin = sent = cursor.at
    scan, has_begun = JsonScan(begin), False
    while True:
        try:
            scan.read(cursor.text)
        except ValueError:
            raise NotACall from None
        if scan.at > sent:
            if not has_begun:
                cursor.start_call(name)
                has_begun = True
            cursor.add_piece(cursor.text[sent : scan.at])
            sent = scan.at
        if scan.is_complete:
            cursor.at = scan.at
            break
        yield from cursor.wait()
    try:
        value = parse_json(cursor.text[begin : cursor.at])
    except ValueError:
        raise NotACall from None
    return make_call(name, value)


def _is_other(text: str, first: str, mine: Sequence[str]) -> bool:
    """Return whether the text contains a marker that does not belong to this call."""
    at = text.find(first)
    while at >= 0:
        rest = text[at:]
        if not any(s and (rest.startswith(s) or s.startswith(rest) or rest in s) for s in mine):
            return True
        at = text.find(first, at + 1)
    return False


def accepted_for(schema: object, key: str) -> AcceptedValues:
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    return accepted_values(properties.get(key) if isinstance(properties, Mapping) else None, schema)


def without_cdata(text: str) -> str:
    """Return a value without its enclosing CDATA section."""
    if text.startswith(CDATA) and text.endswith(CDATA_END):
        return text[len(CDATA) : -len(CDATA_END)]
    return text


def _inside(text: str) -> str:
    """Return a piece of text, escaped for use within a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]
