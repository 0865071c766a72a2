"""Prompts kept at lenders: asks lenders to save and restore the slots of their layers, and waits for their
replies.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

import msgspec

from app.core.errors import AppError
from app.core.ids import MachineId
from app.inference.stages.stage_client import Run
from app.network import messages
from app.network.network import Network

KEEP_SECONDS = 60.0  # for the copy in the lender's memory; meanwhile the slot is not used
RESTORE_SECONDS = 60.0  # after that, computing again is no slower


class SlotRequests:
    """The pending requests to lenders."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._waiting: dict[tuple[MachineId, int], asyncio.Future[int]] = {}
        self._number = 0

    async def ask(
        self, machine: MachineId, order: messages.KeepSlot | messages.RestoreSlot, seconds: float
    ) -> int | None:
        """Send a request, and return how many positions the lender has saved or restored.

        Return 0 if the lender cannot be reached, and None if it does not reply in time.
        """
        self._number = (self._number + 1) & 0xFFFFFF
        key = machine, self._number
        future: asyncio.Future[int]
        self._waiting[key] = future = asyncio.get_running_loop().create_future()
        try:
            with suppress(AppError):
                async with asyncio.timeout(seconds):
                    await self._network.link(machine).send(_numbered(order, self._number))
                    return await future
            return 0
        except TimeoutError:
            return None
        finally:
            del self._waiting[key]

    def receive(self, machine: MachineId, done: messages.SlotDone) -> None:
        future = self._waiting.get((machine, done.request))
        if future is not None and not future.done():
            future.set_result(done.positions)

    def link_lost(self, machine: MachineId) -> None:
        """Complete all pending requests to this lender with the result 0."""
        for (lender, _), future in self._waiting.items():
            if lender == machine and not future.done():
                future.set_result(0)


class LenderSlotKeeper:
    """The slot keeper of a run on a lender.

    A slot is blocked while the lender is asked, so after a request without a reply, the next one is skipped.
    """

    def __init__(self, requests: SlotRequests, machine: MachineId, run: Run) -> None:
        self._requests, self._machine, self._run = requests, machine, run
        self._is_silent = False

    async def keep(self, slot: int, positions: int, key: bytes) -> bool:
        order = messages.KeepSlot(
            request=0,
            pipeline=self._run.pipeline.hex(),
            epoch=self._run.epoch,
            slot=slot,
            positions=positions,
            key=key.hex(),
        )
        return await self._ask(order, KEEP_SECONDS) == positions

    async def restore(self, slot: int, key: bytes) -> int:
        order = messages.RestoreSlot(
            request=0, pipeline=self._run.pipeline.hex(), epoch=self._run.epoch, slot=slot, key=key.hex()
        )
        return await self._ask(order, RESTORE_SECONDS)

    async def _ask(self, order: messages.KeepSlot | messages.RestoreSlot, seconds: float) -> int:
        n_positions = None if self._is_silent else await self._requests.ask(self._machine, order, seconds)
        self._is_silent = n_positions is None
        return n_positions or 0


def _numbered(order: messages.KeepSlot | messages.RestoreSlot, number: int) -> messages.KeepSlot | messages.RestoreSlot:
    return msgspec.structs.replace(order, request=number)
