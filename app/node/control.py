"""The loopback control API: routes, each a few lines over one method of Node."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import msgspec
from aiohttp import web

from app.core.errors import BadInput
from app.core.ids import MachineId
from app.machine import games, programs
from app.machine.chat_key import ChatKey
from app.node import autostart, own_settings, this_machine
from app.node import requests as asked
from app.node.answer_routes import routes as answer_routes
from app.node.api_routes import routes as api_routes
from app.node.asking import kept_here
from app.node.chat_api.first_words import FirstWords, runner_of
from app.node.events import Event
from app.node.finding import reach
from app.node.guard import MAX_BODY_BYTES, guard
from app.node.history_routes import routes as history_routes
from app.node.kept_answers import KeptAnswers
from app.node.naming import remove, set_roles
from app.node.ndjson import Progress, stream, with_progress
from app.node.planning import BATCH_ROWS
from app.node.shop_routes import routes as shop_routes
from app.node.starters import starter
from app.node.verdicts import verdicts

if TYPE_CHECKING:
    from app.node.node import Node

Json = dict[str, Any]
HEARTBEAT_SECONDS = 10


class Control:
    """The surface of management: loopback only, a port of its own, a token on every route."""

    def __init__(self, node: Node, more: Iterable[web.RouteDef] = ()) -> None:
        self._node = node
        self.token = secrets.token_urlsafe(32)
        self.port = 0
        self._words, self.answers = FirstWords(), KeptAnswers()
        checked = guard(self.token, lambda: self.port, self._words.heard)
        app = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=[checked])
        app.add_routes([*self._routes(), *more])
        self._runner = runner_of(app)

    async def start(self, group: asyncio.TaskGroup) -> None:
        """Listen on a free loopback port."""
        self.answers.open(group)
        await self._runner.setup()
        self.port = await self._words.listen(self._runner, [0])

    async def stop(self) -> None:
        self._words.close()
        await self.answers.close()
        await self._runner.cleanup()

    def _routes(self) -> list[web.RouteDef]:
        return [
            web.get("/status", self._status),
            web.get("/events", self._events),
            web.post("/pairing", self._open_pairing),
            web.delete("/pairing", self._close_pairing),
            web.get("/pairing/wait", self._wait_pairing),
            web.post("/pairing/join", self._join),
            web.get("/machines", self._machines),
            web.get("/machines/{ref}", self._machine),
            web.delete("/machines/{ref}", self._remove),
            web.post("/machines/{ref}/name", self._rename),
            web.post("/machines/{ref}/roles", self._set_roles),
            web.post("/machines/{ref}/use-again", self._use_again),
            web.get("/lending", self._lending),
            web.post("/lending", self._change_lending),
            web.post("/lending/pause", self._pause_lending),
            web.post("/lending/resume", self._resume_lending),
            web.get("/models", self._models),
            web.post("/models", self._import),
            web.get("/models/{name}", self._one_model),
            web.delete("/models/{name}", self._delete_model),
            *shop_routes(lambda: self._node.shop),
            *api_routes(lambda: self._node.doors.api),
            *history_routes(ChatKey(self._node.home)),
            web.post("/measure", self._measure),
            web.post("/plan", self._plan),
            web.post("/speeds", self._speeds),
            web.post("/verdicts", self._verdicts),
            web.get("/starter", self._starter),
            web.post("/load", self._load),
            web.post("/unload", self._unload),
            web.post("/ask", self._ask),
            *answer_routes(self.answers, self._answer),
            web.post("/tokens", self._tokens),
            web.get("/machine", self._this_machine),
            web.get("/programs", self._programs),
            web.get("/autostart", self._autostart),
            web.post("/autostart", self._choose_autostart),
            web.get("/settings", self._settings),
            web.post("/settings", self._change_settings),
            web.post("/machines/{ref}/address", self._reach),
            web.post("/machines/{ref}/interface", self._prefer),
            web.get("/walls", self._walls),
            web.get("/doctor", self._doctor),
            web.get("/journal", self._journal),
            web.post("/shutdown", self._shutdown),
        ]

    async def _status(self, request: web.Request) -> web.Response:
        return web.json_response(self._node.snapshot())

    async def _events(self, request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await answer.prepare(request)
        after = request.headers.get("Last-Event-ID", "")
        async with aclosing(_with_heartbeat(self._node.events.listen(after))) as events:
            async for event in events:
                await answer.write(event)
        return answer

    async def _open_pairing(self, request: web.Request) -> web.Response:
        order = await asked.body(request, asked.OpenPairing)
        return web.json_response(await self._node.open_pairing(order.role))

    async def _close_pairing(self, request: web.Request) -> web.Response:
        await self._node.close_pairing()
        return web.json_response({})

    async def _wait_pairing(self, request: web.Request) -> web.StreamResponse:
        return await _long(request, self._node.wait_pairing)

    async def _join(self, request: web.Request) -> web.Response:
        order = await asked.body(request, asked.Join)
        return web.json_response(await self._node.join(order.address, order.code))

    async def _machines(self, request: web.Request) -> web.Response:
        now = self._node.snapshot()
        return web.json_response(
            {key: list(now[key].values()) for key in ("machines", "strangers")}
        )

    async def _machine(self, request: web.Request) -> web.Response:
        """Which one a person means."""
        machine = self._node.machine(request.match_info["ref"])
        return web.json_response({"machine": {"id": machine.id, "name": machine.name}})

    async def _remove(self, request: web.Request) -> web.Response:
        node, machine = self._node, self._node.machine(request.match_info["ref"])
        added = request.query.get("added")
        return web.json_response(
            await remove(node.network, machine, added, node.household.machines)
        )

    async def _rename(self, request: web.Request) -> web.Response:
        order = await asked.body(request, asked.RenameMachine)
        node, machine = self._node, self._node.machine(request.match_info["ref"])
        renamed = await node.naming.rename(
            node.network, machine, order.name, node.household.machines
        )
        return web.json_response(renamed)

    async def _set_roles(self, request: web.Request) -> web.Response:
        order = await asked.body(request, asked.SetRoles)
        machine = self._node.machine(request.match_info["ref"])
        return web.json_response(await set_roles(self._node.network, machine, order.roles))

    async def _use_again(self, request: web.Request) -> web.Response:
        machine = self._node.machine(request.match_info["ref"])
        used = await self._node.doubts.use_again(machine)
        for running in self._node.hosting.loaded:
            running.household_changed()
        return web.json_response(used)

    async def _lending(self, request: web.Request) -> web.Response:
        return web.json_response(self._node.lending.all_json())

    async def _change_lending(self, request: web.Request) -> web.Response:
        order = await asked.body(request, asked.ChangeLending)
        return web.json_response(await self._node.lending.change(order))

    async def _pause_lending(self, request: web.Request) -> web.Response:
        order = await asked.body(request, asked.PauseLending)
        return web.json_response(await self._node.lending.pause(order.seconds, order.at_once))

    async def _resume_lending(self, request: web.Request) -> web.Response:
        return web.json_response(await self._node.lending.resume())

    async def _models(self, request: web.Request) -> web.Response:
        offered = await self._node.guesting.listed() if self._node.rights.is_guest() else []
        own = await self._node.shop.models.listed()
        return web.json_response({"models": own, "offered": offered})

    async def _import(self, request: web.Request) -> web.StreamResponse:
        order = await asked.body(request, asked.Import)
        return await _long(request, lambda report: self._node.shop.models.add(order, report))

    async def _one_model(self, request: web.Request) -> web.Response:
        return web.json_response(await self._node.shop.models.one(request.match_info["name"]))

    async def _delete_model(self, request: web.Request) -> web.Response:
        removed = await self._node.shop.models.remove(request.match_info["name"])
        self._node.hosting.forget_failed(removed["removed"])
        return web.json_response(removed)

    async def _measure(self, request: web.Request) -> web.Response:
        ref = request.query.get("machine")
        only = other_machine(self._node, ref) if ref is not None else None
        return web.json_response(await self._node.links.measure_now(only))

    async def _prefer(self, request: web.Request) -> web.Response:
        order = await asked.body(request, asked.PreferInterface)
        machine = other_machine(self._node, request.match_info["ref"])
        return web.json_response(await self._node.links.prefer(machine, order.interface))

    async def _plan(self, request: web.Request) -> web.StreamResponse:
        order = await asked.body(request, asked.PlanModel)
        self._node.guesting.check_alone(order)
        return await _long(request, lambda report: self._node.hosting.plan(order, report))

    async def _speeds(self, request: web.Request) -> web.StreamResponse:
        order = await asked.body(request, asked.MeasureModel)
        node = self._node

        async def work(report: Progress) -> Json:
            me = node.network.id
            return await node.measuring.table(order, BATCH_ROWS, node.household, me, report)

        return await _long(request, work)

    async def _verdicts(self, request: web.Request) -> web.StreamResponse:
        order = await asked.body(request, asked.Judge)
        outlook, released = self._node.hosting.outlook, self._node.hosting.released()

        async def work(report: Progress) -> Json:
            return await verdicts(order, outlook, released, report)

        if order.measure:
            return await _long(request, work)
        return web.json_response(await work(lambda _: None))

    async def _starter(self, request: web.Request) -> web.Response:
        hosting = self._node.hosting
        return web.json_response({"starter": await starter(hosting.outlook, hosting.released())})

    async def _load(self, request: web.Request) -> web.StreamResponse:
        order = await asked.body(request, asked.LoadModel)
        self._node.guesting.check_alone(order)
        return await _long(request, lambda report: self._node.hosting.load(order, report))

    async def _unload(self, request: web.Request) -> web.Response:
        order = await asked.body(request, asked.UnloadModel)
        gone = await self._node.hosting.unload(order.model)
        return web.json_response({"unloaded": gone[0] if gone else None, "also": gone[1:]})

    async def _ask(self, request: web.Request) -> web.StreamResponse:
        return await stream(request, self._answer(await asked.body(request, asked.Ask)))

    def _answer(self, order: asked.Ask) -> AsyncGenerator[Json, None]:
        node = self._node
        passes = node.guesting.passes(order.model or "")
        work = (node.guesting if passes else node.hosting).ask(order)
        return kept_here(work, order.model or "", node.doors.api.upstreams.serving)

    async def _this_machine(self, request: web.Request) -> web.Response:
        node = self._node
        told = await this_machine.told(node.hardware, node.home, node.shop.folders)
        return web.json_response(told)

    async def _programs(self, request: web.Request) -> web.Response:
        runs = await asyncio.to_thread(programs.running)
        there = await asyncio.to_thread(games.installed)
        told = [{"name": game.name, "program": game.program} for game in there]
        return web.json_response({"programs": runs, "games": told})

    async def _autostart(self, request: web.Request) -> web.Response:
        return web.json_response(await autostart.told())

    async def _choose_autostart(self, request: web.Request) -> web.Response:
        order = await asked.body(request, asked.ChooseAutostart)
        return web.json_response(await autostart.choose(order.on, self._node.home))

    async def _settings(self, request: web.Request) -> web.Response:
        return web.json_response(await own_settings.told(self._node))

    async def _change_settings(self, request: web.Request) -> web.Response:
        order = await asked.body(request, asked.ChangeSettings)
        return web.json_response(await own_settings.change(self._node, order))

    async def _walls(self, request: web.Request) -> web.Response:
        return web.json_response(await own_settings.walls_told())

    async def _reach(self, request: web.Request) -> web.Response:
        order = await asked.body(request, asked.Reach)
        machine = self._node.machine(request.match_info["ref"])
        return web.json_response(await reach(self._node.network, machine, order.address))

    async def _tokens(self, request: web.Request) -> web.Response:
        order = await asked.body(request, asked.CountTokens)
        running = self._node.hosting.loaded.named(order.model)
        if running is None or running.answerer is None:
            raise BadInput("nothing_loaded")
        return web.json_response({"tokens": await running.answerer.count(order.text)})

    async def _doctor(self, request: web.Request) -> web.Response:
        whole = "whole" in request.query
        return web.json_response({"checks": await self._node.doctor(whole)})

    async def _journal(self, request: web.Request) -> web.Response:
        since = request.query.get("since", "0")
        return web.json_response(
            self._node.journal.json(int(since[:15]) if since.isdecimal() else 0)
        )

    async def _shutdown(self, request: web.Request) -> web.Response:
        self._node.stop()
        return web.json_response({})


def other_machine(node: Node, ref: str) -> MachineId:
    """The machine a person means, which is not this one. Raises BadInput."""
    machine = node.machine(ref)
    if machine.id == node.network.id:
        raise BadInput("interface_not_own", machine=machine.name)
    return machine.id


async def _long(
    request: web.Request, work: Callable[[Progress], Awaitable[Json]]
) -> web.StreamResponse:
    return await stream(request, with_progress(work))


async def _with_heartbeat(
    events: AsyncGenerator[Event, None],
) -> AsyncGenerator[bytes, None]:
    """Server-sent events, with a comment line when nothing happens for a while."""
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
                    event.name.encode(), event.id.encode(), msgspec.json.encode(event.data),
                )  # fmt: skip
        except GeneratorExit:
            pass  # a TaskGroup would wrap it
        finally:
            waiting.cancel()


async def _next(events: AsyncGenerator[Event, None]) -> Event:
    return await anext(events)
