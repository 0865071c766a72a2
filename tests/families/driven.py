"""Runs of one model after another in two workers that stay: real processes, real pipes, the real driver."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from app.catalog.shelf import Entry
from app.core.errors import StageLost
from app.inference.pipeline.pipeline import Pipeline
from app.inference.pipeline.scheduler import PipelineConfig
from app.inference.stages.stage_client import Run, StageClient, Step
from app.inference.stages.stage_connection import PipeLink, close_run, open_run
from app.inference.worker.worker import Worker
from backends import worker_orders
from backends.contract import GREEDY, Layers, NumberFormat, Role, Segment, StageConfig
from backends.frames import FrameKind, decode_frame
from backends.hidden_state_codec import encode_ids
from tests.families.home import CELLS, CONTEXT, SLOTS, Home

HERE, THERE = "this machine", "the other machine"
CHUNK = 24  # rows of a micro-batch: prompts of 28 and 40 enter in several, each beside the other

Scores = NDArray[np.float32]
Segments = tuple[Segment, ...]


class Workers:
    """The worker of this machine and the other machine's. Where one died, the next run gets a new one."""

    def __init__(self) -> None:
        self._started: dict[str, Worker] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for worker in self._started.values():
            await worker.close()

    async def of(self, machine: str) -> Worker:
        worker = self._started.get(machine)
        if worker is None or worker.died is not None:
            worker = self._started[machine] = await Worker.start(f"{machine}'s layers")
        return worker


class Overheard(PipeLink):
    """The pipe to the run that samples: what went in, and the scores of each token that came out."""

    def __init__(self, worker: Worker, run: Run) -> None:
        super().__init__(worker, run.pipeline)
        self._run = run
        self.steps: list[Segments] = []
        self.scores: dict[tuple[int, int], Scores] = {}  # by slot and position
        self.slots: dict[int, int] = {}  # by the length of the prompt

    async def begin(self, order: worker_orders.BeginSequence, stage: StageClient) -> None:
        self.slots[order.due_from] = order.slot
        await super().begin(msgspec.structs.replace(order, logits=True), stage)

    async def send(self, frame: bytes) -> None:
        seen = decode_frame(frame)
        if seen.kind is FrameKind.FOLLOW:
            seen = decode_frame(seen.payload)
        if seen.kind is FrameKind.STEP:
            assert seen.pipeline == self._run.pipeline
            self.steps.append(seen.segments)
        await super().send(frame)

    async def listen(self, stage: StageClient) -> None:
        self._stage = stage
        self.worker.route(self._run.pipeline, self)
        raise await self.worker.wait_dead()

    def received(self, data: bytes) -> None:
        assert self._stage is not None
        if data[3] == FrameKind.LOGITS:
            seen = decode_frame(data)
            (at,) = seen.segments
            self.scores[at.slot, at.end] = np.frombuffer(seen.payload, np.float32)
        self._stage.received(data)

    def fail(self, error: StageLost) -> None:
        assert self._stage is not None
        self._stage.fail(error)

    async def close(self) -> None:
        self.worker.unroute(self._run.pipeline, self)


async def opened(
    stack: AsyncExitStack, workers: Workers, config: StageConfig, machine: str
) -> tuple[StageClient, PipeLink]:
    """A run, loaded until `stack` ends. Raises as `open_run`."""
    worker = await workers.of(machine)
    run = Run(os.urandom(16), config.role, config.width, NumberFormat.F32)
    await open_run(worker, run, CONTEXT, config)
    stack.push_async_callback(_closed, worker, run)
    link = Overheard(worker, run) if run.samples else PipeLink(worker, run.pipeline)
    return StageClient(run, link, f"{machine} {config.layers}", machine=machine), link


async def _closed(worker: Worker, run: Run) -> None:
    with suppress(StageLost):  # it died, and all its runs with it
        await close_run(worker, run)


@asynccontextmanager
async def driven(
    workers: Workers, home: Home, entry: Entry, runs: Sequence[tuple[Layers, Role]], *, apart: bool
) -> AsyncIterator[tuple[Pipeline, Overheard]]:
    """A placement as the node makes it: first and last run on this machine, those between on the other."""
    model = entry.model
    form = PipelineConfig(SLOTS, CELLS, CONTEXT, model.n_vocab, CHUNK, recurrent=model.cuts.later.recurrent)
    async with AsyncExitStack() as stack:
        stages, last = [], None
        for layers, role in runs:
            machine = THERE if role is Role.MIDDLE else HERE
            config = home.config(entry, layers, role, apart=apart)
            stage, last = await opened(stack, workers, config, machine)
            stages.append(stage)
        assert isinstance(last, Overheard)
        async with Pipeline(stages, form) as pipeline:
            yield pipeline, last


class Whole:
    """The whole model in a worker. It computes the steps that it is told, as a pipeline's stages computed them."""

    def __init__(self, stage: StageClient, heard: Overheard) -> None:
        self._stage, self._heard = stage, heard

    async def replay(
        self, steps: Sequence[Segments], ids: Sequence[Sequence[int]], due_from: Sequence[int]
    ) -> dict[tuple[int, int], Scores]:
        """The scores of each token that is due, by slot and position. ids, due_from: of each slot."""
        self._heard.scores.clear()
        for slot, first in enumerate(due_from):
            await self._stage.begin(slot, first, GREEDY, ())
        for segments in steps:
            due = [each for each in segments if each.end >= due_from[each.slot]]
            rows = [item for each in segments for item in ids[each.slot][each.pos : each.end]]
            await self._stage.forward(Step.of(segments, due, bytes(encode_ids(rows))))
        for slot in range(len(due_from)):
            await self._stage.forget(slot)
        return dict(self._heard.scores)


@asynccontextmanager
async def whole(workers: Workers, home: Home, entry: Entry, *, apart: bool) -> AsyncIterator[Whole]:
    """The model uncut, loaded as a computer that has it alone loads it."""
    config = home.config(entry, Layers(0, entry.model.n_layers), Role.WHOLE, apart=apart)
    async with AsyncExitStack() as stack:
        stage, heard = await opened(stack, workers, config, HERE)
        assert isinstance(heard, Overheard)
        async with asyncio.TaskGroup() as group:
            listening = group.create_task(stage.listen(), name="listen to the whole")
            try:
                await asyncio.sleep(0)  # it is routed
                yield Whole(stage, heard)
            finally:
                listening.cancel()
                await stage.close()
