"""The channel in memory behaves like the one over the network."""

from __future__ import annotations

import asyncio

import pytest

from app.core.errors import Unreachable
from app.network.peer.frame_channel import QUEUED_FRAMES, MemoryChannel


async def test_frames_go_both_ways_in_order() -> None:
    one, other = MemoryChannel.pair()
    for frame in (b"a", b"b"):
        await one.send(frame)
    await other.send(b"c")
    assert [await other.receive(), await other.receive(), await one.receive()] == [b"a", b"b", b"c"]


async def test_closing_ends_both_ends_and_every_wait() -> None:
    one, other = MemoryChannel.pair()

    async def wait() -> None:
        with pytest.raises(Unreachable):
            await other.receive()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(wait())
        await asyncio.sleep(0)
        await one.close()
    for call in (one.receive(), other.receive(), one.send(b""), other.send(b"")):
        with pytest.raises(Unreachable):
            await call
    await other.close()


async def test_a_full_channel_makes_the_sender_wait() -> None:
    one, other = MemoryChannel.pair()
    for _ in range(QUEUED_FRAMES):
        await one.send(b"x")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            await one.send(b"y")
    await other.receive()
    await one.send(b"y")
