"""Bodies are bounded in bytes, and in the time their sender takes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from app.network import traffic_limits
from app.network.traffic_limits import TooLong, TooSlow, allowed_seconds, body_chunks, whole_body


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Sender:
    """Gives chunks, each after some seconds of the clock."""

    def __init__(self, clock: Clock, chunks: Iterator[tuple[float, bytes]]) -> None:
        self.clock, self.chunks = clock, chunks

    async def readany(self) -> bytes:
        seconds, chunk = next(self.chunks, (0.0, b""))
        self.clock.now += seconds
        return chunk


async def test_a_body_in_time_is_whole() -> None:
    sender = Sender(Clock(), iter([(0.0, b"ab"), (0.0, b"c")]))
    assert await whole_body(sender, None, 3) == b"abc"


async def test_too_long_announced_or_sent() -> None:
    with pytest.raises(TooLong):
        await whole_body(Sender(Clock(), iter([])), 4, 3)
    with pytest.raises(TooLong):
        await whole_body(Sender(Clock(), iter([(0.0, b"abcd")])), None, 3)


async def test_one_byte_a_second_is_too_slow() -> None:
    clock = Clock()
    sender = Sender(clock, iter([(1.0, b"x")] * 60))
    with pytest.raises(TooSlow):
        _ = [chunk async for chunk in body_chunks(sender, clock)]
    assert 10 <= clock.now <= 11


async def test_a_slow_reader_is_not_the_senders_fault() -> None:
    clock = Clock()
    total = 0
    async for chunk in body_chunks(Sender(clock, iter([(0.1, b"x" * 1000)] * 50)), clock):
        clock.now += 5
        total += len(chunk)
    assert total == 50_000


async def test_a_stall_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traffic_limits, "STALL_SECONDS", 0.05)

    class Silent:
        async def readany(self) -> bytes:
            await asyncio.sleep(60)
            return b""

    with pytest.raises(TooSlow):
        await whole_body(Silent(), None, 10)


def test_the_pace_of_safety() -> None:
    assert allowed_seconds(0) == 9.5  # so that it is over within ten
    assert allowed_seconds(32 << 10) == 19.75
    assert allowed_seconds(64 << 10) == 30
    assert allowed_seconds((64 << 10) + (16 << 10) * 60) == 90
