"""Cases for llama.cpp's own server and for ours, and the shape of an answer: its keys and kinds of values."""

from __future__ import annotations

import json
from typing import Any

Json = dict[str, Any]
Shape = dict[str, Any] | list[Any] | str

CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
HELLO = [{"role": "user", "content": "Hello"}]
TALK = [
    {"role": "system", "content": "Be short."},
    *HELLO,
    {"role": "assistant", "content": "Hi."},
    {"role": "user", "content": "How do I add a computer?"},
]
SCHEMA = {"type": "object", "properties": {"polite": {"type": "boolean"}}, "required": ["polite"]}
TOOL = {"type": "function", "function": {"name": "clock", "description": "x", "parameters": SCHEMA}}

OF_BOTH: dict[str, Json] = {
    "plain": {},
    "greedy": {"temperature": 0},
    "hot": {"temperature": 1.5, "seed": 7},
    "top_p": {"top_p": 0.5, "seed": 1},
    "top_k": {"top_k": 5, "seed": 1},
    "min_p": {"min_p": 0.2, "seed": 1},
    "seed": {"seed": 42},
    "one token": {"max_tokens": 1},
    "many tokens": {"max_tokens": 24},
    "stop text": {"stop": "e"},
    "stop list": {"stop": ["zzz", "e"]},
    "no stop met": {"stop": ["qqqqq"]},
    "presence": {"presence_penalty": 0.5},
    "frequency": {"frequency_penalty": 0.5},
    "repeat": {"repeat_penalty": 1.2},
    "bias": {"logit_bias": {"20": 5}},
    "biases": {"logit_bias": {"20": -100, "21": -100, "22": 3}},
    "user": {"user": "anna"},
    "n is one": {"n": 1},
    "all at once": {"temperature": 0.3, "top_p": 0.9, "top_k": 30, "seed": 3, "stop": ["zzz"], "max_tokens": 8},
}  # fmt: skip
OF_CHAT: dict[str, Json] = {
    "conversation": {"messages": TALK},
    "system alone": {"messages": [TALK[0], HELLO[0]]},
    "long message": {"messages": [{"role": "user", "content": "word " * 100}]},
    "json object": {"response_format": {"type": "json_object"}, "max_tokens": 30},
    "text format": {"response_format": {"type": "text"}},
    "logprobs": {"logprobs": True, "top_logprobs": 2},
    "logprobs of one": {"logprobs": True, "top_logprobs": 1, "max_tokens": 1},
    "no messages": {"messages": None},
    "messages of a wrong kind": {"messages": "Hello"},
    "negative temperature": {"temperature": -1},
    "top_p above one": {"top_p": 2},
    "temperature as words": {"temperature": "hot"},
}
OF_TEXT: dict[str, Json] = {
    "logprobs": {"logprobs": 1},
    "logprobs of three": {"logprobs": 3, "max_tokens": 3},
    "list of one": {"prompt": ["Hello"]},
    "long prompt": {"prompt": "word " * 100},
    "no suffix": {"suffix": None},
    "prompt of a wrong kind": {"prompt": {"a": 1}},
    "negative temperature": {"temperature": -1},
}


def cases() -> dict[str, tuple[str, str, Json | None]]:
    """Name -> method, path, body."""
    found: dict[str, tuple[str, str, Json | None]] = {"models": ("GET", "/v1/models", None)}
    for path, own, usual in (
        (CHAT, OF_CHAT, {"messages": HELLO}),
        (TEXT, OF_TEXT, {"prompt": "Hello"}),
    ):
        for name, change in (OF_BOTH | own).items():
            body = {"model": "guide", "max_tokens": 4, **usual, **change}
            if name.startswith("no messages"):
                del body["messages"]
            kind = path.rsplit("/", 2)[-2 if path == CHAT else -1]
            found[f"{kind}: {name}"] = ("POST", path, body)
            if name in STREAMED:
                found[f"{kind}, streamed: {name}"] = ("POST", path, body | {"stream": True})
    return found


STREAMED = frozenset(
    {"plain", "greedy", "one token", "many tokens", "stop text", "bias", "logprobs", "all at once", "conversation",
     "json object", "list of one"}
)  # fmt: skip


def shape_of(body: bytes) -> Shape:
    """Of an answer, or of all events of a stream together."""
    text = body.decode("utf-8")
    if not text.lstrip().startswith("data:"):
        return _shape(json.loads(text))
    data = [
        line.removeprefix("data:").strip() for line in text.splitlines() if line.startswith("data:")
    ]
    events = [_shape(json.loads(one)) for one in data if one != "[DONE]"]
    whole = events[0]
    for event in events[1:]:
        whole = _merged(whole, event)
    return {"events": whole, "ends": "[DONE]" if data[-1] == "[DONE]" else "otherwise"}


def _shape(value: Any) -> Shape:
    match value:
        case None:
            return "nothing"
        case bool():
            return "truth"
        case int() | float():
            return "number"
        case str():
            return "text"
        case list():
            shapes = [_shape(one) for one in value]
            while len(shapes) > 1:
                shapes[:2] = [_merged(*shapes[:2])]
            return shapes
        case dict():
            if value and all(isinstance(one, float) for one in value.values()):
                return {"(a token)": "number"}  # OpenAI's log probabilities of texts
            return {str(key): _shape(one) for key, one in value.items()}
    raise TypeError(value)


def _merged(one: Shape, other: Shape) -> Shape:
    """What either may be."""
    match one, other:
        case dict(), dict():
            keys = [*one, *(key for key in other if key not in one)]
            return {
                key: _merged(one[key], other[key]) if key in one and key in other else one.get(key, other.get(key))
                for key in keys
            }  # fmt: skip
        case list(), list():
            return [_merged(one[0], other[0])] if one and other else one or other
        case str(), str():
            return "|".join(sorted({*one.split("|"), *other.split("|")}))
    return one if other == "nothing" else other if one == "nothing" else f"{one} or {other}"


def misses(theirs: Shape, ours: Shape, path: str = "") -> list[str]:
    """What of their shape ours has not, by its path."""
    match theirs, ours:
        case dict(), dict():
            found = [f"{path}.{key}" for key in theirs if key not in ours]
            for key in theirs.keys() & ours.keys():
                found += misses(theirs[key], ours[key], f"{path}.{key}")
            return sorted(found)
        case list(), list():
            return misses(theirs[0], ours[0], f"{path}[]") if theirs and ours else []
        case str(), str():
            same = set(theirs.split("|")) & set(ours.split("|"))
            return [] if same or "nothing" in (theirs, ours) else [f"{path}: {theirs}, {ours}"]
    return [] if "nothing" in (theirs, ours) else [f"{path}: of another kind"]
