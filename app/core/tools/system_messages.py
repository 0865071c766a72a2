"""What programs tell a model beside the user's words, as chat templates take it: once, at the beginning. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Message = dict[str, Any]  # as chat templates read it


def one_system(messages: Sequence[Message]) -> list[Message]:
    """With one system message at most: those at the beginning become one, and what a later one says is told with the
    user's words. Templates refuse a second one, or leave it out and say nothing."""
    told: list[Message] = []
    texts: list[list[str]] = []  # of each, joined once: of thousands, each join would copy all before
    was_system = False
    for message in messages:
        is_system = message["role"] == "system"
        one = {**message, "role": "user"} if is_system and not _only_begun(told) else message
        if told and told[-1]["role"] == one["role"] and (is_system or was_system):
            told[-1] = {**one, **told[-1]}
            texts[-1].append(one["content"])
        else:
            told.append(one)
            texts.append([one["content"]])
        was_system = is_system
    return [
        {**one, "content": "\n\n".join(filter(None, parts))} if len(parts) > 1 else one
        for one, parts in zip(told, texts, strict=True)
    ]


def _only_begun(told: Sequence[Message]) -> bool:
    """Whether nobody but the system has said anything."""
    return not told or told[-1]["role"] == "system"
