"""Connections to the Chat API that are silent, half said, half closed or wordy (SAFETY.md 5)."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import suppress

import aiohttp
import pytest

from app.gateway.access.slow_client_guard import MOST_KEPT, MOST_SILENT
from tests.gateway.conftest import Open
from tests.gateway.full_pool import ENDLESS
from tests.gateway.gate_calls import CHAT, control, head, rests


@pytest.mark.long
async def test_silent_and_half_said_connections_are_closed(api: Open) -> None:
    """A silent one, half a header, and a body that never comes: each ends within its deadline. So at both ports for
    programs of this computer: of the Chat API and of management."""
    async with api.node.client() as client:
        control, token = client.runtime.port, client.runtime.token
    begun = time.monotonic()

    async def ends_after(data: bytes, port: int = api.port) -> float:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(data)
        with suppress(ConnectionError):  # as good an end
            await asyncio.wait_for(reader.read(), 60)
        writer.close()
        return time.monotonic() - begun

    half = f"POST {CHAT} HTTP/1.1\r\nHost: 127".encode()
    ask = f"POST /ask HTTP/1.1\r\nHost: 127.0.0.1:{control}\r\nAuthorization: Bearer {token}\r\n"
    body = "Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
    results = await asyncio.gather(
        ends_after(b""), ends_after(half), ends_after(head(api, "Content-Length: 100") + b"{"),
        *(ends_after(said.encode(), control) for said in ("", ask, ask + body)),
    )  # fmt: skip
    assert all(9 < seconds < 45 for seconds in results), results


async def test_many_silent_connections_keep_nobody_out(api: Open, http: aiohttp.ClientSession) -> None:
    many = await asyncio.gather(*(asyncio.open_connection("127.0.0.1", api.port) for _ in range(MOST_SILENT + 20)))
    async with http.get("/v1/models") as answer:
        assert answer.status == 200
    with suppress(ConnectionError):
        assert await asyncio.wait_for(many[0][0].read(), 30) == b""  # the oldest made room
    for _, writer in many:
        writer.close()


async def test_many_connections_that_rest_take_no_files_from_others(api: Open) -> None:
    """A thousand, by one key, left the node none to open for its own window or to keep what it knows."""
    held = list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]()
    for _ in range(MOST_KEPT + 20):
        reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
        writer.write(head(api).replace(f"POST {CHAT}".encode(), b"GET /v1/models"))
        assert b" 200 " in await asyncio.wait_for(reader.readline(), 30)
        held.append((reader, writer))
    for reader, writer in held[:20]:  # those that asked longest ago made room, and had been answered
        assert b"guide" in await asyncio.wait_for(reader.read(), 30)
        writer.close()
    for reader, writer in held[20:]:
        assert not reader.at_eof()
        writer.close()


async def test_half_closed_connections_leave_nothing_behind(api: Open) -> None:
    """A client that closes its sending half is treated as gone: its answer ends, and so does our half."""
    body, name = json.dumps(ENDLESS).encode(), "half-closed"
    reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
    writer.write(head(api, f"X-Request-Id: {name}", f"Content-Length: {len(body)}") + body)
    writer.write_eof()
    with suppress(ConnectionError):  # as good an end
        assert await asyncio.wait_for(reader.read(), 60) == b""
    await rests(api)
    answers = (await control(api, "GET", "/journal"))["answers"]
    assert {answer["end"] for answer in answers if answer["request"] == name} <= {"stopped"}
    writer.close()


async def test_headers_have_limits(api: Open, http: aiohttp.ClientSession) -> None:
    async with http.get("/v1/models", headers={"X-Long": "x" * 9000}) as answer:
        assert answer.status == 400
    many = {f"X-{n}": "1" for n in range(80)}
    async with http.get("/v1/models", headers=many) as answer:
        assert answer.status == 400
