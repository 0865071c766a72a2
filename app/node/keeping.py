"""Keeps the pipelines of a placement: opens each, and one of several again when its machine is back."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from app.core.errors import AppError, Unreachable
from app.core.ids import MachineId
from app.core.plan import Plan
from app.inference.replicas import Replica, Replicas
from app.node.opening import Opener
from app.node.placing import Placing
from app.node.rebuilding import Option, Rebuilding

log = logging.getLogger(__name__)

Json = dict[str, Any]

LEAST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 2.0, 60.0  # before one that was lost is tried again


@dataclass(frozen=True, slots=True)
class Only:
    """How a placement of one pipeline is placed anew under its answers."""

    rebuilding: Callable[[Placing], Rebuilding]


class Keeper:
    """Its tasks carry them; all is closed when they are cancelled. `changed`: a replica came or went."""

    def __init__(
        self, plan: Plan, described: Json, opener: Opener, replicas: Replicas, only: Only,
        changed: Callable[[], None],
    ) -> None:  # fmt: skip
        self._parts, self._described, self._opener = plan.parts, described, opener
        self._replicas, self._only, self._changed = replicas, only, changed
        self._news = asyncio.Event()
        self._lost: set[int] = set()
        self._tasks: list[asyncio.Task[None]] = []

    async def begin(self, group: asyncio.TaskGroup) -> None:
        """Open all, this machine's first: what it says is what the others are compared with. Raises AppError."""
        loop = asyncio.get_running_loop()
        opened: list[asyncio.Future[None]] = [loop.create_future() for _ in self._parts]
        for place, part in enumerate(self._parts):
            name = f"keep {part.stages[0].name}'s replica" if len(self._parts) > 1 else "keep it"
            self._tasks.append(group.create_task(self._keep(place, part, opened[place]), name=name))
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
        return any(self._parts[place].stages[0].machine == machine for place in self._lost)

    async def _keep(self, place: int, part: Plan, opened: asyncio.Future[None]) -> None:
        pause_s = LEAST_PAUSE_SECONDS
        while not self._replicas.drop_if_over():
            try:
                async with AsyncExitStack() as stack:
                    pipeline = await self._opener.open(part, stack, partial(self._rebuilding, part))
                    first = part.stages[0]
                    machines = frozenset(stage.machine for stage in part.stages)
                    here = first.machine == part.host
                    self._replicas.put(place, Replica(first.name, pipeline, machines, here))
                    self._lost.discard(place)
                    pause_s = LEAST_PAUSE_SECONDS
                    if not opened.done():
                        opened.set_result(None)
                    self._changed()
                    why = await pipeline.wait_lost()
                    log.warning("the replica of %s is lost: %s", first.name, why.reason)
                    if self._replicas.drop_if_over():
                        return
            except AppError as error:
                if not opened.done():
                    opened.set_exception(error)
                    opened.exception()  # its waiter may be gone
                    return
                log.info("a replica is not there yet: %s", error.reason)
            self._lost.add(place)
            self._changed()
            await self._pause(pause_s, wait=part.stages[0].machine != part.host)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_SECONDS)

    async def _pause(self, seconds: float, *, wait: bool) -> None:
        """Until it is worth another try: for another machine, when there is news of the household."""
        self._news.clear()
        await asyncio.sleep(seconds)
        if wait:
            with suppress(TimeoutError):
                async with asyncio.timeout(LONGEST_PAUSE_SECONDS):
                    await self._news.wait()

    def _rebuilding(self, part: Plan, placing: Placing) -> Rebuilding:
        if len(self._parts) == 1:
            return self._only.rebuilding(placing)

        async def same(without: frozenset[MachineId]) -> list[Option]:
            """The same once more, while no other replica can take over: a worker that died is started anew."""
            for stage in part.stages:
                if stage.machine in without:
                    raise Unreachable("peer_offline", name=stage.name)
            return [(part, self._described)]

        return Rebuilding(placing, same, lambda *_: None, self._news, lambda: False)
