"""The filter for the text of requests, which ensures that no part of it is read as a control token of the model."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from app.core.tools.reasoning import marker_tokens
from app.inference.worker.tokenizer import Message, check_options, checked_length
from backends.contract import ReasoningFormat
from backends.control_tokens import BREAK, ControlTokenBreaker
from backends.worker_orders import VocabularyOpened

CHATML_MARKS = ("<|im_end|>", "<|im_start|>")  # texts that a model without a chat template treats as ordinary text
LONG_CHARS = 1 << 14  # text that takes about a millisecond
LONGEST_MARKER = 64  # characters; no known control token comes near
WRITTEN_BY_THE_OWNER = frozenset({"system", "developer", "assistant"})


class TrustedInput(NamedTuple):
    """The input of a chat template, without control tokens."""

    messages: list[dict[str, Any]]
    tools: tuple[dict[str, Any], ...]
    options: dict[str, Any]


class UntrustedText:
    """A filter for all external text that is passed to the chat template of one model.

    The markers of reasoning are kept in answers and system messages: templates look for them in earlier answers, and
    the system messages of some models explain them. A template may cut out the text between the markers and join the
    remaining pieces. If this could create a control token, the markers of reasoning are broken up too.
    """

    def __init__(self, vocabulary: VocabularyOpened) -> None:
        marks = () if vocabulary.has_template else CHATML_MARKS
        kept = marker_tokens(vocabulary.reasoning)
        self._strict = ControlTokenBreaker((*vocabulary.markers, *marks))
        self._strictest = ControlTokenBreaker((*vocabulary.markers, *marks, *kept))
        self._lenient = self._strict.except_for(() if vocabulary.reasoning.messages else kept)
        self._seams = _Seams(vocabulary.reasoning, {*vocabulary.markers, *marks}.difference(kept))

    async def clean(
        self, messages: Sequence[Message], tools: tuple[dict[str, Any], ...], options: Mapping[str, Any]
    ) -> TrustedInput:
        """Return the messages, tools and template options without control tokens. Long input is processed in a
        thread.

        Raises BadInput if there is too much text.
        """
        check_options(options)
        n_chars = checked_length(messages, tools) + sum(len(text) for text in options.values() if isinstance(text, str))
        if n_chars < LONG_CHARS:
            return self._clean(messages, tools, options)
        return await asyncio.to_thread(self._clean, messages, tools, options)

    def _clean(
        self, messages: Sequence[Message], tools: tuple[dict[str, Any], ...], options: Mapping[str, Any]
    ) -> TrustedInput:
        cleaned = [self._message(message) for message in messages]
        return TrustedInput(cleaned, tuple(map(self._strict.value, tools)), self._strict.value(options))

    def _message(self, message: Message) -> dict[str, Any]:
        role = message["role"]
        return {key: value if key == "role" else self._field(role, key, value) for key, value in message.items()}

    def _field(self, role: str, key: str, value: Any) -> Any:
        if key == "tool_calls":
            return [self._call(call) for call in value]
        if role == "tool" and key == "content" and isinstance(value, str):
            return self._json(value)
        if role in WRITTEN_BY_THE_OWNER and isinstance(value, str):
            return (self._strictest if self._seams.are_risky(value) else self._lenient).text(value)
        return self._strict.value(value)

    def _call(self, call: Any) -> Any:
        """Return a tool call without control tokens. Its arguments may be JSON text that the worker will decode."""
        cleaned = self._strict.value(call)
        function = cleaned.get("function") if isinstance(cleaned, dict) else None
        if isinstance(function, dict) and isinstance(function.get("arguments"), str):
            function["arguments"] = self._json(function["arguments"])
        return cleaned

    def _json(self, text: str) -> str:
        """Return text that contains no control tokens, even after the worker has decoded it as JSON with escape
        sequences.
        """
        text = self._strict.text(text)
        try:
            value = json.loads(text)
            cleaned = self._strict.value(value)
            if cleaned == value:
                return text
            written = json.dumps(cleaned, ensure_ascii=False).encode("utf-8", "replace").decode()  # no half characters
        except ValueError:
            return text
        except RecursionError:
            return BREAK + text  # no JSON, so that it stays text
        return self._strict.text(written)


class _Seams:
    """A search for text that could become a control token where a template cuts out markers of reasoning."""

    def __init__(self, reasoning: ReasoningFormat, markers: Iterable[str]) -> None:
        marks = marker_tokens(reasoning)
        whole = (reasoning.begin, *reasoning.end, *reasoning.answer_begin, *reasoning.answer_end)  # with more words
        self._cuts = [
            re.compile("|".join(re.escape(mark.strip()) for mark in cuts if mark.strip()) or r"(?!)")
            for cuts in (marks, (*whole, *marks))
        ]
        self._markers = [marker for marker in markers if len(marker) <= LONGEST_MARKER]

    def are_risky(self, text: str) -> bool:
        """Return whether joining pieces of the text could create a control token.

        This is the case if one piece ends with the beginning of a control token and one begins with the end of one. The
        order of the pieces and the whitespace around them are ignored, because a template may strip it. Some harmless
        texts are therefore reported too.
        """
        for cut in self._cuts:
            pieces = [piece.strip() for piece in cut.split(text)]
            if len(pieces) > 1 and self._any_begins(pieces) and self._any_ends(pieces):
                return True
        return False

    def _any_begins(self, pieces: Sequence[str]) -> bool:
        return any(piece[-n:] in self._begins for piece in pieces for n in range(1, LONGEST_MARKER))

    def _any_ends(self, pieces: Sequence[str]) -> bool:
        return any(piece[:n] in self._ends for piece in pieces for n in range(1, LONGEST_MARKER))

    @cached_property
    def _begins(self) -> frozenset[str]:
        return frozenset(marker[:n] for marker in self._markers for n in range(1, len(marker)))

    @cached_property
    def _ends(self) -> frozenset[str]:
        return frozenset(marker[n:] for marker in self._markers for n in range(1, len(marker)))
