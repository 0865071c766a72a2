"""Formats of calls as the templates of well-known families show them."""

from __future__ import annotations

from typing import Any

from backends.contract import CALL_NUMBER_PLACEHOLDER, CallFormat, CallIdKind, CallSyntax, PastCalls

KINDS = ("string", "integer", "number", "boolean", "object", "array", "null")


def objects(**more: Any) -> CallFormat:
    value: dict[str, Any] = {"head": '{"name": "', "named": '", "arguments": ', "rest": "}"} | more
    return CallFormat(CallSyntax.OBJECTS, **value)


def keyed(text: str) -> tuple[tuple[str, str], ...]:
    return tuple((kind, text) for kind in KINDS)


FORMATS = {
    "hermes": objects(lead="<tool_call>\n", trail="\n</tool_call>", between="\n"),
    "mistral": objects(section="[TOOL_CALLS][", between=", ", section_end="]"),
    "llama3": CallFormat(
        CallSyntax.OBJECTS, head='{"name": "', named='", "parameters": ', rest="}", between="; ",
        arguments_key="parameters", other_begins=("<|python_tag|>",), past=PastCalls(is_single=True),
    ),
    "qwen_coder": CallFormat(
        CallSyntax.TAGGED, lead="<tool_call>\n<function=", named=">", trail="\n</function>\n</tool_call>", between="\n",
        key="\n<parameter=", keyed=keyed(">\n"), value_end="\n</parameter>",
    ),
    "glm": CallFormat(
        CallSyntax.TAGGED, lead="<tool_call>", trail="\n</tool_call>", between="\n", key="\n<arg_key>",
        keyed=keyed("</arg_key>\n<arg_value>"), value_end="</arg_value>",
    ),
    "kimi": CallFormat(
        CallSyntax.NAMED, section="<|tool_calls_section_begin|>", lead="<|tool_call_begin|>functions.",
        named=f":{CALL_NUMBER_PLACEHOLDER}<|tool_call_argument_begin|>", trail="<|tool_call_end|>",
        section_end="<|tool_calls_section_end|>", past=PastCalls(ids=CallIdKind.COUNTED),
    ),
    "ministral": CallFormat(CallSyntax.NAMED, lead="[TOOL_CALLS]", named="[ARGS]"),
}  # fmt: skip
