"""A hub on loopback in a thread of its own, for windows: their loop is Qt's."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from testbed.namespaces import enter
from tests.catalog.hub_server import HubServer, serving


@contextmanager
def hub_thread(data: bytes, inside: str = "") -> Iterator[HubServer]:
    """Up until the end of the block. Its faults may be changed from any thread.

    inside: the network namespace in which it listens.
    """
    loop = asyncio.new_event_loop()
    up: list[HubServer] = []
    ready, over = threading.Event(), asyncio.Event()

    async def serve() -> None:
        async with serving(data) as server:
            up.append(server)
            ready.set()
            await over.wait()

    def run() -> None:
        if inside:
            enter(inside)
        loop.run_until_complete(serve())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield up[0]
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(10)
        loop.close()
