"""Control API routes for models: the files on disk, plans, loading and unloading."""

from __future__ import annotations

from aiohttp import web

from app.api import models as api
from app.api import requests
from app.api.models import Speeds, Unloaded
from app.node.control.ndjson import Report, stream, with_progress
from app.node.control.request_body import answer, body
from app.node.control.shelf_routes import Models
from app.node.known_household import KnownHousehold
from app.node.models.guest_answers import GuestAnswers
from app.node.models.model_manager import ModelManager
from app.node.planning.measuring import Measuring
from app.node.planning.planning import BATCH_ROWS
from app.node.planning.verdicts import starter, verdicts


class ModelRoutes:
    """Routes for models: the files on disk, plans, loading and unloading."""

    def __init__(
        self,
        models: Models,
        hosting: ModelManager,
        guesting: GuestAnswers,
        measuring: Measuring,
        household: KnownHousehold,
    ) -> None:
        self._models, self._hosting, self._guesting = models, hosting, guesting
        self._measuring, self._household = measuring, household

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/models", self.listed),
            web.post("/models", self.add),
            web.get("/models/{name}", self.model),
            web.delete("/models/{name}", self.remove),
            web.post("/plan", self.plan),
            web.post("/speeds", self.speeds),
            web.post("/verdicts", self.verdicts),
            web.get("/starter", self.starter),
            web.post("/load", self.load),
            web.post("/unload", self.unload),
        ]

    async def listed(self, request: web.Request) -> web.Response:
        offered = await self._guesting.offered()
        return answer(api.Models(await self._models.listed(), offered))

    async def add(self, request: web.Request) -> web.StreamResponse:
        order = await body(request, requests.Import)
        work = with_progress(lambda report: self._models.add(order, report))
        return await stream(request, work)

    async def model(self, request: web.Request) -> web.Response:
        return answer(await self._models.described(request.match_info["name"]))

    async def remove(self, request: web.Request) -> web.Response:
        removed = await self._models.remove(request.match_info["name"])
        self._hosting.forget_failed_load(removed.removed)
        return answer(removed)

    async def plan(self, request: web.Request) -> web.StreamResponse:
        order = await body(request, requests.PlanModel)
        self._guesting.check_alone(order)
        work = with_progress(lambda report: self._hosting.plan(order, report))
        return await stream(request, work)

    async def speeds(self, request: web.Request) -> web.StreamResponse:
        order = await body(request, requests.MeasureModel)

        async def work(report: Report) -> Speeds:
            household = self._household
            return await self._measuring.table(order, BATCH_ROWS, household.now, household.me, report)

        return await stream(request, with_progress(work))

    async def verdicts(self, request: web.Request) -> web.StreamResponse:
        order = await body(request, requests.Judge)
        planner_inputs, released = self._hosting.planner_inputs, self._hosting.released()

        async def work(report: Report) -> api.Verdicts:
            return await verdicts(order, planner_inputs, released, report)

        if order.measure:
            return await stream(request, with_progress(work))
        return answer(await work(lambda _: None))

    async def starter(self, request: web.Request) -> web.Response:
        hosting = self._hosting
        return answer(api.StarterAnswer(await starter(hosting.planner_inputs, hosting.released())))

    async def load(self, request: web.Request) -> web.StreamResponse:
        order = await body(request, requests.LoadModel)
        self._guesting.check_alone(order)
        work = with_progress(lambda report: self._hosting.load(order, report))
        return await stream(request, work)

    async def unload(self, request: web.Request) -> web.Response:
        order = await body(request, requests.UnloadModel)
        gone = await self._hosting.unload(order.model)
        return answer(Unloaded(gone[0] if gone else None, gone[1:]))
