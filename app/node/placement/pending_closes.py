"""Layers that lenders hold for this host and shall give back: told until they must have heard it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from app.core.errors import AppError
from app.core.ids import MachineId, PipelineId
from app.inference.stages.stage_host import KEEP_S
from app.network import messages

TELL_SECONDS = 1.0  # a link that takes nothing is told again when it has been replaced


class Link(Protocol):
    """What is needed of a link to a lender; lan/peer.py has it."""

    async def send(self, message: messages.Message) -> None: ...


class Closings:
    """Tells a lender at once, and again on each new link to it: the old one may have lost the news.

    A lender gives layers back by itself when their host is gone for KEEP_S; until then it is told.
    """

    def __init__(
        self, link: Callable[[MachineId], Link], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._link, self._clock = link, clock
        self._closed: dict[MachineId, dict[PipelineId, float]] = {}  # when it was closed

    async def close(self, machine: MachineId, pipeline: PipelineId) -> None:
        """The lender shall give these layers back, now or when it can be reached again."""
        self._recent(machine)[pipeline] = self._clock()
        with suppress(AppError, TimeoutError):
            async with asyncio.timeout(TELL_SECONDS):
                await self._link(machine).send(_order(pipeline))

    async def linked(self, machine: MachineId, link: Link) -> None:
        """A new link: before anything else, what must not stay open there."""
        with suppress(AppError):
            for pipeline in list(self._recent(machine)):
                await link.send(_order(pipeline))

    def _recent(self, machine: MachineId) -> dict[PipelineId, float]:
        known, since = self._closed.get(machine, {}), self._clock() - KEEP_S
        self._closed[machine] = {pipeline: at for pipeline, at in known.items() if at > since}
        return self._closed[machine]


def _order(pipeline: PipelineId) -> messages.CloseStage:
    return messages.CloseStage(pipeline=pipeline.hex())
