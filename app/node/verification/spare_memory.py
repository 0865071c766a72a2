"""The spare memory for checking samples. It is freed as soon as it is needed for anything else."""

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
    """The spare memory of one machine. Only one check may use it at a time.

    spare_bytes: returns how many bytes could still be loaded here in addition to everything loaded or promised.
    """

    def __init__(self, spare_bytes: Callable[[], int]) -> None:
        self._spare_bytes = spare_bytes
        self._turn = asyncio.Lock()
        self._wanted, self._n_wanting = asyncio.Event(), 0
        self._is_free = asyncio.Event()
        self._is_free.set()
        self._resident_bytes: Callable[[], int] | None = None  # memory of the running check's worker

    def speculative_bytes(self) -> int:
        """Return how many bytes speculative work may use now: half of the spare memory."""
        return int(AHEAD_SHARE * max(0, self._spare_bytes()))

    def reclaimable_bytes(self) -> int:
        """Return how many bytes the running check occupies. They are freed as soon as they are needed."""
        return self._resident_bytes() if self._resident_bytes is not None else 0

    async def run_check(self, check: Callable[[int], Coroutine[Any, Any, T]]) -> T:
        """Run a check and return its result. `check` is called with the number of bytes that it may use: half of
        the spare memory.

        Raises StageLost as soon as the memory is needed, and the errors of the check.
        """
        gone = StageLost("pipeline_closed")
        async with self._turn:
            if self._n_wanting:
                raise gone
            self._is_free.clear()
            try:
                work = check(self.speculative_bytes())
                return await run_until(self._wanted, work, gone)
            finally:
                self._is_free.set()

    @contextmanager
    def count_worker(self, resident_bytes: Callable[[], int]) -> Iterator[None]:
        """Include the memory of the check's worker in `reclaimable_bytes` while the block runs."""
        self._resident_bytes = resident_bytes
        try:
            yield
        finally:
            self._resident_bytes = None

    @asynccontextmanager
    async def reserve(self) -> AsyncIterator[Callable[[], None]]:
        """Claim memory or disk space while the block runs. A running check is stopped first. No check starts until the
        block ends or calls the yielded function."""
        with ExitStack() as claim:
            self._n_wanting += 1
            self._wanted.set()
            claim.callback(self._not_wanted)
            await self._is_free.wait()
            yield claim.close

    def _not_wanted(self) -> None:
        self._n_wanting -= 1
        if not self._n_wanting:
            self._wanted.clear()
