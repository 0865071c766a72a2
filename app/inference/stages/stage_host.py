"""The lender's side of a stage, which admits runs of layers, starts their workers, and relays frames."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from app.core.errors import AppError, DoesNotFit, Fact, Reason, Refused, StageLost
from app.core.planner.card_division import StageParts
from app.core.recovery import fault_table
from app.inference.pipeline.speed_measurement import Deadlines
from app.inference.stages.stage_client import CREDIT, FrameChannel, Run
from app.inference.stages.stage_connection import close_channel, open_run
from app.inference.worker.worker import ONE_THREAD, Worker
from app.inference.worker.worker_errors import decode_lost
from app.machine.hardware.cards import is_card_failure, is_card_short, is_crash
from app.machine.hardware.cores import Threads
from backends import worker_orders
from backends.contract import ADDED_ENGINES, NumberFormat, StageConfig
from backends.frames import (
    MAX_FRAME,
    BadFrame,
    Frame,
    FrameKind,
    PipelineParameters,
    check_step,
    decode_frame,
    decode_header,
    encode_frame,
)

log = logging.getLogger(__name__)

LOOK_S = 0.25
ORPHAN_COMPUTE_S = 10.0  # limit on computing for a host that is gone (SAFETY.md 6)
KEEP_S = 600.0  # time for which layers and KV cache are kept for a host that may return; the window promises 10 minutes
PROCESS_BYTES = 128 << 20  # memory of the interpreter and the engine's code, in addition to the promised memory
DRIVER_BYTES = 1 << 30  # main memory that a device's driver may use: Mesa's software device was seen to use 0.3 GiB
GROWTH = 1.1  # a worker whose memory exceeds the promise by this factor is killed (SAFETY.md 8)
LINGER_S = 1.0  # time for the host to read that the worker is gone, and to close the channel first
LAST_WORD_S = 1.0  # time for a host to receive the notice of an end, if it reads at all
BEGIN_BYTES, ID_BYTES = 64 << 10, 12  # size of the sampling parameters, and of each earlier token, as JSON
MAX_UNDER_WAY = 4 * CREDIT  # steps in flight, including those resent after a reconnect


@dataclass(frozen=True, slots=True)
class RunOrder:
    """A host's request to load a run on this machine, and the memory that the run needs."""

    run: Run
    context: int  # maximum positions per slot
    config: StageConfig
    layer_bytes: int
    kv_bytes: int
    work_bytes: int
    parts: StageParts | None = None  # how it could be divided among graphics cards
    card_bytes: int = 0  # the part of the memory that is on graphics cards
    code_cache: Path | None = None  # of the driver of its device
    family: str = ""  # of the model (app/core/model.py)

    @property
    def needed_bytes(self) -> int:
        return self.layer_bytes + self.kv_bytes + self.work_bytes


def _library_folder(config: StageConfig) -> list[str]:
    """Return the folder that the worker imports its engine or its back end from, or nothing."""
    if not config.library:
        return []
    return [config.library if config.engine in ADDED_ENGINES else str(Path(config.library).parent)]


@dataclass(frozen=True, slots=True)
class RelayedWork:
    """The total work for all hosts since the node started: rows computed, and bytes of frames received and sent."""

    rows: int = 0
    bytes_in: int = 0
    bytes_out: int = 0


@dataclass(slots=True)
class LentRun:
    """A run that is open or being opened for a host. Its memory is reserved before its worker starts."""

    order: RunOrder
    agreed: PipelineParameters
    worker: Worker | None = None
    opened: worker_orders.StageOpened | None = None
    why: Reason | None = None  # why the run must end, if it must
    gone: asyncio.Event = field(default_factory=asyncio.Event)  # set once its memory is released
    channel: FrameChannel | None = None  # set while a host is connected
    answers: asyncio.Queue[bytes | StageLost] = field(default_factory=asyncio.Queue)
    left_at: float = field(default_factory=time.monotonic)  # when the last host's channel ended
    copy_bytes: Callable[[], int] = lambda: 0  # memory for copies of slots, which are kept on disk
    is_noted: bool = False  # whether the loss of its device was reported

    def received(self, data: bytes) -> None:
        """Queue an answer from the worker for the host.

        If no host is connected, drop the answer: the worker stores its latest answers.
        """
        if self.channel is not None:
            self.answers.put_nowait(data)

    def overrun(self) -> bool:
        """Return whether the host leaves its answers unread or far exceeds its credit.

        Either would use up this machine's memory.
        """
        worker = self.running_worker()
        unanswered = worker.under_way + self.answers.qsize()
        most = MAX_UNDER_WAY + 2 * self.agreed.slots  # a host may forget several slots in a row
        return unanswered >= most or worker.unwritten_bytes() > 2 * MAX_FRAME

    def fail(self, error: StageLost) -> None:
        self.answers.put_nowait(error)

    def running_worker(self) -> Worker:
        """Return the worker of an open run."""
        assert self.worker is not None
        return self.worker

    def kill(self, why: Reason) -> None:
        """Kill the worker. If it is still starting, it is killed right afterwards."""
        self.why = self.why or why
        if self.worker is not None:
            self.worker.kill(self.why)

    def unloaded_bytes(self) -> int:
        """Return how much of the reserved main memory the worker has not allocated yet.

        The memory of graphics cards counts as used from the beginning.
        """
        taken = self.worker.resident_bytes() if self.worker is not None else 0
        return max(0, self.order.needed_bytes - self.order.card_bytes - taken)


class StageHost:
    """All runs that this machine computes for other machines.

    Use it as an async context manager. Leaving the context releases all memory.
    """

    def __init__(self, lent_bytes: Callable[[], int], machine: str, *, deadlines: Deadlines | None = None) -> None:
        self._lent_bytes = lent_bytes  # returns the bytes that the owner currently lends
        self.machine = machine  # this machine's name, for messages to the host
        self._deadlines = deadlines or Deadlines()
        # called when a worker fails with a device; with the family of its model if it crashed while it was opening it
        self.on_device_lost: Callable[[StageConfig, str], None] = lambda *_: None
        self.on_device_short: Callable[[bytes], None] = lambda _: None  # called with a run whose device lacks memory
        # returns the main memory lent beside a card for runs that the processor computes, or None without a card
        self.lent_bytes_beside: Callable[[], int | None] = lambda: None
        self.on_ended: Callable[[bytes], None] = lambda _: None  # called when a run's memory has been released
        self.relayed_work = RelayedWork()
        self._n_answered = 0
        self._open: dict[bytes, LentRun] = {}
        self._group = asyncio.TaskGroup()
        self._watching: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        self._watching = self._group.create_task(self._watch(), name="watch lent layers")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._watching is not None:
            self._watching.cancel()
        await self.stop_now(Reason("lend_stopped", {"machine": self.machine}))
        await self._group.__aexit__(None, None, None)

    @property
    def used_bytes(self) -> int:
        """Return the number of bytes reserved for runs that are open or being opened."""
        return sum(lent.order.needed_bytes for lent in self._open.values())

    def reserved(self, *, on_device: bool) -> tuple[int, int]:
        """Return `used_bytes` and `unloaded_bytes` of some of the runs.

        on_device: whether to count the runs on a graphics card. Otherwise, the runs on the processor are counted.
        """
        runs = [lent for lent in self._open.values() if bool(lent.order.config.device) == on_device]
        return sum(lent.order.needed_bytes for lent in runs), sum(lent.unloaded_bytes() for lent in runs)

    @property
    def runs(self) -> tuple[RunOrder, ...]:
        return tuple(lent.order for lent in self._open.values())

    @property
    def unloaded_bytes(self) -> int:
        """Return how many of the reserved bytes the operating system still counts as free."""
        return sum(lent.unloaded_bytes() for lent in self._open.values())

    def busy(self) -> bool:
        """Return whether a step is being computed for a host."""
        workers = (lent.worker for lent in self._open.values())
        return any(worker is not None and worker.busy_since is not None for worker in workers)

    def computed_within(self, seconds: float) -> bool:
        """Return whether a step is being computed for a host or was computed in the last `seconds`.

        The period should cover the pauses between tokens.
        """
        since = time.monotonic() - seconds
        workers = [lent.worker for lent in self._open.values() if lent.worker is not None]
        return any(w.busy_since is not None or w.last_done_at > since for w in workers)

    def quiet_s(self) -> float:
        """Return the seconds since a step was last computed for any host, or infinity if no run is open."""
        now = time.monotonic()
        workers = [lent.worker for lent in self._open.values() if lent.worker is not None]
        quiet = (0.0 if w.busy_since is not None else now - w.last_done_at for w in workers)
        return min(quiet, default=float("inf"))

    async def open(self, order: RunOrder, *, threads: Threads = ONE_THREAD) -> worker_orders.StageOpened:
        """Load a run in a worker of its own.

        Raises DoesNotFit or Refused before anything is loaded, or StageLost.
        """
        lent = self._admit(order)
        try:
            name = Reason("layers_of", {"machine": self.machine})
            config = order.config
            reads = [config.path, *_library_folder(config)]
            lent.worker = await Worker.start(
                name, threads=threads, low_priority=True, reads=reads, exact=config.exact, code_cache=order.code_cache
            )
            if lent.why is not None:
                lent.worker.kill(lent.why)
            opened = await open_run(lent.worker, order.run, order.context, order.config, order.needed_bytes)
            if lent.why is not None:  # it may have been set just before loading finished
                raise await lent.worker.wait_dead()
        except BaseException as error:
            if isinstance(error, AppError) and is_card_failure(error):  # a lack of memory is the caller's to handle
                self._note_lost_device(lent, error, order.family if is_crash(error) else "")
            try:
                if lent.worker is not None:
                    await lent.worker.close(0.0)
            finally:
                self._forget(lent)
            raise
        lent.worker.route(order.run.pipeline, lent)
        lent.left_at, lent.opened = time.monotonic(), opened
        return opened

    async def renew(self, pipeline: bytes, epoch: int) -> worker_orders.StageOpened:
        """Reopen a run with a new epoch and an empty KV cache, which its host then fills again.

        Raises Refused if the run is not open, or StageLost.
        """
        lent = self._open.get(pipeline)
        if lent is None or lent.opened is None or lent.running_worker().died is not None:
            raise Refused("lend_not_open")
        run = replace(lent.order.run, epoch=epoch)
        order = lent.order = replace(lent.order, run=run)
        worker = lent.running_worker()
        lent.opened = await open_run(worker, run, order.context, order.config, order.needed_bytes)
        return lent.opened

    def progress(self) -> tuple[int, float]:
        """Return the number of answers since the start, and how long the oldest current step has been running."""
        now = time.monotonic()
        workers = [lent.worker for lent in self._open.values() if lent.worker is not None]
        busy = [
            now - worker.busy_since for worker in workers if worker.busy_since is not None and not worker.stopped_s(now)
        ]
        return self._n_answered, max(busy, default=0.0)

    def _admit(self, order: RunOrder) -> LentRun:
        """Reserve the memory for a run. Because this never awaits, two requests cannot reserve the same memory."""
        run = order.run
        if run.pipeline in self._open:
            raise Refused("lend_twice")
        lent_bytes, used_bytes = self._lent_bytes(), self.used_bytes
        if (beside_bytes := self.lent_bytes_beside()) is not None:
            on_device = bool(order.config.device)
            lent_bytes = lent_bytes if on_device else beside_bytes
            used_bytes, _ = self.reserved(on_device=on_device)
        free_bytes = max(0, lent_bytes - used_bytes)
        if order.needed_bytes > free_bytes:
            raise DoesNotFit(
                "lend_too_large", needed_bytes=order.needed_bytes, free_bytes=free_bytes, lent_bytes=lent_bytes
            )
        agreed = PipelineParameters(
            run.pipeline, run.width, run.input_number, order.config.slots, order.context, run.samples
        )
        lent = self._open[run.pipeline] = LentRun(order, agreed)
        return lent

    def _forget(self, lent: LentRun) -> None:
        """Release the reserved memory of a run whose process has ended. Calling this twice is harmless."""
        pipeline = lent.order.run.pipeline
        if self._open.get(pipeline) is lent:
            del self._open[pipeline]
            lent.gone.set()
            self.on_ended(pipeline)

    def get_open(self, pipeline: bytes) -> LentRun:
        """Return an open run. Raises Refused if no run with this id is open."""
        lent = self._open.get(pipeline)
        if lent is None or lent.opened is None:
            raise Refused("lend_not_open")
        return lent

    async def serve(self, pipeline: bytes, channel: FrameChannel) -> None:
        """Relay frames between a host's channel and the worker until one of them ends.

        Raises Refused if the run is not open. A second channel for the same run ends the first.
        """
        lent = self.get_open(pipeline)
        worker = lent.running_worker()
        before, lent.channel, lent.answers = lent.channel, channel, asyncio.Queue()
        if worker.died is not None:
            lent.answers.put_nowait(worker.died)
        try:
            async with asyncio.TaskGroup() as group:
                if before is not None:  # closed in the background, since it may be stalled
                    group.create_task(close_channel(before), name="close a replaced channel")
                back = group.create_task(self._send_back(lent, channel), name="answers to a host")
                await self._take(lent, channel)
                back.cancel()
        finally:
            await close_channel(channel)
            if lent.channel is channel:
                lent.channel, lent.left_at = None, time.monotonic()

    def room_for_a_copy(self, pipeline: bytes) -> int:
        """Return how much memory the temporary copy of a slot may use: the lent memory that is not in use, and the
        reserves of the run.
        """
        lent = self.get_open(pipeline)
        unused = max(0, self._lent_bytes() - self.used_bytes)
        return unused + int(lent.order.needed_bytes * (GROWTH - 1)) + PROCESS_BYTES // 2

    async def close(self, pipeline: bytes, grace_s: float = 2.0) -> None:
        """Release a run's memory, and return once its process has ended. A run that is not open is ignored."""
        lent = self._open.get(pipeline)
        if lent is None:
            return
        if lent.opened is not None:
            lent.why = lent.why or Reason("worker_closed", {"worker": lent.running_worker().name})
            await lent.running_worker().close(grace_s)
            self._forget(lent)
        else:
            lent.kill(Reason("worker_closed", {"worker": Reason("layers_of", {"machine": self.machine})}))
            await lent.gone.wait()  # `open` releases what it has reserved

    async def stop_now(self, why: Reason) -> None:
        """Release all memory immediately by killing the workers. Hosts receive the reason."""
        all_lent = list(self._open.values())
        for lent in all_lent:
            lent.kill(why)
        for lent in all_lent:
            if lent.opened is None:
                await lent.gone.wait()  # `open` releases what it has reserved
            else:
                await lent.running_worker().wait_dead()
                self._forget(lent)

    async def _take(self, lent: LentRun, channel: FrameChannel) -> None:
        """Check that the host may send its frames, and pass them to the worker unchanged."""
        worker = lent.running_worker()

        def take(data: bytes) -> None:
            n_rows = _check(data, lent.agreed)
            self._count(n_rows=n_rows, n_in=len(data))
            if lent.overrun():
                raise BadFrame("more frames than the agreed credit")
            if worker.died is None:  # otherwise `_send_back` notifies the host
                worker.send(data, n_rows)

        try:
            await channel.deliver(take)
        # Tell the host that the fault is its own, so that it does not try another machine.
        except BadFrame as error:
            log.warning("closing a link because of an invalid frame from its host: %s", error)
            bad = Reason("stage_bad_step", {"machine": self.machine, "cause": str(error)})
            with suppress(AppError, OSError):
                await _last_word(channel, _lost(lent.order.run, self.machine, fault_table.loss_error(bad)))
        except (AppError, OSError):
            pass  # the channel has ended

    def _note_lost_device(self, lent: LentRun, error: AppError, opening_family: str = "") -> None:
        """Report the failure of a worker that used a graphics card, if it died by itself or hung."""
        config, failed = lent.order.config, lent.why is None or lent.why.code == "worker_hung"
        if not (config.device or config.engine in ADDED_ENGINES) or not failed or lent.is_noted:
            return
        lent.is_noted = True
        if is_card_short(error):
            self.on_device_short(lent.order.run.pipeline)
        elif is_card_failure(error):
            self.on_device_lost(config, opening_family)

    def _count(self, n_rows: int = 0, n_in: int = 0, n_out: int = 0) -> None:
        was = self.relayed_work
        self.relayed_work = RelayedWork(was.rows + n_rows, was.bytes_in + n_in, was.bytes_out + n_out)

    async def _send_back(self, lent: LentRun, channel: FrameChannel) -> None:
        """Send the worker's answers to the host unchanged. If the worker dies, send a LOST frame."""
        answers = lent.answers
        try:
            while True:
                answer = await answers.get()
                if isinstance(answer, StageLost):
                    self._note_lost_device(lent, answer)
                    await _last_word(channel, _lost(lent.order.run, self.machine, answer))
                    break
                if lent.order.config.device and decode_header(answer).kind is FrameKind.LOST:
                    lost = decode_lost(decode_frame(answer).payload, self.machine)
                    if is_card_short(lost):  # whatever else a living worker tells may be the host's fault
                        self._note_lost_device(lent, lost)
                self._n_answered += 1
                self._count(n_out=len(answer))
                await channel.send(answer)
        except (AppError, OSError):
            pass
        finally:
            await close_channel(channel)  # also ends `_take`

    async def _watch(self) -> None:
        """Kill workers that hang, use too much memory, or compute for a host that is gone.

        Release the memory of workers that have ended.
        """
        while True:
            await asyncio.sleep(LOOK_S)
            now = time.monotonic()
            for lent in list(self._open.values()):
                if lent.opened is None:
                    continue
                reason = self._objection(lent, now)
                if reason is not None:
                    lent.kill(reason)
                death = lent.running_worker().died
                if death is not None and lent.channel is None:
                    self._note_lost_device(lent, death)
                    self._forget(lent)

    def _objection(self, lent: LentRun, now: float) -> Reason | None:
        """Return why this run must end now, or None."""
        worker, allowed = lent.running_worker(), int(lent.order.needed_bytes * GROWTH) + PROCESS_BYTES
        allowed += DRIVER_BYTES if lent.order.config.device else 0
        allowed += lent.copy_bytes()
        used = worker.resident_bytes()
        if used > allowed:
            return Reason("worker_grew", {"used_bytes": used, "allowed_bytes": allowed})
        busy_s = now - worker.busy_since if worker.busy_since is not None else 0.0
        if worker.stopped_s(now) > self._deadlines.still_s:
            return Reason("worker_hung", {"worker": worker.name, "seconds": round(busy_s, 1)})
        if busy_s > self._deadlines.of_worker(worker.slowest_s, worker.step_rows, worker.most_rows):
            return Reason("worker_hung", {"worker": worker.name, "seconds": round(busy_s, 1)})
        if lent.channel is None:
            gone_s = now - lent.left_at
            if gone_s > KEEP_S or (busy_s > 0 and gone_s > ORPHAN_COMPUTE_S):
                return Reason("lend_host_gone")
        return None


async def _last_word(channel: FrameChannel, lost: bytes) -> None:
    """Send a LOST frame before the channel closes, without waiting long for a host that does not read it."""
    with suppress(TimeoutError):
        async with asyncio.timeout(LAST_WORD_S):
            await channel.send(lost)
        await asyncio.sleep(LINGER_S)


def _check(data: bytes, agreed: PipelineParameters) -> int:
    """Return how many rows a frame computes, without copying or reading its payload.

    Raises BadFrame if the host may not send this frame.
    """
    frame = decode_frame(data)
    if frame.kind is FrameKind.STEP:
        check_step(frame, agreed)
    elif frame.pipeline != agreed.pipeline or len(frame.payload) > _most_payload(frame, agreed):
        raise BadFrame(f"a {frame.kind.name} frame from a host")
    return sum(segment.n_tokens for segment in frame.segments) if frame.kind is FrameKind.STEP else 0


def _most_payload(frame: Frame, agreed: PipelineParameters) -> int:
    """Return the largest payload allowed in a frame other than a step, or -1 if frames of this kind are not allowed."""
    if frame.kind is FrameKind.BEGIN:  # the earlier tokens stay with the host unless the whole model is here
        return BEGIN_BYTES + ID_BYTES * (agreed.context if agreed.number is NumberFormat.IDS else 0)
    return 0 if frame.kind is FrameKind.FORGET else -1


def _lost(run: Run, machine: str, error: StageLost) -> bytes:
    """Return a LOST frame that tells the host how the run ended. The worker's output is not included."""
    facts: dict[str, Fact] = {**error.reason.facts, "machine": machine, "words": Reason("worker_log")}
    payload = json.dumps(Reason(error.reason.code, facts).to_json()).encode()
    return encode_frame(Frame(FrameKind.LOST, run.pipeline, run.epoch, payload=payload))
