"""The way back to a lender whose data channel broke, and what it says about itself meanwhile."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Protocol

from app.core.errors import AppError, Unreachable
from app.core.ids import MachineId, PipelineId
from app.inference.stages.stage_client import FrameChannel

# A connection that stalls is tried anew: the next packet finds a healed path, and the system itself sends a first
# packet again only after a second. First as long as a usual network needs, then for slow ones.
TRIES_SECONDS = (0.25, 0.25, 0.5, 1.0)
ASK_SECONDS = 0.5  # the link may be silent for a second after a path has healed, where a new connection finds it
PAUSE_SECONDS = 0.05


class Link(Protocol):
    """What is asked of the live link to a lender; app/network/peer/peer_link.py has it."""

    async def open_data(self, pipeline: PipelineId) -> FrameChannel: ...
    async def inquire(self) -> None:
        """Have the peer say how far its workers are, and wait until it has."""
        ...

    def computes(self) -> bool:
        """Whether it said lately that one of them computes."""
        ...


class Links(Protocol):
    """Where the links are. They are made again by themselves, on all addresses of a machine."""

    def link(self, machine: MachineId) -> Link: ...
    def is_down(self, machine: MachineId) -> bool: ...


class LenderReconnector:
    """To one run on one lender."""

    def __init__(self, links: Links, machine: MachineId, pipeline: PipelineId) -> None:
        self._links, self._machine, self._pipeline = links, machine, pipeline

    async def reopen(self) -> FrameChannel:
        """A new channel, tried until it opens. Raises Refused when the run is not there any more, and
        Unreachable when nothing runs there."""
        n_stalled = 0
        while True:
            try:
                async with asyncio.timeout(TRIES_SECONDS[min(n_stalled, len(TRIES_SECONDS) - 1)]):
                    return await self._links.link(self._machine).open_data(self._pipeline)
            except (Unreachable, TimeoutError) as error:
                n_stalled += isinstance(error, TimeoutError)
                if self._links.is_down(self._machine):
                    raise Unreachable("peer_offline", name=self._machine[:16]) from None
            await asyncio.sleep(PAUSE_SECONDS)

    async def ask(self) -> None:
        with suppress(AppError, TimeoutError):
            async with asyncio.timeout(ASK_SECONDS):
                await self._links.link(self._machine).inquire()

    def computes(self) -> bool:
        with suppress(AppError):
            return self._links.link(self._machine).computes()
        return False
