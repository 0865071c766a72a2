"""Places a model anew under its running answers: what inference/recovering.py asks for, on real machines."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

from app.core import recovery
from app.core.errors import AppError, DoesNotFit, Reason, Refused, Unreachable
from app.core.ids import MachineId
from app.core.plan import Plan
from app.core.reasons import said
from app.core.recovery import Loss, Notice
from app.inference.stage_client import StageClient
from app.node.placing import Placing

Json = dict[str, Any]
Replan = Callable[[frozenset[MachineId]], Awaitable[tuple[Plan, Json]]]

LEAST_PAUSE_SECONDS = 0.5  # between two plans while nothing fits
LONGEST_PAUSE_SECONDS = (
    5.0  # not all that frees memory is news of the household: also this machine's own
)
USUAL_BYTES_PER_SECOND = 200e6  # from a disk, before anything was loaded here


class Rebuilding:
    """For one placement. `replan` chooses; `replaced` is told the new plan before its memory is taken."""

    def __init__(
        self,
        placing: Placing,
        replan: Replan,
        replaced: Callable[[Plan, Json], None],
        news: asyncio.Event,
        wanted: Callable[[], bool],
    ) -> None:
        self._placing, self._replan, self._replaced = placing, replan, replaced
        self.wanted = wanted  # somebody asks, or is about to
        self._news = news  # set when the household changes
        self._chosen: tuple[Plan, Json] | None = None
        self.bytes_per_second = USUAL_BYTES_PER_SECOND  # as layers were loaded here before

    async def plan(self, without: frozenset[str]) -> recovery.Planned:
        self._news.clear()
        chosen, _ = self._chosen = await self._replan(frozenset(map(MachineId, without)))
        moving = self._placing.moving(chosen)
        names = dict.fromkeys(stage.name for stage in moving)
        return recovery.Planned(tuple(names), self._seconds(chosen, moving))

    async def build(self) -> list[StageClient]:
        assert self._chosen is not None
        plan, described = self._chosen
        self._replaced(plan, described)
        return await self._placing.open(plan)

    async def changed(self) -> None:
        await asyncio.sleep(LEAST_PAUSE_SECONDS)
        with suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_PAUSE_SECONDS):
                await self._news.wait()

    def blames(self, error: AppError) -> tuple[str, str, bool]:
        stage = self._placing.failed
        if stage is None:
            return "", "", False
        own = self._chosen is not None and stage.machine == self._chosen[0].stages[0].machine
        is_gone = isinstance(error, Unreachable | Refused | DoesNotFit)
        return "" if own else stage.machine, stage.name, is_gone

    def short(self, loss: Loss, error: DoesNotFit) -> recovery.Misfit:
        what = said(error)
        return recovery.Misfit(Reason("recovery_short", {"machine": loss.name, "what": what}))

    def _seconds(self, plan: Plan, moving: list[Any]) -> float:
        """A forecast: each machine loads what it lacks, after it was sent there; then the prompt is read again."""
        links = {machine.id: machine.link for machine in plan.machines}
        loads: dict[MachineId, float] = {}
        for stage in moving:
            link = links.get(stage.machine)
            seconds = stage.weight_bytes / self.bytes_per_second
            seconds += stage.weight_bytes / max(1.0, link.out_bytes_per_s) if link else 0.0
            loads[stage.machine] = loads.get(stage.machine, 0.0) + seconds
        replay = plan.forecast.ttft_s if plan.forecast else 0.0
        return max(loads.values(), default=0.0) + replay


def notice_json(notice: Notice) -> Mapping[str, Any]:
    """As it is told in a stream and in the snapshot."""
    return {
        "state": notice.state,
        "machine": notice.machine,
        "code": notice.reason.code,
        "text": said(notice.reason),
        "seconds": notice.seconds,
    }
