"""Sleep notifications on macOS, received from IOKit on a separate run loop. Not yet tested on a Mac.

IOKit does not report a logout or a shutdown (see kIOMessageSystemWillPowerOff in IOKit/IOMessage.h). Instead, a process
without a window receives SIGTERM, and node/start.py then shuts down the node cleanly.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
from ctypes import POINTER, byref, c_double, c_int32, c_ssize_t, c_ubyte, c_uint32, c_void_p
from typing import Any

from app.machine.power_events.event_callbacks import EventSource, LoopCallback, PowerCallback, PowerEvent, run_source

log = logging.getLogger(__name__)

# IOKit/IOMessage.h: iokit_common_msg(x) is sys_iokit (0x38 << 26) combined with x
CAN_SLEEP, WILL_SLEEP = 0xE0000270, 0xE0000280  # kIOMessageCanSystemSleep, …SystemWillSleep
WILL_POWER_ON, HAS_POWERED_ON = 0xE0000320, 0xE0000300  # some wake-ups report only the first of these
MEANS = {WILL_SLEEP: PowerEvent.SLEEP, WILL_POWER_ON: PowerEvent.WAKE, HAS_POWERED_ON: PowerEvent.WAKE}
ANSWERED = frozenset((CAN_SLEEP, WILL_SLEEP))  # without an answer, the system waits for half a minute
WAITS_SECONDS = 4.5  # longer than app/node/lending/lending_policy.py needs
NOTHING_TO_RUN = 1  # kCFRunLoopRunFinished, CoreFoundation/CFRunLoop.h

FRAMEWORKS = "/System/Library/Frameworks/{0}.framework/{0}"
# void (*IOServiceInterestCallback)(void *refcon, io_service_t, uint32_t messageType, void *messageArgument): IOKitLib.h
CALLED = ctypes.CFUNCTYPE(None, c_void_p, c_uint32, c_uint32, c_ssize_t)


class RootPower:
    """A registration with IOKit's root power domain, as in Apple's Technical Q&A 1340.

    iokit, core: the IOKit and CoreFoundation libraries. mode: kCFRunLoopDefaultMode. Raises OSError if refused.
    """

    def __init__(self, callback: LoopCallback, iokit: Any, core: Any, mode: c_void_p) -> None:
        _declare(iokit, core)
        self._callback, self._iokit, self._core, self._mode = callback, iokit, core, mode
        self._c_callback = CALLED(self._on_message)  # must stay referenced as long as IOKit may call it
        self._port, self._notifier = c_void_p(), c_uint32()
        self._root: int = iokit.IORegisterForSystemPower(
            None, byref(self._port), self._c_callback, byref(self._notifier)
        )
        if not self._root:
            raise OSError("IORegisterForSystemPower was refused")
        self._loop: int | None = core.CFRunLoopGetCurrent()
        self._source: int | None = iokit.IONotificationPortGetRunLoopSource(self._port)
        core.CFRunLoopAddSource(self._loop, self._source, mode)

    def poll(self, seconds: float) -> None:
        if self._core.CFRunLoopRunInMode(self._mode, seconds, 0) == NOTHING_TO_RUN:
            raise OSError("the run loop has lost IOKit's port")

    def close(self) -> None:
        self._core.CFRunLoopRemoveSource(self._loop, self._source, self._mode)
        self._iokit.IODeregisterForSystemPower(byref(self._notifier))
        self._iokit.IOServiceClose(self._root)
        self._iokit.IONotificationPortDestroy(self._port)

    def _on_message(self, _context: int | None, _service: int, kind: int, notification: int) -> None:
        event = MEANS.get(kind)
        if event is not None:
            self._callback(event)
        if kind in ANSWERED:
            self._iokit.IOAllowPowerChange(self._root, notification)


def _declare(iokit: Any, core: Any) -> None:
    """Declare the function signatures from IOPMLib.h, IOKitLib.h and CFRunLoop.h."""
    port = mode = source = c_void_p
    root = notifier = c_uint32  # mach ports
    for function, result, arguments in (
        (iokit.IORegisterForSystemPower, root, (c_void_p, POINTER(port), CALLED, POINTER(notifier))),
        (iokit.IODeregisterForSystemPower, c_int32, (POINTER(notifier),)),
        (iokit.IOAllowPowerChange, c_int32, (root, c_ssize_t)),
        (iokit.IOServiceClose, c_int32, (root,)),
        (iokit.IONotificationPortGetRunLoopSource, source, (port,)),
        (iokit.IONotificationPortDestroy, None, (port,)),
        (core.CFRunLoopGetCurrent, c_void_p, ()),
        (core.CFRunLoopAddSource, None, (c_void_p, source, mode)),
        (core.CFRunLoopRemoveSource, None, (c_void_p, source, mode)),
        (core.CFRunLoopRunInMode, c_int32, (mode, c_double, c_ubyte)),
    ):
        function.restype, function.argtypes = result, arguments


def _open_root_power(callback: LoopCallback) -> EventSource:
    """Load IOKit and CoreFoundation, and register for sleep events. Raises OSError or AttributeError."""
    iokit = ctypes.CDLL(FRAMEWORKS.format("IOKit"))
    core = ctypes.CDLL(FRAMEWORKS.format("CoreFoundation"))
    return RootPower(callback, iokit, core, c_void_p.in_dll(core, "kCFRunLoopDefaultMode"))


async def listen(on_event: PowerCallback) -> None:
    """Pass sleep and wake events to `on_event` until canceled. Return immediately on systems without IOKit."""
    callback = LoopCallback(asyncio.get_running_loop(), on_event, WAITS_SECONDS)
    try:
        await run_source(lambda: _open_root_power(callback))
    except (OSError, AttributeError) as error:
        log.info("sleep notifications are not available: %s", error)
