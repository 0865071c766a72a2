"""Control API routes for the phones and tablets that may chat here."""

from __future__ import annotations

from aiohttp import web

from app.api import requests
from app.gateway.servers.chat_api_service import ChatApiService
from app.node.control.json_bodies import answer, body


def routes(api: ChatApiService) -> list[web.RouteDef]:
    """Return the routes for phones: the switch, the one-time code, and the list of devices."""

    async def state(request: web.Request) -> web.Response:
        return answer(await api.phones.state())

    async def change(request: web.Request) -> web.Response:
        order = await body(request, requests.ChangePhones)
        return answer(await api.change_phones(order.on))

    async def code(request: web.Request) -> web.Response:
        return answer(api.phones.make_code())

    async def void(request: web.Request) -> web.Response:
        api.phones.code.clear()
        return await state(request)

    async def remove(request: web.Request) -> web.Response:
        return answer(await api.phones.remove(request.match_info["ref"]))

    return [
        web.get("/phones", state),
        web.post("/phones", change),
        web.post("/phones/code", code),
        web.delete("/phones/code", void),
        web.delete("/phones/devices/{ref}", remove),
    ]
