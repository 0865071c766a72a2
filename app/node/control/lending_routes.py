"""The control API's routes over what this computer lends."""

from __future__ import annotations

from aiohttp import web

from app.node.control import requests as asked
from app.node.lending.lending_policy import LendRules


def lending_routes(lending: LendRules) -> list[web.RouteDef]:
    """Each is a few lines over one method of the rules."""

    async def told(request: web.Request) -> web.Response:
        return web.json_response(lending.all_json())

    async def change(request: web.Request) -> web.Response:
        return web.json_response(
            await lending.change(await asked.body(request, asked.ChangeLending))
        )

    async def pause(request: web.Request) -> web.Response:
        order = await asked.body(request, asked.PauseLending)
        return web.json_response(await lending.pause(order.seconds, order.at_once))

    async def resume(request: web.Request) -> web.Response:
        return web.json_response(await lending.resume())

    return [
        web.get("/lending", told),
        web.post("/lending", change),
        web.post("/lending/pause", pause),
        web.post("/lending/resume", resume),
    ]
