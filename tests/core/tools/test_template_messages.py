"""Conversations with calls, as the templates of some families want them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from app.core.tools.template_messages import counted_ids, for_template, one_call_per_message, short_ids
from backends.contract import CallFormat, CallIdKind, CallSyntax, PastCalls
from tests.core.call_formats import FORMATS

USER: dict[str, Any] = {"role": "user", "content": "x"}


def said(*names: str) -> dict[str, Any]:
    calls = [{"id": name, "function": {"name": name, "arguments": {}}} for name in names]
    return {"role": "assistant", "content": "Let me look.", "tool_calls": calls}


def came(name: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": name, "content": name.upper()}


def test_several_calls_are_told_one_after_another_with_what_came_of_each() -> None:
    reports = one_call_per_message([USER, said("a", "b"), came("b"), came("a"), USER])
    assert reports == [USER, {**said("b"), "content": ""}, came("b"), said("a"), came("a"), USER]
    unnamed: dict[str, Any] = {"role": "tool", "content": "x"}
    assert one_call_per_message([said("a", "b"), unnamed, unnamed])[2:] == [
        {**said("b"), "content": ""}, unnamed,
    ]  # fmt: skip


def test_calls_without_results_and_single_ones_stay() -> None:
    thinks = {**said("a", "b"), "reasoning_content": "Well."}
    thoughts = [item.get("reasoning_content") for item in one_call_per_message([USER, thinks, came("a"), came("b")])]
    assert thoughts == [None, "Well.", None, None, None]  # once, before the first
    plain = [said("a"), came("a"), USER]
    assert one_call_per_message(plain) == plain
    assert one_call_per_message([said("a", "b"), came("a")]) == [
        said("a"), came("a"), {**said("b"), "content": ""},
    ]  # fmt: skip


def ids(reports: list[dict[str, Any]]) -> list[list[str]]:
    """Return for each message the IDs of its calls, or of the call whose result it is."""
    return [[call["id"] for call in item.get("tool_calls", ())] or [item["tool_call_id"]]
            for item in reports if item["role"] != "user"]  # fmt: skip


def test_mistral_is_told_ids_of_nine_letters_and_digits() -> None:
    long, short = "call_0123456789abcdef01234567", "a1B2c3D4e"
    reports = short_ids([USER, said(long, short), came(short), came(long), USER, said(long)])
    (name, other), first, second, again = ids(reports)
    assert (other, first, second, again) == (short, [short], [name], [name])
    assert len(name) == 9
    assert name.isalnum()
    assert reports[0] is USER
    assert short_ids([came("")])[0]["tool_call_id"].isalnum()


def test_calls_without_ids_get_some_and_their_results_the_same_in_order() -> None:
    unnamed = {"role": "tool", "content": "x"}  # as Ollama's are
    reports = short_ids([USER, said("", ""), unnamed, unnamed, said(""), unnamed])
    (name, other), first, second, (third,), last = ids(reports)
    assert [first, second, last] == [[name], [other], [third]]
    assert len({name, other, third}) == 3


def test_kimi_counts_the_calls_of_a_conversation() -> None:
    reports = counted_ids([USER, said("a", "b"), came("b"), came("a"), USER, said("a"), came("a")])
    both, second, first, again, last = ids(reports)
    assert both == ["functions.a:0", "functions.b:1"]
    assert (second, first) == ([both[1]], [both[0]])
    assert again == last == ["functions.a:2"]
    assert ids(counted_ids([came("x")])) == [["x"]]  # of a call that is not there
    unnamed = {"role": "tool", "content": "x"}
    assert ids(counted_ids([said("", ""), unnamed, unnamed]))[1:] == [["functions.:0"], ["functions.:1"]]


def test_only_those_families_are_told_otherwise() -> None:
    messages = [USER, said("a", "b"), came("a"), came("b")]
    assert for_template(FORMATS["hermes"], messages) == for_template(None, messages) == messages
    assert for_template(FORMATS["llama3"], messages) == one_call_per_message(messages)
    short = replace(FORMATS["ministral"], past=PastCalls(ids=CallIdKind.SHORT))
    assert for_template(short, messages) == short_ids(messages)
    assert for_template(FORMATS["kimi"], messages) == counted_ids(messages)


def called(*arguments: object) -> dict[str, Any]:
    calls = [{"function": {"name": "clock", "arguments": argument}} for argument in arguments]
    return {"role": "assistant", "content": "Well.", "tool_calls": calls}


def test_a_template_that_writes_no_calls_is_told_them_as_text() -> None:
    python = CallFormat(
        CallSyntax.PYTHON, section="<[", between=", ", section_end="]>", past=PastCalls(writes_calls=False)
    )
    (result,) = for_template(python, [called({"zone": "UTC", "n": 1}, {})])
    assert result == {"role": "assistant", "content": "Well.\n<[clock(zone='UTC', n=1), clock()]>"}
    hermes = replace(FORMATS["hermes"], past=PastCalls(writes_calls=False))
    (result,) = for_template(hermes, [called({"zone": "UTC"})])
    assert result["content"].endswith('<tool_call>\n{"name": "clock", "arguments": {"zone": "UTC"}}\n</tool_call>')
    assert for_template(hermes, [USER]) == [USER]


def test_a_template_that_writes_arguments_as_they_are_is_told_json() -> None:
    text = replace(FORMATS["hermes"], past=PastCalls(takes_text=True))
    user, result = for_template(text, [USER, called({"zone": "UTC"})])
    assert (user, result["tool_calls"][0]["function"]["arguments"]) == (USER, '{"zone": "UTC"}')
