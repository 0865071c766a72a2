"""Control API routes for engine packs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
from aiohttp import web

from app.api import requests
from app.api.engine_packs import EnginePack, EnginePacks
from app.core.errors import BadInput, Refused
from app.core.reasons import sentence
from app.machine.settings import EngineSettings, SettingsStore
from app.node.control.json_bodies import answer, body
from app.node.engines.added_engine import AddedEngine
from app.node.engines.engine_installation import SETTING, EngineInstallation
from app.node.engines.pack_copies import PackCopies
from app.node.graphics_cards import GraphicsCards
from backends.contract import LLAMACPP


def _is_folder(folder: str) -> bool:
    return Path(folder).is_absolute() and Path(folder).is_dir()


class EngineRoutes:
    """Routes that list, install, copy, test, choose, export and remove engine packs."""

    def __init__(
        self,
        graphics: GraphicsCards,
        copies: PackCopies,
        added: AddedEngine,
        installation: EngineInstallation,
        choices: SettingsStore,
    ) -> None:
        self._graphics, self._packs, self._copies = graphics, graphics.packs, copies
        self._added, self._installation, self._choices = added, installation, choices

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/engines", self.list_packs),
            web.post("/engines", self.add),
            web.get("/engines/offers", self.offers),
            web.post("/engines/copy", self.copy),
            web.post("/engines/copy/cancel", self.cancel),
            web.post("/engines/rollback", self.roll_back),
            web.post("/engines/test", self.test),
            web.post("/engines/prefer", self.prefer),
            web.post("/engines/install", self.install),
            web.post("/engines/install/cancel", self.cancel_installation),
            web.post("/engines/uninstall", self.uninstall),
            web.post("/engines/{name}/use", self.use),
            web.post("/engines/{name}/export", self.export),
            web.delete("/engines/{name}", self.remove),
        ]

    async def list_packs(self, request: web.Request) -> web.Response:
        return answer(await self._with_idle(await self._packs.packs()))

    async def add(self, request: web.Request) -> web.Response:
        order = await body(request, requests.AddEnginePack)
        return answer(await self._with_idle(await self._packs.add(order.path)))

    async def offers(self, request: web.Request) -> web.Response:
        return answer(await self._copies.offers())

    async def copy(self, request: web.Request) -> web.Response:
        await self._copies.start(await body(request, requests.CopyEnginePack))
        return answer(await self._with_idle(await self._packs.packs()))

    async def cancel(self, request: web.Request) -> web.Response:
        await self._copies.cancel()
        return answer(await self._with_idle(await self._packs.packs()))

    async def export(self, request: web.Request) -> web.Response:
        order = await body(request, requests.ExportEnginePack)
        place = Path(order.path)
        if not order.replace and await asyncio.to_thread(place.exists):
            raise Refused("pack_file_exists", file=order.path)
        return answer(await self._with_idle(await self._packs.export(request.match_info["name"], place)))

    async def roll_back(self, request: web.Request) -> web.Response:
        order = await body(request, requests.RollBackEngine)
        return answer(await self._with_idle(await self._packs.roll_back(order.backend)))

    async def test(self, request: web.Request) -> web.Response:
        order = await body(request, requests.TestEngines)
        return answer(await self._with_idle(await self._packs.test(order.backend or "")))

    async def prefer(self, request: web.Request) -> web.Response:
        """Prefer an engine that is installed apart, or llama.cpp again. Respond once it has been tested."""
        order = await body(request, requests.PreferEngine)
        chosen = EngineSettings()
        if order.engine != LLAMACPP:
            folder = order.folder or await self._installed_folder(order.engine)
            if not await asyncio.to_thread(_is_folder, folder):
                raise BadInput("engine_folder", folder=folder)
            chosen = EngineSettings(SETTING[order.engine], folder, order.if_faster)
        await self._choices.change(lambda now: msgspec.structs.replace(now, engine=chosen))
        self._added.test_again()
        await self._added.tested()
        return answer(await self._with_idle(await self._packs.packs()))

    async def _installed_folder(self, engine: str) -> str:
        """Return the folder of an installed engine after reading its files. Raises BadInput or Damaged."""
        folder = str(await asyncio.to_thread(self._installation.folder_of, engine))
        if error := await self._installation.damage(engine):
            raise error
        return folder

    async def install(self, request: web.Request) -> web.Response:
        order = await body(request, requests.InstallEngine)
        await self._installation.start(order.engine, order.wheels)
        return answer(await self._with_idle(await self._packs.packs()))

    async def cancel_installation(self, request: web.Request) -> web.Response:
        await self._installation.cancel()
        return answer(await self._with_idle(await self._packs.packs()))

    async def uninstall(self, request: web.Request) -> web.Response:
        order = await body(request, requests.RemoveEngine)
        await self._installation.remove(order.engine)
        return answer(await self._with_idle(await self._packs.packs()))

    async def use(self, request: web.Request) -> web.Response:
        return answer(await self._with_idle(await self._packs.use(request.match_info["name"])))

    async def remove(self, request: web.Request) -> web.Response:
        return answer(await self._with_idle(await self._packs.remove(request.match_info["name"])))

    async def _with_idle(self, packs: EnginePacks) -> EnginePacks:
        return msgspec.structs.replace(
            packs,
            packs=list(map(self._told, packs.packs)),
            copy=self._copies.now,
            added=self._added.state,
            available=await self._installation.available(),
            installation=self._installation.now,
        )

    def _told(self, pack: EnginePack) -> EnginePack:
        """Return a pack with the reason added if no card currently computes through it, although it is in use."""
        library = self._packs.libraries.get(pack.backend)
        if not pack.current or pack.problem_facts is not None or library is None:
            return pack
        why = self._graphics.why_idle(pack.backend, library)
        return msgspec.structs.replace(pack, idle=sentence(why), idle_facts=why)
