"""The Chat API on the LAN while this computer's addresses change: nobody is cut off at one that stayed."""

from __future__ import annotations

import asyncio
import socket
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from app.gateway.access.slow_client_guard import SlowClientGuard
from app.gateway.servers import lan_server
from app.gateway.servers.lan_server import LanServer
from app.machine.paths import Home
from app.network.tls import upstream_context
from app.network.waiting_room import OTHERS_BURST, OTHERS_PER_SECOND
from tests.gateway.conftest import free_port

HOME, DOCK, PLANE = ("127.0.0.1",), ("127.0.0.1", "127.0.0.2"), ("127.0.0.2",)


async def passphrase() -> str:
    return "p"


async def test_an_answer_goes_on_where_the_address_stayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    more = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        said = web.StreamResponse()
        await said.prepare(request)
        await said.write(b"a")
        await more.wait()
        await said.write(b"b")
        return said

    application = web.Application()
    application.add_routes([web.get("/", answer)])
    keys: Any = SimpleNamespace(read=passphrase)
    door = LanServer(Home.at(tmp_path).create(), frozenset, SlowClientGuard())
    now: list[tuple[str, ...]] = [HOME]
    monkeypatch.setattr(lan_server, "lan_addresses", lambda _: now[0])
    async with asyncio.TaskGroup() as group:
        door.start(group)
        assert not await door.follow_addresses(keys)  # it is not open
        await door.open(application, [free_port()], keys)
        trusted = aiohttp.TCPConnector(ssl=upstream_context(door.certificate))
        async with aiohttp.ClientSession(connector=trusted) as http:

            def at(host: str) -> str:
                return f"https://{host}:{door.port}/"

            async with http.get(at("127.0.0.1")) as value:
                assert await value.content.readexactly(1) == b"a"
                now[0] = DOCK
                assert await door.addresses_changed()
                assert await door.follow_addresses(keys)
                assert (door.addresses, await door.addresses_changed()) == (DOCK, False)
                async with http.get(at("127.0.0.2")) as other:
                    assert await other.content.readexactly(1) == b"a"
                    more.set()
                    assert (await value.read(), await other.read()) == (b"b", b"b")
            now[0] = PLANE
            assert await door.follow_addresses(keys)
            assert door.host_names() == {f"127.0.0.2:{door.port}"}
            async with http.get(at("127.0.0.2")) as value:
                assert await value.read() == b"ab"
            refused = aiohttp.TCPConnector(ssl=upstream_context(door.certificate))
            async with aiohttp.ClientSession(connector=refused) as fresh:
                with pytest.raises(aiohttp.ClientConnectorError):
                    await fresh.get(at("127.0.0.1"))
            now[0] = ()
            assert not await door.follow_addresses(keys)
        await door.close()
    assert door.host_names() == set()


@pytest.mark.parametrize("said", [b"", b"\x16\x03\x01\x02"], ids=["silent", "half a handshake"])
async def test_sixty_four_strangers_from_eight_addresses_keep_no_program_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: bytes
) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(text="here")

    application = web.Application()
    application.add_routes([web.get("/", answer)])
    keys: Any = SimpleNamespace(read=passphrase)
    door = LanServer(Home.at(tmp_path).create(), frozenset, SlowClientGuard())
    monkeypatch.setattr(lan_server, "lan_addresses", lambda _: HOME)
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as group:
        door.start(group)
        await door.open(application, [free_port()], keys)
        strangers = [socket.socket() for _ in range(64)]
        for number, stranger in enumerate(strangers):
            stranger.setblocking(False)
            stranger.bind((f"127.0.0.{2 + number % 8}", 0))
            await loop.sock_connect(stranger, ("127.0.0.1", door.port))
            await loop.sock_sendall(stranger, said)
        trusted = aiohttp.TCPConnector(ssl=upstream_context(door.certificate))
        url = f"https://127.0.0.1:{door.port}/"
        async with aiohttp.ClientSession(connector=trusted) as http, http.get(url) as value:
            assert await value.text() == "here"
        for stranger in strangers:
            stranger.close()
        await door.close()


async def test_handshakes_of_strangers_are_few_and_who_showed_a_key_pays_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(text="here")

    application = web.Application()
    application.add_routes([web.get("/", answer)])
    keys: Any = SimpleNamespace(read=passphrase)
    door = LanServer(Home.at(tmp_path).create(), frozenset, SlowClientGuard())
    monkeypatch.setattr(lan_server, "lan_addresses", lambda _: HOME)
    async with asyncio.TaskGroup() as group:
        door.start(group)
        await door.open(application, [free_port()], keys)
        url = f"https://127.0.0.1:{door.port}/"

        async def knock() -> None:
            trusted = aiohttp.TCPConnector(ssl=upstream_context(door.certificate))
            async with aiohttp.ClientSession(connector=trusted) as http, http.get(url) as answer:
                assert await answer.text() == "here"

        pace = door._handshakes
        for _ in range(2 * int(OTHERS_BURST)):
            if pace.wait_s("127.0.0.1") > 0:
                break
            await knock()
        assert pace.wait_s("127.0.0.1") > 0
        began = time.monotonic()
        for _ in range(5):
            await knock()
        assert time.monotonic() - began > 4 / OTHERS_PER_SECOND
        door.known.met("127.0.0.1")
        for _ in range(2 * int(OTHERS_BURST)):
            await knock()
        assert pace.wait_s("127.0.0.1") == 0
        await door.close()


async def test_who_speaks_plain_http_there_hears_what_is_spoken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys: Any = SimpleNamespace(read=passphrase)
    door = LanServer(Home.at(tmp_path).create(), frozenset, SlowClientGuard())
    monkeypatch.setattr(lan_server, "lan_addresses", lambda _: HOME)
    async with asyncio.TaskGroup() as group:
        door.start(group)
        await door.open(web.Application(), [free_port()], keys)
        url = f"http://127.0.0.1:{door.port}/v1/models"
        async with aiohttp.ClientSession() as http:
            async with http.get(url) as answer:
                assert (answer.status, "https://" in await answer.text()) == (400, True)
            async with http.post(url, data=b"x" * 100_000) as answer:
                assert answer.status == 400
        reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
        writer.write(b"hello?\r\n\r\n")  # no HTTP at all
        assert b"HTTP" not in await reader.read()
        writer.close()
        await door.close()
