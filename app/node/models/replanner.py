"""Where a model that was placed once may go again: as it was ordered, if that can be, or else."""

from __future__ import annotations

import asyncio

import msgspec

from app.core.errors import AppError
from app.core.ids import MachineId
from app.core.planner.placement import ONE_PIPELINE
from app.core.planner.placement_change import kept_runs
from app.core.planner.plan import Plan
from app.node.control import requests as asked
from app.node.models.loaded_models import LoadedModels, releases
from app.node.placement.failover import Option
from app.node.placement.placement import Placement
from app.node.planning.planner_inputs import PlannerInputs
from app.node.planning.planning import BATCH_ROWS, Planner, lends
from app.node.snapshot import plan_json


class Replanner:
    """What other models hold stays theirs, but for what lies ahead of a loss: one that is lost needs it more."""

    def __init__(self, planner: Planner, outlook: PlannerInputs, loaded: LoadedModels) -> None:
        self._planner, self._outlook, self._loaded = planner, outlook, loaded

    async def order(self, lost: Placement) -> asked.LoadModel:
        """How a lost model was loaded; without its split when the machines for that are gone."""
        try:
            back = releases([lost], self._loaded.but(lost))
            await self._planner.plan(lost.entry.model, lost.order, back, {})
        except AppError:
            return msgspec.structs.replace(lost.order, split=None, shape=None)
        return lost.order

    async def options(
        self, running: Placement, without: frozenset[MachineId], part: Plan | None = None
    ) -> list[Option]:
        """Where lost layers, or those of a part, may go: as ordered, if that can be, or else. Raises AppError."""
        entry, was = running.entry, running.order
        shape = None if running.state.is_several else was.shape  # of one of several, the split
        order = msgspec.structs.replace(was, without=[*was.without, *without], shape=shape)
        speeds = await self._outlook.speeds(entry, BATCH_ROWS, lambda _: None, known_only=True)
        back = releases([running], self._loaded.but(running) if running.news else ())
        given = entry.model, order, back, speeds, None, ONE_PIPELINE
        try:
            chosen = await self._planner.plan(*given)
        except AppError:
            if order.split is None and order.shape is None:
                raise
            order = msgspec.structs.replace(order, split=None, shape=None)
            chosen = await self._planner.plan(given[0], order, *given[2:])
        kept = await asyncio.to_thread(kept_runs, part or running.plan, chosen, entry.model)
        return [(one, plan_json(one, entry.model, lends(one))) for one in (chosen, *kept)]
