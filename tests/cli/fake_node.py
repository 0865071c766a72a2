"""A small real server that speaks the control API from a table of answers, in a thread of its own."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from aiohttp import web

from app import __version__

Json = dict[str, Any]
TOKEN = "a-token-of-the-tests"


def has_all_of(printed: Any, answer: Any) -> bool:
    """Return whether `printed` has everything of `answer`; a command also prints what a short answer leaves out."""
    if isinstance(answer, dict):
        return all(name in printed and has_all_of(printed[name], value) for name, value in answer.items())
    if isinstance(answer, list):
        return len(printed) == len(answer) and all(map(has_all_of, printed, answer))
    return bool(printed == answer)


@dataclass
class Lines:
    """A long answer: lines, and what happens after them."""

    lines: list[Json]
    then: str = "end"  # or "hang", "drop"
    pause: float = 0.0


@dataclass
class Failed:
    """An answer that is an error."""

    status: int
    error: Json


Answer = Json | Lines | Failed | Callable[[Json], Any]


@dataclass
class FakeNode:
    """`with FakeNode(home, answers) as node`: runs until the end; `node.asked` is what it was asked."""

    home: Path
    answers: dict[tuple[str, str], Answer]
    version: str = __version__
    asked: list[tuple[str, str, Json]] = field(default_factory=list)
    cancelled: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *exc: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        runtime = {"pid": os.getpid(), "port": runner.addresses[0][1], "token": TOKEN, "version": self.version}
        self.home.mkdir(parents=True, exist_ok=True)
        (self.home / "runtime.json").write_text(json.dumps(runtime))
        self._ready.set()
        await self._stop.wait()
        await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return web.json_response(error("Refused", "no_token", "No."), status=401)
        body = json.loads(await request.read() or b"{}")
        self.asked.append((request.method, request.raw_path, body))
        answer = self.answers[request.method, request.raw_path]
        if callable(answer):
            answer = answer(body)
        match answer:
            case Lines():
                return await self._stream(request, answer)
            case Failed(status, sent):
                return web.json_response({"error": sent}, status=status)
            case _:
                return web.json_response(answer)

    async def _stream(self, request: web.Request, answer: Lines) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        await response.prepare(request)
        try:
            for line in answer.lines:
                await response.write(json.dumps(line).encode() + b"\n")
                await asyncio.sleep(answer.pause)
            if answer.then == "hang":
                await asyncio.sleep(60)
        except (asyncio.CancelledError, ConnectionError):
            self.cancelled.set()
            raise
        if answer.then == "drop":
            assert request.transport is not None
            request.transport.abort()
        return response


def error(kind: str, code: str, message: str, **facts: Any) -> Json:
    return {"kind": kind, "code": code, "facts": facts, "message": message}
