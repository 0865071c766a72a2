"""Tests of forwarding a host's answer to a guest's program, however large it is. No node."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import pytest
from aiohttp import web

from app.core.errors import Unreachable
from app.gateway.access.auth import BODY, CALLER, Handler
from app.gateway.answer_service import Caller
from app.gateway.servers.host_proxy import forward_to_host
from app.network.traffic_limits import ANSWER_BYTES
from app.node.models.household_models import Destination

PART = b"0.125," * (1 << 17)
N_PARTS = ANSWER_BYTES // len(PART) + 2


class Host:
    """A host whose answer is larger than a guest's buffer, and that may disconnect midway."""

    def __init__(self) -> None:
        self.host, self.goes = SimpleNamespace(name="den"), False

    @asynccontextmanager
    async def request(self, *_: object) -> AsyncGenerator[Any, None]:
        content = aiohttp.StreamReader(cast("Any", None), 1 << 30)
        yield SimpleNamespace(
            status=200, content_type="application/json", content_length=N_PARTS * len(PART),
            headers={"Content-Type": "application/json"}, content=content,
        )  # fmt: skip

    async def chunks(self, _: object) -> AsyncGenerator[bytes, None]:
        for number in range(N_PARTS):
            if self.goes and number:
                raise Unreachable("peer_offline", name="den")
            yield PART


@pytest.fixture
async def host() -> Host:
    return Host()


@pytest.fixture
async def url(host: Host) -> AsyncIterator[str]:
    async def destination(name: str, *, by_program: bool) -> Destination:
        assert by_program
        return Destination(cast("Any", host), name)

    @web.middleware
    async def gate(request: web.Request, handler: Handler) -> web.StreamResponse:
        request[BODY], request[CALLER] = b"{}", Caller("k", "r")
        return await handler(request)

    async def own(_: web.Request) -> web.StreamResponse:
        raise AssertionError

    household_models: Any = SimpleNamespace(destination=destination)
    app = web.Application(middlewares=[gate, forward_to_host(household_models)])
    app.add_routes([web.post("/v1/embeddings", own)])
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1/embeddings"
    await runner.cleanup()


async def test_vectors_of_many_texts_are_passed_on(url: str) -> None:
    async with aiohttp.ClientSession() as http, http.post(url) as answer:
        assert (answer.status, answer.headers["X-Request-Id"]) == (200, "r")
        assert await answer.read() == PART * N_PARTS


async def test_a_host_that_goes_in_the_middle_leaves_no_whole_answer(url: str, host: Host) -> None:
    host.goes = True
    async with asyncio.timeout(60), aiohttp.ClientSession() as http, http.post(url) as answer:
        assert answer.status == 200
        with pytest.raises(aiohttp.ClientPayloadError):
            await answer.read()
