"""FrameChannel: whole frames there and back, over a WebSocket or, in tests, in memory."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol

import aiohttp
from aiohttp import web

from app.core.errors import Unreachable

MAX_FRAME_BYTES = (16 << 20) + (4 << 10)  # SAFETY.md 5
SEND_SECONDS = 10.0  # a peer that takes no bytes for so long hangs
QUEUED_FRAMES = 8  # in memory only: more than the two credits of a stage


class FrameChannel(Protocol):
    """One data connection to a peer. One task sends, one receives."""

    async def send(self, frame: bytes) -> None:
        """Hand one frame over. Raises Unreachable("channel_closed") when the channel has ended."""

    async def receive(self) -> bytes:
        """The next frame. Raises Unreachable("channel_closed") when the channel has ended."""

    async def deliver(self, to: Callable[[bytes], None]) -> None:
        """Give `to` each frame as it comes, in place of `receive`. Raises as that, or what `to` raised."""
        while True:
            to(await self.receive())

    async def close(self) -> None:
        """End it; both sides' calls then raise. Repeating is harmless."""


class WebSocketChannel(FrameChannel):
    """Frames as binary WebSocket messages; either side of the connection."""

    def __init__(self, socket: web.WebSocketResponse | aiohttp.ClientWebSocketResponse, peer_name: str) -> None:
        self._socket = socket
        self._peer_name = peer_name
        self._over = False

    async def send(self, frame: bytes) -> None:
        try:
            async with asyncio.timeout(SEND_SECONDS):
                await self._socket.send_bytes(frame)
        except (OSError, aiohttp.ClientError) as error:  # TimeoutError is an OSError
            self._over = True
            raise self._ended() from error

    async def receive(self) -> bytes:
        if self._over:
            raise self._ended()
        try:
            message = await self._socket.receive()
        except (OSError, aiohttp.ClientError) as error:
            self._over = True
            raise self._ended() from error
        if message.type is aiohttp.WSMsgType.BINARY:
            data: bytes = message.data
            return data
        await self.close()  # closed, too long, or text: nothing of ours comes after it
        raise self._ended()

    async def close(self) -> None:
        self._over = True
        await self._socket.close()

    def _ended(self) -> Unreachable:
        return Unreachable("channel_closed", name=self._peer_name)


class MemoryChannel(FrameChannel):
    """One end of a channel inside one process; `MemoryChannel.pair()` makes both."""

    def __init__(self, sent: deque[bytes], received: deque[bytes], news: asyncio.Condition) -> None:
        self._sent, self._received, self._news = sent, received, news
        self._over: list[bool] = []  # shared by both ends; not empty = closed

    @classmethod
    def pair(cls) -> tuple[MemoryChannel, MemoryChannel]:
        """Both ends: what one sends the other receives."""
        there: deque[bytes] = deque()
        back: deque[bytes] = deque()
        news = asyncio.Condition()
        one, other = cls(there, back, news), cls(back, there, news)
        other._over = one._over
        return one, other

    async def send(self, frame: bytes) -> None:
        async with self._news:
            await self._news.wait_for(lambda: self._over or len(self._sent) < QUEUED_FRAMES)
            if self._over:
                raise Unreachable("channel_closed", name="the other end")
            self._sent.append(bytes(frame))
            self._news.notify_all()

    async def receive(self) -> bytes:
        async with self._news:
            await self._news.wait_for(lambda: self._over or self._received)
            if self._over:
                raise Unreachable("channel_closed", name="the other end")
            frame = self._received.popleft()
            self._news.notify_all()
            return frame

    async def close(self) -> None:
        async with self._news:
            self._over.append(True)
            self._news.notify_all()
