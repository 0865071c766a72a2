"""What Windows says of sleep, as far as it can be tried elsewhere: which of its words mean what, and who waits."""

from __future__ import annotations

import asyncio
import threading

import pytest

from app.machine import going_windows
from app.machine.going import Going
from app.machine.going_windows import RESUMED, SUSPEND, Heard

RESUMED_BY_USER, POWER_CHANGED = 0x07, 0x0A  # PBT_APMRESUMESUSPEND, PBT_APMPOWERSTATUSCHANGE


async def test_the_system_waits_until_it_was_said_that_it_sleeps() -> None:
    told: list[Going] = []
    may_end = asyncio.Event()

    async def tell(going: Going) -> None:
        await may_end.wait()
        told.append(going)

    heard = Heard(asyncio.get_running_loop(), tell)
    before_sleep: list[Going] = []

    def system() -> None:
        heard(None, POWER_CHANGED, None)
        heard(None, SUSPEND, None)
        before_sleep.extend(told)
        heard(None, RESUMED, None)
        heard(None, RESUMED_BY_USER, None)  # said after the other, where a person woke it

    may_end.set()
    await asyncio.to_thread(system)
    async with asyncio.timeout(30):
        while len(told) < 2:  # noqa: ASYNC110  told from another thread
            await asyncio.sleep(0.001)
    assert before_sleep == [Going.SLEEPS]
    assert told == [Going.SLEEPS, Going.STAYS]


async def test_it_is_not_held_up_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(going_windows, "WAITS_SECONDS", 0.01)

    async def tell(_: Going) -> None:
        await asyncio.Event().wait()

    heard = Heard(asyncio.get_running_loop(), tell)
    assert await asyncio.to_thread(heard, None, SUSPEND, None) == 0


def test_a_node_that_has_ended_is_told_nothing() -> None:
    loop = asyncio.new_event_loop()
    loop.close()

    async def tell(_: Going) -> None:
        raise AssertionError

    heard = Heard(loop, tell)
    calling = threading.Thread(target=heard, args=(None, SUSPEND, None))
    calling.start()
    calling.join()
