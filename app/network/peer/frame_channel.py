"""Channels that carry frames to a peer: over a WebSocket, over a raw connection, or in memory for tests.

A data connection starts as a WebSocket, so that every caller is checked in the same place. Then both ends switch to
length-prefixed frames on the raw connection. This reduces the cost of a frame to one call, without masking,
parsing, a queue and two iterations of the event loop (measured: README).
"""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import Callable
from typing import Protocol, cast

import aiohttp
from aiohttp import web

from app.core.errors import Reason, Unreachable
from app.network.sockets import retransmit_quickly
from app.network.traffic_limits import LinkPace

MAX_FRAME_BYTES = (16 << 20) + (4 << 10)  # SAFETY.md 5
SEND_SECONDS = 10.0  # a peer that reads nothing for this long counts as hung
QUEUED_FRAMES = 8  # for channels in memory; must exceed the two credits of a stage

LEAVE = "frames"  # the last WebSocket message, sent by the dialing end
LENGTH = struct.Struct(">I")
CLOSE_SECONDS = 1.0  # for the other side's goodbye, before the connection is aborted
WAITING_FRAMES = 8  # number of unread frames at which reading pauses


class FrameChannel(Protocol):
    """A data connection to a peer. At most one task may send, and one may receive."""

    async def send(self, frame: bytes) -> None:
        """Send a frame. Raises Unreachable("channel_closed") if the channel has ended."""

    async def receive(self) -> bytes:
        """Return the next frame. Raises Unreachable("channel_closed") if the channel has ended."""

    async def deliver(self, to: Callable[[bytes], None]) -> None:
        """Call `to` with each frame as it arrives. Used instead of `receive`.

        Raises any error of `receive` or `to`.
        """
        while True:
            to(await self.receive())

    async def close(self) -> None:
        """Close the channel. Later calls on either side raise Unreachable. Can be called repeatedly."""


class WebSocketChannel(FrameChannel):
    """A channel over a WebSocket, in which each frame is a binary message. Used by both sides of the connection."""

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
        await self.close()  # closed, too long, or text, so nothing valid can follow
        raise self._ended()

    async def close(self) -> None:
        self._over = True
        await self._socket.close()

    def _ended(self) -> Unreachable:
        return Unreachable("channel_closed", name=self._peer_name)


class MemoryChannel(FrameChannel):
    """One end of a channel within a process. `MemoryChannel.pair()` creates both ends."""

    def __init__(self, sent: deque[bytes], received: deque[bytes], news: asyncio.Condition) -> None:
        self._sent, self._received, self._news = sent, received, news
        self._over: list[bool] = []  # shared by both ends; closed if not empty

    @classmethod
    def pair(cls) -> tuple[MemoryChannel, MemoryChannel]:
        """Return two connected ends."""
        there: deque[bytes] = deque()
        back: deque[bytes] = deque()
        news = asyncio.Condition()
        near, other = cls(there, back, news), cls(back, there, news)
        other._over = near._over
        return near, other

    async def send(self, frame: bytes) -> None:
        async with self._news:
            await self._news.wait_for(lambda: self._over or len(self._sent) < QUEUED_FRAMES)
            if self._over:
                raise Unreachable("channel_closed", name=Reason("other_end"))
            self._sent.append(bytes(frame))
            self._news.notify_all()

    async def receive(self) -> bytes:
        async with self._news:
            await self._news.wait_for(lambda: self._over or self._received)
            if self._over:
                raise Unreachable("channel_closed", name=Reason("other_end"))
            frame = self._received.popleft()
            self._news.notify_all()
            return frame

    async def close(self) -> None:
        async with self._news:
            self._over.append(True)
            self._news.notify_all()


class FrameStream(asyncio.Protocol, FrameChannel):
    """One end of a raw connection. It replaces the connection's previous protocol, which is still notified when the
    connection ends.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        peer_name: str,
        begun_by: object,
        pace: LinkPace | None = None,
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        """Take over the connection.

        begun_by: an object that would close the connection if it were garbage-collected, so a reference to it is kept.
        pace: the bandwidth limit, if any.
        ended: called when the connection has ended.
        """
        self._transport, self._peer_name, self._begun_by = transport, peer_name, begun_by
        self._when_ended = ended
        self._before = cast("asyncio.Protocol", transport.get_protocol())
        self._rest = bytearray()
        self._needed = LENGTH.size
        self._frames: deque[bytes] = deque()
        self._full = False  # whether reading is paused because of unread frames
        self._pace = pace or LinkPace()
        self._held: asyncio.TimerHandle | None = None  # set while the bandwidth limit pauses reading
        self._reader: asyncio.Future[None] | None = None
        self._to: Callable[[bytes], None] | None = None  # receives frames in place of a reader
        self._failure: Exception | None = None  # raised by `_to`
        self._writable = asyncio.Event()
        self._writable.set()
        self._over = asyncio.Event()
        transport.set_protocol(self)
        if (sock := transport.get_extra_info("socket")) is not None:
            retransmit_quickly(sock)

    async def send(self, frame: bytes) -> None:
        """Send a frame; see FrameChannel.send."""
        if self._transport.is_closing() or self._over.is_set():
            raise self._ended()
        data = b"".join((LENGTH.pack(len(frame)), frame))
        if self._pace.bytes_per_s is None:
            self._transport.write(data)
        else:
            await self._write_by_pace(data)
        if not self._writable.is_set():
            await self._drained()

    async def receive(self) -> bytes:
        """Return the next frame; see FrameChannel.receive."""
        while not self._frames:
            if self._over.is_set():
                raise self._ended()
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        frame = self._frames.popleft()
        if self._full and len(self._frames) < WAITING_FRAMES:
            self._full = False
            self._read_on()
        return frame

    async def deliver(self, to: Callable[[bytes], None]) -> None:
        """Call `to` with each frame as soon as it is received, without another iteration of the event loop."""
        while self._frames:
            to(await self.receive())
        self._to = to
        try:
            await self._over.wait()
        finally:
            self._to = None
        raise self._failure or self._ended()

    async def close(self) -> None:
        """Close the connection; see FrameChannel.close."""
        self._transport.close()
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._over.wait()
        except TimeoutError:
            self._transport.abort()

    # called by the event loop

    def data_received(self, data: bytes) -> None:
        """Pass complete frames to the reader. Abort the connection if a frame is longer than allowed."""
        rest = self._rest
        rest += data
        while len(rest) >= self._needed:
            (length,) = LENGTH.unpack_from(rest)
            if length > MAX_FRAME_BYTES:
                self._transport.abort()
                return
            self._needed = LENGTH.size + length
            if len(rest) < self._needed:
                break
            with memoryview(rest) as view:
                frame = bytes(view[LENGTH.size : self._needed])
            del rest[: self._needed]
            self._needed = LENGTH.size
            self._take(frame)
        if len(self._frames) >= WAITING_FRAMES and not self._full:
            self._full = True
            self._transport.pause_reading()
        self._wake()
        self._hold(len(data))

    def _take(self, frame: bytes) -> None:
        if self._to is None:
            self._frames.append(frame)
            return
        try:
            self._to(frame)
        except Exception as error:  # noqa: BLE001  handed to the caller of `deliver`
            self._failure, self._to = error, None
            self._transport.abort()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._held is not None:
            self._held.cancel()
        self._over.set()
        self._writable.set()
        self._wake()
        self._before.connection_lost(exc)
        self._when_ended()

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    async def _write_by_pace(self, data: bytes) -> None:
        """Write the data in slices, as fast as the bandwidth limit allows.

        A frame is completed even if this is canceled, since a partial frame would corrupt all later ones.
        """
        left, size = memoryview(data), self._pace.slice_bytes
        try:
            while left:
                await self._pace.wait_to_send(min(size, len(left)))
                if self._transport.is_closing():
                    return
                self._transport.write(left[:size])
                left = left[size:]
        finally:
            if left and not self._transport.is_closing():
                self._transport.write(left)

    def _hold(self, n_bytes: int) -> None:
        """Pause reading after `n_bytes` for as long as the bandwidth limit requires."""
        waits_s = self._pace.count_received(n_bytes)
        if waits_s > 0 and self._held is None and not self._transport.is_closing():
            self._transport.pause_reading()
            self._held = asyncio.get_running_loop().call_later(waits_s, self._let_go)

    def _let_go(self) -> None:
        self._held = None
        self._read_on()

    def _read_on(self) -> None:
        if not self._full and self._held is None and not self._transport.is_closing():
            self._transport.resume_reading()

    async def _drained(self) -> None:
        """Wait until the write buffer has room.

        If the peer reads anything within the timeout, it is just slow. If it reads nothing, it is hung, and the
        connection is aborted.
        """
        while not self._writable.is_set():
            before = self._transport.get_write_buffer_size()
            try:
                async with asyncio.timeout(SEND_SECONDS):
                    await self._writable.wait()
            except TimeoutError:
                if self._transport.get_write_buffer_size() >= before:
                    self._transport.abort()
                    break
        if self._over.is_set() or self._transport.is_closing():
            raise self._ended()

    def _ended(self) -> Unreachable:
        return Unreachable("channel_closed", name=self._peer_name)


class PacedChannel(FrameChannel):
    """A channel that applies this machine's bandwidth limit to its frames. Used for measurements."""

    def __init__(self, channel: FrameChannel, pace: LinkPace) -> None:
        self._channel, self._pace = channel, pace

    async def send(self, frame: bytes) -> None:
        await self._pace.wait_to_send(len(frame))
        await self._channel.send(frame)

    async def receive(self) -> bytes:
        frame = await self._channel.receive()
        await self._pace.wait_after_receiving(len(frame))
        return frame

    async def close(self) -> None:
        await self._channel.close()
