"""The channel in memory behaves like the one over the network."""

from __future__ import annotations

import asyncio

import pytest

from app.core.errors import Unreachable
from app.network.peer.frame_channel import QUEUED_FRAMES, MemoryChannel


async def test_frames_go_both_ways_in_order() -> None:
    memory_channel, other = MemoryChannel.pair()
    for frame in (b"a", b"b"):
        await memory_channel.send(frame)
    await other.send(b"c")
    assert [await other.receive(), await other.receive(), await memory_channel.receive()] == [b"a", b"b", b"c"]


async def test_closing_ends_both_ends_and_every_wait() -> None:
    memory_channel, other = MemoryChannel.pair()

    async def wait() -> None:
        with pytest.raises(Unreachable):
            await other.receive()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(wait())
        await asyncio.sleep(0)
        await memory_channel.close()
    for call in (memory_channel.receive(), other.receive(), memory_channel.send(b""), other.send(b"")):
        with pytest.raises(Unreachable):
            await call
    await other.close()


async def test_a_full_channel_makes_the_sender_wait() -> None:
    memory_channel, other = MemoryChannel.pair()
    for _ in range(QUEUED_FRAMES):
        await memory_channel.send(b"x")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            await memory_channel.send(b"y")
    await other.receive()
    await memory_channel.send(b"y")
