"""Windows says that this computer is about to sleep, by a callback that needs no window. Not yet run there.

Of the session's end it tells windows alone: app/machine/power_events/windows_session.py.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import POINTER, byref, c_void_p, wintypes
from typing import Any

from app.machine.power_events.event_callbacks import Heard, Source, hear
from app.machine.power_events.power_event import Going, Tell
from app.machine.power_events.windows_session import END_WAITS_SECONDS, FUNCTION, LIBRARY, SessionWindow

log = logging.getLogger(__name__)

SUSPEND, RESUMED = 0x04, 0x12  # PBT_APMSUSPEND, PBT_APMRESUMEAUTOMATIC: winuser.h
BY_CALLBACK = 2  # DEVICE_NOTIFY_CALLBACK: winuser.h
WAITS_SECONDS = 1.5  # a program that takes longer than two is not waited for
MEANS = {SUSPEND: Going.SLEEPS, RESUMED: Going.STAYS}

# DEVICE_NOTIFY_CALLBACK_ROUTINE: powrprof.h
CALLED = FUNCTION(wintypes.ULONG, c_void_p, wintypes.ULONG, c_void_p)


class Subscription(ctypes.Structure):
    """DEVICE_NOTIFY_SUBSCRIBE_PARAMETERS: powrprof.h."""

    _fields_ = (("callback", CALLED), ("context", c_void_p))


@contextmanager
def sleep_told(heard: Heard, powrprof: Any) -> Iterator[None]:
    """Inside, `heard` is called before the system sleeps and once it is awake. Raises OSError when that is refused."""

    def said(_context: int | None, kind: int, _setting: int | None) -> int:
        going = MEANS.get(kind)
        if going is not None:
            heard(going)
        return 0

    register = powrprof.PowerRegisterSuspendResumeNotification
    unregister = powrprof.PowerUnregisterSuspendResumeNotification
    register.restype, unregister.restype = wintypes.DWORD, wintypes.DWORD
    register.argtypes = (wintypes.DWORD, POINTER(Subscription), POINTER(c_void_p))
    unregister.argtypes = (c_void_p,)
    asked, handle = Subscription(CALLED(said), None), c_void_p()
    error = register(BY_CALLBACK, byref(asked), byref(handle))
    if error:
        raise OSError(f"PowerRegisterSuspendResumeNotification was refused: error {error}")
    try:
        yield
    finally:
        unregister(handle)


async def listen(tell: Tell) -> None:
    """Until cancelled; at once where there is no Windows. What the one cannot tell, the other may."""
    async with asyncio.TaskGroup() as group:
        group.create_task(_hear_of_sleep(tell), name="hear of sleep")
        group.create_task(_hear_of_the_end(tell), name="hear of the session's end")


async def _hear_of_sleep(tell: Tell) -> None:
    heard = Heard(asyncio.get_running_loop(), tell, WAITS_SECONDS)
    try:
        with sleep_told(heard, LIBRARY("powrprof")):
            await asyncio.Event().wait()
    except (OSError, AttributeError) as error:
        log.info("nothing says when this computer sleeps: %s", error)


async def _hear_of_the_end(tell: Tell) -> None:
    heard = Heard(asyncio.get_running_loop(), tell, END_WAITS_SECONDS)

    def opened() -> Source:
        return SessionWindow(heard, LIBRARY("user32"), LIBRARY("kernel32"))

    try:
        await hear(opened)
    except (OSError, AttributeError) as error:
        log.info("nothing says when this session ends: %s", error)
