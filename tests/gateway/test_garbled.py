"""Requests that are no HTTP, or whose body is not what it says: told so, and none of their bytes kept or sent back."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import suppress
from pathlib import Path

import pytest

from tests.gateway.conftest import Open
from tests.gateway.gate_calls import CHAT, head, rests

SECRET = "the cat sleeps in the piano"


async def said(port: int, *parts: bytes) -> bytes:
    """All that comes back, until the other side ends it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answer = b""
    try:
        for part in parts:
            writer.write(part)
            with suppress(TimeoutError):  # it may wait for more
                answer += await asyncio.wait_for(reader.read(1 << 16), 1)
        async with asyncio.timeout(20):
            answer += await reader.read()
    except ConnectionError:
        pass
    finally:
        writer.close()
    return answer


def log_of(api: Open) -> str:
    return (Path(api.node.root) / "logs" / "node.log").read_text("utf-8")


async def test_what_is_no_http_is_told_so_and_its_bytes_are_neither_kept_nor_sent_back(api: Open) -> None:
    chunked = head(api, "Transfer-Encoding: chunked")
    cases = [
        head(api).replace(api.key.encode(), api.key.encode() + b"\x01"),
        head(api, "X-Long: " + 9000 * "x"),
        head(api, f"Content-Length: {SECRET}"),
        chunked + b"%s\r\n{}" % SECRET.encode(),
    ]
    for case in cases:
        answer = await said(api.port, case)
        start, _, body = answer.partition(b"\r\n\r\n")
        assert re.match(rb"HTTP/1\.[01] 400 ", start), answer
        assert re.search(rb"(?i)x-request-id: req_", start)
        assert json.loads(body)["error"]["type"] == "invalid_request_error"
        assert api.key.encode() not in answer
        assert SECRET.encode() not in answer
    data = json.loads((Path(api.node.root) / "runtime.json").read_text("utf-8"))
    garbled = f"GET /status HTTP/1.1\r\nAuthorization: Bearer {data['token']}\x01\r\n\r\n"
    assert data["token"].encode() not in await said(data["port"], garbled.encode())
    log = log_of(api)
    assert "a request could not be served: " in log
    for secret in (api.key, SECRET, data["token"]):
        assert secret not in log
    await rests(api)


async def test_nobody_is_bid_to_send_a_body_before_he_has_passed(api: Open) -> None:
    ask = json.dumps({"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 1}).encode()
    waits = ("Expect: 100-continue", f"Content-Length: {len(ask)}", "Connection: close")
    stranger = head(api, *waits).replace(api.key.encode(), b"no-key")
    assert (await said(api.port, stranger)).startswith(b"HTTP/1.1 401")
    answer = await said(api.port, head(api, *waits), ask)
    assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200")
    odd = head(api, "Expect: a miracle", *waits[1:])
    assert (await said(api.port, odd + ask)).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("line", ["Host: evil.example", "Origin: http://evil.example"])
async def test_strangers_keep_no_connection(api: Open, line: str) -> None:
    data = json.loads((Path(api.node.root) / "runtime.json").read_text("utf-8"))
    for port, path in ((api.port, CHAT), (data["port"], "/status")):
        host = "" if line.startswith("Host") else f"Host: 127.0.0.1:{port}\r\n"
        answer = await said(port, f"GET {path} HTTP/1.1\r\n{host}{line}\r\n\r\n".encode())
        assert answer.startswith((b"HTTP/1.1 421", b"HTTP/1.1 403"))
        assert b"connection: close" in answer.lower()
