"""Calls between signs, as several families write them: where one ends, and what it says. Pure.

A reader is given what a model wrote from the first sign on, and says what it is, or nothing as long as more text may
still decide that.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from app.core.tool_arguments import value_of, wanted

OPEN, CLOSE = "<tool_call>", "</tool_call>"
FUNCTION, FUNCTION_END = "<function=", "</function>"
PARAMETER, PARAMETER_END = "<parameter=", "</parameter>"
KEY, KEY_END, VALUE, VALUE_END = "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"
TOOL_CALLS, CALL_ID, ARGS = "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"
JSON_BEGINS = ("{", "[")  # a call, or a list of calls
BETWEEN = " \t\r\n;"

Tools = Mapping[str, Any]  # name -> schema of its arguments


@dataclass(frozen=True, slots=True)
class Call:
    """One call; `arguments` is a JSON object as text."""

    name: str
    arguments: str


class Marked(NamedTuple):
    """What came of a text: text after all, calls, and what is behind them."""

    told: str
    calls: list[Call]
    rest: str


Marks = Callable[[str, Tools, bool], Marked | None]  # at the end of the answer, all is decided


class _Short(Exception):
    """The text ends before it is clear what this is."""


class _Other(Exception):
    """This is no call."""


def hermes(held: str, tools: Tools, at_end: bool) -> Marked | None:
    """<tool_call>{"name": …, "arguments": {…}}</tool_call>."""
    behind = held.find(OPEN) + len(OPEN)
    if held[behind:].lstrip()[:1] not in ("", *JSON_BEGINS):
        return Marked(held[:behind], [], held[behind:])  # but spoken of
    end = held.find(CLOSE)
    if end < 0:
        if not at_end:
            return None
        calls = json_calls(held[behind:], tools)
        return Marked("" if calls else held, calls, "")
    whole, rest = held[: end + len(CLOSE)], held[end + len(CLOSE) :]
    for start in (whole.find(OPEN), whole.rfind(OPEN)):  # the first may have been begun and left
        if calls := json_calls(whole[start + len(OPEN) : end], tools):
            return Marked(whole[:start].rstrip(), calls, rest)
    return Marked(whole, [], rest)


def qwen_coder(held: str, tools: Tools, at_end: bool) -> Marked | None:
    """<tool_call><function=name><parameter=key>value</parameter></function></tool_call>; some models leave the first
    sign out."""
    return _read(held, tools, at_end, _qwen_calls)


def glm(held: str, tools: Tools, at_end: bool) -> Marked | None:
    """<tool_call>name<arg_key>key</arg_key><arg_value>value</arg_value></tool_call>."""
    return _read(held, tools, at_end, _glm_calls)


def json_calls(text: str, tools: Tools) -> list[Call]:
    """All calls of a text, or none when any of it is something else."""
    try:
        given = _values(text.strip())
    except (ValueError, RecursionError):
        return []
    calls = [_call(one, tools) for one in given]
    return [call for call in calls if call is not None] if None not in calls else []


def args_calls(text: str, tools: Tools) -> list[Call]:
    """As `json_calls`: of name[ARGS]{…}, several parted by [TOOL_CALLS]; an id may stand behind a name."""
    calls, at, decoder = list[Call](), 0, json.JSONDecoder()
    try:
        while at < len(text):
            head, sign, _ = text[at:].partition(ARGS)
            name = head.strip().removeprefix(TOOL_CALLS).partition(CALL_ID)[0].strip()
            if not sign or name not in tools:
                return []
            at += len(head) + len(sign)
            at += len(text[at:]) - len(text[at:].lstrip())
            value, at = decoder.raw_decode(text, at)
            if not isinstance(value, dict):
                return []
            calls.append(called(name, value))
            at += len(text[at:]) - len(text[at:].lstrip(BETWEEN))
    except (ValueError, RecursionError):
        return []
    return calls


def called(name: str, arguments: object) -> Call:
    return Call(name, json.dumps(arguments, ensure_ascii=False))


class _Cursor:
    """A place in a text."""

    def __init__(self, text: str, at: int) -> None:
        self.text, self.at = text, at

    def blanks(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def takes(self, sign: str) -> bool:
        """Whether the sign stands here; then it is passed. Raises _Short."""
        if self.text.startswith(sign, self.at):
            self.at += len(sign)
            return True
        if len(self.text) - self.at < len(sign) and sign.startswith(self.text[self.at :]):
            raise _Short
        return False

    def until(self, sign: str) -> str:
        """What stands before the next of these signs, which is passed. Raises _Short."""
        end = self.text.find(sign, self.at)
        if end < 0:
            raise _Short
        found, self.at = self.text[self.at : end], end + len(sign)
        return found

    def value(self, end: str, then: Sequence[str]) -> str:
        """As `until`; but what is not followed by one of `then` is a part of the value. Raises _Short."""
        start = self.at
        while True:
            self.until(end)
            behind = self.at
            self.blanks()
            if any(self.takes(sign) for sign in then):
                self.at = behind
                return self.text[start : behind - len(end)]
            self.at = behind


def _read(
    held: str, tools: Tools, at_end: bool, read: Callable[[_Cursor, Tools, bool], list[Call]]
) -> Marked | None:
    start = len(held) - len(held.lstrip())
    has_sign = held.startswith(OPEN, start)
    cursor = _Cursor(held, start + (len(OPEN) if has_sign else 0))
    try:
        calls = read(cursor, tools, at_end)
    except _Short:
        if not at_end:
            return None
    except _Other:
        pass
    else:
        return Marked("", calls, held[cursor.at :])
    behind = start + len(OPEN if has_sign else FUNCTION)
    return Marked(held[:behind], [], held[behind:])


def _qwen_calls(cursor: _Cursor, tools: Tools, at_end: bool) -> list[Call]:
    calls = list[Call]()
    while True:
        behind = cursor.at
        try:
            cursor.blanks()
            if calls and cursor.takes(CLOSE):
                return calls
            is_next = cursor.takes(FUNCTION)
        except _Short:
            if calls and at_end:
                return calls
            raise
        if not is_next:
            if calls:
                cursor.at = behind
                return calls
            raise _Other
        name = next((name for name in tools if cursor.takes(name + ">")), None)
        if name is None:
            raise _Other
        calls.append(called(name, _parameters(cursor, tools[name])))


def _parameters(cursor: _Cursor, schema: object) -> dict[str, Any]:
    found: dict[str, Any] = {}
    while True:
        cursor.blanks()
        behind = cursor.at
        if cursor.takes(FUNCTION_END):
            return found
        if found and cursor.takes(CLOSE):  # it forgot the end of the function
            cursor.at = behind
            return found
        if not cursor.takes(PARAMETER):
            raise _Other
        key = cursor.until(">").strip()
        text = cursor.value(PARAMETER_END, (PARAMETER, FUNCTION_END, CLOSE))
        text = text.removeprefix("\n").removesuffix("\n")  # each stands on lines of its own
        found[key] = value_of(text, _wanted(schema, key))


def _glm_calls(cursor: _Cursor, tools: Tools, at_end: bool) -> list[Call]:
    text = cursor.text[cursor.at :].partition("<")[0].strip()
    if text not in tools:
        is_begun = "<" not in cursor.text[cursor.at :] and any(
            name.startswith(text) for name in tools
        )
        raise _Short if is_begun else _Other
    cursor.at = cursor.text.find(text, cursor.at) + len(text)
    found: dict[str, Any] = {}
    while True:
        cursor.blanks()
        if cursor.takes(CLOSE):
            return [called(text, found)]
        if not cursor.takes(KEY):
            raise _Other
        key = cursor.until(KEY_END).strip()
        cursor.blanks()
        if not cursor.takes(VALUE):
            raise _Other
        found[key] = value_of(cursor.value(VALUE_END, (KEY, CLOSE)), _wanted(tools[text], key))


def _wanted(schema: object, key: str) -> Any:
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    return wanted(properties.get(key) if isinstance(properties, Mapping) else None, schema)


def _values(text: str) -> list[Any]:
    """A list's values, or all values that stand one after another, parted by blanks or semicolons.
    Raises ValueError for anything else."""
    found, at, decoder = list[Any](), 0, json.JSONDecoder()
    while at < len(text):
        value, at = decoder.raw_decode(text, at)
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
