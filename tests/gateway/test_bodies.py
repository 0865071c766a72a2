"""Tests of bodies: huge and odd ones, fields out of bounds, schemas and names (SAFETY.md 7)."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncGenerator

import aiohttp
import msgspec
import pytest

from app.core.errors import BadInput
from app.gateway.dialects.openai_requests import FORMS
from app.gateway.dialects.openai_requests import ChatRequest as Chat
from app.gateway.dialects.responses_routes import ResponsesRequest as Responses
from app.node.control.guard import MAX_BODY_BYTES
from tests.gateway.conftest import Open
from tests.gateway.gate_calls import ASK, CHAT, head, status_of
from tests.node.pool import Json


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data", ""])
async def test_only_json_is_read(api: Open, kind: str) -> None:
    headers = {"Authorization": f"Bearer {api.key}", "Content-Type": kind}
    got, body = await status_of(api.base, "POST", CHAT, headers, json.dumps(ASK).encode())
    assert got == 415
    assert "application/json" in body["error"]["message"]


FORM = {"Content-Type": "application/x-www-form-urlencoded"}
GENERATE = {"model": "guide", "prompt": "Hello", "stream": False, "options": {"num_predict": 2}}


@pytest.mark.long
async def test_ollama_s_examples_for_curl_are_read_from_who_shows_a_key_and_from_no_web_page(api: Open) -> None:
    """A form of a web page carries no key in its header, wherever it comes from."""
    data, key = json.dumps(GENERATE).encode(), {"Authorization": f"Bearer {api.key}"}

    async def status(headers: dict[str, str], path: str = "/api/generate") -> int:
        async with (
            aiohttp.ClientSession(skip_auto_headers=["Content-Type"]) as session,
            session.post(api.base + path, data=data, headers=headers) as answer,
        ):
            if answer.status == 415:
                assert "`Content-Type: application/json`" in await answer.text()
            return answer.status

    assert await status(key | FORM) == 200
    assert await status(key) == 200  # it says nothing of its body
    for refused in (
        {"X-Api-Key": api.key} | FORM,
        {"Authorization": "Bearer x", "X-Api-Key": api.key},
        key | {"Content-Type": "text/plain"},
        key | {"Content-Type": "multipart/form-data; boundary=x"},
    ):
        assert await status(refused) in (401, 415), refused
    assert await status(key | FORM | {"Origin": "https://evil.example"}) == 403
    assert await status(key | FORM, "/v1/completions") == 415  # OpenAI's examples say it
    await asyncio.to_thread(api.control, "POST", "/api", {"ollama_open": True})
    try:
        assert await status(FORM) == await status({}) == 415  # a page could send just this
    finally:
        await asyncio.to_thread(api.control, "POST", "/api", {"ollama_open": False})


async def test_a_huge_body_is_refused_before_and_while_it_is_read(api: Open, http: aiohttp.ClientSession) -> None:
    headers = {"Content-Type": "application/json"}
    data = io.BytesIO(b" " * (MAX_BODY_BYTES + 1))
    async with http.post(CHAT, data=data, headers=headers) as answer:
        assert answer.status == 413
    reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
    writer.write(head(api, "Content-Length: 10737418240"))  # ten GiB are announced, and none is sent
    assert b" 413 " in await asyncio.wait_for(reader.readline(), 5)
    writer.close()

    async def endless() -> AsyncGenerator[bytes, None]:
        for _ in range(10):
            yield b" " * (1 << 20)

    async with http.post(CHAT, data=endless(), headers=headers) as answer:  # no length is announced
        assert answer.status == 413


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"messages": 1}',
        b"\xff\xfe",
        b'{"model": "\xff", "messages": [{"role": "user", "content": "x"}]}',
        b'{"messages": [' + b"[" * 100_000,
    ],
)
async def test_a_body_that_is_no_request_is_one_sentence(api: Open, data: bytes) -> None:
    headers = {"Authorization": f"Bearer {api.key}", "Content-Type": "application/json"}
    got, body = await status_of(api.base, "POST", CHAT, headers, data)
    assert got == 400
    assert body["error"]["message"].endswith(".")
    assert body["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"n": 5}, "n"),
        ({"n": 10**18}, "n"),
        ({"max_tokens": -2}, "max_tokens"),
        ({"stop": ["x"] * 9}, "stop"),
        ({"stop": "x" * 257}, "stop"),
        ({"stop": ["x" * 257]}, "stop[0]"),
        ({"logit_bias": {str(n): 1 for n in range(1025)}}, "logit_bias"),
        ({"logit_bias": {"../x": 1}}, "logit_bias"),
        ({"logit_bias": {"1": 1000}}, "logit_bias"),
        ({"top_logprobs": 21}, "top_logprobs"),
        ({"temperature": -1}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"top_p": 2}, "top_p"),
        ({"seed": 1.5}, "seed"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "wizard", "content": "x"}]}, "messages"),
        ({"messages": [{"role": "user", "text": "x"}]}, "messages"),
        ({"messages": [{"role": "user", "content": None}]}, "messages"),
        ({"response_format": {"type": "regex", "pattern": "(a+)+"}}, "response_format"),
        ({"tool_choice": "always"}, "tool_choice"),
    ],
)
async def test_a_field_out_of_bounds_is_named(http: aiohttp.ClientSession, change: Json, field: str) -> None:
    async with http.post(CHAT, json=ASK | change) as answer:
        error = (await answer.json())["error"]
        assert (answer.status, error["param"]) == (400, field), error


@pytest.mark.parametrize("path", [CHAT, "/api/chat"])
async def test_who_asks_in_a_role_that_is_none_hears_which_there_are(http: aiohttp.ClientSession, path: str) -> None:
    async with http.post(path, json={"messages": [{"role": "human", "content": "x"}]}) as answer:
        words = await answer.text()
    assert "there is no role human, but system, " in words
    assert "user, assistant and tool." in words


OTHERS: list[tuple[str, Json, str]] = [
    ("/v1/completions", {"prompt": "x", "n": 5}, "n"),
    ("/v1/completions", {"prompt": "x", "stop": ["x"] * 9}, "stop"),
    ("/v1/completions", {"prompt": "x", "logprobs": 21}, "logprobs"),
    ("/v1/completions", {"prompt": "x", "logit_bias": {str(n): 1 for n in range(1025)}}, "logit_bias"),
    ("/v1/messages", ASK | {"stop_sequences": ["x"] * 9}, "stop_sequences"),
    ("/v1/messages", ASK | {"stop_sequences": ["x" * 257]}, "stop_sequences"),
    ("/v1/messages", ASK | {"tools": [{"name": f"t{n}"} for n in range(129)]}, "tools"),
    ("/v1/messages", ASK | {"max_tokens": -2}, "max_tokens"),
    ("/v1/responses", {"input": "x", "max_output_tokens": -2}, "max_output_tokens"),
    ("/v1/responses", {"input": "x", "tools": [{"name": f"t{n}"} for n in range(129)]}, "tools"),
    ("/v1/embeddings", {"input": ["x"] * 2049}, "input"),
    ("/api/chat", ASK | {"options": {"stop": ["x"] * 9}}, "stop"),
    ("/api/chat", ASK | {"options": {"stop": "x" * 257}}, "stop"),
    ("/api/generate", {"prompt": "x", "options": {"num_predict": -3}}, "num_predict"),
    ("/api/embed", {"input": ["x"] * 2049}, "input"),
]  # fmt: skip


UNSUPPORTED: list[tuple[str, Json]] = [
    (CHAT, ASK | {"functions": [{"name": "f"}]}),
    (CHAT, ASK | {"audio": {"voice": "x"}}),
    *((CHAT, ASK | {name: "x"}) for name in FORMS),
    *(("/v1/completions", {"prompt": "x", name: "x"}) for name in FORMS),
    *(("/v1/completions", {"prompt": "x", **more}) for more in ({"echo": True}, {"suffix": "x"}, {"best_of": 2})),
    *(("/v1/responses", {"input": "x", **more}) for more in (
        {"previous_response_id": "r"}, {"conversation": "c"}, {"background": True})),
    *(("/api/generate", {"prompt": "x", **more}) for more in (
        {"suffix": "x"}, {"template": "{{ 9 ** 9 ** 9 }}"}, {"context": [1]})),
]  # fmt: skip


@pytest.mark.parametrize(("path", "body"), UNSUPPORTED)
async def test_what_would_change_the_answer_and_is_not_there_is_refused_by_name(
    http: aiohttp.ClientSession, path: str, body: Json
) -> None:
    async with http.post(path, json=body) as answer:
        assert answer.status == 400
        assert list(body)[-1] in await answer.text()
        if path.startswith("/v1/"):
            assert (await answer.json())["error"]["param"] == list(body)[-1]


@pytest.mark.parametrize("words", [60_000, 400_000])
async def test_a_chat_that_is_too_long_is_so_to_programs_that_would_shorten_it(
    http: aiohttp.ClientSession, words: int
) -> None:
    """Includes a chat of more characters than are read."""
    long = ASK | {"messages": [{"role": "user", "content": "word " * words}]}
    body, kind = io.BytesIO(json.dumps(long).encode()), {"Content-Type": "application/json"}
    async with http.post(CHAT, data=body, headers=kind) as answer:
        error = (await answer.json())["error"]
        assert (answer.status, error["code"]) == (400, "context_length_exceeded")


async def test_an_answer_ends_with_the_context_however_long_it_may_be(http: aiohttp.ClientSession) -> None:
    async with http.post(CHAT, json=ASK | {"max_tokens": 1 << 31, "stop": ["e"]}) as answer:
        assert answer.status == 200, await answer.text()
    async with http.post(CHAT, json=ASK | {"max_tokens": (1 << 31) + 1}) as answer:
        assert answer.status == 400


@pytest.mark.parametrize(("path", "body", "field"), OTHERS)
async def test_so_it_is_in_the_other_apis(http: aiohttp.ClientSession, path: str, body: Json, field: str) -> None:
    async with http.post(path, json=body) as answer:
        assert answer.status == 400
        assert field in await answer.text()


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "string", "pattern": "(a+)+$"}, "pattern is not supported"),
        ({"enum": ["x" * (64 << 10)]}, "longer than 64 KiB"),
        ({"type": "string", "maxLength": 10**9}, "up to 2000"),
        ({"$ref": "file:///etc/passwd"}, "points out of the schema"),
        (json.loads('{"items":' * 40 + "{}" + "}" * 40), "more than 32 levels deep"),
        ({"type": "array", "minItems": 2000, "items": {"type": "array", "minItems": 2000,
          "items": {"type": "array", "minItems": 2000, "items": {"type": "string", "maxLength": 2000}}}},
         ""),
    ],
)  # fmt: skip
async def test_a_pathological_schema_is_refused_by_name(http: aiohttp.ClientSession, schema: Json, why: str) -> None:
    """The last one becomes a short grammar: it is obeyed where the engine unfolds it, and harms nobody."""
    expected = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    async with http.post(CHAT, json=ASK | {"response_format": expected}) as answer:
        assert answer.status == 400 or (answer.status == 200 and not why)
        assert why in (said := await answer.text())
        assert "or leave the schema out" in said or answer.status == 200 or not why
    async with http.post(CHAT, json=ASK) as answer:
        assert answer.status == 200  # nobody else suffered


async def test_where_no_model_makes_vectors_that_is_said(http: aiohttp.ClientSession) -> None:
    for model in ("default", "nobody", "guide"):
        async with http.post("/v1/embeddings", json={"model": model, "input": "x"}) as answer:
            assert answer.status == 404
            words = (await answer.json())["error"]["message"]
            assert words.startswith("No embedding model is available"), words


async def test_no_client_sends_a_template(http: aiohttp.ClientSession) -> None:
    async with http.post(CHAT, json=ASK) as plain:
        body = await plain.json()
    evil = ASK | {"chat_template": "{{ 9 ** 9 ** 9 }}"}
    async with http.post(CHAT, json=evil) as answer:
        assert (await answer.json())["choices"][0]["message"] == body["choices"][0]["message"]


@pytest.mark.parametrize("name", ["../../etc/passwd", "..\\..\\x", "C:\\x", "CON", "a" * 5000, "\x00", "guide/../x"])
async def test_a_name_that_walks_is_no_model(http: aiohttp.ClientSession, name: str) -> None:
    async with http.post(CHAT, json=ASK | {"model": name}) as answer:
        error = (await answer.json())["error"]
        assert (answer.status, error["code"]) == (404, "model_not_found")
        assert len(error["message"]) < 400


async def test_tools_and_calls_that_are_very_deep_are_refused(http: aiohttp.ClientSession) -> None:
    deep = json.loads('{"a":' * 300 + "1" + "}" * 300)
    tool = {"type": "function", "function": {"name": "f", "parameters": deep}}
    call = {"id": "c", "function": {"name": "f", "arguments": json.dumps(deep)}}
    said = {"role": "assistant", "content": "x", "tool_calls": [call]}
    for change in ({"tools": [tool]}, {"messages": [*ASK["messages"], said]}):
        async with http.post(CHAT, json=ASK | change) as answer:
            assert answer.status == 400
            assert "more than 32 levels deep" in (await answer.json())["error"]["message"]


def called(n: int) -> list[tuple[str, Json]]:
    """A conversation with a message of so many calls, in each API."""
    ids = [f"c{number}" for number in range(n)]
    function = {"name": "f", "arguments": "{}"}
    plain = [{"id": name, "function": function} for name in ids]
    ollama = [{"function": {"name": "f", "arguments": {}}} for _ in ids]
    used = [{"type": "tool_use", "id": name, "name": "f", "input": {}} for name in ids]
    items = [{"type": "function_call", "call_id": name, **function} for name in ids]
    hello = ASK["messages"]
    return [
        (CHAT, {"messages": [*hello, {"role": "assistant", "tool_calls": plain}, *hello]}),
        ("/api/chat", {"messages": [*hello, {"role": "assistant", "tool_calls": ollama}, *hello]}),
        ("/v1/messages", {"messages": [*hello, {"role": "assistant", "content": used}, *hello], "max_tokens": 1}),
        ("/v1/responses", {"input": [*hello, *items, *hello]}),
    ]  # fmt: skip


@pytest.mark.parametrize(("path", "body"), called(129))
async def test_a_message_has_so_many_calls_and_no_more(http: aiohttp.ClientSession, path: str, body: Json) -> None:
    """Each result looks for its own: with tens of thousands the node stood still for seconds."""
    async with http.post(path, json=body) as answer:
        assert answer.status == 400
        assert "more than 128 calls" in await answer.text()


@pytest.mark.parametrize(("path", "body"), called(128))
async def test_so_many_are_answered(http: aiohttp.ClientSession, path: str, body: Json) -> None:
    async with http.post(path, json=body) as answer:
        assert "more than 128 calls" not in await answer.text()


@pytest.mark.parametrize(
    ("arguments", "n", "words"),
    [
        ("{}", 128, ""),
        ('{"a": 1, "b": [2,', 8, ""),
        ('{"a": 1, "b": [2,', 9, "no JSON object"),
        ("[1]", 1, "no JSON object"),
    ],
)
def test_some_calls_of_a_chat_may_have_been_cut_short(arguments: str, n: int, words: str) -> None:
    """Each is read piece by piece."""
    call = {"id": "c", "function": {"name": "f", "arguments": arguments}}
    said = {"role": "assistant", "tool_calls": [call]}
    item = {"type": "function_call", "call_id": "c", "name": "f", "arguments": arguments}
    for request in (msgspec.convert({"messages": [said] * n}, Chat), msgspec.convert({"input": [item] * n}, Responses)):
        if words:
            with pytest.raises(BadInput) as refused:
                request.to_api_request(0)
            assert words in str(refused.value.reason.facts["why"])
            continue
        whole = {"a": 1, "b": [2]} if arguments != "{}" else {}
        reports = request.to_api_request(0).messages or ()
        calls = [tool_call["function"]["arguments"] for message in reports for tool_call in message["tool_calls"]]
        assert calls == [whole] * n


async def test_a_chat_has_so_many_calls_and_no_more(http: aiohttp.ClientSession) -> None:
    call = {"id": "c", "function": {"name": "f", "arguments": "{}"}}
    said = {"role": "assistant", "tool_calls": [call] * 128}
    async with http.post(CHAT, json={"messages": [*ASK["messages"], *[said] * 33]}) as answer:
        assert answer.status == 400
        assert "more than 4096 calls" in await answer.text()


async def test_an_address_that_is_none_is_not_taken_for_a_model(api: Open, http: aiohttp.ClientSession) -> None:
    async with http.get("/v1/modelz") as answer:
        error = (await answer.json())["error"]
        assert (answer.status, error["code"]) == (404, "unknown_url")
        assert error["message"] == ("There is nothing at GET /v1/modelz. GET /openapi.json lists what there is.")
    base = " An address for OpenAI's clients ends with /v1, one for Anthropic's or Ollama's without it."
    for path, words in (
        ("/v1/models/", "/v1/models."),
        ("//v1/models", "/v1/models."),
        ("/models", "/v1/models." + base),
        ("/v1/v1/models", "/v1/models." + base),
        ("/v1/api/tags", "/api/tags." + base),
    ):
        async with http.get(api.base + path) as answer:
            error = (await answer.json())["error"]
            assert (answer.status, error["code"]) == (404, "unknown_url")
            assert error["message"] == f"There is nothing at GET {path}, but at {words}"
    async with http.post("/api/pull", json={"model": "llama3.2"}) as answer:
        assert answer.status == 404
        assert f"`poolhouse pull NAME --home {api.node.root}`" in (await answer.json())["error"]
    async with http.get(CHAT) as answer:
        assert (answer.status, answer.headers["Allow"]) == (405, "POST")
        message = (await answer.json())["error"]["message"]
        assert message == "/v1/chat/completions answers POST, not GET."
    async with http.post("/api/tags", json={}) as answer:
        assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")
        assert (await answer.json())["error"] == "/api/tags answers GET, HEAD, not POST."
