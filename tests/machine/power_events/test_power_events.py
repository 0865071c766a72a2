"""Tests of the system's announcements of sleep and shutdown, on the test's own bus."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from pathlib import Path

import pytest

from app.machine.power_events.event_callbacks import PowerEvent
from app.machine.power_events.keep_awake import start_tool
from app.machine.power_events.power_events import DELAY, SleepInhibitor, listen
from tests.machine.logind import Logind, bus, has_bus, has_tool, system_bus

LIVES = (sys.executable, "-c", "import sys; sys.stdin.read()")
linux = pytest.mark.skipif(not has_bus(), reason="needs a D-Bus daemon")


class Tools:
    """Starts another program in place of the system's."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []
        self.made: list[subprocess.Popen[bytes]] = []

    def __call__(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        self.asked.append(tuple(command))
        self.made.append(start_tool(LIVES))
        return self.made[-1]

    @property
    def n_alive(self) -> int:
        return sum(tool.poll() is None for tool in self.made)


def test_sleep_is_held_up_by_one_tool_until_it_is_released() -> None:
    tools = Tools()
    delay = SleepInhibitor(tools)
    delay.hold()
    delay.hold()
    assert tools.asked == [DELAY]
    delay.release()
    delay.release()
    assert tools.n_alive == 0


def test_where_there_is_no_such_tool_nothing_is_held_up() -> None:
    def none(_: Sequence[str]) -> subprocess.Popen[bytes]:
        raise FileNotFoundError("systemd-inhibit")

    delay = SleepInhibitor(none)
    delay.hold()
    delay.release()


@pytest.fixture
def own_bus(tmp_path: Path) -> Iterator[None]:
    with bus(tmp_path) as address, system_bus(address):
        yield


@pytest.fixture
async def heard() -> AsyncGenerator[tuple[list[PowerEvent], Tools]]:
    power_events: list[PowerEvent] = []
    tools = Tools()

    async def tell(going: PowerEvent) -> None:
        assert tools.n_alive == 1  # the system waits until it was said
        power_events.append(going)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(listen(tell, SleepInhibitor(tools)), name="listen")
        yield power_events, tools
        task.cancel()
    assert tools.n_alive == 0


@linux
async def test_sleep_and_its_end_and_a_shutdown_are_told(own_bus: None, heard: tuple[list[PowerEvent], Tools]) -> None:
    power_events, tools = heard
    with Logind() as logind:
        await until(lambda: tools.n_alive == 1)
        logind.say("PrepareForSleep", True)
        await until(lambda: power_events == [PowerEvent.SLEEP])
        await until(lambda: tools.n_alive == 0)  # now it may sleep
        logind.say("PrepareForSleep", False)
        await until(lambda: power_events == [PowerEvent.SLEEP, PowerEvent.WAKE])
        logind.say("SessionNew", True)
        logind.say("PrepareForShutdown", True)
        await until(lambda: power_events[2:] == [PowerEvent.SHUTDOWN])


@linux
async def test_others_than_the_system_are_not_believed(own_bus: None, heard: tuple[list[PowerEvent], Tools]) -> None:
    power_events, tools = heard
    with Logind() as logind, Logind(named=False) as other:
        await until(lambda: tools.n_alive == 1)
        other.say("PrepareForSleep", True)
        logind.say("PrepareForShutdown", True)
        await until(lambda: bool(power_events))
    assert power_events == [PowerEvent.SHUTDOWN]


async def test_without_a_bus_nothing_is_said(
    monkeypatch: pytest.MonkeyPatch, heard: tuple[list[PowerEvent], Tools]
) -> None:
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nowhere")
    await asyncio.sleep(0.1)
    assert heard[0] == []
    assert heard[1].asked == []


@pytest.mark.skipif(not has_tool(), reason="needs systemd-inhibit")
async def test_the_system_s_own_tool_asks_logind_for_the_delay(own_bus: None) -> None:
    """The installed tool gets our arguments; logind is simulated."""
    delays: list[bool] = []

    async def tell(going: PowerEvent) -> None:
        delays.append(logind.delayed)

    with Logind() as logind:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(listen(tell), name="listen")
            await until(lambda: logind.delayed)
            logind.say("PrepareForSleep", True)
            await until(lambda: delays == [True] and not logind.delayed)
            logind.say("PrepareForSleep", False)
            await until(lambda: len(delays) == 2 and logind.delayed)
            task.cancel()
        await until(lambda: not logind.delayed)  # its tool ends, and the bus lets go of the pipe


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110  seen from outside
            await asyncio.sleep(0.01)
