"""A plan becomes a running pipeline: stage files made or sent, runs opened, channels connected."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Coroutine
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import Any, Protocol

from app.catalog.cut import Cut, read_pieces
from app.catalog.manifest import to_json, wanted_bytes, wants_from_json
from app.catalog.shelf import Entry, Shelf
from app.catalog.stage_store import StageStore
from app.core.errors import AppError, StageLost
from app.core.ids import MachineId, PipelineId
from app.core.plan import Plan, PlannedStage
from app.inference.links import ChannelLink, PipeLink, open_run
from app.inference.stage_client import FrameChannel, StageClient
from app.inference.step import Run
from app.inference.worker import Worker
from app.lan import messages
from app.node.ndjson import Progress
from backends.contract import Number, Role, StageConfig

EPOCH = 1
NUMBER_NAMES = {Number.F32: "f32", Number.F16: "f16", Number.Q8: "q8"}


class LenderLink(Protocol):
    """What a placement asks of the link to a lender; lan/peer.py has it."""

    async def offer_stage(self, pipeline: PipelineId, body: bytes) -> bytes: ...
    async def upload_pieces(
        self, pipeline: PipelineId, chunks: AsyncGenerator[bytes, None]
    ) -> bytes: ...
    async def open_data(self, pipeline: PipelineId) -> FrameChannel: ...
    async def send(self, message: messages.Message) -> None: ...


class Lenders(Protocol):
    """Where the links are, and what the lenders answer."""

    def expect(self, machine: MachineId, pipeline: PipelineId) -> None:
        """An OpenStage is about to be sent: its answer must not be missed."""
        ...

    def link(self, machine: MachineId) -> LenderLink:
        """The live link. Raises Unreachable."""
        ...

    async def ready(self, machine: MachineId, pipeline: PipelineId) -> messages.StageReady:
        """Wait for the answer to OpenStage. Raises the lender's own error."""
        ...


@dataclass(frozen=True, slots=True)
class Sizes:
    """What all stages of a placement have in common."""

    number: Number
    slots: int
    kv_cells: int
    context: int
    batch_rows: int
    threads: int  # of this machine's worker


@dataclass(slots=True)
class Fetched:
    """Weight bytes that crossed the network for this placement."""

    bytes: int = 0


class Placing:
    """Opens the stages of one plan. All that it opens is closed with `stack`."""

    def __init__(
        self,
        entry: Entry,
        shelf: Shelf,
        stages: StageStore,
        lenders: Lenders,
        sizes: Sizes,
        stack: AsyncExitStack,
        report: Progress,
    ) -> None:
        self._entry, self._shelf, self._stages = entry, shelf, stages
        self._lenders, self._sizes, self._stack, self._report = lenders, sizes, stack, report
        self.fetched = Fetched()

    async def open(self, plan: Plan) -> list[StageClient]:
        """The stages in order. Raises AppError; what was opened by then is closed by the stack."""
        host = plan.stages[0].machine
        worker = await Worker.start("this computer", threads=self._sizes.threads)
        await self._stack.enter_async_context(worker)
        return await together(
            *(
                self._open_here(worker, stage) if stage.machine == host else self._open_there(stage)
                for stage in plan.stages
            )
        )

    async def _open_here(self, worker: Worker, stage: PlannedStage) -> StageClient:
        run = self._run(stage)
        path = self._entry.path
        if stage.role is not Role.WHOLE:
            path = await asyncio.to_thread(self._fill, stage)
        self._tell(stage, "loading", 0, 1)
        await open_run(worker, run, self._sizes.context, self._config(stage, path))
        self._tell(stage, "loading", 1, 1)
        name = f"{stage.name} {stage.layers.first}-{stage.layers.last - 1}"
        return StageClient(run, PipeLink(worker, run.pipeline), name, machine=stage.name)

    def _fill(self, stage: PlannedStage) -> str:
        """Runs in a thread: cut the stage out of the model's file, unless it is there already."""
        cut = self._shelf.cut(self._entry, stage.layers, stage.role)
        stage_id, total, done = cut.manifest.id, cut.manifest.total_bytes, [0]

        def tell(n_bytes: int) -> None:
            done[0] += n_bytes
            self._tell(stage, "cutting", done[0], total, "bytes")

        path = self._stages.fill(cut, tell)
        self._stages.hold(stage_id)
        self._stack.callback(self._stages.release, stage_id)
        return str(path)

    async def _open_there(self, stage: PlannedStage) -> StageClient:
        run = self._run(stage)
        pipeline = PipelineId(run.pipeline)
        link = self._lenders.link(stage.machine)
        cut = await asyncio.to_thread(self._shelf.cut, self._entry, stage.layers, stage.role)
        await self._send_layers(link, pipeline, stage, cut)
        self._tell(stage, "loading", 0, 1)
        self._lenders.expect(stage.machine, pipeline)
        await link.send(self._order(run, stage, cut))
        self._stack.push_async_callback(_close_there, link, pipeline)
        await self._lenders.ready(stage.machine, pipeline)
        channel = await link.open_data(pipeline)
        self._tell(stage, "loading", 1, 1)
        return StageClient(run, ChannelLink(channel), stage.name)

    async def _send_layers(
        self, link: LenderLink, pipeline: PipelineId, stage: PlannedStage, cut: Cut
    ) -> None:
        """Only the pieces that the lender does not have; it continues where it broke off."""
        answer = await link.offer_stage(pipeline, to_json(cut.manifest))
        wants = wants_from_json(answer, cut.manifest)
        total = wanted_bytes(wants, cut.manifest)
        if not wants:
            return

        async def chunks() -> AsyncGenerator[bytes, None]:
            sent, source = 0, read_pieces(cut, wants)
            while chunk := await asyncio.to_thread(next, source, b""):
                yield chunk
                sent += len(chunk)
                self.fetched.bytes += len(chunk)
                self._tell(stage, "sending", sent, total, "bytes")

        await link.upload_pieces(pipeline, chunks())

    def _run(self, stage: PlannedStage) -> Run:
        number = self._sizes.number
        return Run(secrets.token_bytes(16), stage.role, self._entry.model.width, number, EPOCH)

    def _config(self, stage: PlannedStage, path: str) -> StageConfig:
        sizes = self._sizes
        return StageConfig(
            engine="llamacpp",
            path=path,
            embedding_path=self._entry.path,
            role=stage.role,
            layers=stage.layers,
            width=self._entry.model.width,
            slots=sizes.slots,
            kv_cells=sizes.kv_cells,
            batch_rows=sizes.batch_rows,
            threads=sizes.threads,
        )

    def _order(self, run: Run, stage: PlannedStage, cut: Cut) -> messages.OpenStage:
        sizes, model = self._sizes, self._entry.model
        return messages.OpenStage(
            request=0,
            pipeline=run.pipeline.hex(),
            epoch=run.epoch,
            model=model.name[:200],
            manifest=cut.manifest.id,
            first=stage.layers.first,
            last=stage.layers.last,
            n_layers=model.n_layers,
            width=model.width,
            number=NUMBER_NAMES[sizes.number],  # type: ignore[arg-type]
            slots=sizes.slots,
            kv_cells=sizes.kv_cells,
            context=sizes.context,
            batch_rows=sizes.batch_rows,
            engine="llamacpp",
        )

    def _tell(
        self, stage: PlannedStage, step: str, done: int, total: int, unit: str = "steps"
    ) -> None:
        self._report(
            {"step": step, "machine": stage.name, "done": done, "total": total, "unit": unit}
        )


async def _close_there(link: LenderLink, pipeline: PipelineId) -> None:
    with suppress(AppError):  # the lender may be gone, and with it the stage
        await link.send(messages.CloseStage(pipeline=pipeline.hex()))


async def together(*work: Coroutine[Any, Any, StageClient]) -> list[StageClient]:
    """Do all at once; the first AppError cancels the others and is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one, name="open a stage") for one in work]
    except BaseExceptionGroup as errors:
        known, unknown = errors.split(AppError)
        if unknown is not None or known is None:
            raise
        raise _first(known) from None
    return [task.result() for task in tasks]


def _first(errors: BaseExceptionGroup[AppError]) -> AppError:
    for error in errors.exceptions:
        if isinstance(error, BaseExceptionGroup):
            return _first(error)
        return error
    return StageLost("bug")
