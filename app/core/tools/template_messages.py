"""The conversion of system messages, calls and their results to the form that some families' chat templates require."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from app.core.json_schema.partial_json import to_json
from backends.contract import CallFormat, CallIdKind, CallSyntax


def one_system(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with at most one system message.

    System messages at the beginning are joined. The text of a later system message is moved into the user's message,
    because templates reject a second system message or silently drop it.
    """
    merged: list[Message] = []
    # the texts of each message, joined only at the end: joining thousands one by one would copy everything each time
    texts: list[list[str]] = []
    was_system = False
    for message in messages:
        is_system = message["role"] == "system"
        entry = {**message, "role": "user"} if is_system and not _only_begun(merged) else message
        if merged and merged[-1]["role"] == entry["role"] and (is_system or was_system):
            merged[-1] = {**entry, **merged[-1]}
            texts[-1].append(entry["content"])
        else:
            merged.append(entry)
            texts.append([entry["content"]])
        was_system = is_system
    return [
        {**entry, "content": "\n\n".join(filter(None, parts))} if len(parts) > 1 else entry
        for entry, parts in zip(merged, texts, strict=True)
    ]


def _only_begun(messages: Sequence[Message]) -> bool:
    """Return whether the messages so far are only system messages."""
    return not messages or messages[-1]["role"] == "system"


ID_CHARACTERS = 9  # the length of Mistral's call ids

Message = dict[str, Any]  # in the form that chat templates read


def for_template(form: CallFormat | None, messages: Sequence[Message]) -> Sequence[Message]:
    """Return a conversation in the form that templates of this call format require."""
    if form is None:
        return messages
    if not form.past.writes_calls:
        return calls_in_text(form, messages)
    if form.past.is_single:
        messages = one_call_per_message(messages)
    match form.past.ids:
        case CallIdKind.SHORT:
            messages = short_ids(messages)
        case CallIdKind.COUNTED:
            messages = counted_ids(messages)
    return arguments_as_text(messages) if form.past.takes_text else messages


def calls_in_text(form: CallFormat, messages: Sequence[Message]) -> list[Message]:
    """Write calls into the text of their messages in the model's own format, for templates that ignore calls."""
    converted: list[Message] = []
    for message in messages:
        if calls := message.get("tool_calls"):
            text = message.get("content") or ""
            plain = {key: value for key, value in message.items() if key != "tool_calls"}
            converted.append(plain | {"content": f"{text}{chr(10) if text else ''}{calls_as_text(form, calls)}"})
        else:
            converted.append(message)
    return converted


def calls_as_text(form: CallFormat, calls: Sequence[Message]) -> str:
    """Return calls as a model writes them, either as JSON objects or as Python."""
    texts = []
    for call in calls:
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        if form.payload is CallSyntax.PYTHON:
            values = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
            texts.append(f"{name}({values})")
        else:
            head = f"{form.lead}{form.head}{to_json(name)[1:-1]}{form.named}"
            texts.append(f"{head}{to_json(arguments)}{form.rest}{form.trail}")
    return f"{form.section}{form.between.join(texts)}{form.section_end}"


def arguments_as_text(messages: Sequence[Message]) -> list[Message]:
    """Convert arguments to JSON text, for templates that insert arguments verbatim."""
    return [
        {**message, "tool_calls": [_as_text(call) for call in message["tool_calls"]]}
        if message.get("tool_calls")
        else message
        for message in messages
    ]


def _as_text(call: Message) -> Message:
    function = call["function"]
    return {**call, "function": {**function, "arguments": to_json(function["arguments"])}}


def one_call_per_message(messages: Sequence[Message]) -> list[Message]:
    """Split a message with several calls into one message for each call, followed by its result.

    The templates of Llama 3 require this.
    """
    converted: list[Message] = []
    left: list[Message] = []  # calls whose result has not come yet
    for message in messages:
        calls = message.get("tool_calls", ())
        if len(calls) > 1:
            converted += left
            bare = {name: value for name, value in message.items() if name != "reasoning_content"}
            left = [
                {**(bare | {"content": ""} if at else message), "tool_calls": [call]} for at, call in enumerate(calls)
            ]
            continue
        if left and message["role"] == "tool":
            converted.append(left.pop(_answered(left, message)))
        else:
            converted, left = converted + left, []
        converted.append(message)
    return converted + left


def short_ids(messages: Sequence[Message]) -> list[Message]:
    """Shorten the ids of calls to nine letters and digits. Mistral's templates reject other ids."""
    return _with_ids(messages, lambda call, at: _short(call.get("id") or f"call {at}"), _short)


def counted_ids(messages: Sequence[Message]) -> list[Message]:
    """Number the calls throughout the conversation.

    Kimi identifies a call by its tool and number, and repeats the ids it was given.
    """
    return _with_ids(messages, lambda call, at: f"functions.{call['function']['name']}:{at}", str)


def _with_ids(
    messages: Sequence[Message], named: Callable[[Message, int], str], unknown: Callable[[str], str]
) -> list[Message]:
    """Assign new ids to calls according to their number in the conversation.

    A result without an id belongs to the next unanswered call. For the result of an unknown call, `unknown` derives a
    new id from the original.
    """
    converted: list[Message] = []
    left: list[tuple[str, str]] = []  # the original and the new ids of calls whose result has not come yet
    n_calls = 0
    for message in messages:
        if calls := message.get("tool_calls"):
            ids = [named(call, n_calls + number) for number, call in enumerate(calls)]
            n_calls += len(calls)
            left = [(call.get("id") or "", name) for call, name in zip(calls, ids, strict=True)]
            renamed = [{**call, "id": name} for call, name in zip(calls, ids, strict=True)]
            converted.append({**message, "tool_calls": renamed})
        elif message["role"] == "tool":
            of = message.get("tool_call_id") or ""
            own = next((pending for pending in left if pending[0] == of or not of), None)
            left = [pending for pending in left if pending is not own]
            converted.append({**message, "tool_call_id": own[1] if own else unknown(of)})
        else:
            converted.append(message)
    return converted


def _short(name: str) -> str:
    if len(name) == ID_CHARACTERS and name.isascii() and name.isalnum():
        return name
    return hashlib.sha256(name.encode()).hexdigest()[:ID_CHARACTERS]


def _answered(left: Sequence[Message], result: Message) -> int:
    """Return the index of the call that the result answers: the call with its id, or otherwise the first call."""
    ids = [message["tool_calls"][0].get("id") for message in left]
    call_id = result.get("tool_call_id")
    return ids.index(call_id) if call_id and call_id in ids else 0
