"""Conversations with several system messages, as chat templates take them."""

from __future__ import annotations

import time

import pytest

from app.core.tools.template_messages import Message, one_system


def said(*parts: str) -> list[Message]:
    """S: the system, U: the user, A: the model, T: a tool, each before what it says."""
    roles = {"S": "system", "U": "user", "A": "assistant", "T": "tool"}
    return [{"role": roles[part[0]], "content": part[1:]} for part in parts]


CASES: dict[str, tuple[list[str], list[str]]] = {
    "nothing": ([], []),
    "none": (["Ua", "Ab", "Uc"], ["Ua", "Ab", "Uc"]),
    "one": (["Sa", "Ub"], ["Sa", "Ub"]),
    "one alone": (["Sa"], ["Sa"]),
    "several at the beginning": (["Sa", "Sb", "Sc", "Ud"], ["Sa\n\nb\n\nc", "Ud"]),
    "an empty one at the beginning": (["S", "Sb", "Uc"], ["Sb", "Uc"]),
    "one behind an answer": (["Sa", "Ub", "Ac", "Sd"], ["Sa", "Ub", "Ac", "Ud"]),
    "before the user's words": (["Ua", "Ab", "Sc", "Ud"], ["Ua", "Ab", "Uc\n\nd"]),
    "behind them": (["Sa", "Ub", "Sc", "Ad"], ["Sa", "Ub\n\nc", "Ad"]),
    "between them": (["Ua", "Sb", "Sc", "Ud"], ["Ua\n\nb\n\nc\n\nd"]),
    "behind what a tool said": (["Ua", "Tb", "Sc", "Ad"], ["Ua", "Tb", "Uc", "Ad"]),
    "users stay apart": (["Ua", "Ub", "Sc", "Ud", "Ue"], ["Ua", "Ub\n\nc\n\nd", "Ue"]),
}


@pytest.mark.parametrize("case", CASES)
def test_one_system_message_at_the_beginning(case: str) -> None:
    values, messages = CASES[case]
    assert one_system(said(*values)) == said(*messages)


def test_what_else_a_message_has_stays_and_nothing_is_changed_in_place() -> None:
    values: list[Message] = [
        {"role": "user", "content": "a", "name": "anna"},
        {"role": "system", "content": "b"},
        {"role": "assistant", "content": "", "tool_calls": []},
    ]
    before = [dict(item) for item in values]
    assert one_system(values) == [{"role": "user", "content": "a\n\nb", "name": "anna"}, values[2]]
    assert values == before


def test_thousands_of_them_are_joined_at_once() -> None:
    begun_s = time.process_time()
    (result,) = one_system([{"role": "system", "content": "x" * 2000}] * 4096)
    assert time.process_time() - begun_s < 0.25
    assert len(result["content"]) == 4096 * 2002 - 2
