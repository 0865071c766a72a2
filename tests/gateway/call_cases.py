"""Cases of the comparison in which a tool is called: the model of tool_cases.py is made to write the same two calls.

Each token of them follows the one before it and no other would, so that they come whatever else the grammar of a server
lets come. Where one call alone may be made, llama.cpp's server makes both for such a template, and ours the first.
"""

from __future__ import annotations

from typing import Any

from tests.gateway.compared import AS_SCHEMA, CHAT, KINDS, MESSAGES, RESPONSES, Case
from tests.gateway.compared import SCHEMA as MANNERS
from tests.gateway.tool_cases import MODEL, flat, tool, used

Json = dict[str, Any]

CALL = {"role": "user", "content": "Call the clock!"}
OF_CHAT: dict[str, Json] = {
    "if it likes": {"tool_choice": "auto"},
    "one, if it likes": {"tool_choice": "auto", "parallel_tool_calls": False},
    "one that must be": {"tool_choice": "required", "parallel_tool_calls": False},
    "several": {"tool_choice": "required", "parallel_tool_calls": True},
    "one that is named": {"tool_choice": {"type": "function", "function": {"name": "clock"}}},
    "cut short": {"tool_choice": "required", "max_tokens": 6},
    "beside a form": {"response_format": AS_SCHEMA},
    "in two answers": {"n": 2},
}
OF_MESSAGES: dict[str, Json] = {
    "if it likes": {"tool_choice": {"type": "auto"}},
    "several": {"tool_choice": {"type": "any"}},
    "one, if it likes": {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
    "one that must be": {"tool_choice": {"type": "any", "disable_parallel_tool_use": True}},
    "one that is named": {"tool_choice": {"type": "tool", "name": "clock"}},
    "cut short": {"tool_choice": {"type": "any"}, "max_tokens": 6},
    "beside a form": {"output_config": {"format": {"type": "json_schema", "schema": MANNERS}}},
}
OF_RESPONSES: dict[str, Json] = {
    "if it likes": {"tool_choice": "auto"},
    "one, if it likes": {"tool_choice": "auto", "parallel_tool_calls": False},
    "one that must be": {"tool_choice": "required", "parallel_tool_calls": False},
    "several": {"tool_choice": "required", "parallel_tool_calls": True},
    "one that is named": {"tool_choice": {"type": "function", "name": "clock"}},
    "cut short": {"tool_choice": "required", "max_output_tokens": 6},
    "beside a form": {"text": {"format": {"type": "json_schema", "name": "manners", "schema": MANNERS}}},
}  # fmt: skip
USUAL: dict[str, Json] = {
    CHAT: {"messages": [CALL], "tools": [tool("clock")], "max_tokens": 60},
    MESSAGES: {"messages": [CALL], "tools": [used("clock")], "max_tokens": 60},
    RESPONSES: {"input": CALL["content"], "tools": [flat("clock")], "max_output_tokens": 60},
}
OF_EACH = {CHAT: OF_CHAT, MESSAGES: OF_MESSAGES, RESPONSES: OF_RESPONSES}
STREAMED = frozenset({"one, if it likes", "one that must be", "several", "cut short", "beside a form"})


def call_cases() -> dict[str, Case]:
    """Name -> what is asked, of the same model as in tool_cases.py."""
    result: dict[str, Case] = {}
    for path, each in OF_EACH.items():
        for name, change in each.items():
            body = {"model": MODEL, "temperature": 0} | USUAL[path] | change
            result[f"{KINDS[path]}, called: {name}"] = ("POST", path, body)
            if name in STREAMED:
                streamed = body | {"stream": True}
                result[f"{KINDS[path]}, called, streamed: {name}"] = ("POST", path, streamed)
    return result
