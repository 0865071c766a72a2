"""How a stage's frames get there and back, as its client sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from app.core.errors import StageLost
from backends import orders

if TYPE_CHECKING:
    from app.inference.stage_client import StageClient


class Link(Protocol):
    """How frames get to a stage and back."""

    async def send(self, frame: bytes) -> None: ...

    async def listen(self, stage: StageClient) -> None:
        """Hand over what comes back, until the link ends or this is cancelled."""
        ...

    def last_done_at(self) -> float:
        """When whatever computes there last finished something, for this stage or another one."""
        ...

    def overdue(self, stage: StageClient, in_s: float) -> bool:
        """The oldest answer should be here in so many seconds, or have come: see whether that can be mended then.
        True when whatever computes there says that it does: then it is slow, not gone."""
        ...

    def stands_still_s(self, now: float) -> float:
        """For how long the system has stopped whatever computes there, as far as this machine can see."""
        ...

    def silence(self, machine: str, seconds: float) -> StageLost:
        """What it means that nothing came for so long."""
        ...

    def give_up(self, why: StageLost) -> None:
        """The stage is of no more use."""
        ...

    @property
    def is_elsewhere(self) -> bool:
        """Whether another machine computes there, whose word is not this one's."""
        ...

    async def begin(self, order: orders.Begin, stage: StageClient) -> None:
        """Start a sequence in the run that samples."""
        ...

    async def close(self) -> None: ...
