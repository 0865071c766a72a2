"""One answer while it comes: its text parted from its calls, and how likely its tokens were told with their text."""

from __future__ import annotations

import secrets
from collections import deque
from typing import Any

from app.core.tools.tool_calls import CallFinder
from app.core.tools.tool_formats import Begun, Call, More, News
from app.core.tools.tool_signs import signs_of
from app.gateway.api_request import (
    MOST_CALLS_OF_ALL,
    CallBegun,
    Called,
    CallText,
    Ended,
    Likely,
    Piece,
    Said,
    Thought,
    Wish,
)
from app.node.placement.placement import Running

Json = dict[str, Any]


class Talk:
    """Reads what the pool tells of an answer."""

    def __init__(self, wish: Wish, index: int) -> None:
        self._wish, self._index = wish, index
        self._finder: CallFinder | None = None
        self._signs: dict[int, bytes] = {}
        self._held = deque[tuple[int, int, Likely]]()  # tokens by the bytes of text they are
        self._hidden = deque[tuple[int, int]]()  # bytes that are no text: thoughts, and their signs
        self._n_sampled = self._n_told = 0  # bytes
        self._n_calls = 0
        self._open = ""  # the id of the call that is told in pieces

    async def hear(self, running: Running) -> dict[int, bytes]:
        """Learn how this model calls tools: the control tokens around calls, with the text that each is here."""
        answerer = running.answerer
        if answerer is None or not self._wish.tools or not (one := answerer.call_format):
            return {}
        tools = {tool.name: tool.schema for tool in self._wish.tools}
        self._finder = CallFinder(one, tools, in_pieces=self._wish.calls_in_pieces)
        signs = [(await answerer.control_token(sign), sign) for sign in signs_of(one).all]
        self._signs = {token: sign.encode() for token, sign in signs if token is not None}
        return self._signs

    def heard(self, delta: Json) -> list[Piece]:
        text, likely = delta["text"], self._likely(delta)
        pieces: list[Piece] = []
        if (thought := delta.get("thought", "")) or delta.get("was_thought"):
            pieces.append(Thought(self._index, thought, takes_said="was_thought" in delta))
        if self._finder is None:
            return pieces + ([Said(self._index, text, likely)] if text or likely else [])
        return pieces + self._pieces(*self._finder.push(text), likely)

    def ended(self, done: Json, queued_s: float) -> list[Piece]:
        text, calls = "", list[News]()
        if self._finder is not None:
            text, calls = self._finder.flush(is_cut=done["finish_reason"] == "length")
        is_whole = done["finish_reason"] == "stop" or self._is_cut_behind(calls)
        end = done["stop"] is not None
        rest = tuple(
            one
            for begin, last, one in self._held
            if (not end or begin < self._n_told) and not self._is_hidden(begin, last)
        )
        pieces = self._pieces(text, calls, rest)
        ended = Ended(
            self._index,
            "calls" if self._n_calls and is_whole else done["finish_reason"],
            done["stop"],
            done["prompt_tokens"],
            done["reused_tokens"],
            len(done["token_ids"]),
            queued_s + done["queued_s"],
            done["ttft_s"],
            done["decode_tok_s"],
            done.get("thought_tokens", 0),
        )
        return [*pieces, ended]

    def _likely(self, delta: Json) -> tuple[Likely, ...]:
        """Of tokens whose text is told by now: a stop string, or half a character, may hold some back, and what a stop
        string takes away was never told."""
        begin = self._n_told
        if hidden := delta.get("hidden_bytes", 0):  # of thoughts and signs, before the text
            if self._hidden and self._hidden[-1][1] == begin:  # a token may lie across both
                begin = self._hidden.pop()[0]
            self._hidden.append((begin, self._n_told + hidden))
        self._n_told += hidden + len(delta["text"].encode())
        if likely := delta.get("likely"):
            sign = self._signs.get(delta["token_ids"][0], b"") if delta["token_ids"] else b""
            begin, self._n_sampled = self._n_sampled, self._n_sampled + len(likely[0][0] or sign)
            self._held.append((begin, self._n_sampled, likely))
        told = list[Likely]()
        while self._held and self._held[0][1] <= self._n_told:
            first, last, one = self._held.popleft()
            if not self._is_hidden(first, last):
                told.append(one)
        while self._hidden and self._held and self._hidden[0][1] <= self._held[0][0]:
            self._hidden.popleft()
        return tuple(told)

    def _is_hidden(self, begin: int, end: int) -> bool:
        """Whether all that a token wrote is no part of the text."""
        return any(first <= begin and end <= last for first, last in self._hidden)

    def _is_cut_behind(self, news: list[News]) -> bool:
        """Whether the answer was cut within a call that nobody is told of, so that what is told is whole."""
        calls = [one for one in news if isinstance(one, Call)]
        return bool(calls) and bool(calls[-1].half) and len(calls) + self._n_calls > self._most()

    def _most(self) -> int:
        """Calls that are told. No grammar ends an answer behind its first one, where that is free."""
        return MOST_CALLS_OF_ALL if self._wish.many_calls is not False else 1

    def _pieces(self, text: str, news: list[News], likely: tuple[Likely, ...]) -> list[Piece]:
        """Of several calls the first alone, where one at once is wanted."""
        pieces: list[Piece] = [Said(self._index, text, likely)] if text or likely else []
        for one in news:
            if self._n_calls >= self._most():
                break
            match one:
                case Begun(name):
                    self._open = f"call_{secrets.token_hex(12)}"
                    pieces.append(CallBegun(self._index, self._n_calls, self._open, name))
                case More(some):
                    pieces.append(CallText(self._index, self._n_calls, some))
                case Call():
                    pieces.append(
                        Called(
                            self._index, self._n_calls, self._open or f"call_{secrets.token_hex(12)}",
                            one.name, one.arguments, one.half or None, bool(self._open),
                        )
                    )  # fmt: skip
                    self._open, self._n_calls = "", self._n_calls + 1
        return pieces
