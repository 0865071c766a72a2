"""The seams between the network and its node: what is asked of it, and what it is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from app import __version__
from app.core.household import pairing
from app.core.household.link import End
from app.core.household.machine_names import clean_name
from app.core.household.membership import Member
from app.core.ids import MachineId
from app.network.messages import PROTOCOL, Hello, Message
from app.network.peer.listener import StageHandlers
from app.network.peer.peer_link import PeerLink, Work


@dataclass(frozen=True, slots=True)
class Offer:
    """What this machine says of itself in HELLO."""

    name: str
    device: str
    engines: tuple[str, ...]
    total_bytes: int
    lendable_bytes: int


def hello(offer: Offer, machine: MachineId, instance: str, peer_port: int) -> Hello:
    """What `machine` says of itself when it meets another one."""
    return Hello(
        protocol=PROTOCOL,
        build=__version__,
        id=machine,
        instance=instance,
        name=clean_name(offer.name),
        engines=list(offer.engines),
        lendable_bytes=offer.lendable_bytes,
        total_bytes=offer.total_bytes,
        device=offer.device,
        peer_port=peer_port,
    )


class Local(Protocol):
    """What the network asks of its own node; they are called often and must not wait."""

    def offer(self) -> Offer: ...
    def work(self) -> Work: ...
    def busy(self) -> bool:
        """Whether an answer is made or layers are loaded here now: links are not measured then."""

    def link_end(self, own: str, other: str) -> End:
        """The kind of the interface behind a connection between these addresses."""


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

    def kept_out(self, machine: MachineId) -> None:
        """A machine answers and lets no link come up, or no longer: `Links.kept_out` has why."""

    def members_changed(self, members: Mapping[MachineId, Member]) -> None:
        """Who belongs to the household now; empty once this machine was removed from it."""

    def pairing_changed(self, state: pairing.State) -> None:
        """The pairing window opened, was tried, or closed."""
