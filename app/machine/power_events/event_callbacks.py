"""Delivery of power events from the operating system's threads to the event loop, within the system's time limit."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from typing import Protocol


class PowerEvent(StrEnum):
    """A power event reported by the operating system."""

    SLEEP = "sleeps"
    SHUTDOWN = "ends"
    WAKE = "stays"  # the computer is awake again, or the shutdown was canceled


PowerCallback = Callable[[PowerEvent], Awaitable[None]]


log = logging.getLogger(__name__)

POLL_SECONDS = 0.5  # between checks of whether the thread should end


class LoopCallback:
    """A callback that the operating system calls on its own thread.

    It never raises, because its caller is not Python.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, callback: PowerCallback, waits_s: float) -> None:
        self._loop, self._callback, self._waits_s = loop, callback, waits_s

    def __call__(self, event: PowerEvent) -> None:
        """Run the callback in the event loop, and wait until it returns or the system's time limit is reached.

        For a WAKE event, do not wait.
        """
        if self._loop.is_closed():
            return
        telling = self._call_back(event)
        try:
            future = asyncio.run_coroutine_threadsafe(telling, self._loop)
        except RuntimeError:  # the event loop was closed in the meantime
            telling.close()
            return
        if event is PowerEvent.WAKE:
            return
        try:
            future.result(self._waits_s)
        except Exception as error:  # noqa: BLE001  the system's thread: nothing may leave it
            log.info("other machines were not told in time that this computer %s: %r", event, error)

    async def _call_back(self, event: PowerEvent) -> None:
        await self._callback(event)


class EventSource(Protocol):
    """A source of power events. A single thread opens, polls and closes it."""

    def poll(self, seconds: float) -> None:
        """Process events for `seconds`. Raises OSError if the source can no longer deliver events."""
        ...

    def close(self) -> None: ...


async def run_source(open_source: Callable[[], EventSource]) -> None:
    """Open, poll and finally close a source in a dedicated thread, until canceled. Returns only after closing it.

    Raises OSError or AttributeError if the system has no such source.
    """
    over, executor = threading.Event(), ThreadPoolExecutor(1, "power events")
    serving = asyncio.get_running_loop().run_in_executor(executor, _poll_until, open_source, over)
    try:
        await asyncio.shield(serving)
    finally:
        over.set()
        executor.shutdown(wait=False)
        await asyncio.wait((serving,))


def _poll_until(open_source: Callable[[], EventSource], over: threading.Event) -> None:
    source = open_source()
    try:
        while not over.is_set():
            source.poll(POLL_SECONDS)
    finally:
        source.close()
