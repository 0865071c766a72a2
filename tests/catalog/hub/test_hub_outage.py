"""A hub that is not reached: why is said within seconds, while it is tried again, and when it is given up."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator
from pathlib import Path

import aiohttp
import pytest

from app.catalog.hub import hub_files
from app.catalog.hub.hub_address import Hub
from app.catalog.hub.hub_files import NOTHING_ANSWERS, connection_failure
from app.core.errors import Fact, Reason, Unreachable
from app.core.reasons import said
from tests.catalog.hub_server import HubServer, closed_hub, serving
from tests.catalog.transfers.test_file_transfer import DATA, Line


class Elsewhere(HubServer):
    """A hub at an address of the test's choice."""

    at = Hub()

    @property
    def hub(self) -> Hub:
        return self.at


@pytest.fixture
async def silent() -> AsyncGenerator[Hub, None]:
    """Run a server that accepts every connection and never answers."""

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    try:
        yield Hub(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    finally:
        server.close()
        await server.wait_closed()


def line_to(hub: Hub, folder: Path) -> Line:
    server = Elsewhere()
    server.at = hub
    return Line(server, folder)


async def test_a_name_that_nobody_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    monkeypatch.setattr("app.catalog.hub.hub_files.proxy_of", lambda _: None)
    line = line_to(Hub(), tmp_path)
    error = await line.fails("hub_unreached", tries=1)
    why = Reason("host_unknown")
    assert error.reason.facts == {"source": "huggingface.co", "tries": 2, "why": why}
    assert line.held_up == [Reason("hub_held_up", {"source": "huggingface.co", "why": why})]


async def test_a_port_where_nobody_listens_is_told_at_once(tmp_path: Path) -> None:
    hub = closed_hub()
    line = line_to(hub, tmp_path)
    await line.fails("hub_mirror_unreached", tries=1)
    why: dict[str, Fact] = {"source": hub.host, "why": Reason("connection_refused")}
    assert line.held_up == [Reason("hub_mirror_held_up", why)]


async def test_silence_is_told_before_the_question_ends(
    tmp_path: Path, silent: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert hub_files.SILENT_SECONDS < 5
    monkeypatch.setattr(hub_files, "SILENT_SECONDS", 0.01)
    line = line_to(silent, tmp_path)
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        task = group.create_task(line.run())
        while not line.held_up:  # noqa: ASYNC110  it is told by a plain call
            await asyncio.sleep(0.01)
        task.cancel()
    why: dict[str, Fact] = {"source": silent.host, "why": NOTHING_ANSWERS}
    assert line.held_up == [Reason("hub_mirror_held_up", why)]


async def test_a_file_that_stops_in_the_middle_says_so_until_more_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_files, "SILENT_SECONDS", 0.05)
    async with serving(DATA) as server, asyncio.timeout(60):
        server.faults.hold = asyncio.Event()
        line = Line(server, tmp_path)
        stalled = Reason("hub_stalled", {"source": server.hub.host})
        async with asyncio.TaskGroup() as group:
            task = group.create_task(line.run())
            while stalled not in line.held_up:  # noqa: ASYNC110  it is told by a plain call
                await asyncio.sleep(0.01)
            server.faults.hold.set()
            path = await task
    assert path.read_bytes() == DATA
    at = line.held_up.index(stalled)  # a slow computer may have been waited for before
    assert line.held_up[at - 1 : at + 2] == [None, stalled, None]


async def test_what_is_told_ends_with_the_first_answer(tmp_path: Path) -> None:
    async with serving(DATA) as server:
        server.faults.statuses = [503]
        server.faults.break_after = [1000]
        line = Line(server, tmp_path)
        await line.run()
    codes = [reason and reason.code for reason in line.held_up]
    assert codes == ["hub_fault", None, "hub_mirror_held_up", None]


KEY = aiohttp.client_reqrep.ConnectionKey(
    "h", 1, is_ssl=True, ssl=True, proxy=None, proxy_auth=None, proxy_headers_hash=None
)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (aiohttp.ClientProxyConnectionError(KEY, OSError()), "this computer's proxy is not responding"),
        (aiohttp.ClientConnectorCertificateError(KEY, Exception()), "this computer does not trust its certificate"),
        (aiohttp.ClientConnectorSSLError(KEY, OSError()), "this computer does not trust its certificate"),
        (aiohttp.ClientConnectorError(KEY, OSError(101, "x")), "there is no route to it"),
        (aiohttp.ConnectionTimeoutError(), said(NOTHING_ANSWERS)),
        (aiohttp.SocketTimeoutError(), said(NOTHING_ANSWERS)),
        (aiohttp.ServerDisconnectedError(), "the connection was lost"),
        (ConnectionResetError(), "the connection was lost"),
    ],
)  # fmt: skip
def test_words_for_what_went_wrong(error: Exception, words: str) -> None:
    assert said(connection_failure(error)) == words


async def test_an_answer_that_was_an_error_is_given_up_as_that_error() -> None:
    outage_watch = hub_files.OutageWatch(Hub(), lambda _: None)
    busy = Unreachable("hub_fault", source="x", status=500)
    assert outage_watch.final_error(busy, 3) is busy
