"""Cases of the comparison that have tools, for a tiny random model whose chat template knows them.

No call is made in any: llama.cpp's server lets text come before one that must be made, and such a model writes nothing
but text. Those in which the model calls are in call_cases.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from testbed import tiny
from tests.gateway.compared import AS_SCHEMA, CHAT, COUNT, KINDS, MESSAGES, READ, RESPONSES, Case

Json = dict[str, Any]

MODEL = "hermes"
HERMES = (
    "{% if tools %}{% for t in tools %}<tools>{{ t | tojson }}</tools>{% endfor %}{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }} {{ m.content }}"
    "{% for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}<|im_end|>"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant "
    "{% if '!' in (messages[-1].content or '') %}!{% endif %}{% endif %}"
)
SAYS = (  # what the model writes to a message with an exclamation mark: two calls
    "<tool_call>", '\n{"name": "', "clock", '", "arguments": {', '"zone": "', "UTC", '", "exact": ', "true", "}}\n",
    "</tool_call>", '\n<tool_call>\n{"name": "clock", "arguments": {"zone": "CET", "exact": ',
    "false}}\n</tool_call>",
)  # fmt: skip
SCHEMA = {
    "type": "object",
    "properties": {"zone": {"enum": ["UTC", "CET"]}, "exact": {"type": "boolean"}},
    "required": ["zone", "exact"],
}
USER = {"role": "user", "content": "What time is it?"}
GIVEN = {"zone": "UTC", "exact": True}
AS_TEXT = '{"zone": "UTC", "exact": true}'


def tool(name: str) -> Json:
    return {"type": "function", "function": {"name": name, "description": "x", "parameters": SCHEMA}}


def used(name: str) -> Json:
    """The same, as Anthropic's clients describe it."""
    return {"name": name, "description": "x", "input_schema": SCHEMA}


def flat(name: str) -> Json:
    """The same, as OpenAI's Responses want it."""
    return {"type": "function", **tool(name)["function"]}


FEW: Json = {"max_tokens": 4}  # so many no call has
CALLED = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "clock", "arguments": AS_TEXT}}],
}
CAME = {"role": "tool", "tool_call_id": "call_1", "content": "noon"}
OF_CHAT: dict[str, Json] = {
    "auto": {"tool_choice": "auto", **FEW},
    "nothing chosen": FEW,
    "none": {"tool_choice": "none", **FEW},
    "what came of a call": {"messages": [USER, CALLED, CAME], **FEW},
    "a form instead": {"tool_choice": "none", "response_format": AS_SCHEMA},
    "a choice nobody has": {"tool_choice": "maybe"},
    "tools of a wrong kind": {"tools": "clock"},
    "a tool without a name": {"tools": [{"type": "function", "function": {"parameters": SCHEMA}}]},
}  # fmt: skip
OF_MESSAGES: dict[str, Json] = {
    "auto": {"tool_choice": {"type": "auto"}, **FEW},
    "nothing chosen": FEW,
    "what came of a call": {"messages": [
        USER,
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "clock", "input": GIVEN}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "noon"}]},
    ], **FEW},
}  # fmt: skip
OF_RESPONSES: dict[str, Json] = {
    "auto": {"tool_choice": "auto", "max_output_tokens": 4},
    "what came of a call": {"input": [
        {"type": "message", **USER},
        {"type": "function_call", "call_id": "call_1", "name": "clock", "arguments": AS_TEXT},
        {"type": "function_call_output", "call_id": "call_1", "output": "noon"},
    ], "max_output_tokens": 4},
}  # fmt: skip
OF_COUNT: dict[str, Json] = {"a tool": {}}
ALIKE: Json = {"model": MODEL, "temperature": 0}
USUAL: dict[str, Json] = {
    CHAT: {"messages": [USER], "tools": [tool("clock")], "parallel_tool_calls": False, "max_tokens": 400},
    MESSAGES: {"messages": [USER], "tools": [used("clock")], "max_tokens": 400},
    RESPONSES: {"input": USER["content"], "tools": [flat("clock")], "parallel_tool_calls": False,
                "max_output_tokens": 400},
    COUNT: {"messages": [USER], "tools": [used("clock")]},
    READ: {"input": USER["content"], "tools": [flat("clock")]},
}  # fmt: skip
OF_EACH = {CHAT: OF_CHAT, MESSAGES: OF_MESSAGES, RESPONSES: OF_RESPONSES, COUNT: OF_COUNT, READ: OF_COUNT}
STREAMED = ((CHAT, "auto"),)


def hermes(folder: Path) -> Path:
    """The model, as a file in this folder; of this seed what it writes by chance is text."""
    path = folder / f"{MODEL}.gguf"
    return tiny.llama(path, layers=2, vocab=300, seed=3, template=HERMES, says=SAYS)


def tool_cases() -> dict[str, Case]:
    """Name -> what is asked, of a tiny model called hermes."""
    result: dict[str, Case] = {}
    for path, each in OF_EACH.items():
        for name, change in each.items():
            body = ALIKE | USUAL[path] | change
            result[f"{KINDS[path]} with tools: {name}"] = ("POST", path, body)
            if (path, name) in STREAMED:
                result[f"{KINDS[path]} with tools, streamed: {name}"] = ("POST", path, body | {"stream": True})
    return result
