"""A connection between two machines that delays, stalls and breaks, as its test wants it."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Callable

from app.core.errors import AppError, Unreachable
from app.inference.stages.stage_client import FrameChannel
from tests.simulation.virtual_loop import VirtualLoop

FLUSHED_S = 5.0  # what a closed connection has not sent by then is lost (SAFETY.md 5)
Flying = asyncio.PriorityQueue[tuple[float, int, bytes]]


class Network:
    """All that is between the host and its lenders."""

    def __init__(self, loop: VirtualLoop, chance: random.Random, usual_s: float, *, flushes: bool = False) -> None:
        """flushes: what was sent over a connection that is closed is on its way still, as systems have it."""
        self._loop, self._chance, self._usual_s, self.flushes = loop, chance, usual_s, flushes
        self._open_at = self._sound_at = 0.0
        self.channels: list[Wire] = []

    def partition(self, seconds: float) -> None:
        """Nothing gets through for so long, and nobody is told; then all of it comes."""
        self._open_at = self._loop.now + seconds

    def disturb(self, seconds: float) -> None:
        """Lose, repeat or reorder frames for this long."""
        self._sound_at = self._loop.now + seconds

    def arrivals(self, after: float) -> list[float]:
        """Return the arrival times of a frame sent now: mostly one, after everything sent before it."""
        due = self.arrival(after)
        if self._loop.now >= self._sound_at:
            return [due]
        match self._chance.randrange(12):
            case 0:
                return []
            case 1:
                return [due, due + self._usual_s]
            case 2:
                return [due + 5 * self._usual_s]
            case _:
                return [due]

    def cut(self) -> None:
        """Every connection is reset; what was on its way is lost."""
        for channel in self.channels:
            channel.reset()

    def arrival(self, after: float) -> float:
        """Return the arrival time of something sent now, after everything sent before it."""
        delay = self._usual_s * (1 + self._chance.random())
        return max(self._loop.now + delay, self._open_at, after)

    def wire(self, inner: FrameChannel) -> FrameChannel:
        made = Wire(inner, self)
        self.channels.append(made)
        return made


class Wire:
    """The host's end. It takes what is sent at once, as a system's buffers do."""

    def __init__(self, inner: FrameChannel, network: Network) -> None:
        self._inner, self._network = inner, network
        self._loop = asyncio.get_running_loop()
        self._there = self._back = 0.0
        self._numbers = itertools.count()
        self._going: Flying = asyncio.PriorityQueue()
        self._coming: Flying = asyncio.PriorityQueue()
        self._over = asyncio.Event()
        self._flushing: asyncio.Task[None] | None = None

    async def send(self, frame: bytes) -> None:
        if self._over.is_set():
            raise Unreachable("channel_closed", name="the lender")
        self._there = self._fly(self._going, frame, self._there)

    async def deliver(self, to: Callable[[bytes], None]) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(self._carry(), name="there"),
                    group.create_task(self._hear(), name="back"),
                    group.create_task(self._give(to), name="give"),
                ]
                await self._over.wait()
                for way in tasks:
                    way.cancel()
        finally:
            self._over.set()
        raise Unreachable("channel_closed", name="the lender")

    async def close(self) -> None:
        if self._over.is_set() or self._going.empty() or not self._network.flushes:
            self._over.set()
            await self._inner.close()
            return
        self._over.set()
        self._flushing = self._loop.create_task(self._flush(), name="flush")

    async def _flush(self) -> None:
        try:
            async with asyncio.timeout(FLUSHED_S):
                while not self._going.empty():
                    await self._inner.send(await self._landed(self._going))
        except (AppError, OSError, TimeoutError):
            pass
        finally:
            await self._inner.close()

    def reset(self) -> None:
        self._over.set()

    def _fly(self, way: Flying, frame: bytes, before: float) -> float:
        """Send it off; when it is there, or the one before it."""
        arrivals = self._network.arrivals(before)
        for due in arrivals:
            way.put_nowait((due, next(self._numbers), frame))
        return min(arrivals, default=before)

    async def _landed(self, way: Flying) -> bytes:
        """The next frame that is there: one that overtakes another comes first."""
        while True:
            due, number, frame = await way.get()
            if (early := due - self._loop.time()) <= 0:
                return frame
            way.put_nowait((due, number, frame))
            await asyncio.sleep(early)

    async def _carry(self) -> None:
        while True:
            frame = await self._landed(self._going)
            try:
                await self._inner.send(frame)
            except (AppError, OSError):
                self._over.set()
                return

    async def _hear(self) -> None:
        def heard(data: bytes) -> None:
            self._back = self._fly(self._coming, data, self._back)

        try:
            await self._inner.deliver(heard)
        except (AppError, OSError):
            self._over.set()

    async def _give(self, to: Callable[[bytes], None]) -> None:
        while True:
            to(await self._landed(self._coming))
