"""Calls in what a model writes, whole or in pieces; and what is no call."""

from __future__ import annotations

from typing import Any

import pytest

from app.core.tool_calls import Call, CallFinder, calls_grammar, one_by_one

CLOCK = '{"name": "clock", "arguments": {"zone": "UTC"}}'
LLAMA = CLOCK.replace("arguments", "parameters")
CALLED = Call("clock", '{"zone": "UTC"}')


def found(style: str, parts: list[str]) -> tuple[str, list[Call]]:
    finder = CallFinder(style, ["clock"])
    told, calls = "", list[Call]()
    for text, some in [*(finder.push(part) for part in parts), finder.flush()]:
        told += text
        calls += some
    return told, calls


CASES: list[tuple[str, str, str | None, list[Call]]] = [
    ("hermes", f"<tool_call>\n{CLOCK}\n</tool_call>", "", [CALLED]),
    ("hermes", f"Let me look.\n<tool_call>{CLOCK}</tool_call>", "Let me look.", [CALLED]),
    ("hermes", f"<tool_call>{CLOCK}</tool_call>\n<tool_call>{CLOCK}</tool_call>", "", [CALLED] * 2),
    ("hermes", f"<tool_call>{CLOCK}", "", [CALLED]),  # it stopped before the end sign
    ("hermes", "<tool_call>{no json}</tool_call>", "<tool_call>{no json}</tool_call>", []),
    ("hermes", "<tool_call>{", "<tool_call>{", []),
    ("hermes", f"<think>a <tool_call> may do</think>\n<tool_call>{CLOCK}</tool_call>",
     "<think>a <tool_call> may do</think>", [CALLED]),
    ("hermes", f'<think><tool_call>{{"name"</think>\n<tool_call>{CLOCK}</tool_call>',
     '<think><tool_call>{"name"</think>', [CALLED]),
    ("hermes", "<tool_call> ", "<tool_call> ", []),
    ("hermes", "a < b and <tool", "a < b and <tool", []),
    ("hermes", '<tool_call>{"name": "rm", "arguments": {}}</tool_call>', None, []),
    ("hermes", "two\n\nlines \n", "two\n\nlines \n", []),
    ("mistral", f"[TOOL_CALLS][{CLOCK}, {CLOCK}]", "", [CALLED] * 2),
    ("mistral", f"Well. [TOOL_CALLS] [{CLOCK}]", "Well.", [CALLED]),
    ("mistral", "[TOOL_CALLS] oh", "[TOOL_CALLS] oh", []),
    ("mistral", "[a list]", "[a list]", []),
    ("llama3", '{"name": "clock", "parameters": {"zone": "UTC"}}', "", [CALLED]),
    ("llama3", '<|python_tag|>{"name": "clock", "parameters": {"zone": "UTC"}}', "", [CALLED]),
    ("llama3", f"{LLAMA}; {LLAMA}", "", [CALLED] * 2),
    ("llama3", f"<|python_tag|>{LLAMA};\n{LLAMA}\n", "", [CALLED] * 2),
    ("llama3", f"{LLAMA} and {LLAMA}", f"{LLAMA} and {LLAMA}", []),
    ("llama3", '{"name": "other", "parameters": {}}', '{"name": "other", "parameters": {}}', []),
    ("llama3", 'Write {"name": 1}', 'Write {"name": 1}', []),
    ("llama3", '{"name": "clock", "parameters": "x"}', '{"name": "clock", "parameters": "x"}', []),
]  # fmt: skip


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(("style", "text", "told", "calls"), CASES)
def test_text_and_calls_are_told_apart(
    style: str, text: str, told: str | None, calls: list[Call], size: int
) -> None:
    parts = [text[at : at + size] for at in range(0, len(text), size)]
    assert found(style, parts) == (text if told is None else told, calls)


def test_text_is_told_as_soon_as_it_is_sure() -> None:
    finder = CallFinder("hermes", ["clock"])
    assert finder.push("Hello <b") == ("Hello <b", [])
    assert finder.push(" and <tool") == (" and", [])
    assert finder.push(" box") == (" <tool box", [])
    assert finder.push(" <tool_call> is") == (" <tool_call> is", [])


@pytest.mark.parametrize("style", ["hermes", "mistral", "llama3"])
def test_a_forced_call_has_a_grammar(style: str) -> None:
    schema = {"type": "object", "properties": {"zone": {"enum": ["UTC"]}}, "required": ["zone"]}
    text = calls_grammar(style, {"clock": schema, "stop": {}}, many=True)
    assert '\\"name\\": \\"clock\\"' in text
    assert ("parameters" in text) == (style == "llama3")
    assert text.count("root ::= ") == 1


def said(*names: str) -> dict[str, Any]:
    calls = [{"id": name, "function": {"name": name, "arguments": {}}} for name in names]
    return {"role": "assistant", "content": "Let me look.", "tool_calls": calls}


def came(name: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": name, "content": name.upper()}


def test_several_calls_are_told_one_after_another_with_what_came_of_each() -> None:
    user: dict[str, Any] = {"role": "user", "content": "x"}
    told = one_by_one([user, said("a", "b"), came("b"), came("a"), user])
    assert told == [user, {**said("b"), "content": ""}, came("b"), said("a"), came("a"), user]
    unnamed: dict[str, Any] = {"role": "tool", "content": "x"}
    assert one_by_one([said("a", "b"), unnamed, unnamed])[2:] == [
        {**said("b"), "content": ""}, unnamed,
    ]  # fmt: skip


def test_calls_without_results_and_single_ones_stay() -> None:
    plain = [said("a"), came("a"), {"role": "user", "content": "x"}]
    assert one_by_one(plain) == plain
    assert one_by_one([said("a", "b"), came("a")]) == [
        said("a"), came("a"), {**said("b"), "content": ""},
    ]  # fmt: skip


def test_only_a_grammar_for_many_lets_llama_call_twice() -> None:
    many, one = (calls_grammar("llama3", {"clock": {}}, many=many) for many in (True, False))
    assert '("; " ' in many
    assert "{0,7}" in many
    assert "{0,0}" in one
