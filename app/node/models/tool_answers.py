"""Answers in which the model may call tools. The calls are separated from the text, and the client carries them
out.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import msgspec

from app.api import requests
from app.api.responses import Answer, ToolCall
from app.core.errors import BadInput, Reason
from app.core.json_schema.json_grammar import check_size
from app.core.json_schema.schema_types import localize_references
from app.core.reasons import said
from app.core.tools.call_cursor import Call, CallEvent
from app.core.tools.call_finder import CallFinder
from app.core.tools.call_grammar import calls_grammar
from app.core.tools.call_markers import markers_of
from app.inference.pipeline.completion import Completer, Delta, GenerationRequest
from app.inference.worker.tokenizer import MAX_TEXT_CHARS
from app.node.control.answer_conversion import AnswerPart, generation_request
from app.node.placement.placement import Placement

Parts = AsyncGenerator[AnswerPart, None]
Answering = Callable[[str | None, Callable[[Placement], Awaitable[GenerationRequest]]], Parts]

NOT_OFFERED = Reason("tools_not_offered")


def uses_tools(order: requests.Ask) -> bool:
    """Return whether a request offers tools, or continues a conversation in which tools were called."""
    return bool(order.tools) or any(message.role == "tool" or message.tool_calls for message in order.messages or ())


async def answer_with_tools(order: requests.Ask, answer: Answering) -> Parts:
    """Yield the parts of an answer that may call tools. Raises the errors of `answer`, and BadInput.

    If the model cannot call tools, the request is sent without them, and a note is added to the answer.
    """
    reader = ToolCallReader(order)
    async with aclosing(answer(order.model, reader.request)) as parts:
        async for part in parts:
            for read in reader.read(part):
                yield read


class ToolCallReader:
    """A reader that separates the calls in one answer from its text."""

    def __init__(self, order: requests.Ask) -> None:
        self._order = order
        self._finder: CallFinder | None = None
        self._text: list[str] = []
        self._calls: list[ToolCall] = []

    async def request(self, running: Placement) -> GenerationRequest:
        """Return the generation request for the model that will answer. Raises BadInput."""
        _check_sizes(self._order)
        question = generation_request(self._order)
        completer = running.completer
        form = completer.call_format if completer is not None else None
        if completer is None or not self._order.tools:
            return question
        if form is None:
            if self._order.must_call is not None:
                raise BadInput("api_tools_unknown", model=running.entry.name)
            return question
        schemas = {tool.name: localize_references(tool.parameters) for tool in self._order.tools}
        self._finder = CallFinder(form, schemas)
        must_call, grammar = self._order.must_call, ""
        if must_call is not None:
            forced = {name: schema for name, schema in schemas.items() if must_call in ("", name)}
            if not forced:
                raise BadInput("api_tool_missing", name=must_call, field="must_call")
            grammar = calls_grammar(form, forced, True)
        return replace(
            question,
            tools=tuple(map(_as_json, self._order.tools)),
            sampling=replace(question.sampling, grammar=grammar),
            signs=await _marker_tokens(completer),
        )

    def read(self, part: AnswerPart) -> list[AnswerPart]:
        """Return the parts to send in place of this part: its text without calls and, at the end of the answer,
        the calls.
        """
        if self._finder is None:
            return [self._told(part) if isinstance(part, Answer) else part]
        if isinstance(part, Delta):
            if part.was_thought:
                self._text.clear()
            text, events = self._finder.push(part.text)
            return [self._taken(part, text, events)]
        if isinstance(part, Answer):
            is_cut = part.finish_reason == "length"
            text, events = self._finder.flush(is_cut=is_cut)
            rest = self._taken(Delta("", ()), text, events)
            calls = [] if is_cut else self._calls
            reason = "calls" if calls else part.finish_reason
            done = msgspec.structs.replace(part, text="".join(self._text), calls=calls, finish_reason=reason)
            return [*([rest] if rest.text else []), done]
        return [part]

    def _taken(self, delta: Delta, text: str, events: list[CallEvent]) -> Delta:
        self._text.append(text)
        for event in events:
            if isinstance(event, Call) and not event.half and len(self._calls) < requests.MAX_CALLS:
                self._calls.append(ToolCall(f"call_{secrets.token_hex(8)}", event.name, event.arguments))
        return replace(delta, text=text, likely=())

    def _told(self, done: Answer) -> Answer:
        """Return the final part with a note that the model was not offered the tools. Without tools, return it
        unchanged.
        """
        if not self._order.tools:
            return done
        notes, facts = [*done.notes, said(NOT_OFFERED)], [*done.notes_facts, NOT_OFFERED]
        return msgspec.structs.replace(done, notes=notes, notes_facts=facts)


async def _marker_tokens(completer: Completer) -> dict[int, bytes]:
    """Return the text of each control token that marks a call, by token ID."""
    form = completer.call_format
    assert form is not None
    markers = [(await completer.control_token(marker), marker) for marker in markers_of(form).all]
    return {token: marker.encode() for token, marker in markers if token is not None}


def _as_json(tool: requests.Tool) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def _check_sizes(order: requests.Ask) -> None:
    """Check the size and nesting of tools and calls, which could break chat templates. Raises BadInput."""
    values: list[object] = [tool.parameters for tool in order.tools]
    characters = sum(len(msgspec.json.encode(value)) for value in values)
    if characters > MAX_TEXT_CHARS:
        raise BadInput("text_too_long", characters=characters, most=MAX_TEXT_CHARS)
    for value in values:
        check_size(value)
