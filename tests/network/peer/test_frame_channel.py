"""A bare connection that carries frames behaves as every channel, and keeps its limits."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from app.core.errors import Unreachable
from app.network.peer import frame_channel
from app.network.peer.frame_channel import LENGTH, MAX_FRAME_BYTES, WAITING_FRAMES, FrameStream
from app.network.traffic_limits import LinkPace

Ends = tuple[FrameStream, FrameStream, list[Exception | None]]


class Before(asyncio.Protocol):
    """The previous user of the connection."""

    def __init__(self, heard: list[Exception | None]) -> None:
        self._heard = heard

    def connection_lost(self, exc: Exception | None) -> None:
        self._heard.append(exc)


@pytest.fixture
async def ends() -> AsyncIterator[Ends]:
    heard: list[Exception | None] = []
    loop = asyncio.get_running_loop()
    made = []
    for sock in socket.socketpair():
        transport, _ = await loop.create_connection(lambda: Before(heard), sock=sock)
        made.append(FrameStream(transport, "attic", None))
    yield made[0], made[1], heard
    for stream in made:
        await stream.close()


async def test_frames_of_all_sizes_go_both_ways_in_order(ends: Ends) -> None:
    frame_stream, other, _ = ends
    frames = [os.urandom(size) for size in (1, 0, 5, 70_000, 4, 300_000)]

    async def echo() -> None:
        for _ in frames:
            await other.send(await other.receive())

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(echo())
        for frame in frames:
            await frame_stream.send(frame)
        assert [await frame_stream.receive() for _ in frames] == frames


async def test_frames_cut_anywhere_come_whole(ends: Ends) -> None:
    frame_stream, other, _ = ends
    frames = [b"a" * 9, b"", b"b" * 100]
    data = b"".join(LENGTH.pack(len(frame)) + frame for frame in frames)
    for start in range(0, len(data), 7):
        frame_stream._transport.write(data[start : start + 7])
        await asyncio.sleep(0.001)
    assert [await other.receive() for _ in frames] == frames


async def test_delivered_frames_need_no_reader(ends: Ends) -> None:
    frame_stream, other, _ = ends
    got: list[bytes] = []
    await frame_stream.send(b"before")
    await asyncio.sleep(0.01)
    async with asyncio.TaskGroup() as tasks:
        delivering = tasks.create_task(_delivered(other, got))
        await asyncio.sleep(0.01)
        for number in range(2 * WAITING_FRAMES):
            await frame_stream.send(b"%d" % number)
        await frame_stream.close()
        await delivering
    assert got == [b"before", *(b"%d" % number for number in range(2 * WAITING_FRAMES))]


async def _delivered(stream: FrameStream, got: list[bytes]) -> None:
    with pytest.raises(Unreachable):
        await stream.deliver(got.append)


async def test_whoever_takes_frames_may_end_the_connection(ends: Ends) -> None:
    frame_stream, other, _ = ends

    def refuse(_frame: bytes) -> None:
        raise ValueError("not this one")

    async with asyncio.TaskGroup() as tasks:
        refused = tasks.create_task(_refused(other, refuse))
        await asyncio.sleep(0.01)
        await frame_stream.send(b"y")
        await refused
    with pytest.raises(Unreachable):
        await frame_stream.receive()


async def _refused(stream: FrameStream, refuse: object) -> None:
    with pytest.raises(ValueError, match="not this one"):
        await stream.deliver(refuse)  # type: ignore[arg-type]


async def test_too_long_a_frame_ends_the_connection_before_it_comes(ends: Ends) -> None:
    frame_stream, other, heard = ends
    frame_stream._transport.write(LENGTH.pack(MAX_FRAME_BYTES + 1))
    with pytest.raises(Unreachable):
        await other.receive()
    with pytest.raises(Unreachable):
        await frame_stream.receive()
    assert len(heard) == 2  # those who had the connection know


async def test_nobody_reads_so_nothing_piles_up(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame_channel, "SEND_SECONDS", 0.5)
    frame_stream, other, _ = ends
    frame = bytes(1 << 20)
    with pytest.raises(Unreachable):
        await _sent(frame_stream, [frame] * 10 * WAITING_FRAMES)
    assert WAITING_FRAMES <= len(other._frames) <= WAITING_FRAMES + 1
    while True:  # what had come is there
        try:
            assert await other.receive() == frame
        except Unreachable:
            break


async def _sent(stream: FrameStream, frames: list[bytes]) -> None:
    for frame in frames:
        await stream.send(frame)


async def test_a_slow_reader_gets_all_of_it(ends: Ends) -> None:
    frame_stream, other, _ = ends
    n_frames = 5 * WAITING_FRAMES

    async def send() -> None:
        for number in range(n_frames):
            await frame_stream.send(b"%06d" % number * 1000)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(send())
        for number in range(n_frames):
            await asyncio.sleep(0.001)
            assert (await other.receive())[:6] == b"%06d" % number


async def test_after_the_end_every_call_says_so(ends: Ends) -> None:
    frame_stream, other, heard = ends
    waiting = asyncio.gather(other.receive(), return_exceptions=True)
    await asyncio.sleep(0)
    await frame_stream.close()
    assert isinstance((await waiting)[0], Unreachable)
    for call in (frame_stream.receive(), other.receive(), frame_stream.send(b""), other.send(b"")):
        with pytest.raises(Unreachable):
            await call
    await other.close()
    assert heard == [None, None]


MBIT = 16


@pytest.fixture
async def limited() -> AsyncIterator[tuple[FrameStream, FrameStream]]:
    """Its owner limits the first one's machine."""
    loop = asyncio.get_running_loop()
    pace, made = LinkPace(), []
    pace.limit(MBIT)
    for sock, one_pace in zip(socket.socketpair(), (pace, None), strict=True):
        transport, _ = await loop.create_connection(lambda: Before([]), sock=sock)
        made.append(FrameStream(transport, "attic", None, one_pace))
    yield made[0], made[1]
    for stream in made:
        await stream.close()


async def test_under_a_limit_frames_take_what_they_must_each_way(limited: tuple[FrameStream, FrameStream]) -> None:
    frame_stream, other = limited
    frames = [os.urandom(size) for size in (100_000, 5, 200_000, 0, 100_000)]
    must_s = sum(map(len, frames)) / (MBIT * 125_000)
    for sender, receiver in ((frame_stream, other), (other, frame_stream)):
        begun = asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_sent(sender, frames), name="send")
            assert [await receiver.receive() for _ in frames] == frames
        took_s = asyncio.get_running_loop().time() - begun
        # the last bytes pay only with what comes after them: a read of the connection at most
        assert 0.4 * must_s < took_s < must_s + 20, (must_s, took_s)


async def test_a_frame_whose_sender_is_stopped_within_it_comes_whole(limited: tuple[FrameStream, FrameStream]) -> None:
    frame_stream, other = limited
    frame = os.urandom(300_000)
    async with asyncio.TaskGroup() as tasks:
        sending = tasks.create_task(frame_stream.send(frame), name="send")
        await asyncio.sleep(0.05)
        assert not sending.done()
        sending.cancel()
        assert await other.receive() == frame
        await frame_stream.send(b"after")
        assert await other.receive() == b"after"


async def test_a_limited_connection_that_ends_while_it_is_held_leaves_nothing(
    limited: tuple[FrameStream, FrameStream],
) -> None:
    frame_stream, other = limited

    async def sent() -> None:
        with suppress(Unreachable):
            await other.send(bytes(400_000))

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(sent(), name="send")
        while frame_stream._held is None:  # noqa: ASYNC110  nobody tells
            await asyncio.sleep(0.001)
        await frame_stream.close()
        with pytest.raises(Unreachable):
            await frame_stream.receive()
    assert frame_stream._held is not None
    assert frame_stream._held.cancelled()


async def test_a_peer_that_takes_something_is_slow_and_not_lost(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame_channel, "SEND_SECONDS", 0.6)  # a read of 256 KiB is a fifth of that
    frame_stream, other, _ = ends
    other._pace.limit(16)
    frame = os.urandom(3 << 20)  # 1.6 seconds
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_sent(frame_stream, [frame]), name="send")
        assert await other.receive() == frame
