"""Notifications that this computer is about to sleep or shut down, or has woken up.

On Linux, they come from logind over the system bus, and an inhibitor lock delays the event for a few seconds while
other machines are informed. On macOS, macos_sleep.py reports sleep. On Windows, windows_events.py reports sleep and the
end of the session. node/start.py handles signals such as SIGTERM, which a logout sends on Linux and macOS.
"""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys

from app.machine.power_events.event_callbacks import PowerCallback, PowerEvent
from app.machine.power_events.keep_awake import Start, start_tool, stop_tool

log = logging.getLogger(__name__)

LOGIND, MANAGER, PATH = ("org.freedesktop.login1", "org.freedesktop.login1.Manager", "/org/freedesktop/login1")
DELAY = (
    "systemd-inhibit",
    "--what=sleep:shutdown",
    "--who=Poolhouse",
    "--mode=delay",
    "--why=Other computers are told first",
    "cat",
)
"""`cat` ends with the pipe to it, so with us. The system waits for 5 s at most."""
RETRY_SECONDS = 60.0  # between two attempts to connect to the bus


MEMBERS = {"PrepareForSleep": PowerEvent.SLEEP, "PrepareForShutdown": PowerEvent.SHUTDOWN}


class SleepInhibitor:
    """A logind inhibitor lock that delays sleep and shutdown until other machines have been informed."""

    def __init__(self, start: Start = start_tool) -> None:
        self._start = start
        self._tool: subprocess.Popen[bytes] | None = None

    def hold(self) -> None:
        if self._tool is not None and self._tool.poll() is None:
            return
        try:
            self._tool = self._start(DELAY)
        except OSError as error:
            log.info("sleep cannot be delayed: %s", error)

    def release(self) -> None:
        tool, self._tool = self._tool, None
        if tool is not None:
            stop_tool(tool)


async def listen(callback: PowerCallback, delay: SleepInhibitor | None = None, platform: str = sys.platform) -> None:
    """Pass the system's power events to `callback` until canceled.

    The system waits until `callback` returns, or until its own time limit is reached.
    """
    if platform == "win32":
        from app.machine.power_events import windows_events

        await windows_events.listen(callback)
    elif platform == "darwin":
        from app.machine.power_events import macos_sleep

        await macos_sleep.listen(callback)
    elif platform == "linux":
        await _listen_to_logind(callback, delay or SleepInhibitor())


async def _listen_to_logind(callback: PowerCallback, delay: SleepInhibitor) -> None:
    level = logging.INFO
    try:
        while True:
            try:
                await _receive_signals(callback, delay)
            except (OSError, EOFError, ValueError) as error:
                log.log(level, "sleep notifications are not available: %s", error)
                level = logging.DEBUG  # warn only once
            delay.release()
            await asyncio.sleep(RETRY_SECONDS)
    finally:
        delay.release()


async def _receive_signals(callback: PowerCallback, delay: SleepInhibitor) -> None:
    """Connect to the system bus and process logind's signals until the connection fails.

    Raises OSError, EOFError or ValueError.
    """
    from jeepney import HeaderFields, MatchRule, MessageType, message_bus
    from jeepney.io.asyncio import open_dbus_connection

    rule = MatchRule(type="signal", sender=LOGIND, interface=MANAGER, path=PATH)
    connection = await open_dbus_connection("SYSTEM")
    async with connection:
        await connection.send(message_bus.AddMatch(rule))
        delay.hold()
        while True:
            message = await connection.receive()
            if message.header.message_type is not MessageType.signal:
                continue
            fields, body = message.header.fields, message.body
            event = MEMBERS.get(fields.get(HeaderFields.member, ""))
            if event is None or fields.get(HeaderFields.interface) != MANAGER or len(body) != 1:
                continue
            if body[0]:
                await callback(event)
                delay.release()
            else:
                delay.hold()
                await callback(PowerEvent.WAKE)
