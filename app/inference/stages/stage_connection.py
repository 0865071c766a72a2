"""The links to a stage: the pipe of this machine's own worker, or a channel to a lender.

A broken channel is reopened, and unanswered frames are sent again. The run at the other end has kept its KV cache and
its latest answers (backends/worker/stage_runner.py), so nothing is computed twice or lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Protocol

from app.core.errors import AppError, BadInput, Refused, StageLost, Unreachable
from app.core.recovery.recovery import RECONNECT_S
from app.inference.pipeline.speed_measurement import Deadlines
from app.inference.stages.stage_client import FrameChannel, Run, StageClient
from app.inference.worker.worker import ORDER_S, Worker
from app.inference.worker.worker_errors import refusal_error
from backends import worker_orders
from backends.contract import StageConfig
from backends.worker.process_resources import memory_allowance

ASK_S = 1.0  # interval between inquiries about the peer's progress
# Grace period after a deadline before a new channel is opened, since an answer that arrives now makes it unnecessary.
LATE_S = 0.1
CLOSE_S = 2.0  # time limit for closing a channel gracefully
LEAST_RECONNECT_S = 0.25  # minimum time for reconnecting, even if the silence has lasted longer than RECONNECT_S
STEADY_S = 1.0  # a channel that stays up this long, or delivers a frame, counts as repaired
PAUSE_S = 0.05  # pause before the next channel if the last one did not become steady

OPEN_S = 300.0  # loading reads the whole file: 10 GB from a slow disk


class Peer(Protocol):
    """The machine at the other end of a channel."""

    async def reopen(self) -> FrameChannel:
        """Open a new channel to the same run, retrying until it opens. Raises AppError if this is impossible."""
        ...

    async def ask(self) -> None:
        """Ask the machine for its progress. Never raises."""
        ...

    def computes(self) -> bool:
        """Return whether the machine recently reported that it is computing."""
        ...


class ChannelLink:
    """The host's end of a link to a lender."""

    is_remote = True

    def __init__(self, channel: FrameChannel, peer: Peer | None = None) -> None:
        self._channel, self._peer = channel, peer
        self._sending = asyncio.Lock()  # keeps frames in order: a channel has one sender at a time
        self._last_done_at = time.monotonic()
        self._given_up = asyncio.Event()
        self._receiving: asyncio.Task[AppError | OSError | None] | None = None
        self._group: asyncio.TaskGroup | None = None
        self._number = 0  # number of the current channel, increased with each reconnect
        self._asked_at = 0.0  # when the peer was last asked about the overdue answer
        self._closed = False
        self._has_reopened = False  # whether a new channel was opened for that answer
        self._opened_at = time.monotonic()  # when the current channel was opened
        self._broken_since: float | None = None  # when channels began to break without a steady one in between
        self._silent_since: float | None = None  # when answers stopped arriving, if that was reported

    async def send(self, frame: bytes) -> None:
        number = self._number
        async with self._sending:
            if self._number != number:
                return  # a reconnect has already resent it with the other unanswered frames
            try:
                await self._channel.send(frame)
            except (AppError, OSError):
                if self._peer is None:
                    raise
                self._break()

    async def listen(self, stage: StageClient) -> None:
        lost: AppError | OSError | None = None
        async with asyncio.TaskGroup() as group:
            self._group = group
            while not self._given_up.is_set():
                receiving = group.create_task(self._receive(stage), name=f"hear {stage.name}")
                self._receiving = receiving
                await asyncio.wait({receiving})
                lost = None if receiving.cancelled() else receiving.result()
                if self._given_up.is_set() or (self._peer is None and lost is not None):
                    break
                lost = await self._renew(stage, group)
                if lost is not None:
                    break
            self._group = None
        if lost is not None:
            raise lost

    def last_done_at(self) -> float:
        return self._last_done_at

    def overdue(self, stage: StageClient, in_s: float) -> bool:
        if self._peer is None or self._group is None:
            return False
        now = time.monotonic()
        if now - self._asked_at > ASK_S:
            self._asked_at = now
            self._group.create_task(self._inquire(in_s), name=f"ask after {stage.name}")
        return self._peer.computes()

    def stopped_s(self, now: float) -> float:
        return 0.0  # the node on the other machine watches for this

    def silence(self, machine: str, seconds: float) -> StageLost:
        return StageLost("stage_silent", machine=machine, seconds=seconds)

    def give_up(self, why: StageLost) -> None:
        self._given_up.set()
        self._break()

    async def begin(self, order: worker_orders.BeginSequence, stage: StageClient) -> None:
        await stage.send_begin(order)

    async def show(self, order: worker_orders.ShowPicture) -> None:
        raise BadInput("picture_replicas")

    async def close(self) -> None:
        self._given_up.set()
        if not self._closed:  # a peer that is gone is waited for only once
            self._closed = True
            await close_channel(self._channel)

    async def _receive(self, stage: StageClient) -> AppError | OSError | None:
        """Receive frames until the channel breaks, and return the channel's error."""

        def received(data: bytes) -> None:
            if not self._given_up.is_set():
                if stage.received(data):  # frames that merely accompany an answer do not count
                    self._last_done_at = time.monotonic()
                    self._report_response(stage)
                self._has_reopened, self._broken_since = False, None

        try:
            await self._channel.deliver(received)
        except (AppError, OSError) as error:
            return error
        return None

    async def _inquire(self, in_s: float) -> None:
        """Find out whether the lender is merely slow or an answer that is due in `in_s` seconds was lost."""
        assert self._peer is not None
        asked_at, number = time.monotonic(), self._number
        await self._peer.ask()
        await asyncio.sleep(max(0.0, asked_at + in_s + LATE_S - time.monotonic()))
        if self._peer.computes() or self._last_done_at > asked_at:
            return
        if not self._has_reopened and number == self._number:
            self._has_reopened = True
            self._break()  # the current channel may stall far longer than a new one takes to open

    async def _renew(self, stage: StageClient, group: asyncio.TaskGroup) -> StageLost | None:
        """Open a new channel and send the unanswered frames again. Return an error if this is impossible."""
        assert self._peer is not None
        stage.report_silence()
        began = time.monotonic()
        stalled_s, broken_s = stage.stalled_s(began), self._broken_s(began)
        if self._silent_since is None:
            self._silent_since = began - stalled_s
        if broken_s > RECONNECT_S:  # channels open but keep breaking
            return StageLost("stage_unreachable", machine=stage.machine)
        left_s = RECONNECT_S - stalled_s
        closing = group.create_task(close_channel(self._channel), name="close a broken channel")
        async with self._sending:
            try:
                async with asyncio.timeout(max(left_s, LEAST_RECONNECT_S)):
                    if broken_s:
                        await asyncio.sleep(PAUSE_S)
                    while not await self._try_channel(stage, self._peer, group):
                        pass
            except (AppError, OSError) as error:
                closing.cancel()
                code = "stage_missing" if isinstance(error, Refused) else "stage_unreachable"
                return StageLost(code, machine=stage.machine)
        if stage.waits_since is None:
            self._report_response(stage)
        return None  # if answers are due, a new channel alone proves nothing: the worker there may be stopped

    def _report_response(self, stage: StageClient) -> None:
        """Report that the stage responds again, or that no answer was due."""
        if self._silent_since is not None:
            stage.report_silence(time.monotonic() - self._silent_since)
            self._silent_since = None

    def _broken_s(self, now: float) -> float:
        """Return for how many seconds channels have been breaking, without a stable channel in between."""
        if self._broken_since is None or now - self._opened_at > STEADY_S:
            self._broken_since = now
        return now - self._broken_since

    async def _try_channel(self, stage: StageClient, peer: Peer, group: asyncio.TaskGroup) -> bool:
        """Try one new channel. Return False if it breaks while frames are being sent again."""
        channel = await peer.reopen()
        if self._closed:  # `close` has already run and would not close this channel
            await close_channel(channel)
            raise StageLost("pipeline_closed")
        self._channel = channel
        self._number, self._opened_at = self._number + 1, time.monotonic()
        try:
            for frame in stage.unanswered():
                await channel.send(frame)
        except (Unreachable, ConnectionError):
            group.create_task(close_channel(channel), name="close a broken channel")
            await asyncio.sleep(PAUSE_S)
            return False
        return True

    def _break(self) -> None:
        """Stop receiving from the current channel."""
        if self._receiving is not None:
            self._receiving.cancel()


async def close_channel(channel: FrameChannel) -> None:
    """Close a channel without waiting long for a machine that may be gone."""
    with contextlib.suppress(AppError, OSError):
        async with asyncio.timeout(CLOSE_S):
            await channel.close()


class PipeLink:
    """A link to a run in this machine's own worker."""

    is_remote = False

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

    def _begun(self, answer: worker_orders.WorkerAnswer | StageLost) -> None:
        if isinstance(answer, worker_orders.Failed):  # later steps that depend on the order have already been sent
            self.worker.kill(refusal_error(answer, self.worker.name).reason)

    def last_done_at(self) -> float:
        return self.worker.last_done_at

    def overdue(self, stage: StageClient, in_s: float) -> bool:
        return False  # a pipe does not break, so only the worker can be slow, and it has its own deadline

    def stopped_s(self, now: float) -> float:
        return self.worker.stopped_s(now)

    def silence(self, machine: str, seconds: float) -> StageLost:
        return StageLost("worker_hung", worker=self.worker.name, seconds=seconds)

    def give_up(self, why: StageLost) -> None:
        self.worker.kill(why.reason)

    async def begin(self, order: worker_orders.BeginSequence, stage: StageClient) -> None:
        sampling = order.sampling
        if sampling.grammar or sampling.logit_bias or order.drawn:
            # Wait, so that nothing is computed if the order is refused.
            await self.worker.ask(order, worker_orders.SequenceBegun, OPEN_S)
        else:  # The pipe keeps the order, so there is no need to wait for the steps in flight.
            self.worker.send_order(order, self._begun)

    async def show(self, order: worker_orders.ShowPicture) -> None:
        # The worker first computes the steps in flight, which may be other pictures. Their own limits tell if it hangs.
        await self.worker.ask(order, worker_orders.PictureShown, OPEN_S)

    async def close(self) -> None:
        if self._stage is not None:
            self.worker.unroute(self._pipeline, self._stage)


async def open_run(
    worker: Worker, run: Run, context: int, config: StageConfig, memory_limit_bytes: int = 0
) -> worker_orders.StageOpened:
    """Load a run into a worker. Raises StageLost, BadInput or DoesNotFit."""
    order = worker_orders.OpenStage(
        request=0,
        pipeline=run.pipeline.hex(),
        epoch=run.epoch,
        number=int(run.number),
        context=context,
        memory_limit_bytes=memory_limit_bytes,
        config=config,
    )
    if memory_limit_bytes:
        worker.limit_growth(memory_allowance(memory_limit_bytes, config.threads))
    return await worker.ask(order, worker_orders.StageOpened, OPEN_S)


async def close_run(worker: Worker, run: Run) -> None:
    """Release the memory of one run without ending the worker."""
    order = worker_orders.CloseStage(request=0, pipeline=run.pipeline.hex())
    await worker.ask(order, worker_orders.StageClosed, ORDER_S)


def own_stage(worker: Worker, run: Run, name: str, machine: str, *, deadlines: Deadlines | None = None) -> StageClient:
    """Return a client for a run in this machine's own worker.

    machine: a name that is the same for all runs on this machine, because they share its computing time.
    """
    link = PipeLink(worker, run.pipeline)
    return StageClient(run, link, name, machine=machine, deadlines=deadlines)


def lent_stage(
    channel: FrameChannel, run: Run, name: str, *, deadlines: Deadlines | None = None, peer: Peer | None = None
) -> StageClient:
    """Return a client for a run on another machine. `name` appears in messages to the user.

    peer: reconnects to that machine if the channel breaks. Without a peer, a broken channel means that the run is lost.
    """
    return StageClient(run, ChannelLink(channel, peer), name, deadlines=deadlines)
