"""The text of requests, in which nothing stands for a control token of the model that reads it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from app.core.tools.reasoning import marker_tokens
from app.inference.worker.tokenizer import Message
from backends.control_tokens import ControlTokenBreaker
from backends.worker_orders import VocabularyOpened

CHATML_MARKS = ("<|im_end|>", "<|im_start|>")  # texts that a model without a chat template treats as ordinary text
LONG_CHARS = 1 << 14  # text that takes about a millisecond
WRITTEN_BY_THE_OWNER = frozenset({"system", "developer", "assistant"})


class TrustedInput(NamedTuple):
    """The input of a chat template, without control tokens."""

    messages: list[dict[str, Any]]
    tools: tuple[dict[str, Any], ...]
    options: dict[str, Any]


class UntrustedText:
    """A filter for all that reaches the chat template of one model from outside.

    Answers and system messages keep the markers of reasoning: templates look for them in earlier answers, and the
    system message of some models explains them. They cannot begin a message.
    """

    def __init__(self, vocabulary: VocabularyOpened) -> None:
        marks = () if vocabulary.has_template else CHATML_MARKS
        self._strict = ControlTokenBreaker((*vocabulary.markers, *marks))
        self._lenient = self._strict.except_for(
            () if vocabulary.reasoning.messages else marker_tokens(vocabulary.reasoning)
        )

    async def clean(
        self, messages: Sequence[Message], tools: tuple[dict[str, Any], ...], options: Mapping[str, Any]
    ) -> TrustedInput:
        """Return the messages, tools and template options without control tokens. Long ones are read in a thread."""
        n_chars = sum(len(message.get("content") or "") for message in messages)
        if n_chars < LONG_CHARS and not tools:
            return self._clean(messages, tools, options)
        return await asyncio.to_thread(self._clean, messages, tools, options)

    def _clean(
        self, messages: Sequence[Message], tools: tuple[dict[str, Any], ...], options: Mapping[str, Any]
    ) -> TrustedInput:
        cleaned = [self._message(message) for message in messages]
        return TrustedInput(cleaned, tuple(map(self._strict.value, tools)), self._strict.value(options))

    def _message(self, message: Message) -> dict[str, Any]:
        is_lenient = message["role"] in WRITTEN_BY_THE_OWNER
        texts = (self._lenient if is_lenient else self._strict).value
        return {
            key: value if key == "role" else self._strict.value(value) if key == "tool_calls" else texts(value)
            for key, value in message.items()
        }
