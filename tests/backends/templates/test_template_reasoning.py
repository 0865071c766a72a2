"""Tests of detecting the format of thoughts from a template's rendering of made-up chats, never from a name."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from backends.contract import DEFAULT_REASONING, JsonScalar, ReasoningFormat, TemplateFailed
from backends.templates.sandboxed_rendering import render
from backends.templates.template_reasoning import Chat, reasoning_format

PLAIN = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
BEGIN = "{% if add_generation_prompt %}[assistant]{% endif %}"


def form(template: str) -> ReasoningFormat:
    def applied(chat: Chat, options: Mapping[str, JsonScalar], begins: bool) -> str:
        return render(template, chat, add_generation_prompt=begins, options=options)

    return reasoning_format(template, applied)


def shown(begin: str, end: str, name: str = "m.reasoning_content", rest: str = "") -> str:
    """A template that writes earlier thoughts between these signs."""
    return (
        "{% for m in messages %}[{{ m.role }}]{% if " + name + " %}" + begin + "{{ " + name + " }}"
        + end + "{% endif %}{{ m.content }}" + rest + "{% endfor %}" + BEGIN
    )  # fmt: skip


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("<think>\n", "\n</think>\n\n"),
        ("[THINK]", "[/THINK]"),
        ("<|START_THINKING|>", "<|END_THINKING|>"),
        ("<seed:think>\n", "</seed:think>"),
        ("<|channel>thought\n", "<channel|>"),
        ("<think:opensource>", "</think:opensource>"),  # one that nobody has told us of
        ("<|reasoning_begin|>", "<|reasoning_end|>"),
    ],
)
@pytest.mark.parametrize("name", ["m.reasoning_content", "m.thinking", "m.reasoning"])
def test_signs_are_read_off_an_earlier_thought(begin: str, end: str, name: str) -> None:
    result = form(shown(begin, end, name))
    assert (result.begin, result.end) == (begin.strip(), (end.strip(),))
    assert not result.is_habit


def test_thoughts_that_are_a_part_of_the_content() -> None:
    result = form(
        "{% for m in messages %}[{{ m.role }}]{% if m.content is string %}{{ m.content }}{% else %}"
        "{% for p in m.content %}{% if p.type == 'thinking' %}[THINK]{{ p.thinking }}[/THINK]"
        "{% else %}{{ p.text }}{% endif %}{% endfor %}{% endif %}{% endfor %}" + BEGIN
    )
    assert (result.begin, result.end) == ("[THINK]", ("[/THINK]",))


def test_thoughts_that_are_told_before_a_call_alone() -> None:
    result = form(
        "{% for m in messages %}[{{ m.role }}]{% if m.tool_calls %}<think>{{ m.reasoning_content }}"
        "</think>call{% endif %}{{ m.content }}{% endfor %}" + BEGIN
    )
    assert not result.is_habit


def test_thoughts_that_are_only_taken_away() -> None:
    result = form("{% for m in messages %}[{{ m.role }}]{{ m.content.split('</think>')[-1] }}{% endfor %}")
    assert (result.begin, result.end, result.switch_off) == ("<think>", ("</think>",), None)


def test_channels() -> None:
    result = form(
        "{% for m in messages %}{% if m.thinking %}<|start|>assistant<|channel|>analysis<|message|>"
        "{{ m.thinking }}<|end|>{% endif %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>"
        "{% endfor %}{{ 'Reasoning: ' + (reasoning_effort or 'medium') }}"
        "{% if add_generation_prompt %}<|start|>assistant{% endif %}"
    )
    assert result.messages is not None
    assert result.messages.to_reader == "<|channel|>final"
    assert (result.effort_option, result.efforts) == ("reasoning_effort", ("low", "medium", "high"))


def test_messages_to_oneself() -> None:
    result = form(
        "{% for m in messages %}{% if m.reasoning %}<|start|>assistant to=self<|message|>{{ m.reasoning }}<|eom|>"
        "{% endif %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|eot|>{% endfor %}"
    )
    assert result.messages is not None
    assert result.messages.to_reader == " to=user"


def test_signs_around_the_answer_are_no_part_of_it() -> None:
    result = form(shown("<think>", "</think>\n<response>", rest="</response>"))
    assert (result.answer_begin, result.answer_end) == (("<response>",), ("</response>",))


def test_what_turns_thinking_off_is_what_changes_the_prompt() -> None:
    begins = "{% if enable_thinking is false %}<think>\n\n</think>{% else %}<think>{% endif %}"
    result = form(PLAIN + BEGIN + begins)
    assert (result.switch_on, result.switch_off) == ({"enable_thinking": True}, {"enable_thinking": False})
    effort = (
        "{% if reasoning_effort == 'no_think' %}</think>{% else %}<think>{{ reasoning_effort or 'low' }}{% endif %}"
    )
    result = form(PLAIN + BEGIN + effort)
    assert result.switch_off == {"reasoning_effort": "no_think"}
    assert form(PLAIN + "{# enable_thinking #}" + BEGIN + "<think>{# </think> #}").switch_off is None


def test_a_template_without_thoughts_shows_none() -> None:
    assert form(PLAIN + BEGIN) is DEFAULT_REASONING
    assert form("{{ nothing.here.at.all }}") is DEFAULT_REASONING
    assert form("{{ raise_exception('no') }}") is DEFAULT_REASONING
    # it writes whatever a message holds: these are no signs of thoughts
    assert form("{% for m in messages %}<msg>{{ m }}</msg>{% endfor %}") is DEFAULT_REASONING


def test_a_template_that_takes_long_is_not_tried_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = 0

    def applied(chat: Chat, options: Mapping[str, JsonScalar], begins: bool) -> str:
        nonlocal tried
        tried += 1
        raise TemplateFailed("it took long")

    monkeypatch.setattr("backends.templates.template_reasoning.MAX_PROBE_SECONDS", -1.0)
    assert reasoning_format("enable_thinking </think>", applied).begin == "<think>"
    assert tried == 0
