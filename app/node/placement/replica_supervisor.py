"""Keeps the pipelines of a placement: opens each, and one of several again when its machine is back."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Any, Protocol

from app.core.errors import AppError, StageLost, Unreachable
from app.core.ids import MachineId
from app.core.planner.placement import Plan
from app.core.recovery import fault_table
from app.core.recovery.fault_table import Fault, Retry
from app.inference.pipeline.pipeline import Pipeline
from app.inference.pipeline.replica_set import Replica
from app.node.placement import failover as rebuilding
from app.node.placement.failover import Failover, Option
from app.node.placement.pipeline_opener import PipelineOpener
from app.node.placement.placement_state import PlacementState
from app.node.placement.standby import StandbyManager

log = logging.getLogger(__name__)

Json = dict[str, Any]

LEAST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 2.0, 60.0  # before one that was lost is tried again


class Replan(Protocol):
    """Where all of it may be without these machines, or a part that is one of several: the planner's choice first,
    then the same runs as now. Raises AppError."""

    def __call__(self, without: frozenset[MachineId], part: Plan | None = None, /) -> Awaitable[Sequence[Option]]: ...


def _machines(part: Plan) -> frozenset[MachineId]:
    return frozenset(stage.machine for stage in part.stages)


class ReplicaSupervisor:
    """Its tasks carry them; all is closed when they are cancelled. `changed`: a replica came or went."""

    def __init__(
        self, state: PlacementState, opener: PipelineOpener, replan: Replan, changed: Callable[[], None]
    ) -> None:
        self._state, self._opener, self._replicas = state, opener, state.pipelines
        self._replan, self._changed = replan, changed
        self._lost: set[int] = set()
        self._splits = {
            place for place in range(state.n_parts) if len(_machines(state.part(place))) > 1 and state.is_several
        }
        self._failover: Failover | None = None  # of the only pipeline
        self._tasks: list[asyncio.Task[None]] = []

    async def begin(self, group: asyncio.TaskGroup) -> None:
        """Open all, this machine's first: what it says is what the others are compared with. Raises AppError."""
        loop = asyncio.get_running_loop()
        state = self._state
        opened: list[asyncio.Future[None]] = [loop.create_future() for _ in range(state.n_parts)]
        for place in range(state.n_parts):
            first = state.part(place).stages[0]
            name = f"keep {first.name}'s replica" if state.is_several else "keep it"
            self._tasks.append(group.create_task(self._keep(place, opened[place]), name=name))
            if place == 0:
                await opened[0]
        for one in opened:
            await one

    def end(self) -> None:
        """Close all."""
        for task in self._tasks:
            task.cancel()

    @property
    def only(self) -> Failover | None:
        """What places the only pipeline anew; None where there are several, and others go on with its answers."""
        return self._failover

    def is_lost(self, machine: MachineId) -> bool:
        """Whether the replica of that machine is gone, and its memory given back."""
        return any(machine in _machines(self._state.part(place)) for place in self._lost)

    async def _keep(self, place: int, opened: asyncio.Future[None]) -> None:
        pause_s = LEAST_PAUSE_SECONDS
        while not self._replicas.drop_if_over():
            try:
                async with AsyncExitStack() as stack:
                    await self._place(place, again=place in self._lost)
                    replan = self._replan_of(place)
                    pipeline, failover = await self._opener.open(place, stack, replan)
                    part = self._state.part(place)
                    first = part.stages[0]
                    here = first.machine == part.host
                    replica = Replica(first.name, pipeline, _machines(part), here)
                    self._replicas.put(place, replica)
                    self._failover = None if self._state.is_several else failover
                    self._lost.discard(place)
                    pause_s = LEAST_PAUSE_SECONDS
                    if not opened.done():
                        opened.set_result(None)
                    self._changed()
                    why = await self._until_lost(place, pipeline, failover)
                    log.warning("the replica of %s is lost: %s", first.name, why.reason)
                    if self._replicas.drop_if_over():
                        return
            except AppError as error:
                if not opened.done():
                    opened.set_exception(error)
                    opened.exception()  # its waiter may be gone
                    return
                log.info("a replica is not there yet: %s", error.reason)
                found = fault_table.of(error.reason)
                if found.retry is Retry.NEVER and found.fault in (Fault.MODEL, Fault.ENGINE):
                    self._lost.add(place)  # it would not be there the next time either
                    self._replicas.drop_if_over()
                    self._changed()
                    return
            self._lost.add(place)
            self._changed()
            await self._pause(place, pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_SECONDS)

    async def _until_lost(self, place: int, pipeline: Pipeline, failover: Failover) -> StageLost:
        """Why it ended. It is looked after meanwhile; a whole one of several has nothing to go to."""
        if self._state.is_several and place not in self._splits:
            return await pipeline.wait_lost()
        ahead = StandbyManager(self._state, place, pipeline, failover)
        async with asyncio.TaskGroup() as group:
            looking = group.create_task(ahead.run(), name="place layers ahead")
            try:
                return await pipeline.wait_lost()
            finally:
                looking.cancel()

    async def _pause(self, place: int, seconds: float) -> None:
        """Until it is worth another try: for another machine, when there is news of the household; a split may
        do without the machine that it lost."""
        self._state.news.clear()
        is_split = place in self._splits
        await asyncio.sleep(LEAST_PAUSE_SECONDS if is_split else seconds)
        part = self._state.part(place)
        if is_split or _machines(part) != {part.host}:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds if is_split else LONGEST_PAUSE_SECONDS):
                    await self._state.news.wait()

    async def _place(self, place: int, *, again: bool) -> None:
        """Choose who shall compute that one: a split that was lost may go to other machines now. Raises AppError."""
        if again and place in self._splits:
            [(part, described), *_] = await self._elsewhere(place, frozenset())
            self._state.place(place, part, described)

    async def _elsewhere(self, place: int, without: frozenset[MachineId]) -> Sequence[Option]:
        """Where a split may be on machines that hold nothing else. Raises AppError."""
        state = self._state
        others = [state.part(other) for other in range(state.n_parts) if other != place]
        return await self._replan(without.union(*map(_machines, others)), state.part(place))

    def _replan_of(self, place: int) -> rebuilding.Replan:
        """Where that pipeline may be without some machines."""
        if not self._state.is_several:
            return self._replan
        if place in self._splits:
            return partial(self._elsewhere, place)
        part = self._state.part(place)

        async def same(without: frozenset[MachineId]) -> list[Option]:
            """The same once more, while no other replica can take over: a worker that died is started anew."""
            for stage in part.stages:
                if stage.machine in without:
                    raise Unreachable("peer_offline", name=stage.name)
            return [(part, self._state.described)]

        return same
