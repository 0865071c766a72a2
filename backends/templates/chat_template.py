"""A model's chat template, and the conversion of chats to a form that the template supports.

Templates differ in what they accept. Some reject a system message or silently omit it. Some require the content as a
list of parts, the arguments of calls as JSON text, or thoughts in a different field. Features are never inferred from a
model's name. Each is probed by rendering a short chat with marker words: the output shows whether the template supports
it. Unsupported parts of a chat are rewritten in a supported form.
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

from backends.contract import DEFAULT_REASONING, ChatNotSupported, JsonScalar, LocalTime, ReasoningFormat
from backends.templates.sandboxed_rendering import TRIAL_SECONDS, bounded, moment, rendered

Message = Mapping[str, Any]

CHATML = (  # llama.cpp's default for a model without a template
    "{%- for message in messages -%}"
    "{{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}{%- endif -%}"
)
TRIED: Mapping[str, JsonScalar] = {"enable_thinking": True}  # used while probing
SAID, ANSWERED, THOUGHT = "Marked7Said", "Marked7Answered", "Marked7Thought"
THOUGHT_NAMES = ("reasoning_content", "thinking", "reasoning")
PART = "part"  # stands for a field name if thoughts are a part of the content
THOUGHT_SIGNS = ("<think>", "</think>")  # used by most models
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
class RenderedChat:
    """A chat rendered as the text that the model reads.

    `folded` lists the parts that were rewritten because the template does not support them.
    """

    text: str
    folded: tuple[str, ...] = ()  # among "system", "tools", "turns" and "thoughts"


class ChatTemplate:
    """A chat template and the features that it supports according to probes.

    Each probe runs once, when its result is first needed.
    """

    def __init__(
        self, source: str, tokens: Mapping[str, str] | None = None, reasoning: ReasoningFormat = DEFAULT_REASONING
    ) -> None:
        self.source = source or CHATML
        self.tokens = dict(tokens or {})
        self.reasoning = reasoning  # the markers around a thought to be continued

    def render(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        now: LocalTime | None = None,
        options: Mapping[str, JsonScalar] | None = None,
        add_generation_prompt: bool = True,
        continues: bool = False,
    ) -> RenderedChat:
        """Render the messages with limits on time, memory and length. Raises TemplateFailed.

        now: the time at which the chat began, or None for the current time. options: additional template variables.
        continues: whether the last message is an unfinished answer.
        """
        begun = messages[-1] if continues and messages else None
        with bounded(TRIAL_SECONDS):
            self._find_out(messages, continues=continues)
        with bounded():
            usual = {"enable_thinking": bool(self.thought_name or self.can_switch_thinking)}
            rendering = _Rendering(self, {**usual, **(options or {})}, moment(now), tools)
            adapted, folded = self._adapted(messages if begun is None else messages[:-1])

            def attempt(chat: list[Message]) -> str:
                if begun is None:
                    return rendering.run(chat, ends=add_generation_prompt)
                return self._continued(rendering, chat, begun)

            try:
                return RenderedChat(attempt(adapted), folded)
            except ChatNotSupported as refused:
                for name, other in self._other_ways(adapted):
                    with suppress(ChatNotSupported):
                        return RenderedChat(attempt(other), tuple(dict.fromkeys((*folded, name))))
                raise refused

    # Adapting a chat to the template

    def _adapted(self, messages: Sequence[Message]) -> tuple[list[Message], tuple[str, ...]]:
        """Return the messages in a form that the template supports, and which of their parts had to be rewritten."""
        folded = list[str]()
        adapted = list(messages)
        if adapted and adapted[0]["role"] == "system" and not self.takes_system:
            adapted = fold_system(adapted)
            folded.append("system")
        if any(message["role"] == "tool" or message.get("tool_calls") for message in adapted):
            if self.takes_results:
                adapted = [self._with_arguments(message) for message in adapted]
                if self.takes_answered_calls:
                    adapted = with_responses(adapted)
            else:
                adapted = joined(fold_tools(adapted))
                folded.append("tools")
        adapted = [self._with_thought(message) for message in adapted]
        return self._formed(adapted), tuple(folded)

    def _other_ways(self, messages: list[Message]) -> list[tuple[str, list[Message]]]:
        """Return other forms to try if the template rejects this chat even though it supports each part."""
        variants = list[tuple[str, list[Message]]]()
        if self.wants_parts:
            return variants
        if messages and messages[0]["role"] == "system":
            messages = fold_system(messages)
            variants.append(("system", messages))
        if any(message.get("tool_calls") and self._thought_of_call(message) for message in messages):
            messages = [self._with_words_thought(message) for message in messages]
            variants.append(("thoughts", messages))
        variants.append(("turns", joined(messages)))
        if any(message["role"] == "tool" or message.get("tool_calls") for message in messages):
            variants.append(("tools", joined(fold_tools(messages))))
        return variants

    def _with_thought(self, message: Message) -> Message:
        """Return the message with its thought in the field that the template reads.

        If the template reads no such field, remove the thought.
        """
        thought = message.get("reasoning_content")
        if thought is None:
            return message
        copy = {name: value for name, value in message.items() if name != "reasoning_content"}
        return self._thinking(copy, str(thought)) if thought else copy

    def _thinking(self, message: Message, thought: str) -> Message:
        name = self.thought_name_of_calls if message.get("tool_calls") else self.thought_name
        if name == PART:
            content = [{"type": "thinking", "thinking": thought}, *in_parts(message)["content"]]
            return {**message, "content": content}
        return {**message, name: thought} if name else message

    def _thought_of_call(self, message: Message) -> str:
        return str(message.get(self.thought_name_of_calls) or "")

    def _with_words_thought(self, message: Message) -> Message:
        """Return the message with the text before its calls appended to its thought.

        gpt-oss accepts only one of the two.
        """
        thought = self._thought_of_call(message)
        if not thought or not message.get("tool_calls"):
            return message
        text = "\n\n".join(filter(None, (thought, message["content"])))
        return {**message, "content": "", self.thought_name_of_calls: text}

    def _with_arguments(self, message: Message) -> Message:
        """Return the message with the arguments of its calls as objects or as JSON text, depending on the template."""
        if not message.get("tool_calls"):
            return message
        form = as_object if self.takes_objects else as_text
        calls = [
            {**call, "function": {**call["function"], "arguments": form(call["function"]["arguments"])}}
            for call in message["tool_calls"]
        ]
        return {**message, "tool_calls": calls}

    def _continued(self, rendering: _Rendering, before: list[Message], begun: Message) -> str:
        """Return the prompt for continuing an answer, up to the end of its existing text.

        A rendering with a marker word in place of the answer shows what the template writes around an answer and
        whether it strips whitespace from its ends. If no thought was sent, the answer follows an empty thought, as in
        llama.cpp.
        """
        content, thought = str(begun["content"]), str(begun.get("reasoning_content") or "")
        _, closes = THOUGHT_SIGNS
        if not (content or thought) or (closes in content and not thought):  # the content contains the thoughts
            return rendering.run(before, ends=True) + content
        last = {"role": "assistant", "content": ANSWERED}
        if self.thought_name:
            text, _, _ = self._up_to_answer(rendering, [*before, self._thinking(last, THOUGHT)])
            begin, name, rest = text.rpartition(THOUGHT)
            opens, sign = rendering.run(before, ends=True), self.reasoning.begin.strip()
            if name and not content and opens.rstrip().endswith(sign):
                return opens + thought  # some templates write earlier thoughts without the opening marker
            if name:
                return begin + thought + (rest + content if content else "")
        if thought:  # the template writes no thoughts
            begin, end = self.reasoning.begin, self.reasoning.end[0]
            blank = "" if begin.endswith("|>") else "\n"  # no newline beside a control token
            text = rendering.run(before, ends=True)
            if not text.rstrip().endswith(begin.strip()):
                text += begin + blank
            if not content:
                return text + thought
            return f"{text}{thought}{blank}{end}{blank * 2}{''.join(self.reasoning.answer_begin[:1])}{content}"
        text, mark, _ = self._up_to_answer(rendering, [*before, last])
        if mark and is_open(text):
            return text + closes + content
        begins = rendering.run(before, ends=True)
        if is_open(begins):
            return begins.rstrip() + closes + content
        if self.can_switch_thinking:
            return rendering.run(before, ends=False) + self._thoughtless + content
        return (text if mark else begins) + content

    def _up_to_answer(self, rendering: _Rendering, messages: Sequence[Message]) -> tuple[str, str, str]:
        *before, last = messages
        return rendering.run([*before, *self._formed([last])], ends=False).rpartition(ANSWERED)

    # Probing the template

    def _find_out(self, messages: Sequence[Message], *, continues: bool) -> None:
        """Run the probes that this chat needs and that have not run yet.

        They run before the chat is rendered because they may exceed the time limit for rendering.
        """
        lookups = [self.thought_name, self.can_switch_thinking, self.takes_system]
        if any(message["role"] == "tool" or message.get("tool_calls") for message in messages):
            lookups += [self.takes_results, self.takes_objects, self.takes_answered_calls]
        if any(message.get("tool_calls") and message.get("reasoning_content") for message in messages):
            lookups.append(self.thought_name_of_calls)
        if continues:
            lookups.append(self._thoughtless)

    @cached_property
    def wants_parts(self) -> bool:
        """Return whether content must be a list of parts because plain text would fail or be omitted."""
        user = {"role": "user", "content": SAID}
        return SAID not in self._tried([user]) and SAID in self._tried([in_parts(user)])

    @cached_property
    def takes_system(self) -> bool:
        """Return whether the template passes a system message on to the model."""
        chat = [{"role": "system", "content": SAID}, {"role": "user", "content": ANSWERED}]
        return SAID in self._tried(self._formed(chat))

    @cached_property
    def takes_results(self) -> bool:
        """Return whether the template passes the results of tool calls on to the model.

        Some templates omit the call itself.
        """
        arguments = {"marked_key": SAID}
        shown = self._tried_call(arguments) or self._tried_call(json.dumps(arguments))
        return ANSWERED in shown

    @cached_property
    def takes_objects(self) -> bool:
        """Return whether the arguments of calls should be objects.

        The template then writes them as JSON or one by one.
        """
        arguments = {"marked_key": SAID}
        shown, of_text = self._tried_call(arguments), self._tried_call(json.dumps(arguments))
        is_told = SAID in shown and f"{{'marked_key': '{SAID}'" not in shown
        return is_told or SAID not in of_text

    @cached_property
    def takes_answered_calls(self) -> bool:
        """Return whether a message with calls may also contain their results, the form in which Gemma 4 was trained."""
        call = self._trial_call({"marked_key": SAID})
        response = {"name": "marked_tool", "response": THOUGHT}
        user = {"role": "user", "content": "Marked"}
        result = {"role": "tool", "content": THOUGHT, "tool_call_id": call["id"]}
        calls = {"role": "assistant", "content": "", "tool_calls": [call]}
        text = self._tried(self._formed([user, {**calls, "tool_responses": [response]}]), [TRIAL_TOOL])
        return THOUGHT in text and text != self._tried(self._formed([user, calls, result]), [TRIAL_TOOL])

    @cached_property
    def thought_name(self) -> str:
        """The name of the message field that holds thoughts in this template, or "" if it writes no thoughts."""
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
        is_list = "type" in between  # it prints the whole list verbatim
        return PART if thought and answer_is_told and not is_list else ""

    @cached_property
    def thought_name_of_calls(self) -> str:
        """The name of the message field that holds thoughts in messages with tool calls.

        Some templates write only the thoughts of such messages (Command R7B, Gemma 4).
        """
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
        """Return whether `enable_thinking` changes the beginning of an answer."""
        user = self._formed([{"role": "user", "content": SAID}])
        begins = {self._tried(user, enable_thinking=on).rpartition(SAID)[2] for on in (True, False)}
        return len(begins) == 2

    @cached_property
    def _thoughtless(self) -> str:
        """Return the text that the template adds to the beginning of an answer when thinking is off."""
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
        return [in_parts(message) if self.wants_parts else message for message in messages]

    def _tried(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] = (),
        *,
        ends: bool = True,
        **options: JsonScalar,
    ) -> str:
        """Render a probe. Return an empty string if the template rejects it."""
        try:
            return _Rendering(self, TRIED, moment(None), tools).run(messages, ends=ends, **options)
        except ChatNotSupported:
            return ""


@dataclass(frozen=True, slots=True)
class _Rendering:
    """The inputs that stay the same for every form in which a chat is rendered."""

    template: ChatTemplate
    options: Mapping[str, JsonScalar]
    at: datetime
    tools: Sequence[Mapping[str, Any]]

    def run(self, messages: Sequence[Message], *, ends: bool, **options: JsonScalar) -> str:
        values: dict[str, object] = {
            # some templates read the date here and use a fixed one if it is missing
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
    """Return whether the text begins a thought (the model's reasoning) without ending it."""
    opens, closes = THOUGHT_SIGNS
    return text.rfind(opens) > text.rfind(closes)


def fold_system(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with the system message's text moved to the beginning of the first user message."""
    first, *rest = messages
    at = next((number for number, message in enumerate(rest) if message["role"] == "user"), None)
    if at is None:
        return [{**first, "role": "user"}, *rest]
    user = {**rest[at], "content": f"{first['content']}\n{rest[at]['content']}"}
    return [*rest[:at], user, *rest[at + 1 :]]


def fold_tools(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with calls rewritten as assistant text and their results as user text."""
    adapted = list[Message]()
    for message in messages:
        if calls := message.get("tool_calls"):
            words = [message["content"], *(json.dumps(_called(call), ensure_ascii=False) for call in calls)]
            adapted.append({"role": "assistant", "content": "\n".join(filter(None, words))})
        elif message["role"] == "tool":
            adapted.append({"role": "user", "content": f"Result of the call:\n{message['content']}"})
        else:
            adapted.append(message)
    return adapted


def with_responses(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with the results of calls merged into the message that contains the calls.

    The answer that follows the results is merged too.
    """
    adapted = list[Message]()
    for message in messages:
        last = adapted[-1] if adapted else {}
        calls, responses = last.get("tool_calls", ()), last.get("tool_responses", ())
        if calls and message["role"] == "tool":
            at = len(responses)
            name = calls[at]["function"]["name"] if at < len(calls) else message.get("tool_call_id", "")
            response = {"name": name, "response": as_object(message["content"])}
            adapted[-1] = {**last, "tool_responses": [*responses, response]}
        elif responses and message["role"] == "assistant" and not message.get("tool_calls"):
            adapted[-1] = {**last, "content": message["content"]}
        else:
            adapted.append(message)
    return adapted


def joined(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with consecutive plain messages of the same role merged."""
    merged = list[Message]()
    for message in messages:
        is_plain = not message.get("tool_calls") and message["role"] != "tool"
        if merged and is_plain and merged[-1]["role"] == message["role"] and not merged[-1].get("tool_calls"):
            both = filter(None, (merged[-1]["content"], message["content"]))
            merged[-1] = {**merged[-1], "content": "\n\n".join(both)}
        else:
            merged.append(message)
    return merged


def in_parts(message: Message) -> Message:
    """Return the message with its content as a list of parts."""
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
