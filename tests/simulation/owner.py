"""A lender whose owner takes the memory back in peace, as app/core/lending/lending.py has it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from app.core.ids import MachineId
from app.core.lending.lending import OWNER, Draining, Paused, StagesInspected, State, step
from app.inference.stages.stage_host import StageHost
from app.node.lending.lending_policy import DRAIN_LOOK_SECONDS

PATIENCE_S = 300.0  # no answer of a story takes so long that it must be broken off
HOST = MachineId("0" * 64)


async def drained(lender: StageHost, answers: Callable[[], bool]) -> None:
    """Returns when it is given back. answers: what its host says, whether an answer is under way."""
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + PATIENCE_S
    state: State = Draining(frozenset({HOST}), deadline_s, Paused(OWNER, by_owner=True))
    while isinstance(state, Draining):
        hosts = frozenset({HOST} if lender.runs else ())
        state, todo = step(state, StagesInspected(loop.time(), hosts, lender.quiet_s(), answers()))
        for command in todo:
            await lender.stop_now(command.why)
        await asyncio.sleep(DRAIN_LOOK_SECONDS)
