"""The control API's routes over this computer: what it has, what runs on it, and what its owner chose."""

from __future__ import annotations

import asyncio

from aiohttp import web

from app.machine.models_folders import ModelsFolders
from app.machine.paths import Home
from app.machine.sensors import installed_games, running_programs
from app.node.control import autostart_routes, node_settings, this_machine
from app.node.control import requests as asked
from app.node.control.node_settings import OwnSettings
from app.node.hardware import Hardware


class MachineRoutes:
    """See the module."""

    def __init__(
        self, home: Home, hardware: Hardware, folders: ModelsFolders, settings: OwnSettings
    ) -> None:
        self._home, self._hardware, self._folders = home, hardware, folders
        self._settings = settings

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/machine", self.machine),
            web.get("/programs", self.programs),
            web.get("/autostart", self.autostart),
            web.post("/autostart", self.choose_autostart),
            web.get("/settings", self.settings),
            web.post("/settings", self.change_settings),
            web.get("/walls", self.walls),
        ]

    async def machine(self, request: web.Request) -> web.Response:
        told = await this_machine.told(self._hardware, self._home, self._folders)
        return web.json_response(told)

    async def programs(self, request: web.Request) -> web.Response:
        runs = await asyncio.to_thread(running_programs.running)
        there = await asyncio.to_thread(installed_games.installed)
        known = [{"name": game.name, "program": game.program} for game in there]
        return web.json_response({"programs": runs, "games": known})

    async def autostart(self, request: web.Request) -> web.Response:
        return web.json_response(await autostart_routes.told())

    async def choose_autostart(self, request: web.Request) -> web.Response:
        order = await asked.body(request, asked.ChooseAutostart)
        return web.json_response(await autostart_routes.choose(order.on, self._home))

    async def settings(self, request: web.Request) -> web.Response:
        return web.json_response(await self._settings.told())

    async def change_settings(self, request: web.Request) -> web.Response:
        order = await asked.body(request, asked.ChangeSettings)
        return web.json_response(await self._settings.change(order))

    async def walls(self, request: web.Request) -> web.Response:
        return web.json_response(await node_settings.walls_told())
