"""Streams: errors before the first piece have a status, later ones a shape; who reads nothing is left."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, cast

import aiohttp
import msgspec
import pytest
from aiohttp import web

from app.core.errors import AppError, Busy, StageLost, Unreachable
from app.gateway import open_requests
from app.gateway.access.allowed_origins import Access
from app.gateway.access.auth import CALLER, Auth, KeyAuthenticator
from app.gateway.api_request import Json, Piece, TextPiece
from app.gateway.dialects.responses_routes import ResponsesRoutes
from app.gateway.metrics import Metrics
from app.gateway.streaming import EVENTS, NDJSON, event, send
from app.machine.paths import Home
from app.machine.secret_stores import FIRST, ApiKeys
from app.network import traffic_limits
from app.node.control.guard import loopback_hosts
from tests.network.nodes import until
from tests.node.prometheus import samples

LINGER_SECONDS = 600  # more than any test takes
LARGE_BODY = bytes(64 << 20)  # more than a system keeps for who does not read it


class Part(msgspec.Struct, tag_field="type", tag="part"):
    """A named event."""

    n: int


class Parts:
    """The parts that the route sends, and whether they were closed."""

    def __init__(self) -> None:
        self.n_before = 0
        self.error: AppError | Exception | None = None
        self.endless = self.leaves = False
        self.first, self.later = asyncio.Event(), asyncio.Event()  # what it waits for
        self.first.set()
        self.later.set()
        self.silent_s = 600.0
        self.is_asked = False  # an upstream
        self.closed = asyncio.Event()
        self.gate: Auth
        self.figures: Metrics
        self.request: web.Request
        self.runner: web.AppRunner

    async def half(self) -> AsyncGenerator[bytes, None]:
        """A body that never ends."""
        yield b"{"
        await asyncio.Event().wait()

    async def resolve(self, name: str) -> str:
        return name

    async def answer(self, *_: object) -> AsyncGenerator[Piece, None]:
        for number in range(self.n_before):
            yield TextPiece(0, f"{number}", ())
        await self.later.wait()
        if self.error is not None:
            raise self.error

    async def __call__(self) -> AsyncGenerator[bytes, None]:
        try:
            await self.first.wait()
            for number in range(self.n_before):
                yield event(Part(number))
            await self.later.wait()
            while self.endless:
                yield b"x" * (1 << 20)
            if self.error is not None:
                raise self.error
            if self.leaves and self.request.transport is not None:
                self.request.transport.close()
        finally:
            self.closed.set()


@pytest.fixture
async def parts() -> Parts:
    return Parts()


@pytest.fixture
async def url(parts: Parts, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[str, str]]:
    port = [0]
    keys = ApiKeys(Home.at(tmp_path_factory.mktemp("sending")).create())
    key = (await keys.all())[FIRST]
    door = KeyAuthenticator(keys, Access(lambda: loopback_hosts(port[0])), lambda: False, tells_health=False)
    parts.figures = Metrics()
    gate = Auth(door, parts.figures, lambda _: None, home=" --home X")
    app = web.Application(middlewares=[gate.check])

    async def answer(request: web.Request) -> web.StreamResponse:
        parts.request = request
        request[CALLER].origin.n_upstreams_tried = int(parts.is_asked)
        kind = NDJSON if request.path.startswith("/api/") else EVENTS
        return await send(request, kind, parts(), parts.silent_s)

    async def whole(request: web.Request) -> web.StreamResponse:
        return web.Response(body=LARGE_BODY, content_type="application/json")

    async def deep(request: web.Request) -> web.StreamResponse:
        raise RecursionError

    paths = {"/v1/x": answer, "/v1/messages": answer, "/api/x": answer, "/v1/whole": whole, "/v1/deep": deep}
    app.add_routes([web.get(path, handler) for path, handler in paths.items()])
    app.add_routes([web.post(path, answer) for path in ("/v1/x", "/v1/messages", "/api/x")])
    app.add_routes(ResponsesRoutes(cast("Any", parts)).routes())
    app.on_shutdown.append(gate.open_requests.end_all)
    runner = parts.runner = web.AppRunner(
        app, handler_cancellation=True, shutdown_timeout=1, lingering_time=LINGER_SECONDS
    )
    parts.gate = gate
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port[0] = runner.addresses[0][1]
    yield f"http://127.0.0.1:{port[0]}", key
    await runner.cleanup()


@pytest.fixture
async def http(url: tuple[str, str]) -> AsyncIterator[aiohttp.ClientSession]:
    headers = {"Authorization": f"Bearer {url[1]}"}
    async with aiohttp.ClientSession(url[0], headers=headers) as session:
        yield session


async def test_an_error_before_the_first_part_has_its_status(http: aiohttp.ClientSession, parts: Parts) -> None:
    parts.error = Busy("queue_full", waiting=9, seconds=7)
    async with http.get("/v1/x") as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (429, "7")
        assert (await answer.json())["error"]["code"] == "rate_limit_exceeded"
    async with http.get("/v1/messages") as answer:
        assert (await answer.json())["error"]["type"] == "rate_limit_error"
    assert parts.closed.is_set()


async def test_what_is_too_deep_to_be_written_again_is_no_mistake_of_ours(
    http: aiohttp.ClientSession, parts: Parts
) -> None:
    parts.error = RecursionError("while encoding a JSON object")
    for path in ("/v1/x", "/v1/deep"):
        async with http.get(path) as answer:
            assert answer.status == 400
            assert "nested too deeply" in (await answer.json())["error"]["message"]
    parts.n_before = 1
    async with http.get("/v1/x") as answer:
        assert "nested too deeply" in await answer.text()


async def test_who_sends_no_body_is_told_so_and_parted_at_once(
    url: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traffic_limits, "STALL_SECONDS", 0.1)
    base, key = url
    host = base.removeprefix("http://")
    reader, writer = await asyncio.open_connection(*host.split(":"))
    begun = f"POST /v1/x HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\n"
    writer.write(f"{begun}Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{{".encode())
    content = await reader.read()
    assert content.startswith(b"HTTP/1.1 408 ")
    assert b"too slowly" in content
    writer.close()


@pytest.mark.parametrize(
    "error",
    [
        StageLost("pipeline_closed"),
        ZeroDivisionError("the cat"),
        Unreachable("upstream_failed", name="barn", why="it hung up"),
    ],
)
@pytest.mark.parametrize(
    ("path", "begins"),
    [("/v1/x", 'data: {"error":'), ("/v1/messages", "event: error\ndata: {"), ("/api/x", '{"error":"')],
)
async def test_a_later_error_ends_the_stream_in_its_shape(
    http: aiohttp.ClientSession, parts: Parts, error: Exception, path: str, begins: str
) -> None:
    parts.n_before, parts.error = 2, error
    async with http.get(path) as answer:
        assert answer.status == 200
        text = await answer.text()
    assert text.startswith('event: part\ndata: {"type":"part","n":0}\n\nevent: part\ndata: {"type":"part","n":1}\n\n')
    last = text.split('{"type":"part","n":1}\n\n')[1]
    assert last.startswith(begins)
    assert "the cat" not in last
    assert "Traceback" not in last
    assert ("`poolhouse upstream test barn --home X`" in last) == isinstance(error, Unreachable)


@pytest.mark.parametrize(
    ("path", "sign"), [("/v1/x", b": waits\n\n"), ("/v1/messages", b'event: ping\ndata: {"type":"ping"}\n\n')]
)
async def test_a_silent_stream_says_that_it_lives(
    http: aiohttp.ClientSession, parts: Parts, path: str, sign: bytes
) -> None:
    parts.n_before, parts.silent_s = 1, 0.02
    parts.first.clear()
    parts.later.clear()
    async with asyncio.timeout(60), http.get(path) as answer:
        assert await answer.content.readexactly(2 * len(sign)) == 2 * sign
        parts.first.set()
        rest = b""
        while not (b'{"type":"part","n":0}' in rest and rest.endswith(sign)):
            rest += await answer.content.readany()
        parts.error = StageLost("pipeline_closed")
        parts.later.set()
        rest += await answer.read()
    assert b'event: part\ndata: {"type":"part","n":0}\n\n' in rest
    last = rest.replace(sign, b"").split(b'{"type":"part","n":0}\n\n')[1]
    assert last.startswith((b'data: {"error":', b"event: error\ndata: {"))


async def test_an_error_after_a_sign_ends_the_stream_in_its_shape(http: aiohttp.ClientSession, parts: Parts) -> None:
    parts.error, parts.silent_s = Busy("queue_full", waiting=9, seconds=7), 0.02
    parts.first.clear()
    async with asyncio.timeout(60), http.get("/v1/x") as answer:
        assert answer.status == 200
        assert open_requests.STARTED in parts.request
        parts.first.set()
        assert b'\n\ndata: {"error":' in await answer.read()


@pytest.mark.parametrize("n_before", [0, 1])
async def test_a_response_that_has_said_that_it_lives_fails_in_its_own_shape(
    http: aiohttp.ClientSession, parts: Parts, n_before: int
) -> None:
    parts.error, parts.n_before = Busy("queue_full", waiting=9, seconds=7), n_before
    body: Json = {"model": "m", "input": "x", "stream": True}
    async with http.post("/v1/responses", json=body) as answer:
        said = await answer.read()
        assert answer.status == (200 if n_before else 429)
    last = said.split(b"\n\n")[-2 if n_before else 0]
    assert last.startswith(b'event: error\ndata: {"type":"error"' if n_before else b'{"error": {')


WORDS = "The API was turned off or moved"
LAST = {  # of a stream that has begun when the door closes
    "/v1/x": b'data: {"error":{"message":"' + WORDS.encode(),
    "/v1/messages": b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error"',
    "/v1/responses": b'event: error\ndata: {"type":"error"',
    "/api/x": b'{"error":"' + WORDS.encode(),
}


async def test_a_door_that_closes_ends_each_answer_with_an_error_in_its_shape(
    http: aiohttp.ClientSession, parts: Parts
) -> None:
    parts.n_before = 1
    parts.later.clear()
    async with contextlib.AsyncExitStack() as stack:
        begun = {}
        for path in LAST:
            body = json.dumps({"model": "m", "input": "x", "stream": True})
            kind = {"Content-Type": "application/json"}
            manager = http.post(path, data=body, headers=kind)
            begun[path] = await stack.enter_async_context(manager)
            await begun[path].content.readline()
        parts.first.clear()

        async def refused(**kwargs: Any) -> None:
            async with http.post("/v1/x", **kwargs) as whole:
                assert (whole.status, WORDS in await whole.text()) == (503, True)

        async with asyncio.TaskGroup() as group:
            group.create_task(refused(json={}), name="waits")
            group.create_task(refused(data=parts.half(), headers=kind), name="sends on")
            await until(lambda: len(parts.gate.open_requests) == len(LAST) + 2)
            async with asyncio.timeout(1.5):  # aiohttp alone waits for twice its second
                await parts.runner.cleanup()
        for path, last in LAST.items():
            rest = (await begun[path].read()).rstrip()
            assert last in rest.rpartition(b"\n\n")[2], path


@pytest.mark.parametrize(("path", "is_asked"), [("/v1/x", True), ("/api/x", False)])
async def test_nothing_comes_before_who_answers_is_known_nor_into_what_are_no_events(
    http: aiohttp.ClientSession, parts: Parts, path: str, is_asked: bool
) -> None:
    parts.error, parts.silent_s = Busy("queue_full", waiting=9, seconds=7), 0.02
    parts.first.clear()
    parts.is_asked = is_asked
    asyncio.get_running_loop().call_later(0.2, parts.first.set)
    async with http.get(path) as answer:
        assert (answer.status, "error" in await answer.json()) == (429, True)


async def test_who_leaves_a_silent_stream_ends_it(url: tuple[str, str], parts: Parts) -> None:
    parts.silent_s = 0.02
    parts.first.clear()
    writer = await asked(url, "/v1/x")
    await until(lambda: parts.gate._open[FIRST] == 1)
    writer.close()
    async with asyncio.timeout(60):
        await parts.closed.wait()


@pytest.mark.parametrize("waits", [False, True])
async def test_who_leaves_with_the_last_part_was_answered(
    url: tuple[str, str], parts: Parts, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, waits: bool
) -> None:
    async def end(answer: web.StreamResponse, data: bytes = b"") -> None:
        await asyncio.sleep(LINGER_SECONDS if waits else 0)
        raise aiohttp.ClientConnectionResetError("Cannot write to closing transport")

    monkeypatch.setattr(web.StreamResponse, "write_eof", end)
    parts.n_before, parts.leaves = 2, waits
    writer = await asked(url, "/v1/x")
    await until(lambda: bool(samples(parts.figures.page().decode(), "requests_total")))
    page = parts.figures.page().decode()
    assert samples(page, "requests_total") == [1]
    assert samples(page, "requests_total", path="/v1/x", status="200") == [1]
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
    writer.close()


async def test_who_reads_nothing_is_left(url: tuple[str, str], parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_requests, "UNREAD_SECONDS", 0.3)
    parts.endless = True
    writer = await asked(url, "/v1/x")
    async with asyncio.timeout(60):
        await parts.closed.wait()
    writer.close()


async def test_who_reads_nothing_of_a_whole_answer_is_left_and_counted_until_then(
    url: tuple[str, str], parts: Parts, http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with http.get("/v1/whole") as answer:
        assert await answer.read() == LARGE_BODY
    monkeypatch.setattr(open_requests, "UNREAD_SECONDS", 2.0)
    writer = await asked(url, "/v1/whole")
    await until(lambda: parts.gate._open[FIRST] == 1)
    await until(lambda: parts.gate._open[FIRST] == 0)
    writer.close()


async def asked(url: tuple[str, str], path: str) -> asyncio.StreamWriter:
    """Send a request, and then read nothing."""
    port = url[0].rsplit(":", 1)[1]
    _, writer = await asyncio.open_connection("127.0.0.1", int(port), limit=1)
    head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nX-Api-Key: {url[1]}\r\n\r\n"
    writer.write(head.encode())
    return writer
