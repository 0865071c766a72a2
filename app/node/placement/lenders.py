"""The lenders as a placement sees them: links, uploads of layers, answers to opened stages, and pending closes."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Protocol

from app.catalog.shelf import Entry
from app.catalog.stages.cut import Cut, read_pieces
from app.catalog.stages.manifest import Want, to_json, wanted_bytes, wants_from_json
from app.core.errors import AppError, Damaged, DoesNotFit, Fact, Reason, StageLost, Unreachable
from app.core.ids import MachineId, PipelineId, pipeline_id
from app.core.recovery import fault_table
from app.core.recovery.fault_table import Fault
from app.inference.stages.stage_client import FrameChannel
from app.inference.stages.stage_host import KEEP_S
from app.network import messages
from app.network.network import Network
from app.network.peer.peer_client import ANSWER_BYTES_PER_SECOND, ANSWER_SECONDS
from app.network.peer.peer_link import PeerLink

# A stalled connection is retried: a new packet finds a healed path, while the system resends a first packet only
# after a second. The first limits suit a usual network, the later ones a slow one.
TRIES_SECONDS = (0.25, 0.25, 0.5, 1.0)
ASK_SECONDS = 0.5  # the link may be silent for a second after a path has healed, where a new connection finds it
PAUSE_SECONDS = 0.05
TELL_SECONDS = 1.0  # a link that takes nothing is told again when it has been replaced
OPEN_SECONDS = 300.0  # loading reads the file once: 10 GB from a slow disk
Key = tuple[MachineId, PipelineId]
Ready = Callable[[], Awaitable[messages.StageReady]]
TAKEN_SECONDS = 60.0  # a lender that takes no megabyte for so long holds the load up: 16 KiB/s

# Reasons about a lender's own disk and memory that do not name the lender. Reading the cut here never gives them.
OF_ITS_OWN = frozenset({"stages_full", "disk_full", "disk_failed", "stage_too_large"})

SendProgress = Callable[[int, int, int], None]  # bytes of a chunk, sent so far, to be sent


class PendingCloses:
    """Tells a lender to close stages at once, and again on each new link, because the old one may have lost the
    message.

    A lender closes stages by itself when their host has been gone for KEEP_S; until then the message is repeated.
    """

    def __init__(self, link: Callable[[MachineId], LenderLink], clock: Callable[[], float] = time.monotonic) -> None:
        self._link, self._clock = link, clock
        self._closed: dict[MachineId, dict[PipelineId, float]] = {}  # when it was closed

    async def close(self, machine: MachineId, pipeline: PipelineId) -> None:
        """Make the lender free these layers, now or when it can be reached again."""
        self._recent(machine)[pipeline] = self._clock()
        with suppress(AppError, TimeoutError):
            async with asyncio.timeout(TELL_SECONDS):
                await self._link(machine).send(_order(pipeline))

    async def linked(self, machine: MachineId, link: LenderLink) -> None:
        """Send the pending closes over a new link before anything else."""
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
    """The futures of stages that are opening, one per stage."""

    def __init__(self) -> None:
        self._waiting: dict[Key, asyncio.Future[messages.StageReady]] = {}

    @contextmanager
    def expect(self, machine: MachineId, pipeline: PipelineId) -> Iterator[Ready]:
        """Start waiting before the request is sent, so that a quick answer is not missed.

        The yielded function returns the lender's StageReady; it raises the lender's error, or StageLost when the link
        is gone.
        """
        future: asyncio.Future[messages.StageReady] = asyncio.get_running_loop().create_future()
        self._waiting[machine, pipeline] = future
        try:
            yield lambda: _in_time(future)
        finally:
            del self._waiting[machine, pipeline]
            future.cancel()  # and an error that came too late to be waited for is not logged

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
        """Fail what still waits for this lender: its link is down."""
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
    """Return the lender's own reason, with its name, as far as this version has a sentence for it: the lender names
    itself nowhere."""
    reason = fault_table.limited_to_sender(messages.understood(message), name)
    facts: dict[str, Fact] = {"machine": name, "what": reason}
    if fault_table.classify(reason).fault is not Fault.MEMORY:
        return fault_table.loss_error(Reason("lender_said", facts))
    facts["machine_id"] = machine
    if reason.code == "lend_too_large" and isinstance(reason.facts.get("free_bytes"), int):
        facts["free_bytes"] = reason.facts["free_bytes"]
    return DoesNotFit("lender_said", **facts)


class LenderLink(Protocol):
    """The part of a link to a lender that a placement uses; app/network/peer/peer_link.py implements it."""

    async def send(self, message: messages.Message) -> None: ...
    async def offer_stage(self, pipeline: PipelineId, body: bytes, total_bytes: int) -> bytes: ...
    async def upload_pieces(
        self, pipeline: PipelineId, chunks: AsyncGenerator[bytes, None], total_bytes: int
    ) -> bytes: ...
    async def open_data(self, pipeline: PipelineId) -> FrameChannel: ...
    async def inquire(self) -> None:
        """Ask the peer how far its workers are, and wait for the answer."""
        ...

    def computes(self) -> bool:
        """Return whether the peer reported lately that one of its workers computes."""
        ...


class Lenders(Protocol):
    """The links to lenders, and their answers."""

    def link(self, machine: MachineId) -> LenderLink:
        """Return the live link. Raises Unreachable."""
        ...

    def is_down(self, machine: MachineId) -> bool:
        """Return whether no node runs there now, as opposed to a network failure."""
        ...

    def expect(self, machine: MachineId, pipeline: PipelineId) -> AbstractContextManager[Ready]:
        """Expect the answer to an OpenStage that is about to be sent; the yielded function waits for it and raises its
        error."""
        ...

    async def close_stage(self, machine: MachineId, pipeline: PipelineId) -> None:
        """Make the lender free these layers as soon as it can be told. Raises nothing."""
        ...


class NetworkLenders:
    """The lenders of the household, reached over this machine's network."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self.answers, self.closings = StageAnswers(), PendingCloses(network.link)

    def link(self, machine: MachineId) -> PeerLink:
        return self._network.link(machine)

    def is_down(self, machine: MachineId) -> bool:
        return self._network.calls.is_down(machine)

    def expect(self, machine: MachineId, pipeline: PipelineId) -> AbstractContextManager[Ready]:
        return self.answers.expect(machine, pipeline)

    async def close_stage(self, machine: MachineId, pipeline: PipelineId) -> None:
        await self.closings.close(machine, pipeline)


class LenderReconnector:
    """Reopens the data channel to one run on one lender."""

    def __init__(self, lenders: Lenders, machine: MachineId, pipeline: PipelineId) -> None:
        self._lenders, self._machine, self._pipeline = lenders, machine, pipeline

    async def reopen(self) -> FrameChannel:
        """Try until a new channel opens. Raises Refused when the run no longer exists, and Unreachable when no node
        runs there."""
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
    """Send only the pieces that the lender lacks; an interrupted upload resumes.

    Raises StageLost when the lender answers heartbeats but takes no bytes.
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
    cut: Cut, wants: tuple[Want, ...], limit: asyncio.Timeout, tell: SendProgress
) -> AsyncGenerator[bytes, None]:
    """Yield the bytes of the pieces as the lender takes them; each chunk taken extends `limit`."""
    clock = asyncio.get_running_loop().time
    sent, total, source = 0, wanted_bytes(wants, cut.manifest), read_pieces(cut, wants)
    while chunk := await asyncio.to_thread(next, source, b""):
        limit.reschedule(clock() + TAKEN_SECONDS)
        yield chunk
        sent += len(chunk)
        tell(len(chunk), sent, total)
    limit.reschedule(clock() + _answer_seconds(cut.manifest.total_bytes))


def _answer_seconds(total_bytes: int) -> float:
    """Return the seconds for a lender to take the last bytes and answer; app/network/peer/peer_client.py gives up
    earlier."""
    return TAKEN_SECONDS + ANSWER_SECONDS + total_bytes / ANSWER_BYTES_PER_SECOND


async def send_or_explain(
    link: LenderLink, pipeline: PipelineId, machine: str, entry: Entry, cut: Cut, tell: SendProgress
) -> None:
    """Run `send_layers`. Raises AppError that names the machine, or Damaged for a file that has changed."""
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
    """Return whether these bytes differ from the imported ones although size and time do not."""
    if not isinstance(piece, int) or not 0 <= piece < len(cut.manifest.pieces):
        return False
    digest = hashlib.sha256()
    for chunk in read_pieces(cut, [Want(piece, 0)]):
        digest.update(chunk)
    return digest.hexdigest() != cut.manifest.pieces[piece].sha256
