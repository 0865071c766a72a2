"""The HTTP servers of a node: the control API for the window and the command line, and the Chat API for other
programs."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Collection, Iterable

from aiohttp import web

from app.api import requests
from app.api.computer import HistoryKey
from app.core.errors import BadInput
from app.core.ids import MachineId
from app.core.reasons import said
from app.gateway.access.slow_client_guard import SlowClientGuard, runner_of
from app.gateway.servers.chat_api_service import ChatApiService
from app.gateway.servers.lan_server import LanServer
from app.machine.secret_stores import ChatKey
from app.machine.versions.version_store import VersionStore
from app.network.peer.listener import ANSWERS_PATH, MODELS_PATH
from app.node.control import api_routes, model_routes, phone_routes, prompt_routes
from app.node.control.answer_routes import AnswerRoutes
from app.node.control.card_routes import CardRoutes
from app.node.control.engine_routes import EngineRoutes
from app.node.control.guard import MAX_BODY_BYTES, guard
from app.node.control.household_routes import HouseholdRoutes
from app.node.control.json_bodies import answer, body
from app.node.control.machine_routes import MachineRoutes
from app.node.control.node_settings import OwnSettings
from app.node.control.shelf_routes import ShelfRoutes
from app.node.control.state_routes import StateRoutes
from app.node.control.update_routes import UpdateRoutes
from app.node.doctor import Doctor
from app.node.engines.pack_offers import PACKS_PATH
from app.node.known_household import KnownHousehold
from app.node.lending.lending_policy import LendingPolicy
from app.node.links.link_registry import LinkRegistry
from app.node.models.detached_answers import DetachedAnswers
from app.node.node import Node
from app.node.updates.household_updates import UPDATES_PATH, HouseholdUpdates
from app.node.updates.update_service import UpdateService
from app.node.updates.updater import Build, Updater


def link_route_defs(links: LinkRegistry, household: KnownHousehold) -> list[web.RouteDef]:
    """Return the routes for the links to other machines: measuring them and choosing their network interfaces."""

    async def measure(request: web.Request) -> web.Response:
        ref = request.query.get("machine")
        only = other_machine(household, ref) if ref is not None else None
        return answer(await links.measure_now(only))

    async def prefer(request: web.Request) -> web.Response:
        order = await body(request, requests.PreferInterface)
        machine = other_machine(household, request.match_info["ref"])
        return answer(await links.prefer(machine, order.interface))

    return [web.post("/measure", measure), web.post("/machines/{ref}/interface", prefer)]


def other_machine(household: KnownHousehold, ref: str) -> MachineId:
    """Return the machine that `ref` identifies. Raises BadInput if it is unknown or is this machine."""
    machine = household.machine(ref)
    if machine.id == household.me:
        raise BadInput("interface_not_own", machine=machine.name)
    return machine.id


def lending_route_defs(lending: LendingPolicy) -> list[web.RouteDef]:
    """Return the routes for the memory that this computer lends."""

    async def state(request: web.Request) -> web.Response:
        return answer(lending.full_state())

    async def change(request: web.Request) -> web.Response:
        return answer(await lending.change(await body(request, requests.ChangeLending)))

    async def pause(request: web.Request) -> web.Response:
        order = await body(request, requests.PauseLending)
        return answer(await lending.pause(order.seconds, order.at_once))

    async def resume(request: web.Request) -> web.Response:
        return answer(await lending.resume())

    return [
        web.get("/lending", state),
        web.post("/lending", change),
        web.post("/lending/pause", pause),
        web.post("/lending/resume", resume),
    ]


def history_key_routes(key: ChatKey) -> list[web.RouteDef]:
    """Return the routes for the key that encrypts the chat history. GET reads the key, and POST creates it if there is
    none."""

    async def described(value: str | None) -> web.Response:
        where, place = await key.where(), await key.place()
        return answer(HistoryKey(value, said(where), where, said(place), place))

    async def read(request: web.Request) -> web.Response:
        return await described(await key.read())

    async def make(request: web.Request) -> web.Response:
        return await described(await key.make())

    return [web.get("/history/key", read), web.post("/history/key", make)]


class ControlServer:
    """The server of the control API, which the window and the command line use.

    It listens on its own loopback port and requires a token on every route.
    """

    def __init__(self, answers: DetachedAnswers, routes: Iterable[web.RouteDef]) -> None:
        self.answers = answers
        self.token = secrets.token_urlsafe(32)
        self.port = 0
        self._slow_clients = SlowClientGuard()
        checked = guard(self.token, lambda: self.port, self._slow_clients.note_request)
        app = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=[checked])
        app.add_routes(routes)
        self._runner = runner_of(app)

    @property
    def routes(self) -> Collection[web.AbstractRoute]:
        """All routes of the API."""
        return self._runner.app.router.routes()

    async def start(self, group: asyncio.TaskGroup) -> None:
        """Listen on a free loopback port."""
        self.answers.open(group)
        await self._runner.setup()
        self.port = await self._slow_clients.listen(self._runner, [0])

    async def stop(self) -> None:
        self._slow_clients.close()
        await self.answers.close()
        await self._runner.cleanup()


class Servers:
    """The servers of a node, which start and stop together. Each server authenticates its own clients."""

    def __init__(self, node: Node, stop: Callable[[], None]) -> None:
        """Create the servers. `stop` ends the node."""
        choices, interfaces = node.choices, node.discovery.choice.interfaces
        self.api = ChatApiService(
            node.home,
            choices,
            node.model_manager,
            node.model_sources.models,
            node.household_models,
            node.household.rights,
            node.journal,
            LanServer(node.home, lambda: interfaces, SlowClientGuard(), node.network.is_known_host),
        )
        node.other_servers = node.model_manager.other_servers = self.api.upstream_admin.turned_on
        self.api.upstreams.changed = self.api.upstream_speeds.changed = node.changed
        household_updates = HouseholdUpdates(node.network, node.journal.note)
        self.updates = UpdateService(
            node.home.root / "updates.json",
            Updater(Build.of_this_copy(), VersionStore.of_this_process(), node.home.root / "versions"),
            lambda: choices.now.look_for_updates,
            node.journal.note,
            machine=lambda: node.network.id,
            household=household_updates,
            members=lambda: {link.hello.name: link.hello.protocol for link in node.network.links.values()},
        )
        kept = DetachedAnswers()
        self.control = ControlServer(
            kept, [*_routes(node, self.api, kept, stop), *UpdateRoutes(self.updates, stop, node.home.root).routes()]
        )
        node.network.mount(ANSWERS_PATH, self.api.for_members())
        node.network.mount(MODELS_PATH, node.model_sources.server.application())
        node.network.mount(UPDATES_PATH, household_updates.application())
        node.network.mount(PACKS_PATH, node.pack_server.application())

    async def start(self, group: asyncio.TaskGroup) -> None:
        await self.control.start(group)
        self._looking = group.create_task(self.updates.run(), name="updates")
        await self.api.start(group)

    async def stop(self) -> None:
        self._looking.cancel()
        await self.api.stop()
        await self.control.stop()


def _routes(node: Node, api: ChatApiService, kept: DetachedAnswers, stop: Callable[[], None]) -> list[web.RouteDef]:
    """Return all routes of the control API."""
    home, network, household, model_manager = node.home, node.network, node.household, node.model_manager
    doctor = Doctor(
        home,
        network,
        household,
        node.discovery,
        node.lending_policy,
        node.links,
        model_manager,
        node.busy,
        node.graphics,
    )
    settings = OwnSettings(
        home, node.options, node.choices, network, node.discovery, node.model_sources.folders, node.changed
    )
    state = StateRoutes(node.snapshot, node.events, node.journal, doctor, stop)
    machines = HouseholdRoutes(
        network, household, node.naming, model_manager.planner_inputs.quarantine, model_manager.loaded
    )
    models = ShelfRoutes(
        node.model_sources.models, model_manager, node.household_models, node.speed_measurer, household
    )
    answers = AnswerRoutes(model_manager, node.household_models, api.upstreams, kept)
    machine = MachineRoutes(home, node.hardware, node.model_sources.folders, settings)
    return [
        *state.routes(),
        *machines.routes(),
        *lending_route_defs(node.lending_policy),
        *models.routes(),
        *model_routes.routes(node.model_sources),
        *api_routes.routes(api),
        *phone_routes.routes(api),
        *history_key_routes(ChatKey(home)),
        *answers.routes(),
        *machine.routes(),
        *prompt_routes.routes(node.prompts, node.choices),
        *EngineRoutes(
            node.graphics, node.pack_copies, node.added_engine, node.engine_installation, node.choices
        ).routes(),
        *CardRoutes(node.graphics, node.choices, node.changed, node.lending_policy.judge_afresh).routes(),
        *link_route_defs(node.links, household),
    ]
