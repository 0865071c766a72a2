"""The call that a model was writing when its answer was cut short: which tool, and which arguments are whole. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.core.json_cut import value_at, whole_of
from app.core.tool_arguments import value_of
from app.core.tool_marks import (
    ARGS,
    BETWEEN,
    CALL,
    CALL_ARGUMENTS,
    CALL_ID,
    FUNCTION,
    KEY,
    KEY_END,
    OPEN,
    PARAMETER,
    PARAMETER_END,
    TOOL_CALLS,
    VALUE,
    VALUE_END,
    Call,
    Tools,
    args_calls,
    called,
    json_calls,
    kimi_name,
    wanted_for,
)


def begun_calls(style: str, text: str, tools: Tools) -> list[Call]:
    """The calls of a text that begins with a sign of calls and was cut: those that are whole, and one that is not.
    None where it is not clear which tool that one is of."""
    try:
        match style:
            case "qwen_coder":
                return _qwen(text, tools)
            case "glm":
                return _glm(text, tools)
            case "kimi":
                head, sign, arguments = text.partition(CALL)[2].partition(CALL_ARGUMENTS)
                name = kimi_name(head.strip(), tools) if sign else None
                return [_half(name, whole_of(arguments), text)]
            case "mistral" | "ministral" if ARGS in text:
                return _args(text, tools)
        return _json(text, tools)
    except ValueError:
        return []


def _half(name: object, arguments: object, text: str) -> Call:
    """Its arguments lack their end, as the model's do: nobody shall take them for whole. Raises ValueError."""
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise ValueError("no tool is called")
    return Call(name, called(name, arguments).arguments[:-1], text)


def _json(text: str, tools: Tools) -> list[Call]:
    """{"name": …, "arguments": {…, or several of them, after a sign or a bracket. Raises ValueError."""
    calls, at = list[Call](), max(0, text.find("{"))
    while True:
        while at < len(text) and text[at] in BETWEEN + ",":
            at += 1
        try:
            _, end = value_at(text, at)
        except ValueError:
            break
        if not (whole := json_calls(text[at:end], tools)):
            raise ValueError("no tool is called")
        calls, at = calls + whole, end
    if at == len(text):
        return calls
    value = whole_of(text[at:])
    name = value.get("name") if isinstance(value, Mapping) else None
    if not isinstance(name, str) or name not in tools:  # an answer in JSON has names of its own
        raise ValueError("no tool is called")
    arguments = value.get("arguments", value.get("parameters", {}))
    return [*calls, _half(name, arguments, text[at:] if calls else text)]


def _args(text: str, tools: Tools) -> list[Call]:
    """[TOOL_CALLS]name[ARGS]{…, the last of them half. Raises ValueError."""
    before, sign, last = text.rpartition(TOOL_CALLS)
    head, is_named, arguments = last.partition(ARGS)
    name = head.partition(CALL_ID)[0].strip()
    whole = args_calls(before.strip().removeprefix(TOOL_CALLS), tools)
    if not is_named or name not in tools:
        raise ValueError("no tool is called")
    return [*whole, _half(name, whole_of(arguments), sign + last)]


def _qwen(text: str, tools: Tools) -> list[Call]:
    """<function=name><parameter=key>value</parameter>…, the last function half. Raises ValueError."""
    found = list[tuple[str, dict[str, Any]]]()
    for function in text.split(FUNCTION)[1:]:
        name, sign, rest = function.partition(">")
        if not sign or name not in tools:
            raise ValueError("no tool is called")
        values: dict[str, Any] = {}
        for part in rest.split(PARAMETER)[1:]:
            key, _, value = part.partition(">")
            told, is_whole, _ = value.rpartition(PARAMETER_END)
            if is_whole:
                told = told.removeprefix("\n").removesuffix("\n")
                values[key.strip()] = value_of(told, wanted_for(tools[name], key.strip()))
        found.append((name, values))
    if not found:
        raise ValueError("no tool is called")
    return [*(called(*one) for one in found[:-1]), _half(*found[-1], text)]


def _glm(text: str, tools: Tools) -> list[Call]:
    """<tool_call>name<arg_key>key</arg_key><arg_value>value</arg_value>… Raises ValueError."""
    head, sign, rest = text.partition(OPEN)[2].partition("<")
    name, values = head.strip(), dict[str, Any]()
    if not sign or name not in tools:
        raise ValueError("no tool is called")
    for part in (sign + rest).split(KEY)[1:]:
        key, _, value = part.partition(KEY_END)
        told, is_whole, _ = value.partition(VALUE)[2].rpartition(VALUE_END)
        if is_whole:
            values[key.strip()] = value_of(told, wanted_for(tools[name], key.strip()))
    return [_half(name, values, text)]
