"""Opens the stages of a pipeline: cuts or uploads their files, opens their runs and connects their channels."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Coroutine, Iterable
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from app.api.plans import Progress
from app.catalog.gguf.gguf_file import part_paths, read_header
from app.catalog.shelf import Entry, Shelf
from app.catalog.stages.cut import Cut
from app.catalog.stages.stage_store import StageStore
from app.core.errors import AppError, DoesNotFit, Reason, StageLost
from app.core.ids import MachineId, PipelineId, clean_text
from app.core.planner.card_division import StageParts
from app.core.planner.placement import Plan, PlannedStage
from app.core.planner.work_shape import WorkShape
from app.core.recovery.fault_table import RUN_STAYS
from app.inference.pipeline.kept_prompts import PromptIndex
from app.inference.stages.slot_keeper import WorkerSlotKeeper, state_identity
from app.inference.stages.stage_client import Run, StageClient, Step
from app.inference.stages.stage_connection import ChannelLink, PipeLink, close_run, open_run
from app.inference.worker.worker import HERE, Worker
from app.machine.hardware import devices
from app.machine.hardware.added_engines import UsableEngine
from app.machine.hardware.cards import (
    PROCESSOR_ONLY,
    Card,
    ComputingCard,
    RefusedFamily,
    compared_if_needed,
    is_card_failure,
    is_card_short,
    is_crash,
    label_of,
    lose_card,
    prove,
    refusal_of,
    refusing,
)
from app.machine.prompt_vault import OWN
from app.network import messages
from app.node.cancellation import in_thread, run_until
from app.node.control.json_bodies import Report
from app.node.downloads.transfer_rate import TransferRate
from app.node.engines.added_engine import AddedEngine
from app.node.placement.lenders import LenderReconnector, Lenders, send_or_explain
from app.node.placement.placement_state import PlacementState
from app.node.planning.planner_inputs import PlannerInputs
from app.node.planning.planning import Sizes
from backends.contract import Layers, Role, StageConfig
from backends.worker_orders import StageOpened

T = TypeVar("T")
Key = tuple[MachineId, Role, Layers]
MOST_STEP_SECONDS = 300.0  # time limit for one step of a sample; a machine that takes longer has stopped


@dataclass(frozen=True, slots=True)
class Reservation:
    """The memory for a plan that is about to open.

    make: frees memory for the plan before its stages open. Raises DoesNotFit.
    choosing: a lock that is held from reading the free memory until the plan has claimed it, so that the next plan
        takes the claim into account.
    transfer: entered while stages open, to pause background work.
    """

    make: Callable[[Plan], Awaitable[None]]
    choosing: asyncio.Lock = field(default_factory=asyncio.Lock)
    transfer: Callable[[], AbstractContextManager[None]] = nullcontext


async def gather_first_error(*work: Coroutine[Any, Any, T]) -> list[T]:
    """Run all coroutines concurrently and return their results. The first AppError cancels the other coroutines and is
    raised without an exception group."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work_item, name="open a stage") for work_item in work]
    except BaseExceptionGroup as errors:
        known, unknown = errors.split(AppError)
        if unknown is not None or known is None:
            raise
        raise _first(known) from None
    return [task.result() for task in tasks]


async def end_group(group: asyncio.TaskGroup, tasks: Iterable[asyncio.Task[None]], error: BaseException | None) -> None:
    """Exit a task group that was entered without `async with`. If `error` is set, cancel the tasks; the group does not
    wrap the error."""
    if error is not None:
        for task in tasks:
            task.cancel()
    await group.__aexit__(None, None, None)


def _first(errors: BaseExceptionGroup[AppError]) -> AppError:
    for error in errors.exceptions:
        if isinstance(error, BaseExceptionGroup):
            return _first(error)
        return error
    return StageLost("bug")


@dataclass(frozen=True, slots=True)
class PlacementServices:
    """The services that all placements share.

    planner_inputs: provides the quarantine and the memory for checking samples.
    reservation: frees memory for a plan.
    prompts: the prompts kept on disk, if this computer keeps any.
    """

    shelf: Shelf
    stages: StageStore
    lenders: Lenders
    planner_inputs: PlannerInputs
    reservation: Reservation
    graphics: ComputingCard = PROCESSOR_ONLY
    prompts: PromptIndex | None = None
    added_engine: AddedEngine | None = None  # the engine that the owner prefers to llama.cpp


@dataclass(slots=True)
class OpenRun:
    """An open run of this placement, with the exit stack that closes it."""

    stage: PlannedStage
    run: Run
    source: str  # path of the file on this machine, or ID of the manifest on a lender
    client: StageClient
    closing: AsyncExitStack
    card: str = ""  # the graphics card that computes; empty for the processor
    was_card_short: bool = False  # whether it ran out of memory, so fewer layers than planned are on it
    config: StageConfig | None = None  # of a run on this machine


class StageSet:
    """Opens the stages of a plan. When the plan changes, as few layers as possible are loaded.

    Closing `stack` closes everything that was opened.
    """

    def __init__(
        self, entry: Entry, sources: PlacementServices, sizes: Sizes, stack: AsyncExitStack, report: Report
    ) -> None:
        self.reservation = sources.reservation
        self._entry, self._sources, self._sizes = entry, sources, sizes
        self._stack, self._report = stack, report
        self._epoch = 0
        # the local worker, and the cards on which it computes; with the names of all devices of its stages
        self._own: tuple[Worker, tuple[Card, ...]] | None = None
        self._devices: set[str] = set()
        self._on_added_engine: StageConfig | None = None  # a stage of this worker that the preferred engine computes
        # the failure that was recorded last: of a worker, which has died or failed in this epoch
        self._blamed: tuple[Worker | None, int | None] = (None, None)
        self._claims: dict[bytes, int] = {}  # bytes on cards of each run of the local worker, from before it is loaded
        self._were_cards_short = False  # whether the cards of this machine ran out of memory for the last plan
        self._host: MachineId | None = None  # this machine, according to the last plan
        self._held: dict[Key, OpenRun] = {}
        self._on_disk: set[Key] = set()  # layers that this placement has sent to lenders' disks
        self._turn = asyncio.Lock()  # held either by standby work or by the opening of stages
        self._hurry = asyncio.Event()  # set while stages must open, which interrupts standby work
        self._n_hurried = 0
        self._closing = asyncio.TaskGroup()  # closes stages while others already serve
        self._closing_on: dict[asyncio.Task[None], MachineId] = {}
        self._is_open = False
        self.claimed: Plan | None = None  # the plan that is open or opening; None if only loaded stages claim memory
        self.fetched_bytes = 0  # weights that crossed the network
        self.failed: PlannedStage | None = None  # the stage that made the last `open` fail

    async def open(self, plan: Plan) -> list[StageClient]:
        """Open all stages and return their clients in order. If this raises AppError, open stages are kept for the
        next plan or until the stack closes."""
        self.claimed = plan
        try:
            with self.reservation.transfer():
                async with self._take_turn():
                    self._were_cards_short = False
                    return await self._open_on_sound_cards(plan)
        except BaseException:
            self.claimed = None  # the plan takes no more memory, so other models may
            raise

    async def _open_on_sound_cards(self, plan: Plan) -> list[StageClient]:
        """Open all stages, and return their clients. If the worker crashed on a card that had not computed this
        family before, open all stages again without that card.
        """
        graphics, family = self._sources.graphics, self._entry.model.family
        while True:
            cards = graphics.cards_for(family)
            try:
                return await self._open(plan)
            except AppError as error:
                stage, left = self.failed, graphics.cards_for(family)
                if stage is None or not self.is_here(stage) or not is_crash(error) or len(left) >= len(cards):
                    raise
                if not left:
                    crashed = RefusedFamily(cards[-1].label, family, Reason("device_crashed"))
                    self._require_main_memory(stage, crashed)

    async def _open(self, plan: Plan) -> list[StageClient]:
        if not self._is_open:
            self._is_open = True
            await self._closing.__aenter__()
            self._stack.push_async_exit(lambda *why: end_group(self._closing, self._closing_on, why[1]))
            self._stack.callback(self._hurry.set)  # standby work ends with the stack
        while True:
            try:
                return await self._open_once(plan)
            except StageLost:
                # The local worker died with all its stages, because a card ran out of memory. Fewer layers may fit.
                has_tried_cards = bool(self._devices)
                if not (self._note_death() and has_tried_cards and self._sources.graphics.overflows):
                    raise

    async def _open_once(self, plan: Plan) -> list[StageClient]:
        self._epoch += 1
        self.failed = None
        self._host = plan.host
        self._note_death()
        await self._close_unused(plan)
        await self.reservation.make(plan)
        here = any(stage.machine == plan.host for stage in plan.stages)
        worker = await self._own_worker() if here else None
        opening = [self._open_stage(stage, worker if stage.machine == plan.host else None) for stage in plan.stages]
        return await gather_first_error(*opening)

    async def prepare(self, stage: PlannedStage, *, load: bool = True) -> None:
        """Make another machine store layers that may be needed later and, if `load` is set, load them.

        The pipeline keeps serving. Raises StageLost as soon as the pipeline needs to open stages, and other AppErrors.
        """
        async with self._turn:
            await run_until(self._hurry, self._prepare(stage, load), StageLost("pipeline_closed"))

    async def _prepare(self, stage: PlannedStage, load: bool) -> None:
        await self._wait_closed({stage.machine})
        if not load:
            await self._send(stage, PipelineId(secrets.token_bytes(16)))
        elif _key(stage) not in self._held:
            async with AsyncExitStack() as closing:
                held = await self._open_remote(stage, closing)
                if self._hurry.is_set():
                    raise StageLost("pipeline_closed")
                self._keep(held, closing.pop_all())

    def is_here(self, stage: PlannedStage) -> bool:
        """Return whether this machine holds or will hold the stage."""
        return stage.machine == self._host

    def card_of(self, stage: PlannedStage) -> str:
        """Return the graphics card on which a stage is loaded, or "" for the processor and for stages not loaded."""
        held = self._held.get(_key(stage))
        return held.card if held is not None else ""

    def was_card_short(self, stage: PlannedStage) -> bool:
        """Return whether the card of a loaded stage ran out of memory, so that it holds fewer layers than planned."""
        held = self._held.get(_key(stage))
        return held is not None and held.was_card_short

    @property
    def coming_card_bytes(self) -> int:
        """Return how much card memory is reserved for local runs that are being loaded. It already counts as used."""
        loaded = {held.run.pipeline for held in self._held.values()}
        return sum(n_bytes for pipeline, n_bytes in self._claims.items() if pipeline not in loaded)

    def held(self) -> list[PlannedStage]:
        """Return the loaded stages that are still usable."""
        return [held.stage for held in self._held.values() if self._stays(held)]

    def standby(self, plan: Plan) -> list[PlannedStage]:
        """Return the stages that other machines hold as standby. Stages on this machine are never standby."""
        serving = {_key(stage) for stage in plan.stages}
        remote = {key: held for key, held in self._held.items() if key[0] != plan.host}
        return [held.stage for key, held in remote.items() if key not in serving]

    async def close_standby(self, plan: Plan, machines: Collection[MachineId]) -> None:
        """Close the standby stages on these machines."""
        serving = {_key(stage) for stage in plan.stages}
        async with self._take_turn():
            for key in [held_key for held_key in self._held if held_key[0] in machines and held_key not in serving]:
                await self._held.pop(key).closing.aclose()

    @asynccontextmanager
    async def _take_turn(self) -> AsyncGenerator[None, None]:
        """Acquire the lock, interrupting any standby work that holds it."""
        self._n_hurried += 1
        self._hurry.set()
        try:
            async with self._turn:
                yield
        finally:
            self._n_hurried -= 1
            if not self._n_hurried:
                self._hurry.clear()

    def stage_of(self, run: Run) -> PlannedStage | None:
        """Return the stage of this run, or None if the run is not open."""
        return next((h.stage for h in self._held.values() if h.run.pipeline == run.pipeline), None)

    async def compute_elsewhere(self, like: PlannedStage, step: Step) -> tuple[PlannedStage, bytes] | None:
        """Run a step on another machine that holds the same layers as standby. Return the stage there and the result,
        or None if no machine does.

        Raises StageLost as soon as stages need to be opened, and other AppErrors.
        """
        async with self._turn:
            computing = self._compute_on_standby(like, step)
            return await run_until(self._hurry, computing, StageLost("pipeline_closed"))

    async def _compute_on_standby(self, like: PlannedStage, step: Step) -> tuple[PlannedStage, bytes] | None:
        for (machine, role, layers), held in self._held.items():
            if machine not in (like.machine, self._host) and (role, layers) == _key(like)[1:]:
                self._epoch += 1  # a new epoch clears earlier results there
                client = await self._renew(held, None)
                try:
                    return held.stage, await run_step(client, step)
                finally:
                    await client.close()
        return None

    def lost(self) -> frozenset[MachineId]:
        """Return the machines, other than this one, whose stages are lost."""
        middle = [held for held in self._held.values() if held.stage.role is Role.MIDDLE]
        return frozenset(held.stage.machine for held in middle if not self._stays(held))

    def was_sent(self, stage: PlannedStage) -> bool:
        """Return whether the layers of the stage were sent to its machine's disk."""
        return _key(stage) in self._on_disk

    def stages_to_load(self, plan: Plan) -> list[PlannedStage]:
        """Return the stages of a plan that are not loaded yet."""
        return [stage for stage in plan.stages if not self._stays(self._held.get(_key(stage)))]

    def _stays(self, held: OpenRun | None) -> bool:
        """Return whether a run is still usable."""
        if held is None or _is_lost(held.client):
            return False
        worker_died = self._worker is None or self._worker.died is not None
        return not (worker_died and held.stage.machine == self._host)

    async def _close_unused(self, plan: Plan) -> None:
        """Close stages that are lost or that the plan does not use, before the plan needs their memory."""
        keys, machines = {_key(stage) for stage in plan.stages}, {s.machine for s in plan.stages}
        for key, held in list(self._held.items()):
            if key not in keys or not self._stays(held):
                del self._held[key]
                self._note_lack(held)
                if self._worker is not None and held.stage.machine == self._host:
                    await _close_local(self._worker, held.run)
                if held.stage.machine in machines:
                    await held.closing.aclose()
                else:
                    self._close_later(held)
        await self._wait_closed(machines)

    def _close_later(self, held: OpenRun) -> None:
        """Close a stage in the background, because closing takes seconds if its machine hangs."""
        name = f"free layers on {held.stage.name}"
        task = self._closing.create_task(self._close_run(held), name=name)
        self._closing_on[task] = held.stage.machine
        task.add_done_callback(self._closing_on.pop)

    async def _wait_closed(self, machines: Collection[MachineId]) -> None:
        """Wait until all closing stages on these machines are closed and their memory is free."""
        if tasks := [task for task, machine in self._closing_on.items() if machine in machines]:
            await asyncio.wait(tasks)

    async def _close_run(self, held: OpenRun) -> None:
        try:
            await held.closing.aclose()
        except asyncio.CancelledError:  # the placement is ending, and its stack then tells the lender
            machine, pipeline = held.stage.machine, PipelineId(held.run.pipeline)
            self._stack.push_async_callback(self._sources.lenders.close_stage, machine, pipeline)
            raise

    @property
    def _worker(self) -> Worker | None:
        return self._own[0] if self._own else None

    @property
    def _cards(self) -> tuple[Card, ...]:
        return self._own[1] if self._own else ()

    async def _own_worker(self) -> Worker:
        worker = self._worker
        if worker is None or worker.died is not None:
            self._note_death()
            self._devices, self._on_added_engine = set(), None
            reads = [*part_paths(Path(self._entry.path)), self._sources.stages.folder]
            threads = self._sizes.threads
            cards = self._sources.graphics.cards_for(self._entry.model.family)  # all have the same library
            reads += [card.library.parent for card in cards[:1]]
            engine = await self._added_engine()
            reads += [Path(engine.folder)] if engine else []
            worker = await Worker.start(
                HERE,
                threads=threads,
                reads=reads,
                forms=True,
                exact=self._sizes.exact,
                code_cache=next((each.code_cache for each in (engine, *cards) if each and each.code_cache), None),
            )
            self._own = worker, cards
            await self._stack.enter_async_context(worker)
        return worker

    async def _open_stage(self, stage: PlannedStage, worker: Worker | None) -> StageClient:
        """Open one stage on the local `worker` or on another machine. A run that is already open is reused."""
        try:
            held = self._held.get(_key(stage))
            if held is not None:
                try:
                    return await self._renew(held, worker)
                except AppError:
                    del self._held[_key(stage)]
                    await held.closing.aclose()
            async with AsyncExitStack() as closing:
                if worker is not None:
                    held = await self._open_local(worker, stage, closing)
                else:
                    held = await self._open_remote(stage, closing)
                self._keep(held, closing.pop_all())
                return held.client
        except AppError:
            self.failed = self.failed or stage
            raise

    def _keep(self, held: OpenRun, closing: AsyncExitStack) -> None:
        held.closing = closing
        self._held[_key(held.stage)] = held
        self._stack.push_async_callback(closing.aclose)

    async def _renew(self, held: OpenRun, worker: Worker | None) -> StageClient:
        """Start a new epoch on an open run. Its weights stay loaded, and its KV cache is cleared."""
        stage, run = held.stage, replace(held.run, epoch=self._epoch)
        if worker is not None:
            assert held.config is not None
            await open_run(worker, run, self._sizes.context, held.config)
            held.client = self._client(stage, run, worker, held.config)
        else:
            held.client, _ = await self._open_on_lender(stage, run, held.source, held.closing)
        held.run = run
        return held.client

    async def _open_local(self, worker: Worker, stage: PlannedStage, closing: AsyncExitStack) -> OpenRun:
        run = self._run(stage)
        path = self._entry.path
        if stage.role is not Role.WHOLE:
            path = await self._stage_file(stage, closing)
        self._tell(stage, "loading", 0, 1)
        closing.callback(self._release, run.pipeline)
        config = await self._load_local(worker, stage, run, path)
        self._tell(stage, "loading", 1, 1)
        client = self._client(stage, run, worker, config)
        added = self._sources.added_engine
        label = (added.label_of(config) if added else "") or label_of(self._sources.graphics.computing, config)
        return OpenRun(stage, run, path, client, closing, label, self._were_cards_short, config)

    def _release(self, pipeline: bytes) -> None:
        """Release the card memory that a local run has claimed."""
        self._claims.pop(pipeline, None)
        self._sources.graphics.release(pipeline)

    async def _load_local(self, worker: Worker, stage: PlannedStage, run: Run, path: str) -> StageConfig:
        """Load a stage on the cards or, if they do not compute this family, on the processor."""
        graphics, family = self._sources.graphics, self._entry.model.family
        config = self._sizes.config(stage, self._entry, path)
        if (own := await self._load_with_added_engine(worker, stage, run, config)) is not None:
            return own
        while cards := self._cards:
            fits = stage.weight_bytes <= devices.memory().free_bytes  # the comparison reads the file in place
            on_card = self._sizes.config(stage, self._entry, path, cards[0], compared=fits)
            try:
                on_card, opened = await self._open_divided(worker, stage, run, on_card)
            except AppError as error:
                if isinstance(error, StageLost) or is_card_failure(error):
                    self._note_card_failure(error, family if is_crash(error) else "")
                why = refusal_of(error)
                if why is None:
                    raise
                refused = refusing(cards, why)
                for card in refused:
                    graphics.judge(card, family, why)
                self._release(run.pipeline)
                self._own = worker, tuple(card for card in self._cards if card not in refused)
                if not self._cards:
                    self._require_main_memory(stage, RefusedFamily(refused[0].label, family, why))
            else:
                if opened.apart is not None:
                    prove(graphics, on_card, family)
                return on_card
        await open_run(worker, run, self._sizes.context, config)
        return config

    async def _added_engine(self) -> UsableEngine | None:
        """Return the engine that computes this machine's stages instead of llama.cpp, or None.

        Neither PyTorch nor MLX computes pictures here, so a model that may get some stays with llama.cpp.
        """
        added = self._sources.added_engine
        if added is None or self._sizes.picture_rows:
            return None
        await added.wait()
        return added.for_stage(self._entry.model.family, exact=self._sizes.exact, chosen=self._sizes.engine)

    async def _load_with_added_engine(
        self, worker: Worker, stage: PlannedStage, run: Run, config: StageConfig
    ) -> StageConfig | None:
        """Load a stage with the engine that the owner prefers. Return None if llama.cpp must compute it."""
        added, family, engine = self._sources.added_engine, self._entry.model.family, await self._added_engine()
        if added is None or engine is None:
            return None
        config = added.stage_config(engine, config, family)
        try:
            header = await asyncio.to_thread(read_header, Path(config.path))
            more_bytes, free_bytes = engine.more_bytes(header.tensors), devices.memory().free_bytes
            needed_bytes = stage.total_bytes + more_bytes
            if needed_bytes > free_bytes:
                raise DoesNotFit("engine_no_room", needed_bytes=needed_bytes, free_bytes=free_bytes)
            opened = await open_run(worker, run, self._sizes.context, config)
        except AppError as error:
            added.failed(config, family, error)
            if worker.died is not None:
                self._on_added_engine = None  # this crash is recorded
                raise
            return None
        added.opened(config, family, opened.apart)
        self._on_added_engine = config
        return config

    async def _open_divided(
        self, worker: Worker, stage: PlannedStage, run: Run, config: StageConfig
    ) -> tuple[StageConfig, StageOpened]:
        """Open a stage, divided among the cards, and return its configuration and the worker's report.

        If the cards have less memory than expected, claim less of it and try again, at last without the cards.
        """
        graphics, cards = self._sources.graphics, self._cards
        model, sizes = self._entry.model, self._sizes
        kv_bytes = model.layer_kv(sizes.kv_cells, sizes.slots, sizes.kv)
        shape = WorkShape.of(model.id, config)
        parts = StageParts.of(model, stage.layers, stage.role, kv_bytes, stage.card_work_bytes, shape)
        while True:
            claim = graphics.claim(run.pipeline, cards, parts)
            self._claims[run.pipeline] = claim.n_bytes
            if self._were_cards_short and graphics.overflows:
                self._require_room_beside(cards[0], stage.total_bytes - claim.n_bytes)
            placed = compared_if_needed(graphics, claim.placed(config), model.family)
            self._devices |= set(placed.devices)
            try:
                opened = await open_run(worker, run, sizes.context, placed)
                graphics.note_work(run.pipeline, opened.device_work)
                return placed, opened
            except DoesNotFit as error:  # the worker is still alive
                if not placed.device or not is_card_short(error):
                    raise
                self._were_cards_short = True
                graphics.ran_short({run.pipeline})
                if not graphics.overflows:
                    raise

    def _note_death(self) -> bool:
        """Record why the local worker has died, if it has. Return whether its cards ran out of memory."""
        worker = self._worker
        if worker is None or worker.died is None:
            return False
        added, config = self._sources.added_engine, self._on_added_engine
        if added is not None and config is not None and is_crash(worker.died):
            added.crashed(config.engine)
            self._on_added_engine = None
        self._note_card_failure(worker.died)
        return is_card_short(worker.died)

    def _note_lack(self, held: OpenRun) -> None:
        """Record that the cards of a lost run had too little memory to compute it, if its worker is still alive."""
        lost, worker = held.client.lost, self._worker
        if worker is None or worker.died is not None or held.config is None or not held.config.device:
            return
        if lost is not None and is_card_short(lost):
            self._were_cards_short = True
            self._sources.graphics.ran_short({held.run.pipeline})

    def _note_card_failure(self, error: AppError, opening_family: str = "") -> None:
        """Record a failure of the local worker: it lost its stages on the cards, or the cards had too little
        memory.

        The same failure counts only once, even if several stages or the next opening report it.

        opening_family: the model's family, if the worker crashed while opening the stage.
        """
        worker = self._worker
        failure = (worker, self._epoch if worker is not None and worker.died is None else None)
        if failure == self._blamed or not self._devices:
            return
        self._blamed = failure
        if is_card_failure(error):
            lose_card(self._sources.graphics, sorted(self._devices), opening_family)
        elif is_card_short(error):
            self._were_cards_short = True
            self._sources.graphics.ran_short(tuple(self._claims))

    def _require_room_beside(self, card: Card, needed_bytes: int) -> None:
        """Raise DoesNotFit if the part of a stage that does not fit on its cards does not fit in main memory
        either.
        """
        free_bytes = devices.memory().free_bytes
        if needed_bytes > free_bytes:
            raise DoesNotFit("card_short_no_room", device=card.label, needed_bytes=needed_bytes, free_bytes=free_bytes)

    def _require_main_memory(self, stage: PlannedStage, refused: RefusedFamily) -> None:
        """Raise DoesNotFit if a stage that was planned for the card does not fit into main memory."""
        free_bytes, needed_bytes = devices.memory().free_bytes, stage.total_bytes
        if needed_bytes > free_bytes:
            raise DoesNotFit(
                "card_family_no_room", card=refused.reason, needed_bytes=needed_bytes, free_bytes=free_bytes
            )

    def _client(self, stage: PlannedStage, run: Run, worker: Worker, config: StageConfig) -> StageClient:
        name = f"{stage.name} {stage.layers.first}-{stage.layers.last - 1}"
        client = StageClient(run, PipeLink(worker, run.pipeline), name, machine=stage.name)
        if (prompts := self._sources.prompts) is not None:
            identity = state_identity(self._entry.model.id, run.number, config)
            client.keeper = WorkerSlotKeeper(
                worker, run.pipeline, lambda: run.epoch, prompts.vault, OWN, identity, _room_for_a_copy
            )
        return client

    async def _stage_file(self, stage: PlannedStage, closing: AsyncExitStack) -> str:
        """Return the path of the stage's own file, which is cut from the model file if necessary. It is protected from
        eviction until `closing` closes."""
        cut = await asyncio.to_thread(self._sources.shelf.cut, self._entry, stage.layers, stage.role)
        stage_id, total, done = cut.manifest.id, cut.manifest.total_bytes, 0

        def tell(n_bytes: int) -> None:
            nonlocal done
            done += n_bytes
            self._tell(stage, "cutting", done, total, "bytes")

        self._sources.stages.protect(
            stage_id
        )  # called on the event loop, so that a cancellation cannot skip the release
        closing.callback(self._sources.stages.release, stage_id)
        return str(await in_thread(lambda report: self._sources.stages.write_stage(cut, report), tell))

    async def _open_remote(self, stage: PlannedStage, closing: AsyncExitStack) -> OpenRun:
        run = self._run(stage)
        pipeline = PipelineId(run.pipeline)
        cut = await self._send(stage, pipeline)
        # registered before the request is sent, because an interrupted message may still arrive
        closing.push_async_callback(self._sources.lenders.close_stage, stage.machine, pipeline)
        self._tell(stage, "loading", 0, 1)
        client, loaded = await self._open_on_lender(stage, run, cut.manifest.id, closing)
        self._tell(stage, "loading", 1, 1)
        if loaded.work_bytes:
            shape = WorkShape.of(self._entry.model.id, self._sizes.config(stage, self._entry, ""))
            self._sources.planner_inputs.note_lender_work(stage.machine, shape, loaded.work_bytes)
        card = clean_text(loaded.card)
        return OpenRun(stage, run, cut.manifest.id, client, closing, card, loaded.card_short)

    async def _open_on_lender(
        self, stage: PlannedStage, run: Run, manifest: str, closing: AsyncExitStack
    ) -> tuple[StageClient, messages.StageReady]:
        """Make the lender load the stage, or start a new epoch if it is already loaded. Then connect to it.

        Return the client and the lender's report on the stage.
        """
        pipeline = PipelineId(run.pipeline)
        link = self._sources.lenders.link(stage.machine)
        with self._sources.lenders.expect(stage.machine, pipeline) as ready:
            await link.send(self._sizes.open_message(stage, self._entry.model, run, manifest))
            loaded = await ready()
        channel = await link.open_data(pipeline)
        way_back = LenderReconnector(self._sources.lenders, stage.machine, pipeline)
        client = StageClient(run, ChannelLink(channel, way_back), stage.name, key=stage.machine)
        client.keeper = self._sources.lenders.slot_keeper(stage.machine, run) if self._sources.prompts else None
        closing.push_async_callback(client.close)
        return client, loaded

    async def _send(self, stage: PlannedStage, pipeline: PipelineId) -> Cut:
        """Upload the layers to the lender's disk."""
        link = self._sources.lenders.link(stage.machine)
        cut = await asyncio.to_thread(self._sources.shelf.cut, self._entry, stage.layers, stage.role)
        pace = TransferRate()

        def tell(n_bytes: int, sent: int, total: int) -> None:
            self.fetched_bytes += n_bytes
            pace.mark(sent)
            self._tell(stage, "sending", sent, total, "bytes", pace.bytes_per_s(), pace.seconds_left(total - sent))

        await send_or_explain(link, pipeline, stage.name, self._entry, cut, tell)
        self._on_disk.add(_key(stage))
        return cut

    def _run(self, stage: PlannedStage) -> Run:
        width, number = self._entry.model.width, self._sizes.number
        return Run(secrets.token_bytes(16), stage.role, width, number, self._epoch)

    def _tell(
        self,
        stage: PlannedStage,
        step: str,
        done: int,
        total: int,
        unit: str = "steps",
        bytes_per_s: int | None = None,
        seconds_left: int | None = None,
    ) -> None:
        self._report(Progress(step, stage.name, done, total, unit, bytes_per_s, seconds_left))


def _room_for_a_copy() -> int:
    """Return how much main memory the temporary copy of a slot may use."""
    return devices.memory().free_bytes // 2


def _key(stage: PlannedStage) -> Key:
    return stage.machine, stage.role, stage.layers


def _is_lost(client: StageClient) -> bool:
    """Return whether the run itself is lost. A run survives the closing of its pipeline and a broken connection."""
    return client.lost is not None and client.lost.reason.code not in RUN_STAYS


async def _close_local(worker: Worker, run: Run) -> None:
    """Free the memory of a run, unless the worker has died."""
    if worker.died is None:
        with suppress(AppError):
            await close_run(worker, run)


async def run_step(client: StageClient, step: Step) -> bytes:
    """Run one step outside any pipeline and return the result. Raises StageLost, including after MOST_STEP_SECONDS."""
    lost: AppError | None = None
    async with asyncio.TaskGroup() as group:
        listening = group.create_task(client.listen(), name=f"listen to {client.name}")
        try:
            async with asyncio.timeout(MOST_STEP_SECONDS):
                after = bytes((await client.forward(step)).rows)
        except AppError as error:  # caught here because the group would wrap it
            lost = error
        except TimeoutError:
            lost = StageLost("stage_silent", machine=client.machine, seconds=MOST_STEP_SECONDS)
        finally:
            listening.cancel()
    if lost is not None:
        raise lost
    return after


class MemoryClaims:
    """The memory that the open pipelines of one placement claim."""

    def __init__(self, state: PlacementState) -> None:
        self._state = state
        self.stage_sets: list[StageSet] = []  # one for each pipeline that is open or opening
        self.is_loaded = False  # set once all pipelines have been open
        self.draft_bytes = 0  # of this machine's main memory, for a small model that writes ahead

    def card_of(self, stage: PlannedStage) -> str:
        """Return the graphics card on which a stage is loaded, or "" for the processor and for stages not loaded."""
        return next(filter(None, (stage_set.card_of(stage) for stage_set in self.stage_sets)), "")

    def card_reasons(self) -> list[Reason]:
        """Return a reason for each machine whose graphics card holds fewer layers than planned."""
        stages = [stage for each in self.stage_sets for stage in self._state.plan.stages if each.was_card_short(stage)]
        return [Reason("plan_card_short", {"machine": name}) for name in dict.fromkeys(stage.name for stage in stages)]

    def standby(self) -> list[PlannedStage]:
        """Return the stages that other machines hold in memory as standby."""
        if self._state.is_replicated:
            return []
        return [stage for stage_set in self.stage_sets for stage in stage_set.standby(self._state.plan)]

    async def close_standby(self, machines: Collection[MachineId]) -> None:
        """Free the standby layers on these machines for another model. They can be loaded again later."""
        if any(stage.machine in machines for stage in self.standby()):  # otherwise there is nothing to wait for
            for stage_set in list(self.stage_sets):
                await stage_set.close_standby(self._state.plan, machines)

    def local_bytes(self, me: MachineId) -> tuple[int, int]:
        """Return how many bytes of this machine the pipelines use or will use, and how many of these still count
        as free.

        Main memory counts as free until it is allocated, and card memory until it is claimed. A stage that is moving
        counts only once.
        """
        own = there = 0
        for stage_set in self.stage_sets:
            held = bytes_on(me, stage_set.held())
            own += max(held, bytes_on(me, stage_set.claimed.stages) if stage_set.claimed else 0)
            there += held + stage_set.coming_card_bytes
        if not self.is_loaded:
            own = bytes_on(me, self._state.plan.stages)
        return own + self.draft_bytes, max(0, own - there)

    def end(self) -> None:
        """Save the final list of stages, because lenders need a moment to free them and to report that they did."""
        self.stage_sets = list(self.stage_sets)  # PipelineOpener removes its stage sets from the old list

    def released(self, present: Iterable[PlannedStage], *, over: bool) -> dict[MachineId, int]:
        """Return how many bytes each machine frees when the placement ends, not counting bytes that it already reports
        as free.

        present: the stages of the plan that are not lost.
        over: whether the placement has ended.
        """
        if over or not self.is_loaded:
            return _sums((*present, *self.standby()))
        host = self._state.plan.host
        held = _sums(stage for stage_set in self.stage_sets for stage in stage_set.held())
        return {key: n for key, n in (held | {host: self.local_bytes(host)[0]}).items() if n}


def _sums(stages: Iterable[PlannedStage]) -> dict[MachineId, int]:
    totals: dict[MachineId, int] = {}
    for stage in stages:
        totals[stage.machine] = totals.get(stage.machine, 0) + stage.total_bytes
    return totals


def bytes_on(machine: MachineId, stages: Iterable[PlannedStage]) -> int:
    """Return how many bytes these stages need on this machine."""
    return sum(stage.total_bytes for stage in stages if stage.machine == machine)
