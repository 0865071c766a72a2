"""Checks of samples give way to what members send, and not for ever: a member that is checked may be the sender."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from app.core.errors import AppError
from app.core.household.membership import Member
from app.network.traffic_limits import TooSlow
from app.node.lending.lending_service import LEAST_BYTES_PER_SECOND, MOST_WAITED_S, OFFER_S, SlowUploadBudget
from tests.node.lending_bench import Bench, member, new


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock(bench: Bench) -> Clock:
    made = Clock()
    bench.lending._slow_budget = SlowUploadBudget(made)
    return made


class BreaksOff:
    """An upload that brings nothing, and ends after so long."""

    def __init__(self, bench: Bench, clock: Clock, seconds: float) -> None:
        self._bench, self._clock, self._seconds = bench, clock, seconds
        self.checks_ran = False

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        self.checks_ran = await checks_run(self._bench)
        self._clock.now_s += self._seconds
        raise TooSlow("no byte in 10 s")


async def computed() -> bool:
    return True


async def checks_run(bench: Bench) -> bool:
    try:
        return await bench.terms.spare_memory.run_check(lambda _: computed())
    except AppError:
        return False


async def test_who_trickles_keeps_no_check_from_running(bench: Bench, clock: Clock) -> None:
    wants, ran = await bench.offer(pipeline := new()), list[bool]()

    async def trickled() -> AsyncIterator[bytes]:
        async for chunk in bench.chunks(wants):
            half = len(chunk) // 2
            for part in (chunk[:half], chunk[half:]):
                ran.append(await checks_run(bench))
                clock.now_s += MOST_WAITED_S / 2
                yield part

    await bench.lending.pieces(member(), pipeline, trickled())
    assert ran[:2] == [False, False]  # a moment that is not slow yet
    assert all(ran[2:])
    assert len(ran) > 2
    assert await checks_run(bench)
    assert bench.terms.spare_memory._n_wanting == 0


async def test_short_uploads_count_together_and_of_each_member_alone(bench: Bench, clock: Clock) -> None:
    async def tried(peer: Member, seconds: float) -> bool:
        """Return whether a check could run beside an upload that breaks off."""
        sends = BreaksOff(bench, clock, seconds)
        await bench.offer(pipeline := new(), peer)
        with pytest.raises(TooSlow):
            await bench.lending.pieces(peer, pipeline, sends)
        return sends.checks_ran

    assert [await tried(member(), MOST_WAITED_S / 3) for _ in range(3)] == [False] * 3
    assert await tried(member(), 0.0)
    assert not await tried(member("b"), 0.0)


async def test_offers_without_layers_end_it_and_quick_layers_bring_it_back() -> None:
    clock = Clock()
    patience, machine = SlowUploadBudget(clock), member().id
    for _ in range(int(MOST_WAITED_S / OFFER_S)):
        patience.charge_offer(machine)
    assert not patience.is_used_up(machine)
    patience.charge_offer(machine)
    assert patience.is_used_up(machine)

    async def quickly() -> AsyncIterator[bytes]:
        for _ in range(int(2 * OFFER_S)):
            clock.now_s += 0.1
            yield bytes(LEAST_BYTES_PER_SECOND)

    async with asyncio.timeout(60):
        assert len([chunk async for chunk in patience.charge_chunks(machine, quickly(), lambda: None)]) == 10
    assert not patience.is_used_up(machine)
