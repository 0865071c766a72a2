"""The process that runs the tool servers for the window. It ends, with all servers, when the window is gone."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Any, BinaryIO

import msgspec

from app.api import tools
from app.api.tools import MAX_LINE_BYTES, NumberedRequest, ToolLine
from app.core.errors import AppError, BadInput, bug
from app.decoding import decode
from app.machine.paths import Home
from app.tools.tool_service import ToolService, sent

log = logging.getLogger(__name__)

NEWS_SECONDS = 0.1  # news of the servers are sent no more often


class ToolHost:
    """The requests of the window, each of which is carried out by a task of its own."""

    def __init__(self, home: Home, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._news = asyncio.Event()
        self._service = ToolService(home, self._news.set)
        self._tasks: dict[int, asyncio.Task[None]] = {}

    async def run(self, lines: asyncio.Queue[bytes | None]) -> None:
        """Carry out requests until the end of input."""
        async with self._service, asyncio.TaskGroup() as group:
            news = group.create_task(self._tell_news(), name="news of the tool servers")
            while (line := await lines.get()) is not None:
                try:
                    request = decode(line, NumberedRequest)
                except ValueError:
                    log.warning("a request of the window was not understood")
                    continue
                if isinstance(request.request, tools.CancelCall):
                    if (task := self._tasks.get(request.request.number)) is not None:
                        task.cancel()
                    continue
                self._tasks[request.number] = group.create_task(self._carry_out(request), name="request of the window")
            news.cancel()
            for task in self._tasks.values():
                task.cancel()

    async def _carry_out(self, request: NumberedRequest) -> None:
        try:
            answer = await self._answer(request.request)
            line = ToolLine(number=request.number, answer=answer)
        except AppError as error:
            line = ToolLine(number=request.number, error=sent(error))
        except Exception as error:  # an unexpected error must not end the servers of other chats
            log.exception("a request of the window failed")
            line = ToolLine(number=request.number, error=sent(bug(error)))
        finally:
            self._tasks.pop(request.number, None)
        self._send(line)

    def _send(self, line: ToolLine) -> None:
        data = msgspec.json.encode(line)
        if len(data) > MAX_LINE_BYTES:
            data = msgspec.json.encode(ToolLine(number=line.number, error=sent(BadInput("tool_answer_long"))))
        self._write(data + b"\n")

    async def _answer(self, request: tools.ToolRequest) -> Any:
        service = self._service
        done: Awaitable[Any]
        match request:
            case tools.ListServers():
                return await service.servers()
            case tools.TestServer(name):
                return await service.test(name)
            case tools.ImportServers(text):
                return await service.import_servers(text)
            case tools.OpenTools(names):
                return await service.open(names)
            case tools.CallTool(server, tool, arguments, fingerprint):
                return await service.call(server, tool, arguments, fingerprint)
            case tools.SaveServer(server, was):
                done = service.save(server, was)
            case tools.RemoveServer(name):
                done = service.remove(name)
            case tools.SwitchServer(name, on):
                done = service.switch(name, on=on)
            case tools.SetPermission(server, tool, permission, fingerprint):
                done = service.permit(server, tool, permission, fingerprint)
            case _:
                raise BadInput("bad_request", why="unknown", field="do")
        await done
        return await service.servers()

    async def _tell_news(self) -> None:
        while True:
            await self._news.wait()
            await asyncio.sleep(NEWS_SECONDS)
            self._news.clear()
            with contextlib.suppress(AppError):
                self._send(ToolLine(news=await self._service.servers()))


def serve(home: Home, source: BinaryIO, target: BinaryIO) -> None:
    """Run the host over these streams until the end of `source`."""

    async def run() -> None:
        loop, lines = asyncio.get_running_loop(), asyncio.Queue[bytes | None]()

        def read() -> None:
            for line in iter(lambda: source.readline(MAX_LINE_BYTES), b""):
                loop.call_soon_threadsafe(lines.put_nowait, line)
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(lines.put_nowait, None)

        threading.Thread(target=read, name="requests of the window", daemon=True).start()

        def write(data: bytes) -> None:
            try:
                target.write(data)
                target.flush()
            except OSError:  # the window is gone
                lines.put_nowait(None)

        await ToolHost(home, write).run(lines)

    asyncio.run(run())


def main() -> None:
    """Run the host over the standard streams. The only argument is the home."""
    logging.basicConfig(level=logging.ERROR, stream=sys.stderr)
    serve(Home.at(sys.argv[1]), sys.stdin.buffer, sys.stdout.buffer)
