"""Every rule of the loopback API, against the real server."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import aiohttp
import pytest
from aiohttp import web

from app.api import requests
from app.core.errors import Busy, DoesNotFit
from app.network import traffic_limits
from app.node.control.guard import MAX_BODY_BYTES, MAX_OPEN, guard, retry_s
from app.node.control.json_bodies import body

TOKEN = "a-token-of-the-test"
LINGER_SECONDS = 600  # more than any test takes


async def _echo(request: web.Request) -> web.Response:
    order = await body(request, requests.Join)
    return web.json_response({"code": order.code})


async def _short(_: web.Request) -> web.Response:
    raise DoesNotFit("machine_too_small", machine="attic", need_bytes=1 << 31, free_bytes=1 << 30)


async def _busy(_: web.Request) -> web.Response:
    raise Busy("stage_busy")


async def _bug(_: web.Request) -> web.Response:
    raise ZeroDivisionError


async def _done(_: web.Request) -> web.Response:
    return web.json_response({})


async def _long(request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse()
    await answer.prepare(request)
    await asyncio.sleep(60)
    return answer


@pytest.fixture
async def base() -> AsyncIterator[str]:
    port = [0]
    app = web.Application(middlewares=[guard(TOKEN, lambda: port[0])])
    app.add_routes([web.post("/echo", _echo), web.get("/short", _short)])
    app.add_routes([web.get("/busy", _busy), web.get("/bug", _bug), web.post("/unload", _done)])
    app.add_routes([web.get("/long", _long)])
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=1, lingering_time=LINGER_SECONDS)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port[0] = runner.addresses[0][1]
    yield f"http://127.0.0.1:{port[0]}"
    await runner.cleanup()


GOOD = {"Authorization": f"Bearer {TOKEN}"}
BODY = {"address": "10.0.0.2:1", "code": "123456"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (GOOD, 200),
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "Bearer wr\u00f6ng"}, 401),
        (GOOD | {"Host": "evil.example"}, 421),
        (GOOD | {"Host": "127.0.0.1:1"}, 421),
        (GOOD | {"Origin": "https://evil.example"}, 403),
        (GOOD | {"Origin": "null"}, 403),
        (GOOD | {"Content-Type": "application/x-www-form-urlencoded"}, 415),
        (GOOD | {"Content-Type": "text/plain"}, 415),
        (GOOD | {"Content-Encoding": "gzip"}, 415),
    ],
)
async def test_who_may_pass(base: str, headers: dict[str, str], status: int) -> None:
    async with aiohttp.ClientSession() as session, session.post(f"{base}/echo", json=BODY, headers=headers) as answer:
        assert answer.status == status
        assert "Access-Control-Allow-Origin" not in answer.headers
        if status != 200:
            words = (await answer.json())["error"]["message"]
            assert words.endswith(".")
        if status == 401:  # perhaps a program that has the wrong port
            assert "port is for Poolhouse's own window" in words


async def test_a_token_of_any_bytes_is_a_wrong_one(base: str) -> None:
    place = base.removeprefix("http://")
    reader, writer = await asyncio.open_connection("127.0.0.1", int(place.rpartition(":")[2]))
    head = f"GET /short HTTP/1.1\r\nHost: {place}\r\nAuthorization: Bearer ".encode()
    writer.write(head + b"\xff\xed\xa0\x80\r\n\r\n")
    assert (await reader.readline()).startswith(b"HTTP/1.1 401 ")
    writer.close()


async def test_a_huge_body_is_refused_by_its_length(base: str) -> None:
    async with aiohttp.ClientSession() as session:
        headers = GOOD | {"Content-Type": "application/json"}
        data = io.BytesIO(b" " * (MAX_BODY_BYTES + 1))
        async with session.post(f"{base}/echo", data=data, headers=headers) as answer:
            assert answer.status == 413


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b'{"address": "\xff", "code": "1"}',
        b'{"address": 5, "code": "1"}',
        b'{"address": "a", "code": "1", "more": 1}',
    ],
)
async def test_a_body_of_another_shape_is_one_sentence(base: str, body: bytes) -> None:
    async with aiohttp.ClientSession() as session:
        headers = GOOD | {"Content-Type": "application/json"}
        async with session.post(f"{base}/echo", data=body, headers=headers) as answer:
            error = (await answer.json())["error"]
            assert (answer.status, error["code"]) == (400, "bad_request")


@pytest.mark.parametrize(
    ("path", "status", "kind"), [("short", 409, "DoesNotFit"), ("busy", 429, "Busy"), ("bug", 500, "AppError")]
)
async def test_errors_are_sentences_with_a_status(base: str, path: str, status: int, kind: str) -> None:
    async with aiohttp.ClientSession() as session, session.get(f"{base}/{path}", headers=GOOD) as answer:
        error = (await answer.json())["error"]
        assert (answer.status, error["kind"]) == (status, kind)
        assert "Traceback" not in error["message"]
        assert ("Retry-After" in answer.headers) == (status == 429)
        assert ("what" in error["facts"]) == (path == "bug")


async def test_so_many_at_once_and_no_more_but_an_owner_gets_his_memory_back(base: str) -> None:
    async with AsyncExitStack() as stack:
        many = aiohttp.TCPConnector(limit=0)
        session = await stack.enter_async_context(aiohttp.ClientSession(connector=many))
        for _ in range(MAX_OPEN):
            await stack.enter_async_context(session.get(f"{base}/long", headers=GOOD))
        async with session.get(f"{base}/short", headers=GOOD) as refused:
            assert (refused.status, refused.headers["Retry-After"]) == (429, "2")
            assert "already answering" in (await refused.json())["error"]["message"]
        async with session.post(f"{base}/unload", json={}, headers=GOOD) as answer:
            assert answer.status == 200
    async with aiohttp.ClientSession() as session:
        async with asyncio.timeout(30):
            while True:  # until the node has seen that they left
                async with session.get(f"{base}/short", headers=GOOD) as answer:
                    if answer.status == 409:
                        return


def test_who_is_told_to_come_again_is_told_when() -> None:
    assert retry_s(Busy("queue_full", waiting=3, seconds=7)) == 7
    assert retry_s(Busy("stage_busy")) == 2


async def test_who_sends_no_body_is_told_so_and_parted_at_once(base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traffic_limits, "STALL_SECONDS", 0.1)
    host = base.removeprefix("http://")
    reader, writer = await asyncio.open_connection(*host.split(":"))
    begun = f"POST /echo HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {TOKEN}\r\n"
    writer.write(f"{begun}Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{{".encode())
    content = await reader.read()
    assert content.startswith(b"HTTP/1.1 408 ")
    assert b"body_too_slow" in content
    writer.close()
