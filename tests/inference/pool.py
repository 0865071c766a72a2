"""Pipelines for tests: fake engines in real worker processes, lenders behind channels in memory."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from app.inference.lend import Lender, Wanted
from app.inference.links import close_run, lent_stage, open_run, own_stage
from app.inference.measure import Deadlines
from app.inference.pipeline import Pipeline
from app.inference.sequences import Finish, Request
from app.inference.stage_client import FrameChannel, StageClient
from app.inference.step import Run
from app.inference.work import Shape
from app.inference.worker import Worker
from app.lan.channel import MemoryChannel
from backends.contract import GREEDY, Layers, Number, Role, Sampling, StageConfig, Traits

WIDTH, N_VOCAB, N_LAYERS = 8, 300, 8
MANY = 1 << 40
Wrap = Callable[[FrameChannel], FrameChannel]


def shape(**changes: Any) -> Shape:
    return Shape(**{"slots": 4, "kv_cells": 4096, "context": 1024, "n_vocab": N_VOCAB, **changes})


@dataclass
class Pool:
    """One pipeline and everything under it."""

    pipeline: Pipeline
    host: Worker
    lenders: list[Lender] = field(default_factory=list)
    lent: list[bytes] = field(default_factory=list)
    channels: list[FrameChannel] = field(default_factory=list)

    def lent_worker(self, index: int = 0) -> Worker:
        return self.lenders[index]._open[self.lent[index]].carried()


def cuts(*sizes: int) -> list[tuple[Role, Layers]]:
    """Runs of these sizes, with their roles."""
    if len(sizes) == 1:
        return [(Role.WHOLE, Layers(0, sizes[0]))]
    roles = [Role.FIRST, *[Role.MIDDLE] * (len(sizes) - 2), Role.LAST]
    firsts = [sum(sizes[:index]) for index in range(len(sizes))]
    return [
        (role, Layers(first, first + size))
        for role, first, size in zip(roles, firsts, sizes, strict=True)
    ]


def fake(
    role: Role, layers: Layers, form: Shape, path: str = "fake:", width: int = WIDTH
) -> StageConfig:
    traits = Traits(recurrent=form.recurrent)
    return StageConfig(
        "fake", path, "", role, layers, width, form.slots, form.kv_cells, 512, 1, traits=traits
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


@asynccontextmanager
async def pool(
    *sizes: int,
    paths: Sequence[str] = ("fake:",),
    form: Shape | None = None,
    number: Number = Number.F16,
    deadlines: Deadlines | None = None,
    width: int = WIDTH,
    wrap: Wrap | None = None,
) -> AsyncIterator[Pool]:
    """A host with the first and last run, and a lender for each run between them."""
    form = form or shape()
    async with AsyncExitStack() as stack:
        group = await stack.enter_async_context(asyncio.TaskGroup())
        host = await stack.enter_async_context(await Worker.start("this machine's layers"))
        stages: list[StageClient] = []
        built = Pool(None, host)  # type: ignore[arg-type]
        serving: list[asyncio.Task[None]] = []
        for index, (role, layers) in enumerate(cuts(*sizes)):
            run = Run(os.urandom(16), role, width, number)
            config = fake(role, layers, form, paths[min(index, len(paths) - 1)], width)
            if role is not Role.MIDDLE:
                await open_run(host, run, form.context, config)
                stages.append(own_stage(host, run, f"host {layers}", "host", deadlines=deadlines))
                continue
            name = f"lender-{index}"
            lender = await stack.enter_async_context(
                Lender(lambda: MANY, name, deadlines=deadlines)
            )
            await lender.open(Wanted(run, form.context, config, 1 << 30, 0, 0))
            near, far = MemoryChannel.pair()
            serving.append(group.create_task(lender.serve(run.pipeline, far), name=f"serve {name}"))
            channel: FrameChannel = wrap(near) if wrap else near
            stages.append(lent_stage(channel, run, name, deadlines=deadlines))
            built.lenders.append(lender)
            built.lent.append(run.pipeline)
            built.channels.append(channel)
        built.pipeline = Pipeline(stages, form)
        try:
            async with built.pipeline:
                yield built
        finally:
            for task in serving:
                task.cancel()


def request(
    text: str | Sequence[int] = "hello", max_tokens: int = 16, *, sampling: Sampling = GREEDY,
    end: Sequence[int] = (), conversation: str | None = None,
) -> Request:  # fmt: skip
    ids = [3 + byte for byte in text.encode()] if isinstance(text, str) else text
    return Request(tuple(ids), sampling, max_tokens, tuple(end), conversation)


async def answer(pipeline: Pipeline, what: Request) -> tuple[list[int], Finish]:
    """All tokens, and how it ended."""
    ids: list[int] = []
    async with aclosing(pipeline.generate(what)) as stream:
        async for item in stream:
            if isinstance(item, Finish):
                return ids, item
            ids.append(item.id)
    raise AssertionError("a stream without its end")
