"""Power notifications on Windows: sleep through a callback, and the end of the session through a hidden window.

Not yet tested on Windows. Only windows are notified of the end of the session. A process that has loaded user32.dll, as
ours has, gets no console event for it (see the remarks on SetConsoleCtrlHandler). The node creates its own window for
this, because it may run without the app's window.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import POINTER, byref, c_int, c_ssize_t, c_void_p, wintypes
from typing import Any

from app.machine.power_events.event_callbacks import EventSource, LoopCallback, PowerCallback, PowerEvent, run_source

log = logging.getLogger(__name__)


if sys.platform == "win32":
    FUNCTION, LIBRARY = ctypes.WINFUNCTYPE, ctypes.WinDLL
else:  # for tests on other systems
    FUNCTION, LIBRARY = ctypes.CFUNCTYPE, ctypes.CDLL

CLASS = "PoolhouseSession"
CLOSE, QUERY_END, END = (0x0010, 0x0011, 0x0016)  # WM_CLOSE, WM_QUERYENDSESSION, WM_ENDSESSION: winuser.h
ALL_INPUT, REMOVE = 0x04FF, 0x0001  # QS_ALLINPUT, PM_REMOVE: winuser.h
WAIT_FAILED = 0xFFFFFFFF  # winbase.h
# SetProcessShutdownParameters: notify us before our own workers (0x280), and show no dialog about us
ASKED_FIRST, NO_RETRY = 0x300, 0x1
END_WAITS_SECONDS = 4.5  # Windows kills a process after five; app/node/lending/lending_policy.py needs less

WNDPROC = FUNCTION(c_ssize_t, wintypes.HWND, wintypes.UINT, wintypes.WPARAM, wintypes.LPARAM)


class WindowClass(ctypes.Structure):
    """The Windows structure WNDCLASSW."""

    _fields_ = (
        ("style", wintypes.UINT),
        ("procedure", WNDPROC),
        ("class_extra", c_int),
        ("window_extra", c_int),
        ("instance", wintypes.HINSTANCE),
        ("icon", wintypes.HANDLE),
        ("cursor", wintypes.HANDLE),
        ("background", wintypes.HANDLE),
        ("menu", wintypes.LPCWSTR),
        ("name", wintypes.LPCWSTR),
    )


class SessionWindow:
    """A hidden top-level window that is notified of the end of the session.

    A message-only window would not be notified. The window always allows the session to end. It then calls `callback`
    and waits until the event has been handled. Raises OSError if the window cannot be created.
    """

    def __init__(self, callback: LoopCallback, user32: Any, kernel32: Any) -> None:
        _declare(user32, kernel32)
        self._callback, self._user32 = callback, user32
        self._c_callback = WNDPROC(self._on_message)  # must stay referenced as long as the window exists
        self._instance: int | None = kernel32.GetModuleHandleW(None)
        kernel32.SetProcessShutdownParameters(ASKED_FIRST, NO_RETRY)
        window_class = WindowClass(procedure=self._c_callback, instance=self._instance, name=CLASS)
        if not user32.RegisterClassW(byref(window_class)):
            raise OSError("RegisterClassW was refused")
        self._window: int | None = user32.CreateWindowExW(
            0, CLASS, CLASS, 0, 0, 0, 0, 0, None, None, self._instance, None
        )
        if not self._window:
            user32.UnregisterClassW(CLASS, self._instance)
            raise OSError("CreateWindowExW was refused")

    def poll(self, seconds: float) -> None:
        wait = self._user32.MsgWaitForMultipleObjects
        if wait(0, None, False, round(seconds * 1000), ALL_INPUT) == WAIT_FAILED:
            raise OSError("MsgWaitForMultipleObjects was refused")
        message = wintypes.MSG()
        while self._user32.PeekMessageW(byref(message), None, 0, 0, REMOVE):
            self._user32.DispatchMessageW(byref(message))

    def close(self) -> None:
        self._user32.DestroyWindow(self._window)
        self._user32.UnregisterClassW(CLASS, self._instance)

    def _on_message(self, window: int | None, message: int, first: int, second: int) -> int:
        if message == QUERY_END:
            return 1
        if message == END:
            if first:  # otherwise the end of the session was canceled
                self._callback(PowerEvent.SHUTDOWN)
            return 0
        if message == CLOSE:  # sent by another program; the default handler would destroy this window
            return 0
        return int(self._user32.DefWindowProcW(window, message, first, second))


def _declare(user32: Any, kernel32: Any) -> None:
    """Declare the function signatures from winuser.h, libloaderapi.h and processthreadsapi.h."""
    atom, flag, text, handle = wintypes.ATOM, wintypes.BOOL, wintypes.LPCWSTR, c_void_p
    dword, uint = wintypes.DWORD, wintypes.UINT
    message = (handle, uint, wintypes.WPARAM, wintypes.LPARAM)
    place = (c_int, c_int, c_int, c_int)
    for function, result, arguments in (
        (user32.RegisterClassW, atom, (POINTER(WindowClass),)),
        (user32.CreateWindowExW, handle, (dword, text, text, dword, *place, handle, handle, handle, c_void_p)),
        (user32.DefWindowProcW, c_ssize_t, message),
        (user32.MsgWaitForMultipleObjects, dword, (dword, c_void_p, flag, dword, dword)),
        (user32.PeekMessageW, flag, (POINTER(wintypes.MSG), handle, uint, uint, uint)),
        (user32.DispatchMessageW, c_ssize_t, (POINTER(wintypes.MSG),)),
        (user32.DestroyWindow, flag, (handle,)),
        (user32.UnregisterClassW, flag, (text, handle)),
        (kernel32.GetModuleHandleW, handle, (text,)),
        (kernel32.SetProcessShutdownParameters, flag, (dword, dword)),
    ):
        function.restype, function.argtypes = result, arguments


SUSPEND, RESUMED = 0x04, 0x12  # PBT_APMSUSPEND, PBT_APMRESUMEAUTOMATIC: winuser.h


BY_CALLBACK = 2  # DEVICE_NOTIFY_CALLBACK: winuser.h


WAITS_SECONDS = 1.5  # Windows waits at most two seconds


MEANS = {SUSPEND: PowerEvent.SLEEP, RESUMED: PowerEvent.WAKE}


# DEVICE_NOTIFY_CALLBACK_ROUTINE: powrprof.h
CALLED = FUNCTION(wintypes.ULONG, c_void_p, wintypes.ULONG, c_void_p)


class Subscription(ctypes.Structure):
    """The Windows structure DEVICE_NOTIFY_SUBSCRIBE_PARAMETERS of powrprof.h."""

    _fields_ = (("callback", CALLED), ("context", c_void_p))


@contextmanager
def sleep_notices(callback: LoopCallback, powrprof: Any) -> Iterator[None]:
    """Within this context, call `callback` before the system sleeps and after it wakes up.

    Raises OSError if the system refuses.
    """

    def on_notice(_context: int | None, kind: int, _setting: int | None) -> int:
        event = MEANS.get(kind)
        if event is not None:
            callback(event)
        return 0

    register = powrprof.PowerRegisterSuspendResumeNotification
    unregister = powrprof.PowerUnregisterSuspendResumeNotification
    register.restype, unregister.restype = wintypes.DWORD, wintypes.DWORD
    register.argtypes = (wintypes.DWORD, POINTER(Subscription), POINTER(c_void_p))
    unregister.argtypes = (c_void_p,)
    subscription, handle = Subscription(CALLED(on_notice), None), c_void_p()
    error = register(BY_CALLBACK, byref(subscription), byref(handle))
    if error:
        raise OSError(f"PowerRegisterSuspendResumeNotification was refused: error {error}")
    try:
        yield
    finally:
        unregister(handle)


async def listen(on_event: PowerCallback) -> None:
    """Pass sleep, wake and end-of-session events to `on_event` until canceled. Return immediately on other systems."""
    async with asyncio.TaskGroup() as group:
        group.create_task(_listen_for_sleep(on_event), name="sleep notices")
        group.create_task(_listen_for_session_end(on_event), name="session end notices")


async def _listen_for_sleep(on_event: PowerCallback) -> None:
    callback = LoopCallback(asyncio.get_running_loop(), on_event, WAITS_SECONDS)
    try:
        with sleep_notices(callback, LIBRARY("powrprof")):
            await asyncio.Event().wait()
    except (OSError, AttributeError) as error:
        log.info("sleep notifications are not available: %s", error)


async def _listen_for_session_end(on_event: PowerCallback) -> None:
    callback = LoopCallback(asyncio.get_running_loop(), on_event, END_WAITS_SECONDS)

    def open_source() -> EventSource:
        return SessionWindow(callback, LIBRARY("user32"), LIBRARY("kernel32"))

    try:
        await run_source(open_source)
    except (OSError, AttributeError) as error:
        log.info("notifications of the session's end are not available: %s", error)
