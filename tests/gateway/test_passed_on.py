"""Tests of requests to an upstream: they contain everything that a program set in any API, or are refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import aiohttp
import pytest

from app.gateway.answer_types import ChatChunk, OllamaChat, OllamaMessage, ToolUseBlock
from app.gateway.api_request import AnswerEnd, CollectedAnswer, TextPiece
from app.gateway.dialects import anthropic_routes, ollama_routes
from app.gateway.dialects.openai_requests import FORMS, ChatRequest
from app.gateway.dialects.openai_routes import Answers
from app.gateway.upstreams.upstream_dialect import UpstreamAnswer
from tests.gateway.conftest import Open
from tests.gateway.gate_calls import CHAT
from tests.gateway.test_spending import There
from tests.node.pool import Json

HELLO: Json = {"role": "user", "content": "Hello", "name": "anna"}
SCHEMA: Json = {"type": "object", "properties": {"a": {"type": "null"}}}
FUNCTION: Json = {"name": "clock", "parameters": SCHEMA, "strict": True}
FORWARDED_BY: Json = {  # as it is, so that each of these stands in what was sent
    "messages": [HELLO], "stop": ["."], "seed": 7, "presence_penalty": 0.5, "frequency_penalty": -0.5,
    "temperature": 0.25, "top_p": 0.5, "top_k": 40, "min_p": 0.0, "repeat_penalty": 1.25, "repeat_last_n": 9,
    "user": "anna", "logprobs": True, "top_logprobs": 2, "tools": [{"type": "function", "function": FUNCTION}],
    "tool_choice": {"type": "function", "function": {"name": "clock"}}, "parallel_tool_calls": False,
    "response_format": {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": SCHEMA}},
    "chat_template_kwargs": {"enable_thinking": True}, "reasoning_budget_tokens": 9, "thinking_budget_tokens": 9,
    "reasoning_effort": "low", "verbosity": "low", "service_tier": "flex", "prompt_cache_key": "k",
    "safety_identifier": "s", "store": False, "metadata": {"a": "b"}, "modalities": ["text"],
    "prediction": {"type": "content", "content": "x"}, "web_search_options": {},
}  # fmt: skip
OURS = {"model", "stream", "stream_options", "n", "max_completion_tokens"}  # which we say anew
CAP = 10**6
LEFT = CAP - 49 // 3  # of it, beside HELLO: so many bytes with its brackets
BOUND = LEFT // 4
REFUSED = {"functions", "audio", "logit_bias", *FORMS}


@pytest.fixture
async def there(api: Open) -> AsyncGenerator[There, None]:
    """An upstream that says one word to all, and keeps what it was asked with."""
    item = There()
    item.go.set()
    server = await asyncio.start_server(item.serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    order = {"name": "odd", "url": url, "models": {"x": "theirs"}, "cap_tokens": CAP}
    await asyncio.to_thread(api.control, "POST", "/api/upstreams", order)
    await asyncio.to_thread(api.control, "POST", "/api/upstreams/odd", {"on": True})
    async with server:
        yield item
        await asyncio.to_thread(api.control, "DELETE", "/api/upstreams/odd")


async def sent(http: aiohttp.ClientSession, there: There, path: str, body: Json) -> Json:
    async with http.post(path, json={"model": "x", **body}) as answer:
        assert answer.status == 200, await answer.text()
        await answer.read()
    return there.asked[-1]


async def test_all_of_a_chat_is_passed_on(http: aiohttp.ClientSession, there: There) -> None:
    known = {*FORWARDED_BY, *OURS, *REFUSED, "max_tokens"}
    assert set(ChatRequest.__struct_fields__) == known, "a new field: is it passed on?"
    await sent(http, there, CHAT, FORWARDED_BY | {"max_tokens": 5, "n": 2})
    ours = {"model": "theirs", "stream": True, "stream_options": {"include_usage": True}}
    whole = FORWARDED_BY | ours | {"max_tokens": 5}
    there.asked.sort(key=lambda item: int(item["seed"]))
    assert there.asked == [whole, whole | {"seed": 8}]  # n answers, each with its own


@pytest.mark.parametrize(
    ("path", "body", "goes"),
    [
        (CHAT, {"messages": [HELLO]}, {"messages": [HELLO], "max_tokens": BOUND}),
        (
            CHAT,
            {"messages": [HELLO], "max_completion_tokens": 9, "max_tokens": 5},
            {"messages": [HELLO], "max_completion_tokens": 9},
        ),
        (
            CHAT,
            {"messages": [HELLO], "max_completion_tokens": 10**7},
            {"messages": [HELLO], "max_completion_tokens": LEFT},
        ),
        (
            "/v1/completions",
            {"prompt": "x", "logprobs": 3, "top_k": -1, "user": "u", "seed": 1},
            {"prompt": "x", "logprobs": 3, "top_k": -1, "user": "u", "seed": 1, "max_tokens": 16},
        ),
        (
            "/v1/responses",
            {
                "input": "x", "reasoning": {"effort": "high"}, "max_output_tokens": 9, "user": "u", "top_p": 0.5,
                "text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}, "verbosity": "low"},
                "tools": [{"type": "function", **FUNCTION}], "tool_choice": "required", "service_tier": "flex",
            },
            {
                "messages": [{"role": "user", "content": "x"}], "reasoning_effort": "high", "user": "u", "top_p": 0.5,
                "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}},
                "tools": [{"type": "function", "function": FUNCTION}], "tool_choice": "required",
                "service_tier": "flex", "verbosity": "low", "max_tokens": 9,
            },
        ),
        (
            "/v1/messages",
            {
                "messages": [{"role": "user", "content": "x"}], "max_tokens": 9, "top_k": 5, "temperature": 0.5,
                "metadata": {"user_id": "u"}, "stop_sequences": ["."],
                "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
            },
            {
                "messages": [{"role": "user", "content": "x"}], "max_tokens": 9, "top_k": 5, "user": "u", "stop": ["."],
                "temperature": 0.5,
                "response_format": {
                    "type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True},
                },
            },
        ),
        (
            "/api/generate",
            {
                "prompt": "x", "format": "json",
                "options": {"min_p": 0.5, "repeat_last_n": 3, "num_predict": 9, "seed": 4},
            },
            {
                "messages": [{"role": "user", "content": "x"}], "response_format": {"type": "json_object"},
                "min_p": 0.5, "repeat_last_n": 3, "max_tokens": 9, "seed": 4,
            },
        ),
    ],
)  # fmt: skip
async def test_so_is_all_of_the_other_apis(
    http: aiohttp.ClientSession, there: There, path: str, body: Json, goes: Json
) -> None:
    result = await sent(http, there, path, body)
    ours = {"model": "theirs", "stream": True, "stream_options": {"include_usage": True}}
    assert result == ours | goes


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, {"messages": [HELLO], "max_tokens": 9}),
        ("/v1/messages", {"messages": [{"role": "user", "content": "x"}], "max_tokens": 9}),
    ],
)
async def test_who_knows_the_limit_by_its_newer_name_alone_is_asked_again_by_that(
    http: aiohttp.ClientSession, there: There, path: str, body: Json
) -> None:
    """OpenAI's words, of its newer models."""
    there.refuses, there.words = (
        "max_tokens",
        (
            b'{"error": {"message": "Unsupported parameter: \'max_tokens\' is not supported with this model. Use '
            b'\'max_completion_tokens\' instead.", "type": "invalid_request_error", "param": "max_tokens"}}'
        ),
    )
    there.asked.clear()
    result = await sent(http, there, path, body)
    first, second = there.asked
    assert (first.pop("max_tokens"), second.pop("max_completion_tokens")) == (9, 9)
    assert first == second == result
    there.words = b'{"error": {"message": "max_tokens is too large."}}'
    async with http.post(path, json={"model": "x", **body}) as answer:
        assert (answer.status, len(there.asked)) == (400, 3)
        assert "max_tokens is too large" in await answer.text()


def test_as_many_bytes_as_a_server_likes_are_not_made_of_its_number() -> None:
    token: Json = {"token": "a", "logprob": -1, "bytes": 1 << 40}
    with pytest.raises(TypeError):
        UpstreamAnswer(0).pieces({"choices": [{"logprobs": {"content": [token]}}]})


async def test_what_ollama_s_tools_answered_names_its_call_there(http: aiohttp.ClientSession, there: There) -> None:
    calls: list[Json] = [{"function": {"name": name, "arguments": {}}} for name in ("clock", "door")]
    answers = [{"role": "tool", "content": name, "tool_name": name} for name in ("door", "clock")]
    chat = [{"role": "assistant", "content": "", "tool_calls": calls}, *answers]
    result = await sent(http, there, "/api/chat", {"messages": [*chat, *chat]})
    messages = result["messages"]
    ids = [[tool_call["id"] for tool_call in messages[at]["tool_calls"]] for at in (0, 3)]
    assert len({*ids[0], *ids[1]}) == 4
    for at, of in ((0, ids[0]), (3, ids[1])):
        assert [message["tool_call_id"] for message in messages[at + 1 : at + 3]] == of[::-1]


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        (CHAT, {"messages": [HELLO], "logit_bias": {"5": 1}}, "leave out logit_bias"),
        (CHAT, {"messages": [HELLO], "tool_choice": "required"}, "but defines no tools"),
        ("/v1/completions", {"prompt": [1, 2]}, "Send text"),
        ("/api/generate", {"prompt": "x", "raw": True, "format": "json"}, "Leave out `raw` or `format`"),
    ],
)
async def test_what_cannot_be_passed_on_is_refused(
    http: aiohttp.ClientSession, there: There, path: str, body: Json, words: str
) -> None:
    async with http.post(path, json={"model": "x", **body}) as answer:
        assert (answer.status, words in await answer.text()) == (400, True)
    assert there.asked == []


def test_how_likely_tokens_of_a_text_were_is_read_too() -> None:
    result = {"tokens": ["a", "b"], "token_logprobs": [-1, -2], "top_logprobs": [{"a": -1, "c": -3}, None]}
    (said,) = UpstreamAnswer(0).pieces({"choices": [{"text": "ab", "logprobs": result}]})
    first, second = [(b"a", -1.0), (b"a", -1.0), (b"c", -3.0)], [(b"b", -2.0)]
    assert said == TextPiece(0, "ab", (first, second))


def test_a_token_without_a_text_yet_is_told_in_a_stream_as_well() -> None:
    """Half of a sign that takes several tokens."""
    _, chunk = Answers("id", "m", 0, chat=True).chunks(TextPiece(0, "", ([(b"\xf0\x9f", -1.0)],)))
    assert isinstance(chunk, ChatChunk)
    likely = chunk.choices[0].logprobs
    assert likely is not None
    assert [token.bytes for token in likely.content] == [[0xF0, 0x9F]]


def test_half_a_call_of_a_server_is_one_in_every_shape() -> None:
    """llama.cpp's server tells it so when an answer is cut short: what is no whole JSON was a bug of ours to some."""
    heard = UpstreamAnswer(0)
    call = {"index": 0, "id": "c", "function": {"name": "clock", "arguments": '{"zone": "UTC", "wh'}}
    assert heard.pieces({"choices": [{"delta": {"tool_calls": [call]}}]}) == []
    assert heard.pieces({"choices": [{"delta": {}, "finish_reason": "length"}]}) == []
    called, end = heard.end(1.0, 0.5)
    assert isinstance(end, AnswerEnd)
    assert end.reason == "length"
    whole = CollectedAnswer()
    whole.add(called)
    whole.add(end)
    (use,) = anthropic_routes.Answer("m", "m", collected=whole).message().content
    assert isinstance(use, ToolUseBlock)
    assert use.input == {"zone": "UTC"}
    line = ollama_routes.Answer("m", chat=True, collected=whole).object(0.0, 1.0)
    assert isinstance(line, OllamaChat)
    assert line.message == OllamaMessage(role="assistant", content='{"zone": "UTC", "wh')


def test_arguments_of_a_server_that_are_too_deep_for_others_are_text_to_them() -> None:
    heard, deep = UpstreamAnswer(0), f'{{"a": {"[" * 900}{"]" * 900}}}'
    call = {"index": 0, "id": "c", "function": {"name": "clock", "arguments": deep}}
    assert heard.pieces({"choices": [{"delta": {"tool_calls": [call]}}]}) == []
    whole = CollectedAnswer()
    for piece in heard.end(1.0, 0.5):
        whole.add(piece)
    (use,) = anthropic_routes.Answer("m", "m", collected=whole).message().content
    assert isinstance(use, ToolUseBlock)
    assert use.input == {}
    line = ollama_routes.Answer("m", chat=True, collected=whole).object(0.0, 1.0)
    assert isinstance(line, OllamaChat)
    assert line.message == OllamaMessage(role="assistant", content=deep)
