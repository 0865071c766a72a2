"""A connection between two machines that delays, stalls and breaks, as its test wants it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from app.core.errors import AppError, Unreachable
from app.inference.stage_client import FrameChannel
from tests.simulation.virtual_loop import VirtualLoop


class Network:
    """All that is between the host and its lenders."""

    def __init__(self, loop: VirtualLoop, chance: random.Random, usual_s: float) -> None:
        self._loop, self._chance, self._usual_s = loop, chance, usual_s
        self._open_at = 0.0
        self.channels: list[Wire] = []

    def partition(self, seconds: float) -> None:
        """Nothing gets through for so long, and nobody is told; then all of it comes."""
        self._open_at = self._loop.now + seconds

    def cut(self) -> None:
        """Every connection is reset; what was on its way is lost."""
        for channel in self.channels:
            channel.reset()

    def arrival(self, after: float) -> float:
        """When something sent now is there; after what was sent before it."""
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
        self._going: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        self._coming: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        self._over = asyncio.Event()

    async def send(self, frame: bytes) -> None:
        if self._over.is_set():
            raise Unreachable("channel_closed", name="the lender")
        self._there = self._network.arrival(self._there)
        self._going.put_nowait((self._there, frame))

    async def deliver(self, to: Callable[[bytes], None]) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                ways = [
                    group.create_task(self._carry(), name="there"),
                    group.create_task(self._hear(), name="back"),
                    group.create_task(self._give(to), name="give"),
                ]
                await self._over.wait()
                for way in ways:
                    way.cancel()
        finally:
            self._over.set()
        raise Unreachable("channel_closed", name="the lender")

    async def close(self) -> None:
        self._over.set()
        await self._inner.close()

    def reset(self) -> None:
        self._over.set()

    async def _carry(self) -> None:
        while True:
            due, frame = await self._going.get()
            await asyncio.sleep(max(0.0, due - self._loop.time()))
            try:
                await self._inner.send(frame)
            except (AppError, OSError):
                self._over.set()
                return

    async def _hear(self) -> None:
        def heard(data: bytes) -> None:
            self._back = self._network.arrival(self._back)
            self._coming.put_nowait((self._back, data))

        try:
            await self._inner.deliver(heard)
        except (AppError, OSError):
            self._over.set()

    async def _give(self, to: Callable[[bytes], None]) -> None:
        while True:
            due, data = await self._coming.get()
            await asyncio.sleep(max(0.0, due - self._loop.time()))
            to(data)
