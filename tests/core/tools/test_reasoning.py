"""Thoughts parted from answers, however the text comes in pieces."""

from __future__ import annotations

import pytest

from app.core.errors import BadInput
from app.core.tools.reasoning import (
    AnswerStart,
    PartKind,
    Thinking,
    ThoughtSplitter,
    answer_prefix,
    answer_start,
    early_end,
    marker_tokens,
    template_options,
)
from backends.contract import DEFAULT_REASONING, MessageMarkers, ReasoningFormat

THINK = ReasoningFormat("<think>", ("</think>",), switch_off={"enable_thinking": False})
HARMONY = ReasoningFormat(
    "<|channel|>analysis<|message|>",
    ("<|end|>",),
    messages=MessageMarkers("<|start|>", "<|message|>", ("<|end|>", "<|return|>", "<|call|>"), "<|channel|>final"),
    effort_option="reasoning_effort",
    efforts=("low", "medium", "high"),
)
MUSE = ReasoningFormat(
    " to=self<|message|>",
    ("<|eom|>",),
    messages=MessageMarkers("<|start|>", "<|message|>", ("<|eom|>", "<|eot|>"), " to=user"),
)
GEMMA = ReasoningFormat("<|channel>thought", ("<channel|>",))
KIMI = ReasoningFormat(
    "<|open|>think<|sep|>",
    ("<|close|>think<|sep|>",),
    answer_begin=("<|open|>response<|sep|>",),
    answer_end=("<|close|>response<|sep|>", "<|close|>message<|sep|>"),
)
GRANITE = ReasoningFormat("<think>", ("</think>",), answer_begin=("<response>",), answer_end=("</response>",))
OPENED, ANSWERS, TOOLS = (AnswerStart(in_thought=True), AnswerStart(in_answer=True), AnswerStart(keeps_calls=True))
CALL = '<|channel|>commentary to=functions.x <|constrain|>json<|message|>{"a":1}<|call|>'
KIMI_CONTROLS = ("<|open|>", "<|close|>", "<|sep|>")
GEMMA_CONTROLS = ("<|channel>", "<channel|>")


def parted(
    form: ReasoningFormat,
    written: str,
    where: AnswerStart = AnswerStart(),  # noqa: B008  frozen
    controls: tuple[str, ...] = (),
    step: int = 1,
) -> tuple[str, str]:
    """Thought and answer of a text that comes in pieces of so many characters."""
    splitter = ThoughtSplitter(form, where, frozenset(controls))
    parts = []
    for at in range(0, len(written), step):
        parts += splitter.push(written[at : at + step])
    parts += splitter.flush()
    assert "".join(part.written for part in parts) == written
    thought = answer = ""
    for part in parts:
        match part.kind:
            case PartKind.TURN:
                thought, answer = answer, ""
            case PartKind.THOUGHT:
                thought += part.text
            case PartKind.ANSWER:
                answer += part.text
    return thought, answer


CASES = {
    "a thought, and an answer": (THINK, "<think>\nIs 1 < 3?\n</think>\n\nYes.", AnswerStart(), (), "Is 1 < 3?", "Yes."),
    "an empty one": (THINK, "<think>\n\n</think>\n\nYes.", AnswerStart(), (), "", "Yes."),
    "the template opened it": (THINK, "Hm.\n\nWell.\n</think>\n\nYes.", OPENED, (), "Hm.\n\nWell.", "Yes."),
    "the template opened it, and the model again": (THINK, "<think>Hm", AnswerStart(), (), "Hm", ""),
    "it was cut": (THINK, "Hm.\n\nWel", OPENED, (), "Hm.\n\nWel", ""),
    "it was cut in its end": (THINK, "Hm.\n</thi", OPENED, (), "Hm.\n</thi", ""),
    "it was ended and never begun": (THINK, "Hm.\n</think>\nYes.", AnswerStart(), (), "Hm.\n", "Yes."),
    "its end is only spoken of": (THINK, "`</think>` ends it.", AnswerStart(), (), "", "`</think>` ends it."),
    "its begin is only spoken of": (THINK, "It is <think>.", AnswerStart(), (), "", "It is <think>."),
    "another sign": (THINK, "  <thinker>", AnswerStart(), (), "", "  <thinker>"),
    "it is turned off": (THINK, "Use\n</think>\nhere.", ANSWERS, (), "", "Use\n</think>\nhere."),
    "nothing": (THINK, "", AnswerStart(), (), "", ""),
    "by habit": (DEFAULT_REASONING, "<think>Hm</think>Yes.", AnswerStart(), (), "Hm", "Yes."),
    "by habit never ended": (DEFAULT_REASONING, "Use\n</think>\nhere.", AnswerStart(), (), "", "Use\n</think>\nhere."),
    "channels": (
        HARMONY, "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>final<|message|>Yes.",
        AnswerStart(), (), "Hm", "Yes.",
    ),
    "channels, cut in a header": (HARMONY, "<|channel|>fin", AnswerStart(), (), "", ""),
    "channels, cut in a thought": (HARMONY, "<|channel|>analysis<|message|>Hm", AnswerStart(), (), "Hm", ""),
    "channels, a stray one": (
        HARMONY, "<|channel|>commentary to=assistant<|channel|>analysis<|message|>Hm<|end|>", AnswerStart(), (),
        "Hm", "",
    ),
    "words before a call": (
        HARMONY, f"<|channel|>commentary<|message|>I look.<|end|><|start|>assistant{CALL}",
        TOOLS, (), "", f"I look.<|start|>assistant{CALL}",
    ),
    "a call in the first header": (
        HARMONY, " to=functions.x<|channel|>commentary<|message|>{}", TOOLS, (),
        "", " to=functions.x<|channel|>commentary<|message|>{}",
    ),
    "a call that nobody asked for": (HARMONY, CALL, AnswerStart(), (), '{"a":1}', ""),
    "two thoughts": (
        HARMONY, "<|channel|>analysis<|message|>A<|end|><|start|>assistant<|channel|>analysis<|message|>B<|end|>",
        AnswerStart(), (), "A\n\nB", "",
    ),
    "no channel at all": (HARMONY, "Yes.", AnswerStart(), (), "", "Yes."),
    "an answer goes on": (HARMONY, "Yes.", ANSWERS, (), "", "Yes."),
    "to oneself": (
        MUSE, " to=self<|message|>Hm<|eom|><|start|>assistant to=user<|message|>Yes.", AnswerStart(), (), "Hm", "Yes.",
    ),
    "in two tokens": (GEMMA, "<|channel>thought\nHm\n<channel|>Yes.", AnswerStart(), GEMMA_CONTROLS, "Hm", "Yes."),
    "once more": (
        GEMMA, "Yes. <|channel>thought\nHm<channel|> No. <|channel>x", AnswerStart(), GEMMA_CONTROLS,
        "Hm", "Yes.\n\nNo. x",
    ),
    "an answer with signs": (
        KIMI, "Hm<|close|>think<|sep|><|open|>response<|sep|>Yes.<|close|>response<|sep|><|close|>message<|sep|>",
        OPENED, KIMI_CONTROLS, "Hm", "Yes.",
    ),
    "an answer in words for signs": (
        GRANITE, "<think>Hm</think>\n<response>Yes.</response>", AnswerStart(), (), "Hm", "Yes.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("step", [1, 2, 5, 1000])
@pytest.mark.parametrize("case", CASES)
def test_thoughts_are_parted_however_the_text_comes(case: str, step: int) -> None:
    form, written, where, controls, thought, answer = CASES[case]
    assert parted(form, written, where, controls, step) == (thought, answer)


@pytest.mark.parametrize("step", [1, 3, 1000])
def test_a_call_on_a_line_of_its_own_ends_a_thought(step: int) -> None:
    written = "I write a <tool_call> now.\n<tool_call>{}</tool_call>"
    for calls, expected in (
        (("<tool_call>",), ("I write a <tool_call> now.", "<tool_call>{}</tool_call>")),
        ((), (written, "")),
    ):
        splitter = ThoughtSplitter(THINK, OPENED, frozenset(), calls)
        parts = [part for at in range(0, len(written), step) for part in splitter.push(written[at : at + step])]
        parts += splitter.flush()
        thought = "".join(part.text for part in parts if part.kind is PartKind.THOUGHT)
        answer = "".join(part.text for part in parts if part.kind is PartKind.ANSWER)
        assert (thought, answer) == expected


def test_text_waits_only_where_it_may_be_a_sign() -> None:
    splitter = ThoughtSplitter(THINK)
    assert splitter.push("<thi") == []
    assert [part.text for part in splitter.push("nk>I ")] == ["", "I"]
    assert [part.text for part in splitter.push("am")] == [" am"]
    assert splitter.in_thought
    assert [part.text for part in splitter.push("</")] == []
    assert [part.text for part in splitter.push("b>")] == ["</b>"]
    splitter.push("</think>")
    assert not splitter.may_think


def test_the_prompt_says_where_an_answer_begins() -> None:
    assert answer_start(THINK, "user: Hi\nassistant: <think>\n") == OPENED
    assert answer_start(THINK, "assistant: <think>\n\n</think>\n\n") == ANSWERS
    assert answer_start(THINK, "assistant: ") == AnswerStart()
    assert answer_start(HARMONY, "<|start|>assistant") == AnswerStart()
    assert answer_start(KIMI, "<|open|>response<|sep|>") == ANSWERS


def test_what_is_asked_of_thinking_is_told_to_the_template_or_refused() -> None:
    switched = ReasoningFormat("<think>", ("</think>",), switch_on={"t": True}, switch_off={"t": False})
    assert template_options(switched, Thinking()) == {}
    assert template_options(switched, Thinking(on=True, must=True)) == {"t": True}
    assert template_options(switched, Thinking(on=False, must=True)) == {"t": False}
    assert template_options(HARMONY, Thinking(effort="high")) == {"reasoning_effort": "high"}
    assert template_options(HARMONY, Thinking(effort="minimal")) == {"reasoning_effort": "low"}
    assert template_options(HARMONY, Thinking(effort="max")) == {"reasoning_effort": "high"}
    assert template_options(HARMONY, Thinking(on=False)) == {}  # many programs ask for it always
    with pytest.raises(BadInput, match="thinking_always"):
        template_options(HARMONY, Thinking(on=False, must=True))
    with pytest.raises(BadInput, match="thinking_never"):
        template_options(DEFAULT_REASONING, Thinking(on=True, must=True))
    assert template_options(DEFAULT_REASONING, Thinking(on=False, must=True)) == {}


def test_a_thought_that_is_ended_leads_to_the_answer() -> None:
    assert early_end(THINK, calls=False) == "\n</think>\n\n"
    assert early_end(GRANITE, calls=False) == "\n</think><response>\n\n"
    text = early_end(HARMONY, calls=False)
    assert text == "<|end|><|start|>assistant<|channel|>final<|message|>"
    assert early_end(HARMONY, calls=True) == "<|end|><|start|>assistant"
    assert answer_prefix(HARMONY, calls=False, thought=False) == "<|channel|>final<|message|>"
    assert answer_prefix(THINK, calls=False, thought=False) == ""


def test_signs_are_looked_for_token_by_token() -> None:
    assert set(marker_tokens(KIMI)) == set(KIMI_CONTROLS)
    assert set(marker_tokens(GEMMA)) == set(GEMMA_CONTROLS)
    assert {"<|channel|>", "<|message|>", "<|end|>", "<|start|>"} <= set(marker_tokens(HARMONY))
