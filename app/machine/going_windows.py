"""Windows says that this computer is about to sleep, by a callback that needs no window. Not yet run there."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import sys
from collections.abc import Awaitable, Callable

from app.machine.going import Going

log = logging.getLogger(__name__)

SUSPEND, RESUMED = 0x04, 0x12  # PBT_APMSUSPEND, PBT_APMRESUMEAUTOMATIC: winuser.h
CALLBACK = 2  # DEVICE_NOTIFY_CALLBACK
WAITS_SECONDS = 1.5  # a program that takes longer than two is not waited for
MEANS = {SUSPEND: Going.SLEEPS, RESUMED: Going.STAYS}


class Heard:
    """What the system calls, on a thread of its own: it sleeps once this has returned."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, tell: Callable[[Going], Awaitable[None]]
    ) -> None:
        self._loop, self._tell = loop, tell

    def __call__(self, _context: object, kind: int, _setting: object) -> int:
        going = MEANS.get(kind)
        if going is None or self._loop.is_closed():
            return 0
        try:
            telling = asyncio.run_coroutine_threadsafe(self._told(going), self._loop)
            if going is Going.SLEEPS:
                telling.result(WAITS_SECONDS)
        except Exception as error:  # noqa: BLE001  the system's thread: nothing may leave it
            log.info("not everybody heard that this computer sleeps: %r", error)
        return 0

    async def _told(self, going: Going) -> None:
        await self._tell(going)


if sys.platform == "win32":

    class _Subscription(ctypes.Structure):
        """DEVICE_NOTIFY_SUBSCRIBE_PARAMETERS."""

        _fields_ = (("callback", ctypes.c_void_p), ("context", ctypes.c_void_p))

    async def listen(tell: Callable[[Going], Awaitable[None]]) -> None:
        """Until cancelled."""
        made = ctypes.WINFUNCTYPE(ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_void_p)
        heard = made(Heard(asyncio.get_running_loop(), tell))
        asked = _Subscription(ctypes.cast(heard, ctypes.c_void_p), None)
        power, handle = ctypes.WinDLL("powrprof"), ctypes.c_void_p()
        error = power.PowerRegisterSuspendResumeNotification(
            CALLBACK, ctypes.byref(asked), ctypes.byref(handle)
        )
        if error:
            log.info("nothing says when this computer sleeps: error %d", error)
            return
        try:
            await asyncio.Event().wait()
        finally:
            power.PowerUnregisterSuspendResumeNotification(handle)
