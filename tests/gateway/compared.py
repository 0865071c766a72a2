"""Cases for llama.cpp's own server (`make api-compare`) and for ours. tool_cases.py, call_cases.py and system_cases.py
have more."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
Case = tuple[str, str, Json | None]  # method, path, body

CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
MESSAGES, COUNT = "/v1/messages", "/v1/messages/count_tokens"
RESPONSES, READ = "/v1/responses", "/v1/responses/input_tokens"
VECTORS = "/v1/embeddings"
KINDS = {
    CHAT: "chat",
    TEXT: "completions",
    MESSAGES: "messages",
    COUNT: "count",
    RESPONSES: "responses",
    READ: "responses' count",
}
HELLO = [{"role": "user", "content": "Hello"}]
TALK = [
    {"role": "system", "content": "Be short."},
    *HELLO,
    {"role": "assistant", "content": "Hi."},
    {"role": "user", "content": "How do I add a computer?"},
]
SCHEMA = {"type": "object", "properties": {"polite": {"type": "boolean"}}, "required": ["polite"]}
AS_SCHEMA = {"type": "json_schema", "json_schema": {"name": "manners", "schema": SCHEMA}}
OVER_TOKENS = ["m the Gui", "loHel"]  # in the Guide's most likely chat and text, in no token of it
BLOCKS = [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}]
PARTS = [{"role": "user", "content": [{"type": "input_text", "text": "Hello"}]}]

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
    "two answers": {"n": 2, "seed": 5},
    "usage at the end": {"stream_options": {"include_usage": True}},
    "no usage at the end": {"stream_options": {"include_usage": False}},
    "stop over tokens": {"stop": ["zzz", *OVER_TOKENS], "max_tokens": 24, "temperature": 0},
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
    "json schema": {"response_format": AS_SCHEMA, "max_tokens": 30},
    "content in parts": {"messages": BLOCKS},
    "no role": {"messages": [{"content": "Hello"}]},
    "a role nobody has": {"messages": [{"role": "cat", "content": "Hello"}]},
    "pattern in the schema": {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "x", "schema": {"type": "string", "pattern": "^(a+)+$"}},
        }
    },
    "top_p above one": {"top_p": 2},
    "temperature as words": {"temperature": "hot"},
}
OF_TEXT: dict[str, Json] = {
    "logprobs": {"logprobs": 1},
    "logprobs of three": {"logprobs": 3, "max_tokens": 3},
    "list of one": {"prompt": ["Hello"]},
    "long prompt": {"prompt": "word " * 100},
    "no suffix": {"suffix": None},
    "a suffix": {"suffix": "world"},
    "echo": {"echo": True},
    "no echo": {"echo": False},
    "the best of two": {"best_of": 2},
    "prompt of a wrong kind": {"prompt": {"a": 1}},
    "negative temperature": {"temperature": -1},
}


OF_MESSAGES: dict[str, Json] = {
    "plain": {},
    "greedy": {"temperature": 0},
    "one token": {"max_tokens": 1},
    "many tokens": {"max_tokens": 24},
    "system": {"system": "Be short."},
    "system in blocks": {"system": [{"type": "text", "text": "Be short."}]},
    "conversation": {"messages": TALK[1:]},
    "blocks": {"messages": BLOCKS},
    "stop met": {"stop_sequences": ["e"]},
    "no stop met": {"stop_sequences": ["qqqqq"]},
    "stop over tokens": {"stop_sequences": OVER_TOKENS, "max_tokens": 24, "temperature": 0},
    "top_k and top_p": {"top_k": 5, "top_p": 0.5},
    "who asks": {"metadata": {"user_id": "anna"}},
    "no messages": {"messages": None},
    "messages of a wrong kind": {"messages": "Hello"},
}
OF_RESPONSES: dict[str, Json] = {
    "plain": {},
    "greedy": {"temperature": 0},
    "one token": {"max_output_tokens": 1},
    "instructions": {"instructions": "Be short."},
    "conversation": {"input": TALK},
    "parts": {"input": PARTS},
    "text format": {"text": {"format": {"type": "text"}}},
    "json schema": {"text": {"format": {"type": "json_schema", "name": "manners", "schema": SCHEMA}},
                    "max_output_tokens": 30},
    "no input": {"input": None},
    "what was said before": {"previous_response_id": "resp_1"},
}  # fmt: skip
OF_COUNT: dict[str, Json] = {
    "plain": {},
    "system": {"system": "Be short."},
    "conversation": {"messages": TALK[1:]},
    "blocks": {"messages": BLOCKS},
    "no messages": {"messages": None},
}
OF_READ: dict[str, Json] = {
    "plain": {},
    "instructions": {"instructions": "Be short."},
    "parts": {"input": PARTS},
    "no input": {"input": None},
}
USUAL: dict[str, Json] = {
    CHAT: {"messages": HELLO, "max_tokens": 4},
    TEXT: {"prompt": "Hello", "max_tokens": 4},
    MESSAGES: {"messages": HELLO, "max_tokens": 4},
    COUNT: {"messages": HELLO},
    RESPONSES: {"input": "Hello", "max_output_tokens": 4},
    READ: {"input": "Hello"},
}
OF_EACH = {CHAT: OF_BOTH | OF_CHAT, TEXT: OF_BOTH | OF_TEXT, MESSAGES: OF_MESSAGES, COUNT: OF_COUNT,
           RESPONSES: OF_RESPONSES, READ: OF_READ}  # fmt: skip
STREAMED = frozenset(
    {"plain", "greedy", "one token", "many tokens", "stop text", "stop met", "bias", "logprobs", "all at once",
     "conversation", "json object", "json schema", "list of one", "usage at the end", "no usage at the end",
     "two answers", "stop over tokens", "instructions"}
)  # fmt: skip


def is_sure(case: Case) -> bool:
    """Return whether the answer is always the same, with nothing left to chance."""
    _, path, body = case
    return body is None or path in (COUNT, READ, VECTORS) or body.get("temperature") == 0


def cases() -> dict[str, Case]:
    """Name -> what is asked, of the Guide."""
    result: dict[str, Case] = {"models": ("GET", "/v1/models", None)}
    for path, each in OF_EACH.items():
        for name, change in each.items():
            body = {"model": "guide", **USUAL[path], **change}
            if name in ("no messages", "no input"):
                body = {key: value for key, value in body.items() if value is not None}
            result[f"{KINDS[path]}: {name}"] = ("POST", path, body)
            if name in STREAMED and path not in (COUNT, READ):
                result[f"{KINDS[path]}, streamed: {name}"] = ("POST", path, body | {"stream": True})
    return result


def vector_cases() -> dict[str, Case]:
    """The same, of a tiny model called bert that embeds."""
    bodies: dict[str, Json] = {
        "one text": {"input": "Hello"},
        "several": {"input": ["Hello", "you"]},
        "token ids": {"input": [5, 6, 7]},
        "base64": {"input": "Hello", "encoding_format": "base64"},
        "several in base64": {"input": ["Hello", "you"], "encoding_format": "base64"},
        "several in token ids": {"input": [[5, 6, 7], [8]]},
        "nothing": {"input": []},
        "an unknown format": {"input": "Hello", "encoding_format": "roman"},
    }
    request = {name: {"model": "bert", **body} for name, body in bodies.items()}
    return {f"embeddings: {name}": ("POST", VECTORS, body) for name, body in request.items()}


def ollama_cases() -> dict[str, Case]:
    """Return the requests of Ollama's clients to the Guide."""
    chat: Json = {"model": "guide", "messages": HELLO, "options": {"num_predict": 4}}
    text: Json = {"model": "guide", "prompt": "Hello", "options": {"num_predict": 4}}
    result: dict[str, Case] = {
        "whether it runs, asked by HEAD": ("HEAD", "/", None),
        "whether it runs": ("GET", "/", None),
        "the version": ("GET", "/api/version", None),
        "the models": ("GET", "/api/tags", None),
        "what is loaded": ("GET", "/api/ps", None),
        "a model": ("POST", "/api/show", {"model": "guide"}),
        "a chat": ("POST", "/api/chat", chat | {"stream": False}),
        "a chat, streamed": ("POST", "/api/chat", chat),
        "a text": ("POST", "/api/generate", text | {"stream": False}),
        "a text, streamed": ("POST", "/api/generate", text),
    }
    return {f"ollama: {name}": case for name, case in result.items()}
