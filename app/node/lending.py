"""The lender's side: members ask for room and send layers; this machine's own rules decide."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from app.catalog.gguf import model_of
from app.catalog.gguf_check import read_header
from app.catalog.manifest import Manifest, from_json
from app.catalog.shelf import Shelf
from app.catalog.stage_store import StageStore
from app.core.errors import AppError, BadInput, Refused, StageLost, Unreachable
from app.core.ids import MachineId, PipelineId, pipeline_id
from app.core.membership import Member
from app.core.operations import Role as HouseholdRole
from app.core.plan import work_bytes
from app.inference.lend import Lender, Wanted
from app.inference.stage_client import FrameChannel
from app.inference.step import Run
from app.lan import messages
from backends.contract import MAX_BATCH_TOKENS, Layers, Number, Role, StageConfig

log = logging.getLogger(__name__)

MAX_OFFERS = 16  # manifests of one host that wait to be opened
MAX_SLOTS, MAX_CELLS = 512, 1 << 24
NUMBERS = {"f32": Number.F32, "f16": Number.F16, "q8": Number.Q8}

Send = Callable[[messages.Message], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Offer:
    """Layers that a host wants to place here."""

    member: MachineId
    manifest: Manifest
    fetched_bytes: int = 0


class Lending:
    """Carries out what hosts ask, within what the owner lends. One worker for each run."""

    def __init__(
        self,
        lender: Lender,
        shelf: Shelf,
        stages: StageStore,
        lent_bytes: Callable[[], int],
        threads: int,
        group: asyncio.TaskGroup,
        changed: Callable[[], None],
    ) -> None:
        self._lender, self._shelf, self._stages = lender, shelf, stages
        self._lent_bytes, self._threads = lent_bytes, threads
        self._group, self._changed = group, changed
        self._opening: dict[PipelineId, asyncio.Task[None]] = {}
        self._offers: dict[PipelineId, Offer] = {}
        self._owners: dict[PipelineId, MachineId] = {}  # of runs that are open or opening

    @property
    def used_bytes(self) -> int:
        return self._lender.used_bytes

    def layers(self) -> tuple[Layers, ...]:
        return tuple(wanted.config.layers for wanted in self._lender.runs)

    def borrowers(self) -> set[MachineId]:
        return set(self._owners.values())

    async def stage_offer(self, member: Member, pipeline: PipelineId, body: bytes) -> bytes:
        """A manifest comes; which pieces are missing here goes back."""
        self._must_host(member)
        manifest = await asyncio.to_thread(from_json, body, self._lent_bytes())
        await self._forget_ended()
        self._forget_old(member.id)
        self._offers[pipeline] = Offer(member.id, manifest)
        if await asyncio.to_thread(self._stages.path, manifest.id):
            return b"[]"
        return await asyncio.to_thread(self._missing, manifest)

    async def pieces(
        self, member: Member, pipeline: PipelineId, chunks: AsyncIterator[bytes]
    ) -> bytes:
        """Tensor bytes come, in the order they were asked for."""
        offer = self._offered(member, pipeline)
        receiver = await asyncio.to_thread(self._stages.receive, offer.manifest)
        fetched = 0
        try:
            async for chunk in chunks:
                await asyncio.to_thread(receiver.write, chunk)
                fetched += len(chunk)
            await asyncio.to_thread(receiver.finish)
        finally:
            await asyncio.to_thread(receiver.close)
        self._offers[pipeline] = Offer(member.id, offer.manifest, fetched)
        return msgspec.json.encode({"fetched_bytes": fetched})

    def open(self, member: Member, order: messages.OpenStage, send: Send) -> None:
        """Begin to load what was offered. The answer is StageReady or StageFailed."""
        pipeline = pipeline_id(order.pipeline)
        task = self._group.create_task(
            self._open(member, pipeline, order, send), name=f"load layers for {member.name}"
        )
        self._opening[pipeline] = task
        task.add_done_callback(lambda _: self._opening.pop(pipeline, None))

    async def _open(
        self, member: Member, pipeline: PipelineId, order: messages.OpenStage, send: Send
    ) -> None:
        try:
            answer: messages.Message = await self._opened(member, pipeline, order)
        except AppError as error:
            log.info("a stage for %s was refused: %s", member.name, error.reason)
            facts = {name: _short(fact) for name, fact in error.reason.facts.items()}
            code = error.reason.code
            answer = messages.StageFailed(pipeline=order.pipeline, code=code, facts=facts)
        self._changed()
        with suppress(
            Unreachable
        ):  # the host is gone; the watch in inference/lend.py ends the stage
            await send(answer)

    async def data(self, member: Member, pipeline: PipelineId, channel: FrameChannel) -> None:
        """Serve frames until the host's channel ends."""
        if self._owners.get(pipeline) != member.id:
            raise Refused("lend_not_open")
        await self._lender.serve(pipeline, channel)

    async def close(self, member: MachineId, pipeline: PipelineId) -> None:
        """The host needs these layers no more, whether they are loaded or still loading."""
        if self._owners.get(pipeline, member) == member:
            if opening := self._opening.get(pipeline):
                opening.cancel()
                await asyncio.wait({opening})
            await self._give_back(pipeline)

    def close_soon(self, member: MachineId) -> None:
        """A member was removed: nothing of it stays here."""
        self._group.create_task(
            self._close_all(member), name="give back a removed machine's layers"
        )

    async def _close_all(self, member: MachineId) -> None:
        for pipeline, owner in list(self._owners.items()):
            if owner == member:
                await self.close(member, pipeline)
        self._forget_old(member, keep=0)

    async def _opened(
        self, member: Member, pipeline: PipelineId, order: messages.OpenStage
    ) -> messages.StageReady:
        self._must_host(member)
        offer = self._offered(member, pipeline)
        if offer.manifest.id != order.manifest:
            raise BadInput("manifest_odd", what="another manifest than was offered")
        path = await asyncio.to_thread(self._stages.hold, offer.manifest.id)
        if path is None:
            raise StageLost("stage_gone")
        self._owners[pipeline] = member.id
        try:
            wanted = await asyncio.to_thread(_wanted, order, path, offer.manifest, self._threads)
            opened = await self._lender.open(wanted, threads=self._threads)
        except BaseException:
            del self._owners[pipeline]
            self._stages.release(offer.manifest.id)
            raise
        return messages.StageReady(
            pipeline=order.pipeline,
            epoch=order.epoch,
            memory_bytes=opened.memory_bytes,
            fetched_bytes=offer.fetched_bytes,
        )

    async def _give_back(self, pipeline: PipelineId) -> None:
        self._owners.pop(pipeline, None)
        await self._lender.close(pipeline)
        offer = self._offers.pop(pipeline, None)
        if offer is not None:
            self._stages.release(offer.manifest.id)
        self._changed()

    def _missing(self, manifest: Manifest) -> bytes:
        """Which pieces to send; copies what other stages and the shelf have. Runs in a thread."""
        donors = self._shelf.donors(frozenset(piece.sha256 for piece in manifest.pieces))
        receiver = self._stages.receive(manifest, donors)
        if not receiver.wants:
            receiver.finish()
            return b"[]"
        with receiver:
            return msgspec.json.encode(receiver.wants)

    def _must_host(self, member: Member) -> None:
        if HouseholdRole.HOST not in member.roles:
            raise Refused("role_missing", name=member.name)

    def _offered(self, member: Member, pipeline: PipelineId) -> Offer:
        offer = self._offers.get(pipeline)
        if offer is None or offer.member != member.id:
            raise BadInput("stage_not_offered")
        return offer

    def _forget_old(self, member: MachineId, keep: int = MAX_OFFERS - 1) -> None:
        """A host that offers and never opens does not fill this machine's memory."""
        idle = [
            pipeline
            for pipeline, offer in self._offers.items()
            if offer.member == member and pipeline not in self._owners
        ]
        for pipeline in idle[: len(idle) - keep] if len(idle) > keep else ():
            del self._offers[pipeline]

    async def _forget_ended(self) -> None:
        """Runs whose worker died, or that waited too long for their host, hold no stage file."""
        alive = {wanted.run.pipeline for wanted in self._lender.runs}
        for pipeline in [pipeline for pipeline in self._owners if pipeline not in alive]:
            await self._give_back(pipeline)


def _wanted(order: messages.OpenStage, path: Path, manifest: Manifest, threads: int) -> Wanted:
    """What the order takes here, by this machine's own reading of the stage file."""
    model = model_of(read_header(path), order.model, manifest.model_id)
    layers = _checked_layers(order)
    if model.width != order.width or model.n_layers != len(layers):
        raise BadInput("manifest_odd", what="another shape than was asked for")
    config = StageConfig(
        engine="llamacpp",
        path=str(path),
        embedding_path="",
        role=Role.MIDDLE,  # tokens, text and logits never leave the host
        layers=layers,
        width=order.width,
        slots=order.slots,
        kv_cells=order.kv_cells,
        batch_rows=order.batch_rows,
        threads=threads,
    )
    run = Run(
        bytes.fromhex(order.pipeline), Role.MIDDLE, order.width, NUMBERS[order.number], order.epoch
    )
    return Wanted(
        run,
        order.context,
        config,
        layer_bytes=manifest.total_bytes,
        kv_bytes=model.kv_bytes(model.layers, order.kv_cells),
        work_bytes=work_bytes(order.width, order.batch_rows),
    )


def _checked_layers(order: messages.OpenStage) -> Layers:
    sound = (
        order.first < order.last <= order.n_layers
        and 1 <= order.slots <= MAX_SLOTS
        and 1 <= order.context <= order.kv_cells <= MAX_CELLS
        and 1 <= order.batch_rows <= MAX_BATCH_TOKENS
        and order.engine == "llamacpp"
    )
    if not sound:
        raise BadInput("manifest_odd", what="sizes that cannot be")
    return Layers(order.first, order.last)


def _short(fact: object) -> str | int | float:
    return fact if isinstance(fact, int | float) else str(fact)[:200]
