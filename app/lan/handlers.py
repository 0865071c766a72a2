"""The seams between the network and its node: what is asked of it, and what it is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from app.core import pairing
from app.core.ids import MachineId
from app.core.membership import Member
from app.lan.listener import StageHandlers
from app.lan.messages import Message
from app.lan.peer import PeerLink, Work


@dataclass(frozen=True, slots=True)
class Offer:
    """What this machine says of itself in HELLO."""

    name: str
    device: str
    engines: tuple[str, ...]
    total_bytes: int
    lendable_bytes: int


class Local(Protocol):
    """What the network asks of its own node; both are called often and must not wait."""

    def offer(self) -> Offer: ...
    def work(self) -> Work: ...


class Handlers(StageHandlers, Protocol):
    """What happens on the network, told to the node.

    For one link: `connected` first, then messages one after the other, at last `disconnected`. A
    link that ends cancels the handler of its message.
    """

    async def connected(self, link: PeerLink) -> None: ...
    async def message(self, link: PeerLink, message: Message) -> None: ...
    async def disconnected(self, link: PeerLink) -> None: ...
    def suspected(self, link: PeerLink, doubted: bool) -> None:
        """Nothing was heard of a machine for 3 s, or something again."""

    def members_changed(self, members: Mapping[MachineId, Member]) -> None:
        """Who belongs to the household now; empty once this machine was removed from it."""

    def pairing_changed(self, state: pairing.State) -> None:
        """The pairing window opened, was tried, or closed."""
