"""Calls and their results in a conversation, as the chat templates of some families want them. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

ID_CHARACTERS = 9  # of Mistral's ids

Message = dict[str, Any]  # as chat templates read it


def as_told(style: str, messages: Sequence[Message]) -> Sequence[Message]:
    """A conversation as templates of this style of calls take it."""
    match style:
        case "llama3":
            return one_by_one(messages)
        case "mistral" | "ministral":
            return short_ids(messages)
    return messages


def one_by_one(messages: Sequence[Message]) -> list[Message]:
    """Llama 3's templates refuse a message with several calls: each call as a message of its own, and what
    came of it behind it."""
    told: list[Message] = []
    left: list[Message] = []  # calls whose results have not come
    for message in messages:
        calls = message.get("tool_calls", ())
        if len(calls) > 1:
            told += left
            left = [{**message, "tool_calls": [call]} | ({"content": ""} if at else {})
                    for at, call in enumerate(calls)]  # fmt: skip
            continue
        if left and message["role"] == "tool":
            told.append(left.pop(_answered(left, message)))
        else:
            told, left = told + left, []
        told.append(message)
    return told + left


def short_ids(messages: Sequence[Message]) -> list[Message]:
    """Mistral's templates refuse ids of calls that are not nine letters and digits. Calls without any get some, and
    results without any those of the calls in their order."""
    told: list[Message] = []
    left: list[str] = []  # of calls whose results have not come
    for at, message in enumerate(messages):
        if calls := message.get("tool_calls"):
            left = [_short(call.get("id") or f"{at} {number}") for number, call in enumerate(calls)]
            named = [{**call, "id": name} for call, name in zip(calls, left, strict=True)]
            told.append({**message, "tool_calls": named})
        elif message["role"] == "tool":
            given = message.get("tool_call_id")
            name = _short(given or (left[0] if left else f"{at}"))
            left = [one for one in left if one != name]
            told.append({**message, "tool_call_id": name})
        else:
            told.append(message)
    return told


def _short(name: str) -> str:
    if len(name) == ID_CHARACTERS and name.isascii() and name.isalnum():
        return name
    return hashlib.sha256(name.encode()).hexdigest()[:ID_CHARACTERS]


def _answered(left: Sequence[Message], result: Message) -> int:
    """Which of these calls the result belongs to: the one of its id, else the first."""
    ids = [message["tool_calls"][0].get("id") for message in left]
    given = result.get("tool_call_id")
    return ids.index(given) if given and given in ids else 0
