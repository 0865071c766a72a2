"""Tests of sleep and of a session's end on Windows, with simulated functions, and with its own where available."""

from __future__ import annotations

import asyncio
import ctypes
import sys
import time
from ctypes import POINTER, Structure, c_int, c_ssize_t, c_void_p, wintypes
from typing import Any

import pytest

from app.machine.power_events import windows_events
from app.machine.power_events.event_callbacks import LoopCallback, PowerEvent, run_source
from app.machine.power_events.power_events import listen
from app.machine.power_events.windows_events import (
    ASKED_FIRST,
    BY_CALLBACK,
    CLASS,
    CLOSE,
    END,
    FUNCTION,
    LIBRARY,
    NO_RETRY,
    QUERY_END,
    RESUMED,
    SUSPEND,
    WAIT_FAILED,
    SessionWindow,
    sleep_notices,
)
from tests.machine.foreign import library
from tests.machine.power_events.test_event_callbacks import LONG, until

RESUMED_BY_USER, POWER_CHANGED = 0x07, 0x0A  # PBT_APMRESUMESUSPEND, PBT_APMPOWERSTATUSCHANGE
LOGOFF = -0x80000000  # ENDSESSION_LOGOFF
SETTING_CHANGE = 0x001A  # WM_SETTINGCHANGE: one that is not ours to answer
HANDLE, WINDOW, MODULE = 0x7F00_0000_1000, 0x7F00_0000_2000, 0x7F00_0000_3000
DEFAULT_ANSWER = 42

here = pytest.mark.skipif(sys.platform != "win32", reason="needs Windows")
elsewhere = pytest.mark.skipif(sys.platform == "win32", reason="there the real one is")
ROUTINE = FUNCTION(wintypes.ULONG, c_void_p, wintypes.ULONG, c_void_p)
PROCEDURE = FUNCTION(c_ssize_t, c_void_p, wintypes.UINT, wintypes.WPARAM, wintypes.LPARAM)


class Subscription(Structure):
    """DEVICE_NOTIFY_SUBSCRIBE_PARAMETERS, by its header."""

    _fields_ = (("callback", ROUTINE), ("context", c_void_p))


class Powrprof:
    """Calls back when it is told to."""

    def __init__(self, refused: int = 0) -> None:
        self._refused, self.ended = refused, 0
        self.callback: Any = None
        dword = wintypes.DWORD
        self.dll = library(
            PowerRegisterSuspendResumeNotification=(
                self._register, dword, (dword, POINTER(Subscription), POINTER(c_void_p)),
            ),
            PowerUnregisterSuspendResumeNotification=(self._unregister, dword, (c_void_p,)),
        )  # fmt: skip

    def _register(self, flags: int, request: Any, handle: Any) -> int:
        assert flags == BY_CALLBACK
        assert request[0].context is None
        handle[0] = HANDLE
        callback = ctypes.cast(request[0].callback, c_void_p)
        self.callback = ROUTINE(callback.value or 0)  # copied, as there
        return self._refused

    def _unregister(self, handle: int) -> int:
        assert handle == HANDLE
        self.ended += 1
        return 0


class WindowClass(Structure):
    """WNDCLASSW, by its header."""

    _fields_ = (
        ("style", wintypes.UINT), ("procedure", PROCEDURE), ("class_extra", c_int), ("window_extra", c_int),
        ("instance", c_void_p), ("icon", c_void_p), ("cursor", c_void_p), ("background", c_void_p),
        ("menu", ctypes.c_wchar_p), ("name", ctypes.c_wchar_p),
    )  # fmt: skip


class Desktop:
    """One window and its messages. `asks`: to be sent to it at the next look; `answers`: what it said."""

    def __init__(self, *, wait: int = 0, window: int = WINDOW) -> None:
        self._wait, self._window = wait, window
        self.asks: list[tuple[int, int, int]] = []
        self.answers: list[int] = []
        self.done: list[str] = []
        self._procedure: Any = None
        dword, uint, flag, text = wintypes.DWORD, wintypes.UINT, wintypes.BOOL, wintypes.LPCWSTR
        message = (c_void_p, uint, wintypes.WPARAM, wintypes.LPARAM)
        self.user32 = library(
            RegisterClassW=(self._register, wintypes.ATOM, (POINTER(WindowClass),)),
            CreateWindowExW=(self._create, c_void_p, (
                dword, text, text, dword, c_int, c_int, c_int, c_int, c_void_p, c_void_p, c_void_p, c_void_p,
            )),
            DefWindowProcW=(lambda *_: DEFAULT_ANSWER, c_ssize_t, message),
            MsgWaitForMultipleObjects=(self._look, dword, (dword, c_void_p, flag, dword, dword)),
            PeekMessageW=(lambda *_: 0, flag, (POINTER(wintypes.MSG), c_void_p, uint, uint, uint)),
            DispatchMessageW=(lambda _: 0, c_ssize_t, (POINTER(wintypes.MSG),)),
            DestroyWindow=(self._destroy, flag, (c_void_p,)),
            UnregisterClassW=(self._unregister, flag, (text, c_void_p)),
        )  # fmt: skip
        self.kernel32 = library(
            GetModuleHandleW=(lambda name: MODULE if name is None else 0, c_void_p, (text,)),
            SetProcessShutdownParameters=(self._order, flag, (dword, dword)),
        )

    def opened(self, heard: LoopCallback) -> SessionWindow:
        return SessionWindow(heard, self.user32, self.kernel32)

    def _order(self, level: int, flags: int) -> int:
        assert (level, flags) == (ASKED_FIRST, NO_RETRY)
        return 1

    def _register(self, made: Any) -> int:
        assert (made[0].name, made[0].instance, made[0].style) == (CLASS, MODULE, 0)
        procedure = ctypes.cast(made[0].procedure, c_void_p)
        self._procedure = PROCEDURE(procedure.value or 0)  # copied, as there
        return 1

    def _create(self, *args: Any) -> int:
        style, parent, instance = args[3], args[8], args[10]
        assert (args[1], style, parent, instance) == (CLASS, 0, None, MODULE)  # of top level
        assert self._procedure(self._window, 0x81, 0, 0) == DEFAULT_ANSWER  # WM_NCCREATE
        return self._window

    def _look(self, n: int, _handles: None, _all: int, milliseconds: int, mask: int) -> int:
        assert (n, mask) == (0, 0x4FF)
        assert 0 < milliseconds < 5000
        time.sleep(0.001)
        while self.asks:
            self.answers.append(self._procedure(self._window, *self.asks.pop(0)))
        return self._wait

    def _destroy(self, window: int) -> int:
        assert window == WINDOW
        self.done.append("destroy")
        return 1

    def _unregister(self, name: str, instance: int) -> int:
        assert (name, instance) == (CLASS, MODULE)
        self.done.append("unregister")
        return 1


async def test_the_system_waits_until_it_was_said_that_it_sleeps() -> None:
    power_events: list[PowerEvent] = []
    before_sleep: list[PowerEvent] = []

    async def tell(going: PowerEvent) -> None:
        power_events.append(going)

    system = Powrprof()
    with sleep_notices(LoopCallback(asyncio.get_running_loop(), tell, LONG), system.dll):

        def sleep() -> None:
            assert system.callback(None, POWER_CHANGED, None) == 0
            assert system.callback(None, SUSPEND, None) == 0
            before_sleep.extend(power_events)
            system.callback(None, RESUMED, None)
            system.callback(None, RESUMED_BY_USER, None)  # said after the other, where a person woke it

        await asyncio.to_thread(sleep)
        await until(lambda: power_events == [PowerEvent.SLEEP, PowerEvent.WAKE])
    assert before_sleep == [PowerEvent.SLEEP]
    assert system.ended == 1


async def test_the_session_ends_once_the_others_were_told() -> None:
    power_events: list[PowerEvent] = []

    async def tell(going: PowerEvent) -> None:
        power_events.append(going)

    desktop, heard = Desktop(), LoopCallback(asyncio.get_running_loop(), tell, LONG)
    desktop.asks = [
        (QUERY_END, 0, LOGOFF), (END, 0, LOGOFF),  # it may end; and somebody else had it go on
        (SETTING_CHANGE, 0, 0), (CLOSE, 0, 0),
    ]  # fmt: skip
    async with asyncio.TaskGroup() as tasks:
        hearing = tasks.create_task(run_source(lambda: desktop.opened(heard)), name="hear")
        await until(lambda: desktop.answers == [1, 0, DEFAULT_ANSWER, 0])
        assert power_events == []
        desktop.asks = [(QUERY_END, 0, 0), (END, 1, 0)]
        await until(lambda: desktop.answers[4:] == [1, 0])
        assert power_events == [PowerEvent.SHUTDOWN]
        hearing.cancel()
    assert desktop.done == ["destroy", "unregister"]


async def test_refusals_are_errors_and_leave_nothing_behind() -> None:
    async def tell(_: PowerEvent) -> None:
        raise AssertionError

    heard = LoopCallback(asyncio.get_running_loop(), tell, LONG)
    with pytest.raises(OSError, match="error 5"), sleep_notices(heard, Powrprof(5).dll):
        pass
    without = Desktop(window=0)
    with pytest.raises(OSError, match="CreateWindowExW"):
        without.opened(heard)
    assert without.done == ["unregister"]
    deaf = Desktop(wait=WAIT_FAILED)
    with pytest.raises(OSError, match="MsgWait"):
        await run_source(lambda: deaf.opened(heard))
    assert deaf.done == ["destroy", "unregister"]


@elsewhere
async def test_where_there_is_no_windows_the_node_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    async def tell(_: PowerEvent) -> None:
        raise AssertionError

    caplog.set_level("INFO", windows_events.__name__)
    await listen(tell, platform="win32")
    assert "sleep notifications are not available" in caplog.text
    assert "notifications of the session's end are not available" in caplog.text


@here
async def test_windows_itself_tells_the_window_that_the_session_ends() -> None:
    """The message is as the system sends it, without the end. To see a real event, send a lending computer to sleep."""
    power_events: list[PowerEvent] = []

    async def tell(going: PowerEvent) -> None:
        power_events.append(going)

    user32 = LIBRARY("user32")
    user32.FindWindowW.restype, user32.FindWindowW.argtypes = c_void_p, (wintypes.LPCWSTR,) * 2
    user32.SendMessageW.argtypes = (c_void_p, wintypes.UINT, wintypes.WPARAM, wintypes.LPARAM)
    async with asyncio.TaskGroup() as tasks:
        hearing = tasks.create_task(listen(tell), name="listen")
        await until(lambda: bool(user32.FindWindowW(CLASS, CLASS)))
        window = user32.FindWindowW(CLASS, CLASS)
        assert await asyncio.to_thread(user32.SendMessageW, window, QUERY_END, 0, 0) == 1
        assert power_events == []
        await asyncio.to_thread(user32.SendMessageW, window, END, 1, 0)
        assert power_events == [PowerEvent.SHUTDOWN]
        hearing.cancel()
    assert not user32.FindWindowW(CLASS, CLASS)
