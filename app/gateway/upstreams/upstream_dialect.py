"""The client side of OpenAI's API.

It encodes an ApiRequest for an upstream and converts the chunks of the answer to pieces. This module does no I/O.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from app.core.errors import BadInput
from app.core.json_schema.partial_json import parse_json
from app.gateway.api_request import (
    MOST_CALLS,
    THOUGHT,
    AnswerEnd,
    ApiRequest,
    CallDone,
    Json,
    Piece,
    TextPiece,
    ThoughtPiece,
    TokenLogprobs,
    Tool,
)

REASONS = {"stop": "stop", "length": "length", "tool_calls": "calls", "content_filter": "stop"}
# The new name is used if the program used it. Most servers know the old name, OpenAI's newer models only the new one.
LIMIT, OLD_LIMIT = "max_completion_tokens", "max_tokens"
MOST_TOKENS = 1 << 40
MOST_CHARS = 4 << 20  # maximum length of an answer including its calls, which is held in memory


def upstream_obstacle(api_request: ApiRequest) -> str:
    """Return a reason code if no upstream can answer this request, or "" otherwise."""
    if api_request.pictures:
        return "picture_upstream"
    if isinstance(api_request.prompt, tuple) or api_request.sampling.logit_bias:
        return "upstream_tokens"
    return "upstream_raw_form" if api_request.messages is None and api_request.schema is not None else ""


def request_body(api_request: ApiRequest, model: str, index: int, most_tokens: int) -> Json:
    """Return the body of a request that streams one answer and reports its usage at the end. Raises BadInput.

    Fields that the program did not set are omitted, because OpenAI's newer models reject every temperature except
    their default. They also reject the old name of the token limit.
    """
    ours: Json = {
        "model": model,
        "stream": True,
        "stream_options": {"include_usage": True},
        LIMIT if LIMIT in api_request.extra_fields else OLD_LIMIT: min(
            api_request.max_tokens or most_tokens, most_tokens
        ),
    }
    if "seed" in api_request.extra_fields:
        ours["seed"] = api_request.sampling.seed + index
    if api_request.stop:
        ours["stop"] = list(api_request.stop)
    if api_request.user:
        ours["user"] = api_request.user
    return _prompt_fields(api_request) | api_request.extra_fields | ours


def with_new_limit_name(sent: Json) -> Json:
    """Return the body with the token limit under its new name."""
    return {LIMIT if name == OLD_LIMIT else name: value for name, value in sent.items()}


def _prompt_fields(api_request: ApiRequest) -> Json:
    """Return the prompt fields of a text completion, or the messages of a chat."""
    likely = api_request.sampling.likely
    if api_request.messages is None:
        return {"prompt": api_request.prompt} | ({} if likely is None else {"logprobs": likely})
    made: Json = {"messages": _messages(api_request.messages)}
    if likely is not None:
        made |= {"logprobs": True, "top_logprobs": likely}
    if api_request.schema is not None:
        made["response_format"] = _form(api_request.schema)
    return made | _tools(api_request)


def _tools(api_request: ApiRequest) -> Json:
    made: Json = {}
    if api_request.must_call is not None and not api_request.tools:
        raise BadInput("api_no_tools", field="tool_choice")
    if api_request.tools:
        made["tools"] = [_tool(tool) for tool in api_request.tools]
        if api_request.parallel_calls is not None:
            made["parallel_tool_calls"] = api_request.parallel_calls
        if api_request.must_call is not None:
            named = {"type": "function", "function": {"name": api_request.must_call}}
            made["tool_choice"] = named if api_request.must_call else "required"
    return made


def endpoint(api_request: ApiRequest) -> str:
    return "completions" if api_request.messages is None else "chat/completions"


def _form(schema: object) -> Json:
    """Return the response format for a schema. It is strict, as in the other APIs."""
    if schema == {"type": "object"}:
        return {"type": "json_object"}
    form = {"name": "answer", "schema": schema, "strict": True}
    return {"type": "json_schema", "json_schema": form}


def _tool(tool: Tool) -> Json:
    """Return the tool without empty fields, because some servers reject an empty schema."""
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    written: Json = {name: value for name, value in function.items() if value}
    if tool.strict is not None:
        written["strict"] = tool.strict
    return {"type": "function", "function": written}


def _messages(messages: Sequence[Json]) -> list[Json]:
    """Convert the messages from the form for chat templates to OpenAI's form.

    The arguments of calls become text, and each result names its call. Ollama's clients do not name it.
    """
    written: list[Json] = []
    open_calls: list[tuple[str, str]] = []  # name and ID of the calls that have no result yet
    for place, message in enumerate(messages):
        if "tool_calls" in message:
            written.append(_calling(message, place))
            open_calls = [(earlier["function"]["name"], earlier["id"]) for earlier in written[-1]["tool_calls"]]
        elif message["role"] == "tool" and not message.get("tool_call_id") and open_calls:
            named = [open_call for open_call in open_calls if open_call[0] == message.get("name")]
            call = (named or open_calls)[0]
            open_calls.remove(call)
            written.append({**message, "tool_call_id": call[1]})
        else:
            written.append({name: value for name, value in message.items() if name != THOUGHT})
    return written


def _calling(message: Json, place: int) -> Json:
    calls = [
        {
            **call,
            "id": call.get("id") or f"call_{place}_{at}",
            "function": {**call["function"], "arguments": msgspec.json.encode(call["function"]["arguments"]).decode()},
        }
        for at, call in enumerate(message["tool_calls"])
    ]
    bare = {name: value for name, value in message.items() if name != THOUGHT}
    return {**bare, "tool_calls": calls}


@dataclass(slots=True)
class UpstreamAnswer:
    """An answer in progress from an upstream. The upstream is not trusted."""

    index: int
    reason: str = "stop"
    prompt_tokens: int = 0
    reused_tokens: int = 0
    answer_tokens: int = 0
    thought_tokens: int = 0
    n_chunks: int = 0
    n_chars: int = 0
    is_taken: bool = False  # the server is reading the prompt, which already costs tokens
    _calls: list[list[str]] = field(default_factory=list)  # ID, name, pieces of the arguments
    _last: dict[int, list[str]] = field(default_factory=dict)  # by index, which some servers omit

    def pieces(self, chunk: Json) -> list[Piece]:
        """Return the pieces of a chunk.

        Raises ValueError, TypeError, KeyError or AttributeError if the chunk is invalid.
        """
        pieces: list[Piece] = []
        for choice in (chunk.get("choices") or ())[:1]:  # only one answer was requested
            delta = choice.get("delta") or {}
            text = self._taken(delta.get("content") or choice.get("text"))
            likely = tuple(_likelies(choice.get("logprobs") or {}))
            if text or likely:
                pieces.append(TextPiece(self.index, text, likely))
            thought = self._taken(delta.get("reasoning_content") or delta.get("reasoning"))
            if thought:
                pieces.insert(0, ThoughtPiece(self.index, thought))
            if text or likely or thought:
                self.n_chunks += 1
            calls = delta.get("tool_calls") or ()
            if len(calls) > MOST_CALLS:
                raise ValueError("too many calls")
            for call in calls:
                self.n_chunks += 1
                self._call(call)
            if reason := choice.get("finish_reason"):
                self.reason = REASONS.get(str(reason), "stop")
        if usage := chunk.get("usage"):
            self.prompt_tokens = _count(usage.get("prompt_tokens"))
            self.answer_tokens = _count(usage.get("completion_tokens"))
            details = usage.get("prompt_tokens_details") or {}
            self.reused_tokens = _count(details.get("cached_tokens"))
            written = usage.get("completion_tokens_details") or {}
            self.thought_tokens = _count(written.get("reasoning_tokens"))
        return pieces

    def _call(self, call: Json) -> None:
        number, function = int(call.get("index") or 0), call.get("function") or {}
        name_of_call, name = str(call.get("id") or ""), str(function.get("name") or "")
        parts = self._last.get(number)
        if parts is None or (name and _is_another(call, parts)):
            if len(self._calls) >= MOST_CALLS:
                raise ValueError("too many calls")
            parts = self._last[number] = ["", ""]
            self._calls.append(parts)
        parts[:2] = parts[0] or name_of_call, parts[1] or name
        parts.append(self._taken(function.get("arguments")))

    def _taken(self, delta: object) -> str:
        """Count the characters of a piece and return its text. Raises ValueError if the answer is too long."""
        text = str(delta or "")
        self.n_chars += len(text)
        if self.n_chars > MOST_CHARS:
            raise ValueError("an answer without an end")
        return text

    def end(self, took_s: float, first_s: float) -> list[Piece]:
        """Return the calls and the end of the answer.

        `took_s` is the time since the request was sent, and `first_s` is the time until the first piece arrived.
        """
        called: list[Piece] = []
        for at, (call_id, name, *parts) in enumerate(self._calls):
            known_id, arguments = call_id or f"call_{secrets.token_hex(12)}", "".join(parts)
            called.append(CallDone(self.index, at, known_id, name, arguments or "{}", _half(arguments)))
        tokens = self.tokens
        rate = (tokens - 1) / (took_s - first_s) if tokens > 1 and took_s > first_s else 0.0
        reason = self.reason if self.reason == "length" else "calls" if called else "stop"
        return [*called, AnswerEnd(self.index, reason, None, self.prompt_tokens, self.reused_tokens,
                               tokens, 0.0, first_s, rate, self.thought_tokens)]  # fmt: skip

    @property
    def tokens(self) -> int:
        """Return the number of tokens in the answer.

        If the server reports no usage, each chunk counts as one token, which is the minimum.
        """
        return self.answer_tokens or self.n_chunks


def _is_another(call: Json, last: list[str]) -> bool:
    """Return whether a named call is a new one rather than a continuation of the last call with the same index.

    A new call has a different ID. If the server sends neither IDs nor indexes, a new call has a different name, or
    its arguments begin after the previous ones are complete.
    """
    if name_of_call := call.get("id"):
        return last[0] not in ("", str(name_of_call))
    if call.get("index") is not None:
        return False
    function, (_, name, *parts) = call["function"], last
    begins = str(function.get("arguments") or "").lstrip().startswith("{")
    ended = bool(parts) and parts[-1].rstrip().endswith("}")
    return name not in ("", str(function["name"])) or (begins and ended)


def _half(arguments: str) -> str | None:
    """Return the arguments if they can only be passed on as text because they are not a JSON object, otherwise None."""
    try:
        return None if isinstance(parse_json(arguments or "{}"), dict) else arguments
    except ValueError:
        return arguments


def _count(number: Any) -> int:
    """Return a token count that a server reported, limited to a plausible range."""
    return min(max(0, int(number or 0)), MOST_TOKENS)


def _likelies(logprobs: Json) -> Iterator[TokenLogprobs]:
    """Yield the log probabilities of each token in a chunk, in the format of either chats or text completions."""
    yield from map(_likely, logprobs.get("content") or ())
    tokens = logprobs.get("tokens") or ()
    best = logprobs.get("top_logprobs") or [None] * len(tokens)
    for token, log, alternatives in zip(tokens, logprobs.get("token_logprobs") or (), best, strict=True):
        likely = [(str(text).encode(), float(logprob)) for text, logprob in (alternatives or {}).items()]
        yield [(str(token).encode(), float(log)), *likely]


def _likely(token: Json) -> TokenLogprobs:
    return [_token_and_logprob(token), *map(_token_and_logprob, token.get("top_logprobs") or ())]


def _token_and_logprob(token: dict[str, Any]) -> tuple[bytes, float]:
    raw = token.get("bytes")
    if isinstance(raw, int):  # bytes(n) would make n zeros
        raise TypeError("bytes are a list")
    data = bytes(raw) if raw is not None else str(token["token"]).encode()
    return data, float(token["logprob"])
