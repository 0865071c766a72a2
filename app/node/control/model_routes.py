"""Control API routes for obtaining models: the catalog, the hub, downloads and the models folder."""

from __future__ import annotations

from aiohttp import web

from app.api import requests
from app.api.downloads import DownloadResponse, Downloads
from app.api.responses import MachineRefs
from app.core.errors import BadInput, Reason
from app.node.control.json_bodies import answer, body
from app.node.downloads.model_sources import ModelSources

MOST = 60


def routes(sources: ModelSources) -> list[web.RouteDef]:
    """Return the routes for obtaining models."""
    pages = _Routes(sources)
    return [
        web.get("/catalog", pages.catalog),
        web.get("/search", pages.search),
        web.get("/search/files", pages.files),
        web.get("/found", pages.found),
        web.get("/downloads", pages.downloads),
        web.post("/downloads", pages.start),
        web.post("/copies", pages.copies),
        web.post("/downloads/pause", pages.pause_all),
        web.post("/downloads/resume", pages.resume_all),
        web.post("/downloads/{id}/move", pages.move_download),
        web.post("/downloads/{id}/pause", pages.pause),
        web.post("/downloads/{id}/resume", pages.resume),
        web.delete("/downloads/{id}", pages.remove),
        web.get("/folder", pages.folder),
        web.post("/folder", pages.choose_folder),
        web.post("/folder/look", pages.look_at_folder),
        web.post("/folder/move", pages.move),
        web.delete("/folder/move", pages.stop_moving),
        web.get("/token", pages.token),
        web.post("/token", pages.set_token),
        web.delete("/token", pages.clear_token),
    ]


class _Routes:
    def __init__(self, sources: ModelSources) -> None:
        self._sources = sources

    async def catalog(self, request: web.Request) -> web.Response:
        return answer(await self._sources.catalog())

    async def search(self, request: web.Request) -> web.Response:
        limit = request.query.get("limit", "30")
        if not (limit.isascii() and limit.isdigit() and len(limit) < 9 and 1 <= int(limit) <= MOST):
            raise BadInput("bad_request", why=Reason("limit_wrong", {"most": MOST}))
        return answer(await self._sources.search(request.query.get("q", ""), int(limit)))

    async def files(self, request: web.Request) -> web.Response:
        return answer(await self._sources.files(request.query.get("repo", "")))

    async def found(self, request: web.Request) -> web.Response:
        return answer(await self._sources.other_apps())

    async def downloads(self, request: web.Request) -> web.Response:
        return answer(Downloads(list(self._sources.downloads.snapshot().values())))

    async def start(self, request: web.Request) -> web.Response:
        order = await body(request, requests.StartDownload)
        return answer(DownloadResponse(await self._sources.start(order)))

    async def copies(self, request: web.Request) -> web.Response:
        order = await body(request, requests.FindCopies)
        return answer(MachineRefs(await self._sources.copies_of(order)))

    async def pause(self, request: web.Request) -> web.Response:
        paused = await self._sources.downloads.pause(request.match_info["id"])
        return answer(DownloadResponse(paused))

    async def resume(self, request: web.Request) -> web.Response:
        resumed = await self._sources.downloads.resume(request.match_info["id"])
        return answer(DownloadResponse(resumed))

    async def pause_all(self, request: web.Request) -> web.Response:
        return answer(Downloads(list((await self._sources.downloads.pause_all()).values())))

    async def resume_all(self, request: web.Request) -> web.Response:
        return answer(Downloads(list((await self._sources.downloads.resume_all()).values())))

    async def move_download(self, request: web.Request) -> web.Response:
        order = await body(request, requests.MoveDownload)
        moved = await self._sources.downloads.move(request.match_info["id"], order.before)
        return answer(Downloads(list(moved.values())))

    async def remove(self, request: web.Request) -> web.Response:
        return answer(await self._sources.downloads.remove(request.match_info["id"]))

    async def folder(self, request: web.Request) -> web.Response:
        return answer(await self._sources.folder.state())

    async def choose_folder(self, request: web.Request) -> web.Response:
        order = await body(request, requests.ChooseFolder)
        chosen = await self._sources.folder.choose(order.path, move=order.move, new=order.new)
        return answer(chosen)

    async def look_at_folder(self, request: web.Request) -> web.Response:
        order = await body(request, requests.ChooseFolder)
        return answer(await self._sources.folder.preview(order.path))

    async def move(self, request: web.Request) -> web.Response:
        return answer(await self._sources.folder.move())

    async def stop_moving(self, request: web.Request) -> web.Response:
        return answer(await self._sources.folder.stop())

    async def token(self, request: web.Request) -> web.Response:
        return answer(await self._sources.token())

    async def set_token(self, request: web.Request) -> web.Response:
        order = await body(request, requests.SetToken)
        return answer(await self._sources.set_token(order.token))

    async def clear_token(self, request: web.Request) -> web.Response:
        return answer(await self._sources.clear_token())
