"""Control API routes for this computer: its hardware, its programs and the owner's settings."""

from __future__ import annotations

import asyncio
import platform
import shutil
from dataclasses import asdict

import msgspec
from aiohttp import web

from app.api import computer, requests
from app.api.computer import Autostart, Disk, Game, Memory, Programs, UnusedGraphics
from app.core.errors import Reason
from app.core.reasons import said, sentence
from app.decoding import convert
from app.inference.worker.worker import threads_in_use
from app.machine import autostart
from app.machine.hardware import devices, graphics
from app.machine.hardware.cards import Card
from app.machine.hardware.engines import Engine
from app.machine.models_folders import ModelsFolders
from app.machine.paths import Home
from app.machine.sensors import owner_activity, owner_programs
from app.machine.sensors.card_use import CardReading
from app.node.control import node_settings
from app.node.control.json_bodies import answer, body
from app.node.control.node_settings import OwnSettings
from app.node.downloads.models_folder import nearest_existing
from app.node.planning.local_speed import Hardware

GRAPHICS_CURE = Reason("cure_graphics_unused")


async def describe_computer(hardware: Hardware, home: Home, of_models: ModelsFolders) -> computer.Computer:
    """Return a description of this computer. Probing the engines may take several seconds. If the models folder is
    disconnected, the disk of the default folder is described."""
    models = of_models.own if of_models.now in of_models.unreachable else of_models.now
    disk = await asyncio.to_thread(shutil.disk_usage, nearest_existing(models))
    memory, engines = devices.memory(), await hardware.engines()
    unused = None
    if not (hardware.card or hardware.unused_cards):
        unused = graphics.unused_cards(engines, await asyncio.to_thread(graphics.list_cards))
    return computer.Computer(
        system=await asyncio.to_thread(system),
        processor=hardware.processor,
        cores=devices.usable_cores(),
        threads=hardware.threads.most,
        threads_now=threads_in_use() or hardware.threads.begin or hardware.threads.most,
        hottest_c=await asyncio.to_thread(owner_activity.hottest_celsius),
        memory=Memory(memory.total_bytes, memory.free_bytes),
        disk=Disk(str(models), disk.total, disk.free),
        engines=[_engine(engine) for engine in engines],
        unused_graphics=(UnusedGraphics(said(unused), unused, said(GRAPHICS_CURE), GRAPHICS_CURE) if unused else None),
        card=_card(hardware.card, await asyncio.to_thread(hardware.card_reading)) if hardware.card else None,
        more_cards=[_card(card, CardReading()) for card in hardware.more_cards],
        unused_cards=[computer.UnusedCard(card.label, said(card.why), card.why) for card in hardware.unused_cards],
        refused_families=[
            computer.RefusedFamily(refused.family, refused.device, said(refused.reason), refused.reason)
            for refused in hardware.refused_families
        ],
    )


def _card(card: Card, reading: CardReading) -> computer.Card:
    return computer.Card(
        card.key, card.label, card.api, card.is_integrated, card.total_bytes, reading.celsius, reading.busy_percent
    )


def _engine(engine: Engine) -> computer.Engine:
    facts = msgspec.to_builtins(engine)
    return msgspec.structs.replace(
        convert({**facts, "missing": ""}, computer.Engine),
        missing=sentence(engine.missing) or "",
        missing_facts=engine.missing,
    )


def system() -> str:
    """Return the name and version of the operating system."""
    if name := platform.mac_ver()[0]:
        return f"macOS {name}"
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]  # Linux only
    except (OSError, KeyError):
        return f"{platform.system()} {platform.release()}"


class MachineRoutes:
    """Routes for this computer: hardware, settings, autostart and running programs."""

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
        return answer(await describe_computer(self._hardware, self._home, self._folders))

    async def programs(self, request: web.Request) -> web.Response:
        runs = await asyncio.to_thread(owner_programs.running_programs)
        there = await asyncio.to_thread(owner_programs.installed_games)
        return answer(Programs(runs, [Game(game.name, game.program) for game in there]))

    async def autostart(self, request: web.Request) -> web.Response:
        return answer(Autostart(**asdict(await asyncio.to_thread(autostart.state))))

    async def choose_autostart(self, request: web.Request) -> web.Response:
        order = await body(request, requests.ChooseAutostart)
        chosen = await asyncio.to_thread(autostart.set_enabled, order.on, self._home)
        return answer(Autostart(**asdict(chosen)))

    async def settings(self, request: web.Request) -> web.Response:
        return answer(await self._settings.state())

    async def change_settings(self, request: web.Request) -> web.Response:
        order = await body(request, requests.ChangeSettings)
        return answer(await self._settings.change(order))

    async def walls(self, request: web.Request) -> web.Response:
        return answer(await node_settings.worker_walls())
