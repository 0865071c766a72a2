"""Control API routes for the models on disk: listing, adding, removing, planning, loading and unloading them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Protocol

from aiohttp import web

from app.api import models as api
from app.api import requests
from app.api.models import ModelResponse, RemoveModelResponse, ShelfModel, Speeds, UnloadResponse
from app.catalog.families.family_table import FAMILIES
from app.catalog.gguf.model_reader import KNOWN
from app.catalog.shelf import Entry, Shelf, is_projector_file
from app.catalog.stages.stage_store import StageStore
from app.core.errors import AppError, BadInput
from app.core.planner.speed_estimates import SpeedConditions
from app.core.reasons import sentence
from app.inference.worker.tokenizer import TextWorker
from app.machine.paths import expand_user
from app.node.cancellation import in_thread
from app.node.control.json_bodies import Report, answer, body, hashing_progress, stream, with_progress
from app.node.known_household import KnownHousehold
from app.node.models.household_models import HouseholdModels
from app.node.models.model_manager import ModelManager
from app.node.planning.planning import BATCH_ROWS
from app.node.planning.speed_measurer import SpeedMeasurer
from app.node.planning.verdicts import Use, starter, verdicts


class ModelOrigins(Protocol):
    """The origins of the models on the shelf."""

    def with_origin(self, entry: Entry, described: ShelfModel) -> ShelfModel:
        """Return the description of a model with its origin and whether its file still exists. Reads the disk."""

    async def forget(self, entry: Entry) -> int | None:
        """Delete the file of a removed model if it was downloaded by this app, and return the bytes freed.

        Returns None if the file is kept. Raises AppError if it cannot be deleted.
        """


class ShelfModels:
    """The models on the shelf. All disk access runs in threads, because it can be slow."""

    def __init__(
        self,
        shelf: Shelf,
        stages: StageStore,
        in_use: Callable[[], Collection[str]],
        origins: ModelOrigins,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._shelf, self._stages = shelf, stages
        self._origins, self._changed = origins, changed
        self._in_use = in_use  # returns the IDs of the loaded models

    async def listed(self) -> list[ShelfModel]:
        """Return all models on the shelf."""
        return await asyncio.to_thread(lambda: [self._described(entry) for entry in self._shelf.entries()])

    async def described(self, name: str) -> ModelResponse:
        """Return the model that `name` identifies. Raises BadInput."""
        entry = await self.named(name)
        return ModelResponse(await asyncio.to_thread(self._described, entry))

    async def named(self, name: str, loaded: Collection[str] | None = None) -> Entry:
        """Return the entry with this name. If `loaded` is given, a partial name matches only loaded models. Raises
        BadInput."""
        return await asyncio.to_thread(self._shelf.get, name, loaded)

    async def has_file(self, name: str) -> bool:
        """Return whether a model with exactly this name can be loaded from this machine's disk."""
        try:
            entry = await self.named(name)
        except BadInput:
            return False
        return entry.name == name and await asyncio.to_thread(Path(entry.path).is_file)

    async def add(self, order: requests.Import, report: Report) -> ModelResponse:
        """Check and hash a file, and add it to the shelf. Canceling stops the hashing."""

        def tell(done: int, total: int) -> None:
            report(hashing_progress(done, total))

        path = expand_user(order.path).absolute()
        await self._known_to_the_engine(path)
        entry = await in_thread(lambda hashed: self._shelf.import_file(path, hashed, name=order.name, whole=True), tell)
        self._changed()
        return ModelResponse(await asyncio.to_thread(self._described, entry))

    async def _known_to_the_engine(self, path: Path) -> None:
        """Check early whether the engine supports an unproven model family or a new tokenizer. Otherwise loading the
        model would fail later.

        Raises BadInput for these two problems only. Other problems are reported when the file is used.
        """
        if await asyncio.to_thread(is_projector_file, path):
            return
        header_facts, splits_words = await asyncio.to_thread(self._shelf.inspect_file, path)
        if header_facts.architecture in FAMILIES and splits_words in KNOWN:
            return
        try:
            async with await TextWorker.open(str(path)):
                return
        except AppError as error:
            if error.reason.code in ("engine_knows_not", "engine_pre_unknown"):
                raise

    async def remove(self, name: str) -> RemoveModelResponse:
        """Remove a model and its stages from the shelf. Its file is deleted only if this app downloaded it.

        If this raises AppError, the model stays on the shelf.
        """
        entry = await asyncio.to_thread(self._shelf.get, name)
        if entry.model.id in self._in_use() and not entry.is_of_app:
            raise BadInput("model_in_use", name=entry.name)
        if entry.is_of_app:
            raise BadInput("model_builtin", name=entry.name)
        of_file = await self._origins.forget(entry)
        freed = await asyncio.to_thread(self._removed, entry.name)
        self._changed()
        return RemoveModelResponse(entry.name, freed + (of_file or 0), of_file is not None)

    def _removed(self, name: str) -> int:
        before = self._stages.used_bytes()
        self._shelf.remove(name)
        return max(0, before - self._stages.used_bytes())

    def _described(self, entry: Entry) -> ShelfModel:
        return self._origins.with_origin(entry, _shelf_model(entry))


def _shelf_model(entry: Entry) -> ShelfModel:
    model, projector = entry.model, entry.model.projector
    return ShelfModel(
        name=model.name,
        id=model.id,
        architecture=model.architecture,
        quantization=model.quantization,
        n_layers=model.n_layers,
        width=model.width,
        n_vocab=model.n_vocab,
        context_length=model.context_length,
        file_bytes=model.file_bytes,
        quantized_kv=model.quantized_kv,
        license=model.license,
        path=entry.path,
        splits=bool(model.cuts.boundaries),
        whole_reason=sentence(model.cuts.whole_reason),
        whole_reason_facts=model.cuts.whole_reason,
        builtin=entry.builtin,
        shipped=entry.shipped,
        embeds=model.embeds,
        writes=model.writes,
        has_template=model.has_template,
        ranks=model.ranks,
        n_parameters=model.n_parameters,
        tools=model.has_tools,
        thinks=model.thinks,
        languages=list(model.languages),
        maker=model.maker,
        vision=model.sees,
        projector=projector.path if projector else None,
        projector_bytes=projector.file_bytes if projector else 0,
        blind_reason=sentence(projector.reason) if projector else None,
        blind_reason_facts=projector.reason if projector else None,
    )


class ShelfRoutes:
    """Routes for the models on disk, plans, loading and unloading."""

    def __init__(
        self,
        models: ShelfModels,
        model_manager: ModelManager,
        household_models: HouseholdModels,
        speed_measurer: SpeedMeasurer,
        household: KnownHousehold,
    ) -> None:
        self._models, self._model_manager, self._household_models = models, model_manager, household_models
        self._speed_measurer, self._household = speed_measurer, household

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
            web.post("/undo-move", self.undo_move),
        ]

    async def listed(self, request: web.Request) -> web.Response:
        offered = await self._household_models.offered()
        return answer(api.Models(await self._models.listed(), offered, self._household_models.shared()))

    async def add(self, request: web.Request) -> web.StreamResponse:
        order = await body(request, requests.Import)
        work = with_progress(lambda report: self._models.add(order, report))
        return await stream(request, work)

    async def model(self, request: web.Request) -> web.Response:
        return answer(await self._models.described(request.match_info["name"]))

    async def remove(self, request: web.Request) -> web.Response:
        removed = await self._models.remove(request.match_info["name"])
        self._model_manager.forget_failed_load(removed.removed)
        return answer(removed)

    async def plan(self, request: web.Request) -> web.StreamResponse:
        order = await body(request, requests.PlanModel)
        self._household_models.require_single_machine(order)
        work = with_progress(lambda report: self._model_manager.plan(order, report))
        return await stream(request, work)

    async def speeds(self, request: web.Request) -> web.StreamResponse:
        order = await body(request, requests.MeasureModel)

        async def work(report: Report) -> Speeds:
            household = self._household
            return await self._speed_measurer.table(
                order, SpeedConditions(BATCH_ROWS, self._model_manager.exact()), household.now, household.me, report
            )

        return await stream(request, with_progress(work))

    async def verdicts(self, request: web.Request) -> web.StreamResponse:
        order = await body(request, requests.JudgeModels)
        planner_inputs, released = self._model_manager.planner_inputs, self._model_manager.released()

        async def work(report: Report) -> api.Verdicts:
            return await verdicts(order, planner_inputs, released, report, exact=self._model_manager.exact())

        if order.measure:
            return await stream(request, with_progress(work))
        return answer(await work(lambda _: None))

    async def starter(self, request: web.Request) -> web.Response:
        model_manager = self._model_manager
        use: Use = "code" if request.query.get("use") == "code" else "chat"
        offer = await starter(model_manager.planner_inputs, model_manager.released(), use, exact=model_manager.exact())
        return answer(api.StarterResponse(offer))

    async def load(self, request: web.Request) -> web.StreamResponse:
        order = await body(request, requests.LoadModel)
        self._household_models.require_single_machine(order)
        work = with_progress(lambda report: self._model_manager.load(order, report))
        return await stream(request, work)

    async def undo_move(self, request: web.Request) -> web.Response:
        order = await body(request, requests.UndoMove)
        return answer(api.UndoMoveResponse(await self._model_manager.undo_move(order.model)))

    async def unload(self, request: web.Request) -> web.Response:
        order = await body(request, requests.UnloadModel)
        gone = await self._model_manager.unload(order.model)
        return answer(UnloadResponse(gone[0] if gone else None, gone[1:]))
