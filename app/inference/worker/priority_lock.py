"""One step at a time in a worker that holds several runs: the run that others wait for goes first."""

from __future__ import annotations

import asyncio
from heapq import heappop, heappush


class PriorityLock:
    """Who computes next on a machine that holds the first and the last run of a pipeline.

    In the order of arrival, a lender would often stand idle: the last run of one group of answers
    came before the first run of another, which only that lender waits for. So lower ranks go first.
    """

    def __init__(self) -> None:
        self._taken = False
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._number = 0

    async def take(self, rank: int) -> None:
        """Wait for this machine's next turn; steps of one rank keep their order."""
        if not self._taken:
            self._taken = True
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._number += 1
        heappush(self._waiting, (rank, self._number, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave()
            raise

    def leave(self) -> None:
        """The step is computed. Whoever leaves may have the better step ready in this very moment,
        so the next turn is given a moment later."""
        asyncio.get_running_loop().call_soon(self._give)

    def _give(self) -> None:
        while self._waiting:
            turn = heappop(self._waiting)[2]
            if not turn.done():
                turn.set_result(None)
                return
        self._taken = False
