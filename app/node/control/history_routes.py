"""The control API's routes over the key of the window's encrypted chats."""

from __future__ import annotations

from aiohttp import web

from app.machine.secrets.chat_key import ChatKey


def history_key_routes(key: ChatKey) -> list[web.RouteDef]:
    """Both tell the key, or null, and where it is kept; POST makes one where there is none."""

    async def told(found: str | None) -> web.Response:
        where = {"where": await key.where(), "place": await key.place()}
        return web.json_response({"key": found, **where})

    async def read(request: web.Request) -> web.Response:
        return await told(await key.read())

    async def make(request: web.Request) -> web.Response:
        return await told(await key.make())

    return [web.get("/history/key", read), web.post("/history/key", make)]
