"""The format of a model's thoughts, found by applying its chat template to made-up chats.

Nothing is inferred from a model's name. A template that writes earlier thoughts reveals the markers around them. A
template that only removes earlier thoughts names the markers in its source. To find out whether thinking can be turned
off, the beginning of an answer is rendered with each known switch.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from backends.contract import DEFAULT_REASONING, JsonScalar, MessageMarkers, ReasoningFormat, TemplateFailed
from backends.templates.sandboxed_rendering import LOOK_SECONDS, render

Chat = Sequence[Mapping[str, Any]]
Render = Callable[[Chat, Mapping[str, JsonScalar], bool], str]  # chat, options, whether an answer is to begin

MAX_PROBE_SECONDS = 10.0  # for slow templates, of which only the findings until then are used
MOST_SIGN_CHARS = 48

THOUGHT, ANSWER = "Qzthoughtqz", "Qzanswerqz"
ASKED: dict[str, Any] = {"role": "user", "content": "Qzquestionqz"}
ANSWERED: dict[str, Any] = {"role": "assistant", "content": ANSWER}
PARTS = "parts"  # stands for a field name if the thought is a part of the content
CALLED: dict[str, Any] = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"id": "call00000", "type": "function", "function": {"name": "qztool", "arguments": {"qz": 1}}}],
}
RESULT: dict[str, Any] = {"role": "tool", "name": "qztool", "tool_call_id": "call00000", "content": "Qzresultqz"}
FIELDS = ("reasoning_content", "reasoning", "thinking", "thought", PARTS)

MARK = re.compile(r"<[^<>\s][^<>\n]{0,46}>|\[/?[A-Z_ ]{2,40}\]")
ABOUT_THOUGHTS = re.compile(r"think|thought|reason|inner|analysis|channel", re.IGNORECASE)
PAIRS = (  # markers around thoughts, for templates that mention thoughts but do not write them
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<seed:think>", "</seed:think>"),
    ("<mm:think>", "</mm:think>"),
    ("[THINK]", "[/THINK]"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|channel>thought", "<channel|>"),
    ("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<unused94>thought", "<unused95>"),
    ("Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]"),
)
ANSWERS = (("<response>", "</response>"), ("<answer>", "</answer>"))  # likewise, markers around the answer

SWITCHES: tuple[tuple[str, JsonScalar, JsonScalar], ...] = (  # name, on, off
    ("enable_thinking", True, False),
    ("thinking", True, False),
    ("thinking_mode", "enabled", "disabled"),
    ("thinking_option", "on", "off"),
    ("thinking_budget", -1, 0),
    ("reasoning", True, False),
    ("reasoning_effort", "high", "none"),
    ("reasoning_effort", "high", "no_think"),
)
EFFORT_OPTIONS = ("reasoning_effort", "thinking_effort", "reasoning_strength")
EFFORTS = ("minimal", "low", "medium", "high", "xhigh", "max")
COMMON_EFFORTS = ("low", "medium", "high")  # accepted even if the template does not name them


def reasoning_format(source: str, render: Render) -> ReasoningFormat:
    """Return the format in which a model with this template writes its thoughts.

    If no format is found, or if the template is unusable, return HABIT.
    """
    probe = _Probe(render)
    reasoning = _shown(probe) or _named(source)
    if reasoning is None:
        return DEFAULT_REASONING
    on, off = _switch(source, probe, reasoning)
    option, efforts = _efforts(source, probe, {**on})
    return ReasoningFormat(
        reasoning.begin,
        reasoning.end,
        messages=reasoning.messages,
        answer_begin=reasoning.answer_begin,
        answer_end=reasoning.answer_end,
        switch_on=on,
        switch_off=off,
        effort_option=option,
        efforts=efforts,
    )


def of_template(source: str, tokens: Mapping[str, str]) -> ReasoningFormat:
    """Return the `reasoning_format` of a template's source. tokens: see `render`."""
    if not source:
        return DEFAULT_REASONING
    from backends.templates import jinja_sandbox  # heavy, and most workers only compute layers

    with suppress(jinja_sandbox.TemplateError, TemplateFailed, RecursionError, SyntaxError):
        jinja_sandbox.compiled(source)  # takes longest, and must not count against the time limit

    def applied(chat: Chat, options: Mapping[str, JsonScalar], begins: bool) -> str:
        return render(source, chat, add_generation_prompt=begins, tokens=tokens, options=options, seconds=LOOK_SECONDS)

    return reasoning_format(source, applied)


class _Probe:
    """A callable that applies the template.

    It returns None if the template fails or the time for all probes is used up.
    """

    def __init__(self, render: Render) -> None:
        self._render, self._ends_at = render, time.monotonic() + MAX_PROBE_SECONDS

    def __call__(
        self, chat: Chat, options: Mapping[str, JsonScalar] | None = None, *, begins: bool = False
    ) -> str | None:
        if time.monotonic() > self._ends_at:
            return None
        try:
            return self._render(chat, options or {}, begins)
        except TemplateFailed:
            return None


def thinking(message: Mapping[str, Any], thought: str, field: str) -> dict[str, Any]:
    """Return an assistant message with the thought in the given field."""
    if field == PARTS:
        parts = [{"type": "thinking", "thinking": thought}]
        if message.get("content"):
            parts.append({"type": "text", "text": message["content"]})
        return {**message, "content": parts}
    return {**message, field: thought}


def _shown(probe: _Probe) -> ReasoningFormat | None:
    """Find the format by rendering chats whose last answer has a thought, trying one message field after another."""
    for switch in ({}, {"enable_thinking": True, "thinking": True, "add_thoughts": True}):
        plain = probe([ASKED, ANSWERED], switch) or ""
        # some templates write only the thoughts before a call
        for answered, rest in ((ANSWERED, ()), (CALLED, (RESULT,))):
            for field in FIELDS:
                rendered = probe([ASKED, thinking(answered, THOUGHT, field), *rest], switch) or ""
                if THOUGHT in rendered and (around := _around(rendered, plain)):
                    return around
    return None


def _around(rendered: str, plain: str) -> ReasoningFormat | None:
    """Return the format if the text around the thought consists of markers, otherwise None."""
    before, _, behind = rendered.partition(THOUGHT)
    before, behind = before.rstrip(), behind.lstrip()
    if before.endswith("<|channel|>analysis<|message|>"):
        return ReasoningFormat(
            "<|channel|>analysis<|message|>",
            ("<|end|>",),
            messages=MessageMarkers(
                "<|start|>", "<|message|>", ("<|end|>", "<|return|>", "<|call|>"), "<|channel|>final"
            ),
        )
    if before.endswith(" to=self<|message|>"):
        return ReasoningFormat(
            " to=self<|message|>",
            ("<|eom|>",),
            messages=MessageMarkers("<|start|>", "<|message|>", ("<|eom|>", "<|eot|>"), " to=user"),
        )
    for begin, end in PAIRS:
        if before.endswith(begin) and behind.startswith(end):
            return _with_answer(begin, end, behind)
    opened = [mark for mark in MARK.finditer(before) if mark.end() == len(before)]
    closed = MARK.match(behind)
    if not opened or closed is None:
        return None
    begin = opened[-1].group()
    if begin in plain and not ABOUT_THOUGHTS.search(begin):
        return None  # the marker occurs in every message
    return _with_answer(begin, closed.group(), behind)


def _with_answer(begin: str, end: str, behind: str) -> ReasoningFormat:
    """Return the format, including any markers around the answer."""
    between, answer, after = behind.removeprefix(end).partition(ANSWER)
    between = between.strip()
    if not answer or not MARK.match(between) or len(between) > MOST_SIGN_CHARS:
        return ReasoningFormat(begin, (end,))
    return ReasoningFormat(begin, (end,), answer_begin=(between,), answer_end=_run_of_marks(after))


def _run_of_marks(text: str) -> tuple[str, ...]:
    """Return the markers at the beginning of the text. They end an answer."""
    mark = MARK.match(text.lstrip())
    if mark is None:
        return ()
    if mark.group() == "<|close|>":  # its name is between two markers
        whole = re.match(r"(<\|close\|>\w+<\|sep\|>)+", text.lstrip())
        return tuple(re.findall(r"<\|close\|>\w+<\|sep\|>", whole.group())) if whole else ()
    return (mark.group(),)


def _named(source: str) -> ReasoningFormat | None:
    """Find the format by searching the template's source for known markers.

    Used for templates that mention thoughts but write none.
    """
    for begin, end in PAIRS:
        if end in source:
            frame = next((signs for signs in ANSWERS if all(sign in source for sign in signs)), None)
            return ReasoningFormat(
                begin, (end,), answer_begin=(frame[0],) if frame else (), answer_end=(frame[1],) if frame else ()
            )
    return None


def _switch(
    source: str, probe: _Probe, reasoning: ReasoningFormat
) -> tuple[dict[str, JsonScalar], dict[str, JsonScalar] | None]:
    """Return the values of a template variable that turn thinking on and off.

    The template must read the variable, and its output must depend on it.
    """
    for name, on, off in SWITCHES:
        if name not in source or (isinstance(off, str) and not _quoted(off, source)):
            continue
        with_on = probe([ASKED], {name: on}, begins=True)
        with_off = probe([ASKED], {name: off}, begins=True)
        if with_on is not None and with_off is not None and with_on != with_off:
            return {name: on}, {name: off}
    return {}, None


def _efforts(source: str, probe: _Probe, on: Mapping[str, JsonScalar]) -> tuple[str, tuple[str, ...]]:
    """Return the template variable for the reasoning effort, and the values of it that change the output."""
    for name in EFFORT_OPTIONS:
        if name not in source:
            continue
        plain = probe([ASKED], on, begins=True)
        rendered = {value: probe([ASKED], {**on, name: value}, begins=True) for value in EFFORTS}
        other = {
            value: text
            for value, text in rendered.items()
            if text is not None and (_quoted(value, source) or value in COMMON_EFFORTS)
        }
        changing = {value: text for value, text in other.items() if text != plain}
        if changing:  # include the default effort if the template names it
            named = (value for value in other if value in changing or _quoted(value, source))
            return name, tuple(named)
    return "", ()


def _quoted(value: str, source: str) -> bool:
    return f"'{value}'" in source or f'"{value}"' in source
