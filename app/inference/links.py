"""The two ways to a stage: the pipe of a worker of one's own, and a channel to a lender."""

from __future__ import annotations

import asyncio
import contextlib
import time

from app.core.errors import AppError, StageLost
from app.inference.explain import refused
from app.inference.measure import Deadlines
from app.inference.stage_client import FrameChannel, StageClient
from app.inference.step import Run
from app.inference.worker import ORDER_S, Worker
from backends import orders
from backends.contract import StageConfig

CLOSE_S = 2.0  # a polite end of a channel
OPEN_S = 300.0  # loading reads the file once: 10 GB from a slow disk


class PipeLink:
    """To a run in this machine's own worker."""

    def __init__(self, worker: Worker, pipeline: bytes) -> None:
        self.worker = worker
        self._pipeline = pipeline

    async def send(self, frame: bytes) -> None:
        self.worker.send(frame)

    async def listen(self, stage: StageClient) -> None:
        self.worker.route(self._pipeline, stage)
        raise await self.worker.wait_dead()

    def _begun(self, answer: orders.Answer | StageLost) -> None:
        if isinstance(answer, orders.Failed):  # steps that count on it are on their way
            self.worker.kill(refused(answer, self.worker.name).reason)

    def last_done_at(self) -> float:
        return self.worker.last_done_at

    def silence(self, machine: str, seconds: float) -> StageLost:
        return StageLost("worker_hung", worker=self.worker.name, seconds=seconds)

    def give_up(self, why: StageLost) -> None:
        self.worker.kill(why.reason)

    async def begin(self, order: orders.Begin) -> None:
        sampling = order.sampling
        if sampling.grammar or sampling.logit_bias or order.drawn:
            await self.worker.ask(order, orders.Begun, OPEN_S)  # refused: nothing of it is computed
        else:  # the pipe keeps the order: no need to wait behind the steps under way
            self.worker.tell(order, self._begun)

    async def close(self) -> None:
        self.worker.unroute(self._pipeline)


class ChannelLink:
    """To a run on another machine."""

    def __init__(self, channel: FrameChannel) -> None:
        self._channel = channel
        self._sending = asyncio.Lock()  # a channel has one sender at a time; this keeps their order
        self._last_done_at = time.monotonic()
        self._given_up = asyncio.Event()

    async def send(self, frame: bytes) -> None:
        async with self._sending:
            await self._channel.send(frame)

    async def listen(self, stage: StageClient) -> None:
        def received(data: bytes) -> None:
            if not self._given_up.is_set():
                stage.received(data)
                self._last_done_at = time.monotonic()

        try:
            await self._channel.deliver(received)
        finally:
            await close_channel(self._channel)

    def last_done_at(self) -> float:
        return self._last_done_at

    def silence(self, machine: str, seconds: float) -> StageLost:
        return StageLost("stage_silent", machine=machine, seconds=seconds)

    def give_up(self, why: StageLost) -> None:
        self._given_up.set()

    async def begin(self, order: orders.Begin) -> None:
        raise AssertionError("the last run stays on the host")

    async def close(self) -> None:
        self._given_up.set()
        await close_channel(self._channel)


async def close_channel(channel: FrameChannel) -> None:
    """Close it, without waiting long for a peer that may be gone."""
    with contextlib.suppress(AppError, OSError):
        async with asyncio.timeout(CLOSE_S):
            await channel.close()


async def open_run(
    worker: Worker, run: Run, context: int, config: StageConfig, memory_limit_bytes: int = 0
) -> orders.Opened:
    """Have a worker load a run. Raises StageLost, BadInput or DoesNotFit."""
    order = orders.OpenStage(
        request=0,
        pipeline=run.pipeline.hex(),
        epoch=run.epoch,
        number=int(run.number),
        context=context,
        memory_limit_bytes=memory_limit_bytes,
        config=config,
    )
    return await worker.ask(order, orders.Opened, OPEN_S)


async def close_run(worker: Worker, run: Run) -> None:
    """Give one run's memory back while the worker goes on."""
    order = orders.CloseStage(request=0, pipeline=run.pipeline.hex())
    await worker.ask(order, orders.Closed, ORDER_S)


def own_stage(
    worker: Worker, run: Run, name: str, machine: str, *, deadlines: Deadlines | None = None
) -> StageClient:
    """A run in this machine's worker. `machine`: the same for all its runs, they share its time."""
    link = PipeLink(worker, run.pipeline)
    return StageClient(run, link, name, machine=machine, deadlines=deadlines)


def lent_stage(
    channel: FrameChannel, run: Run, name: str, *, deadlines: Deadlines | None = None
) -> StageClient:
    """A run on another machine, whose name stands in what the user reads."""
    return StageClient(run, ChannelLink(channel), name, deadlines=deadlines)
