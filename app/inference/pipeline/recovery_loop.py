"""The recovery loop: carries out the decisions of app/core/recovery/recovery.py until new stages serve or none can."""

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
    """The node's ability to place the same model again. `blames` attributes errors to a machine."""

    def wanted(self) -> bool:
        """Note that the model is about to be used."""
        ...

    async def plan(self, without: frozenset[str]) -> recovery.Planned:
        """Choose a placement on the available machines, except `without`. Raises DoesNotFit or AppError."""
        ...

    def failed(self, loss: Loss) -> None:
        """Record a lost machine; one that fails repeatedly is left out of new plans."""
        ...

    def forgive(self, machines: Sequence[str]) -> None:
        """Discount one failure of each of these machines, because an answer caused it."""
        ...

    async def alone(self) -> bool:
        """Return whether this machine can hold the whole model. If so, the next plan does that."""
        ...

    async def build(self) -> Sequence[StageClient]:
        """Open the stages of the last plan, with a new epoch. Raises AppError."""
        ...

    async def changed(self) -> None:
        """Wait until the household changes, or until it is time to check again anyway."""
        ...

    def blames(self, error: AppError) -> tuple[str, str, bool]:
        """Return the machine that caused an error of `build`: its id, its name, and whether to plan without it."""
        ...

    def short(self, loss: Loss, error: DoesNotFit) -> recovery.Misfit:
        """Return what is missing, as a reason."""
        ...


async def recovered(
    loss: Loss,
    rebuilder: Rebuilder,
    say: Say,
    clock: Callable[[], float] = time.monotonic,
    replay_s: float | None = None,
    *,
    waits: bool = True,
) -> Sequence[StageClient]:
    """Return the stages of a new placement. Raises StageLost if none is possible.

    waits: wait for a machine if the model does not fit on the available ones. replay_s: the time to recompute the
    interrupted answers, or None to assume a usual prompt.
    """
    stages: Sequence[StageClient] = ()
    rebuilder.failed(loss)
    state, todo = recovery.step(recovery.Steady(), loss)
    while True:
        event: recovery.Event | None = None
        for command in todo:
            match command:
                case recovery.Say(notice):
                    say(notice)
                case recovery.Plan(without):
                    log.info("planning anew%s", f", without {', '.join(sorted(without))}" if without else "")
                    event = await _planned(loss, rebuilder, without, clock)
                    if isinstance(event, recovery.Planned) and replay_s is not None:
                        event = replace(event, replay_s=replay_s)
                case recovery.Build():
                    log.info("building what was planned")
                    try:
                        stages = await rebuilder.build()
                        event = recovery.Built()
                    except AppError as error:
                        event = loss_of(error, rebuilder, clock)
                        rebuilder.failed(event)
                case recovery.Wait(until_s) if not waits:
                    event = recovery.Waited()
                case recovery.Wait(until_s):
                    log.info("waiting for a machine, %.0f s at most", until_s - clock())
                    event = await _came(rebuilder, until_s - clock())
                case recovery.Resume():
                    log.info("all of it is there again")
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
        return rebuilder.short(loss, error)
    except AppError as error:
        return loss_of(error, rebuilder, clock)


def loss_of(error: AppError, rebuilder: Rebuilder, clock: Callable[[], float] = time.monotonic) -> Loss:
    """Return why stages could not be opened, and on which machine."""
    log.warning("the stages could not be opened: %s", error.reason)
    machine, name, is_gone = rebuilder.blames(error)
    return Loss(machine, name, error.reason, clock(), is_gone=is_gone)


async def _came(rebuilder: Rebuilder, seconds: float) -> recovery.Event:
    try:
        async with asyncio.timeout(max(0.0, seconds)):
            await rebuilder.changed()
    except TimeoutError:
        return recovery.Waited()
    return recovery.Came()
