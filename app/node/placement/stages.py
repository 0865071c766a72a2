"""A plan becomes a running pipeline: stage files made or sent, runs opened, channels connected."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Coroutine, Iterable
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from app.catalog.gguf.gguf_check import part_paths
from app.catalog.shelf import Entry, Shelf
from app.catalog.stages.cut import Cut
from app.catalog.stages.stage_store import StageStore
from app.core.errors import AppError, StageLost
from app.core.ids import MachineId, PipelineId
from app.core.planner.placement import Plan, PlannedStage
from app.core.recovery.fault_table import RUN_STAYS
from app.inference.pipeline.step import Run, Step
from app.inference.stages.stage_client import StageClient
from app.inference.stages.stage_links import ChannelLink, PipeLink, close_run, open_run
from app.inference.worker.worker import HERE, Worker
from app.node.cancellation import in_thread, run_until
from app.node.control.ndjson import Progress
from app.node.downloads.transfer_rate import TransferRate
from app.node.placement.lenders import LenderReconnector, Lenders
from app.node.placement.placement_state import PlacementState
from app.node.placement.stage_sender import send_or_explain
from app.node.planning.planner_inputs import PlannerInputs
from app.node.planning.sizes import Sizes
from app.node.verification.recompute import forwarded
from backends.contract import Layers, Role

T = TypeVar("T")
Key = tuple[MachineId, Role, Layers]


@dataclass(frozen=True, slots=True)
class Reservation:
    """make: others give up what they can spare for a plan, before its stages are opened; raises DoesNotFit.
    choosing: held from a look at the memory until what is chosen is claimed, so that the next one counts it;
    stirred: what is opened is so inside, and others do nothing ahead meanwhile."""

    make: Callable[[Plan], Awaitable[None]]
    choosing: asyncio.Lock = field(default_factory=asyncio.Lock)
    stirred: Callable[[], AbstractContextManager[None]] = nullcontext


async def gather_first_error(*work: Coroutine[Any, Any, T]) -> list[T]:
    """Do all at once; the first AppError cancels the others and is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one, name="open a stage") for one in work]
    except BaseExceptionGroup as errors:
        known, unknown = errors.split(AppError)
        if unknown is not None or known is None:
            raise
        raise _first(known) from None
    return [task.result() for task in tasks]


async def ended(group: asyncio.TaskGroup, tasks: Iterable[asyncio.Task[None]], error: BaseException | None) -> None:
    """The end of a group that was begun by hand, with its stack. An error from above ends its tasks, and stays what it
    is: the group would wrap it."""
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
class Sources:
    """Where stages come from and go to, and whose are none. outlook: who is doubted, and what the checks of samples may
    take; room: what has memory given up for what comes."""

    shelf: Shelf
    stages: StageStore
    lenders: Lenders
    outlook: PlannerInputs
    room: Reservation


@dataclass(slots=True)
class Held:
    """One run that is open for this placement, and what gives it back."""

    stage: PlannedStage
    run: Run
    source: str  # here the path of its file; on a lender the manifest it was made from
    client: StageClient
    closing: AsyncExitStack


class StageSet:
    """Opens the stages of one plan, and later those of another with as little work as it takes.

    All that it opens is closed with `stack`.
    """

    def __init__(self, entry: Entry, sources: Sources, sizes: Sizes, stack: AsyncExitStack, report: Progress) -> None:
        self.room = sources.room
        self._entry, self._sources, self._sizes = entry, sources, sizes
        self._stack, self._report = stack, report
        self._epoch = 0
        self._worker: Worker | None = None
        self._host: MachineId | None = None  # this machine, as the last plan has it
        self._held: dict[Key, Held] = {}
        self._on_disk: set[Key] = set()  # of lenders, as far as this placement sent it
        self._turn = asyncio.Lock()  # what is opened ahead is so before, or after, what is wanted
        self._hurry = asyncio.Event()  # somebody waits: nothing is opened ahead now
        self._n_hurried = 0
        self._leaving = asyncio.TaskGroup()  # for what is given back while others serve already
        self._left: dict[asyncio.Task[None], MachineId] = {}
        self._is_open = False
        self.claimed: Plan | None = None  # what it is about to take, or took; None: what it holds
        self.fetched_bytes = 0  # weights that crossed the network
        self.failed: PlannedStage | None = None  # which stage the last `open` could not have

    async def open(self, plan: Plan) -> list[StageClient]:
        """The stages in order. Raises AppError; what was opened by then is closed by the stack, or
        kept for the next plan."""
        self.claimed = plan
        try:
            with self.room.stirred():
                async with self._at_once():
                    return await self._open(plan)
        except BaseException:
            self.claimed = None  # it takes no more of it: others may
            raise

    async def _open(self, plan: Plan) -> list[StageClient]:
        if not self._is_open:
            self._is_open = True
            await self._leaving.__aenter__()
            self._stack.push_async_exit(lambda *why: ended(self._leaving, self._left, why[1]))
            self._stack.callback(self._hurry.set)  # what is opened ahead is nobody's from now on
        self._epoch += 1
        self.failed = None
        self._host = plan.host
        await self._give_back_but(plan)
        await self.room.make(plan)
        here = any(stage.machine == plan.host for stage in plan.stages)
        worker = await self._own_worker() if here else None
        opening = [self._stage(stage, worker if stage.machine == plan.host else None) for stage in plan.stages]
        return await gather_first_error(*opening)

    async def prepare(self, stage: PlannedStage, *, load: bool = True) -> None:
        """Have another machine take layers that may be wanted: on its disk, and in memory if `load`.

        What serves goes on meanwhile. Ends early when stages are wanted. Raises AppError.
        """
        async with self._turn:
            await run_until(self._hurry, self._ahead(stage, load), StageLost("pipeline_closed"))

    async def _ahead(self, stage: PlannedStage, load: bool) -> None:
        await self._has_left({stage.machine})
        if not load:
            await self._sent(stage, PipelineId(secrets.token_bytes(16)))
        elif _key(stage) not in self._held:
            async with AsyncExitStack() as closing:
                held = await self._open_there(stage, closing)
                if self._hurry.is_set():
                    raise StageLost("pipeline_closed")
                self._keep(held, closing.pop_all())

    def is_here(self, stage: PlannedStage) -> bool:
        """Whether this machine holds it, or shall."""
        return stage.machine == self._host

    def held(self) -> list[PlannedStage]:
        """What is in memory for it."""
        return [held.stage for held in self._held.values() if self._stays(held)]

    def ahead(self, plan: Plan) -> list[PlannedStage]:
        """What other machines hold beside the stages of the plan that serves; here is only what it goes over from."""
        serving = {_key(stage) for stage in plan.stages}
        others = {key: held for key, held in self._held.items() if key[0] != plan.host}
        return [held.stage for key, held in others.items() if key not in serving]

    async def give_up_ahead(self, plan: Plan, machines: Collection[MachineId]) -> None:
        """Close on these machines what is loaded beside the stages of the plan that serves."""
        serving = {_key(stage) for stage in plan.stages}
        async with self._at_once():
            for key in [one for one in self._held if one[0] in machines and one not in serving]:
                await self._held.pop(key).closing.aclose()

    @asynccontextmanager
    async def _at_once(self) -> AsyncGenerator[None, None]:
        """In its turn, before what is opened ahead, which ends for it."""
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
        """What that run holds, if it is open."""
        return next((h.stage for h in self._held.values() if h.run.pipeline == run.pipeline), None)

    async def computed_elsewhere(self, like: PlannedStage, step: Step) -> tuple[PlannedStage, bytes] | None:
        """What another machine that holds the same layers, for a loss that may come, makes of a step; None: none does.

        Ends early when stages are wanted. Raises AppError.
        """
        async with self._turn:
            computing = self._elsewhere(like, step)
            return await run_until(self._hurry, computing, StageLost("pipeline_closed"))

    async def _elsewhere(self, like: PlannedStage, step: Step) -> tuple[PlannedStage, bytes] | None:
        for (machine, role, layers), held in self._held.items():
            if machine not in (like.machine, self._host) and (role, layers) == _key(like)[1:]:
                self._epoch += 1  # nothing of what was computed there before is left
                client = await self._renewed(held, None)
                try:
                    return held.stage, await forwarded(client, step)
                finally:
                    await client.close()
        return None

    def lost(self) -> frozenset[MachineId]:
        """Other machines that have lost what they held."""
        middle = [held for held in self._held.values() if held.stage.role is Role.MIDDLE]
        return frozenset(held.stage.machine for held in middle if not self._stays(held))

    def was_sent(self, stage: PlannedStage) -> bool:
        """Whether its layers lie on its machine's disk."""
        return _key(stage) in self._on_disk

    def moving(self, plan: Plan) -> list[PlannedStage]:
        """Of a plan's stages, those that have to be loaded for it."""
        return [stage for stage in plan.stages if not self._stays(self._held.get(_key(stage)))]

    def _stays(self, held: Held | None) -> bool:
        """Whether a run can serve on."""
        if held is None or _is_lost(held.client):
            return False
        worker_died = self._worker is None or self._worker.died is not None
        return not (worker_died and held.stage.machine == self._host)

    async def _give_back_but(self, plan: Plan) -> None:
        """Close what the plan does not have, and what is lost, before its memory is needed."""
        wanted, machines = {_key(stage) for stage in plan.stages}, {s.machine for s in plan.stages}
        for key, held in list(self._held.items()):
            if key not in wanted or not self._stays(held):
                del self._held[key]
                if self._worker is not None and held.stage.machine == self._host:
                    await _close_here(self._worker, held.run)
                if held.stage.machine in machines:
                    await held.closing.aclose()
                else:
                    self._leave(held)
        await self._has_left(machines)

    def _leave(self, held: Held) -> None:
        """Give it back. A machine that hangs takes seconds for that, which nobody waits for."""
        name = f"give layers back on {held.stage.name}"
        task = self._leaving.create_task(self._given_back(held), name=name)
        self._left[task] = held.stage.machine
        task.add_done_callback(self._left.pop)

    async def _has_left(self, machines: Collection[MachineId]) -> None:
        """Wait until what was given back on these machines is closed: their memory is wanted again."""
        if tasks := [task for task, machine in self._left.items() if machine in machines]:
            await asyncio.wait(tasks)

    async def _given_back(self, held: Held) -> None:
        try:
            await held.closing.aclose()
        except asyncio.CancelledError:  # the placement ends, and it is told then
            machine, pipeline = held.stage.machine, PipelineId(held.run.pipeline)
            self._stack.push_async_callback(self._sources.lenders.close_stage, machine, pipeline)
            raise

    async def _own_worker(self) -> Worker:
        if self._worker is None or self._worker.died is not None:
            reads = [*part_paths(Path(self._entry.path)), self._sources.stages.folder]
            threads = self._sizes.threads
            self._worker = await Worker.start(HERE, threads=threads, reads=reads, forms=True)
            await self._stack.enter_async_context(self._worker)
        return self._worker

    async def _stage(self, stage: PlannedStage, worker: Worker | None) -> StageClient:
        """One stage, on our own `worker` or on another machine; a run that is there serves on."""
        try:
            held = self._held.get(_key(stage))
            if held is not None:
                try:
                    return await self._renewed(held, worker)
                except AppError:
                    del self._held[_key(stage)]
                    await held.closing.aclose()
            async with AsyncExitStack() as closing:
                if worker is not None:
                    held = await self._open_here(worker, stage, closing)
                else:
                    held = await self._open_there(stage, closing)
                self._keep(held, closing.pop_all())
                return held.client
        except AppError:
            self.failed = self.failed or stage
            raise

    def _keep(self, held: Held, closing: AsyncExitStack) -> None:
        held.closing = closing
        self._held[_key(held.stage)] = held
        self._stack.push_async_callback(closing.aclose)

    async def _renewed(self, held: Held, worker: Worker | None) -> StageClient:
        """The same run with this epoch: its weights stay, its KV cache is empty."""
        stage, run = held.stage, replace(held.run, epoch=self._epoch)
        if worker is not None:
            config = self._sizes.config(stage, self._entry, held.source)
            await open_run(worker, run, self._sizes.context, config)
            held.client = self._client(stage, run, PipeLink(worker, run.pipeline))
        else:
            held.client = await self._ordered(stage, run, held.source, held.closing)
        held.run = run
        return held.client

    async def _open_here(self, worker: Worker, stage: PlannedStage, closing: AsyncExitStack) -> Held:
        run = self._run(stage)
        path = self._entry.path
        if stage.role is not Role.WHOLE:
            path = await self._cut_out(stage, closing)
        self._tell(stage, "loading", 0, 1)
        config = self._sizes.config(stage, self._entry, path)
        await open_run(worker, run, self._sizes.context, config)
        self._tell(stage, "loading", 1, 1)
        client = self._client(stage, run, PipeLink(worker, run.pipeline))
        return Held(stage, run, path, client, closing)

    def _client(self, stage: PlannedStage, run: Run, link: PipeLink) -> StageClient:
        name = f"{stage.name} {stage.layers.first}-{stage.layers.last - 1}"
        return StageClient(run, link, name, machine=stage.name)

    async def _cut_out(self, stage: PlannedStage, closing: AsyncExitStack) -> str:
        """The stage's own file, made from the model's unless it is there already, and held."""
        cut = await asyncio.to_thread(self._sources.shelf.cut, self._entry, stage.layers, stage.role)
        stage_id, total, done = cut.manifest.id, cut.manifest.total_bytes, 0

        def tell(n_bytes: int) -> None:
            nonlocal done
            done += n_bytes
            self._tell(stage, "cutting", done, total, "bytes")

        self._sources.stages.keep(stage_id)  # on the loop: nothing comes between it and its release
        closing.callback(self._sources.stages.release, stage_id)
        return str(await in_thread(lambda report: self._sources.stages.fill(cut, report), tell))

    async def _open_there(self, stage: PlannedStage, closing: AsyncExitStack) -> Held:
        run = self._run(stage)
        pipeline = PipelineId(run.pipeline)
        cut = await self._sent(stage, pipeline)
        # before it is ordered: who can tell what arrives of a message that is cut off?
        closing.push_async_callback(self._sources.lenders.close_stage, stage.machine, pipeline)
        self._tell(stage, "loading", 0, 1)
        client = await self._ordered(stage, run, cut.manifest.id, closing)
        self._tell(stage, "loading", 1, 1)
        return Held(stage, run, cut.manifest.id, client, closing)

    async def _ordered(self, stage: PlannedStage, run: Run, manifest: str, closing: AsyncExitStack) -> StageClient:
        """Have the lender load what it has, or begin an epoch on what it loaded; and connect to it."""
        pipeline = PipelineId(run.pipeline)
        link = self._sources.lenders.link(stage.machine)
        with self._sources.lenders.expect(stage.machine, pipeline) as ready:
            await link.send(self._sizes.order(stage, self._entry.model, run, manifest))
            await ready()
        channel = await link.open_data(pipeline)
        way_back = LenderReconnector(self._sources.lenders, stage.machine, pipeline)
        client = StageClient(run, ChannelLink(channel, way_back), stage.name, key=stage.machine)
        closing.push_async_callback(client.close)
        return client

    async def _sent(self, stage: PlannedStage, pipeline: PipelineId) -> Cut:
        """Its layers lie on the lender's disk from now on, as far as its own limits let them."""
        link = self._sources.lenders.link(stage.machine)
        cut = await asyncio.to_thread(self._sources.shelf.cut, self._entry, stage.layers, stage.role)
        pace = TransferRate()

        def tell(n_bytes: int, sent: int, total: int) -> None:
            self.fetched_bytes += n_bytes
            pace.mark(sent)
            self._tell(stage, "sending", sent, total, "bytes", **pace.json(total - sent))

        await send_or_explain(link, pipeline, stage.name, self._entry, cut, tell)
        self._on_disk.add(_key(stage))
        return cut

    def _run(self, stage: PlannedStage) -> Run:
        width, number = self._entry.model.width, self._sizes.number
        return Run(secrets.token_bytes(16), stage.role, width, number, self._epoch)

    def _tell(
        self, stage: PlannedStage, step: str, done: int, total: int, unit: str = "steps", **more: int | None
    ) -> None:
        told = {"step": step, "machine": stage.name, "done": done, "total": total, "unit": unit}
        self._report(told | more)


def _key(stage: PlannedStage) -> Key:
    return stage.machine, stage.role, stage.layers


def _is_lost(client: StageClient) -> bool:
    """Whether the run itself is gone; that its pipeline ended, or a connection broke, does it no harm."""
    return client.lost is not None and client.lost.reason.code not in RUN_STAYS


async def _close_here(worker: Worker, run: Run) -> None:
    """Give one run's memory back, if the worker itself is not gone or going."""
    if worker.died is None:
        with suppress(AppError):
            await close_run(worker, run)


class MemoryClaims:
    """Of one placement: the pipelines that are open of it."""

    def __init__(self, state: PlacementState) -> None:
        self._state = state
        self.placings: list[StageSet] = []  # one for each pipeline that is open, or opens
        self.is_loaded = False  # all of it was open once

    def ahead(self) -> list[PlannedStage]:
        """What other machines hold in memory for a loss that may come."""
        if self._state.is_several:
            return []
        return [stage for one in self.placings for stage in one.ahead(self._state.plan)]

    async def give_up_ahead(self, machines: Collection[MachineId]) -> None:
        """Another model needs the memory that lies ahead there: it is back, and can be laid again later."""
        if any(stage.machine in machines for stage in self.ahead()):  # else it is not waited for
            for one in list(self.placings):
                await one.give_up_ahead(self._state.plan, machines)

    def here(self, me: MachineId) -> tuple[int, int]:
        """Bytes of this machine that it holds or is about to, and of these what is not taken from the
        free memory yet. What changes places counts once."""
        if not self.is_loaded:
            planned = bytes_on(me, self._state.plan.stages)
            return planned, planned
        own = comes = 0
        for one in self.placings:
            held = bytes_on(me, one.held())
            most = max(held, bytes_on(me, one.claimed.stages) if one.claimed else 0)
            own, comes = own + most, comes + most - held
        return own, comes

    def end(self) -> None:
        """What it held until now is known on: lenders give it back, and say so, a little later."""
        self.placings = list(self.placings)  # whoever opened them forgets them in the old one

    def released(self, present: Iterable[PlannedStage], *, over: bool) -> dict[MachineId, int]:
        """Bytes that each machine gives back, beside what it says is free. present: of the plan, what is not lost;
        over: it has ended."""
        if over or not self.is_loaded:
            return _sums((*present, *self.ahead()))
        host = self._state.plan.host
        held = _sums(one for placing in self.placings for one in placing.held())
        return {key: n for key, n in (held | {host: self.here(host)[0]}).items() if n}


def _sums(stages: Iterable[PlannedStage]) -> dict[MachineId, int]:
    found: dict[MachineId, int] = {}
    for stage in stages:
        found[stage.machine] = found.get(stage.machine, 0) + stage.total_bytes
    return found


def bytes_on(machine: MachineId, stages: Iterable[PlannedStage]) -> int:
    """What these take of that machine."""
    return sum(stage.total_bytes for stage in stages if stage.machine == machine)
