"""Pipelines for tests: fake engines in real worker processes, lenders behind channels in memory."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from app.core.errors import AppError, DoesNotFit, Reason, Refused, StageLost, Unreachable
from app.core.recovery.recovery import Loss, PlanFailed, Planned, RecentFailures
from app.inference.pipeline.pipeline import Pipeline
from app.inference.pipeline.scheduler import PipelineConfig
from app.inference.pipeline.sequence import Finish, Request, Token
from app.inference.pipeline.speed_measurement import Deadlines
from app.inference.stages.stage_client import FrameChannel, Run, StageClient
from app.inference.stages.stage_connection import close_run, lent_stage, open_run, own_stage
from app.inference.stages.stage_host import RunOrder, StageHost
from app.inference.worker.worker import Worker
from app.network.peer.frame_channel import MemoryChannel
from backends.contract import GREEDY, FamilyTraits, Layers, NumberFormat, Role, Sampling, StageConfig

WIDTH, N_VOCAB, N_LAYERS = 8, 300, 8
MANY = 1 << 40
Wrap = Callable[[FrameChannel], FrameChannel]


def shape(**changes: Any) -> PipelineConfig:
    return PipelineConfig(**{"slots": 4, "kv_cells": 4096, "context": 1024, "n_vocab": N_VOCAB, **changes})


@dataclass
class Pool:
    """One pipeline and everything under it."""

    pipeline: Pipeline
    host: Worker
    lenders: list[StageHost] = field(default_factory=list)
    lent: list[bytes] = field(default_factory=list)
    channels: list[FrameChannel] = field(default_factory=list)
    rebuild: Rebuild = None  # type: ignore[assignment]

    def lent_worker(self, index: int = 0) -> Worker:
        return self.lenders[index]._open[self.lent[index]].running_worker()


def cuts(*sizes: int) -> list[tuple[Role, Layers]]:
    """Runs of these sizes, with their roles."""
    if len(sizes) == 1:
        return [(Role.WHOLE, Layers(0, sizes[0]))]
    roles = [Role.FIRST, *[Role.MIDDLE] * (len(sizes) - 2), Role.LAST]
    firsts = [sum(sizes[:index]) for index in range(len(sizes))]
    return [(role, Layers(first, first + size)) for role, first, size in zip(roles, firsts, sizes, strict=True)]


def fake(role: Role, layers: Layers, form: PipelineConfig, path: str = "fake:", width: int = WIDTH) -> StageConfig:
    traits = FamilyTraits(recurrent=form.recurrent)
    return StageConfig(
        "fake", path, "", role, layers, width, form.slots, form.kv_cells, 512, 1, traits=traits, keep=form.keep
    )


@asynccontextmanager
async def runs_in_one(worker: Worker, *sizes: int, path: str = "fake:") -> AsyncIterator[Pipeline]:
    """A pipeline whose runs are all in one worker."""
    form, stages = shape(), []
    for role, layers in cuts(*sizes):
        run = Run(os.urandom(16), role, WIDTH)
        await open_run(worker, run, form.context, fake(role, layers, form, path))
        stages.append(own_stage(worker, run, f"{layers}", "host"))
    async with Pipeline(stages, form) as pipeline:
        yield pipeline
    for stage in stages:
        if worker.died is None:
            await close_run(worker, stage.run)


@dataclass(eq=False)
class Port:
    """A host's access to a lender, which admits anyone here."""

    lender: StageHost

    async def open(self, expected: RunOrder) -> None:
        await self.lender.open(expected)

    async def renew(self, pipeline: bytes, epoch: int) -> None:
        await self.lender.renew(pipeline, epoch)

    def get_open(self, pipeline: bytes) -> None:
        """Raises what a node's port refuses a connection with."""
        self.lender.get_open(pipeline)

    async def serve(self, pipeline: bytes, channel: MemoryChannel) -> None:
        await self.lender.serve(pipeline, channel)


def port_for_all(lender: StageHost, _: asyncio.TaskGroup) -> Port:
    return Port(lender)


@dataclass
class Making:
    """The way in which a pool's stages are made, at first and again."""

    sizes: tuple[int, ...]
    form: PipelineConfig
    paths: Sequence[str]
    number: NumberFormat
    deadlines: Deadlines | None
    width: int
    wrap: Wrap | None
    peers: bool  # lenders can be reached again when a channel breaks
    away: bool  # all runs are on lenders
    stack: AsyncExitStack
    group: asyncio.TaskGroup
    port: Callable[[StageHost, asyncio.TaskGroup], Port]
    renews: bool = False  # what a lender still has serves on, in a new epoch
    moved: str = ""  # after the names of the lenders
    epoch: int = 0
    serving: list[asyncio.Task[None]] = field(default_factory=list)
    there: dict[int, Lent] = field(default_factory=dict)  # by the place of its run

    async def make(self, built: Pool) -> list[StageClient]:
        stages: list[StageClient] = []
        self.epoch += self.renews
        if built.host.died is not None:
            built.host = await self.stack.enter_async_context(await Worker.start("a new worker"))
        built.lenders, built.lent, built.channels = [], [], []
        for index, (role, layers) in enumerate(cuts(*self.sizes)):
            run = Run(os.urandom(16), role, self.width, self.number, self.epoch)
            path = self.paths[min(index, len(self.paths) - 1)]
            config = fake(role, layers, self.form, path, self.width)
            if role is not Role.MIDDLE and not self.away:
                await open_run(built.host, run, self.form.context, config)
                name = f"host {layers}"
                stages.append(own_stage(built.host, run, name, "host", deadlines=self.deadlines))
            else:
                stages.append(await self._lent(built, index, run, config))
        return stages

    async def _lent(self, built: Pool, index: int, run: Run, config: StageConfig) -> StageClient:
        lent = await self._renewed(index) or await self._opened(index, run, config)
        port, lender, run = lent.port, lent.port.lender, lent.run
        name = lender.machine
        place = len(built.channels)

        def connect() -> FrameChannel:
            port.get_open(run.pipeline)  # else a node's port refuses the connection
            near, far = MemoryChannel.pair()
            serve = _served(port, run.pipeline, far)
            self.serving.append(self.group.create_task(serve, name=f"serve {name}"))
            channel: FrameChannel = self.wrap(near) if self.wrap else near
            built.channels[place:] = [channel]
            return channel

        channel = connect()
        built.lenders.append(lender)
        built.lent.append(run.pipeline)
        peer = Again(connect, lender) if self.peers else None
        lent.client = lent_stage(channel, run, name, deadlines=self.deadlines, peer=peer)
        self.there[index] = lent
        return lent.client

    async def _opened(self, index: int, run: Run, config: StageConfig) -> Lent:
        lender = await self.stack.enter_async_context(
            StageHost(lambda: MANY, f"lender-{index}{self.moved}", deadlines=self.deadlines)
        )
        port = self.port(lender, self.group)
        await port.open(RunOrder(run, self.form.context, config, 1 << 30, 0, 0))
        return Lent(port, run)

    async def _renewed(self, index: int) -> Lent | None:
        """The same run once more, if it was not what was lost: as app/node/placement/stages.py does."""
        lent = self.there.pop(index, None)
        if not self.renews or lent is None or not lent.stays:
            return None
        lent.run = replace(lent.run, epoch=self.epoch)
        try:
            await lent.port.renew(lent.run.pipeline, self.epoch)
        except AppError:
            return None
        return lent


@dataclass
class Lent:
    """A run that a lender holds, and its client of the last epoch."""

    port: Port
    run: Run
    client: StageClient | None = None

    @property
    def stays(self) -> bool:
        lost = self.client.lost if self.client is not None else None
        return lost is None or lost.reason.code == "pipeline_closed"


async def _served(port: Port, pipeline: bytes, channel: MemoryChannel) -> None:
    """Serve as a node's port does: a frame for something that is no longer open ends the channel."""
    try:
        await port.serve(pipeline, channel)
    except (Refused, Unreachable):
        await channel.close()


@dataclass
class Again:
    """The way back to a lender in this process."""

    connect: Callable[[], FrameChannel]
    lender: StageHost

    async def reopen(self) -> FrameChannel:
        return self.connect()

    async def ask(self) -> None:
        pass

    def computes(self) -> bool:
        return self.lender.progress()[1] > 0


@dataclass
class Rebuild:
    """Makes the same stages again, unless a test wants it to fail first."""

    making: Making
    built: Pool
    asked: bool = False  # somebody is about to ask
    misfits: int = 0  # so often nothing fits
    failing: int = 0  # so often a stage is lost while it opens
    elsewhere: bool = False  # other machines take the runs over
    stays: bool = False  # on the same machines or nowhere, as one of several replicas
    planned: list[frozenset[str]] = field(default_factory=list)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    planning: asyncio.Event | None = None  # a plan takes until then
    failures: RecentFailures = field(default_factory=lambda: RecentFailures(time.monotonic))
    fits_here: bool = False  # this machine can hold all of it

    def is_needed(self) -> bool:
        return self.asked

    def failed(self, loss: Loss) -> None:
        self.failures.note(loss)

    def forgive(self, machines: Sequence[str]) -> None:
        self.failures.forgive(machines)

    async def can_host_alone(self) -> bool:
        if self.fits_here:
            self.making.sizes = (sum(self.making.sizes),)
        return self.fits_here

    async def plan(self, without: frozenset[str]) -> Planned:
        without |= self.failures.left_out()
        self.planned.append(without)
        if self.planning is not None:
            await self.planning.wait()
        if self.stays and without:
            raise Unreachable("peer_offline", name="lender-1")
        if self.misfits:
            self.misfits -= 1
            raise DoesNotFit("memory_short", worker="all", cause="a test")
        return Planned(("spare",), 0.5)

    async def build(self) -> list[StageClient]:
        if self.failing:
            self.failing -= 1
            raise StageLost("stage_lost", machine="lender-1")
        if self.elsewhere:
            self.making.moved = f"-{len(self.planned)}"
        return await self.making.make(self.built)

    async def changed(self) -> None:
        await self.news.wait()
        self.news.clear()

    def blames(self, error: AppError) -> tuple[str, str, bool]:
        return "id-1", "lender-1", False

    def misfit(self, loss: Loss, error: DoesNotFit) -> PlanFailed:
        return PlanFailed(Reason("recovery_short", {"machine": loss.name, "what": "too small."}))


@asynccontextmanager
async def pool(
    *sizes: int,
    paths: Sequence[str] = ("fake:",),
    form: PipelineConfig | None = None,
    number: NumberFormat = NumberFormat.F16,
    deadlines: Deadlines | None = None,
    width: int = WIDTH,
    wrap: Wrap | None = None,
    peers: bool = False,
    rebuilds: bool = False,
    away: bool = False,
    renews: bool = False,
    port: Callable[[StageHost, asyncio.TaskGroup], Port] = port_for_all,
) -> AsyncIterator[Pool]:
    """A host with the first and last run, and a lender for each run between them."""
    form = form or shape()
    async with AsyncExitStack() as stack:
        group = await stack.enter_async_context(asyncio.TaskGroup())
        host = await stack.enter_async_context(await Worker.start("this machine's layers"))
        built = Pool(None, host)  # type: ignore[arg-type]
        making = Making(
            sizes, form, paths, number, deadlines, width, wrap, peers, away, stack, group, port, renews
        )  # fmt: skip
        built.rebuild = Rebuild(making, built)
        stages = await making.make(built)
        built.pipeline = Pipeline(stages, form, built.rebuild if rebuilds else None)
        try:
            async with built.pipeline:
                yield built
        finally:
            for task in making.serving:
                task.cancel()


def request(
    text: str | Sequence[int] = "hello", max_tokens: int = 16, *, sampling: Sampling = GREEDY,
    end: Sequence[int] = (), conversation: str | None = None,
) -> Request:  # fmt: skip
    ids = [3 + byte for byte in text.encode()] if isinstance(text, str) else text
    return Request(tuple(ids), sampling, max_tokens, tuple(end), conversation)


async def answer(pipeline: Pipeline, subject: Request) -> tuple[list[int], Finish]:
    """All tokens, and how it ended."""
    ids: list[int] = []
    async with aclosing(pipeline.generate(subject)) as stream:
        async for item in stream:
            if isinstance(item, Finish):
                return ids, item
            if isinstance(item, Token):
                ids.append(item.id)
    raise AssertionError("a stream without its end")
