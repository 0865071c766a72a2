"""The memory of this machine that the check of a sample takes: spare, and given back at once to whoever wants it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from typing import Any, TypeVar

from app.core.errors import StageLost
from app.core.planner.placement_change import AHEAD_SHARE
from app.node.cancellation import run_until

T = TypeVar("T")


class SpareMemory:
    """Of one machine, whichever model is checked: one check at a time.

    spare_bytes: what could still be loaded here beside all that is there, or was promised.
    """

    def __init__(self, spare_bytes: Callable[[], int]) -> None:
        self._spare_bytes = spare_bytes
        self._turn = asyncio.Lock()
        self._wanted, self._n_wanting = asyncio.Event(), 0
        self._is_free = asyncio.Event()
        self._is_free.set()
        self._resident_bytes: Callable[[], int] | None = None  # of the check's worker

    def on_call_bytes(self) -> int:
        """What a check holds now: not free, and free as soon as it is wanted."""
        return self._resident_bytes() if self._resident_bytes is not None else 0

    async def within(self, check: Callable[[int], Coroutine[Any, Any, T]]) -> T:
        """The result of a check that may take so many bytes: half of what is spare, as for all that may be of no
        use. Raises StageLost as soon as somebody wants them, and what the check raises."""
        gone = StageLost("pipeline_closed")
        async with self._turn:
            if self._n_wanting:
                raise gone
            self._is_free.clear()
            try:
                work = check(int(AHEAD_SHARE * max(0, self._spare_bytes())))
                return await run_until(self._wanted, work, gone)
            finally:
                self._is_free.set()

    @contextmanager
    def held(self, resident_bytes: Callable[[], int]) -> Iterator[None]:
        """The check's worker lives inside."""
        self._resident_bytes = resident_bytes
        try:
            yield
        finally:
            self._resident_bytes = None

    @asynccontextmanager
    async def wanted(self) -> AsyncIterator[Callable[[], None]]:
        """Memory, or the disk, is taken for somebody inside: a check has given back what it had, and none begins
        until what is yielded is called, or all is over."""
        with ExitStack() as wish:
            self._n_wanting += 1
            self._wanted.set()
            wish.callback(self._not_wanted)
            await self._is_free.wait()
            yield wish.close

    def _not_wanted(self) -> None:
        self._n_wanting -= 1
        if not self._n_wanting:
            self._wanted.clear()
