"""Control API routes for the state of the node: snapshot, event stream, journal, diagnostics and shutdown."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

import msgspec
from aiohttp import web

from app.api.computer import Checks
from app.api.responses import EmptyResponse, Machines
from app.api.snapshot import Snapshot
from app.node.control.json_bodies import answer
from app.node.doctor import Doctor
from app.node.events import Event, Events
from app.node.journal import Journal

HEARTBEAT_SECONDS = 10


class StateRoutes:
    """Routes for the state of the node. `stop` ends the node."""

    def __init__(
        self,
        snapshot: Callable[[], Snapshot],
        events: Events,
        journal: Journal,
        doctor: Doctor,
        stop: Callable[[], None],
    ) -> None:
        self._snapshot, self._events, self._journal = snapshot, events, journal
        self._doctor, self._stop = doctor, stop

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/status", self.status),
            web.get("/events", self.events),
            web.get("/machines", self.machines),
            web.get("/doctor", self.doctor),
            web.get("/journal", self.journal),
            web.post("/shutdown", self.shutdown),
        ]

    async def status(self, request: web.Request) -> web.Response:
        return answer(self._snapshot())

    async def events(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        after = request.headers.get("Last-Event-ID", "")
        async with aclosing(with_heartbeat(self._events.listen(after))) as events:
            async for event in events:
                await response.write(event)
        return response

    async def machines(self, request: web.Request) -> web.Response:
        now = self._snapshot()
        return answer(Machines(list(now.machines.values()), list(now.strangers.values())))

    async def doctor(self, request: web.Request) -> web.Response:
        whole = "whole" in request.query
        return answer(Checks(await self._doctor.checks(whole)))

    async def journal(self, request: web.Request) -> web.Response:
        since = request.query.get("since", "0")
        return answer(self._journal.read(int(since[:15]) if since.isdecimal() else 0))

    async def shutdown(self, request: web.Request) -> web.Response:
        self._stop()
        return answer(EmptyResponse())


async def with_heartbeat(events: AsyncGenerator[Event, None]) -> AsyncGenerator[bytes, None]:
    """Encode events as server-sent events, and send a comment line after every HEARTBEAT_SECONDS without an event."""
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(_next(events), name="next event")
        try:
            while True:
                done, _ = await asyncio.wait({waiting}, timeout=HEARTBEAT_SECONDS)
                if not done:
                    yield b": alive\n\n"
                    continue
                event = waiting.result()
                waiting = group.create_task(_next(events), name="next event")
                yield b"event: %s\nid: %s\ndata: %s\n\n" % (
                    event.name.encode(),
                    event.id.encode(),
                    msgspec.json.encode(event.data),
                )
        except GeneratorExit:
            pass  # a TaskGroup would wrap this exception
        finally:
            waiting.cancel()


async def _next(events: AsyncGenerator[Event, None]) -> Event:
    return await anext(events)
