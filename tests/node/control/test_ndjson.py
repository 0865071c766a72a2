"""Long answers over HTTP: progress from anywhere, one last line, and askers that stop reading."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from typing import Any

import pytest
from aiohttp import web

from app.api.plans import Progress
from app.api.responses import AnsweredBy, DoneLine, ProgressLine
from app.core.errors import BadInput
from app.node.control import json_bodies
from app.node.control.json_bodies import Report, stream, with_progress
from app.node.control.state_routes import with_heartbeat
from app.node.events import Event

Json = dict[str, Any]
DONE = Progress("measuring", None, 1, 1, "steps")


async def test_progress_comes_first_and_the_result_last() -> None:
    async def work(report: Report) -> Json:
        await asyncio.to_thread(report, DONE)
        return {"n": 7}

    async with aclosing(with_progress(work)) as lines:
        assert [line async for line in lines] == [ProgressLine(DONE), DoneLine({"n": 7})]


async def test_closing_it_cancels_the_work_and_waits() -> None:
    ended = []

    async def work(report: Report) -> Json:
        report(DONE)
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.01)
            ended.append(True)
        return {}

    async with aclosing(with_progress(work)) as lines:
        await anext(lines)
    assert ended


async def test_an_error_comes_as_it_is() -> None:
    async def work(report: Report) -> Json:
        raise BadInput("prompt_empty")

    with pytest.raises(BadInput):
        async with aclosing(with_progress(work)) as lines:
            await anext(lines)


async def test_a_stream_of_events_can_be_closed_between_two() -> None:
    async def events() -> AsyncGenerator[Event, None]:
        yield Event("one-1", "snapshot", {})
        await asyncio.sleep(60)

    async with aclosing(with_heartbeat(events())) as lines:
        assert (await anext(lines)).startswith(b"event: snapshot")


class Flood:
    """Work that talks without end; `closed` once nobody wants it any more."""

    def __init__(self) -> None:
        self.closed = asyncio.Event()
        self.ends: list[BaseException] = []  # how requests ended that failed

    async def lines(self) -> AsyncGenerator[AnsweredBy, None]:
        try:
            while True:
                yield AnsweredBy("x" * 65536)
        finally:
            self.closed.set()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        try:
            return await stream(request, self.lines())
        except BaseException as error:
            self.ends.append(error)
            raise


@pytest.fixture
async def flood() -> AsyncIterator[tuple[Flood, int]]:
    made, app = Flood(), web.Application()
    app.add_routes([web.get("/", made.answer)])
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield made, runner.addresses[0][1]
    await runner.cleanup()


async def test_an_asker_that_left_before_the_answer_is_no_fault_of_ours(
    flood: tuple[Flood, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    ends, prepare = list[BaseException](), web.StreamResponse.prepare

    async def late(response: web.StreamResponse, request: web.Request) -> Any:
        if request.transport is not None:
            request.transport.abort()
        try:
            return await prepare(response, request)
        except BaseException as error:
            ends.append(error)
            raise

    monkeypatch.setattr(web.StreamResponse, "prepare", late)
    made, port = flood
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    async with asyncio.timeout(10):
        with suppress(ConnectionError):
            assert not await reader.read()
        while not made.ends:  # noqa: ASYNC110  the handler runs in the server's tasks
            await asyncio.sleep(0.01)
    writer.close()
    assert isinstance(ends[0], ConnectionError)
    assert isinstance(made.ends[0], asyncio.CancelledError), "nothing is logged for that"


async def test_an_asker_that_reads_no_more_is_let_go(flood: tuple[Flood, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_bodies, "UNREAD_SECONDS", 0.3)
    made, port = flood
    with socket.create_connection(("127.0.0.1", port)) as asker:
        asker.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        async with asyncio.timeout(10):
            await made.closed.wait()
