"""A Wish as OpenAI's API is asked for it, and what it answers, chunk by chunk, as our pieces. No I/O."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from app.node.chat_api.wish import Called, Ended, Json, Likely, Piece, Said, Wish

REASONS = {"stop": "stop", "length": "length", "tool_calls": "calls", "content_filter": "stop"}
MOST_CALLS = 128
MOST_TOKENS = 1 << 40


def can_go(wish: Wish) -> bool:
    """Whether another server would understand it: token ids mean something else there."""
    return not isinstance(wish.prompt, tuple) and not wish.sampling.logit_bias


def body(wish: Wish, model: str, index: int, most_tokens: int) -> Json:
    """One answer of it, as a stream with its usage at the end."""
    sampling = wish.sampling
    made: Json = {
        "model": model,
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": min(wish.max_tokens or most_tokens, most_tokens),
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
        "seed": sampling.seed + index,
    }
    if wish.stop:
        made["stop"] = list(wish.stop)
    if wish.messages is None:
        return made | {"prompt": wish.prompt}
    made["messages"] = [_message(message) for message in wish.messages]
    if sampling.likely is not None:
        made |= {"logprobs": True, "top_logprobs": sampling.likely}
    if wish.schema is not None:
        form = {"name": "answer", "schema": wish.schema}
        made["response_format"] = {"type": "json_schema", "json_schema": form}
    if wish.tools:
        made["tools"] = [tool.told() for tool in wish.tools]
        made["parallel_tool_calls"] = wish.many_calls
        if wish.must_call is not None:
            named = {"type": "function", "function": {"name": wish.must_call}}
            made["tool_choice"] = named if wish.must_call else "required"
    return made


def path_of(wish: Wish) -> str:
    return "completions" if wish.messages is None else "chat/completions"


def _message(message: Json) -> Json:
    """Templates read a call's arguments as values, the API as text."""
    if "tool_calls" not in message:
        return message
    calls = [
        {**call, "id": call.get("id") or f"call_{at}", "function": {
            **call["function"],
            "arguments": msgspec.json.encode(call["function"]["arguments"]).decode(),
        }}
        for at, call in enumerate(message["tool_calls"])
    ]  # fmt: skip
    return {**message, "tool_calls": calls}


@dataclass(slots=True)
class Heard:
    """One answer while it comes. What it is asked with is a stranger's: nothing is taken on trust."""

    index: int
    reason: str = "stop"
    prompt_tokens: int = 0
    reused_tokens: int = 0
    answer_tokens: int = 0
    n_chunks: int = 0
    is_taken: bool = False  # its prompt is being read there, which costs already
    _calls: dict[int, list[str]] = field(default_factory=dict)  # id, name, arguments

    def pieces(self, chunk: Json) -> list[Piece]:
        """What a chunk says. Raises ValueError, TypeError, KeyError or AttributeError for what is none."""
        found: list[Piece] = []
        for choice in chunk.get("choices") or ():
            delta = choice.get("delta") or {}
            text = str(delta.get("content") or choice.get("text") or "")
            likely = tuple(map(_likely, ((choice.get("logprobs") or {}).get("content")) or ()))
            if text or likely:
                self.n_chunks += 1
                found.append(Said(self.index, text, likely))
            for call in delta.get("tool_calls") or ():
                self.n_chunks += 1
                self._call(call)
            if reason := choice.get("finish_reason"):
                self.reason = REASONS.get(str(reason), "stop")
        if usage := chunk.get("usage"):
            self.prompt_tokens = _count(usage.get("prompt_tokens"))
            self.answer_tokens = _count(usage.get("completion_tokens"))
            details = usage.get("prompt_tokens_details") or {}
            self.reused_tokens = _count(details.get("cached_tokens"))
        return found

    def _call(self, call: Json) -> None:
        number = int(call.get("index") or 0)
        if number not in self._calls and len(self._calls) >= MOST_CALLS:
            raise ValueError("too many calls")
        parts, function = self._calls.setdefault(number, ["", "", ""]), call.get("function") or {}
        parts[0] = parts[0] or str(call.get("id") or "")
        parts[1] = parts[1] or str(function.get("name") or "")
        parts[2] += str(function.get("arguments") or "")

    def end(self, wish_s: float, first_s: float) -> list[Piece]:
        """Its calls, and the end. `wish_s`: since it was asked; `first_s`: until its first piece."""
        called: list[Piece] = [
            Called(self.index, at, name, function, arguments or "{}")
            for at, (name, function, arguments) in enumerate(self._calls.values())
        ]
        tokens = self.tokens
        rate = (tokens - 1) / (wish_s - first_s) if tokens > 1 and wish_s > first_s else 0.0
        reason = "calls" if called else self.reason
        return [*called, Ended(self.index, reason, None, self.prompt_tokens, self.reused_tokens,
                               tokens, 0.0, first_s, rate)]  # fmt: skip

    @property
    def tokens(self) -> int:
        """Of the answer; a server that tells no usage sends at least a token with each chunk."""
        return self.answer_tokens or self.n_chunks


def _count(given: Any) -> int:
    """Of tokens, as a server says it: none is paid back, and no number is without an end."""
    return min(max(0, int(given or 0)), MOST_TOKENS)


def _likely(token: Json) -> Likely:
    return [_one(token), *map(_one, token.get("top_logprobs") or ())]


def _one(token: dict[str, Any]) -> tuple[bytes, float]:
    given = token.get("bytes")
    data = bytes(given) if given is not None else str(token["token"]).encode()
    return data, float(token["logprob"])
