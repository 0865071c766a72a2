"""The service that lends this machine: accepts layers from hosts and runs them according to the owner's rules."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import msgspec

from app.catalog.families.family_table import unproved_stage
from app.catalog.gguf.gguf_file import read_header
from app.catalog.gguf.model_reader import model_of
from app.catalog.shelf import Shelf
from app.catalog.stages.manifest import Manifest
from app.catalog.stages.stage_store import StageStore
from app.core.errors import AppError, BadInput, Busy, Reason, Refused, StageLost, Unreachable
from app.core.household.membership import Member
from app.core.household.operations import Role as HouseholdRole
from app.core.ids import MachineId, PipelineId, pipeline_id
from app.core.planner.card_division import StageParts
from app.core.planner.stage_memory import cells_read, work_bytes
from app.core.planner.work_shape import WorkShape
from app.inference.stages.slot_keeper import WorkerSlotKeeper, state_identity
from app.inference.stages.stage_client import FrameChannel, Run
from app.inference.stages.stage_host import KEEP_S, RelayedWork, RunOrder, StageHost
from app.machine.hardware import devices
from app.machine.hardware.cards import (
    PROCESSOR_ONLY,
    ComputingCard,
    compared_if_needed,
    is_card_short,
    label_of,
    lose_card,
    prove,
    refusal_of,
    refusing,
)
from app.machine.hardware.cores import Threads
from app.machine.prompt_vault import PromptVault
from app.network import messages
from app.node.engines.added_engine import AddedEngine
from app.node.lending.stage_uploads import BoundedExecutor, StageOffer, StageOffers, redact_paths, redacted_facts
from app.node.verification.spare_memory import SpareMemory
from backends.contract import (
    ADDED_ENGINES,
    LLAMACPP,
    MAX_BATCH_TOKENS,
    CheckpointRule,
    Layers,
    NumberFormat,
    Role,
    StageConfig,
    can_separate_slots,
    scored_rows,
)
from backends.worker_orders import StageOpened

log = logging.getLogger(__name__)


# The memory that a host's request needs here, computed from the stage file as this machine reads it.

MAX_SLOTS, MAX_CELLS = 512, 1 << 24
NUMBERS = {"f32": NumberFormat.F32, "f16": NumberFormat.F16, "q8": NumberFormat.Q8}
LEAST_BYTES_PER_SECOND = 1 << 20  # speed of a poor wireless link; the listener accepts 1/64 of it
OFFER_S = 5.0  # seconds charged for an offer; the bytes that follow earn them back
MOST_WAITED_S = 60.0  # budget in seconds; a link of at least that speed never uses it up
MAX_OPENINGS = 4  # of one member at the same time
THREADS_FOR_OTHERS = 2  # threads that hash, copy and write uploads
ANSWER_GAP_SECONDS = 1.0  # the longest gap between two tokens of a running answer
Send = Callable[[messages.Message], Awaitable[None]]


def stage_request(
    order: messages.OpenStage,
    path: Path,
    manifest: Manifest,
    threads: Threads,
    graphics: ComputingCard = PROCESSOR_ONLY,
    member: str = "",
    added: AddedEngine | None = None,
) -> RunOrder:
    """Return the order with which the stage host opens an offered stage. Reads the stage file. Raises BadInput if
    the host's message does not match its offer.

    graphics: the cards, one of which computes the stage if it can compute the model's family.
    member: the member that requested the stage. Measurements count only for this member, because it could pass off any
        layers as those of a well-known model.
    added: the engine that the owner prefers to llama.cpp, which computes the stage if it can.
    """
    header = read_header(path)
    model = model_of(header, order.model, manifest.model_id)
    if (why := unproved_stage(model.architecture)) is not None:
        raise BadInput(why.code, **why.facts)
    layers = _layers(order)
    role = Role.WHOLE if len(layers) == order.n_layers else Role.MIDDLE  # WHOLE receives token IDs
    if model.width != order.width or model.n_layers != len(layers):
        raise BadInput("manifest_odd", what=Reason("shape_mismatched"))
    engine = added.for_stage(model.family, exact=order.exact, chosen=order.chosen_engine) if added else None
    card = graphics.card_for(model.family) if engine is None else None
    # the comparison reads the file in place
    fits = manifest.total_bytes <= devices.memory().free_bytes
    config = StageConfig(
        engine=LLAMACPP,
        path=str(path),
        embedding_path="",
        role=role,
        layers=layers,
        width=order.width,
        slots=order.slots,
        kv_cells=order.kv_cells,
        batch_rows=order.batch_rows,
        threads=threads.most,
        begin_threads=threads.begin,
        apart=can_separate_slots(order.slots, order.kv_cells, order.context),
        traits=model.cuts.traits(role),
        kv=order.kv,
        keep=CheckpointRule(order.kept_states, order.kept_rows),
        device=card.name if card else "",
        library=str(card.library) if card else "",
        compared=card is not None and fits,  # unless its devices are proved, which is known once it is divided
        exact=order.exact,
    )
    if added is not None and engine is not None:
        config = added.stage_config(engine, config, model.family)
    more_bytes = engine.more_bytes(header.tensors) if engine is not None else 0
    run = Run(bytes.fromhex(order.pipeline), role, order.width, NUMBERS[order.number], order.epoch)
    work = work_bytes(order.width, order.batch_rows, cells_read(order.slots, order.kv_cells, order.context))
    work += 4 * scored_rows(order.slots) * model.n_vocab if role is Role.WHOLE else 0
    return RunOrder(
        run,
        order.context,
        config,
        layer_bytes=manifest.total_bytes + more_bytes,
        kv_bytes=model.kv_bytes(model.layers, order.kv_cells, order.slots, order.kv),
        work_bytes=work,
        parts=StageParts.of(
            model,
            model.layers,
            role,
            model.layer_kv(order.kv_cells, order.slots, order.kv),
            work,
            WorkShape.of(hashlib.sha256(f"{member} {manifest.model_id}".encode()).hexdigest(), config),
        ),
        code_cache=engine.code_cache if engine else card.code_cache if card else None,
        family=model.family,
    )


def _layers(order: messages.OpenStage) -> Layers:
    sound = (
        order.first < order.last <= order.n_layers
        and 1 <= order.slots <= MAX_SLOTS
        and 1 <= order.context <= order.kv_cells <= MAX_CELLS
        and 1 <= order.batch_rows <= MAX_BATCH_TOKENS
        and order.engine == LLAMACPP
    )
    if not sound:
        raise BadInput("manifest_odd", what=Reason("sizes_impossible"))
    return Layers(order.first, order.last)


# The time for which uploads may interrupt sample checks. Slow uploads must not block the checks forever.


class SlowUploadBudget:
    """The total time that each member may spend on slow uploads. Many short uploads count like one long upload."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._waited_s: dict[MachineId, float] = {}

    def is_used_up(self, member: MachineId) -> bool:
        """Return whether a member's budget is used up. Fast uploads restore it."""
        return self._waited_s.get(member, 0.0) > MOST_WAITED_S

    def charge_offer(self, member: MachineId) -> None:
        """Charge a member for an offer of layers, even if the bytes never arrive."""
        self._count(member, OFFER_S)

    async def charge_chunks(
        self, member: MachineId, chunks: AsyncIterator[bytes], ended: Callable[[], None]
    ) -> AsyncGenerator[bytes]:
        """Yield the chunks unchanged, and charge the time spent waiting for the sender. `ended` is called, possibly
        several times, once the budget is used up."""
        while True:
            began_s, chunk = self._clock(), None
            try:
                chunk = await anext(chunks, None)
            finally:  # charged even if the upload is interrupted
                bought_s = len(chunk or b"") / LEAST_BYTES_PER_SECOND
                self._count(member, self._clock() - began_s - bought_s)
            if self.is_used_up(member):
                ended()
            if chunk is None:
                return
            yield chunk

    def _count(self, member: MachineId, seconds: float) -> None:
        self._waited_s[member] = max(0.0, self._waited_s.get(member, 0.0) + seconds)


@dataclass(slots=True)
class _Run:
    """A host's layers on this machine, from the request until their memory is freed.

    The stage file is protected from eviction while this record exists.
    """

    member: MachineId
    offer: StageOffer
    order: messages.OpenStage
    send: Send  # sends the reply to the waiting host
    opening: asyncio.Task[None] | None = None
    keeper: WorkerSlotKeeper | None = None  # once needed
    is_keeping: bool = False  # whether a slot is being kept or restored

    @property
    def is_opening(self) -> bool:
        return self.opening is None or not self.opening.done()

    def is_renewed_by(self, member: Member, order: messages.OpenStage) -> bool:
        """Return whether the message is from the same host and requests the same run with a newer epoch."""
        same = msgspec.structs.replace(order, epoch=self.order.epoch) == self.order
        newer = order.epoch > self.order.epoch
        return self.member == member.id and not self.is_opening and same and newer


class LendingTerms(Protocol):
    """The owner's current permissions, implemented by app/node/lending/lending_policy.py."""

    spare_memory: SpareMemory  # memory of this machine's own checks, which is freed when needed

    def lent_bytes(self) -> int: ...
    def threads(self) -> int:
        """Return the number of processor threads for a run that starts now. 0 means all threads."""
        ...

    def require(self) -> None:
        """Raise Refused with the reason if no new work may begin here."""
        ...


class LendingService:
    """Serves the requests of hosts within the owner's limits. Each run has its own worker."""

    def __init__(
        self,
        lender: StageHost,
        shelf: Shelf,
        stages: StageStore,
        terms: LendingTerms,
        threads: Threads,
        group: asyncio.TaskGroup,
        changed: Callable[[], None],
        graphics: ComputingCard = PROCESSOR_ONLY,
    ) -> None:
        self._graphics = graphics
        self.vault: PromptVault | None = None  # keeps the prompts of hosts on disk
        self.added_engine: AddedEngine | None = None  # the engine that the owner prefers to llama.cpp
        lender.on_device_lost = self._device_lost
        lender.on_device_short = lambda pipeline: graphics.ran_short({pipeline})
        self.stage_host, self._stages, self._threads = lender, stages, threads
        self._group, self._changed = group, changed
        self._executor = BoundedExecutor(THREADS_FOR_OTHERS, "lending")
        self._terms = terms
        self._offers = StageOffers(shelf, stages, terms.lent_bytes, self._executor)
        self._runs: dict[PipelineId, _Run] = {}
        self._slow_budget = SlowUploadBudget()
        self._answering: set[MachineId] = set()  # hosts that reported an answer in progress
        self._instances: dict[MachineId, str] = {}  # ID of each machine's last known run
        # Timers that free the layers of machines without a link.
        self._unlinked: dict[MachineId, asyncio.TimerHandle] = {}
        lender.on_ended = self._ended

    @property
    def used_bytes(self) -> int:
        return self.stage_host.used_bytes

    @property
    def passed(self) -> RelayedWork:
        """The totals of the work done here for other hosts since the start."""
        return self.stage_host.relayed_work

    @property
    def machine(self) -> str:
        """The name of this machine in messages that are shown to users of the hosts."""
        return self.stage_host.machine

    @machine.setter
    def machine(self, name: str) -> None:
        self.stage_host.machine = name

    @property
    def unloaded_bytes(self) -> int:
        """The bytes that are promised but that the operating system still counts as free."""
        return self.stage_host.unloaded_bytes

    def work(self) -> tuple[int, float]:
        """Return how many steps were answered since the start, and for how many seconds the current step has been
        running.
        """
        return self.stage_host.progress()

    def busy(self) -> bool:
        """Return whether layers are loading here or an answer is using them."""
        loading = any(run.is_opening for run in self._runs.values())
        return loading or self.stage_host.computed_within(ANSWER_GAP_SECONDS)

    def layers(self) -> tuple[Layers, ...]:
        return tuple(run.config.layers for run in self.stage_host.runs)

    def borrowers(self) -> set[MachineId]:
        return {run.member for run in self._runs.values()}

    async def stage_offer(self, member: Member, pipeline: PipelineId, body: bytes) -> bytes:
        """Accept the manifest of a stage, and return which of its pieces are missing here."""
        _must_host(member)
        if pipeline in self._runs:
            raise Refused("lend_twice")
        self._require()
        with redact_paths(self._stages.folder):
            async with self._disk_for(member):
                self._slow_budget.charge_offer(member.id)
                return await self._offers.offer(member.id, pipeline, body)

    async def pieces(self, member: Member, pipeline: PipelineId, chunks: AsyncIterator[bytes]) -> bytes:
        """Accept the bytes of the missing pieces, in the order in which they were requested."""
        with redact_paths(self._stages.folder):
            async with self._disk_for(member) as enough:
                sent = self._slow_budget.charge_chunks(member.id, self._while_lending(chunks), enough)
                return await self._offers.pieces(member.id, pipeline, sent)

    async def open(self, member: Member, order: messages.OpenStage, send: Send) -> None:
        """Start loading an offered stage. The reply is StageReady or StageFailed."""
        pipeline = pipeline_id(order.pipeline)
        held = self._runs.get(pipeline)
        if held is not None and held.is_renewed_by(member, order):
            held.send = send
            work = self._renew(member, held, order, send)
            held.opening = self._group.create_task(work, name=f"renew layers for {member.name}")
            return
        try:
            run = self._begin(member, pipeline, order, send)
        except AppError as error:
            await _answer(send, self._failed(member, order, error))
            return
        work = self._open(member, run, order, send)
        run.opening = self._group.create_task(work, name=f"load layers for {member.name}")

    def require_expected(self, member: Member, pipeline: PipelineId) -> None:
        """Raise Refused unless this run exists here and belongs to this host."""
        run = self._runs.get(pipeline)
        if run is None or run.member != member.id:
            raise Refused("lend_not_open")
        self.stage_host.get_open(pipeline)

    async def data(self, member: Member, pipeline: PipelineId, channel: FrameChannel) -> None:
        """Serve frames on the channel until the host closes it."""
        self.require_expected(member, pipeline)
        await self.stage_host.serve(pipeline, channel)

    def keep_slot(self, member: Member, order: messages.KeepSlot | messages.RestoreSlot, send: Send) -> None:
        """Start saving a slot of a host's layers to disk, or restoring one. The reply is SlotDone."""
        self._group.create_task(self._keep_slot(member, order, send), name=f"keep a prompt for {member.name}")

    async def _keep_slot(self, member: Member, order: messages.KeepSlot | messages.RestoreSlot, send: Send) -> None:
        positions, run = 0, self._runs.get(pipeline_id(order.pipeline))
        is_sound = run is not None and run.member == member.id and run.order.epoch == order.epoch
        if run is not None and is_sound and not run.is_opening and not run.is_keeping:
            run.is_keeping = True
            try:
                positions = await self._kept_positions(run, order)
            except AppError as error:
                log.info("a prompt for %s is not kept: %s", member.name, error)
            except Exception:  # an unexpected error must not end the node
                log.exception("a prompt for %s could not be kept", member.name)
            finally:
                run.is_keeping = False
        await _answer(send, messages.SlotDone(request=order.request, pipeline=order.pipeline, positions=positions))

    async def _kept_positions(self, run: _Run, order: messages.KeepSlot | messages.RestoreSlot) -> int:
        """Save or restore a slot, as the order requests. Return how many positions were saved or restored."""
        keeper, key = self._keeper(run, pipeline_id(order.pipeline)), bytes.fromhex(order.key)
        if keeper is None:
            return 0
        if isinstance(order, messages.RestoreSlot):
            return await keeper.restore(order.slot, key)
        return order.positions if await keeper.keep(order.slot, order.positions, key) else 0

    def _keeper(self, run: _Run, pipeline: PipelineId) -> WorkerSlotKeeper | None:
        if run.keeper is None and self.vault is not None:
            lent = self.stage_host.get_open(pipeline)
            run.keeper = WorkerSlotKeeper(
                lent.running_worker(),
                pipeline,
                lambda: run.order.epoch,
                self.vault,
                run.member,
                state_identity(run.order.manifest, lent.order.run.number, lent.order.config),
                lambda: min(self.stage_host.room_for_a_copy(pipeline), devices.memory().free_bytes // 2),
            )
            lent.copy_bytes = run.keeper.most_copy_bytes
        return run.keeper

    async def close(self, member: MachineId, pipeline: PipelineId) -> None:
        """Free the layers of a run, even while they are still loading.

        Once started, this continues even if the link to the host breaks.
        """
        self._offers.forget(member, pipeline)
        run = self._runs.get(pipeline)
        if run is not None and run.member == member:
            await asyncio.wait({self._give_back_soon(pipeline, run)})

    def close_soon(self, member: MachineId) -> set[asyncio.Task[None]]:
        """Start freeing all layers of a member that was removed or has restarted. Return the tasks."""
        self._offers.forget(member)
        runs = [(key, run) for key, run in self._runs.items() if run.member == member]
        return {self._give_back_soon(pipeline, run) for pipeline, run in runs}

    def host_connected(self, member: MachineId, instance: str) -> set[asyncio.Task[None]]:
        """Record a new link to a host. If the host has restarted, return the tasks that free the layers of its
        previous run."""
        if (timer := self._unlinked.pop(member, None)) is not None:
            timer.cancel()
        before = self._instances.get(member, instance)
        self._instances[member] = instance
        return self.close_soon(member) if before != instance else set()

    def host_disconnected(self, member: MachineId) -> None:
        """Record that a host's link has closed, and free its layers after KEEP_S. Data connections do not count,
        because they can stay open forever if the host hangs."""
        self._answering.discard(member)
        loop = asyncio.get_running_loop()
        if (timer := self._unlinked.pop(member, None)) is not None:
            timer.cancel()
        self._unlinked[member] = loop.call_later(KEEP_S, self.close_soon, member)

    def drop_former_hosts(self, members: Mapping[MachineId, Member]) -> None:
        """Close the layers of members that are no longer hosts, and refuse their pending requests. These members stay
        connected, so their requests would otherwise wait until they time out."""
        for member in members.values():
            if HouseholdRole.HOST in member.roles:
                continue
            for run in self._runs.values():
                if run.member == member.id and run.is_opening:
                    refused = Refused("role_missing", name=member.name)
                    answer = _answer(run.send, self._failed(member, run.order, refused))
                    self._group.create_task(answer, name=f"refuse {member.name}")
            self.close_soon(member.id)

    def quiet_s(self) -> float:
        """Return the seconds since this machine last computed for a host."""
        return self.stage_host.quiet_s()

    def note_answering(self, member: MachineId, now: bool) -> None:
        """Record whether a host is generating an answer."""
        (self._answering.add if now else self._answering.discard)(member)

    def is_answering(self) -> bool:
        """Return whether a connected host reports that an answer in progress uses the layers here."""
        return not self._answering.isdisjoint(self.borrowers())

    def is_on_processor(self) -> bool:
        """Return whether the processor computes layers here."""
        return any(not run.config.device for run in self.stage_host.runs)

    def is_on_card_switched_off(self) -> bool:
        """Return whether layers here are on a graphics card that the owner has switched off since they were loaded."""
        return any(
            self._graphics.is_switched_off(device, run.config.library)
            for run in self.stage_host.runs
            for device in run.config.devices
        )

    async def stop_now(self, why: Reason) -> None:
        """Kill all workers and tell each host why. Return when the memory is free."""
        machine = self.stage_host.machine
        self._offers.close()
        reason = Reason("lend_taken_back", {"machine": machine, "why": why})
        await self.stage_host.stop_now(reason)

    def end(self) -> None:
        """Cancel all loads and uploads when the node stops."""
        self._offers.close()
        for run in self._runs.values():
            if run.opening is not None:
                run.opening.cancel()
        for timer in self._unlinked.values():
            timer.cancel()
        self._executor.close()

    def _begin(self, member: Member, pipeline: PipelineId, order: messages.OpenStage, send: Send) -> _Run:
        """Create the record of a new run. This method never awaits, so the record exists before the next request is
        handled."""
        _must_host(member)
        if pipeline in self._runs:
            raise Refused("lend_twice")
        self._terms.require()
        count = sum(run.is_opening for run in self._runs.values() if run.member == member.id)
        if count >= MAX_OPENINGS:
            raise Busy("lend_busy", count=count)
        offer = self._offers.take(member.id, pipeline, order.manifest)
        self._stages.protect(offer.stage_id)
        run = self._runs[pipeline] = _Run(member.id, offer, order, send)
        return run

    async def _open(self, member: Member, run: _Run, order: messages.OpenStage, send: Send) -> None:
        opened = False
        try:
            async with self._terms.spare_memory.reserve():
                answer: messages.Message = await self._loaded(run, order)
            opened = True
        except AppError as error:
            answer = self._failed(member, order, error)
        except Exception:  # an unexpected error must not end the node
            log.exception("loading a stage for %s failed", member.name)
            answer = messages.StageFailed(pipeline=order.pipeline, code="bug")
        finally:
            if not opened:
                self._drop(pipeline_id(order.pipeline), run)
        self._changed()
        await _answer(send, answer)

    async def _renew(self, member: Member, run: _Run, order: messages.OpenStage, send: Send) -> None:
        """Start a new epoch on loaded layers before the host replays its answers."""
        try:
            opened = await self.stage_host.renew(pipeline_id(order.pipeline), order.epoch)
            run.order = order
            answer: messages.Message = messages.StageReady(
                pipeline=order.pipeline, epoch=order.epoch, memory_bytes=opened.memory_bytes, fetched_bytes=0
            )
        except AppError as error:
            answer = self._failed(member, order, error)
        except Exception:  # an unexpected error must not end the node
            log.exception("a new epoch could not be started")
            answer = messages.StageFailed(pipeline=order.pipeline, code="bug")
        pipeline = pipeline_id(order.pipeline)
        if all(each.run.pipeline != pipeline for each in self.stage_host.runs):  # it ended during the renewal
            self._drop(pipeline, run)
        await _answer(send, answer)

    def _label(self, config: StageConfig) -> str:
        """Return the engine or the cards that compute a stage, or "" for the processor with llama.cpp."""
        engine = self.added_engine.label_of(config) if self.added_engine else ""
        return engine or label_of(self._graphics.computing, config)

    def _device_lost(self, config: StageConfig, opening_family: str) -> None:
        if config.engine in ADDED_ENGINES:
            if self.added_engine is not None:
                self.added_engine.crashed(config.engine)
            return
        lose_card(self._graphics, config.devices, opening_family)

    async def _loaded(self, run: _Run, order: messages.OpenStage) -> messages.StageReady:
        offer, threads = run.offer, self._threads.at_most(self._terms.threads())
        path = await self._executor.run(self._stages.path, offer.stage_id)
        if path is None:
            raise StageLost("stage_gone")
        graphics, added = self._graphics, self.added_engine
        if added is not None:
            await added.wait()
        while True:
            request = await self._executor.run(
                stage_request, order, path, offer.manifest, threads, graphics, run.member, added
            )
            self._terms.require()  # lending may have stopped while the file was read
            cards = graphics.cards_for(request.family)
            try:
                request, opened, was_short = await self._open_divided(request, threads)
                break
            except AppError as error:
                if added is not None and request.config.engine in ADDED_ENGINES:
                    added.failed(request.config, request.family, error)
                    added = None  # llama.cpp computes this stage
                    continue
                if (why := refusal_of(error)) is not None:
                    for card in refusing(cards, why):
                        graphics.judge(card, request.family, why)
                if len(graphics.cards_for(request.family)) >= len(cards):
                    raise
                log.info("the other graphics cards or the processor compute this family: %s", error.reason)
        if added is not None and request.config.engine in ADDED_ENGINES:
            added.opened(request.config, request.family, opened.apart)
        elif opened.apart is not None:
            prove(graphics, request.config, request.family)
        return messages.StageReady(
            pipeline=order.pipeline,
            epoch=order.epoch,
            memory_bytes=opened.memory_bytes,
            fetched_bytes=offer.fetched_bytes,
            card=self._label(request.config)[: messages.MAX_TEXT_CHARACTERS],
            card_short=was_short,
            work_bytes=max(opened.device_work.values(), default=0),
        )

    async def _open_divided(self, request: RunOrder, threads: Threads) -> tuple[RunOrder, StageOpened, bool]:
        """Open a run, divided among the graphics cards.

        If the cards have less memory than expected, claim less of it and try again, at last without the cards. Return
        the run as it was opened, the opened stage, and whether the cards had less memory than expected.
        """
        was_short = False
        while True:
            claimed = self._divided(request)
            try:
                opened = await self.stage_host.open(claimed, threads=threads)
                self._graphics.note_work(request.run.pipeline, opened.device_work)
                return claimed, opened, was_short
            except AppError as error:
                if not claimed.card_bytes or not is_card_short(error):  # without a claim, there is nothing to reduce
                    raise
                was_short = True
                self._graphics.ran_short({request.run.pipeline})
                if not self._graphics.overflows:
                    raise

    def _divided(self, request: RunOrder) -> RunOrder:
        cards = self._graphics.cards_for(request.family)
        if not cards or cards[0].name != request.config.device or request.parts is None:
            return request
        claim = self._graphics.claim(request.run.pipeline, cards, request.parts)
        config = compared_if_needed(self._graphics, claim.placed(request.config), request.family)
        work_bytes = claim.work_bytes if claim.n_bytes else request.work_bytes
        return replace(request, config=config, card_bytes=claim.n_bytes, work_bytes=work_bytes)

    def _failed(self, member: Member, order: messages.OpenStage, error: AppError) -> messages.StageFailed:
        log.info("a stage for %s was refused: %s", member.name, error.reason)
        facts = messages.sent_facts(redacted_facts(error.reason, self._stages.folder))
        return messages.StageFailed(pipeline=order.pipeline, code=error.reason.code, facts=facts)

    def _require(self) -> None:
        """Raise Refused unless lending is allowed. The name of this machine is added to the error, because it
        would otherwise be missing from the reply.
        """
        try:
            self._terms.require()
        except Refused as error:
            raise Refused("lender_said", machine=self.stage_host.machine, what=error.reason) from None

    def _disk_for(self, member: Member) -> AbstractAsyncContextManager[Callable[[], None]]:
        """Pause this machine's sample checks while a member uploads, unless the member's uploads have been too slow."""
        if self._slow_budget.is_used_up(member.id):
            return nullcontext(lambda: None)
        return self._terms.spare_memory.reserve()

    async def _while_lending(self, chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
        """Yield the uploaded chunks as long as lending is allowed. Raises Refused."""
        async for chunk in chunks:
            self._require()
            yield chunk

    def _give_back_soon(self, pipeline: PipelineId, run: _Run) -> asyncio.Task[None]:
        return self._group.create_task(self._give_back(pipeline, run), name="free layers")

    async def _give_back(self, pipeline: PipelineId, run: _Run) -> None:
        """Stop loading the run and close its worker. After that, nothing uses its stage file."""
        try:
            if run.opening is not None:
                run.opening.cancel()
                await asyncio.wait({run.opening})
            if self._runs.get(pipeline) is run:
                await self.stage_host.close(pipeline)
        except Exception:  # an unexpected error must not end the node
            log.exception("layers could not be freed")
        finally:
            self._drop(pipeline, run)

    def _ended(self, pipeline: bytes) -> None:
        """Forget a run whose memory the stage host has freed, for whatever reason. A run that is still opening may be
        tried again; otherwise, `_open` forgets it.
        """
        run = self._runs.get(PipelineId(pipeline))
        if run is not None and not run.is_opening:
            self._drop(PipelineId(pipeline), run)

    def _drop(self, pipeline: PipelineId, run: _Run) -> None:
        """Forget a run that no longer occupies memory here. Repeating this is harmless."""
        if self._runs.get(pipeline) is run:
            del self._runs[pipeline]
            self._stages.release(run.offer.stage_id)
            self._graphics.release(pipeline)
            self._changed()


def _must_host(member: Member) -> None:
    if HouseholdRole.HOST not in member.roles:
        raise Refused("role_missing", name=member.name)


async def _answer(send: Send, answer: messages.Message) -> None:
    try:
        await send(answer)
    except Unreachable:
        pass  # the host is gone, and app/inference/stages/stage_host.py ends the stage later
    except Exception:  # an unexpected error of a reply must not end the task
        log.exception("%s could not be sent", type(answer).__name__)
