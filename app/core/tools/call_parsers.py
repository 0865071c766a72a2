"""Parsers of tool calls, one for each form in which models write them. Pure."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from app.core.json_schema.partial_json import JsonScan, parse_json, to_json, value_at
from app.core.tools.argument_values import AcceptedValues, Literals, TextCut, accepted_values, parse_argument
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
from backends.contract import ID, CallFormat, Payload

BETWEEN = " \t\r\n;,"
ARGUMENTS = ("arguments", "parameters")  # models of a family write either of these
NAMES = ("name", "tool_name")
MEMBER = re.compile(r'[\s,]*"((?:[^"\\]|\\.)*)"\s*:\s*(?=\S)')
TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')


def json_calls(text: str, tools: Tools, form: CallFormat) -> list[Call]:
    """Return all calls in a text, or none if any of it is something else."""
    try:
        values = _values(text.strip())
    except ValueError:
        return []
    calls = [_call(value, tools, form) for value in values]
    return [call for call in calls if call is not None] if None not in calls else []


def name_and_arguments(value: object, tools: Tools, form: CallFormat) -> tuple[object, object]:
    """Return the name and the arguments of the call in an object; each is None if missing."""
    if not isinstance(value, dict):
        return None, None
    inner = value.get("function")
    if isinstance(inner, dict) and "name" in inner:
        value = inner
    if not form.name_key:
        name = next(iter(value), None)
        return (name, value[name]) if len(value) == 1 and name in tools else (None, None)
    name = next((value[key] for key in (form.name_key, *NAMES) if key in value), None)
    keys = (form.arguments_key, *ARGUMENTS)
    return name, next((value[key] for key in keys if key in value), None)


def _call(value: object, tools: Tools, form: CallFormat) -> Call | None:
    name, arguments = name_and_arguments(value, tools, form)
    if isinstance(arguments, str):  # some models write JSON within JSON
        try:
            arguments = parse_json(arguments)
        except ValueError:
            return None
    if not isinstance(name, str) or name not in tools or not isinstance(arguments, dict):
        return None
    return make_call(name, arguments)


def _values(text: str) -> list[Any]:
    """Return the values of a list, or all values in sequence, separated by blanks or semicolons.

    Raises ValueError for any other text.
    """
    values, at = list[Any](), 0
    while at < len(text):
        value, at = value_at(text, at)
        values.append(value)
        while at < len(text) and text[at] in BETWEEN:
            at += 1
    return values[0] if len(values) == 1 and isinstance(values[0], list) else values


class ObjectPeek:
    """Reports the certain parts of calls while they arrive.

    It stops at anything unexpected, and the parser of the complete calls decides.
    """

    def __init__(self, at: int, tools: Tools, form: CallFormat) -> None:
        self.at, self._tools, self._format = at, tools, form
        self._steps = self._all()
        self._text = ""
        self._news: list[CallEvent] = []
        self._is_over = False

    def look(self, text: str) -> list[CallEvent]:
        """Return the new events of the calls so far."""
        self._text, self._news = text, []
        if not self._is_over:
            try:
                next(self._steps)
            except StopIteration:
                self._is_over = True
        return self._news

    def _all(self) -> ParserSteps[None]:
        while True:
            while self.at < len(self._text) and self._text[self.at] in BETWEEN + "[":
                self.at += 1
            if self.at >= len(self._text):
                yield
                continue
            if self._text[self.at] != "{" or not (yield from self._object()):
                return

    def _object(self) -> ParserSteps[bool]:
        """Read one object. Return whether it was a call."""
        self.at += 1
        name, depth = "", 1
        arguments: str | None = None
        while True:
            while (member := MEMBER.match(self._text, self.at)) is None:
                end = self._text[self.at :].lstrip()
                if end.startswith("}") and arguments is not None:
                    self.at = self._text.index("}", self.at) + 1
                    depth -= 1
                    if not depth:
                        self._news.append(Call(name, arguments))
                        return True
                    continue
                if len(end) > 400 or (end and end[0] not in '",}'):
                    return False
                yield
            key = member[1]
            if not self._format.name_key and key in self._tools and not name:
                name = key
            elif key in (self._format.arguments_key, *ARGUMENTS) and name and arguments is None:
                pass
            elif key == "function" and not name and self._text[member.end()] == "{":
                self.at, depth = member.end() + 1, depth + 1
                continue
            else:
                while (value := TEXT.match(self._text, member.end())) is None:
                    if self._text[member.end()] != '"' or len(self._text) - member.end() > 400:
                        return False
                    yield
                if key in (self._format.name_key, *NAMES):
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
        """Read the arguments. Return them as text once they are complete."""
        scan, sent, begin = JsonScan(at), at, at
        self._news.append(CallStarted(name))
        while True:
            try:
                scan.read(self._text)
            except ValueError:
                self.at = scan.at
                return None
            if scan.at > sent:
                self._news.append(ArgumentPiece(self._text[sent : scan.at]))
                sent = self.at = scan.at
            if scan.is_whole:
                return self._text[begin:sent]
            yield


JSON_BEGINS = ("{", "[")  # the beginning of a call or of a list of calls
MOST_AROUND_NAME = 96  # maximum characters around a name: an id, a number, a channel
CDATA, CDATA_END = "<![CDATA[", "]]>"
TEXT_ALONE = frozenset({"string"})


def parser_for(form: CallFormat) -> Parser | None:
    """Return the parser for calls of this format, or None if they fill the rest of the answer once they have begun."""
    signs = markers_of(form)
    match form.payload:
        case Payload.OBJECTS:
            return _Objects(form, signs).read if signs.closing and signs.opening else None
        case Payload.NAMED | Payload.HARMONY:
            return _Named(form, signs).read
        case Payload.TAGGED:
            return _Tagged(form, signs).read
        case Payload.NESTED:
            return _Nested(form, signs).read
        case Payload.PYTHON:
            return _Python(form, signs).read
        case Payload.GEMMA:
            return _Gemma(form, signs).read


class _OfFormat:
    """The format that a parser reads, with its markers."""

    def __init__(self, form: CallFormat, signs: Markers) -> None:
        self._format, self._signs = form, signs


class _Objects(_OfFormat):
    """The parser of <tool_call>{"name": …, "arguments": {…}}</tool_call>, and of lists of these."""

    def read(self, cursor: Cursor, tools: Tools) -> ParserSteps[ReadResult]:
        opening, closing = self._signs.opening, self._signs.closing
        behind = cursor.at = cursor.text.find(opening) + len(opening)
        yield from cursor.blanks()
        if cursor.text[cursor.at : cursor.at + 1] not in ("", *JSON_BEGINS):
            return ReadResult(cursor.text[:behind], [], cursor.text[behind:])  # the marker is only mentioned
        first = 0  # where the call ended, unless the marker was in a string of its arguments
        for _ in range(MOST_ENDS):
            try:
                yield from cursor.until(closing)
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
    """A parser of calls whose name is between markers."""

    def read(self, cursor: Cursor, tools: Tools) -> ParserSteps[ReadResult]:
        cursor.at = start = len(cursor.text) - len(cursor.text.lstrip())
        behind = start
        cursor.at += len(self._address(cursor.text[start:], tools))
        try:
            for sign in self._signs.outer:
                if (yield from cursor.takes(sign)):
                    behind = behind if behind > start else cursor.at
                    yield from cursor.blanks()
            call = yield from self._call(cursor, tools)
        except (CutShort, NotACall):
            if behind == start:
                behind = start + max(
                    (len(s) for s in (self._signs.last, *self._signs.begins) if cursor.text.startswith(s, start)),
                    default=1,
                )
            return ReadResult(cursor.text[:behind], [], cursor.text[behind:])
        yield from self._close(cursor)
        return ReadResult("", [call], cursor.text[cursor.at :])

    @abstractmethod
    def _call(self, cursor: Cursor, tools: Tools) -> ParserSteps[Call]:
        """Return the call that begins here, read up to the end of its arguments. Raises CutShort, NotACall."""

    def _address(self, text: str, tools: Tools) -> str:
        """Return the head of a message to a tool, if one begins here."""
        signs = self._signs
        heads = [f"{joined}{signs.address}{name}" for name in tools for joined in (signs.joined, "")]
        return max((head for head in heads if signs.address and text.startswith(head)), key=len, default="")

    def _left(self) -> Sequence[str]:
        """Return the markers that may still follow a call."""
        return (*self._signs.ends, *self._signs.closes)

    def _close(self, cursor: Cursor) -> ParserSteps[None]:
        """Pass the signs that end it, as far as they are written."""
        behind = cursor.at
        try:
            for sign in self._left():
                yield from cursor.blanks()
                if (yield from cursor.takes(sign)):
                    behind = cursor.at
                    if sign in self._signs.closes[-1:] or sign in KIMI:
                        break
        except CutShort:  # the answer ends with its last call
            behind = len(cursor.text) if cursor.text[behind:].isspace() else behind
        cursor.at = behind


class _Named(_Between):
    """The parser of <|tool_call_begin|>functions.name:0<|tool_call_argument_begin|>{…}<|tool_call_end|> and the
    like."""

    def read(self, cursor: Cursor, tools: Tools) -> ParserSteps[ReadResult]:
        start = len(cursor.text) - len(cursor.text.lstrip())
        marked = yield from super().read(cursor, tools)
        if self._format.payload is Payload.NAMED and not marked.calls and not self._signs.outer:
            begin = start + len(self._signs.last)
            if cursor.text[begin:].lstrip().startswith(JSON_BEGINS):  # as older models of the family write calls
                cursor.at = begin
                while not cursor.at_end:
                    yield
                if calls := json_calls(cursor.text[begin:], tools, self._format):
                    return ReadResult("", calls, "")
                size = len(marked.plain)
                return ReadResult(cursor.text[:size], [], cursor.text[size:])
        return marked

    def _call(self, cursor: Cursor, tools: Tools) -> ParserSteps[Call]:
        signs = self._signs
        if self._format.payload is Payload.HARMONY:
            begin = next((s for s in signs.begins if cursor.text.startswith(s, cursor.at)), None)
            if begin is None:
                raise NotACall
            cursor.at += len(begin)
        elif not (yield from cursor.takes(signs.last)):
            raise NotACall
        head = yield from self._head(cursor, tools)
        if (name := head_tool(self._format, signs, head, tools)) is None:
            raise NotACall
        yield from cursor.blanks()
        return (yield from _json(cursor, name))

    def _head(self, cursor: Cursor, tools: Tools) -> ParserSteps[str]:
        """Return the text before the marker of the arguments, and pass both."""
        sign = self._signs.arguments
        most = max(map(len, tools), default=0) + MOST_AROUND_NAME + len(self._signs.inner)
        mine = [sign, self._signs.behind_name, *SLOT.split(self._signs.inner)]
        if self._format.payload is Payload.HARMONY:
            mine += ["<|channel|>", "<|constrain|>"]
        elif self._signs.last == MISTRAL:
            mine.append(MISTRAL_ID)
        while True:
            text = cursor.text[cursor.at : cursor.at + most + len(sign)]
            if (end := text.find(sign)) >= 0:
                cursor.at += end + len(sign)
                return text[:end]
            if len(text) >= most or _is_other(text, sign[0], mine):
                raise NotACall
            yield from cursor.more()


def head_tool(form: CallFormat, signs: Markers, head: str, tools: Tools) -> str | None:
    """Return the tool meant by the text before its arguments. Some models omit parts around the name."""
    if form.payload is Payload.HARMONY:
        words = head.strip().partition("<")[0].split(maxsplit=1)
        return words[0] if words and words[0] in tools else None
    head = head.strip()
    prefixes = [part.strip() for part in SLOT.split(signs.inner) if part.strip()]
    prefix = prefixes[-1] if prefixes else ""
    for before in (prefix, "<" + prefix.rpartition("<")[2] if "<" in prefix else ""):
        if before and before in head and before.startswith("<"):
            head = head.rpartition(before)[2]
    if signs.last == MISTRAL:
        head = head.partition(MISTRAL_ID)[0].strip()
    names = [head]
    slot = SLOT.search(form.named)
    if slot and signs.behind_name:
        name, sign, number = head.rpartition(signs.behind_name)
        if sign and (slot[0] == ID or number.strip().isdecimal()):
            names.insert(0, name.strip() if slot[0] == ID else name)
    for name in names:
        for bare in (name.removeprefix(prefix), name):
            if bare in tools:
                return bare
    return None


class _Tagged(_Between):
    """The parser of <tool_call><function=name><parameter=key>value</parameter></function></tool_call> and the like."""

    def _call(self, cursor: Cursor, tools: Tools) -> ParserSteps[Call]:
        signs = self._signs
        if not (yield from cursor.takes(signs.last)):
            raise NotACall
        yield from cursor.blanks()
        name = yield from self._name(cursor, tools)
        schema = tools[name]
        arguments: dict[str, Any] = {}
        while True:
            yield from cursor.blanks()
            behind = cursor.at
            if signs.ends and (yield from cursor.takes(signs.ends[0])):
                if not arguments:
                    cursor.begins(name)
                    cursor.goes_on("{")
                break
            if arguments and (yield from cursor.one_of((*signs.ends[1:], *signs.closes))):
                cursor.at = behind  # the model omitted the end of its call
                break
            if not (yield from cursor.takes(signs.key)):
                raise NotACall
            key, kinds = yield from self._key(cursor)
            if not arguments:  # until here the name may only be mentioned
                cursor.begins(name)
            cursor.goes_on(f"{', ' if arguments else '{'}{to_json(key)}: ")
            arguments[key] = yield from self._value(cursor, accepted_for(schema, key), kinds)
        cursor.goes_on("}")
        return make_call(name, arguments)

    def _left(self) -> Sequence[str]:
        return (*self._signs.ends[1:], *self._signs.closes)

    def _name(self, cursor: Cursor, tools: Tools) -> ParserSteps[str]:
        """Pass a tool's name and the marker after it, and return the name. Raises CutShort, NotACall."""
        start, signs = cursor.at, self._signs
        for name in sorted(tools, key=len, reverse=True):
            cursor.at = start
            if not name or not (yield from cursor.takes(name)):
                continue
            if signs.behind_name:
                if (yield from cursor.takes(signs.behind_name)):
                    yield from self._number(cursor)
                    return name
                continue
            behind = cursor.at
            yield from cursor.blanks()
            if (yield from cursor.one_of((signs.key, *signs.ends))):
                cursor.at = behind
                return name
        raise NotACall

    def _number(self, cursor: Cursor) -> ParserSteps[None]:
        """Pass a number or an id after a name."""
        parts = SLOT.split(self._format.named)
        if len(parts) > 1:
            yield from cursor.until(parts[1].strip() or '"')

    def _key(self, cursor: Cursor) -> ParserSteps[tuple[str, frozenset[str]]]:
        """Return a key and the kinds of value indicated by the marker after it. Raises CutShort, NotACall."""
        first = self._signs.keyed[0][0][0]
        key = (yield from cursor.until(first)).strip()
        behind = cursor.at
        for tokens, kinds in self._signs.keyed:
            cursor.at = behind
            if (yield from self._passes(cursor, tokens[1:])):
                return key, kinds
        raise NotACall

    def _passes(self, cursor: Cursor, tokens: Sequence[str]) -> ParserSteps[bool]:
        for token in tokens:
            yield from cursor.blanks()
            if not (yield from cursor.takes(token)):
                return False
        return True

    def _value(self, cursor: Cursor, accepted: AcceptedValues, kinds: frozenset[str]) -> ParserSteps[Any]:
        signs = self._signs
        is_text = kinds == TEXT_ALONE or ("string" in kinds and accepted.kinds == TEXT_ALONE and accepted.free)
        then = (signs.key, *signs.ends, *signs.closes)
        if not is_text:
            text = self._bare((yield from cursor.value(signs.value_end, then, is_json="string" not in accepted.kinds)))
            if "string" not in kinds and accepted.kinds == TEXT_ALONE:
                accepted = AcceptedValues(frozenset(kinds))
            value = parse_argument(text, accepted)
            cursor.goes_on(to_json(value))
            return value
        begin, wrap = cursor.at, signs.wrap
        sent = -1

        def tell(end: int) -> None:
            nonlocal sent
            end -= len(wrap[1])
            if sent < 0:
                if end < begin + len(wrap[0]) + len(CDATA):
                    return
                if CDATA in cursor.text[begin:end].lstrip()[: len(CDATA)]:  # reported only once it is complete
                    return
                sent = begin + (len(wrap[0]) if cursor.text.startswith(wrap[0], begin) else 0)
                cursor.goes_on('"')
            if end > sent:
                cursor.goes_on(_inside(cursor.text[sent:end]))
                sent = end

        whole = yield from cursor.value(signs.value_end, then, tell)
        text = self._bare(whole)
        if sent < 0:
            cursor.goes_on(to_json(text))
        else:
            start = begin + len(whole) - len(whole.removeprefix(wrap[0]))
            cursor.goes_on(_inside(text[sent - start :]) + '"')
        return text

    def _bare(self, text: str) -> str:
        return without_cdata(text.removeprefix(self._signs.wrap[0]).removesuffix(self._signs.wrap[1]))


class _Nested(_OfFormat):
    """The parser of XML elements, also within arguments, in which a marker precedes each tag."""

    def read(self, cursor: Cursor, tools: Tools) -> ParserSteps[ReadResult]:
        begin = cursor.at = cursor.text.find(self._signs.last) + len(self._signs.last)
        yield from cursor.blanks()
        try:
            if not (yield from cursor.takes(self._signs.inner)):
                raise NotACall
            yield from cursor.until(self._signs.closes[0])
        except (CutShort, NotACall):
            return ReadResult(cursor.text[:begin], [], cursor.text[begin:])
        inner, rest = cursor.text[begin : cursor.at], cursor.text[cursor.at :]
        try:
            return ReadResult("", self.calls(inner.removesuffix(self._signs.closes[0]), tools), rest)
        except ValueError:
            return ReadResult(cursor.text[: cursor.at], [], rest)

    def calls(self, text: str, tools: Tools) -> list[Call]:
        """Return the calls in a text. Raises ValueError."""
        calls, signs = list[Call](), self._signs
        for part in text.split(signs.inner)[1:]:
            name, sign, rest = part.partition(signs.behind_name)
            body, end, _ = rest.partition(signs.ends[0])
            if not sign or not end or name not in tools:
                raise ValueError("no tool is called")
            calls.append(make_call(name, self._elements(body, tools[name], tools[name])))
        return calls

    def _elements(self, text: str, schema: Any, root: Any) -> Any:
        """Return the value of an element: an object of elements, a list of items, or a plain value."""
        key, end = self._signs.key, self._signs.value_end
        elements = list[tuple[str, str]]()
        left = text.strip()
        while left.startswith(key):
            tag, sign, rest = left.removeprefix(key).partition(">")
            close = f"{end}{tag}>"
            body, is_closed, left = rest.partition(close)
            # an element of the same name is nested in it
            while is_closed and body.count(f"{key}{tag}>") > body.count(close):
                more, is_closed, left = left.partition(close)
                body += close + more
            if not sign or not is_closed:
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
    """The parser of <|tool_call_start|>[name(key='value'), …]<|tool_call_end|>."""

    def read(self, cursor: Cursor, tools: Tools) -> ParserSteps[ReadResult]:
        begin = cursor.at = cursor.text.find(self._signs.last) + len(self._signs.last)
        yield from cursor.blanks()
        if cursor.text[cursor.at : cursor.at + 1] not in ("", "["):
            return ReadResult(cursor.text[:begin], [], cursor.text[begin:])
        closing = self._signs.closes[0]
        for _ in range(MOST_ENDS):
            try:
                yield from cursor.until(closing)
                inner, is_over = cursor.text[begin : cursor.at].removesuffix(closing), False
            except CutShort:  # its end marker may be omitted
                inner, cursor.at, is_over = cursor.text[begin:], len(cursor.text), True
            calls, half = python_calls(inner, tools)
            if half is None or is_over:
                break  # otherwise the end marker was in a string of its arguments
        if calls is None or half is not None:
            return ReadResult(cursor.text[:begin], [], cursor.text[begin:])
        return ReadResult("", calls, cursor.text[cursor.at :])


def python_calls(text: str, tools: Tools) -> tuple[list[Call] | None, tuple[str, dict[str, Any]] | None]:
    """Return the complete calls and one that was cut off, or None if the text contains anything else."""
    calls, literals = list[Call](), Literals(text)
    name, arguments = "", dict[str, Any]()
    try:
        literals.wants("[")
        while not literals.takes("]"):
            if calls:
                literals.wants(",")
            literals.stands()
            begin = literals.at
            end = text.find("(", begin)
            name, arguments = (text[begin:end] if end > 0 else text[begin:]).strip(), {}
            if end < 0:
                raise TextCut
            if name not in tools:
                return None, None
            literals.at = end + 1
            literals.pairs("=", ")", arguments)
            calls.append(make_call(name, arguments))
            name = ""
    except TextCut:
        return calls, (name, arguments)
    except ValueError:
        return None, None
    return calls, None


class _Gemma(_Between):
    """The parser of <|tool_call>call:name{key:<|"|>text<|"|>,other:1}<tool_call|>."""

    def _call(self, cursor: Cursor, tools: Tools) -> ParserSteps[Call]:
        if not (yield from cursor.takes(self._signs.last)):
            raise NotACall
        name = (yield from cursor.until("{")).strip().removeprefix("call:")
        if name not in tools:
            raise NotACall
        begin, end = cursor.at, self._signs.ends[0]
        while True:
            try:
                text = yield from cursor.until(end)
            except CutShort:
                text, cursor.at = cursor.text[begin:], len(cursor.text)
            text = cursor.text[begin : cursor.at].removesuffix(end)
            literals, arguments = Literals(text), dict[str, Any]()
            try:
                literals.pairs(":", "}", arguments)
            except TextCut:  # the marker was in a string
                if cursor.at_end and end not in cursor.text[cursor.at :]:
                    raise CutShort from None
                continue
            except ValueError:
                raise NotACall from None
            cursor.at -= len(end) if cursor.text[begin : cursor.at].endswith(end) else 0
            return make_call(name, _fitting(arguments, tools[name]))


def _fitting(arguments: dict[str, Any], schema: object) -> dict[str, Any]:
    """Convert texts to the values that they stand for if text is not accepted."""
    fitted = dict[str, Any]()
    for key, value in arguments.items():
        accepted = accepted_for(schema, key)
        is_other = isinstance(value, str) and "string" not in accepted.kinds
        fitted[key] = parse_argument(value, accepted) if is_other else value
    return fitted


def _json(cursor: Cursor, name: str) -> ParserSteps[Call]:
    """Return a call whose arguments are the object that begins here. Raises CutShort, NotACall."""
    begin = sent = cursor.at
    scan, has_begun = JsonScan(begin), False
    while True:
        try:
            scan.read(cursor.text)
        except ValueError:
            raise NotACall from None
        if scan.at > sent:
            if not has_begun:
                cursor.begins(name)
                has_begun = True
            cursor.goes_on(cursor.text[sent : scan.at])
            sent = scan.at
        if scan.is_whole:
            cursor.at = scan.at
            break
        yield from cursor.more()
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
    """Return a value without the CDATA section around it."""
    if text.startswith(CDATA) and text.endswith(CDATA_END):
        return text[len(CDATA) : -len(CDATA_END)]
    return text


def _inside(text: str) -> str:
    """Return a piece of text as it is written within quotes in JSON."""
    return json.dumps(text, ensure_ascii=False)[1:-1]
