"""Lanes of micro-batches through the stages of a placement: requests in, tokens out."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from types import TracebackType
from typing import Self

from app.core.errors import StageLost
from app.core.schedule import Limits
from app.inference.measure import StageFigures
from app.inference.sequences import Finish, Request, Token
from app.inference.stage_client import StageClient
from app.inference.step import Step
from app.inference.turns import Turns
from app.inference.work import Carried, Shape, Work

log = logging.getLogger(__name__)

WATCH_S = 0.25  # how often deadlines are looked at


def _share_turns(stages: Sequence[StageClient]) -> None:
    """Runs on one machine compute in turn, earlier ones first."""
    turns: dict[str, Turns] = {}
    for rank, stage in enumerate(stages):
        if sum(other.machine == stage.machine for other in stages) > 1:
            stage.share(turns.setdefault(stage.machine, Turns()), rank)


class Pipeline:
    """The stages of one placement, in order: the host's first run, lenders, the host's last run; or one whole.

    `async with` it; then `generate` as many answers at once as wanted. When a stage is lost, all of them
    end with StageLost, and so does every later one. The stages' workers belong to whoever made them.
    """

    def __init__(self, stages: Sequence[StageClient], shape: Shape) -> None:
        machines = len({stage.machine for stage in stages})
        limits = Limits(shape.slots, shape.kv_cells, shape.context, machines, shape.chunk_rows)
        self._stages = tuple(stages)
        _share_turns(self._stages)
        self._lanes = limits.micro_batches
        self._work = Work(shape, limits, self.figures)
        self._group = asyncio.TaskGroup()
        self._tasks: list[asyncio.Task[None]] = []
        self._over = asyncio.Event()
        self.lost: StageLost | None = None  # why it ended

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        for stage in self._stages:
            stage.on_lost = self._end
            stage.on_likely = self._work.heard_likely
            self._start(f"listen to {stage.name}", stage.listen)
        for number in range(self._lanes):
            self._start(f"lane {number}", self._lane)
        self._start("slots", lambda: self._work.attend(self._stages))
        self._start("deadlines", self._watch)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end(StageLost("pipeline_closed"))
        for task in self._tasks:
            task.cancel()
        for stage in self._stages:
            await stage.close()
        await self._group.__aexit__(None, None, None)

    async def generate(self, request: Request) -> AsyncGenerator[Token | Finish, None]:
        """Yield tokens, then one Finish. Closing it at any moment cancels: use contextlib.aclosing.

        Raises BadInput, Busy, or StageLost with what was yielded so far being right.
        """
        if self.lost is not None:
            raise self.lost
        sequence = self._work.submit(request)
        try:
            while True:
                was_full = sequence.full
                item = await sequence.take()
                if was_full:
                    self._work.wake()
                yield item
                if isinstance(item, Finish):
                    return
        finally:
            self._work.leave(sequence)

    async def wait_lost(self) -> StageLost:
        """Wait until the pipeline has ended, and return why."""
        await self._over.wait()
        assert self.lost is not None
        return self.lost

    @property
    def n_running(self) -> int:
        return self._work.n_running

    @property
    def n_waiting(self) -> int:
        return self._work.n_waiting

    def figures(self) -> tuple[StageFigures, ...]:
        """What each stage did since the pipeline began."""
        return tuple(stage.figures() for stage in self._stages)

    async def _lane(self) -> None:
        """Carry one micro-batch after another."""
        while True:
            carried = await self._work.next_batch()
            step = await self._through(self._stages[:-1], carried.step)
            while (following := self._following(carried)) is not None:
                last, first = self._stages[-1], self._stages[0]
                sampled, after = await last.forward_into(step, first, following.step)
                self._work.deliver(carried, sampled)
                if not self._work.goes_on(following):
                    await self._work.take_back(following, first)
                    break
                carried, step = following, await self._through(self._stages[1:-1], after)
            else:
                self._work.deliver(carried, await self._stages[-1].forward(step))

    def _following(self, carried: Carried) -> Carried | None:
        """What the first run may compute in the same trip as the last: both are in one worker."""
        return self._work.following(carried) if len(self._stages) > 1 else None

    async def _through(self, stages: Sequence[StageClient], step: Step) -> Step:
        for stage in stages:
            step = await stage.forward(step)
        return step

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(WATCH_S)
            now = time.monotonic()
            for stage in _computing(self._stages):
                stage.check(now)
            self._work.end_unread(now)

    def _start(self, name: str, what: Callable[[], Awaitable[None]]) -> None:
        self._tasks.append(self._group.create_task(self._walled(name, what), name=name))

    async def _walled(self, name: str, what: Callable[[], Awaitable[None]]) -> None:
        """The outer wall of every task here: whatever goes wrong ends the pipeline, not the node."""
        try:
            await what()
        except StageLost as error:
            self._end(error)
        except Exception:
            log.exception("a bug in %s", name)
            self._end(StageLost("pipeline_fault"))

    def end(self, why: StageLost) -> None:
        """All answers end with this, and no later one begins."""
        self._end(why)

    def _end(self, error: StageLost) -> None:
        if self.lost is not None:
            return
        self.lost = error
        self._work.fail(error)
        for task in self._tasks:
            task.cancel()
        self._over.set()


def _computing(stages: Sequence[StageClient]) -> list[StageClient]:
    """Of each machine that has something to do, the stage whose turn it is."""
    oldest: dict[str, StageClient] = {}
    for stage in stages:
        other = oldest.get(stage.machine)
        since, before = stage.waits_since, other.waits_since if other else None
        if since is not None and (before is None or since < before):
            oldest[stage.machine] = stage
    return list(oldest.values())
