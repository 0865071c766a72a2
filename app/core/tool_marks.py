"""Calls between signs, as several families write them: where one ends, and what it says. Pure.

A reader is given what a model wrote from the first sign on. It waits wherever more text may still decide, and goes on
there when more has come: a long call is not read again from its beginning for each token of it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from app.core.json_cut import json_of, value_at, value_of_json
from app.core.tool_arguments import value_of, wanted

OPEN, CLOSE = "<tool_call>", "</tool_call>"
FUNCTION, FUNCTION_END = "<function=", "</function>"
PARAMETER, PARAMETER_END = "<parameter=", "</parameter>"
KEY, KEY_END, VALUE, VALUE_END = "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"
TOOL_CALLS, CALL_ID, ARGS = "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"
SECTION, SECTION_END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
CALL, CALL_ARGUMENTS, CALL_END = (
    "<|tool_call_begin|>",
    "<|tool_call_argument_begin|>",
    "<|tool_call_end|>",
)
SECTIONS = (SECTION, "<|tool_call_section_begin|>")  # Kimi writes either
SECTION_ENDS = (SECTION_END, "<|tool_call_section_end|>")
FUNCTIONS = (
    "functions."  # before each name; behind it stands the number of the call in the conversation
)
MOST_AROUND_NAME = 32
JSON_BEGINS = ("{", "[")  # a call, or a list of calls
BETWEEN = " \t\r\n;"

Tools = Mapping[str, Any]  # name -> schema of its arguments
T = TypeVar("T")
Reading = Generator[None, None, T]  # waits for more text at each step


@dataclass(frozen=True, slots=True)
class Call:
    """One call; `arguments` is a JSON object as text. half: what the model wrote of one that was cut, whose arguments
    are the beginning of an object."""

    name: str
    arguments: str
    half: str = ""


class Marked(NamedTuple):
    """What came of a text: text after all, calls, and what is behind them."""

    told: str
    calls: list[Call]
    rest: str


class _Short(Exception):
    """The answer ends before it is clear what this is."""


class _Other(Exception):
    """This is no call."""


class Cursor:
    """A place in a text, which grows while it is read; `at_end`: it grows no more."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.at_end = text, 0, False

    def more(self) -> Reading[None]:
        """Wait for more text. Raises _Short where none comes."""
        if self.at_end:
            raise _Short
        yield

    def blanks(self) -> Reading[None]:
        """Pass them all, also those that come later."""
        while True:
            while self.at < len(self.text) and self.text[self.at].isspace():
                self.at += 1
            if self.at < len(self.text) or self.at_end:
                return
            yield

    def takes(self, sign: str) -> Reading[bool]:
        """Whether the sign stands here; then it is passed. Raises _Short."""
        while True:
            if self.text.startswith(sign, self.at):
                self.at += len(sign)
                return True
            if len(self.text) - self.at >= len(sign) or not sign.startswith(self.text[self.at :]):
                return False
            yield from self.more()

    def until(self, sign: str) -> Reading[str]:
        """What stands before the next of these signs, which is passed. Raises _Short."""
        seen = self.at
        while (end := self.text.find(sign, seen)) < 0:
            seen = max(self.at, len(self.text) - len(sign) + 1)
            yield from self.more()
        found, self.at = self.text[self.at : end], end + len(sign)
        return found

    def before(self, sign: str, other: str) -> Reading[str]:
        """As `until`; but where the other sign comes first, and at the end, nothing is passed. Raises _Other."""
        seen = self.at
        while True:
            end, begun = self.text.find(sign, seen), self.text.find(other, seen)
            if end >= 0 and (begun < 0 or end < begun):
                found, self.at = self.text[self.at : end], end + len(sign)
                return found
            if begun >= 0:
                raise _Other
            if self.at_end:
                found, self.at = self.text[self.at :], len(self.text)
                return found
            seen = max(self.at, len(self.text) - max(len(sign), len(other)) + 1)
            yield

    def value(self, end: str, then: Sequence[str]) -> Reading[str]:
        """As `until`; but what is not followed by one of `then` is a part of the value. Raises _Short."""
        start = self.at
        while True:
            yield from self.until(end)
            behind = self.at
            yield from self.blanks()
            for sign in then:
                if (yield from self.takes(sign)):
                    self.at = behind
                    return self.text[start : behind - len(end)]
            self.at = behind


Marks = Callable[[Cursor, Tools], Reading[Marked]]


def hermes(cursor: Cursor, tools: Tools) -> Reading[Marked]:
    """<tool_call>{"name": …, "arguments": {…}}</tool_call>."""
    behind = cursor.at = cursor.text.find(OPEN) + len(OPEN)
    yield from cursor.blanks()
    if cursor.text[cursor.at : cursor.at + 1] not in ("", *JSON_BEGINS):
        return Marked(cursor.text[:behind], [], cursor.text[behind:])  # but spoken of
    try:
        yield from cursor.until(CLOSE)
    except _Short:
        calls = json_calls(cursor.text[behind:], tools)
        return Marked("" if calls else cursor.text, calls, "")
    whole, rest = cursor.text[: cursor.at], cursor.text[cursor.at :]
    for start in (whole.find(OPEN), whole.rfind(OPEN)):  # the first may have been begun and left
        if calls := json_calls(whole[start + len(OPEN) : -len(CLOSE)], tools):
            return Marked(whole[:start].rstrip(), calls, rest)
    return Marked(whole, [], rest)


def qwen_coder(cursor: Cursor, tools: Tools) -> Reading[Marked]:
    """<tool_call><function=name><parameter=key>value</parameter></function></tool_call>; some models leave the first
    sign out."""
    return _read(cursor, tools, _qwen_calls)


def glm(cursor: Cursor, tools: Tools) -> Reading[Marked]:
    """<tool_call>name<arg_key>key</arg_key><arg_value>value</arg_value></tool_call>."""
    return _read(cursor, tools, _glm_calls)


def kimi(cursor: Cursor, tools: Tools) -> Reading[Marked]:
    """<|tool_call_begin|>functions.name:0<|tool_call_argument_begin|>{…}<|tool_call_end|>, between the signs of a
    section, which some models leave out."""
    start = len(cursor.text) - len(cursor.text.lstrip())
    sign = next(one for one in (*SECTIONS, CALL) if cursor.text.startswith(one, start))
    cursor.at = behind = start + len(sign)
    try:
        if sign != CALL:
            yield from cursor.blanks()
            if not (yield from cursor.takes(CALL)):
                raise _Other
        call = yield from _kimi_call(cursor, tools)
    except (_Short, _Other):
        return Marked(cursor.text[:behind], [], cursor.text[behind:])
    behind = cursor.at
    try:
        yield from cursor.blanks()
        for end in SECTION_ENDS:
            if (yield from cursor.takes(end)):
                behind = cursor.at
                break
    except _Short:
        pass  # the answer ends with its last call
    return Marked("", [call], cursor.text[behind:])


def json_calls(text: str, tools: Tools) -> list[Call]:
    """All calls of a text, or none when any of it is something else."""
    try:
        given = _values(text.strip())
    except ValueError:
        return []
    calls = [_call(one, tools) for one in given]
    return [call for call in calls if call is not None] if None not in calls else []


def args_calls(text: str, tools: Tools) -> list[Call]:
    """As `json_calls`: of name[ARGS]{…}, several parted by [TOOL_CALLS]; an id may stand behind a name."""
    calls, at = list[Call](), 0
    try:
        while at < len(text):
            head, sign, _ = text[at:].partition(ARGS)
            name = head.strip().removeprefix(TOOL_CALLS).partition(CALL_ID)[0].strip()
            if not sign or name not in tools:
                return []
            at += len(head) + len(sign)
            at += len(text[at:]) - len(text[at:].lstrip())
            value, at = value_at(text, at)
            if not isinstance(value, dict):
                return []
            calls.append(called(name, value))
            at += len(text[at:]) - len(text[at:].lstrip(BETWEEN))
    except ValueError:
        return []
    return calls


def called(name: str, arguments: object) -> Call:
    return Call(name, json_of(arguments))


def _read(
    cursor: Cursor, tools: Tools, read: Callable[[Cursor, Tools], Reading[list[Call]]]
) -> Reading[Marked]:
    start = len(cursor.text) - len(cursor.text.lstrip())
    has_sign = cursor.text.startswith(OPEN, start)
    cursor.at = start + (len(OPEN) if has_sign else 0)
    try:
        calls = yield from read(cursor, tools)
    except (_Short, _Other):
        behind = start + len(OPEN if has_sign else FUNCTION)
        return Marked(cursor.text[:behind], [], cursor.text[behind:])
    return Marked("", calls, cursor.text[cursor.at :])


def _qwen_calls(cursor: Cursor, tools: Tools) -> Reading[list[Call]]:
    calls = list[Call]()
    while True:
        behind = cursor.at
        try:
            yield from cursor.blanks()
            if calls and (yield from cursor.takes(CLOSE)):
                return calls
            is_next = yield from cursor.takes(FUNCTION)
        except _Short:
            if calls:
                return calls
            raise
        if not is_next:
            if calls:
                cursor.at = behind
                return calls
            raise _Other
        for name in tools:
            if (yield from cursor.takes(name + ">")):
                break
        else:
            raise _Other
        calls.append(called(name, (yield from _parameters(cursor, tools[name]))))


def _parameters(cursor: Cursor, schema: object) -> Reading[dict[str, Any]]:
    found: dict[str, Any] = {}
    while True:
        yield from cursor.blanks()
        behind = cursor.at
        if (yield from cursor.takes(FUNCTION_END)):
            return found
        if found and (yield from cursor.takes(CLOSE)):  # it forgot the end of the function
            cursor.at = behind
            return found
        if not (yield from cursor.takes(PARAMETER)):
            raise _Other
        key = (yield from cursor.until(">")).strip()
        text = yield from cursor.value(PARAMETER_END, (PARAMETER, FUNCTION_END, CLOSE))
        text = text.removeprefix("\n").removesuffix("\n")  # each stands on lines of its own
        found[key] = value_of(text, wanted_for(schema, key))


def _glm_calls(cursor: Cursor, tools: Tools) -> Reading[list[Call]]:
    while not (head := cursor.text[cursor.at :].partition("<"))[1]:
        if not any(name.startswith(head[0].strip()) for name in tools):
            raise _Other
        yield from cursor.more()
    if (name := head[0].strip()) not in tools:
        raise _Other
    cursor.at += len(head[0])
    found: dict[str, Any] = {}
    while True:
        yield from cursor.blanks()
        if (yield from cursor.takes(CLOSE)):
            return [called(name, found)]
        if not (yield from cursor.takes(KEY)):
            raise _Other
        key = (yield from cursor.until(KEY_END)).strip()
        yield from cursor.blanks()
        if not (yield from cursor.takes(VALUE)):
            raise _Other
        text = yield from cursor.value(VALUE_END, (KEY, CLOSE))
        found[key] = value_of(text, wanted_for(tools[name], key))


def _kimi_call(cursor: Cursor, tools: Tools) -> Reading[Call]:
    most = max(map(len, tools), default=0) + MOST_AROUND_NAME
    while not (head := cursor.text[cursor.at : cursor.at + most].partition("<|"))[1]:
        if len(head[0]) >= most:
            raise _Other
        yield from cursor.more()
    cursor.at += len(head[0])
    if (name := kimi_name(head[0].strip(), tools)) is None:
        raise _Other
    if not (yield from cursor.takes(CALL_ARGUMENTS)):
        raise _Other
    text = yield from cursor.before(CALL_END, CALL)
    try:
        value = value_of_json(text)
    except ValueError:
        raise _Other from None
    if not isinstance(value, dict):
        raise _Other
    return called(name, value)


def kimi_name(head: str, tools: Tools) -> str | None:
    """The tool that functions.name:0 means: some models leave out what stands before or behind the name."""
    name, sign, number = head.rpartition(":")
    for one in (name if sign and number.strip().isdecimal() else head, head):
        for bare in (one.removeprefix(FUNCTIONS), one):
            if bare in tools:
                return bare
    return None


def wanted_for(schema: object, key: str) -> Any:
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    return wanted(properties.get(key) if isinstance(properties, Mapping) else None, schema)


def _values(text: str) -> list[Any]:
    """A list's values, or all values that stand one after another, parted by blanks or semicolons.
    Raises ValueError for anything else."""
    found, at = list[Any](), 0
    while at < len(text):
        value, at = value_at(text, at)
        found.append(value)
        while at < len(text) and text[at] in BETWEEN:
            at += 1
    return found[0] if len(found) == 1 and isinstance(found[0], list) else found


def _call(one: object, tools: Tools) -> Call | None:
    if not isinstance(one, dict):
        return None
    name, arguments = one.get("name"), one.get("arguments", one.get("parameters"))
    if not isinstance(name, str) or name not in tools or not isinstance(arguments, dict):
        return None
    return called(name, arguments)
