"""The service for phones and tablets: its on-off switch, one-time code, devices, and routes on the LAN server."""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Annotated, Any

import msgspec
from aiohttp import web
from msgspec import Meta

from app.api import phones as api
from app.core.errors import AppError, BadInput, Reason, Refused
from app.gateway.access.allowed_origins import Access
from app.gateway.access.auth import BODY, CALLER, Handler
from app.gateway.answer_service import ANY_NAMES
from app.gateway.dialects.openai_routes import OpenAiRoutes
from app.gateway.phones.device_store import DeviceStore
from app.gateway.phones.phone_auth import JOIN_ROUTE, PhoneAuthenticator, caller_of, device_of
from app.gateway.phones.phone_page import PREFIX, send_file
from app.gateway.servers.host_proxy import model_name
from app.gateway.servers.lan_server import LanServer
from app.gateway.streaming import read
from app.machine.paths import Home
from app.machine.settings import SettingsStore

log = logging.getLogger(__name__)

Json = dict[str, Any]
MODELS_ROUTE, CHAT_ROUTE = "/chat/v1/models", "/chat/v1/chat/completions"
WRONG_CODE_SECONDS = 1.0  # a wrong code is answered this late
DIGITS = 8
CODE_SECONDS = 300.0
MAX_WRONG_TRIES = 5


class JoinCode:
    """The only valid code, if any.

    It becomes invalid when it is used or expires, or after too many wrong attempts.

    With 8 digits and 5 attempts, a stranger on the network has a chance of one in twenty million to guess a code.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._code, self._expires_at, self._n_wrong = "", 0.0, 0

    def make(self) -> str:
        """Return a new code, and make any earlier one invalid."""
        self._code = f"{secrets.randbelow(10**DIGITS):0{DIGITS}}"
        self._expires_at, self._n_wrong = self._clock() + CODE_SECONDS, 0
        return self._code

    def clear(self) -> None:
        """Make the code invalid."""
        self._code = ""

    def seconds_left(self) -> float:
        """Return how long the code remains valid in seconds, or 0 if there is none."""
        return max(0.0, self._expires_at - self._clock()) if self._code else 0.0

    def use(self, presented: str) -> bool:
        """Return whether this is the valid code.

        If it is, it cannot be used again. The comparison takes constant time.
        """
        if not self.seconds_left():
            self.clear()
            return False
        digits = "".join(presented.split())  # people type it in two groups
        if hmac.compare_digest(digits.encode("utf-8", "replace"), self._code.encode()):
            self.clear()
            return True
        self._n_wrong += 1
        if self._n_wrong >= MAX_WRONG_TRIES:
            self.clear()
        return False


class _Join(msgspec.Struct):
    """The body of a request to add a device."""

    code: Annotated[str, Meta(max_length=20)]
    name: Annotated[str, Meta(max_length=200)] = ""


class PhoneService:
    """The service for phones, without the server itself.

    own_models: returns the models that are ready on this computer. list_models: lists these and the models that other
    hosts share. end_requests: ends all requests of a caller at once. note: reports an event to the owner.
    """

    def __init__(
        self,
        home: Home,
        choices: SettingsStore,
        lan: LanServer,
        own_models: Callable[[], dict[str, int]],
        list_models: Callable[[], Awaitable[list[Json]]],
        end_requests: Callable[[str], None],
        note: Callable[[Reason], None],
    ) -> None:
        self._choices, self._lan = choices, lan
        self._own_models, self._list_models, self._end_requests = own_models, list_models, end_requests
        self.devices = DeviceStore(home.root / "phones.json", note=note)
        self.code = JoinCode(time.monotonic)

    @property
    def on(self) -> bool:
        return self._choices.now.phones

    def authenticator(self, access: Access) -> PhoneAuthenticator:
        return PhoneAuthenticator(self.devices, access, lambda: self.on, lambda: self._lan.addresses)

    async def state(self) -> api.Phones:
        is_open = self.on and bool(self._lan.port)
        return api.Phones(
            on=self.on,
            listening=is_open,
            addresses=self._addresses() if is_open else [],
            fingerprint=await self._lan.fingerprint() if is_open else "",
            code_seconds=self.code.seconds_left(),
            devices=[
                api.Phone(device, known.name, known.added_at, known.used_at)
                for device, known in sorted(self.devices.all().items(), key=lambda item: item[1].added_at)
            ],
        )

    def make_code(self) -> api.PhoneCode:
        """Return a new one-time code. Raises Refused or BadInput if no device could use it now."""
        if not self.on:
            raise Refused("phones_off")
        if not self._lan.port:
            raise Refused("api_no_lan")
        self.devices.require_room()
        return api.PhoneCode(self.code.make(), self.code.seconds_left(), self._addresses())

    async def remove(self, ref: str) -> api.Phones:
        """Remove a device and end its requests. Raises BadInput or DoesNotFit."""
        self._end_requests(caller_of(await self.devices.remove(ref)))
        return await self.state()

    def close(self) -> None:
        """Make the code invalid and end all answers to phones, because the owner has turned off the web chat."""
        self.code.clear()
        for device in self.devices.all():
            self._end_requests(caller_of(device))

    def routes(self, openai: OpenAiRoutes) -> list[web.RouteDef]:
        """Return the routes for phones: the page and the requests that it sends.

        Phones can use no other routes.
        """

        async def chat(request: web.Request) -> web.StreamResponse:
            name, own = model_name(request[BODY]), self._own_models()
            if name not in own and not (name in ANY_NAMES and own):
                raise BadInput("phone_model_gone", name=name[:100])
            # even if the model is unloaded, or full, while this waits
            request[CALLER] = replace(request[CALLER], only_loaded=True)
            return await openai.chat(request)

        return [
            web.get("/chat", _to_page),
            web.get(PREFIX, send_file),
            web.post(JOIN_ROUTE, self._join),
            web.get(MODELS_ROUTE, self._models),
            web.post(CHAT_ROUTE, chat),
            web.get(PREFIX + "{name}", send_file),
        ]

    def _addresses(self) -> list[str]:
        return [f"https://{name}{PREFIX}" for name in self._lan.sorted_host_names()]

    async def _join(self, request: web.Request) -> web.Response:
        order = read(request, _Join)
        if not self.code.use(order.code):
            await asyncio.sleep(WRONG_CODE_SECONDS)
            raise Refused("phone_code_wrong")
        token = await self.devices.add(order.name)
        device = self.devices.owner(token) or ""
        log.info("%s joined from %s", caller_of(device), request.remote)
        return web.json_response({"token": token, "name": self.devices.name(device)})

    async def _models(self, request: web.Request) -> web.Response:
        return web.json_response({"models": await self._list_models(), "host": self._choices.now.name})

    @web.middleware
    async def note_use(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Record that a device has asked a question, regardless of which host answers it."""
        device = device_of(request[CALLER].key)
        if self.devices.name(device):
            self._lan.known.met(request.remote or "")  # it has proved its identity
            try:
                await self.devices.note_use(device)
            except AppError as error:  # a full disk must not end the chat
                log.warning("the last use of a phone is not saved: %s", error.reason)
        return await handler(request)


async def _to_page(request: web.Request) -> web.Response:
    return web.Response(status=308, headers={"Location": PREFIX})
