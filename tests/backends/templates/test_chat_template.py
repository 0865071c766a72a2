"""Real templates render as llama.cpp's own server renders them, and what they do not take is told in another way."""

from __future__ import annotations

from typing import Any

import pytest

from backends.contract import ChatNotSupported, ChatRejected, LocalTime, TemplateFailed
from backends.templates.chat_template import TRIAL_TOOL, ChatTemplate
from backends.templates.template_reasoning import of_template
from scripts.engine_source import engine
from scripts.template_compare.page import PAGE, page
from tests.backends.template_chats import CHATS, DIFFERS, SYSTEM, TURNS, ours, record, theirs

Json = dict[str, Any]

NAMES = sorted(record()["templates"])
USER, ANSWER = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}
THINKS = {"role": "assistant", "content": "Ho", "reasoning_content": "Well."}
PLAIN = (
    "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)
NO_SYSTEM = "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}" + PLAIN
IN_TURN = (
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Roles must alternate!') }}{% endif %}{% endfor %}" + PLAIN
)
LOOPS = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
THOUGHTS = (
    "{% for m in messages %}[{{ m.role }}]"
    "{% if m.reasoning_content %}<think>\n{{ m.reasoning_content | trim }}\n</think>\n\n"
    "{% endif %}{{ m.content }}.{% endfor %}{% if add_generation_prompt %}[assistant]<think>\n{% endif %}"
)  # fmt: skip


@pytest.mark.parametrize("chat", CHATS)
@pytest.mark.parametrize("name", NAMES)
def test_a_real_template_renders_as_in_llama_cpp(name: str, chat: str) -> None:
    made, expected = ours(name, chat), theirs(name, chat)
    assert made
    if (name, chat) in DIFFERS:
        assert made != expected, "it is equal now: take it out of DIFFERS"
    else:
        assert made == expected


def test_the_record_is_of_this_engine_and_the_page_tells_it() -> None:
    assert record()["engine"] == engine(), "make templates"
    assert len(NAMES) >= 70
    assert PAGE.read_text("utf-8") == page(), "python -m scripts.template_compare --page"


@pytest.mark.parametrize("name", NAMES)
def test_thoughts_of_a_cut_answer_go_on(name: str) -> None:
    """A cut answer continues within the thought if it was cut there, and in the answer if it was cut after it."""
    source, tokens = record()["templates"][name]["source"], record()["tokens"]
    form = of_template(source, tokens)
    template = ChatTemplate(source, tokens, form)
    thinking = {**THINKS, "content": ""}
    begun = template.render([USER, thinking], continues=True).text
    assert begun.endswith("Well.")
    assert begun.removesuffix("Well.").rstrip().endswith(form.begin.strip())
    text = template.render([USER, THINKS], continues=True).text
    assert text.endswith("Ho")
    assert text.index("Well.") < text.rindex("Ho")


def test_a_model_without_a_template_is_asked_as_chatml() -> None:
    text = ChatTemplate("").render([SYSTEM, *TURNS[:1]])
    system = f"<|im_start|>system\n{SYSTEM['content']}<|im_end|>\n"
    assert text.text == f"{system}<|im_start|>user\nHello!<|im_end|>\n<|im_start|>assistant\n"


@pytest.mark.parametrize("template", [NO_SYSTEM, IN_TURN])
def test_a_system_message_that_is_refused_stands_before_the_users_words(template: str) -> None:
    """Gemma 2 says so; Mistral 7B 0.1 only minds that a user begins."""
    text = ChatTemplate(template).render([{"role": "system", "content": "Be kind."}, USER])
    assert (text.text, text.folded) == ("[user]Be kind.\nHi[assistant]", ("system",))
    begun = [{"role": "system", "content": "Be kind."}, USER, ANSWER]
    assert ChatTemplate(template).render(begun, continues=True).text == "[user]Be kind.\nHi[assistant]Ho"


def test_a_system_message_that_is_left_out_in_silence_is_told_too() -> None:
    """No error says it: what comes out does."""
    silent = "{% for m in messages if m.role != 'system' %}[{{ m.role }}]{{ m.content }}{% endfor %}"
    assert ChatTemplate(silent).render([{"role": "system", "content": "Be kind."}, USER]).text == "[user]Be kind.\nHi"


def test_turns_that_are_refused_are_joined() -> None:
    text = ChatTemplate(IN_TURN).render([USER, USER, ANSWER, USER])
    assert (text.text, text.folded) == ("[user]Hi\n\nHi[assistant]Ho[user]Hi[assistant]", ("turns",))


def test_tools_that_are_refused_are_told_in_words() -> None:
    call = {"type": "function", "function": {"name": "clock", "arguments": {"zone": "UTC"}}}
    chat: list[Json] = [
        USER,
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "noon"},
        USER,
    ]
    text = ChatTemplate(IN_TURN).render(chat)
    rendered = (
        '[assistant]{"name": "clock", "arguments": {"zone": "UTC"}}[user]Result of the call:\nnoon\n\nHi[assistant]'
    )
    assert (text.text, text.folded) == (f"[user]Hi{rendered}", ("tools",))


@pytest.mark.parametrize("value", [{"zone": "UTC"}, '{"zone": "UTC"}'])
@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("{{ a | tojson }}", '{"zone": "UTC"}'),
        ("{{ a }}", '{"zone": "UTC"}'),
        ("{% for k, v in a.items() %}{{ k }}={{ v }}{% endfor %}", "zone=UTC"),
    ],
)
def test_arguments_are_given_as_they_are_written(value: object, written: str, expected: str) -> None:
    template = (
        "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}{% set a = c.function.arguments %}"
        + written + "{% endfor %}{% endfor %}"
    )  # fmt: skip
    call: Json = {"type": "function", "function": {"name": "clock", "arguments": value}}
    chat: list[Json] = [USER, {"role": "assistant", "content": "", "tool_calls": [call]}]
    text = ChatTemplate(template).render(chat)
    assert text.text == f"Hi{expected}"


def test_a_begun_answer_goes_on_behind_its_thought() -> None:
    template = ChatTemplate(THOUGHTS)
    before = "[user]Hi.[assistant]<think>\n"
    assert template.render([USER]).text == before
    assert template.render([USER, ANSWER], continues=True).text == f"{before}\n</think>\n\nHo"
    assert template.render([USER, THINKS], continues=True).text == f"{before}Well.\n</think>\n\nHo"
    assert template.render([USER, {**THINKS, "content": ""}], continues=True).text == f"{before}Well."
    raw = {"role": "assistant", "content": "Well.</think>Ho"}  # as an answer whose thoughts were not parted from it
    assert template.render([USER, raw], continues=True).text == f"{before}Well.</think>Ho"


def test_earlier_thoughts_are_told_as_the_template_wants() -> None:
    harmony = THOUGHTS.replace("reasoning_content", "thinking")
    result = "[user]Hi.[assistant]<think>\nWell.\n</think>\n\nHo.[user]Hi.[assistant]<think>\n"
    for template in (THOUGHTS, harmony):
        assert ChatTemplate(template).render([USER, THINKS, USER]).text == result
    assert ChatTemplate(PLAIN).render([USER, THINKS, USER]).text == "[user]Hi[assistant]Ho[user]Hi[assistant]"


BEFORE_CALLS = (  # as Kimi K2 Thinking and Gemma 4: what was thought before a call, since the last question
    "{% set ns = namespace(asked=0) %}"
    "{% for m in messages if m.role == 'user' %}{% set ns.asked = loop.index0 %}{% endfor %}"
    "{% set ns.n = -1 %}{% for m in messages %}{% if m.role == 'user' %}{% set ns.n = ns.n + 1 %}{% endif %}"
    "[{{ m.role }}]{% if m.tool_calls %}{% if ns.n == ns.asked %}<think>{{ m.thinking }}</think>{% endif %}"
    "{% for c in m.tool_calls %}{{ c.function.arguments | tojson }}{% endfor %}{% endif %}{{ m.content }}{% endfor %}"
)
CALLS: Json = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"type": "function", "function": {"name": "clock", "arguments": {"zone": "UTC"}}}],
}  # fmt: skip
RESULT = {"role": "tool", "content": "noon"}


def test_thoughts_between_calls_of_this_turn_are_told_where_a_template_tells_no_others() -> None:
    template = ChatTemplate(BEFORE_CALLS)
    thinks = {**CALLS, "reasoning_content": "Well."}
    result = '[user]Hi[assistant]<think>Well.</think>{"zone": "UTC"}[tool]noon'
    assert template.render([USER, thinks, RESULT]).text == result
    later = [USER, thinks, RESULT, THINKS, USER]
    assert template.render(later).text == ('[user]Hi[assistant]{"zone": "UTC"}[tool]noon[assistant]Ho[user]Hi')


def test_words_before_a_call_end_its_thought_where_both_are_refused() -> None:
    """gpt-oss is like that: otherwise the call and its result would be rendered as text."""
    template = ChatTemplate(record()["templates"]["openai-gpt-oss-120b"]["source"])
    text = {**CALLS, "content": "I look.", "reasoning_content": "Well."}
    result = template.render([USER, text, RESULT])
    assert "analysis<|message|>Well.\n\nI look.<|end|>" in result.text
    assert "to=functions.clock" in result.text
    assert result.folded == ("thoughts",)


@pytest.mark.parametrize(
    "name", ["Kimi-K2-Thinking", "google-gemma-4-31B-it", "CohereForAI-c4ai-command-r7b-12-2024-tool_use"]
)
def test_real_templates_are_told_what_was_thought_before_a_call(name: str) -> None:
    template = ChatTemplate(record()["templates"][name]["source"], record()["tokens"])
    thinks = {**CALLS, "reasoning_content": "Well, so be it."}
    assert "Well, so be it." in template.render([USER, thinks, RESULT], tools=[TRIAL_TOOL]).text


def test_content_is_a_list_where_a_template_wants_one() -> None:
    parts = "{% for m in messages %}{% for p in m.content if p.type == 'text' %}{{ p.text }};{% endfor %}{% endfor %}"
    assert ChatTemplate(parts).render([SYSTEM, USER]).text == f"{SYSTEM['content']};Hi;"


def test_options_and_the_date_are_told() -> None:
    template = ChatTemplate(
        "{{ date_string }} {{ datetime }} {{ enable_thinking }} {{ effort }} {{ bos_token }}", {"bos_token": "<s>"}
    )
    options: dict[str, Any] = {"effort": "low", "bos_token": "mine", "messages": "mine"}
    text = template.render([USER], now=LocalTime(0.0, 7200), options=options)
    assert text.text == "01 Jan 1970 Jan 01 1970 True low <s>"
    assert " False " in template.render([USER], options={"enable_thinking": False}).text
    deliberates = ChatTemplate("{% if enable_thinking %}Deliberate.{% endif %}" + PLAIN)  # as Apertus, whose answers
    assert deliberates.render([USER]).text == "[user]Hi[assistant]"  # begin alike: off, as llama.cpp's server has it


def test_what_a_template_says_against_a_chat_reaches_the_person() -> None:
    with pytest.raises(ChatRejected, match="Only odd chats"):
        ChatTemplate("{{ raise_exception('Only odd chats') }}").render([USER])
    with pytest.raises(ChatNotSupported):
        ChatTemplate("{% for").render([USER])


@pytest.mark.parametrize("loops", [LOOPS, "{% if messages[0].content != 'Hi' %}" + LOOPS + "{% endif %}"])
def test_a_template_that_never_ends_is_stopped_while_it_is_tried(loops: str) -> None:
    """All that is tried for one prompt has one second of the processor together."""
    with pytest.raises(TemplateFailed) as stopped:
        ChatTemplate(loops).render([USER])
    assert not isinstance(stopped.value, ChatNotSupported)
