"""The control API's routes over the key of the window's encrypted chats."""

from __future__ import annotations

from aiohttp import web

from app.machine.chat_key import ChatKey


def routes(key: ChatKey) -> list[web.RouteDef]:
    """Both tell the key, or null, and where it is kept; POST makes one where there is none."""

    async def read(request: web.Request) -> web.Response:
        return web.json_response({"key": await key.read(), "where": await key.where()})

    async def make(request: web.Request) -> web.Response:
        return web.json_response({"key": await key.make(), "where": await key.where()})

    return [web.get("/history/key", read), web.post("/history/key", make)]
