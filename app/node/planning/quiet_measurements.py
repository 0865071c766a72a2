"""The repetition of measurements that other programs disturbed, once the computers are quiet."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from app.core.planner.forecast_range import DISTURBED_LOAD
from app.machine.hardware.devices import other_programs_share
from app.node.planning.local_speed import LocalSpeed
from app.node.planning.speed_measurer import SpeedMeasurer

LOOK_S = 60.0  # between two looks at whether the computer is quiet
LOOKS = 2  # quiet looks in succession, so that a pause of another program is not taken for its end


class QuietMeasurements:
    """Repeats this machine's disturbed measurements, and asks lenders to repeat theirs.

    `repeated` is called after a measurement was repeated, to refresh the forecasts that are based on it.
    """

    def __init__(
        self,
        own: LocalSpeed,
        measurer: SpeedMeasurer,
        repeated: Callable[[], Awaitable[None]],
        other_load: Callable[[], float] = other_programs_share,
        look_s: float = LOOK_S,
    ) -> None:
        self._own, self._measurer, self._repeated = own, measurer, repeated
        self._other_load, self._look_s = other_load, look_s
        self._n_quiet = 0

    async def run(self) -> None:
        """Look for disturbed measurements from time to time, until canceled."""
        while True:
            await asyncio.sleep(self._look_s)
            if await self.look():
                await self._repeated()

    async def look(self) -> bool:
        """Repeat disturbed measurements if the computers are quiet. Return whether anything was measured again."""
        is_here, is_elsewhere = self._own.has_disturbed, self._measurer.has_disturbed
        if not (is_here or is_elsewhere):
            self._n_quiet = 0
            return False
        again = await self._measurer.ask_disturbed() if is_elsewhere else False
        if not is_here:
            return again
        is_quiet = await asyncio.to_thread(self._other_load) <= DISTURBED_LOAD
        self._n_quiet = self._n_quiet + 1 if is_quiet else 0
        if self._n_quiet < LOOKS:
            return again
        return await self._own.repeat_disturbed() or again
