"""An answer of ours beside the recorded one of llama.cpp's own server.

Its answers were recorded by `make api-compare` (llama_server.json). Where ours is another on purpose, the tables say
why. Ours are held against the served description on the way.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import aiohttp

from app.gateway.error_responses import ApiDialect, api_of
from tests.gateway.answer_shape import misses, shape_of
from tests.gateway.call_cases import call_cases
from tests.gateway.client_types import check_types
from tests.gateway.compared import cases, is_sure, ollama_cases, vector_cases
from tests.gateway.described_answers import check
from tests.gateway.system_cases import MODEL, system_cases
from tests.gateway.tool_cases import tool_cases

RECORD: dict[str, Any] = json.loads(Path(__file__).with_name("llama_server.json").read_text("utf-8"))["cases"]
GUIDES = cases() | ollama_cases() | system_cases("guide")
EVERY = GUIDES | vector_cases() | tool_cases() | call_cases() | system_cases(MODEL)
BEGUN, ENDED = "message_start ", "message_delta message_stop"
USED, STOP = "content_block_start content_block_delta", "content_block_stop"
ADDED = r"response\.output_item\.added response\.function_call_arguments\.delta"
SAID, DONE = r"response\.function_call_arguments\.done", r"response\.output_item\.done"
DIFFERENT = {  # what ours has not
    r"(\.events(\..*)?)?\.timings": "llama.cpp's own; ours are in /metrics and in Ollama's answers",
    r"(\.events)?\.system_fingerprint": "OpenAI tells nobody to use it any more",
    r"\.events\.usage": "OpenAI tells it in a stream to those who ask for it, and so does ours",
    r"\.data\[\]\.(aliases|meta|tags)": "llama.cpp's own",
    r"\.models": "Ollama's list, which ours gives to those who ask as Ollama's clients do",
    r"\.data\[\]\.encoding_format": "llama.cpp's own",
    r".*\.logprobs\.content\[\]\.(top_logprobs\[\]\.)?id": "llama.cpp's own",
    r"(\.events)?\.choices\[\]\.logprobs\.content": "of texts it tells them as of chats; OpenAI has another form",
    r"\.completed_at": "nothing reads it: an answer that comes as a whole is completed when it is there",
    r"\.events\.response\.completed": "what is cut short is incomplete to OpenAI, and completed to it",
    r"\.order: (.*)response\.completed, \1response\.incomplete": "as above",
    rf"\.order: {BEGUN}({USED} )+{STOP} {ENDED}, {BEGUN}({USED} {STOP} )+{ENDED}":
        "it ends all blocks at the end; Anthropic ends each before the next",
    rf"\.order: (\S+ \S+ )({ADDED} )+{DONE} (\S+), \1({ADDED} {SAID} {DONE} )+(\3|response\.incomplete)":
        "as above, of OpenAI's Responses; and it does not say that the arguments are whole",
    r"(\.events\.message_delta\.delta)?\.stop_reason: =end_turn, =stop_sequence":
        "it ends a turn and names the sequence beside; Anthropic says which of both it was",
    r"\.error\.code": "Anthropic's errors have none",
    r"\.error\.type: =server_error, =invalid_request_error": "it takes wrong tools for its own fault",
}  # fmt: skip
NO_HEADERS = {"access-control-allow-origin": "no web page may ask ours"}
REFUSED = {  # by ours alone
    "chat: negative temperature": "it takes it for 0; OpenAI refuses it",
    "completions: negative temperature": "as above",
    "completions: a suffix": "it answers as if none were given",
    "completions: echo": "as above",
    "completions: the best of two": "as above",
    "chat: top_p above one": "it takes it for 1; OpenAI refuses it",
    "chat: a role nobody has": "it writes it into the prompt; OpenAI refuses it",
    "chat: pattern in the schema": "regular expressions are refused: one can take for ever",
    "messages: messages of a wrong kind": "it answers an empty chat; Anthropic wants a list",
}
ANOTHER = {  # in ours
    "chat, called: beside a form": "its model can write the form alone; OpenAI's may call tools",
    "chat, called, streamed: beside a form": "as above",
}
ANSWERED = {  # by ours alone
    "responses: conversation": "it wants the model's own messages in parts; OpenAI takes a text too",
    "responses, streamed: conversation": "as above",
}
ANSWERED |= dict.fromkeys(ollama_cases(), "it has none of Ollama's routes")
ANSWERED |= dict.fromkeys(system_cases(MODEL), "the template refuses; ours joins such messages")


async def compare(http: aiohttp.ClientSession, name: str) -> bytes:
    """Ours, which lacks nothing of theirs but what the tables name, and is what the official client takes it for."""
    method, path, body = EVERY[name]
    theirs = RECORD[name]
    async with http.request(method, path, json=body) as answer:
        content = await answer.read()
    assert_named(path, answer)
    check(path, answer.status, content)
    check_types(path, answer.status, content)
    if theirs["status"] != 200 and name not in ANSWERED:
        assert 400 <= theirs["status"] <= 501
        assert answer.status == 400, content
    elif name in REFUSED:
        assert answer.status == 400, content
        return content
    else:
        assert answer.status == 200, content
        if name in ANSWERED or name in ANOTHER:
            return content
    for header in theirs["headers"].keys() - NO_HEADERS:
        assert answer.headers[header].partition(";")[0] == theirs["headers"][header]
    missing = misses(theirs["shape"], shape_of(content, is_sure(EVERY[name])))
    unknown = [name for name in missing if not any(re.fullmatch(way, name) for way in DIFFERENT)]
    assert not unknown, unknown
    return content


def assert_named(path: str, answer: aiohttp.ClientResponse) -> None:
    """Each answer of ours has the id of its request, where its API's clients look for it; theirs have none."""
    name = answer.headers["x-request-id"]
    assert name.startswith("req_")
    if api_of(path) is ApiDialect.ANTHROPIC:
        assert answer.headers["request-id"] == name
