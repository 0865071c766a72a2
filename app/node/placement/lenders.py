"""Communication with the lenders of a placement: uploading layers, opening and closing stages, and reconnecting."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Protocol

from app.catalog.shelf import Entry
from app.catalog.stages.cut import Cut, read_pieces
from app.catalog.stages.manifest import WantedPiece, to_json, wanted_bytes, wants_from_json
from app.core.errors import AppError, Damaged, DoesNotFit, Fact, Reason, StageLost, Unreachable
from app.core.ids import MachineId, PipelineId, pipeline_id
from app.core.recovery import fault_table
from app.core.recovery.fault_table import Fault
from app.inference.stages.slot_keeper import SlotKeeper
from app.inference.stages.stage_client import FrameChannel, Run
from app.inference.stages.stage_host import KEEP_S
from app.network import messages
from app.network.network import Network
from app.network.peer.peer_client import ANSWER_BYTES_PER_SECOND, ANSWER_SECONDS
from app.network.peer.peer_link import PeerLink
from app.node.placement.lender_slots import LenderSlotKeeper, SlotRequests

# Time limits of successive attempts to connect. A new attempt finds a restored path immediately, whereas the system
# resends the first packet of a stalled attempt only after a second. The first limits suit a typical network, the later
# ones a slow network.
TRIES_SECONDS = (0.25, 0.25, 0.5, 1.0)
ASK_SECONDS = 0.5  # after a path is restored, an old link may stay silent for a second while new connections work
PAUSE_SECONDS = 0.05
TELL_SECONDS = 1.0  # time limit for sending a close; if it fails, the message is sent again over the next link
OPEN_SECONDS = 300.0  # loading reads the file once; enough for 10 GB from a slow disk
Key = tuple[MachineId, PipelineId]
Ready = Callable[[], Awaitable[messages.StageReady]]
TAKEN_SECONDS = 60.0  # time in which a lender must accept a megabyte, about 16 KiB/s

# Reasons about a lender's own disk and memory that do not name the lender. Reading the cut on this machine never raises
# them.
OF_ITS_OWN = frozenset({"stages_full", "disk_full", "disk_failed", "stage_too_large"})

SendProgress = Callable[[int, int, int], None]  # bytes of the chunk, bytes sent so far, total bytes


class PendingCloses:
    """Tells lenders to close stages, and repeats the message on every new link in case the old link lost it.

    The message is repeated for KEEP_S. After that, a lender closes the stages of a missing host by itself.
    """

    def __init__(self, link: Callable[[MachineId], LenderLink], clock: Callable[[], float] = time.monotonic) -> None:
        self._link, self._clock = link, clock
        self._closed: dict[MachineId, dict[PipelineId, float]] = {}  # time of each close

    async def close(self, machine: MachineId, pipeline: PipelineId) -> None:
        """Make the lender free these layers now or, if it cannot be reached, over the next link to it."""
        self._recent(machine)[pipeline] = self._clock()
        with suppress(AppError, TimeoutError):
            async with asyncio.timeout(TELL_SECONDS):
                await self._link(machine).send(_order(pipeline))

    async def linked(self, machine: MachineId, link: LenderLink) -> None:
        """Send the pending close messages over a new link, before any other message."""
        with suppress(AppError):
            for pipeline in list(self._recent(machine)):
                await link.send(_order(pipeline))

    def _recent(self, machine: MachineId) -> dict[PipelineId, float]:
        known, since = self._closed.get(machine, {}), self._clock() - KEEP_S
        self._closed[machine] = {pipeline: at for pipeline, at in known.items() if at > since}
        return self._closed[machine]


def _order(pipeline: PipelineId) -> messages.CloseStage:
    return messages.CloseStage(pipeline=pipeline.hex())


class StageAnswers:
    """The pending replies of lenders to requests to open stages."""

    def __init__(self) -> None:
        self._waiting: dict[Key, asyncio.Future[messages.StageReady]] = {}

    @contextmanager
    def expect(self, machine: MachineId, pipeline: PipelineId) -> Iterator[Ready]:
        """Register for the reply before the request is sent, so that a quick reply is not missed.

        The yielded function returns the lender's StageReady. It raises the lender's error, or StageLost if the link
        breaks or no reply comes in time.
        """
        future: asyncio.Future[messages.StageReady] = asyncio.get_running_loop().create_future()
        self._waiting[machine, pipeline] = future
        try:
            yield lambda: _in_time(future)
        finally:
            del self._waiting[machine, pipeline]
            future.cancel()  # also prevents asyncio from logging an error that arrives too late

    def receive(
        self, machine: MachineId, name: str, message: messages.StageReady | messages.StageFailed | messages.StageLost
    ) -> None:
        future = self._waiting.get((machine, pipeline_id(message.pipeline)))
        if future is None or future.done():
            return
        if isinstance(message, messages.StageReady):
            future.set_result(message)
        else:
            future.set_exception(_error(machine, name, message))

    def link_lost(self, machine: MachineId, name: str) -> None:
        """Fail all pending replies of this lender."""
        for (of, _), future in self._waiting.items():
            if of == machine and not future.done():
                future.set_exception(StageLost("stage_unreachable", machine=name))


async def _in_time(future: asyncio.Future[messages.StageReady]) -> messages.StageReady:
    try:
        async with asyncio.timeout(OPEN_SECONDS):
            return await future
    except TimeoutError:
        raise StageLost("stage_slow", seconds=OPEN_SECONDS) from None


def _error(machine: MachineId, name: str, message: messages.StageFailed | messages.StageLost) -> AppError:
    """Return the lender's error with the lender's name added, because lenders do not name themselves. If this
    version has no sentence for the reason, return a general error.
    """
    reason = fault_table.limited_to_sender(messages.received_reason(message), name)
    facts: dict[str, Fact] = {"machine": name, "what": reason}
    if fault_table.classify(reason).fault is not Fault.MEMORY:
        return fault_table.loss_error(Reason("lender_said", facts))
    facts["machine_id"] = machine
    if reason.code == "lend_too_large" and isinstance(reason.facts.get("free_bytes"), int):
        facts["free_bytes"] = reason.facts["free_bytes"]
    return DoesNotFit("lender_said", **facts)


class LenderLink(Protocol):
    """The part of a link to a lender that a placement uses, implemented by app/network/peer/peer_link.py."""

    async def send(self, message: messages.Message) -> None: ...
    async def offer_stage(self, pipeline: PipelineId, body: bytes, total_bytes: int) -> bytes: ...
    async def upload_pieces(
        self, pipeline: PipelineId, chunks: AsyncGenerator[bytes, None], total_bytes: int
    ) -> bytes: ...
    async def open_data(self, pipeline: PipelineId) -> FrameChannel: ...
    async def inquire(self) -> None:
        """Ask the lender about the progress of its workers, and wait for the reply."""
        ...

    def computes(self) -> bool:
        """Return whether the lender recently reported that one of its workers is computing."""
        ...


class Lenders(Protocol):
    """The links to all lenders, and their replies."""

    def link(self, machine: MachineId) -> LenderLink:
        """Return the open link. Raises Unreachable if there is none."""
        ...

    def is_down(self, machine: MachineId) -> bool:
        """Return whether no node is running on that machine. An unreachable machine does not count as down."""
        ...

    def expect(self, machine: MachineId, pipeline: PipelineId) -> AbstractContextManager[Ready]:
        """Register for the reply to an OpenStage that is about to be sent. The yielded function waits for the reply
        and raises the lender's error."""
        ...

    def slot_keeper(self, machine: MachineId, run: Run) -> SlotKeeper | None:
        """Return the object that saves and restores slots of this run on the lender, or None if there is none."""
        ...

    async def close_stage(self, machine: MachineId, pipeline: PipelineId) -> None:
        """Make the lender free these layers as soon as it can be reached. Never raises."""
        ...


class NetworkLenders:
    """The lenders of the household, reached over this machine's network."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self.answers, self.closings = StageAnswers(), PendingCloses(network.link)
        self.slots = SlotRequests(network)

    def link(self, machine: MachineId) -> PeerLink:
        return self._network.link(machine)

    def is_down(self, machine: MachineId) -> bool:
        return self._network.link_manager.is_down(machine)

    def expect(self, machine: MachineId, pipeline: PipelineId) -> AbstractContextManager[Ready]:
        return self.answers.expect(machine, pipeline)

    def slot_keeper(self, machine: MachineId, run: Run) -> SlotKeeper | None:
        return LenderSlotKeeper(self.slots, machine, run)

    async def close_stage(self, machine: MachineId, pipeline: PipelineId) -> None:
        await self.closings.close(machine, pipeline)


class LenderReconnector:
    """Reopens the data channel to a run on a lender."""

    def __init__(self, lenders: Lenders, machine: MachineId, pipeline: PipelineId) -> None:
        self._lenders, self._machine, self._pipeline = lenders, machine, pipeline

    async def reopen(self) -> FrameChannel:
        """Try to open a new channel until this succeeds, and return it. Raises Refused if the run no longer
        exists, and Unreachable if no node is running on the lender.
        """
        n_stalled = 0
        while True:
            try:
                async with asyncio.timeout(TRIES_SECONDS[min(n_stalled, len(TRIES_SECONDS) - 1)]):
                    return await self._lenders.link(self._machine).open_data(self._pipeline)
            except (Unreachable, TimeoutError) as error:
                n_stalled += isinstance(error, TimeoutError)
                if self._lenders.is_down(self._machine):
                    raise Unreachable("peer_offline", name=self._machine[:16]) from None
            await asyncio.sleep(PAUSE_SECONDS)

    async def ask(self) -> None:
        with suppress(AppError, TimeoutError):
            async with asyncio.timeout(ASK_SECONDS):
                await self._lenders.link(self._machine).inquire()

    def computes(self) -> bool:
        with suppress(AppError):
            return self._lenders.link(self._machine).computes()
        return False


async def send_layers(link: LenderLink, pipeline: PipelineId, machine: str, cut: Cut, tell: SendProgress) -> None:
    """Send the pieces of a stage that the lender is missing. An interrupted upload continues where it stopped.

    Raises StageLost if the lender answers heartbeats but accepts no bytes.
    """
    whole = cut.manifest.total_bytes
    try:
        async with asyncio.timeout(_answer_seconds(whole)) as limit:
            answer = await link.offer_stage(pipeline, to_json(cut.manifest), whole)
            if wants := wants_from_json(answer, cut.manifest):
                chunks = _chunks(cut, wants, limit, tell)
                await link.upload_pieces(pipeline, chunks, whole)
    except TimeoutError:
        seconds = TAKEN_SECONDS
        raise StageLost("stage_not_taken", machine=machine, seconds=seconds) from None


async def _chunks(
    cut: Cut, wants: tuple[WantedPiece, ...], limit: asyncio.Timeout, tell: SendProgress
) -> AsyncGenerator[bytes, None]:
    """Yield the bytes of the pieces. `limit` is extended whenever the lender accepts a chunk."""
    clock = asyncio.get_running_loop().time
    sent, total, source = 0, wanted_bytes(wants, cut.manifest), read_pieces(cut, wants)
    while chunk := await asyncio.to_thread(next, source, b""):
        limit.reschedule(clock() + TAKEN_SECONDS)
        yield chunk
        sent += len(chunk)
        tell(len(chunk), sent, total)
    limit.reschedule(clock() + _answer_seconds(cut.manifest.total_bytes))


def _answer_seconds(total_bytes: int) -> float:
    """Return the time limit for a lender to receive the last bytes and reply. The limit in
    app/network/peer/peer_client.py is shorter and applies first."""
    return TAKEN_SECONDS + ANSWER_SECONDS + total_bytes / ANSWER_BYTES_PER_SECOND


async def send_or_explain(
    link: LenderLink, pipeline: PipelineId, machine: str, entry: Entry, cut: Cut, tell: SendProgress
) -> None:
    """Send the layers with `send_layers`. Raises an AppError that names the machine, or Damaged if the model file has
    changed."""
    try:
        await send_layers(link, pipeline, machine, cut, tell)
    except AppError as error:
        code = error.reason.code
        if code in OF_ITS_OWN:
            raise type(error)("lender_said", machine=machine, what=error.reason) from error
        if code == "piece_wrong":
            piece = error.reason.facts.get("piece")
            if await asyncio.to_thread(_changed, cut, piece):
                raise Damaged("model_changed", name=entry.name, path=entry.path) from error
        raise


def _changed(cut: Cut, piece: object) -> bool:
    """Return whether the bytes of a piece have changed since the import, even though the file's size and modification
    time have not."""
    if not isinstance(piece, int) or not 0 <= piece < len(cut.manifest.pieces):
        return False
    digest = hashlib.sha256()
    for chunk in read_pieces(cut, [WantedPiece(piece, 0)]):
        digest.update(chunk)
    return digest.hexdigest() != cut.manifest.pieces[piece].sha256
