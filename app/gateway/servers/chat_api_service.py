"""The complete Chat API and its loopback port. It is off until the owner turns it on, and has its own keys."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import Any
from weakref import WeakSet

import msgspec
from aiohttp import web
from aiohttp.typedefs import Middleware
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

from app.api import chat_api, requests
from app.api.phones import Phones
from app.catalog.shelf import GUIDE
from app.core.errors import AppError, BadInput
from app.core.reasons import said
from app.gateway.access import allowed_origins
from app.gateway.access.allowed_origins import Access, add_cors
from app.gateway.access.auth import Auth, KeyAuthenticator, defer_bodies
from app.gateway.access.slow_client_guard import SlowClientGuard, runner_of
from app.gateway.access.token_budget import TokenBudget
from app.gateway.answer_service import AnswerService
from app.gateway.dialects.anthropic_routes import AnthropicRoutes
from app.gateway.dialects.embedding_routes import EmbeddingRoutes
from app.gateway.dialects.ollama_routes import ModelUnloader, OllamaRoutes
from app.gateway.dialects.openai_routes import OpenAiRoutes, ServerRoutes
from app.gateway.dialects.responses_routes import ResponsesRoutes
from app.gateway.metrics import Metrics, gauges
from app.gateway.model_cards import ListModels, ModelCards
from app.gateway.open_requests import OpenRequests
from app.gateway.phones.phone_auth import by_route
from app.gateway.phones.phone_page import add_safe_headers
from app.gateway.phones.phone_service import PhoneService
from app.gateway.servers.host_proxy import forward_to_host
from app.gateway.servers.lan_server import LanServer
from app.gateway.servers.member_server import MemberAuthenticator, MemberRoutes, name_host_in_errors, while_allowed
from app.gateway.upstreams.upstream_admin import UpstreamAdmin
from app.gateway.upstreams.upstream_speed import UpstreamSpeeds
from app.gateway.upstreams.upstreams import Upstreams
from app.machine.keyring_store import open_keystore
from app.machine.paths import Home, home_option
from app.machine.secret_stores import ApiKeys, SecretMap
from app.machine.settings import ApiSettings, KeyLimits, SettingsStore, Upstream
from app.node.control.guard import MAX_BODY_BYTES, loopback_hosts
from app.node.control.shelf_routes import ShelfModels
from app.node.journal import Journal
from app.node.known_household import Rights
from app.node.models.household_models import HouseholdModels
from app.node.models.model_manager import ModelManager

log = logging.getLogger(__name__)

Json = dict[str, Any]
NEAR_PORTS = 10  # the configured port and those after it, then as many for the LAN
LOOK_SECONDS = 10.0  # between checks of this computer's addresses


class LoopbackPort:
    """The API's loopback port, which may be open or closed."""

    def __init__(self) -> None:
        self.number = 0  # 0 if closed
        self.guard = SlowClientGuard()
        self._runner: web.AppRunner | None = None

    async def open(self, application: web.Application, ports: Iterable[int]) -> None:
        """Listen on the first free port of `ports`. Raises BadInput if none is free."""
        self._runner = runner_of(application)
        await self._runner.setup()
        try:
            self.number = await self.guard.listen(self._runner, ports)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Stop listening, and close every connection. Does nothing if the port is closed."""
        runner, self._runner, self.number = self._runner, None, 0
        self.guard.close()
        if runner is not None:
            await runner.cleanup()


class ChatApiService:
    """The complete API: its settings, keys, queue, upstreams and servers.

    `lan` is its server on the LAN.
    """

    def __init__(
        self,
        home: Home,
        choices: SettingsStore,
        hosting: ModelManager,
        models: ShelfModels,
        household_models: HouseholdModels,
        rights: Rights,
        journal: Journal,
        lan: LanServer,
    ) -> None:
        self._home, self._choices, self._hosting, self._models = home, choices, hosting, models
        self._household_models, self._rights = household_models, rights
        self.keys = ApiKeys(home)
        self.metrics = Metrics()
        self.budget = TokenBudget(self._tokens_of, time.monotonic)
        self.upstreams = Upstreams(
            lambda: self.choice.upstreams,
            SecretMap(home, "upstream keys"),
            home.household / "upstreams.json",
            journal.note,
        )
        self.upstream_speeds = UpstreamSpeeds(self.upstreams, home.household / "upstream_speeds.json")
        self.upstream_admin = UpstreamAdmin(
            self.upstreams, self.upstream_speeds, lambda: self.choice.upstreams, self._with_upstreams
        )
        self.answering = AnswerService(
            hosting, models, lambda: self.choice.may_load, self.metrics, self.budget, self.upstreams
        )
        self.answering.speed_of = lambda name, model: self.upstream_speeds.of(name).get(model)
        self.cards = ModelCards(self.answering)
        self._loopback = LoopbackPort()
        self._n_open = Counter[str]()  # requests of each key on both servers
        self._open_requests = WeakSet[OpenRequests]()  # one for each server
        self.lan = lan
        self.phones = PhoneService(
            home, choices, lan, self._ready_contexts, self._models_for_phones, self._end_requests_of, journal.note
        )
        self._lan_programs: OpenRequests | None = None  # of programs on the LAN
        self._watching: asyncio.Task[None] | None = None
        self._turn, self._changing = asyncio.Lock(), asyncio.Lock()

    @property
    def port(self) -> int:
        """Return the loopback port, or 0 if the API is off."""
        return self._loopback.number

    @property
    def choice(self) -> ApiSettings:
        return self._choices.now.api

    def _tokens_of(self, key: str) -> int:
        return self.choice.tokens_of(key)

    def _max_open_of(self, key: str) -> int:
        return self.choice.at_once_of(key)

    async def start(self, group: asyncio.TaskGroup) -> None:
        """Open the servers if the owner has turned the API on.

        If this fails, the error is only logged, because the household needs the node even without the API.
        """
        self.lan.start(group)
        self.upstreams.report_uncounted()
        self._watching = group.create_task(self._watch_addresses(), name="addresses of the API")
        self._hosting.on_answer_over = self.answering.queue.admit
        self._hosting.on_answer_made = self.metrics.count
        try:
            if self.choice.on:
                await self._open()
            await self._apply_lan(self.choice)
        except AppError:
            log.exception("the Chat API stays closed")

    async def stop(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
        await self._close()

    async def _close(self) -> None:
        async with self._turn:
            await self.lan.close()
            await self._loopback.close()

    async def _close_loopback(self) -> None:
        async with self._turn:
            await self._loopback.close()

    async def state(self) -> chat_api.ChatApi:
        """Return the API's state, which contains no keys."""
        choice, where = self.choice, await self.keys.where()
        return chat_api.ChatApi(
            on=choice.on,
            port=choice.port,
            may_load=choice.may_load,
            ollama_open=choice.ollama_open,
            lan=choice.lan,
            at_once=choice.at_once,
            tokens_a_minute=choice.tokens_a_minute,
            host_names=list(choice.host_names),
            origins=list(choice.origins),
            limits={
                key: chat_api.KeyLimits(limits.at_once, limits.tokens_a_minute) for key, limits in choice.limits.items()
            },
            upstreams=await self.upstream_admin.state(),
            listening=bool(self.port),
            address=f"http://127.0.0.1:{self.port}/v1" if self.port else None,
            lan_addresses=[f"https://{name}/v1" for name in sorted(self.lan.host_names())],
            listens_at=self.port or None,
            keys=sorted(await self.keys.known()) if choice.on else [],
            keys_where=said(where),
            keys_where_facts=where,
            waiting=self.answering.queue.n_waiting,
            running=self.answering.queue.n_running,
        )

    async def change(self, order: requests.ChangeApi) -> chat_api.ChatApi:
        """Save the settings, and open or close the servers accordingly.

        Raises Refused, or BadInput if no port is free.
        """
        changes = {
            field: value
            for field in order.__struct_fields__
            if field in ApiSettings.__struct_fields__ and (value := getattr(order, field)) is not msgspec.UNSET
        }
        async with self._changing:  # concurrent changes are both kept
            changes |= allowed_origins.apply_changes(self.choice, order)
            choice = msgspec.structs.replace(self.choice, **changes)
            port_changes = choice.port != self.choice.port
            if choice.on and (port_changes or not self.port):
                await self._reopen(choice.port)
            elif not choice.on:
                await self._close_loopback()
            await self._apply_lan_or_close(choice)
            await self._choices.change(lambda now: msgspec.structs.replace(now, api=choice))
            if not (choice.on and choice.lan) and self._lan_programs is not None:
                await self._lan_programs.end_all()  # the server may stay open for phones
        return await self.state()

    async def change_phones(self, on: bool) -> Phones:
        """Turn the web chat for phones on or off. Raises Refused, or BadInput if no port is free."""
        async with self._changing:
            await self._apply_lan(self.choice, for_phones=on)
            await self._choices.change(lambda now: msgspec.structs.replace(now, phones=on))
            if not on:
                self.phones.close()
        return await self.phones.state()

    async def limit(self, order: requests.LimitKey) -> chat_api.ChatApi:
        """Save the limits of a key. Raises BadInput if the key does not exist."""
        known = await self.keys.all()
        if order.name not in known:
            raise BadInput("api_key_unknown", name=order.name[:40], there=", ".join(sorted(known)))
        own = KeyLimits(order.at_once, order.tokens_a_minute)
        await self._save(lambda now: msgspec.structs.replace(now, limits=now.limits | {order.name: own}))
        return await self.state()

    async def make_key(self, name: str) -> str:
        """Create a key. If it replaces an earlier key, end that key's requests. Raises BadInput, Refused."""
        key = await self.keys.make(name)
        self._end_requests_of(name)
        return key

    async def remove_key(self, name: str) -> None:
        """Remove a key and its limits, and end its requests. Raises BadInput, Refused."""
        await self.keys.remove(name)
        self._end_requests_of(name)
        await self._save(
            lambda now: msgspec.structs.replace(
                now, limits={key: own for key, own in now.limits.items() if key != name}
            )
        )

    def _end_requests_of(self, key: str) -> None:
        for door in self._open_requests:
            door.end_requests_of(key)

    async def _with_upstreams(self, how: Callable[[dict[str, Upstream]], dict[str, Upstream]]) -> None:
        await self._save(lambda now: msgspec.structs.replace(now, upstreams=how(now.upstreams)))
        self.upstreams.changed()

    async def _save(self, how: Callable[[ApiSettings], ApiSettings]) -> None:
        async with self._changing:
            await self._choices.change(lambda now: msgspec.structs.replace(now, api=how(now.api)))

    async def _apply_lan_or_close(self, choice: ApiSettings) -> None:
        try:
            await self._apply_lan(choice)
        except AppError:
            if not self.choice.on:
                await self._close_loopback()
            raise

    async def _apply_lan(self, choice: ApiSettings, for_phones: bool | None = None) -> None:
        """Open or close the LAN server according to the settings. Raises BadInput, Refused.

        for_phones: whether phones may chat here. None means the saved setting.
        """
        for_phones = self.phones.on if for_phones is None else for_phones
        async with self._turn:
            if not (choice.on and choice.lan) and not for_phones:
                await self.lan.close()
            elif not self.lan.port:
                ports = self._ports(choice.port + NEAR_PORTS)
                keys = await open_keystore(self._home)
                await self.lan.open(self._lan_application(), ports, keys)

    def _serves_lan_programs(self) -> bool:
        return self.choice.on and self.choice.lan

    def _opens_lan(self) -> bool:
        return self._serves_lan_programs() or self.phones.on

    async def _watch_addresses(self) -> None:
        """Update the LAN server whenever this computer's addresses change."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if self._opens_lan() and await self.lan.addresses_changed():
                async with self._changing:
                    try:
                        await self._follow()
                    except AppError as error:
                        log.warning("the Chat API is not on the LAN: %s", error.reason)

    async def _follow(self) -> None:
        """Make the LAN server listen at this computer's current addresses, and reopen it if necessary.

        Raises BadInput, Refused.
        """
        async with self._turn:
            keys = await open_keystore(self._home)
            if await self.lan.follow_addresses(keys):
                return
            await self.lan.close()
        await self._apply_lan(self.choice)

    async def _reopen(self, port: int) -> None:
        """Move the loopback server to another port. If that fails, go back to the current one."""
        was = self.port
        try:
            await self._open(port)
        except AppError:
            if was:
                await self._open(was)
            raise

    async def _open(self, port: int | None = None) -> None:
        async with self._turn:
            await self._loopback.close()
            await self.keys.all()
            application = self._application(self._loopback_auth())
            await self._loopback.open(application, self._ports(port or self.choice.port))
            log.info("the Chat API listens at port %d", self.port)

    def _ports(self, first: int) -> range:
        return range(first, min(first + NEAR_PORTS, 1 << 16))

    def _loopback_auth(self) -> Auth:
        return Auth(
            KeyAuthenticator(
                self.keys,
                self._access(lambda: loopback_hosts(self.port)),
                lambda: self.choice.ollama_open,
                tells_health=True,  # like llama.cpp's server, but only to programs on this computer
            ),
            self.metrics,
            self._loopback.guard.note_request,
            self._max_open_of,
            self._n_open,
            "" if (home := self._home).is_default else home_option(home.root),
        )

    def _lan_auth(self) -> Auth:
        """Return the checks for requests from the LAN, which always need a key."""
        return Auth(
            KeyAuthenticator(
                self.keys,
                self._access(self.lan.host_names),
                lambda: False,
                tells_health=False,
                is_open=self._serves_lan_programs,
            ),
            self.metrics,
            self.lan.slow_clients.note_request,
            self._max_open_of,
            self._n_open,
            on_admission=self.lan.known.met,
        )

    def _phone_auth(self) -> Auth:
        """Return the checks for phones. The LAN server is all that phones share with programs."""
        return Auth(
            self.phones.authenticator(self._access(self.lan.host_names)),
            self.metrics,
            self.lan.slow_clients.note_request,
            self._max_open_of,
            self._n_open,
        )

    def _access(self, own: Callable[[], Collection[str]]) -> Access:
        return Access(own, lambda: self.choice.host_names, lambda: self.choice.origins)

    def _lan_application(self) -> web.Application:
        """Return the application for the LAN: the programs' application, plus the phones' routes and checks."""
        programs, phones = self._lan_auth(), self._phone_auth()
        self._lan_programs = programs.open_requests
        app = self._application(programs, by_route(phones.check, programs.check), self.phones.note_use)
        app.on_response_prepare.append(add_safe_headers)
        app.on_shutdown.append(phones.open_requests.end_all)
        self._open_requests.add(phones.open_requests)
        app.add_routes(defer_bodies(self.phones.routes(OpenAiRoutes(self.answering, self._own_models))))
        return app

    def _application(self, auth: Auth, check: Middleware | None = None, *inner: Middleware) -> web.Application:
        """Return the application for programs. It forwards requests for another host's model to that host."""
        household_models = self._household_models
        forward = forward_to_host(household_models)
        app = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=[check or auth.check, *inner, forward])

        async def listed() -> list[Json]:
            if household_models.answers_all:
                return [msgspec.to_builtins(model) for model in await household_models.listed()]
            shared = [msgspec.to_builtins(model) for model in household_models.listed_by_reference()]
            return await self._own_models() + shared

        app.on_response_prepare.append(add_cors)
        app.on_shutdown.append(auth.open_requests.end_all)
        self._open_requests.add(auth.open_requests)
        self._add_routes(app, listed)
        app.add_routes(defer_bodies([web.get("/metrics", self._metrics_page), web.get("/openapi.json", _openapi)]))
        server = ServerRoutes(self.answering, self._hosting, listed, self.cards)
        app.add_routes(defer_bodies(server.routes()))
        return app

    async def _metrics_page(self, request: web.Request) -> web.Response:
        page = self.metrics.page(gauges(self._hosting, self.answering.queue))
        return web.Response(body=page, headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})

    def _ready_contexts(self) -> dict[str, int]:
        """Return the models of this computer that can answer at once, with their context lengths."""
        return {name: placement.context for name, placement in self.answering.ready_models().items()}

    async def _models_for_phones(self) -> list[Json]:
        """Return the models that a phone can use now: those loaded here, and those that other hosts share."""
        ready, models = self.answering.ready_models(), self._household_models
        own = [
            {"name": name, "machine": "", "context": placement.context, "vision": placement.sees}
            for name, placement in ready.items()
        ]
        has_guide = GUIDE in ready
        offered = await models.listed() if models.answers_all else models.listed_by_reference(has_guide=has_guide)
        return own + [
            {"name": model.name, "machine": model.machine, "context": model.context, "vision": model.vision}
            for model in offered
            if model.context
        ]

    async def _own_models(self) -> list[Json]:
        return [msgspec.to_builtins(model) for model in await self._models.listed()]

    def for_members(self) -> web.Application:
        """Return the application for members, which reach it over their links. It requires no key and is always on."""
        may = self._rights.may_answer_for
        auth = Auth(MemberAuthenticator(may), self.metrics, lambda _: None, self._max_open_of, self._n_open)
        host = self._rights.name
        within = [while_allowed(may), auth.check, name_host_in_errors(host)]
        app = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=within)
        listed = self._own_models
        self._add_routes(app, listed)
        routes = MemberRoutes(self.answering, self.budget, self._hosting, listed, host)
        app.add_routes(defer_bodies(routes.routes()))
        return app

    def _add_routes(self, app: web.Application, listed: ListModels) -> None:
        unloader = ModelUnloader(self._hosting, lambda: self.choice.may_load, self.answering)
        for part in (
            OpenAiRoutes(self.answering, listed),
            ResponsesRoutes(self.answering),
            AnthropicRoutes(self.answering),
            OllamaRoutes(self.answering, listed, unloader, self.cards),
            EmbeddingRoutes(self._hosting.embeddings, self.budget, self.metrics),
        ):
            app.add_routes(defer_bodies(part.routes()))


async def _openapi(request: web.Request) -> web.Response:
    from app.gateway.openapi_document import description  # this imports a hundred classes that few programs need

    return web.Response(body=description(), content_type="application/json")
