"""A few threads of one's own: what others ask for cannot take the threads that this node needs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class BoundedExecutor:
    """At most `n_threads` calls at once; more wait for their turn."""

    def __init__(self, n_threads: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(n_threads, thread_name_prefix=name)

    async def run(self, work: Callable[P, T], *args: P.args, **more: P.kwargs) -> T:
        """As asyncio.to_thread: a cancelled wait does not end the work."""
        return await asyncio.wrap_future(self._pool.submit(work, *args, **more))

    def close(self) -> None:
        """Take no more work, and wait for none."""
        self._pool.shutdown(wait=False, cancel_futures=True)
