"""Uploads of layers to this machine: accepts offers from hosts, reports missing pieces, and receives them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import ParamSpec, TypeVar

import msgspec

from app.catalog.shelf import Shelf
from app.catalog.stages.manifest import Manifest, from_json, wants_to_json
from app.catalog.stages.stage_receiver import StageReceiver
from app.catalog.stages.stage_store import StageStore
from app.core.errors import AppError, BadInput, Busy, Fact, Reason, Refused
from app.core.ids import MachineId, PipelineId

P = ParamSpec("P")
T = TypeVar("T")
MAX_OFFERS = 4  # unopened offers per member, each of which may contain a header of 16 MiB
TURN_S = 5.0  # time limit for a member's previous offer or upload to end, for example after a restarted load
IDLE_S = 60.0  # time limit from an offer to its first piece
NEUTRAL = {"path": "the layer file", "folder": "the layer files"}
_PATH = re.compile(r"(?:[A-Za-z]:)?(?:[\\/][^\\/\s'\":]+){2,}")


class BoundedExecutor:
    """A thread pool for requests of other machines, which keeps them from blocking the threads that this node needs.

    At most `n_threads` calls run at the same time; further calls wait."""

    def __init__(self, n_threads: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(n_threads, thread_name_prefix=name)

    async def run(self, work: Callable[P, T], *args: P.args, **more: P.kwargs) -> T:
        """Run a call in the pool. As with asyncio.to_thread, canceling the wait does not stop the call."""
        return await asyncio.wrap_future(self._pool.submit(work, *args, **more))

    def close(self) -> None:
        """Refuse further calls, without waiting for running ones."""
        self._pool.shutdown(wait=False, cancel_futures=True)


@dataclass(slots=True)
class StageOffer:
    """Layers that a host has offered to upload."""

    member: MachineId
    manifest: Manifest
    stage_id: str
    fetched_bytes: int = 0
    receiver: StageReceiver | None = None  # kept while pieces are missing, so that existing pieces are hashed only once
    idle: asyncio.TimerHandle | None = None

    def take_receiver(self) -> StageReceiver | None:
        """Remove and return the receiver, and stop the idle timer. The caller writes to the receiver or closes it."""
        if self.idle is not None:
            self.idle.cancel()
        taken, self.receiver, self.idle = self.receiver, None, None
        return taken

    def close(self) -> None:
        """Stop waiting for pieces. Pieces that have arrived stay on disk."""
        receiver = self.take_receiver()
        if receiver is not None:
            receiver.close()


@dataclass(slots=True)
class _Turn:
    """A lock for the offers and uploads of one member. At most one call may wait for it."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: bool = False


class StageOffers:
    """The stages that members have offered but not opened yet."""

    def __init__(
        self, shelf: Shelf, stages: StageStore, lent_bytes: Callable[[], int], threads: BoundedExecutor
    ) -> None:
        self._shelf, self._stages = shelf, stages
        self._lent_bytes, self._threads = lent_bytes, threads
        self._offers: dict[PipelineId, StageOffer] = {}
        self._turns: dict[MachineId, _Turn] = {}

    async def offer(self, member: MachineId, pipeline: PipelineId, body: bytes) -> bytes:
        """Accept the manifest of a stage, and return which of its pieces are missing here."""
        async with self._turn(member):
            manifest = await self._threads.run(from_json, body, self._lent_bytes())
            stage_id = await self._threads.run(lambda: manifest.id)
            self._make_way(member, pipeline)
            offer = self._offers[pipeline] = StageOffer(member, manifest, stage_id)
            try:
                return await self._missing(pipeline, offer)
            except BaseException:
                self.forget(member, pipeline)
                raise

    async def pieces(self, member: MachineId, pipeline: PipelineId, chunks: AsyncIterator[bytes]) -> bytes:
        """Accept the bytes of the missing pieces, in the order in which they were requested."""
        async with self._turn(member):
            offer = self._find(member, pipeline)
            receiver = offer.take_receiver()
            if receiver is None:
                raise BadInput("stage_not_offered")
            try:
                async for chunk in chunks:
                    await self._threads.run(receiver.write, chunk)
                    offer.fetched_bytes += len(chunk)
                await self._threads.run(receiver.finish)
            finally:
                receiver.close()
            return msgspec.json.encode({"fetched_bytes": offer.fetched_bytes})

    def take(self, member: MachineId, pipeline: PipelineId, stage_id: str) -> StageOffer:
        """Remove and return the offer of a stage that is being opened. Raises BadInput."""
        offer = self._find(member, pipeline)
        if offer.stage_id != stage_id:
            raise BadInput("manifest_odd", what=Reason("manifest_mismatched"))
        offer.close()
        return self._offers.pop(pipeline)

    def forget(self, member: MachineId, pipeline: PipelineId | None = None) -> None:
        """Drop one offer of a member, or all of them."""
        for key, offer in list(self._offers.items()):
            if offer.member == member and pipeline in (None, key):
                offer.close()
                del self._offers[key]

    def close(self) -> None:
        for member in {offer.member for offer in self._offers.values()}:
            self.forget(member)

    async def _missing(self, pipeline: PipelineId, offer: StageOffer) -> bytes:
        if await self._threads.run(self._stages.path, offer.stage_id):
            return b"[]"
        receiver = await self._threads.run(self._begin, offer.manifest)
        if receiver is None:
            return b"[]"
        if self._offers.get(pipeline) is not offer:  # the member was removed in the meantime
            receiver.close()
            raise BadInput("stage_not_offered")
        offer.receiver = receiver
        offer.idle = asyncio.get_running_loop().call_later(IDLE_S, offer.close)
        return wants_to_json(receiver.wants)

    def _begin(self, manifest: Manifest) -> StageReceiver | None:
        """Copy the pieces that other stages or the shelf contain. Return a receiver for the remaining pieces, or None
        if none are missing. Runs in a thread."""
        donors = self._shelf.donors(frozenset(piece.sha256 for piece in manifest.pieces))
        receiver = self._stages.accept(manifest, donors)
        if receiver.wants:
            return receiver
        receiver.finish()
        return None

    def _find(self, member: MachineId, pipeline: PipelineId) -> StageOffer:
        offer = self._offers.get(pipeline)
        if offer is None or offer.member != member:
            raise BadInput("stage_not_offered")
        return offer

    def _make_way(self, member: MachineId, pipeline: PipelineId) -> None:
        """Drop the oldest offers of a member that has too many, because it may never upload or open them. Raises
        Refused if `pipeline` is another member's.
        """
        there = self._offers.get(pipeline)
        if there is not None and there.member != member:
            raise Refused("lend_twice")
        own = [key for key, offer in self._offers.items() if offer.member == member]
        for key in own:
            self._offers[key].close()  # a restarted load continues where the previous one stopped
        for key in own[: max(0, len(own) - MAX_OFFERS + 1)]:
            del self._offers[key]

    @asynccontextmanager
    async def _turn(self, member: MachineId) -> AsyncGenerator[None]:
        turn = self._turns.setdefault(member, _Turn())
        if turn.waiting:
            raise Busy("stage_busy")
        turn.waiting = True
        try:
            async with asyncio.timeout(TURN_S):
                await turn.lock.acquire()
        except TimeoutError:
            raise Busy("stage_busy") from None
        finally:
            turn.waiting = False
        try:
            yield
        finally:
            turn.lock.release()


def redacted_facts(reason: Reason, folder: Path) -> dict[str, Fact]:
    """Return the facts of a reason for another machine, shortened and without this machine's paths."""
    return reason.mapped(lambda name, fact: NEUTRAL.get(name) or _short(fact, folder)).facts


@contextmanager
def redact_paths(folder: Path) -> Iterator[None]:
    """Remove this machine's paths from errors raised in the block, because these are sent to another machine."""
    try:
        yield
    except AppError as error:
        raise type(error)(error.reason.code, **redacted_facts(error.reason, folder)) from error


def _short(fact: str | int | float, folder: Path) -> str | int | float:
    if isinstance(fact, int | float):
        return fact
    return _PATH.sub("(a file)", fact.replace(str(folder), "(a folder)"))[:200]
