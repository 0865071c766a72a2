"""What programs tell a model beside the user's words, as chat templates take it: once, at the beginning. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Message = dict[str, Any]  # as chat templates read it


def one_system(messages: Sequence[Message]) -> list[Message]:
    """With one system message at most: those at the beginning become one, and what a later one says is told with the
    user's words. Templates refuse a second one, or leave it out and say nothing."""
    told: list[Message] = []
    was_system = False
    for message in messages:
        is_system = message["role"] == "system"
        one = {**message, "role": "user"} if is_system and not _only_begun(told) else message
        if told and told[-1]["role"] == one["role"] and (is_system or was_system):
            told[-1] = {**one, **told[-1], "content": _joined(told[-1], one)}
        else:
            told.append(one)
        was_system = is_system
    return told


def _only_begun(told: Sequence[Message]) -> bool:
    """Whether nobody but the system has said anything."""
    return not told or told[-1]["role"] == "system"


def _joined(*messages: Message) -> str:
    return "\n\n".join(filter(None, (message["content"] for message in messages)))
