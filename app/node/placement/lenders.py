"""What a placement asks of lenders: where the links are, and what comes back."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from app.core.ids import MachineId, PipelineId
from app.inference.stages.stage_client import FrameChannel
from app.network import messages
from app.network.network import Network
from app.network.peer.peer_link import PeerLink
from app.node.placement.pending_closes import Closings
from app.node.placement.stage_answers import Ready, StageAnswers
from app.node.placement.stage_sender import SendLink


class LenderLink(SendLink, Protocol):
    """What a placement asks of the link to a lender; lan/peer.py has it."""

    async def open_data(self, pipeline: PipelineId) -> FrameChannel: ...
    async def inquire(self) -> None: ...
    def computes(self) -> bool: ...
    async def send(self, message: messages.Message) -> None: ...


class Lenders(Protocol):
    """Where the links are, and what the lenders answer."""

    def link(self, machine: MachineId) -> LenderLink:
        """The live link. Raises Unreachable."""
        ...

    def is_down(self, machine: MachineId) -> bool:
        """No node runs there now: not a matter of the network."""
        ...

    def expect(self, machine: MachineId, pipeline: PipelineId) -> AbstractContextManager[Ready]:
        """An OpenStage is about to be sent: what it gives waits for the answer, and raises it."""
        ...

    async def close_stage(self, machine: MachineId, pipeline: PipelineId) -> None:
        """The lender shall give these layers back, as soon as it can be told. Raises nothing."""
        ...


class NetworkLenders:
    """The lenders of the household, as the network of this machine reaches them."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self.answers, self.closings = StageAnswers(), Closings(network.link)

    def link(self, machine: MachineId) -> PeerLink:
        return self._network.link(machine)

    def is_down(self, machine: MachineId) -> bool:
        return self._network.calls.is_down(machine)

    def expect(self, machine: MachineId, pipeline: PipelineId) -> AbstractContextManager[Ready]:
        return self.answers.expect(machine, pipeline)

    async def close_stage(self, machine: MachineId, pipeline: PipelineId) -> None:
        await self.closings.close(machine, pipeline)
