"""What this machine, or another one of the household, took first of a model that no catalogue knows."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from app.catalog.transfers.hash_pins import Pin, Pins
from app.core.errors import AppError, Damaged, Reason
from app.core.reasons import said

log = logging.getLogger(__name__)


class HouseholdPins:
    """`others`: asks the other machines. A damaged list of this one is told once, by `note`, and never ends anything.

    It stays as it is until a person puts a copy back or deletes it.
    """

    def __init__(self, pins: Pins, others: Callable[[str, str], Awaitable[Pin | None]]) -> None:
        self._pins, self._others = pins, others
        self.note: Callable[[Reason], None] = lambda _: None
        self._is_told = False

    async def look(self) -> None:
        """Tell of damage before anybody needs what is in the list."""
        await asyncio.to_thread(self.here, "", "")

    async def of(self, repository: str, file: str) -> Pin | None:
        """What this machine took first of a file, else what another one did. Raises Damaged where only this one's list
        could tell."""
        try:
            mine = await asyncio.to_thread(self._pins.of, repository, file)
        except Damaged as error:
            self._tell(error)
            if found := await self._others(repository, file):
                return found
            raise
        return mine or await self._others(repository, file)

    def here(self, repository: str, file: str) -> Pin | None:
        """What this machine took first of a file, for another one that asks. Reads the disk."""
        try:
            return self._pins.of(repository, file)
        except Damaged as error:
            self._tell(error)
            return None

    async def keep(self, pin: Pin) -> None:
        """The model is whole and on the shelf, whatever becomes of its pin."""
        try:
            await asyncio.to_thread(self._pins.keep, pin)
        except Damaged as error:
            self._tell(error)
        except AppError as error:  # a full disk
            log.warning("what was taken first of %s is not kept: %s", pin.file, said(error))

    def _tell(self, error: Damaged) -> None:
        if not self._is_told:
            self._is_told = True
            self.note(Reason("log_node_pins_lost", {"path": error.reason.facts["path"]}))
