"""The format of tool calls in a chat template, found by rendering calls with known names and values.

Nothing is inferred from names in the template's source. In the output, the markers are the text around the known
values. If the template renders no calls, its instructions to the model are searched for the format.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from backends.contract import (
    CALL_ID_PLACEHOLDER,
    CALL_NUMBER_PLACEHOLDER,
    TOOL_NAME_PLACEHOLDER,
    CallFormat,
    CallIdKind,
    CallSyntax,
    PastCalls,
    TemplateFailed,
)
from backends.templates.sandboxed_rendering import LOOK_SECONDS, render

MAX_SECONDS = 3.0  # CPU time after which no further rendering is started
TEXT = "Ccontentc"
FIRST, SECOND = "qfirsttool", "qsecondtool"
A_KEY, B_KEY = "aakeyq", "bbkeyq"
A_TEXT, C_TEXT, B_NUMBER = "xvaluex", "yvaluey", 73514
IDS = ("q8w7e6r5t", "z1x2c3v4b")  # nine letters and digits: Mistral's templates reject other ids
LONG_IDS = tuple(f"call_{'0' * 23}{digit}" for digit in IDS)
KINDS: Mapping[str, Any] = {
    "string": A_TEXT,
    "integer": B_NUMBER,
    "number": 73514.5,
    "boolean": True,
    "object": {A_KEY: C_TEXT},
    "array": [C_TEXT],
    "null": None,
}
ARGUMENTS: tuple[dict[str, Any], ...] = ({A_KEY: A_TEXT, B_KEY: B_NUMBER}, {A_KEY: C_TEXT})
SIGNS = re.compile(r"<[^<>]*>?|\[[^\[\]]*\]|\s+|[^<\[\s]+|\[")
PYTHON_TAG = "<|python_tag|>"
TOLD_SIGNS = re.compile(
    r"(<[^<>\s/]+>)\s*\{\s*\"name\":[^{}\n]{1,80}\"(arguments|parameters)\":[^{}\n]{1,80}\}\s*(</[^<>\s]+>)"
)
TOLD_LIST = re.compile(r"with (<[^<>\s]+>) followed by a JSON list")
TOLD_PYTHON = re.compile(r"List of tools: (?:<\|tool_list_start\|>)?\[")
PYTHON_SIGNS = ("<|tool_call_start|>", "<|tool_call_end|>")
NO_THOUGHTS = re.compile(r"^\s*(<[^<>]*think[^<>]*>)\s*(<[^<>]*think[^<>]*>)", re.IGNORECASE)
FUNCTIONS, MESSAGE = "to=functions.", "<|message|>"  # in the harmony format

Message = dict[str, Any]
Json = dict[str, Any]


def call_format(template: str, tokens: Mapping[str, str] | None = None, ends: Sequence[str] = ()) -> CallFormat | None:
    """Return the format in which a model with this template writes tool calls, or None if no known format matches.

    ends: the control tokens that end an answer, as templates write them.
    """
    if not template:
        return None
    try:
        return _Look(template, dict(tokens or {}), tuple(end for end in ends if end)).format()
    except TemplateFailed:
        return None


def written_behind(text: str, plain: str, answer: str) -> str:
    """Return the model's turn in `text`.

    plain: the same chat, rendered with `answer` as the model's turn.
    """
    at = plain.rfind(answer)
    before, behind = plain[:at], plain[at + len(answer) :]
    text = text[begins(text, before) :]
    return text[: len(text) - len(_common_end(text, behind))]


class _Unclear(Exception):
    """An error for rendered calls that match no known format."""


@dataclass(frozen=True)
class _Item:
    """The offsets of one call and its parts in the output."""

    begin: int
    name: int
    name_end: int
    arguments: int
    arguments_end: int
    end: int


class _Look:
    def __init__(self, template: str, tokens: dict[str, str], ends: tuple[str, ...]) -> None:
        self._template, self._tokens, self._ends = template, tokens, ends
        self._ends_at = time.process_time() + MAX_SECONDS

    def format(self) -> CallFormat | None:
        for takes_text in (False, True):
            try:
                return self._of_calls(takes_text)
            except (_Unclear, TemplateFailed):
                continue
        return self._of_words()

    def _render(self, *messages: Message, prompt: bool = False, tools: bool = True) -> str:
        """Render a short question followed by the messages. Raises TemplateFailed."""
        if time.process_time() > self._ends_at:
            raise TemplateFailed("the chat template took too long", "template_time_up")
        return render(
            self._template,
            [{"role": "user", "content": "Hello"}, *messages],
            tools=[_tool(FIRST), _tool(SECOND)] if tools else [],
            add_generation_prompt=prompt,
            tokens=self._tokens,
            seconds=LOOK_SECONDS,
        )

    def _of_calls(self, takes_text: bool) -> CallFormat:
        """Find the format by rendering calls. Raises _Unclear or TemplateFailed."""
        with_one, ids = self._first(takes_text)
        two, is_single = self._second(takes_text, ids)
        plain = self._render({"role": "assistant", "content": TEXT})
        call_format = self._compared(with_one, two, plain, self._with_text(takes_text, ids))
        with_prompt = self._render(prompt=True)
        sign = call_format.lead.strip()
        if sign and not call_format.section and with_prompt.endswith(sign):  # the prompt already contains it
            lead_in = plain[begins(plain, with_prompt) : plain.rfind(TEXT)]
            call_format = replace(call_format, prompt_marker=sign, answer_marker=lead_in.removeprefix(sign))
        return replace(
            call_format,
            past=PastCalls(self._ids(call_format, takes_text), is_single, takes_text),
            keyed=self._keyed(call_format, takes_text) if call_format.payload is CallSyntax.TAGGED else (),
        )

    def _first(self, takes_text: bool) -> tuple[str, tuple[str, str]]:
        """Render a single call. Return the text and the call ids that were used.

        Some templates write the tool's name only as part of the call id, so ids that contain it are tried second.
        """
        for ids in (IDS, (f"functions.{FIRST}:0", f"functions.{SECOND}:1")):
            text = self._render(_called(1, ids, takes_text))
            if FIRST in _own(text, self._render()) and A_TEXT in text:
                return text, ids
        raise _Unclear

    def _second(self, takes_text: bool, ids: tuple[str, str]) -> tuple[str, bool]:
        try:
            text = self._render(_called(2, ids, takes_text))
        except TemplateFailed:
            return "", True
        return (text, False) if C_TEXT in text else ("", True)

    def _with_text(self, takes_text: bool, ids: tuple[str, str]) -> str:
        try:
            return self._render(_called(1, ids, takes_text) | {"content": TEXT})
        except TemplateFailed:
            return ""

    def _compared(self, with_one: str, two: str, plain: str, with_text: str) -> CallFormat:
        """Find the markers by comparing the text around the known values. Raises _Unclear."""
        at = plain.rfind(TEXT)
        before, behind = (plain[:at], plain[at + len(TEXT) :]) if at >= 0 else (plain, "")
        text = two or with_one
        begin = begins(text, before)
        payload, items = _items(text, begin)
        single = _items(with_one, begins(with_one, before))[1][0] if two else items[0]
        pre = _slots(text[begin : items[0].begin])
        if (at := with_text.rfind(TEXT)) >= 0:
            try:
                other = _items(with_text, at + len(TEXT))[1][0]
                behind_text = _slots(with_text[at + len(TEXT) : other.begin])
                pre = _common_end(pre, behind_text) or pre
            except _Unclear:
                pass  # it writes either the text or the calls
        pre = NO_THOUGHTS.sub("", pre)
        tail = _tail(text[items[-1].end :], behind, self._ends)
        lead, between, trail, section_end = pre, "", tail, ""
        if len(items) > 1:
            mid = _slots(text[items[0].end : items[1].begin])
            lead = _common_end(pre, mid)
            left = mid[: len(mid) - len(lead)]
            trail = _common_prefix(left, tail)
            between, section_end = left[len(trail) :], tail[len(trail) :]
        section = pre[: len(pre) - len(lead)].lstrip()
        if not section:  # whitespace before the first call does not belong to it
            between += lead[: len(lead) - len(lead.lstrip())] if len(items) > 1 else ""
            lead = lead.lstrip()
        if FIRST in section:  # each call is a message to its tool
            between = between.removesuffix(section.replace(FIRST, SECOND))
            section, lead = "", section.replace(FIRST, TOOL_NAME_PLACEHOLDER) + lead
        parts = [_parts(text, item) for item in items]
        head, named, rest = _counted(parts)
        call_format = CallFormat(
            payload, section, lead, head, named, rest, trail.rstrip() if len(items) < 2 else trail,
            between, section_end.rstrip(),
        )  # fmt: skip
        match payload:
            case CallSyntax.NAMED if FUNCTIONS in lead and MESSAGE in named:
                return CallFormat(CallSyntax.HARMONY, past=PastCalls(is_single=True))
            case CallSyntax.GEMMA:
                return replace(call_format, section_end="")
            case CallSyntax.PYTHON:
                return _python(call_format)
            case CallSyntax.NESTED:
                return _nested(text, items[0])
            case CallSyntax.OBJECTS:
                if (section + lead).strip() in ("", PYTHON_TAG):  # Llama's calls stand alone, with or without the tag
                    call_format = replace(call_format, section="", lead="", between="; ", other_begins=(PYTHON_TAG,))
                return _keys(call_format, text, items[0])
            case CallSyntax.TAGGED:
                return _tagged(call_format, with_one, single)
        return call_format

    def _ids(self, call_format: CallFormat, takes_text: bool) -> CallIdKind:
        if "functions." in call_format.lead + call_format.head and CALL_NUMBER_PLACEHOLDER in call_format.named:
            return CallIdKind.COUNTED
        try:
            self._render(_called(1, LONG_IDS, takes_text))
        except TemplateFailed:
            return CallIdKind.SHORT
        return CallIdKind.ANY

    def _keyed(self, call_format: CallFormat, takes_text: bool) -> tuple[tuple[str, str], ...]:
        """Return the text between a key and its value for each type of value that is recognized in the output."""
        signs: dict[str, str] = {}
        for kind, value in KINDS.items():
            call = _call(FIRST, {A_KEY: value}, IDS[0], takes_text)
            try:
                text = self._render({"role": "assistant", "content": "", "tool_calls": [call]})
            except TemplateFailed:
                continue
            at = text.rfind(call_format.key + A_KEY)
            behind = text[at + len(call_format.key + A_KEY) :]
            for written in (value if isinstance(value, str) else "", *_spelled(value)):
                if at >= 0 and written and (end := behind.find(written + call_format.value_end)) >= 0:
                    signs[kind] = behind[:end]
                    break
        return tuple(signs.items())

    def _of_words(self) -> CallFormat | None:
        """Return the format that the template's instructions describe to the model.

        Used for templates that do not render earlier calls.
        """
        try:
            instructions = _own(self._render(prompt=True), self._render(prompt=True, tools=False))
        except TemplateFailed:
            return None
        if FIRST not in instructions:
            return None
        if TOLD_PYTHON.search(instructions):
            section, end = PYTHON_SIGNS
            return CallFormat(
                CallSyntax.PYTHON,
                section=f"{section}[",
                named="(",
                rest=")",
                between=", ",
                section_end=f"]{end}",
                past=PastCalls(writes_calls=False),
            )
        if match := TOLD_SIGNS.search(instructions):
            return CallFormat(
                CallSyntax.OBJECTS, lead=f"{match[1]}\n", head='{"name": "', named=f'", "{match[2]}": ', rest="}",
                trail=f"\n{match[3]}", between="\n", arguments_key=match[2], past=PastCalls(writes_calls=False),
            )  # fmt: skip
        if match := TOLD_LIST.search(instructions):
            return CallFormat(
                CallSyntax.OBJECTS,
                section=f"{match[1]}[",
                head='{"name": "',
                named='", "arguments": ',
                rest="}",
                between=", ",
                section_end="]",
                past=PastCalls(writes_calls=False),
            )
        return None


def _tool(name: str) -> Json:
    properties = {A_KEY: {"type": "string", "description": "a"}, B_KEY: {"type": "integer", "description": "b"}}
    parameters = {"type": "object", "properties": properties, "required": [A_KEY]}
    return {"type": "function", "function": {"name": name, "description": "d", "parameters": parameters}}


def _call(name: str, arguments: Json, call_id: str, takes_text: bool) -> Json:
    written = json.dumps(arguments) if takes_text else arguments
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": written}}


def _called(n: int, ids: Sequence[str], takes_text: bool) -> Message:
    calls = [
        _call(name, arguments, call_id, takes_text)
        for name, arguments, call_id in zip((FIRST, SECOND), ARGUMENTS, ids, strict=True)
    ]
    return {"role": "assistant", "content": "", "tool_calls": calls[:n]}


def _own(text: str, other: str) -> str:
    """Return the part of the text that follows the prefix shared with `other`."""
    n = _same(text, other)
    return text[n:]


def _same(text: str, other: str) -> int:
    most = min(len(text), len(other))
    return next((n for n in range(most) if text[n] != other[n]), most)


def begins(text: str, before: str) -> int:
    """Return the offset at which the calls begin.

    This is the end of `before`, the text that precedes an answer. If the text differs earlier, it is the start of the
    marker that contains the first difference.
    """
    n = _same(text, before)
    if n == len(before):
        return n
    for sign in SIGNS.finditer(text):
        if sign.start() <= n < sign.end():
            return sign.start()
    return n


def _tail(text: str, behind: str, ends: Sequence[str]) -> str:
    """Return the text up to the markers that end the message."""
    text = text[: len(text) - len(_common_end(text, behind))]
    ends_at = [at for end in ends if (at := text.find(end)) >= 0]
    return text[: min(ends_at, default=len(text))]


def _items(text: str, begin: int) -> tuple[CallSyntax, list[_Item]]:
    """Locate the calls at or after an offset. Raises _Unclear."""
    items = list[_Item]()
    payload, at = CallSyntax.OBJECTS, begin
    for name, arguments in zip((FIRST, SECOND), ARGUMENTS, strict=True):
        if text.find(name, at) < 0:
            break
        payload, item = _item(text, at, name, arguments)
        items.append(item)
        at = item.end
    if not items:
        raise _Unclear
    return payload, items


def _item(text: str, at: int, name: str, arguments: Json) -> tuple[CallSyntax, _Item]:
    """Locate the call of the given tool at or after an offset. Raises _Unclear."""
    named = text.find(name, at)
    for begin, end, value in _objects(text, at):
        if begin > named + len(name) + 200:
            break
        if begin < named < end:
            inner = next((candidate for candidate in _objects(text, named) if candidate[2] == arguments), None)
            if inner is None or inner[1] > end:
                raise _Unclear
            return CallSyntax.OBJECTS, _Item(begin, named, named + len(name), inner[0], inner[1], end)
        if value == arguments and begin > named:
            last = text.rfind(name, at, begin)  # some templates write the name twice
            return CallSyntax.NAMED, _Item(last, last, last + len(name), begin, end, end)
    key = text.find(A_KEY, named)
    if key < 0:
        raise _Unclear
    last = text.rfind(name, at, key)
    name_end = last + len(name)
    between = text[name_end:key]
    if between == "{":
        end = text.find("}", key)
        return CallSyntax.GEMMA, _Item(last, last, name_end, name_end, end + 1, end + 1)
    if between == "(":
        end = text.find(")", key)
        return CallSyntax.PYTHON, _Item(last, last, name_end, name_end, end + 1, end + 1)
    value = text.find(next(iter(arguments.values())), key)
    if value < 0:
        raise _Unclear
    value_end = value + len(next(iter(arguments.values())))
    closing = text.find(A_KEY, value_end)
    if closing >= 0 and text[value_end:closing].rstrip().endswith("</"):
        return CallSyntax.NESTED, _Item(last, last, name_end, key, value_end, value_end)
    end = value_end
    if B_KEY in arguments and (other := text.find(B_KEY, value_end)) >= 0:
        end = text.find(str(B_NUMBER), other) + len(str(B_NUMBER))
    return CallSyntax.TAGGED, _Item(last, last, name_end, key, end, end)


def _objects(text: str, at: int) -> Iterator[tuple[int, int, Any]]:
    """Yield the JSON objects that begin at or after an offset, including nested objects."""
    decoder = json.JSONDecoder()
    while (at := text.find("{", at)) >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            pass
        else:
            yield at, end, value
        at += 1


def _common_end(text: str, other: str) -> str:
    """Return the trailing markers that both texts share."""
    a, b = SIGNS.findall(text), SIGNS.findall(other)
    n = 0
    while n < min(len(a), len(b)) and a[-1 - n] == b[-1 - n]:
        n += 1
    return "".join(a[len(a) - n :])


def _common_prefix(text: str, other: str) -> str:
    """Return the leading markers that both texts share."""
    common = ""
    for a, b in zip(SIGNS.findall(text), SIGNS.findall(other), strict=False):
        if a != b:
            break
        common += a
    return common


def _slots(text: str) -> str:
    for call_id in (*IDS, *LONG_IDS):
        text = text.replace(call_id, CALL_ID_PLACEHOLDER)
    return text


def _parts(text: str, item: _Item) -> tuple[str, str, str]:
    return (
        _slots(text[item.begin : item.name]),
        _slots(text[item.name_end : item.arguments]),
        _slots(text[item.arguments_end : item.end]),
    )


def _counted(parts: Sequence[tuple[str, str, str]]) -> tuple[str, str, str]:
    """Return the parts of the first call, replacing the numbers in each part that differs in the second call."""
    if len(parts) < 2:
        return parts[0]
    signs = [
        part if part == other else re.sub(r"\d+", CALL_NUMBER_PLACEHOLDER, part)
        for part, other in zip(parts[0], parts[1], strict=True)
    ]
    return signs[0], signs[1], signs[2]


def _keys(call_format: CallFormat, text: str, item: _Item) -> CallFormat:
    """Find the JSON keys for the name and the arguments. Raises _Unclear."""
    value = json.loads(text[item.begin : item.end])
    inner = value
    while isinstance(inner, dict) and len(inner) and FIRST not in inner.values():
        if FIRST in inner:
            return replace(call_format, name_key="", arguments_key="")
        inner = next((child for child in inner.values() if isinstance(child, dict)), None)
    if not isinstance(inner, dict):
        raise _Unclear
    names = [key for key, field in inner.items() if field == FIRST]
    arguments = [key for key, field in inner.items() if field == ARGUMENTS[0]]
    if not names or not arguments:
        raise _Unclear
    return replace(call_format, name_key=names[0], arguments_key=arguments[0])


def _tagged(call_format: CallFormat, with_one: str, item: _Item) -> CallFormat:
    """Find the markers around each argument. Raises _Unclear."""
    before = with_one[item.name_end : item.arguments]
    value_end = with_one.find(A_TEXT, item.arguments) + len(A_TEXT)
    mid = with_one[value_end : with_one.find(B_KEY, value_end)]
    key = _common_end(before, mid)
    end = mid[: len(mid) - len(key)]
    if not key.strip() or not end.strip():
        raise _Unclear
    if not call_format.trail.startswith(end):
        raise _Unclear
    named = call_format.named
    counted = re.sub(r"\d+", CALL_NUMBER_PLACEHOLDER, key) if CALL_NUMBER_PLACEHOLDER in named else key
    named = named.removesuffix(key).removesuffix(counted)
    return replace(call_format, named=named, key=key, value_end=end, trail=call_format.trail[len(end) :])


def _python(call_format: CallFormat) -> CallFormat:
    """Return the format of calls in Python syntax. Raises _Unclear."""
    if not call_format.section.endswith("[") or not call_format.section_end.startswith("]"):
        raise _Unclear
    return replace(call_format, named="(", rest=")", between=", ")


def _nested(text: str, item: _Item) -> CallFormat:
    """Return the format of calls as XML elements with a marker before each tag. Raises _Unclear."""
    before = text[item.name_end : item.arguments]
    sign = before.removeprefix('">').removesuffix("<")
    lead = f'{sign}<invoke name="'
    section, end = f"{sign}<tool_call>\n", f"{sign}</tool_call>"
    if not sign or before != f'">{sign}<' or section + lead not in text or end not in text:
        raise _Unclear
    return CallFormat(
        CallSyntax.NESTED,
        section=section,
        lead=lead,
        named='">',
        trail=f"{sign}</invoke>\n",
        section_end=end,
        key=f"{sign}<",
        value_end=f"{sign}</",
    )


def _spelled(value: object) -> tuple[str, ...]:
    """Return the ways in which templates write a value that is not a string."""
    return json.dumps(value), str(value)
