"""Tests of sleep on macOS, with simulated IOKit functions, and with the system's own where available."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from ctypes import CFUNCTYPE, POINTER, c_double, c_int32, c_ssize_t, c_ubyte, c_uint32, c_void_p
from typing import Any

import pytest

from app.machine.power_events import macos_sleep
from app.machine.power_events.event_callbacks import LoopCallback, PowerEvent, run_source
from app.machine.power_events.macos_sleep import (
    CAN_SLEEP,
    HAS_POWERED_ON,
    NOTHING_TO_RUN,
    WILL_POWER_ON,
    WILL_SLEEP,
    RootPower,
)
from app.machine.power_events.power_events import listen
from tests.machine.foreign import library
from tests.machine.power_events.test_event_callbacks import LONG, until

PORT, SOURCE, LOOP, MODE = 0x7F00_0000_1000, 0x7F00_0000_2000, 0x7F00_0000_3000, 0x7F00_0000_4000
ROOT, NOTIFIER = 0xF000_0001, 0xF000_0002
WILL_NOT_SLEEP = 0xE0000290  # kIOMessageSystemWillNotSleep: it follows CAN_SLEEP
INTEREST = CFUNCTYPE(None, c_void_p, c_uint32, c_uint32, c_void_p)
TIMED_OUT = 3  # kCFRunLoopRunTimedOut


class Mac:
    """The part of IOKit and of CoreFoundation that is used, with what a sleep makes them say."""

    def __init__(self, power_events: list[PowerEvent], *, root: int = ROOT, ran: int = TIMED_OUT) -> None:
        self._told, self._root, self._ran = power_events, root, ran
        self.said: list[tuple[int, int]] = []  # to be said at the next look: kind and notification
        self.allowed: list[tuple[int, list[PowerEvent]]] = []  # what was allowed, after what was told
        self.done: list[str] = []
        self._callback: Any = None
        self.iokit = library(
            IORegisterForSystemPower=(
                self._register, c_uint32, (c_void_p, POINTER(c_void_p), INTEREST, POINTER(c_uint32)),
            ),
            IODeregisterForSystemPower=(self._deregister, c_int32, (POINTER(c_uint32),)),
            IOAllowPowerChange=(self._allow, c_int32, (c_uint32, c_ssize_t)),
            IOServiceClose=(self._expect("close", ROOT), c_int32, (c_uint32,)),
            IONotificationPortGetRunLoopSource=(lambda port: SOURCE if port == PORT else 0, c_void_p, (c_void_p,)),
            IONotificationPortDestroy=(self._expect("destroy", PORT), None, (c_void_p,)),
        )  # fmt: skip
        self.core = library(
            CFRunLoopGetCurrent=(lambda: LOOP, c_void_p, ()),
            CFRunLoopAddSource=(self._expect("add", LOOP, SOURCE, MODE), None, (c_void_p,) * 3),
            CFRunLoopRemoveSource=(self._expect("remove", LOOP, SOURCE, MODE), None, (c_void_p,) * 3),
            CFRunLoopRunInMode=(self._run, c_int32, (c_void_p, c_double, c_ubyte)),
        )  # fmt: skip

    def power(self, heard: LoopCallback) -> RootPower:
        return RootPower(heard, self.iokit, self.core, c_void_p(MODE))

    def _register(self, context: int | None, port: Any, callback: Any, notifier: Any) -> int:
        assert context is None
        port[0], notifier[0], self._callback = PORT, NOTIFIER, callback
        return self._root

    def _deregister(self, notifier: Any) -> int:
        assert notifier[0] == NOTIFIER
        self.done.append("deregister")
        return 0

    def _allow(self, root: int, notification: int) -> int:
        assert root == ROOT
        self.allowed.append((notification, list(self._told)))
        return 0

    def _expect(self, name: str, *expected: int) -> Callable[..., int]:
        def called(*args: int) -> int:
            assert args == expected
            self.done.append(name)
            return 0

        return called

    def _run(self, mode: int, seconds: float, returns: int) -> int:
        assert (mode, returns) == (MODE, 0)
        assert 0 < seconds < 5
        time.sleep(0.001)
        while self.said:
            self._callback(None, 7, *self.said.pop(0))
        return self._ran


async def test_the_mac_sleeps_once_the_others_were_told_and_says_when_it_is_awake() -> None:
    power_events: list[PowerEvent] = []

    async def tell(going: PowerEvent) -> None:
        power_events.append(going)

    mac, heard = Mac(power_events), LoopCallback(asyncio.get_running_loop(), tell, LONG)
    mac.said = [
        (CAN_SLEEP, -3), (WILL_NOT_SLEEP, 4),  # asked, and taken back
        (CAN_SLEEP, 5), (WILL_SLEEP, 0x7FFF_0000_0006), (HAS_POWERED_ON, 7),
    ]  # fmt: skip
    async with asyncio.TaskGroup() as tasks:
        hearing = tasks.create_task(run_source(lambda: mac.power(heard)), name="hear")
        await until(lambda: power_events == [PowerEvent.SLEEP, PowerEvent.WAKE])
        mac.said = [(WILL_SLEEP, 8), (WILL_POWER_ON, 9)]  # and never that it has powered on
        await until(lambda: power_events[2:] == [PowerEvent.SLEEP, PowerEvent.WAKE])
        hearing.cancel()
    assert mac.allowed == [
        (-3, []), (5, []), (0x7FFF_0000_0006, [PowerEvent.SLEEP]),
        (8, [PowerEvent.SLEEP, PowerEvent.WAKE, PowerEvent.SLEEP]),
    ]  # fmt: skip
    assert mac.done == ["add", "remove", "deregister", "close", "destroy"]


async def test_a_mac_whose_lender_does_not_come_to_an_end_sleeps_all_the_same() -> None:
    async def tell(_: PowerEvent) -> None:
        await asyncio.Event().wait()

    mac = Mac([])
    mac.said = [(WILL_SLEEP, 1)]
    power = mac.power(LoopCallback(asyncio.get_running_loop(), tell, 0.01))
    await asyncio.to_thread(power.poll, 1.0)
    assert mac.allowed == [(1, [])]


async def test_a_refusal_and_a_lost_port_are_errors() -> None:
    async def tell(_: PowerEvent) -> None:
        raise AssertionError

    heard = LoopCallback(asyncio.get_running_loop(), tell, LONG)
    with pytest.raises(OSError, match="refused"):
        Mac([], root=0).power(heard)
    lost = Mac([], ran=NOTHING_TO_RUN)
    with pytest.raises(OSError, match="lost"):
        await run_source(lambda: lost.power(heard))
    assert lost.done[-1] == "destroy"


@pytest.mark.skipif(sys.platform == "darwin", reason="there it is")
async def test_where_there_is_no_iokit_the_node_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    async def tell(_: PowerEvent) -> None:
        raise AssertionError

    caplog.set_level("INFO", macos_sleep.__name__)
    await listen(tell, platform="darwin")
    assert "sleep notifications are not available" in caplog.text


@pytest.mark.skipif(sys.platform != "darwin", reason="needs macOS")
async def test_the_mac_itself_takes_the_registration_and_gives_it_back() -> None:
    """Send the Mac to sleep while a node lends there to see a real event: its log and its host's report it."""

    async def tell(_: PowerEvent) -> None:
        """Do nothing: the Mac may wake at this moment."""

    for _ in range(2):
        power = macos_sleep._open_root_power(LoopCallback(asyncio.get_running_loop(), tell, LONG))
        power.poll(0.05)
        power.close()
