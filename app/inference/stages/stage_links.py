"""The ways to a stage: the pipe of a worker of one's own here, the channel to a lender in channel_link.py."""

from __future__ import annotations

from app.core.errors import StageLost
from app.inference.pipeline.speed_measurement import Deadlines
from app.inference.pipeline.step import Run
from app.inference.stages.channel_link import ChannelLink, Peer
from app.inference.stages.stage_client import FrameChannel, StageClient
from app.inference.worker.worker import ORDER_S, Worker
from app.inference.worker.worker_errors import refused
from backends import orders
from backends.contract import StageConfig
from backends.worker.process import bound

OPEN_S = 300.0  # loading reads the file once: 10 GB from a slow disk


class PipeLink:
    """To a run in this machine's own worker."""

    is_elsewhere = False

    def __init__(self, worker: Worker, pipeline: bytes) -> None:
        self.worker = worker
        self._pipeline = pipeline
        self._stage: StageClient | None = None

    async def send(self, frame: bytes) -> None:
        self.worker.send(frame)

    async def listen(self, stage: StageClient) -> None:
        self._stage = stage
        self.worker.route(self._pipeline, stage)
        raise await self.worker.wait_dead()

    def _begun(self, answer: orders.Answer | StageLost) -> None:
        if isinstance(answer, orders.Failed):  # steps that count on it are on their way
            self.worker.kill(refused(answer, self.worker.name).reason)

    def last_done_at(self) -> float:
        return self.worker.last_done_at

    def overdue(self, stage: StageClient, in_s: float) -> bool:
        return False  # a pipe does not break: it is the worker, and its time is running

    def stands_still_s(self, now: float) -> float:
        return self.worker.stands_still_s(now)

    def silence(self, machine: str, seconds: float) -> StageLost:
        return StageLost("worker_hung", worker=self.worker.name, seconds=seconds)

    def give_up(self, why: StageLost) -> None:
        self.worker.kill(why.reason)

    async def begin(self, order: orders.Begin, stage: StageClient) -> None:
        sampling = order.sampling
        if sampling.grammar or sampling.logit_bias or order.drawn:
            await self.worker.ask(order, orders.Begun, OPEN_S)  # refused: nothing of it is computed
        else:  # the pipe keeps the order: no need to wait behind the steps under way
            self.worker.tell(order, self._begun)

    async def close(self) -> None:
        if self._stage is not None:
            self.worker.unroute(self._pipeline, self._stage)


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
    if memory_limit_bytes:
        worker.may_grow_by(bound(memory_limit_bytes, config.threads))
    return await worker.ask(order, orders.Opened, OPEN_S)


async def close_run(worker: Worker, run: Run) -> None:
    """Give one run's memory back while the worker goes on."""
    order = orders.CloseStage(request=0, pipeline=run.pipeline.hex())
    await worker.ask(order, orders.Closed, ORDER_S)


def own_stage(worker: Worker, run: Run, name: str, machine: str, *, deadlines: Deadlines | None = None) -> StageClient:
    """A run in this machine's worker. `machine`: the same for all its runs, they share its time."""
    link = PipeLink(worker, run.pipeline)
    return StageClient(run, link, name, machine=machine, deadlines=deadlines)


def lent_stage(
    channel: FrameChannel, run: Run, name: str, *, deadlines: Deadlines | None = None, peer: Peer | None = None
) -> StageClient:
    """A run on another machine, whose name stands in what the user reads.

    peer: how to reach that machine when the channel breaks; without it, it is lost then.
    """
    return StageClient(run, ChannelLink(channel, peer), name, deadlines=deadlines)
