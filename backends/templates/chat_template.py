"""A model's chat template, and how a chat must be told to it: found out by rendering a few words, never by names.

Templates differ in what they take. Some refuse a system message, or leave it out and say nothing; some want content in
parts, arguments of calls as JSON text, thoughts under another name. Each is asked with marked words, and what comes
out of it shows what it takes. Where it takes something not at all, that is told in another way.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import takewhile
from typing import Any

from backends.contract import HABIT, LocalTime, ReasoningFormat, Scalar
from backends.templates.call_format import Refused
from backends.templates.template_rendering import TRIAL_SECONDS, bounded, moment, rendered

Message = Mapping[str, Any]

CHATML = (  # what llama.cpp assumes of a model without a template, too
    "{%- for message in messages -%}"
    "{{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}{%- endif -%}"
)
TRIED: Mapping[str, Scalar] = {"enable_thinking": True}  # while it is found out what a template takes
SAID, ANSWERED, THOUGHT = "Marked7Said", "Marked7Answered", "Marked7Thought"
THOUGHT_NAMES = ("reasoning_content", "thinking", "reasoning")
PART = "part"  # of the content, in the place of a name: thoughts are one of its parts
THOUGHT_SIGNS = ("<think>", "</think>")  # of most models
TRIAL_TOOL = {
    "type": "function",
    "function": {
        "name": "marked_tool",
        "description": "Marked",
        "parameters": {
            "type": "object",
            "properties": {"marked_key": {"type": "string", "description": "Marked"}},
            "required": ["marked_key"],
        },
    },
}


@dataclass(frozen=True, slots=True)
class Rendered:
    """A chat as the model reads it. `folded`: what the template does not take, and was told in another way."""

    text: str
    folded: tuple[str, ...] = ()  # of "system", "tools", "turns" and "thoughts"


class ChatTemplate:
    """One template, with what it was found to take. Probes are rendered when first needed, and once."""

    def __init__(
        self, source: str, tokens: Mapping[str, str] | None = None, reasoning: ReasoningFormat = HABIT
    ) -> None:
        self.source = source or CHATML
        self.tokens = dict(tokens or {})
        self.reasoning = reasoning  # the signs around a thought that goes on

    def render(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        now: LocalTime | None = None,
        options: Mapping[str, Scalar] | None = None,
        add_generation_prompt: bool = True,
        continues: bool = False,
    ) -> Rendered:
        """The prompt, within the bounds of time, memory and text. Raises TemplateFailed.

        now: when the chat began, None for this moment; options: further variables of the template; continues: the last
        message is an answer that goes on.
        """
        begun = messages[-1] if continues and messages else None
        with bounded(TRIAL_SECONDS):
            self._find_out(messages, continues=continues)
        with bounded():
            usual = {"enable_thinking": bool(self.thought_name or self.can_switch_thinking)}
            one = _Rendering(self, {**usual, **(options or {})}, moment(now), tools)
            told, folded = self._adapted(messages if begun is None else messages[:-1])

            def attempt(chat: list[Message]) -> str:
                if begun is None:
                    return one.run(chat, ends=add_generation_prompt)
                return self._continued(one, chat, begun)

            try:
                return Rendered(attempt(told), folded)
            except Refused as refused:
                for name, other in self._other_ways(told):
                    with suppress(Refused):
                        return Rendered(attempt(other), tuple(dict.fromkeys((*folded, name))))
                raise refused

    # How a chat is told to it

    def _adapted(self, messages: Sequence[Message]) -> tuple[list[Message], tuple[str, ...]]:
        """In the forms that it takes, and what had to be folded into other messages for that."""
        folded = list[str]()
        told = list(messages)
        if told and told[0]["role"] == "system" and not self.takes_system:
            told = fold_system(told)
            folded.append("system")
        if any(one["role"] == "tool" or one.get("tool_calls") for one in told):
            if self.takes_results:
                told = [self._with_arguments(one) for one in told]
                if self.takes_answered_calls:
                    told = with_responses(told)
            else:
                told = joined(fold_tools(told))
                folded.append("tools")
        told = [self._with_thought(one) for one in told]
        return self._formed(told), tuple(folded)

    def _other_ways(self, messages: list[Message]) -> list[tuple[str, list[Message]]]:
        """To tell the same where the template refuses this chat, though it takes its parts."""
        ways = list[tuple[str, list[Message]]]()
        if self.wants_parts:
            return ways
        if messages and messages[0]["role"] == "system":
            messages = fold_system(messages)
            ways.append(("system", messages))
        if any(one.get("tool_calls") and self._thought_of_call(one) for one in messages):
            messages = [self._with_words_thought(one) for one in messages]
            ways.append(("thoughts", messages))
        ways.append(("turns", joined(messages)))
        if any(one["role"] == "tool" or one.get("tool_calls") for one in messages):
            ways.append(("tools", joined(fold_tools(messages))))
        return ways

    def _with_thought(self, message: Message) -> Message:
        """Its thoughts under the name that the template reads; where it reads none, there are none."""
        thought = message.get("reasoning_content")
        if thought is None:
            return message
        told = {name: value for name, value in message.items() if name != "reasoning_content"}
        return self._thinking(told, str(thought)) if thought else told

    def _thinking(self, message: Message, thought: str) -> Message:
        name = self.thought_name_of_calls if message.get("tool_calls") else self.thought_name
        if name == PART:
            content = [{"type": "thinking", "thinking": thought}, *in_parts(message)["content"]]
            return {**message, "content": content}
        return {**message, name: thought} if name else message

    def _thought_of_call(self, message: Message) -> str:
        return str(message.get(self.thought_name_of_calls) or "")

    def _with_words_thought(self, message: Message) -> Message:
        """What it says before a call as the end of its thought: gpt-oss takes one of both."""
        thought = self._thought_of_call(message)
        if not thought or not message.get("tool_calls"):
            return message
        told = "\n\n".join(filter(None, (thought, message["content"])))
        return {**message, "content": "", self.thought_name_of_calls: told}

    def _with_arguments(self, message: Message) -> Message:
        """Arguments of calls as the template reads them: objects, or JSON text."""
        if not message.get("tool_calls"):
            return message
        form = as_object if self.takes_objects else as_text
        calls = [
            {**call, "function": {**call["function"], "arguments": form(call["function"]["arguments"])}}
            for call in message["tool_calls"]
        ]
        return {**message, "tool_calls": calls}

    def _continued(self, one: _Rendering, before: list[Message], begun: Message) -> str:
        """What the template writes up to the end of the words that are there.

        It is rendered with marked words in their place: whatever it writes around an answer, or takes away at its ends,
        is then known. An answer whose thoughts are not told begins behind an empty thought, as llama.cpp has it.
        """
        content, thought = str(begun["content"]), str(begun.get("reasoning_content") or "")
        _, closes = THOUGHT_SIGNS
        if not (content or thought) or (closes in content and not thought):  # thoughts are in it
            return one.run(before, ends=True) + content
        last = {"role": "assistant", "content": ANSWERED}
        if self.thought_name:
            text, _, _ = self._up_to_answer(one, [*before, self._thinking(last, THOUGHT)])
            begin, name, rest = text.rpartition(THOUGHT)
            opens, sign = one.run(before, ends=True), self.reasoning.begin.strip()
            if name and not content and opens.rstrip().endswith(sign):
                return opens + thought  # some tell earlier thoughts without the sign that opens one
            if name:
                return begin + thought + (rest + content if content else "")
        if thought:  # the template has no words for it
            begin, end = self.reasoning.begin, self.reasoning.end[0]
            blank = "" if begin.endswith("|>") else "\n"  # none beside a control token
            text = one.run(before, ends=True)
            if not text.rstrip().endswith(begin.strip()):
                text += begin + blank
            if not content:
                return text + thought
            return f"{text}{thought}{blank}{end}{blank * 2}{''.join(self.reasoning.answer_begin[:1])}{content}"
        text, mark, _ = self._up_to_answer(one, [*before, last])
        if mark and is_open(text):
            return text + closes + content
        begins = one.run(before, ends=True)
        if is_open(begins):
            return begins.rstrip() + closes + content
        if self.can_switch_thinking:
            return one.run(before, ends=False) + self._thoughtless + content
        return (text if mark else begins) + content

    def _up_to_answer(self, one: _Rendering, messages: Sequence[Message]) -> tuple[str, str, str]:
        *before, last = messages
        return one.run([*before, *self._formed([last])], ends=False).rpartition(ANSWERED)

    # What it takes

    def _find_out(self, messages: Sequence[Message], *, continues: bool) -> None:
        """Try all that this chat depends on and that was not tried before: it takes longer than one rendering."""
        found = [self.thought_name, self.can_switch_thinking, self.takes_system]
        if any(one["role"] == "tool" or one.get("tool_calls") for one in messages):
            found += [self.takes_results, self.takes_objects, self.takes_answered_calls]
        if any(one.get("tool_calls") and one.get("reasoning_content") for one in messages):
            found.append(self.thought_name_of_calls)
        if continues:
            found.append(self._thoughtless)

    @cached_property
    def wants_parts(self) -> bool:
        """Whether content must be a list of parts: as text it fails, or is left out."""
        user = {"role": "user", "content": SAID}
        return SAID not in self._tried([user]) and SAID in self._tried([in_parts(user)])

    @cached_property
    def takes_system(self) -> bool:
        """Whether a system message is told to the model."""
        chat = [{"role": "system", "content": SAID}, {"role": "user", "content": ANSWERED}]
        return SAID in self._tried(self._formed(chat))

    @cached_property
    def takes_results(self) -> bool:
        """Whether what came of a call is told to the model. Some leave out the call itself."""
        arguments = {"marked_key": SAID}
        shown = self._tried_call(arguments) or self._tried_call(json.dumps(arguments))
        return ANSWERED in shown

    @cached_property
    def takes_objects(self) -> bool:
        """Whether a call's arguments are written as JSON when they are an object, or each by itself."""
        arguments = {"marked_key": SAID}
        shown, of_text = self._tried_call(arguments), self._tried_call(json.dumps(arguments))
        is_told = SAID in shown and f"{{'marked_key': '{SAID}'" not in shown
        return is_told or SAID not in of_text

    @cached_property
    def takes_answered_calls(self) -> bool:
        """Whether what came of calls may stand in the message that makes them: Gemma 4 has seen it so."""
        call = self._trial_call({"marked_key": SAID})
        response = {"name": "marked_tool", "response": THOUGHT}
        user = {"role": "user", "content": "Marked"}
        result = {"role": "tool", "content": THOUGHT, "tool_call_id": call["id"]}
        calls = {"role": "assistant", "content": "", "tool_calls": [call]}
        one = self._tried(self._formed([user, {**calls, "tool_responses": [response]}]), [TRIAL_TOOL])
        return THOUGHT in one and one != self._tried(self._formed([user, calls, result]), [TRIAL_TOOL])

    @cached_property
    def thought_name(self) -> str:
        """The field of a message whose thoughts the template writes; empty: it writes none."""
        user: dict[str, Any] = {"role": "user", "content": SAID}
        answer: dict[str, Any] = {"role": "assistant", "content": ANSWERED}
        for name in THOUGHT_NAMES:
            chat = self._formed([user, {**answer, name: THOUGHT}])
            if THOUGHT in self._tried(chat, ends=False):
                return name
        parts: object = [{"type": "thinking", "thinking": THOUGHT}, {"type": "text", "text": ANSWERED}]
        in_answer: Message = {**answer, "content": parts}
        chat = self._formed([user, in_answer])
        shown = self._tried(chat, ends=False)
        _, thought, rest = shown.partition(THOUGHT)
        between, answer_is_told, _ = rest.partition(ANSWERED)
        is_list = "type" in between  # it writes all of it as it is
        return PART if thought and answer_is_told and not is_list else ""

    @cached_property
    def thought_name_of_calls(self) -> str:
        """The same of a message that calls tools: some write thoughts there alone (Command R7B, Gemma 4)."""
        arguments = {"marked_key": SAID}
        call = self._trial_call(arguments if self.takes_objects else json.dumps(arguments))
        user = {"role": "user", "content": "Marked"}
        for name in THOUGHT_NAMES:
            calls: Message = {"role": "assistant", "content": "", "tool_calls": [call], name: THOUGHT}
            if THOUGHT in self._tried(self._formed([user, calls]), [TRIAL_TOOL], ends=False):
                return name
        return self.thought_name

    @cached_property
    def can_switch_thinking(self) -> bool:
        """Whether an answer begins otherwise where `enable_thinking` is off."""
        user = self._formed([{"role": "user", "content": SAID}])
        begins = {self._tried(user, enable_thinking=on).rpartition(SAID)[2] for on in (True, False)}
        return len(begins) == 2

    @cached_property
    def _thoughtless(self) -> str:
        """How an answer without thoughts begins: what is added for it where they are switched off."""
        user = self._formed([{"role": "user", "content": SAID}])
        ends = self._tried(user, ends=False).rpartition(SAID)[2]
        begins = self._tried(user, enable_thinking=False).rpartition(SAID)[2]
        alike = takewhile(lambda pair: pair[0] == pair[1], zip(ends, begins, strict=False))
        return begins[sum(1 for _ in alike) :]

    @staticmethod
    def _trial_call(arguments: object) -> Message:
        function = {"name": "marked_tool", "arguments": arguments}
        return {"id": "call00001", "type": "function", "function": function}

    def _tried_call(self, arguments: object) -> str:
        call = self._trial_call(arguments)
        chat: list[Message] = [
            {"role": "user", "content": "Marked"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "content": ANSWERED, "tool_call_id": "call00001"},
        ]
        return self._tried(self._formed(chat), [TRIAL_TOOL])

    def _formed(self, messages: Sequence[Mapping[str, Any]]) -> list[Message]:
        return [in_parts(one) if self.wants_parts else one for one in messages]

    def _tried(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] = (),
        *,
        ends: bool = True,
        **options: Scalar,
    ) -> str:
        """What it makes of marked words; nothing where it refuses them."""
        try:
            return _Rendering(self, TRIED, moment(None), tools).run(messages, ends=ends, **options)
        except Refused:
            return ""


@dataclass(frozen=True, slots=True)
class _Rendering:
    """What stays the same while one chat is rendered in several ways."""

    template: ChatTemplate
    options: Mapping[str, Scalar]
    at: datetime
    tools: Sequence[Mapping[str, Any]]

    def run(self, messages: Sequence[Message], *, ends: bool, **options: Scalar) -> str:
        values: dict[str, object] = {
            # some templates read the date so, and name one of long ago where they do not find it
            "date_string": self.at.strftime("%d %b %Y"),
            "datetime": self.at.strftime("%b %d %Y"),
            **self.options,
            **options,
            **self.template.tokens,
        }
        return rendered(
            self.template.source, messages, tools=self.tools, add_generation_prompt=ends, at=self.at, values=values
        )


def is_open(text: str) -> bool:
    """Whether a thought has begun and not ended in it."""
    opens, closes = THOUGHT_SIGNS
    return text.rfind(opens) > text.rfind(closes)


def fold_system(messages: Sequence[Message]) -> list[Message]:
    """With the words of the system message before those of the first user message."""
    first, *rest = messages
    at = next((number for number, one in enumerate(rest) if one["role"] == "user"), None)
    if at is None:
        return [{**first, "role": "user"}, *rest]
    user = {**rest[at], "content": f"{first['content']}\n{rest[at]['content']}"}
    return [*rest[:at], user, *rest[at + 1 :]]


def fold_tools(messages: Sequence[Message]) -> list[Message]:
    """With calls as words of the assistant, and what came of them as words of the user."""
    told = list[Message]()
    for message in messages:
        if calls := message.get("tool_calls"):
            words = [message["content"], *(json.dumps(_called(one), ensure_ascii=False) for one in calls)]
            told.append({"role": "assistant", "content": "\n".join(filter(None, words))})
        elif message["role"] == "tool":
            told.append({"role": "user", "content": f"Result of the call:\n{message['content']}"})
        else:
            told.append(message)
    return told


def with_responses(messages: Sequence[Message]) -> list[Message]:
    """With what came of calls in the message that makes them, and the words that follow too."""
    told = list[Message]()
    for message in messages:
        last = told[-1] if told else {}
        calls, responses = last.get("tool_calls", ()), last.get("tool_responses", ())
        if calls and message["role"] == "tool":
            at = len(responses)
            name = calls[at]["function"]["name"] if at < len(calls) else message.get("tool_call_id", "")
            response = {"name": name, "response": as_object(message["content"])}
            told[-1] = {**last, "tool_responses": [*responses, response]}
        elif responses and message["role"] == "assistant" and not message.get("tool_calls"):
            told[-1] = {**last, "content": message["content"]}
        else:
            told.append(message)
    return told


def joined(messages: Sequence[Message]) -> list[Message]:
    """With what one side says in a row as one message."""
    told = list[Message]()
    for message in messages:
        is_plain = not message.get("tool_calls") and message["role"] != "tool"
        if told and is_plain and told[-1]["role"] == message["role"] and not told[-1].get("tool_calls"):
            both = filter(None, (told[-1]["content"], message["content"]))
            told[-1] = {**told[-1], "content": "\n\n".join(both)}
        else:
            told.append(message)
    return told


def in_parts(message: Message) -> Message:
    """With its content as a list of parts."""
    if isinstance(message["content"], list):
        return message
    return {**message, "content": [{"type": "text", "text": message["content"]}]}


def as_object(arguments: object) -> object:
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments


def as_text(arguments: object) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def _called(call: Mapping[str, Any]) -> dict[str, object]:
    return {"name": call["function"]["name"], "arguments": as_object(call["function"]["arguments"])}
