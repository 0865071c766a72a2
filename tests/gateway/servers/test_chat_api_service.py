"""The Chat API's listener: off at first, moved, closed; changes at once; keys that are rotated."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import aiohttp
import pytest

from tests.gateway.conftest import Open, free_port
from tests.gateway.gate_calls import LONG


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


async def test_an_answer_that_is_under_way_hears_that_its_door_closes(api: Open, http: aiohttp.ClientSession) -> None:
    was = await asyncio.to_thread(api.control, "GET", "/api")
    async with http.post("/v1/completions", json=LONG) as answer:
        await answer.content.readline()
        off = asyncio.to_thread(api.control, "POST", "/api", {"on": False})
        _, said = await asyncio.gather(off, answer.text())
    await asyncio.to_thread(api.control, "POST", "/api", {"on": True, "port": was["port"]})
    assert said.rstrip().splitlines()[-1].startswith('data: {"error":{"message":"The API was')


@pytest.mark.parametrize("how", ["POST", "DELETE"])
async def test_an_answer_under_way_ends_with_its_key(api: Open, http: aiohttp.ClientSession, how: str) -> None:
    """Replaced or taken away."""
    path, named = "/api/keys", {"name": "leaked"}
    key = (await asyncio.to_thread(api.control, "POST", path, named))["key"]
    where = path if how == "POST" else f"{path}/leaked"
    value = {"Authorization": f"Bearer {key}"}
    async with http.post("/v1/completions", json=LONG, headers=value) as answer:
        await answer.content.readline()
        gone = asyncio.to_thread(api.control, how, where, named if how == "POST" else None)
        _, said = await asyncio.gather(gone, answer.text())
    assert said.rstrip().splitlines()[-1].startswith('data: {"error":{"message":"The API key was')
    if how == "POST":
        await asyncio.to_thread(api.control, "DELETE", f"{path}/leaked")


def test_a_taken_port_gives_way_to_the_next_and_says_so(api: Open) -> None:
    was = api.control("GET", "/api")
    with another_program() as taken:
        moved = api.control("POST", "/api", {"port": taken})
        try:
            assert moved["port"] == taken
            assert moved["listens_at"] > taken
        finally:
            api.control("POST", "/api", {"port": was["port"]})


def test_a_rotated_key_opens_nothing_more(api: Open) -> None:
    old = api.control("POST", "/api/keys", {"name": "program"})["key"]
    new = api.control("POST", "/api/keys", {"name": "program"})["key"]
    assert (_status(f"{api.base}/v1", old), _status(f"{api.base}/v1", new)) == (401, 200)
    api.control("DELETE", "/api/keys/program")
    assert _status(f"{api.base}/v1", new) == 401


@contextmanager
def another_program() -> Iterator[int]:
    """Its port, which it keeps."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        yield int(sock.getsockname()[1])


def _status(address: str, key: str) -> int | None:
    async def get() -> int | None:
        headers = {"Authorization": f"Bearer {key}"}
        try:
            async with aiohttp.ClientSession(headers=headers) as session, session.get(f"{address}/models") as answer:
                return answer.status
        except aiohttp.ClientConnectorError:
            return None

    return asyncio.run(get())


async def test_two_changes_at_once_are_both_kept(api: Open) -> None:
    async with api.node.client() as client:
        await asyncio.gather(*(client.post("/api", {name: True}) for name in ("may_load", "ollama_open")))
        value = await client.get("/api")
        assert (value["may_load"], value["ollama_open"], value["listening"]) == (True, True, True)
        await client.post("/api", {"may_load": False, "ollama_open": False})
