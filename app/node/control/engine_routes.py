"""Control API routes for engine packs."""

from __future__ import annotations

from aiohttp import web

from app.api import requests
from app.node.control.json_bodies import answer, body
from app.node.engine_packs import EnginePackService


class EngineRoutes:
    """Routes that list, install, test, choose and remove engine packs."""

    def __init__(self, packs: EnginePackService) -> None:
        self._packs = packs

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/engines", self.list_packs),
            web.post("/engines", self.add),
            web.post("/engines/rollback", self.roll_back),
            web.post("/engines/test", self.test),
            web.post("/engines/{name}/use", self.use),
            web.delete("/engines/{name}", self.remove),
        ]

    async def list_packs(self, request: web.Request) -> web.Response:
        return answer(await self._packs.packs())

    async def add(self, request: web.Request) -> web.Response:
        order = await body(request, requests.AddEnginePack)
        return answer(await self._packs.add(order.path))

    async def roll_back(self, request: web.Request) -> web.Response:
        order = await body(request, requests.RollBackEngine)
        return answer(await self._packs.roll_back(order.backend))

    async def test(self, request: web.Request) -> web.Response:
        order = await body(request, requests.TestEngines)
        return answer(await self._packs.test(order.backend or ""))

    async def use(self, request: web.Request) -> web.Response:
        return answer(await self._packs.use(request.match_info["name"]))

    async def remove(self, request: web.Request) -> web.Response:
        return answer(await self._packs.remove(request.match_info["name"]))
