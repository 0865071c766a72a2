"""The limit of a machine's owner, on a clock of the test's own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from app.network.peer.frame_channel import MemoryChannel, PacedChannel
from app.network.traffic_limits import BURST_S, BYTES_OF_MBIT, SLICE_S, THROTTLED_SECONDS, LinkPace

MBIT = 8
RATE = MBIT * BYTES_OF_MBIT


class Clock:
    """Sleeping moves it, and nothing else does."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s

    async def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        await asyncio.sleep(0)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def pace(clock: Clock) -> LinkPace:
    made = LinkPace(clock, clock.sleep)
    made.limit(MBIT)
    return made


async def chunks(n: int, size: int) -> AsyncIterator[bytes]:
    for number in range(n):
        yield bytes([number]) * size


async def test_without_a_limit_nothing_waits_and_nothing_is_cut(clock: Clock) -> None:
    free = LinkPace(clock, clock.sleep)
    await free.wait_to_send(1 << 30)
    await free.wait_after_receiving(1 << 30)
    assert [len(part) async for part in free.pace_sending(chunks(3, 1 << 20))] == [1 << 20] * 3
    assert (clock.now_s, free.throttled_s(), free.bytes_per_s) == (100.0, 0.0, None)


async def test_a_body_goes_in_slices_and_takes_what_it_must(clock: Clock, pace: LinkPace) -> None:
    parts = [part async for part in pace.pace_sending(chunks(4, RATE))]
    assert b"".join(parts) == b"".join([part async for part in chunks(4, RATE)])
    assert max(map(len, parts)) <= RATE * SLICE_S
    assert clock.now_s - 100.0 == pytest.approx(4.0, abs=2 * SLICE_S + BURST_S)


async def test_both_ways_have_the_limit_for_themselves(clock: Clock, pace: LinkPace) -> None:
    await pace.wait_after_receiving(RATE)
    assert clock.now_s - 100.0 == pytest.approx(1.0, abs=BURST_S)
    await pace.wait_to_send(RATE)
    assert clock.now_s - 100.0 == pytest.approx(1.0, abs=BURST_S)  # it was idle so far
    received = [part async for part in pace.pace_receiving(chunks(2, RATE // 2))]
    assert sum(map(len, received)) == RATE
    assert clock.now_s - 100.0 == pytest.approx(2.0, abs=2 * BURST_S)


async def test_who_sends_little_waits_for_a_slice_of_who_sends_much(pace: LinkPace) -> None:
    """The real clock is used, since the test is about turns: the frames of an answer beside layers being sent."""
    real = LinkPace()
    real.limit(MBIT)
    loop = asyncio.get_running_loop()

    async def much() -> None:
        async for _ in real.pace_sending(chunks(1, 8 * RATE)):  # until it is stopped
            pass

    async with asyncio.TaskGroup() as tasks:
        sending = tasks.create_task(much(), name="layers")
        await asyncio.sleep(0.05)
        waited: list[float] = []
        while not sending.done() and len(waited) < 4:
            begun = loop.time()
            await real.wait_to_send(1000)
            waited.append(loop.time() - begun)
        sending.cancel()
    assert len(waited) == 4
    assert min(waited) < 3 * SLICE_S


async def test_it_tells_that_something_is_held_back_and_for_how_long(clock: Clock, pace: LinkPace) -> None:
    assert pace.throttled_s() == 0
    waits_s = pace.count_received(2 * RATE)
    clock.now_s += waits_s
    assert pace.throttled_s() == pytest.approx(waits_s)
    clock.now_s += THROTTLED_SECONDS + 0.01
    assert pace.throttled_s() == 0


async def test_the_limit_may_change_at_any_time(clock: Clock, pace: LinkPace) -> None:
    await pace.wait_to_send(RATE)
    pace.limit(2 * MBIT)
    begun = clock.now_s
    await pace.wait_to_send(2 * RATE)
    await pace.wait_to_send(1)
    assert clock.now_s - begun == pytest.approx(2.0, abs=BURST_S)
    pace.limit(0)
    begun = clock.now_s
    await pace.wait_to_send(1 << 40)
    assert (clock.now_s, pace.bytes_per_s) == (begun, None)


async def test_a_paced_channel_waits_both_ways(clock: Clock, pace: LinkPace) -> None:
    memory_channel, other = MemoryChannel.pair()
    paced = PacedChannel(memory_channel, pace)
    await paced.send(bytes(RATE))
    await paced.send(b"after")
    assert clock.now_s - 100.0 == pytest.approx(1.0, abs=BURST_S)
    assert [len(await other.receive()), await other.receive()] == [RATE, b"after"]
    await other.send(bytes(RATE))
    assert len(await paced.receive()) == RATE
    await paced.close()
    assert clock.now_s - 100.0 == pytest.approx(2.0, abs=2 * BURST_S)
