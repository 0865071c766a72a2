"""Control API routes for updates of Poolhouse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from aiohttp import web

from app.api import requests
from app.machine.versions.restart import restart_at_end
from app.node.control.json_bodies import answer, body
from app.node.updates.update_service import UpdateService


class UpdateRoutes:
    """Routes that check for, install and start updates. `stop` ends the node."""

    def __init__(self, updates: UpdateService, stop: Callable[[], None], home: Path) -> None:
        self._updates, self._stop, self._home = updates, stop, home

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/updates", self.state),
            web.post("/updates", self.check),
            web.post("/updates/install", self.install),
            web.delete("/updates/install", self.cancel),
            web.post("/updates/rollback", self.roll_back),
            web.post("/updates/ask", self.ask),
            web.delete("/updates/asked", self.decline),
            web.post("/updates/restart", self.restart),
        ]

    async def state(self, _: web.Request) -> web.Response:
        return answer(self._updates.state())

    async def check(self, _: web.Request) -> web.Response:
        return answer(await self._updates.check())

    async def install(self, request: web.Request) -> web.Response:
        order = await body(request, requests.InstallUpdate)
        return answer(await self._updates.install(order.path or "", anyway=order.anyway))

    async def cancel(self, _: web.Request) -> web.Response:
        return answer(await self._updates.cancel())

    async def roll_back(self, _: web.Request) -> web.Response:
        return answer(await self._updates.roll_back())

    async def ask(self, _: web.Request) -> web.Response:
        return answer(await self._updates.ask_household())

    async def decline(self, _: web.Request) -> web.Response:
        return answer(self._updates.answer_wish())

    async def restart(self, _: web.Request) -> web.Response:
        """Stop this node, and start the version that was chosen to run from now on. If a window started this node,
        the window restarts it.
        """
        self._updates.require_ready()
        restart_at_end(self._home)
        self._stop()
        return answer(self._updates.state())
