"""Control API routes for the household: pairing, and the names and roles of machines."""

from __future__ import annotations

import msgspec
from aiohttp import web

from app.api import requests
from app.api.responses import EmptyResponse, MachineResponse
from app.api.snapshot import MachineRef
from app.network.network import Network
from app.node.control import naming, pairing_actions
from app.node.control.json_bodies import answer, body, stream, with_progress
from app.node.control.naming import Naming
from app.node.known_household import KnownHousehold
from app.node.links.discovery_service import reach
from app.node.models.loaded_models import LoadedModels
from app.node.verification.quarantine import Quarantine


class HouseholdRoutes:
    """Routes for the household. The models in `loaded` are notified when a machine is released from quarantine."""

    def __init__(
        self, network: Network, household: KnownHousehold, names: Naming, quarantine: Quarantine, loaded: LoadedModels
    ) -> None:
        self._network, self._household, self._names = network, household, names
        self._quarantine, self._loaded = quarantine, loaded

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/pairing", self.open_pairing),
            web.delete("/pairing", self.close_pairing),
            web.get("/pairing/wait", self.wait_pairing),
            web.post("/pairing/join", self.join),
            web.get("/machines/{ref}", self.machine),
            web.delete("/machines/{ref}", self.remove),
            web.post("/machines/{ref}/name", self.rename),
            web.post("/machines/{ref}/roles", self.set_roles),
            web.post("/machines/{ref}/use-again", self.use_again),
            web.post("/machines/{ref}/address", self.reach),
        ]

    async def open_pairing(self, request: web.Request) -> web.Response:
        order = await body(request, requests.OpenPairing)
        return answer(await pairing_actions.open_window(self._network, order.role))

    async def close_pairing(self, request: web.Request) -> web.Response:
        if self._network.window is not None:
            await self._network.window.close()
        return answer(EmptyResponse())

    async def wait_pairing(self, request: web.Request) -> web.StreamResponse:
        work = with_progress(lambda report: pairing_actions.wait(self._network, report))
        return await stream(request, work)

    async def join(self, request: web.Request) -> web.Response:
        order = await body(request, requests.Join)
        network, known = self._network, self._household.now
        near = known.strangers.values()
        joined = await pairing_actions.join(network, order.address, order.code, near, known.machines)
        called = await self._names.joined(network.members.get(network.id))
        return answer(msgspec.structs.replace(joined, called=called))

    async def machine(self, request: web.Request) -> web.Response:
        """Respond with the machine that the `ref` parameter identifies."""
        machine = self._household.machine(request.match_info["ref"])
        return answer(MachineResponse(MachineRef(machine.id, machine.name)))

    async def remove(self, request: web.Request) -> web.Response:
        machine = self._household.machine(request.match_info["ref"])
        added, machines = request.query.get("added"), self._household.now.machines
        return answer(await naming.remove(self._network, machine, added, machines))

    async def rename(self, request: web.Request) -> web.Response:
        order = await body(request, requests.RenameMachine)
        machine = self._household.machine(request.match_info["ref"])
        machines = self._household.now.machines
        renamed = await self._names.rename(self._network, machine, order.name, machines)
        return answer(renamed)

    async def set_roles(self, request: web.Request) -> web.Response:
        order = await body(request, requests.SetRoles)
        machine = self._household.machine(request.match_info["ref"])
        return answer(await naming.set_roles(self._network, machine, order.roles))

    async def use_again(self, request: web.Request) -> web.Response:
        machine = self._household.machine(request.match_info["ref"])
        used = await self._quarantine.release(machine)
        for running in self._loaded:
            running.household_changed()
        return answer(used)

    async def reach(self, request: web.Request) -> web.Response:
        order = await body(request, requests.DialAddress)
        machine = self._household.machine(request.match_info["ref"])
        return answer(await reach(self._network, machine, order.address))
