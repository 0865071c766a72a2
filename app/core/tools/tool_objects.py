"""Calls as JSON objects, {"name": …, "arguments": {…}}: whole, and while they come. Pure."""

from __future__ import annotations

import re
from typing import Any

from app.core.json_schema.json_scan import JsonScan
from app.core.json_schema.partial_json import value_at, value_of_json
from app.core.tools.tool_formats import Begun, Call, More, News, Reading, Tools, called
from backends.templates.call_format import CallFormat

BETWEEN = " \t\r\n;,"
ARGUMENTS = ("arguments", "parameters")  # models of a family write either
NAMES = ("name", "tool_name")
MEMBER = re.compile(r'[\s,]*"((?:[^"\\]|\\.)*)"\s*:\s*(?=\S)')
TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')


def json_calls(text: str, tools: Tools, one: CallFormat) -> list[Call]:
    """All calls of a text, or none when any of it is something else."""
    try:
        given = _values(text.strip())
    except ValueError:
        return []
    calls = [_call(value, tools, one) for value in given]
    return [call for call in calls if call is not None] if None not in calls else []


def name_and_arguments(value: object, tools: Tools, one: CallFormat) -> tuple[object, object]:
    """What an object calls, and with what; None for what it does not say."""
    if not isinstance(value, dict):
        return None, None
    inner = value.get("function")
    if isinstance(inner, dict) and "name" in inner:
        value = inner
    if not one.name_key:
        name = next(iter(value), None)
        return (name, value[name]) if len(value) == 1 and name in tools else (None, None)
    name = next((value[key] for key in (one.name_key, *NAMES) if key in value), None)
    keys = (one.arguments_key, *ARGUMENTS)
    return name, next((value[key] for key in keys if key in value), None)


def _call(value: object, tools: Tools, one: CallFormat) -> Call | None:
    name, arguments = name_and_arguments(value, tools, one)
    if isinstance(arguments, str):  # some write it as JSON within JSON
        try:
            arguments = value_of_json(arguments)
        except ValueError:
            return None
    if not isinstance(name, str) or name not in tools or not isinstance(arguments, dict):
        return None
    return called(name, arguments)


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


class ObjectPeek:
    """Looks at calls while they come, and tells what is sure of them. It stops at what it does not expect: whoever
    reads them as a whole decides."""

    def __init__(self, at: int, tools: Tools, one: CallFormat) -> None:
        self.at, self._tools, self._format = at, tools, one
        self._steps = self._all()
        self._text = ""
        self._news: list[News] = []
        self._is_over = False

    def look(self, text: str) -> list[News]:
        """What has come of them now."""
        self._text, self._news = text, []
        if not self._is_over:
            try:
                next(self._steps)
            except StopIteration:
                self._is_over = True
        return self._news

    def _all(self) -> Reading[None]:
        while True:
            while self.at < len(self._text) and self._text[self.at] in BETWEEN + "[":
                self.at += 1
            if self.at >= len(self._text):
                yield
                continue
            if self._text[self.at] != "{" or not (yield from self._object()):
                return

    def _object(self) -> Reading[bool]:
        """Whether it was a call."""
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

    def _arguments(self, name: str, at: int) -> Reading[str | None]:
        """Them as text, once they are whole."""
        scan, told, begin = JsonScan(at), at, at
        self._news.append(Begun(name))
        while True:
            try:
                scan.read(self._text)
            except ValueError:
                self.at = scan.at
                return None
            if scan.at > told:
                self._news.append(More(self._text[told : scan.at]))
                told = self.at = scan.at
            if scan.is_whole:
                return self._text[begin:told]
            yield
