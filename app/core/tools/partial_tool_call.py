"""The call that a model was writing when its answer was cut short: which tool, and which arguments are whole. Pure."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from app.core.json_schema.partial_json import value_at, whole_of
from app.core.tools.tool_arguments import value_of
from app.core.tools.tool_formats import Call, Tools, called
from app.core.tools.tool_literals import Cut, Literals
from app.core.tools.tool_objects import BETWEEN, json_calls, name_and_arguments
from app.core.tools.tool_readers import head_tool, python_calls, wanted_for
from app.core.tools.tool_signs import Signs, signs_of
from backends.templates.call_format import CallFormat, Payload


def begun_calls(one: CallFormat, text: str, tools: Tools) -> list[Call]:
    """The calls of a text that begins with a sign of calls and was cut: those that are whole, and one that is not.
    None where it is not clear which tool that one is of."""
    signs = signs_of(one)
    try:
        match one.payload:
            case Payload.OBJECTS:
                return _json(one, text, tools)
            case Payload.NAMED | Payload.HARMONY:
                return _named(one, signs, text, tools)
            case Payload.TAGGED:
                return _tagged(signs, text, tools)
            case Payload.GEMMA:
                head, sign, rest = text.partition(signs.last)[2].partition("{")
                found: dict[str, Any] = {}
                with suppress(Cut):
                    Literals(rest).pairs(":", "}", found)
                return [
                    _half(head.strip().removeprefix("call:") if sign else None, found, text, tools)
                ]
            case Payload.PYTHON:
                calls, half = python_calls(text.partition(signs.last)[2], tools)
                return (
                    []
                    if calls is None or half is None
                    else [*calls, _half(half[0], half[1], text, tools)]
                )
            case Payload.NESTED:
                name, sign, _ = text.rpartition(signs.inner)[2].partition(signs.behind_name)
                return [_half(name if sign else None, {}, text, tools)]
    except ValueError:
        return []


def _half(name: object, arguments: object, text: str, tools: Tools) -> Call:
    """Its arguments lack their end, as the model's do: nobody shall take them for whole. Raises ValueError."""
    if not isinstance(name, str) or name not in tools or not isinstance(arguments, dict):
        raise ValueError("no tool is called")
    return Call(name, called(name, arguments).arguments[:-1], text)


def _json(one: CallFormat, text: str, tools: Tools) -> list[Call]:
    """{"name": …, "arguments": {…, or several of them, after a sign or a bracket. Raises ValueError."""
    calls, at = list[Call](), max(0, text.find("{"))
    while True:
        while at < len(text) and text[at] in BETWEEN:
            at += 1
        try:
            _, end = value_at(text, at)
        except ValueError:
            break
        if not (whole := json_calls(text[at:end], tools, one)):
            raise ValueError("no tool is called")
        calls, at = calls + whole, end
    if at == len(text):
        return calls
    value = whole_of(text[at:])
    name, arguments = name_and_arguments(value, tools, one)
    if not isinstance(name, str) or name not in tools:  # an answer in JSON has names of its own
        raise ValueError("no tool is called")
    if arguments is None:
        arguments = {}
    return [*calls, _half(name, arguments, text[at:] if calls else text, tools)]


def _named(one: CallFormat, signs: Signs, text: str, tools: Tools) -> list[Call]:
    """[TOOL_CALLS]name[ARGS]{… Raises ValueError."""
    begin = signs.last or next((sign for sign in signs.begins if text.startswith(sign)), "")
    rest = text.partition(begin)[2]
    if rest.lstrip().startswith(("{", "[")) and not signs.outer:
        return _json(one, rest, tools)
    head, sign, arguments = rest.partition(signs.arguments)
    name = head_tool(one, signs, head, tools) if sign else None
    return [_half(name, whole_of(arguments), text, tools)]


def _tagged(signs: Signs, text: str, tools: Tools) -> list[Call]:
    """<function=name><parameter=key>value</parameter>… Raises ValueError."""
    rest = text.partition(signs.last)[2]
    name = next(
        (n for n in sorted(tools, key=len, reverse=True) if rest.lstrip().startswith(n)), ""
    )
    rest = rest.lstrip()[len(name) :]
    if not name or not (rest.startswith(signs.behind_name) if signs.behind_name else "<" in rest):
        raise ValueError("no tool is called")
    values: dict[str, Any] = {}
    for part in rest.split(signs.key)[1:]:
        tokens = signs.keyed[0][0] if signs.keyed else (">",)
        key, _, value = part.partition(tokens[0])
        for told, kinds in signs.keyed:
            left = value
            for token in told[1:]:
                left = left.lstrip()
                if not left.startswith(token):
                    break
                left = left.removeprefix(token)
            else:
                whole, is_whole, _ = left.rpartition(signs.value_end)
                if is_whole:
                    bare = whole.removeprefix(signs.wrap[0]).removesuffix(signs.wrap[1])
                    what = wanted_for(tools[name], key.strip())
                    is_text = kinds == frozenset({"string"})
                    values[key.strip()] = bare if is_text else value_of(bare, what)
                break
    return [_half(name, values, text, tools)]
