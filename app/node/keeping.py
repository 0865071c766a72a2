"""Keeps the pipelines of a placement: opens each, and one of several again when its machine is back."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from app.core import blame
from app.core.blame import Fault, Retry
from app.core.errors import AppError, StageLost, Unreachable
from app.core.ids import MachineId
from app.core.plan import Plan
from app.core.recovery import Loss
from app.inference.pipeline import Pipeline
from app.inference.replicas import Replica, Replicas
from app.node.ahead import Ahead
from app.node.growing import SplitOfSeveral, Whole, why_moved
from app.node.opening import Opener
from app.node.placing import Placing
from app.node.rebuilding import Option, Rebuilding

log = logging.getLogger(__name__)

Json = dict[str, Any]

LEAST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 2.0, 60.0  # before one that was lost is tried again


class Replan(Protocol):
    """Where all of it may be without these machines, or a part that is one of several: the planner's choice first,
    then the same runs as now. Raises AppError."""

    def __call__(
        self, without: frozenset[MachineId], part: Plan | None = None, /
    ) -> Awaitable[Sequence[Option]]: ...


@dataclass(frozen=True, slots=True)
class Anew:
    """How what is lost is placed anew under its answers."""

    only: Callable[[Placing], Rebuilding]  # where there is one pipeline
    replan: Replan  # where a split may go that is one of several
    moved: Callable[[int, Plan], None]  # it goes there
    whole: Whole  # what it is one of


def _machines(part: Plan) -> frozenset[MachineId]:
    return frozenset(stage.machine for stage in part.stages)


class Keeper:
    """Its tasks carry them; all is closed when they are cancelled. `changed`: a replica came or went."""

    def __init__(
        self, plan: Plan, described: Json, opener: Opener, replicas: Replicas, anew: Anew,
        changed: Callable[[], None],
    ) -> None:  # fmt: skip
        self._parts, self._described, self._opener = list(plan.parts), described, opener
        self._replicas, self._anew, self._changed = replicas, anew, changed
        self._news = asyncio.Event()
        self._lost: set[int] = set()
        self._splits = {n for n, one in enumerate(self._parts) if len(_machines(one)) > 1}
        self._rebuildings: dict[int, Rebuilding] = {}  # of its splits, where there are several
        self._tasks: list[asyncio.Task[None]] = []

    async def begin(self, group: asyncio.TaskGroup) -> None:
        """Open all, this machine's first: what it says is what the others are compared with. Raises AppError."""
        loop = asyncio.get_running_loop()
        opened: list[asyncio.Future[None]] = [loop.create_future() for _ in self._parts]
        for place, part in enumerate(self._parts):
            name = f"keep {part.stages[0].name}'s replica" if len(self._parts) > 1 else "keep it"
            self._tasks.append(group.create_task(self._keep(place, opened[place]), name=name))
            if place == 0:
                await opened[0]
        for one in opened:
            await one

    def end(self) -> None:
        """Close all."""
        for task in self._tasks:
            task.cancel()

    def look(self) -> None:
        """The household is another: a machine that was lost may be back."""
        self._news.set()

    def is_lost(self, machine: MachineId) -> bool:
        """Whether the replica of that machine is gone, and its memory given back."""
        return any(machine in _machines(self._parts[place]) for place in self._lost)

    async def _keep(self, place: int, opened: asyncio.Future[None]) -> None:
        pause_s = LEAST_PAUSE_SECONDS
        while not self._replicas.drop_if_over():
            try:
                async with AsyncExitStack() as stack:
                    part = await self._placed(place, again=place in self._lost)
                    rebuilding = partial(self._rebuilding, place)
                    pipeline = await self._opener.open(part, stack, rebuilding)
                    first = part.stages[0]
                    here = first.machine == part.host
                    replica = Replica(first.name, pipeline, _machines(part), here)
                    self._replicas.put(place, replica)
                    self._lost.discard(place)
                    pause_s = LEAST_PAUSE_SECONDS
                    if not opened.done():
                        opened.set_result(None)
                    self._changed()
                    why = await self._until_lost(place, pipeline)
                    log.warning("the replica of %s is lost: %s", first.name, why.reason)
                    if self._replicas.drop_if_over():
                        return
            except AppError as error:
                if not opened.done():
                    opened.set_exception(error)
                    opened.exception()  # its waiter may be gone
                    return
                log.info("a replica is not there yet: %s", error.reason)
                found = blame.of(error.reason)
                if found.retry is Retry.NEVER and found.fault in (Fault.MODEL, Fault.ENGINE):
                    self._lost.add(place)  # it would not be there the next time either
                    self._replicas.drop_if_over()
                    self._changed()
                    return
            self._lost.add(place)
            self._changed()
            await self._pause(place, pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_SECONDS)

    async def _until_lost(self, place: int, pipeline: Pipeline) -> StageLost:
        """Why it ended. Meanwhile a split that is one of several grows back when it can."""
        if (rebuilding := self._rebuildings.get(place)) is None:
            return await pipeline.wait_lost()

        def go(option: Option) -> None:
            why = why_moved(self._parts[place], option[0])
            log.info(
                "the split of %s moves to a better placement", self._parts[place].stages[0].name
            )
            rebuilding.intend(option)
            pipeline.break_off(Loss("", "", why, time.monotonic()))

        split = SplitOfSeveral(self._anew.whole, lambda: self._parts[place], go)
        async with asyncio.TaskGroup() as group:
            ahead = Ahead(split, rebuilding, covers=False)
            growing = group.create_task(ahead.run(), name="go back to lost machines")
            try:
                return await pipeline.wait_lost()
            finally:
                growing.cancel()

    async def _pause(self, place: int, seconds: float) -> None:
        """Until it is worth another try: for another machine, when there is news of the household; a split may
        do without the machine that it lost."""
        self._news.clear()
        is_split = place in self._splits
        await asyncio.sleep(LEAST_PAUSE_SECONDS if is_split else seconds)
        if is_split or _machines(self._parts[place]) != {self._parts[place].host}:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds if is_split else LONGEST_PAUSE_SECONDS):
                    await self._news.wait()

    async def _placed(self, place: int, *, again: bool) -> Plan:
        """Who shall compute this one; a split that was lost may go to other machines now. Raises AppError."""
        if again and len(self._parts) > 1 and place in self._splits:
            [(part, _), *_] = await self._elsewhere(place, frozenset())
            self._moved(place, part)
        return self._parts[place]

    async def _elsewhere(self, place: int, without: frozenset[MachineId]) -> Sequence[Option]:
        """Where a split may be on machines that hold nothing else. Raises AppError."""
        others = [part for other, part in enumerate(self._parts) if other != place]
        return await self._anew.replan(without.union(*map(_machines, others)), self._parts[place])

    def _moved(self, place: int, part: Plan) -> None:
        self._parts[place] = part
        self._replicas.moved(place, _machines(part))
        self._anew.moved(place, part)

    def _rebuilding(self, place: int, placing: Placing) -> Rebuilding:
        part = self._parts[place]
        if len(self._parts) == 1:
            return self._anew.only(placing)
        if place in self._splits:
            made = self._rebuildings[place] = Rebuilding(
                placing, partial(self._elsewhere, place), lambda plan, _: self._moved(place, plan),
                self._news, lambda: made.intends,
            )  # fmt: skip
            return made

        async def same(without: frozenset[MachineId]) -> list[Option]:
            """The same once more, while no other replica can take over: a worker that died is started anew."""
            for stage in part.stages:
                if stage.machine in without:
                    raise Unreachable("peer_offline", name=stage.name)
            return [(part, self._described)]

        return Rebuilding(placing, same, lambda *_: None, self._news, lambda: False)
