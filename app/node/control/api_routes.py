"""Control API routes for the Chat API: its state, settings, keys and upstreams."""

from __future__ import annotations

from aiohttp import web

from app.api import requests
from app.api.chat_api import ApiKey, ApiKeys, Certificate, RemoveKeyResponse, Upstreams
from app.core.reasons import said
from app.gateway.servers.chat_api_service import ChatApiService
from app.node.control.json_bodies import answer, body


def routes(api: ChatApiService) -> list[web.RouteDef]:
    """Return the routes for the Chat API."""

    async def state(request: web.Request) -> web.Response:
        return answer(await api.state())

    async def change(request: web.Request) -> web.Response:
        order = await body(request, requests.ChangeApi)
        return answer(await api.change(order))

    async def keys(request: web.Request) -> web.Response:
        known, where = await api.keys.known(), await api.keys.where()
        return answer(ApiKeys([ApiKey(name, key) for name, key in sorted(known.items())], said(where), where))

    async def make(request: web.Request) -> web.Response:
        order = await body(request, requests.ApiKey)
        return answer(ApiKey(order.name, await api.make_key(order.name)))

    async def remove(request: web.Request) -> web.Response:
        name = request.match_info["name"]
        await api.remove_key(name)
        return answer(RemoveKeyResponse(name))

    async def certificate(request: web.Request) -> web.Response:
        return answer(Certificate(api.lan.certificate or None))

    async def limit(request: web.Request) -> web.Response:
        return answer(await api.limit(await body(request, requests.LimitKey)))

    return [
        web.get("/api/certificate", certificate),
        web.post("/api/limits", limit),
        web.get("/api", state),
        web.post("/api", change),
        web.get("/api/keys", keys),
        web.post("/api/keys", make),
        web.delete("/api/keys/{name}", remove),
        *_upstream_routes(api),
    ]


def _upstream_routes(api: ChatApiService) -> list[web.RouteDef]:
    async def upstreams(request: web.Request) -> web.Response:
        return answer(Upstreams(await api.upstream_admin.state()))

    async def add(request: web.Request) -> web.Response:
        await api.upstream_admin.add(await body(request, requests.AddUpstream))
        return await upstreams(request)

    async def change_one(request: web.Request) -> web.Response:
        order = await body(request, requests.ChangeUpstream)
        await api.upstream_admin.change(request.match_info["name"], order)
        return await upstreams(request)

    async def test_one(request: web.Request) -> web.Response:
        return answer(await api.upstream_admin.test(request.match_info["name"]))

    async def measure_one(request: web.Request) -> web.Response:
        order = await body(request, requests.MeasureUpstream)
        return answer(await api.upstream_admin.measure(request.match_info["name"], order.model))

    async def remove_one(request: web.Request) -> web.Response:
        await api.upstream_admin.remove(request.match_info["name"])
        return await upstreams(request)

    return [
        web.get("/api/upstreams", upstreams),
        web.post("/api/upstreams", add),
        web.post("/api/upstreams/{name}", change_one),
        web.post("/api/upstreams/{name}/test", test_one),
        web.post("/api/upstreams/{name}/measure", measure_one),
        web.delete("/api/upstreams/{name}", remove_one),
    ]
