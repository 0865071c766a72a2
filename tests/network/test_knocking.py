"""Tests that failed pairing attempts leave nothing behind, even before Python collects reference cycles."""

from __future__ import annotations

import asyncio
import gc
import logging
from asyncio import sslproto
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from app.core.household.operations import Role
from tests.network.nodes import Nodes, opened, until

HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(505)  # of TLS, and of nobody


@pytest.fixture
async def nodes(tmp_path: Path) -> AsyncIterator[Nodes]:
    async with opened(tmp_path) as made:
        yield made


@pytest.fixture
def rings_stay() -> Iterator[None]:
    logging.disable()  # what is said here is kept for the test's report, with all that it refers to
    gc.collect()
    gc.disable()
    yield
    gc.enable()
    logging.disable(logging.NOTSET)


def handshakes() -> int:
    return sum(isinstance(item, sslproto.SSLProtocol) for item in gc.get_objects())


async def knock(port: int, said: bytes) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(said)
    writer.write_eof()
    await asyncio.sleep(0.01)
    writer.transport.abort()


@pytest.mark.many(keep=1)
@pytest.mark.parametrize("said", [HELLO, HELLO[:20], b"GET / HTTP/1.1\r\n\r\n"], ids=["hello", "half", "HTTP"])
@pytest.mark.parametrize("pairing", [False, True])
@pytest.mark.usefixtures("rings_stay")
async def test_a_handshake_that_fails_gives_its_memory_back_at_once(nodes: Nodes, said: bytes, pairing: bool) -> None:
    den = await nodes.open("den")
    window = await den.network.open_pairing([Role.LENDER])
    before = handshakes()
    for _ in range(12):
        await knock(window.address.port if pairing else den.network.port, said)
    await until(lambda: handshakes() <= before + 1)
