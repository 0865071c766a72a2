"""Every rule of SAFETY.md 7 for the Chat API, against a real node: who may pass, how much, how slowly."""

from __future__ import annotations

import asyncio
import io
import json
import re
import socket
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path

import aiohttp
import pytest

from app.node.chat_api.first_words import MOST_SILENT
from app.node.chat_api.gate import MAX_OPEN
from app.node.guard import MAX_BODY_BYTES
from tests.node.chat_api.conftest import Open, free_port
from tests.node.pool import Json

CHAT = "/v1/chat/completions"
ROUTES = [
    ("GET", "/v1/models"), ("GET", "/v1/models/guide"), ("POST", CHAT), ("POST", "/v1/completions"),
]  # fmt: skip
ASK: Json = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 2, "temperature": 0}


async def status_of(
    base: str, method: str, path: str, headers: dict[str, str], data: object = None
) -> tuple[int, Json]:
    async with (
        aiohttp.ClientSession() as session,
        session.request(
            method, base + path, headers=headers, data=data, allow_redirects=False
        ) as answer,
    ):
        assert not [name for name in answer.headers if name.lower().startswith("access-control")]
        assert answer.headers["X-Request-Id"]
        return answer.status, await answer.json(content_type=None)


@pytest.mark.parametrize(("method", "path"), [*ROUTES, ("GET", "/nothing"), ("DELETE", CHAT)])
async def test_who_may_pass(api: Open, method: str, path: str) -> None:
    right = {"Authorization": f"Bearer {api.key}"}
    cases: list[tuple[dict[str, str], int]] = [
        ({}, 401),
        ({"Authorization": "Bearer x"}, 401),
        ({"Authorization": f"Basic {api.key}"}, 401),
        ({"X-Api-Key": api.key[:-1]}, 401),
        (right | {"Host": "evil.example"}, 421),
        (right | {"Host": f"evil.example:{api.port}"}, 421),
        (right | {"Host": "127.0.0.1:1"}, 421),
        (right | {"Origin": "https://evil.example"}, 403),
        (right | {"Origin": "null"}, 403),
        (
            right
            | {"Origin": "https://evil.example", "Upgrade": "websocket", "Connection": "Upgrade"},
            403,
        ),
        (right | {"Content-Encoding": "gzip"}, 415),
    ]
    for headers, status in cases:
        got, body = await status_of(api.base, method, path, headers)
        assert (got, bool(body["error"])) == (status, True), headers


async def test_our_own_names_pass(api: Open) -> None:
    for host in (f"127.0.0.1:{api.port}", f"localhost:{api.port}", f"[::1]:{api.port}"):
        for key in ({"Authorization": f"Bearer {api.key}"}, {"X-Api-Key": api.key}):
            assert (await status_of(api.base, "GET", "/v1/models", key | {"Host": host}))[0] == 200


async def test_the_key_of_the_control_api_opens_nothing_here_nor_ours_there(api: Open) -> None:
    async with api.node.client() as client:
        token, port = client.runtime.token, client.runtime.port
    assert (await status_of(api.base, "GET", "/v1/models", {"Authorization": f"Bearer {token}"}))[
        0
    ] == 401
    async with (
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {api.key}"}) as session,
        session.get(f"http://127.0.0.1:{port}/status") as answer,
    ):
        assert answer.status == 401


@pytest.mark.parametrize("path", ["/status", "/api", "/load", "/shutdown", "/settings"])
async def test_no_route_of_management_is_here(http: aiohttp.ClientSession, path: str) -> None:
    async with http.get(path) as got, http.post(path, json={}) as posted:
        assert {got.status, posted.status} <= {404, 405}


@pytest.mark.parametrize(
    "kind", ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data", ""]
)
async def test_only_json_is_read(api: Open, kind: str) -> None:
    headers = {"Authorization": f"Bearer {api.key}", "Content-Type": kind}
    got, body = await status_of(api.base, "POST", CHAT, headers, json.dumps(ASK).encode())
    assert got == 415
    assert "application/json" in body["error"]["message"]


async def test_a_huge_body_is_refused_before_and_while_it_is_read(
    api: Open, http: aiohttp.ClientSession
) -> None:
    headers = {"Content-Type": "application/json"}
    data = io.BytesIO(b" " * (MAX_BODY_BYTES + 1))
    async with http.post(CHAT, data=data, headers=headers) as answer:
        assert answer.status == 413
    reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
    head = _head(api, "Content-Length: 10737418240")
    writer.write(head)  # ten GiB are announced, and none is sent
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
        ({"max_tokens": 0}, "max_tokens"),
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
        ({"response_format": {"type": "regex", "pattern": "(a+)+"}}, "response_format"),
        ({"tool_choice": "always"}, "tool_choice"),
    ],
)
async def test_a_field_out_of_bounds_is_named(
    http: aiohttp.ClientSession, change: Json, field: str
) -> None:
    async with http.post(CHAT, json=ASK | change) as answer:
        error = (await answer.json())["error"]
        assert (answer.status, error["param"]) == (400, field), error


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "(a+)+$"},
        {"enum": ["x" * (64 << 10)]},
        {"type": "string", "maxLength": 10**9},
        {"$ref": "file:///etc/passwd"},
        json.loads('{"items":' * 40 + "{}" + "}" * 40),
        {"type": "array", "minItems": 2000, "items": {"type": "array", "minItems": 2000,
         "items": {"type": "array", "minItems": 2000, "items": {"type": "string", "maxLength": 2000}}}},
    ],
)  # fmt: skip
async def test_a_pathological_schema_is_refused_soon(
    http: aiohttp.ClientSession, schema: Json
) -> None:
    begun = time.monotonic()
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    async with http.post(CHAT, json=ASK | {"response_format": wanted}) as answer:
        assert answer.status in (200, 400), await answer.text()  # a grammar that compiles is obeyed
    assert time.monotonic() - begun < 10
    async with http.post(CHAT, json=ASK) as answer:
        assert answer.status == 200  # nobody else suffered


async def test_no_client_sends_a_template(http: aiohttp.ClientSession) -> None:
    async with http.post(CHAT, json=ASK) as plain:
        told = await plain.json()
    evil = ASK | {"chat_template": "{{ 9 ** 9 ** 9 }}", "grammar": "root ::= root"}
    async with http.post(CHAT, json=evil) as answer:
        assert (await answer.json())["choices"][0]["message"] == told["choices"][0]["message"]


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "..\\..\\x", "C:\\x", "CON", "a" * 5000, "\x00", "guide/../x"]
)
async def test_a_name_that_walks_is_no_model(http: aiohttp.ClientSession, name: str) -> None:
    async with http.post(CHAT, json=ASK | {"model": name}) as answer:
        error = (await answer.json())["error"]
        assert (answer.status, error["code"]) == (404, "model_not_found")
        assert len(error["message"]) < 400


async def test_a_key_has_at_most_so_many_requests_open(api: Open) -> None:
    """More are told to come again, and another key's are none of its business."""
    long = {
        "messages": ASK["messages"],
        "max_tokens": 2000,
        "stream": True,
        "logit_bias": {"2": -100},
    }
    other = (await asyncio.to_thread(api.control, "POST", "/api/keys", {"name": "other"}))["key"]
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(
            aiohttp.ClientSession(api.base, connector=aiohttp.TCPConnector(limit=0))
        )
        mine, others = ({"Authorization": f"Bearer {one}"} for one in (api.key, other))
        async with asyncio.TaskGroup() as group:
            asking = [
                group.create_task(_held(session, long, mine), name="hold one open")
                for _ in range(MAX_OPEN)
            ]
            await asyncio.sleep(0.5)
            async with session.post(CHAT, json=ASK, headers=mine) as answer:
                assert answer.status == 429
                assert int(answer.headers["Retry-After"]) >= 1
                assert (await answer.json())["error"]["code"] == "rate_limit_exceeded"
            async with session.get("/v1/models", headers=others) as answer:
                assert answer.status == 200
            for one in asking:
                one.cancel()
    await _rests(api)
    assert await _control(api, "DELETE", "/api/keys/other") == {"removed": "other"}


async def test_who_leaves_ends_his_answer(api: Open, http: aiohttp.ClientSession) -> None:
    long = {
        "messages": ASK["messages"],
        "max_tokens": 3000,
        "stream": True,
        "logit_bias": {"2": -100},
    }
    async with http.post(CHAT, json=long) as answer:
        await answer.content.readany()
        assert (await _control(api, "GET", "/status"))["answers"]["running"] == 1
    await _rests(api)
    waiting = asyncio.timeout(0.5)
    with pytest.raises(TimeoutError):
        async with waiting, http.post(CHAT, json=long | {"stream": False}):
            pass
    await _rests(api)


async def _held(session: aiohttp.ClientSession, body: Json, headers: dict[str, str]) -> None:
    async with session.post(CHAT, json=body, headers=headers) as answer:
        await answer.read()


def _head(api: Open, *lines: str) -> bytes:
    head = [f"POST {CHAT} HTTP/1.1", f"Host: 127.0.0.1:{api.port}", f"Authorization: Bearer {api.key}",
            "Content-Type: application/json", *lines, "", ""]  # fmt: skip
    return "\r\n".join(head).encode()


async def _control(api: Open, method: str, path: str) -> Json:
    return await asyncio.to_thread(api.control, method, path)


async def _rests(api: Open) -> None:
    """Nothing is answered any more, soon."""
    for _ in range(100):
        if (await _control(api, "GET", "/status"))["answers"] == {"running": 0, "waiting": 0}:
            return
        await asyncio.sleep(0.05)
    raise AssertionError("answers go on that nobody waits for")


async def test_silent_and_half_said_connections_are_closed(api: Open) -> None:
    """A silent one, half a header, and a body that never comes: each ends within its deadline."""
    begun = time.monotonic()

    async def ends_after(data: bytes) -> float:
        reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
        writer.write(data)
        with suppress(ConnectionError):  # as good an end
            await asyncio.wait_for(reader.read(), 30)
        writer.close()
        return time.monotonic() - begun

    half = f"POST {CHAT} HTTP/1.1\r\nHost: 127".encode()
    silent, cut, bodiless = await asyncio.gather(
        ends_after(b""), ends_after(half), ends_after(_head(api, "Content-Length: 100") + b"{")
    )
    assert all(9 < seconds < 15 for seconds in (silent, cut, bodiless)), (silent, cut, bodiless)


async def test_many_silent_connections_keep_nobody_out(
    api: Open, http: aiohttp.ClientSession
) -> None:
    many = await asyncio.gather(
        *(asyncio.open_connection("127.0.0.1", api.port) for _ in range(MOST_SILENT + 20))
    )
    async with http.get("/v1/models") as answer:
        assert answer.status == 200
    with suppress(ConnectionError):
        assert await asyncio.wait_for(many[0][0].read(), 5) == b""  # the oldest made room
    for _, writer in many:
        writer.close()


async def test_half_closed_connections_leave_nothing_behind(api: Open) -> None:
    body = json.dumps(ASK | {"max_tokens": 2000, "logit_bias": {"2": -100}}).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
    writer.write(_head(api, f"Content-Length: {len(body)}") + body)
    writer.write_eof()
    with suppress(ConnectionError, TimeoutError):
        await asyncio.wait_for(reader.read(), 2)
    writer.close()
    await _rests(api)


async def test_tools_and_calls_that_are_very_deep_are_refused(http: aiohttp.ClientSession) -> None:
    deep = json.loads('{"a":' * 300 + "1" + "}" * 300)
    tool = {"type": "function", "function": {"name": "f", "parameters": deep}}
    call = {"id": "c", "function": {"name": "f", "arguments": json.dumps(deep)}}
    said = {"role": "assistant", "content": "x", "tool_calls": [call]}
    for change in ({"tools": [tool]}, {"messages": [*ASK["messages"], said]}):
        async with http.post(CHAT, json=ASK | change) as answer:
            assert answer.status == 400
            assert "deeper than 32" in (await answer.json())["error"]["message"]


async def test_headers_have_limits(api: Open, http: aiohttp.ClientSession) -> None:
    async with http.get("/v1/models", headers={"X-Long": "x" * 9000}) as answer:
        assert answer.status == 400
    many = {f"X-{n}": "1" for n in range(80)}
    async with http.get("/v1/models", headers=many) as answer:
        assert answer.status == 400


async def test_the_log_has_ids_and_no_text_and_no_key(
    api: Open, http: aiohttp.ClientSession
) -> None:
    secret = "the cat sleeps in the piano"
    ask = ASK | {"messages": [{"role": "user", "content": secret}]}
    async with http.post(CHAT, json=ask, headers={"X-Request-Id": "my-own-id.7"}) as answer:
        assert answer.headers["X-Request-Id"] == "my-own-id.7"
    async with http.post(CHAT, json=ask, headers={"X-Request-Id": "no good id!"}) as answer:
        assert re.fullmatch(r"req_[0-9a-f]{24}", answer.headers["X-Request-Id"])
    log = (Path(api.node.root) / "logs" / "node.log").read_text("utf-8")
    assert "my-own-id.7 POST /v1/chat/completions of default: 200" in log
    assert re.search(r"my-own-id\.7: \d+ tokens after [\d.]+ s in the queue", log)
    assert secret not in log
    assert api.key not in log


def test_it_is_off_at_first_and_moves_and_closes(api: Open) -> None:
    was = api.control("GET", "/api")
    assert was["keys"] == ["default"]
    moved = api.control("POST", "/api", {"port": free_port()})
    try:
        assert moved["listens_at"] == moved["port"] != was["port"]
        assert _status(moved["address"], api.key) == 200
        assert _status(was["address"], api.key) is None  # nobody listens there any more
        off = api.control("POST", "/api", {"on": False})
        assert (off["listening"], off["address"]) == (False, None)
        assert _status(moved["address"], api.key) is None
    finally:
        api.control("POST", "/api", {"on": True, "port": was["port"]})
    assert _status(was["address"], api.key) == 200


def test_a_taken_port_gives_way_to_the_next_and_says_so(api: Open) -> None:
    was = api.control("GET", "/api")
    taken = int(was["listens_at"])
    with api_on(taken + 1):
        moved = api.control("POST", "/api", {"port": taken + 1})
        try:
            assert moved["port"] == taken + 1
            assert moved["listens_at"] > taken + 1
        finally:
            api.control("POST", "/api", {"port": was["port"]})


def test_a_rotated_key_opens_nothing_more(api: Open) -> None:
    old = api.control("POST", "/api/keys", {"name": "program"})["key"]
    new = api.control("POST", "/api/keys", {"name": "program"})["key"]
    assert (_status(f"{api.base}/v1", old), _status(f"{api.base}/v1", new)) == (401, 200)
    api.control("DELETE", "/api/keys/program")
    assert _status(f"{api.base}/v1", new) == 401


@contextmanager
def api_on(port: int) -> Iterator[None]:
    """Another program has that port."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", port))
        sock.listen()
        yield


def _status(address: str, key: str) -> int | None:
    async def get() -> int | None:
        headers = {"Authorization": f"Bearer {key}"}
        try:
            async with (
                aiohttp.ClientSession(headers=headers) as session,
                session.get(f"{address}/models") as answer,
            ):
                return answer.status
        except aiohttp.ClientConnectorError:
            return None

    return asyncio.run(get())


async def test_two_changes_at_once_are_both_kept(api: Open) -> None:
    async with api.node.client() as client:
        await asyncio.gather(
            *(client.post("/api", {name: True}) for name in ("may_load", "ollama_open"))
        )
        told = await client.get("/api")
        assert (told["may_load"], told["ollama_open"], told["listening"]) == (True, True, True)
        await client.post("/api", {"may_load": False, "ollama_open": False})
