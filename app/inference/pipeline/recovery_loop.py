"""The loop that carries out the decisions of app/core/recovery/recovery.py until new stages serve or recovery fails."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol, assert_never

from app.core.errors import AppError, DoesNotFit
from app.core.recovery import fault_table, recovery
from app.core.recovery.recovery import Loss, Notice
from app.inference.stages.stage_client import StageClient

log = logging.getLogger(__name__)

Say = Callable[[Notice], None]


class Rebuilder(Protocol):
    """An interface to the node, which places the model again after a loss."""

    def is_needed(self) -> bool:
        """Return whether there are, or soon will be, requests that no other pipeline can take over."""
        ...

    async def plan(self, without: frozenset[str]) -> recovery.Planned:
        """Plan a placement on the available machines. Machines in `without` are excluded.

        Raises DoesNotFit or another AppError.
        """
        ...

    def failed(self, loss: Loss) -> None:
        """Record the loss of a machine. New plans exclude machines that fail repeatedly."""
        ...

    def forgive(self, machines: Sequence[str]) -> None:
        """Remove one failure from the record of each of these machines, because an answer caused it."""
        ...

    async def can_host_alone(self) -> bool:
        """Return whether the whole model fits on this machine. If so, the next plan places it on this machine."""
        ...

    async def build(self) -> Sequence[StageClient]:
        """Open the stages of the last plan with a new epoch. Raises AppError."""
        ...

    async def changed(self) -> None:
        """Wait until the household changes, or until it is time to check again."""
        ...

    def blames(self, error: AppError) -> tuple[str, str, bool]:
        """Return the id and the name of the machine that caused an error of `build`, and whether to plan without it."""
        ...

    def misfit(self, loss: Loss, error: DoesNotFit) -> recovery.PlanFailed:
        """Return an event for the recovery that states why the model does not fit."""
        ...


async def recover(
    loss: Loss,
    rebuilder: Rebuilder,
    say: Say,
    clock: Callable[[], float] = time.monotonic,
    replay_s: float | None = None,
    *,
    waits: bool = True,
) -> Sequence[StageClient]:
    """Replace lost stages and return the new ones. Raises StageLost if this is impossible.

    waits: whether to wait for another machine if the model does not fit on the available ones.
    replay_s: the time needed to recompute the interrupted answers, or None to assume the time for a typical prompt.
    """
    stages: Sequence[StageClient] = ()
    rebuilder.failed(loss)
    state, todo = recovery.step(recovery.Steady(), loss)
    while True:
        event: recovery.Event | None = None
        for command in todo:
            match command:
                case recovery.Notify(notice):
                    say(notice)
                case recovery.Plan(without):
                    log.info("planning a new placement%s", f", without {', '.join(sorted(without))}" if without else "")
                    event = await _planned(loss, rebuilder, without, clock)
                    if isinstance(event, recovery.Planned) and replay_s is not None:
                        event = replace(event, replay_s=replay_s)
                case recovery.Build():
                    log.info("opening the stages of the new placement")
                    try:
                        stages = await rebuilder.build()
                        event = recovery.Built()
                    except AppError as error:
                        event = loss_from_error(error, rebuilder, clock)
                        rebuilder.failed(event)
                case recovery.Wait(until_s) if not waits:
                    event = recovery.WaitExpired()
                case recovery.Wait(until_s):
                    log.info("waiting up to %.0f s for another machine", until_s - clock())
                    event = await _came(rebuilder, until_s - clock())
                case recovery.Resume():
                    log.info("all stages are open again")
                    return stages
                case recovery.GiveUp(why):
                    raise fault_table.loss_error(why)
                case _:
                    assert_never(command)
        assert event is not None, state
        state, todo = recovery.step(state, event)


async def _planned(
    loss: Loss, rebuilder: Rebuilder, without: frozenset[str], clock: Callable[[], float]
) -> recovery.Event:
    try:
        return await rebuilder.plan(without)
    except DoesNotFit as error:
        return rebuilder.misfit(loss, error)
    except AppError as error:
        return loss_from_error(error, rebuilder, clock)


def loss_from_error(error: AppError, rebuilder: Rebuilder, clock: Callable[[], float] = time.monotonic) -> Loss:
    """Convert an error from opening stages into a loss of the machine that is to blame."""
    log.warning("the stages could not be opened: %s", error.reason)
    machine, name, is_gone = rebuilder.blames(error)
    return Loss(machine, name, error.reason, clock(), is_gone=is_gone)


async def _came(rebuilder: Rebuilder, seconds: float) -> recovery.Event:
    try:
        async with asyncio.timeout(max(0.0, seconds)):
            await rebuilder.changed()
    except TimeoutError:
        return recovery.WaitExpired()
    return recovery.HouseholdChanged()
