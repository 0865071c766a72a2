"""A system's word on its way from a callback to the loop: who waits for whom, and what never leaves."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

from app.machine.power_events import event_callbacks
from app.machine.power_events.event_callbacks import LoopCallback, PowerEvent, run_source
from app.machine.power_events.macos_sleep import WAITS_SECONDS
from app.machine.power_events.windows_events import END_WAITS_SECONDS
from app.node.lending.lending_policy import KILLED_SECONDS, LEAVE_SECONDS

LONG = 60.0


class Talker:
    """A system that says one word after another when it is looked at, and notes what it has heard told by then."""

    def __init__(self, heard: LoopCallback, words: list[PowerEvent], power_events: list[PowerEvent]) -> None:
        self._heard, self._words, self._told = heard, words, power_events
        self.thread = threading.current_thread()
        self.told_before_it_went_on: list[PowerEvent] = []
        self.is_open = True

    def poll(self, seconds: float) -> None:
        assert threading.current_thread() is self.thread
        time.sleep(0.001)
        for word in self._words:
            self._heard(word)
            self.told_before_it_went_on.extend(self._told)
        self._words = []

    def close(self) -> None:
        assert threading.current_thread() is self.thread
        self.is_open = False


async def test_the_system_waits_until_it_was_told_and_is_left_at_the_end() -> None:
    power_events: list[PowerEvent] = []
    made: list[Talker] = []

    async def tell(going: PowerEvent) -> None:
        power_events.append(going)

    heard = LoopCallback(asyncio.get_running_loop(), tell, LONG)

    def opened() -> Talker:
        made.append(Talker(heard, [PowerEvent.SLEEP, PowerEvent.WAKE], power_events))
        return made[0]

    async with asyncio.TaskGroup() as tasks:
        hearing = tasks.create_task(run_source(opened), name="hear")
        await until(lambda: power_events == [PowerEvent.SLEEP, PowerEvent.WAKE])
        hearing.cancel()
    assert made[0].told_before_it_went_on[0] is PowerEvent.SLEEP
    assert made[0].thread is not threading.current_thread()
    assert not made[0].is_open


async def test_a_source_that_is_lost_is_closed_and_said() -> None:
    closed: list[bool] = []

    class Lost:
        def poll(self, seconds: float) -> None:
            raise OSError("gone")

        def close(self) -> None:
            closed.append(True)

    with pytest.raises(OSError, match="gone"):
        await run_source(Lost)
    assert closed == [True]


async def test_nobody_is_waited_for_longer_than_the_system_waits() -> None:
    async def tell(_: PowerEvent) -> None:
        await asyncio.Event().wait()

    heard = LoopCallback(asyncio.get_running_loop(), tell, 0.01)
    await asyncio.to_thread(heard, PowerEvent.SLEEP)
    await asyncio.to_thread(heard, PowerEvent.SHUTDOWN)


async def test_what_goes_wrong_stays_here(caplog: pytest.LogCaptureFixture) -> None:
    async def tell(_: PowerEvent) -> None:
        raise ValueError("wrong")

    caplog.set_level("INFO", event_callbacks.__name__)
    await asyncio.to_thread(LoopCallback(asyncio.get_running_loop(), tell, LONG), PowerEvent.SHUTDOWN)
    assert "ends: ValueError('wrong')" in caplog.text


def test_a_node_that_has_ended_is_told_nothing() -> None:
    loop = asyncio.new_event_loop()
    loop.close()

    async def tell(_: PowerEvent) -> None:
        raise AssertionError

    LoopCallback(loop, tell, LONG)(PowerEvent.SLEEP)


def test_a_node_that_ends_at_this_moment_is_told_nothing() -> None:
    class Ending(asyncio.SelectorEventLoop):
        closes_once_asked = False

        def is_closed(self) -> bool:
            return not self.closes_once_asked and super().is_closed()

    async def tell(_: PowerEvent) -> None:
        raise AssertionError

    loop = Ending()
    loop.close()
    loop.closes_once_asked = True
    LoopCallback(loop, tell, LONG)(PowerEvent.SLEEP)
    loop.closes_once_asked = False


def test_the_waits_lie_between_what_is_needed_and_what_a_system_gives() -> None:
    """Windows ends who does not answer in five seconds; macOS waits for thirty."""
    assert LEAVE_SECONDS + KILLED_SECONDS <= END_WAITS_SECONDS < 5
    assert LEAVE_SECONDS + KILLED_SECONDS <= WAITS_SECONDS < 30


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110  told from another thread
            await asyncio.sleep(0.001)
