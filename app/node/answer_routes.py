"""The control API's routes over answers that outlive whoever asked."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web

from app.node import requests as asked
from app.node.kept_answers import KeptAnswers, Lines
from app.node.ndjson import stream


def routes(kept: KeptAnswers, ask: Callable[[asked.Ask], Lines]) -> list[web.RouteDef]:
    """POST begins one and follows it, GET follows it again, DELETE stops it."""

    async def known(request: web.Request) -> web.Response:
        return web.json_response({"answers": kept.keys})

    async def begin(request: web.Request) -> web.StreamResponse:
        key, order = _key(request), await asked.body(request, asked.Ask)
        await kept.begin(key, ask(order))
        return await stream(request, kept.follow(key))

    async def follow(request: web.Request) -> web.StreamResponse:
        return await stream(request, kept.follow(_key(request)))

    async def stop(request: web.Request) -> web.Response:
        await kept.stop(_key(request))
        return web.json_response({})

    one = "/answers/{key}"
    return [
        web.get("/answers", known), web.post(one, begin), web.get(one, follow),
        web.delete(one, stop),
    ]  # fmt: skip


def _key(request: web.Request) -> str:
    return request.match_info["key"]
