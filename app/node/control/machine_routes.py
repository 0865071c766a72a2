"""The control API's routes over this computer: what it has, what runs on it, and what its owner chose."""

from __future__ import annotations

import asyncio
import platform
import shutil
from dataclasses import asdict
from typing import Any

import msgspec
from aiohttp import web

from app.api import requests
from app.core.errors import Reason
from app.core.reasons import with_reason
from app.inference.worker.worker import threads_now
from app.machine import autostart
from app.machine.hardware import devices, graphics
from app.machine.hardware.engines import Engine
from app.machine.models_folders import ModelsFolders
from app.machine.paths import Home
from app.machine.sensors import owner_activity, owner_programs
from app.node.control import node_settings
from app.node.control.node_settings import OwnSettings
from app.node.control.request_body import body
from app.node.downloads.models_folder import existing
from app.node.planning.own_speed import Hardware

# What this computer has, for its own page: system, processor, memory, disk, engines and their devices.

Json = dict[str, Any]


async def machine_json(hardware: Hardware, home: Home, of_models: ModelsFolders) -> Json:
    """All of it; the engines may need some seconds to say what they find. A disk that is away is not asked."""
    models = of_models.own if of_models.now in of_models.known_away else of_models.now
    disk = await asyncio.to_thread(shutil.disk_usage, existing(models))
    memory, engines = devices.memory(), await hardware.engines()
    unused = graphics.unused_cards(engines, await asyncio.to_thread(graphics.list_cards))
    return {
        "system": await asyncio.to_thread(system),
        "processor": hardware.processor,
        "cores": devices.usable_cores(),
        "threads": hardware.threads.most,
        "threads_now": threads_now() or hardware.threads.begin or hardware.threads.most,
        "hottest_c": await asyncio.to_thread(owner_activity.hottest_celsius),
        "memory": {"total_bytes": memory.total_bytes, "free_bytes": memory.free_bytes},
        "disk": {"folder": str(models), "total_bytes": disk.total, "free_bytes": disk.free},
        "engines": [_engine_json(engine) for engine in engines],
        "unused_graphics": (
            {**with_reason("reason", unused), **with_reason("cure", Reason("cure_graphics_unused"))} if unused else None
        ),
    }


def _engine_json(engine: Engine) -> Json:
    missing = with_reason("missing", engine.missing)
    return {**msgspec.to_builtins(engine), **missing, "missing": missing["missing"] or ""}


def system() -> str:
    """The system as its maker calls it."""
    if name := platform.mac_ver()[0]:
        return f"macOS {name}"
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]  # Linux only
    except (OSError, KeyError):
        return f"{platform.system()} {platform.release()}"


# Start at sign-in, for the loopback API: as the system has it, read back each time.


async def autostart_json() -> Json:
    """Return whether Poolhouse starts at sign-in, and where the system keeps that."""
    return asdict(await asyncio.to_thread(autostart.state))


async def choose(on: bool, home: Home) -> Json:
    """Turn it on or off; what the system has afterwards comes back. Raises Refused."""
    return asdict(await asyncio.to_thread(autostart.set_enabled, on, home))


class MachineRoutes:
    """Routes over this computer: what it has, its settings, its start at sign-in, the programs that run."""

    def __init__(self, home: Home, hardware: Hardware, folders: ModelsFolders, settings: OwnSettings) -> None:
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
        answer = await machine_json(self._hardware, self._home, self._folders)
        return web.json_response(answer)

    async def programs(self, request: web.Request) -> web.Response:
        runs = await asyncio.to_thread(owner_programs.running_programs)
        there = await asyncio.to_thread(owner_programs.installed_games)
        known = [{"name": game.name, "program": game.program} for game in there]
        return web.json_response({"programs": runs, "games": known})

    async def autostart(self, request: web.Request) -> web.Response:
        return web.json_response(await autostart_json())

    async def choose_autostart(self, request: web.Request) -> web.Response:
        order = await body(request, requests.ChooseAutostart)
        return web.json_response(await choose(order.on, self._home))

    async def settings(self, request: web.Request) -> web.Response:
        return web.json_response(await self._settings.told())

    async def change_settings(self, request: web.Request) -> web.Response:
        order = await body(request, requests.ChangeSettings)
        return web.json_response(await self._settings.change(order))

    async def walls(self, request: web.Request) -> web.Response:
        return web.json_response(await node_settings.walls_told())
