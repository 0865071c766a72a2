"""Pieces of answers -> what OpenAI's chat and text completions say, whole or in chunks. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from app.gateway.api_request import (
    CallBegun,
    Called,
    CallText,
    Ended,
    Json,
    Likely,
    Origin,
    Piece,
    Said,
    Thought,
    Whole,
)

REASONS = {"stop": "stop", "length": "length", "calls": "tool_calls"}


@dataclass(slots=True)
class Answers:
    """All answers of one request, as they come."""

    id: str
    model: str
    created: int
    chat: bool
    origin: Origin = field(default_factory=Origin)
    wholes: dict[int, Whole] = field(default_factory=dict)

    def add(self, piece: Piece) -> None:
        self.wholes.setdefault(piece.index, Whole()).add(piece)

    def whole(self) -> Json:
        """The whole completion."""
        choices = [self._choice(index, self.wholes[index]) for index in sorted(self.wholes)]
        kind = "chat.completion" if self.chat else "text_completion"
        return self._frame(kind, choices) | {"usage": self.usage()}

    def chunks(self, piece: Piece) -> list[Json]:
        """What a stream says of a piece; the first one of each answer begins it."""
        begins = piece.index not in self.wholes
        before = self.wholes.setdefault(piece.index, Whole()).n_said
        self.add(piece)
        if not self.chat:
            return [self._frame("text_completion", [self._text_part(piece, before)])]
        deltas: list[tuple[Json, Json | None, str | None]] = (
            [({"role": "assistant", "content": ""}, None, None)] if begins else []
        )
        match piece:
            case Said(text=text):
                deltas.append(({"content": text}, _chat_likely(piece.likely), None))
            case CallBegun(number=number, id=name):
                begun = {"name": piece.name, "arguments": ""}
                call = {"index": number, "id": name, "type": "function", "function": begun}
                deltas.append(({"tool_calls": [call]}, None, None))
            case CallText(number=number, text=text):
                more = {"index": number, "function": {"arguments": text}}
                deltas.append(({"tool_calls": [more]}, None, None))
            case Thought(text=text):
                if text:
                    deltas.append(({"reasoning_content": text}, None, None))
            case Called(number=number) if not piece.was_begun:
                deltas.append(({"tool_calls": [{"index": number, **_call(piece)}]}, None, None))
            case Ended(reason=reason):
                deltas.append(({}, None, REASONS[reason]))
        return [
            self._frame(
                "chat.completion.chunk",
                [{"index": piece.index, "delta": delta, "logprobs": likely, "finish_reason": reason}],
            )
            for delta, likely, reason in deltas
        ]  # fmt: skip

    def last_chunk(self) -> Json:
        """The one with the usage, after all others."""
        kind = "chat.completion.chunk" if self.chat else "text_completion"
        return self._frame(kind, []) | {"usage": self.usage()}

    def usage(self) -> Json:
        ends = [one.ended for one in self.wholes.values()]
        prompt = max(end.prompt_tokens for end in ends)
        answer = sum(end.answer_tokens for end in ends)
        thought = sum(end.thought_tokens for end in ends)
        reused = max(end.reused_tokens for end in ends)
        return {
            "prompt_tokens": prompt,
            "completion_tokens": answer,
            "total_tokens": prompt + answer,
            "prompt_tokens_details": {"cached_tokens": reused},
            **({"completion_tokens_details": {"reasoning_tokens": thought}} if thought else {}),
        }

    def _frame(self, kind: str, choices: list[Json]) -> Json:
        return {
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "choices": choices,
            **self.origin.told(),
        }

    def _choice(self, index: int, one: Whole) -> Json:
        reason = REASONS[one.ended.reason]
        if not self.chat:
            likely = _text_likely(one.likely, 0)
            return {"index": index, "text": one.text, "logprobs": likely, "finish_reason": reason}
        message: Json = {"role": "assistant", "content": one.text or (None if one.calls else "")}
        if one.thought:
            message["reasoning_content"] = one.thought
        if one.calls:
            message["tool_calls"] = [_call(call) for call in one.calls]
        return {
            "index": index,
            "message": message,
            "logprobs": _chat_likely(one.likely),
            "finish_reason": reason,
        }

    def _text_part(self, piece: Piece, offset: int) -> Json:
        said = piece if isinstance(piece, Said) else None
        return {
            "index": piece.index,
            "text": said.text if said else "",
            "logprobs": _text_likely(said.likely, offset) if said else None,
            "finish_reason": REASONS[piece.reason] if isinstance(piece, Ended) else None,
        }


def _call(call: Called) -> Json:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _chat_likely(tokens: Sequence[Likely]) -> Json | None:
    if not tokens:
        return None
    content = [
        _token(*chosen) | {"top_logprobs": [_token(*one) for one in best]}
        for chosen, *best in tokens
    ]
    return {"content": content, "refusal": None}


def _token(piece: bytes, log: float) -> Json:
    return {"token": piece.decode("utf-8", "replace"), "logprob": log, "bytes": list(piece)}


def _text_likely(tokens: Sequence[Likely], offset: int) -> Json | None:
    if not tokens:
        return None
    texts = [chosen[0].decode("utf-8", "replace") for chosen, *_ in tokens]
    offsets = [offset + sum(map(len, texts[:place])) for place in range(len(texts))]
    return {
        "tokens": texts,
        "token_logprobs": [chosen[1] for chosen, *_ in tokens],
        "top_logprobs": [_by_text(best) for _, *best in tokens],
        "text_offset": offsets,
    }


def _by_text(likely: Iterable[tuple[bytes, float]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for piece, log in likely:
        found.setdefault(piece.decode("utf-8", "replace"), log)
    return found
